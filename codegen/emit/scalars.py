"""Scalar mode: a graph of a few numbers as arithmetic on Python's floats.

A call of a NumPy function costs some hundred nanoseconds however little it computes, an operator
of Python's about ten. Arrays of a few elements are taken apart into names, one an element, and
put together again for the results. Results are those of NumPy: arithmetic, sums and square roots
to the bit, other functions within one unit in the last place, which is why only those of the C
library are used for which that holds. Python raises exceptions where NumPy returns infinities and
NaNs; the caller then computes everything with NumPy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.codegen.cards.literals import scalar_text
from primgraph.codegen.emit.module import Function
from primgraph.codegen.plan.schedule import Schedule, Step
from primgraph.ir.types import BOOL, FLOAT64, TensorType
from primgraph.primitives.reductions import safe_squares

# Longer programs, those with more inputs, and longer vectors gain little beside what they take.
LONGEST = 500
WIDEST = 20
_MOST_ELEMENTS = 100

# How many expressions take as long as one call of a NumPy function, and those that are calls.
_CALL = 12
_CALLING = frozenset({"tanh"})

# From this number on NumPy adds in another order than that of the elements.
_PAIRWISE = 8

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_SHORT = re.compile(r"[\w.+-]+|\(-[\w.+-]+\)")

# Expressions of the elements of a value, in an array of its shape.
Elements: TypeAlias = np.ndarray[Any, Any]
Expression: TypeAlias = Callable[[Sequence[str], Step], str | None]


def scalar_function(schedule: Schedule, alone: bool = False) -> tuple[list[str], Function] | None:
    """Lines that bind names, and `scalar(*arrays)`, which gives the results of the kernel.

    They are in a list, unless there is only one, and that is to be `alone`.
    It raises an exception for what it cannot do: for arguments that are not arrays of exactly
    the declared types too. None if the graph is not one of a few floats and booleans, or has
    operations that are faster on arrays.
    """
    if not 0 < len(schedule.steps) <= LONGEST or schedule.inputs > WIDEST:
        return None
    types = {schedule.types[v] for s in schedule.steps for v in (*s.inputs, *s.outputs)}
    types.update(schedule.types[: schedule.inputs])
    if not all(0 < t.size <= _MOST_ELEMENTS and t.dtype in (FLOAT64, BOOL) for t in types):
        return None
    return _Scalars(schedule, alone).function()


@final
class _Scalars:
    def __init__(self, schedule: Schedule, alone: bool) -> None:
        self.schedule = schedule
        self.alone = alone
        self.made = Function("scalar", ", ".join(f"x{i}" for i in range(schedule.inputs)))
        self.elements: dict[int, Elements] = {}
        # How many expressions there are, and for how many calls they stand.
        self.expressions = 0
        self.calls = 0
        # Values that may lie in memory from the last element to the first.
        self.reversed: set[int] = set()

    def function(self) -> tuple[list[str], Function] | None:
        """Names to bind, and the function; None if there is none, or it would not be faster."""
        for i in range(self.schedule.inputs):
            self._argument(i)
        for i, step in enumerate(self.schedule.steps):
            if not self._step(i, step) or self.expressions > LONGEST:
                return None
        if self.expressions > _CALL * self.calls:
            return None
        for k, value in enumerate(self.schedule.outputs):
            for line in _result(f"r{k}", self.elements[value], self.schedule.types[value]):
                self.made.line(line)
        results = ", ".join(f"r{k}" for k, _ in enumerate(self.schedule.outputs))
        self.made.returns([results if self.alone else f"[{results}]"])
        names = set(_NAME.findall("\n".join([line.text for line in self.made.body])))
        return [line for n, line in _BINDINGS.items() if n in names], self.made

    def _argument(self, i: int) -> None:
        type = self.schedule.types[i]
        self.made.line(f"if {_unfit(f'x{i}', type)}:")
        self.made.line("raise TypeError", depth=1)
        names = _names(i, type.size)
        if type.size == 1:
            self.made.line(f"{names[0]} = x{i}.item()")
        else:
            flat = f"x{i}" if len(type.shape) == 1 else f"x{i}.ravel()"
            self.made.line(f"{', '.join(names)} = {flat}.tolist()")
        self.elements[i] = _array(names, type)

    def _step(self, i: int, step: Step) -> bool:
        """Write one equation, if it can be written."""
        operands = [self.elements[v] for v in step.inputs]
        if step.op.name in _MOVING:
            self.elements.update(zip(step.outputs, _moved(step, operands), strict=True))
            if _turns(step) or not self.reversed.isdisjoint(step.inputs):
                self.reversed.update(step.outputs)
            return True
        found = self._expressions(step, operands)
        if found is None:
            return False
        value, texts = step.outputs[0], []
        names = _names(value, len(found))
        for name, text in zip(names, found, strict=True):
            if not _is_short(text):
                self.made.line(f"{name} = {text}", i)
                self.expressions += _CALL if step.op.name in _CALLING else 1
            texts.append(text if _is_short(text) else name)
        self.calls += 1
        self.elements[value] = _array(texts, step.results[0])
        return True

    def _expressions(self, step: Step, operands: Sequence[Elements]) -> list[str] | None:
        """The expressions of the elements of the result, in order; None if there are none."""
        name, result = step.op.name, step.results[0]
        if name == "constant":
            return [_number(x, result) for x in step.params["value"].data.ravel().tolist()]
        if name == "full":
            return [_number(step.params["value"], result)] * result.size
        if name == "pad":
            return _padded(step, operands[0])
        if name == "reduce_sum" and step.operands[0].size > result.size:
            in_order = step.inputs[0] not in self.reversed
            return _sums(step, operands[0]) if in_order else None
        if name == "root_of_squares":
            return [_root(text, step) for text in operands[1].ravel().tolist()]
        rule = _RULES.get(name)
        if rule is None or not _is_by_element(step):
            return None
        rows = zip(*(x.ravel().tolist() for x in operands), strict=True)
        texts = [rule(row, step) for row in rows]
        known = [text for text in texts if text is not None]
        return known if len(known) == len(texts) else None


def _moved(step: Step, operands: Sequence[Elements]) -> list[Elements]:
    """The elements of the results of what moves elements, which says where it takes each from."""
    texts = np.concatenate([x.ravel() for x in operands])
    ends = np.cumsum([x.size for x in operands])
    places = [
        np.arange(end - x.size, end).reshape(x.shape) for x, end in zip(operands, ends, strict=True)
    ]
    taken = step.op.impl(*places, **step.params)
    taken = taken if step.op.multiple else [taken]
    pairs = zip(taken, step.results, strict=True)
    return [_array(texts[np.ravel(found)].tolist(), type) for found, type in pairs]


def _is_by_element(step: Step) -> bool:
    """Whether each element of the result comes from the same one of each operand."""
    if step.op.elementwise or step.op.name.startswith("reduce_"):
        return all(t.size == step.results[0].size for t in step.operands)
    return all(t.size == 1 for t in step.operands)


def _names(value: int, count: int) -> list[str]:
    """Names for the elements of a value."""
    return [f"v{value}"] if count == 1 else [f"v{value}_{k}" for k in range(count)]


def _array(texts: Sequence[str], type: TensorType) -> Elements:
    made = np.empty(type.size, object)
    made[:] = texts
    return made.reshape(type.shape)


def _unfit(name: str, type: TensorType) -> str:
    """The condition for an array not to be of that type."""
    dtype = "float64_dtype" if type.dtype == FLOAT64 else "bool_dtype"
    return (
        f"{name}.__class__ is not ndarray or {name}.dtype is not {dtype} "
        f"or {name}.shape != {type.shape!r}"
    )


def _result(name: str, elements: Elements, type: TensorType) -> list[str]:
    """Statements that make a result of its elements; the fastest known."""
    texts = elements.ravel().tolist()
    if not type.shape:
        return [f"{name} = new_array({texts[0]})"]
    if type.size > 1:
        flat = f"{name} = new_array([{', '.join(texts)}])"
        return [flat if len(type.shape) == 1 else f"{flat}.reshape({type.shape!r})"]
    dtype = "float64_dtype" if type.dtype == FLOAT64 else "bool_dtype"
    first = ", ".join("0" for _ in type.shape)
    return [f"{name} = new_empty({type.shape!r}, {dtype})", f"{name}[{first}] = {texts[0]}"]


def _turns(step: Step) -> bool:
    """Whether the elements of a result lie in the reverse order of those of the operand."""
    return step.op.name == "reverse" or any(n < 0 for n in step.params.get("steps", ()))


def _padded(step: Step, elements: Elements) -> list[str]:
    places = step.op.impl(np.ones(elements.shape, bool), **step.params)
    made = np.full(places.shape, "0.0" if step.results[0].dtype == FLOAT64 else "False", object)
    made[places] = elements.ravel()
    return made.ravel().tolist()


def _root(squares: str, step: Step) -> str:
    """The root of a sum of squares; of one that is to be summed again, an exception."""
    low, high = safe_squares(step.results[0].dtype)
    divided = f"{squares} / {step.params['divisor']!r}"
    return f"math_sqrt({divided} if {low!r} <= {squares} <= {high!r} else -1.0)"


def _sums(step: Step, elements: Elements) -> list[str] | None:
    """Sums along the last axis, in the order in which NumPy adds; None where that is unsure."""
    last = elements.ndim - 1
    if step.operands[0].dtype != FLOAT64 or step.params["axes"] != (last,):
        return None
    rows = elements.reshape(-1, elements.shape[last]).tolist()
    if len(rows[0]) >= _PAIRWISE and last:
        return None
    return [_sum(row) for row in rows]


def _sum(terms: Sequence[str]) -> str:
    """NumPy's sum of one row: eight sums side by side, and what is left over one by one."""
    whole = len(terms) - len(terms) % _PAIRWISE
    if not whole:
        return " + ".join(["0.0", *terms])
    heads = [" + ".join(terms[k:whole:_PAIRWISE]) for k in range(_PAIRWISE)]
    while len(heads) > 1:
        heads = [f"({a}) + ({b})" for a, b in zip(heads[::2], heads[1::2], strict=True)]
    # The sum of zeros that are negative begins with a positive one, too.
    return " + ".join([heads[0], *terms[whole:], "0.0"])


def _is_short(text: str) -> bool:
    """Whether an expression is a name or a number, which needs no name of its own."""
    return _SHORT.fullmatch(text) is not None


# Expressions of Python's for results, operand by operand.


def _template(template: str) -> Expression:
    return lambda args, step: template.format(*args)


def _power(args: Sequence[str], step: Step) -> str | None:
    """Small powers as NumPy computes them; others by the C library."""
    n, x = step.params["n"], args[0]
    if step.results[0].dtype != FLOAT64:
        return None
    short = {0: "1.0", 1: x, 2: f"{x} * {x}", -1: f"1.0 / {x}"}
    return short.get(n, f"math_pow({x}, {float(n)!r})")


def _number(value: bool | float, type: TensorType) -> str:
    text = scalar_text(value, type.dtype).replace("np.", "float_")
    return f"({text})" if text.startswith("-") else text


def _of_floats(template: str, other: str | None = None) -> Expression:
    """A rule for floats, and another, or none, for booleans."""

    def rule(args: Sequence[str], step: Step) -> str | None:
        chosen = template if step.operands[0].dtype == FLOAT64 else other
        return None if chosen is None else chosen.format(*args)

    return rule


def _cast(args: Sequence[str], step: Step) -> str:
    source, target = step.operands[0].dtype, step.results[0].dtype
    if source == target:
        return args[0]
    return f"{args[0]} != 0.0" if target == BOOL else f"1.0 if {args[0]} else 0.0"


# Sums of one number begin with plus zero in NumPy, products and others with the number itself.
_RULES: dict[str, Expression] = {
    "add": _of_floats("{} + {}"),
    "sub": _of_floats("{} - {}"),
    "mul": _of_floats("{} * {}"),
    "div": _of_floats("{} / {}"),
    "neg": _of_floats("-{}"),
    "abs": _of_floats("math_fabs({})"),
    "sqrt": _template("math_sqrt({})"),
    "rsqrt": _template("1.0 / math_sqrt({})"),
    "maximum": _of_floats("{0} if {0} > {1} or {0} != {0} else {1}"),
    "minimum": _of_floats("{0} if {0} < {1} or {0} != {0} else {1}"),
    "tanh": _template("float_of(ufunc_tanh({}))"),
    **{
        name: _template(f"math_{name}({{}})")
        for name in ("exp", "expm1", "log", "log1p", "sin", "cos", "tan", "cosh")
    },
    "arcsin": _template("math_asin({})"),
    "arccos": _template("math_acos({})"),
    "arctan": _template("math_atan({})"),
    "integer_pow": _power,
    "equal": _template("{} == {}"),
    "not_equal": _template("{} != {}"),
    "less": _of_floats("{} < {}"),
    "less_equal": _of_floats("{} <= {}"),
    "greater": _of_floats("{} > {}"),
    "greater_equal": _of_floats("{} >= {}"),
    "logical_and": _template("{} and {}"),
    "logical_or": _template("{} or {}"),
    "logical_xor": _template("{} != {}"),
    "logical_not": _template("not {}"),
    "select": _template("{1} if {0} else {2}"),
    "unless_nan": _template("{0} if {1} == {1} else {1}"),
    "cast": _cast,
    "reduce_max": _template("{}"),
    "reduce_min": _template("{}"),
    "reduce_prod": _of_floats("{}"),
    "reduce_sum": _of_floats("{} + 0.0"),
    "matmul": _of_floats("{} * {} + 0.0"),
}  # fmt: skip

# These have the elements of their operands, at other places.
_MOVING = frozenset(
    {"stop_gradient", "reshape", "permute", "broadcast", "reverse", "slice", "slice_assign"}
    | {"concat", "split"}
)

_BINDINGS = {
    "ndarray": "ndarray = np.ndarray",
    "float64_dtype": "float64_dtype = np.dtype(np.float64)",
    "bool_dtype": "bool_dtype = np.dtype(np.bool_)",
    "new_array": "new_array = np.array",
    "new_empty": "new_empty = np.empty",
    "ufunc_tanh": "ufunc_tanh = np.tanh",
    "float_of": "float_of = float",
    "float_inf": "float_inf = np.inf",
    "float_nan": "float_nan = np.nan",
    **{
        f"math_{name}": f"math_{name} = math.{name}"
        for name in (
            "fabs", "sqrt", "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "cosh",
            "asin", "acos", "atan", "pow",
        )
    },
}  # fmt: skip
