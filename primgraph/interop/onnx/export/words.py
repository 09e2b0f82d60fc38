"""ONNX's words for the primitives that work on single elements, and for reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primgraph.interop.compositions.table import is_complex
from primgraph.interop.onnx.export.writer import Writer, code_of
from primgraph.ir.graph import Equation, Graph
from primgraph.ir.types import BOOL, FLOAT32, FLOAT64
from primgraph.primitives.special_functions.formulas import FORMULAS, piece
from primgraph.primitives.special_functions.special import erfcx

# A function that writes an equation on named operands, and returns the names of its results.
Write = Callable[..., Any]

# Primitives that are one operator on the same operands.
WORDS = {
    "abs": "Abs", "add": "Add", "arccos": "Acos", "arccosh": "Acosh", "arcsin": "Asin",
    "arcsinh": "Asinh", "arctan": "Atan", "arctanh": "Atanh", "bitwise_and": "BitwiseAnd",
    "bitwise_not": "BitwiseNot", "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor",
    "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "det": "Det", "div": "Div", "equal": "Equal",
    "erf": "Erf", "exp": "Exp", "floor": "Floor", "greater": "Greater",
    "greater_equal": "GreaterOrEqual", "less": "Less", "less_equal": "LessOrEqual", "log": "Log",
    "logical_and": "And", "logical_not": "Not", "logical_or": "Or", "logical_xor": "Xor",
    "matmul": "MatMul", "maximum": "Max", "minimum": "Min", "mul": "Mul", "neg": "Neg",
    "power": "Pow", "round": "Round", "select": "Where", "sigmoid": "Sigmoid",
    "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "stop_gradient": "Identity", "sub": "Sub",
    "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip

# Words of booleans, which ONNX's arithmetic does not take.
BOOLEAN = {
    "add": "Or", "mul": "And", "maximum": "Or", "minimum": "And", "bitwise_and": "And",
    "bitwise_or": "Or", "bitwise_xor": "Xor", "bitwise_not": "Not", "abs": "Identity",
}  # fmt: skip

# Operators that onnxruntime has for float32 only; there are compositions.
_SINGLE = {"det"}

# Compositions of several operators, by primitive.
COMPOSED: dict[str, Write] = {}

# Integer dtypes that ONNX's arithmetic has in full, and operators with the same bits for numbers
# with and without sign, which onnxruntime has only with it.
_WIDE = ("int32", "int64", "uint64")
_WRAPPING = ("add", "sub", "mul", "neg")


def composes(*names: str, complex: bool = False) -> Callable[[Write], Write]:
    """Declare `f(w, eqn, *names)` as what writes these primitives, those of `complex` ones too."""

    def declare(function: Write) -> Write:
        for name in names:
            COMPOSED[name] = function
            if complex:
                COMPLEX.add(name)
        return function

    return declare


# Primitives of complex numbers that are written; compositions of real numbers replace others.
COMPLEX = {"stop_gradient"}


def has_word(eqn: Equation) -> bool:
    """Return whether an equation can be written."""
    if is_complex(eqn):
        return eqn.op.name in COMPLEX
    if eqn.op.name in _SINGLE and eqn.output.dtype == FLOAT64:
        return False
    return eqn.op.name in COMPOSED or eqn.op.name in WORDS or _has_formula(eqn)


def _has_formula(eqn: Equation) -> bool:
    formula = FORMULAS.get(eqn.op)
    return formula is not None and all(eqn.kwargs[name] == n for name, n in formula.params)


def write_equation(w: Writer, eqn: Equation) -> None:
    """Write an equation whose operands have names."""
    names = [w.names[v] for v in eqn.inputs]
    found = _written(w, eqn, names)
    results = [found] if isinstance(found, str) else found
    for value, name in zip(eqn.outputs, results, strict=True):
        w.names[value] = name


def _written(w: Writer, eqn: Equation, names: list[str]) -> Any:
    name = eqn.op.name
    if eqn.inputs and eqn.inputs[0].dtype == BOOL and name in BOOLEAN:
        return w.emit(BOOLEAN[name], *names)
    if eqn.inputs and eqn.inputs[0].dtype == BOOL and name in _ORDERS:
        return w.emit(WORDS[name], *[cast(w, x, np.int32) for x in names])
    if name == "select" and eqn.output.dtype == BOOL:
        return _select_truth(w, *names)
    if name in COMPOSED:
        return COMPOSED[name](w, eqn, *names)
    if _has_formula(eqn):
        return _write_formula(w, eqn, *names)
    dtype = eqn.inputs[0].dtype
    wraps = dtype.name == "uint64" and name in _WRAPPING
    if wraps or (dtype.kind in "iu" and dtype.name not in _WIDE and name not in _SMALL):
        return _in_integers(w, eqn, WORDS[name], names)
    return w.emit(WORDS[name], *names)


def _select_truth(w: Writer, test: str, x: str, y: str) -> str:
    """Write a choice between booleans, which onnxruntime's `Where` lacks."""
    other = w.emit("And", w.emit("Not", test), y)
    return w.emit("Or", w.emit("And", test, x), other)


# Comparisons that ONNX does not have for booleans.
_ORDERS = {"greater", "greater_equal", "less", "less_equal"}

# Operators that take all integers.
_SMALL = {
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "select", "stop_gradient",
}  # fmt: skip


def _in_integers(w: Writer, eqn: Equation, word: str, names: list[str]) -> str:
    """Write an operator on other integers by way of those of 64 bits with sign."""
    wide = [w.emit("Cast", name, to=code_of("int64")) for name in names]
    found = w.emit(word, *wide)
    return found if eqn.output.dtype == BOOL else cast(w, found, eqn.output.dtype)


def cast(w: Writer, name: str, dtype: Any) -> str:
    """Write a conversion."""
    return w.emit("Cast", name, to=code_of(dtype))


def number(w: Writer, value: Any, dtype: Any) -> str:
    """Return the name of a number."""
    return w.constant(np.asarray(value, dtype))


@composes("cast")
def _cast(w: Writer, eqn: Equation, x: str) -> str:
    return cast(w, x, eqn.output.dtype)


@composes("not_equal")
def _not_equal(w: Writer, eqn: Equation, x: str, y: str) -> str:
    return w.emit("Not", w.emit("Equal", x, y))


@composes("rsqrt")
def _rsqrt(w: Writer, eqn: Equation, x: str) -> str:
    return w.emit("Reciprocal", w.emit("Sqrt", x))


@composes("integer_pow")
def _integer_pow(w: Writer, eqn: Equation, x: str) -> str:
    n, dtype = eqn.kwargs["n"], eqn.output.dtype
    if n in (2, 3):
        square = w.emit("Mul", x, x)
        return square if n == 2 else w.emit("Mul", square, x)
    return w.emit("Pow", x, number(w, n, dtype if dtype.kind == "f" else np.int64))


@composes("expm1")
def _expm1(w: Writer, eqn: Equation, x: str) -> str:
    """`tanh(x / 2) * (exp(x) + 1)`, which is exact near zero."""
    dtype = eqn.output.dtype
    half = w.emit("Tanh", w.emit("Mul", x, number(w, 0.5, dtype)))
    return w.emit("Mul", half, w.emit("Add", w.emit("Exp", x), number(w, 1, dtype)))


@composes("log1p")
def _log1p(w: Writer, eqn: Equation, x: str) -> str:
    return _write_log1p(w, x, eqn.output.dtype)


def _write_log1p(w: Writer, x: str, dtype: Any) -> str:
    """`log(u) * x / (u - 1)` with `u = 1 + x` (W. Kahan); `log(u)` from one on."""
    one = number(w, 1, dtype)
    u = w.emit("Add", x, one)
    logarithm, rest = w.emit("Log", u), w.emit("Sub", u, one)
    small = w.emit("Div", w.emit("Mul", logarithm, x), rest)
    same = w.emit("Equal", rest, number(w, 0, dtype))
    found = w.emit("Where", w.emit("Greater", x, one), logarithm, small)
    return w.emit("Where", same, x, found)


@composes("logaddexp")
def _logaddexp(w: Writer, eqn: Equation, x: str, y: str) -> str:
    """`max(x, y) + log1p(exp(-|x - y|))`; equal infinities have no difference."""
    dtype = eqn.output.dtype
    apart = w.emit("Neg", w.emit("Abs", w.emit("Sub", x, y)))
    gap = w.emit("Where", w.emit("Equal", x, y), number(w, 0, dtype), apart)
    return w.emit("Add", w.emit("Max", x, y), _write_log1p(w, w.emit("Exp", gap), dtype))


@composes("sign")
def _sign(w: Writer, eqn: Equation, x: str) -> str:
    found = w.emit("Sign", x)
    return w.emit("Where", w.emit("IsNaN", x), x, found) if eqn.output.dtype.kind == "f" else found


@composes("arctan2")
def _arctan2(w: Writer, eqn: Equation, y: str, x: str) -> str:
    """`2 atan(y / (hypot(x, y) + |x|))`, turned by half a circle for negative `x`."""
    dtype = eqn.output.dtype
    largest = w.emit("Max", w.emit("Abs", x), w.emit("Abs", y))
    zero, one = number(w, 0, dtype), number(w, 1, dtype)
    unit = w.emit("Where", w.emit("Equal", largest, zero), one, largest)
    infinity = number(w, np.inf, dtype)
    is_infinite = w.emit("Equal", largest, infinity)
    parts = []
    for part in (x, y):
        whole = w.emit("Equal", w.emit("Abs", part), infinity)
        direction = w.emit("Where", whole, w.emit("Sign", part), w.emit("Mul", part, zero))
        parts.append(w.emit("Where", is_infinite, direction, w.emit("Div", part, unit)))
    a, b = parts
    length = w.emit("Sqrt", w.emit("Add", w.emit("Mul", a, a), w.emit("Mul", b, b)))
    beside = w.emit("Add", length, w.emit("Abs", a))
    beside = w.emit("Where", w.emit("Equal", beside, zero), one, beside)
    angle = w.emit("Mul", number(w, 2, dtype), w.emit("Atan", w.emit("Div", b, beside)))
    pi = number(w, np.pi, dtype)
    turned = w.emit("Where", w.emit("Less", y, zero), w.emit("Neg", pi), pi)
    return w.emit("Where", w.emit("Less", x, zero), w.emit("Sub", turned, angle), angle)


def _signs_differ(w: Writer, x: str, y: str, zero: str) -> str:
    return w.emit("Xor", w.emit("Less", x, zero), w.emit("Less", y, zero))


@composes("remainder")
def _remainder(w: Writer, eqn: Equation, x: str, y: str) -> str:
    return _write_remainder(w, x, y, eqn.output.dtype)


def _write_remainder(w: Writer, x: str, y: str, dtype: Any) -> str:
    """Write the remainder that has the sign of the divisor."""
    if dtype.kind in "iu":
        return w.emit("Mod", x, y)
    rest, wrong = _rest(w, x, y, number(w, 0, dtype))
    return w.emit("Where", wrong, w.emit("Add", rest, y), rest)


def _rest(w: Writer, x: str, y: str, zero: str) -> tuple[str, str]:
    """Write the remainder with the sign of `x`, and whether `y` has the other one."""
    rest = w.emit("Mod", x, y, fmod=1)
    left = w.emit("Not", w.emit("Equal", rest, zero))
    return rest, w.emit("And", left, _signs_differ(w, rest, y, zero))


@composes("floor_divide")
def _floor_divide(w: Writer, eqn: Equation, x: str, y: str) -> str:
    """Write the quotient of what the remainder leaves, as NumPy computes it."""
    dtype = eqn.output.dtype
    if dtype.kind in "iu":
        return w.emit("Div", w.emit("Sub", x, w.emit("Mod", x, y)), y)
    zero = number(w, 0, dtype)
    rest, wrong = _rest(w, x, y, zero)
    found = w.emit("Round", w.emit("Div", w.emit("Sub", x, rest), y))
    below = w.emit("Where", wrong, w.emit("Sub", found, number(w, 1, dtype)), found)
    return w.emit("Where", w.emit("Equal", y, zero), w.emit("Div", x, y), below)


@composes("unless_nan")
def _unless_nan(w: Writer, eqn: Equation, x: str, y: str) -> str:
    return w.emit("Where", w.emit("IsNaN", y), y, x)


@composes("left_shift", "right_shift")
def _shift(w: Writer, eqn: Equation, x: str, y: str) -> str:
    """Write a shift by way of a product or a quotient by a power of two."""
    unsigned = eqn.output.dtype.kind == "u"
    if unsigned:
        direction = "LEFT" if eqn.op.name == "left_shift" else "RIGHT"
        return w.emit("BitShift", x, y, direction=direction)
    power = w.emit("Pow", number(w, 2, eqn.output.dtype), y)
    if eqn.op.name == "left_shift":
        return w.emit("Mul", x, power)
    rest = w.emit("Mod", x, power)
    return w.emit("Div", w.emit("Sub", x, rest), power)


# Special functions, by their formulas.


def _write_formula(w: Writer, eqn: Equation, *names: str) -> str:
    """Write the formula of a special function; in double precision if it needs that."""
    formula = FORMULAS[eqn.op]
    dtype = eqn.output.dtype
    inner = dtype if dtype == FLOAT64 or (formula.single and dtype == FLOAT32) else FLOAT64
    given = names if inner == dtype else [cast(w, name, inner) for name in names]
    found = _write_piece(w, piece(formula.function.__name__, inner), given)
    return found if inner == dtype else cast(w, found, dtype)


@composes("erfc")
def _erfc(w: Writer, eqn: Equation, x: str) -> str:
    """`1 - erf(x)`, and `erfcx(x) * exp(-x * x)` where that has no digits left."""
    dtype = eqn.output.dtype
    # It is zero from 64 on.
    wide = w.emit("Min", cast(w, x, FLOAT64), number(w, 64, FLOAT64))
    near = w.emit("Sub", number(w, 1, dtype), w.emit("Erf", x))
    # `exp(-h * h) * exp(-(x - h) * (x + h))`, where the square of h is exact.
    h = w.emit("Floor", w.emit("Mul", wide, number(w, 16, FLOAT64)))
    h = w.emit("Mul", h, number(w, 1 / 16, FLOAT64))
    rest = w.emit("Mul", w.emit("Sub", h, wide), w.emit("Add", h, wide))
    bell = w.emit("Mul", w.emit("Exp", w.emit("Neg", w.emit("Mul", h, h))), w.emit("Exp", rest))
    scaled = _write_piece(w, piece(FORMULAS[erfcx].function.__name__, FLOAT64), [wide])
    far = cast(w, w.emit("Mul", scaled, bell), dtype)
    return w.emit("Where", w.emit("Greater", x, number(w, 0.5, dtype)), far, near)


def _write_piece(w: Writer, graph: Graph, names: Sequence[str]) -> str:
    """Write a graph of numbers on whole arrays: all branches, of which elements choose."""
    w.names.update(zip(graph.inputs, names, strict=True))
    for eqn in graph.body:
        if not eqn.op.has_bodies:
            write_equation(w, eqn)
            continue
        index, *given = [w.names[v] for v in eqn.inputs]
        parts = [_write_piece(w, branch, given) for branch in eqn.kwargs["branches"]]
        w.names[eqn.output] = _chosen(w, index, eqn.inputs[0].dtype, parts)
    return w.names[graph.outputs[0]]


def _chosen(w: Writer, index: str, dtype: Any, parts: Sequence[str]) -> str:
    """Choose each element among the branches by its index."""
    if dtype == BOOL:
        return w.emit("Where", index, parts[1], parts[0])
    found = parts[-1]
    for k in reversed(range(len(parts) - 1)):
        is_at_most = w.emit("LessOrEqual", index, number(w, k, dtype))
        found = w.emit("Where", is_at_most, parts[k], found)
    return found


# Reductions.

_REDUCTIONS = {
    "reduce_sum": "ReduceSum", "reduce_prod": "ReduceProd", "reduce_max": "ReduceMax",
    "reduce_min": "ReduceMin",
}  # fmt: skip


def _wide(w: Writer, x: str, dtype: Any) -> tuple[str, bool]:
    """Return an array in a dtype that reductions take, and whether it is another one."""
    if dtype == BOOL:
        return cast(w, x, "int32"), True
    if dtype.kind in "iu" and dtype.name not in ("int32", "int64"):
        return cast(w, x, "int64"), True
    return x, False


@composes(*_REDUCTIONS)
def _reduce(w: Writer, eqn: Equation, x: str) -> str:
    wide, changed = _wide(w, x, eqn.inputs[0].dtype)
    axes = w.integers(eqn.kwargs["axes"])
    found = w.emit(_REDUCTIONS[eqn.op.name], wide, axes, keepdims=0, noop_with_empty_axes=1)
    return cast(w, found, eqn.output.dtype) if changed else found


@composes("root_of_squares")
def _root_of_squares(w: Writer, eqn: Equation, x: str, squares: str) -> str:
    """Write the norm of elements divided by the largest one, times that."""
    dtype, axes = eqn.output.dtype, w.integers(eqn.kwargs["axes"])
    largest = w.emit("ReduceMax", w.emit("Abs", x), axes, keepdims=1)
    zero, one = number(w, 0, dtype), number(w, 1, dtype)
    plain = w.emit(
        "Or", w.emit("Equal", largest, zero), w.emit("IsInf", cast(w, largest, "float32"))
    )
    unit = w.emit("Where", plain, one, largest)
    scaled = w.emit("Div", x, unit)
    total = w.emit("ReduceSum", w.emit("Mul", scaled, scaled), axes, keepdims=1)
    found = w.emit("Mul", w.emit("Sqrt", total), unit)
    divided = w.emit("Div", found, number(w, np.sqrt(eqn.kwargs["divisor"]), dtype))
    return w.emit("Reshape", divided, w.integers(eqn.output.shape))


@composes("argmax", "argmin")
def _arg_extreme(w: Writer, eqn: Equation, x: str) -> str:
    """Write the position of the extremum, or of the first NaN, which runtimes skip."""
    dtype, axis = eqn.inputs[0].dtype, eqn.kwargs["axis"]
    wide, _ = _wide(w, x, dtype)
    kind = "ArgMax" if eqn.op.name == "argmax" else "ArgMin"
    found = w.emit(kind, wide, axis=axis, keepdims=0)
    if dtype.kind != "f":
        return found
    is_nan = cast(w, w.emit("IsNaN", x), "int32")
    some = cast(w, w.emit("ReduceMax", is_nan, w.integers([axis]), keepdims=0), "bool")
    return w.emit("Where", some, w.emit("ArgMax", is_nan, axis=axis, keepdims=0), found)


@composes("cumsum")
def _cumsum(w: Writer, eqn: Equation, x: str) -> str:
    axis = number(w, eqn.kwargs["axis"], np.int64)
    wide, changed = _wide(w, x, eqn.inputs[0].dtype)
    found = w.emit("CumSum", wide, axis, reverse=int(eqn.kwargs["reverse"]))
    return cast(w, found, eqn.output.dtype) if changed else found
