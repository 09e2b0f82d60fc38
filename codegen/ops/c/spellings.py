"""C expressions of elementwise primitives, and runtime functions of runs of elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from primgraph.codegen.ir.schedule import Step
from primgraph.ir.primitive import Op
from primgraph.ir.types import FLOAT16, DType
from primgraph.primitives import bits, logic, parts
from primgraph.primitives import elementwise as e
from primgraph.primitives.special_functions.formulas import FORMULAS, Formula

# Element types of this back end, by NumPy kind and item size.
C_TYPES = {
    "b1": "uint8_t",
    **{f"i{n}": f"int{8 * n}_t" for n in (1, 2, 4, 8)},
    **{f"u{n}": f"uint{8 * n}_t" for n in (1, 2, 4, 8)},
    "f4": "float",
    "f8": "double",
}

# Sizes of elements in bytes, by their C type.
ITEM_SIZES = {kind: int(name[1:]) for name, kind in C_TYPES.items()}

Spelling: TypeAlias = Callable[[Sequence[str], Step], str | None]


def c_type(dtype: DType) -> str | None:
    """Return the C type of elements of `dtype`; None if this back end has none."""
    return C_TYPES.get(f"{dtype.kind}{dtype.itemsize}")


def type_name(dtype: DType) -> str:
    """Return the suffix of functions that are instantiated per type, as in `pg_sum_f64`."""
    is_word = dtype.kind == "b" or dtype == FLOAT16
    return f"{'u' if is_word else dtype.kind}{8 * dtype.itemsize}"


def moved_type(dtype: DType) -> str:
    """Return the C type by which elements of `dtype` are copied."""
    return C_TYPES.get(f"{dtype.kind}{dtype.itemsize}") or _MOVED[dtype.itemsize]


# Types by item size for elements that are copied, but not computed with. Complex numbers are
# aligned as their parts.
_MOVED = {2: "uint16_t", 8: "pg_floats", 16: "pg_pair"}


def zero(dtype: DType) -> str:
    """Return a zero of `dtype` in its C copy type."""
    return f"({moved_type(dtype)}){{0, 0}}" if dtype.kind == "c" else "0"


def literal(value: Any, dtype: DType) -> str:
    """Return a number in C, exact to the last bit."""
    if dtype.kind == "b":
        return "1" if value else "0"
    if dtype.kind in "iu":
        if dtype.kind == "u":
            return f"UINT64_C({value})" if dtype.itemsize == 8 else f"{value}u"
        least = np.iinfo(dtype).min
        if value == least:
            return f"({literal(value + 1, dtype)} - 1)"
        text = f"INT64_C({abs(value)})" if dtype.itemsize == 8 else str(abs(value))
        return f"(-{text})" if value < 0 else text
    number, suffix = float(value), "f" if dtype.itemsize == 4 else ""
    if math.isnan(number):
        return f"(({c_type(dtype)})NAN)"
    if math.isinf(number):
        return "(-INFINITY)" if number < 0 else "INFINITY"
    if dtype.itemsize == 4:
        text = np.format_float_scientific(np.float32(abs(number)), unique=True, trim="0")
    else:
        text = repr(abs(number))
    if not any(c in text for c in ".en"):
        text += ".0"
    text += suffix
    return f"(-{text})" if math.copysign(1.0, number) < 0 else text


def _suffix(step: Step) -> str:
    return "f" if step.operands[0].dtype.itemsize == 4 else ""


def _by_kind(**texts: str) -> Spelling:
    """Return the expression that has the kind of the first operand in its name, as `iu` and `f`.

    Besides operands, fields are: `f`, the suffix of functions of float; `t`, that of functions of
    the operand's type; `S`, the operand's C type; `W`, the unsigned type in which integers wrap
    round, as in NumPy; `T`, the result's C type.
    """
    by_kind = {kind: text for kinds, text in texts.items() for kind in kinds}

    def write_expression(args: Sequence[str], step: Step) -> str | None:
        source = step.operands[0].dtype
        if source.kind not in by_kind:
            return None
        return by_kind[source.kind].format(
            *args,
            f=_suffix(step),
            t=type_name(source),
            S=c_type(source),
            W=f"uint{8 * max(source.itemsize, 4)}_t",
            T=c_type(step.results[0].dtype),
        )

    return write_expression


def _template(text: str, kinds: str = "biuf") -> Spelling:
    return _by_kind(**{kinds: text})


def _arithmetic(sign: str) -> Spelling:
    """Return the expression of a binary operator."""
    return _by_kind(f=f"{{0}} {sign} {{1}}", iu=f"({{S}})(({{W}}){{0}} {sign} ({{W}}){{1}})")


def _extremum(sign: str) -> Spelling:
    # NaN propagates; of equal operands, such as signed zeros, the second is returned.
    choice = "? {0} : {1}"
    return _by_kind(
        f=f"({{0}} {sign} {{1}} || {{0}} != {{0}}) {choice}", biu=f"{{0}} {sign} {{1}} {choice}"
    )


# Powers up to this are products, within one unit in the last place of NumPy's.
_PRODUCTS = 3


# Powers that are functions of one element in the loop, within one unit in the last place.
_INLINE_POWERS = {
    4.0: "4",
    -2.0: "minus_2",
    -3.0: "minus_3",
    -4.0: "minus_4",
    1.5: "3_halves",
    -0.5: "minus_half",
    -1.5: "minus_3_halves",
    -2.5: "minus_5_halves",
}


def inline_power(step: Step, exponent: Any) -> str:
    """Return the function that raises an element to a known power; empty if there is none."""
    dtype = step.results[0].dtype
    exponent = step.params["n"] if step.op is e.integer_pow else exponent
    is_power = step.op in (e.integer_pow, e.power)
    if not is_power or dtype.kind != "f" or exponent not in _INLINE_POWERS:
        return ""
    return f"pg_power_{_INLINE_POWERS[exponent]}_{type_name(dtype)}"


def _integer_power(args: Sequence[str], step: Step) -> str | None:
    (x,), n, dtype = args, step.params["n"], step.operands[0].dtype
    if dtype.kind in "iu" and n <= np.iinfo(dtype).max:
        return f"pg_power_{type_name(dtype)}({x}, {literal(n, dtype)}, &bad)"
    if dtype.kind != "f":
        return None
    if n == 0:
        return literal(1, dtype)
    if n == -1:
        return f"{literal(1, dtype)} / {x}"
    if 0 < n <= _PRODUCTS:
        return " * ".join([x] * n)
    return f"pow{_suffix(step)}({x}, {literal(float(n), dtype)})"


def _cast(args: Sequence[str], step: Step) -> str | None:
    source, target = step.operands[0].dtype, step.results[0].dtype
    if target.kind == "b":
        return f"{args[0]} != 0"
    if source.kind == "f" and target.kind in "iu":
        # Out-of-range conversion is undefined in C.
        wide = "i32" if target.itemsize < 4 else "i64"
        exact = {"i4": "i32", "u8": "u64"}.get(f"{target.kind}{target.itemsize}", wide)
        return f"({c_type(target)})pg_to_{exact}({args[0]})"
    return f"({c_type(target)}){args[0]}"


def _bitcast(args: Sequence[str], step: Step) -> str | None:
    source, target = step.operands[0].dtype, step.results[0].dtype
    if FLOAT16 in (source, target):
        return None
    if source.kind == target.kind == "f":
        return args[0]
    if source.kind == "f":
        return f"({c_type(target)})pg_bits_{type_name(source)}({args[0]})"
    if target.kind == "f":
        return f"pg_from_bits_{type_name(target)}((uint{8 * source.itemsize}_t){args[0]})"
    return f"({c_type(target)}){args[0]}"


def _special(formula: Formula) -> Spelling:
    """Return the call of a function that is emitted from its graph."""
    args = ", ".join(f"{{{k}}}" for k, _ in enumerate(formula.operands))
    template, params = _template(f"pg_{formula.name}_{{t}}({args})", "f"), dict(formula.params)
    return lambda args, step: template(args, step) if step.params == params else None


SPELLINGS: dict[Op, Spelling] = {
    e.add: _arithmetic("+"),
    e.sub: _arithmetic("-"),
    e.mul: _arithmetic("*"),
    e.neg: _by_kind(f="-{0}", biu="({S})(0u - ({W}){0})"),
    e.div: _template("{0} / {1}", "f"),
    e.sqrt: _template("sqrt{f}({0})", "f"),
    e.integer_pow: _integer_power,
    e.power: _by_kind(iu="pg_power_{t}({0}, {1}, &bad)", f="pow{f}({0}, {1})"),
    e.abs_: _by_kind(f="fabs{f}({0})", u="{0}", bi="{0} < 0 ? ({S})(0u - ({W}){0}) : {0}"),
    e.sign: _by_kind(
        f="{0} != {0} ? {0} : ({T})(({0} > 0) - ({0} < 0))",
        u="({T})({0} > 0)",
        bi="({T})(({0} > 0) - ({0} < 0))",
    ),
    e.maximum: _extremum(">"),
    e.minimum: _extremum("<"),
    e.floor: _template("floor{f}({0})", "f"),
    e.ceil: _template("ceil{f}({0})", "f"),
    e.round_: _template("rint{f}({0})", "f"),
    e.arctan2: _template("atan2{f}({0}, {1})", "f"),
    e.cast: _cast,
    e.rsqrt: _template("1 / sqrt{f}({0})", "f"),
    e.remainder: _template("pg_remainder_{t}({0}, {1})", "iuf"),
    e.floor_divide: _template("pg_floor_divide_{t}({0}, {1})", "iuf"),
    e.logaddexp: _template("pg_logaddexp_{t}({0}, {1})", "f"),
    bits.bitwise_and: _template("({T})({0} & {1})", "iu"),
    bits.bitwise_or: _template("({T})({0} | {1})", "iu"),
    bits.bitwise_xor: _template("({T})({0} ^ {1})", "iu"),
    bits.bitwise_not: _template("({T})~{0}", "iu"),
    bits.left_shift: _template("pg_left_shift_{t}({0}, {1})", "iu"),
    bits.right_shift: _template("pg_right_shift_{t}({0}, {1})", "iu"),
    bits.gcd: _template("pg_gcd_{t}({0}, {1})", "iu"),
    bits.nextafter: _template("nextafter{f}({0}, {1})", "f"),
    bits.bitcast: _bitcast,
    **{op: _special(formula) for op, formula in FORMULAS.items()},
    logic.unless_nan: _template("{1} != {1} ? {1} : {0}", "f"),
    logic.equal: _template("{0} == {1}"),
    logic.not_equal: _template("{0} != {1}"),
    logic.greater: _template("{0} > {1}"),
    logic.greater_equal: _template("{0} >= {1}"),
    logic.less: _template("{0} < {1}"),
    logic.less_equal: _template("{0} <= {1}"),
    logic.logical_and: _template("{0} & {1}", "b"),
    logic.logical_or: _template("{0} | {1}", "b"),
    logic.logical_xor: _template("{0} ^ {1}", "b"),
    logic.logical_not: _template("!{0}", "b"),
    logic.select: lambda args, step: "{} ? {} : {}".format(*args),
}


def may_fail(step: Step | None) -> bool:
    """Return whether the expression of a step sets `bad`: powers of integers may be undefined."""
    powers = (e.integer_pow, e.power)
    return step is not None and step.op in powers and step.operands[0].dtype.kind in "iu"


# Primitives whose last operation may be a product, which compilers may contract with a sum.
PRODUCTS = frozenset({e.mul, e.integer_pow})

# Complex numbers, as pairs of their parts.


def _pair(first: str, second: str) -> Spelling:
    """Return a complex number of two expressions of the operands."""

    def write_expression(args: Sequence[str], step: Step) -> str:
        parts = first.format(*args), second.format(*args)
        return f"({moved_type(step.results[0].dtype)}){{{', '.join(parts)}}}"

    return write_expression


def _pair_template(text: str) -> Spelling:
    """Return an expression of complex operands."""
    return lambda args, step: text.format(*args, t=type_name(step.operands[0].dtype))


def _cast_pair(args: Sequence[str], step: Step) -> str | None:
    source, target = step.operands[0].dtype, step.results[0].dtype
    if target.kind == "b":
        return f"{args[0]}.first != 0 || {args[0]}.second != 0"
    if source == FLOAT16 or target.kind != "c":
        return None
    kind = "float" if target.itemsize == 8 else "double"
    if source.kind == "c":
        return _pair(f"({kind}){{0}}.first", f"({kind}){{0}}.second")(args, step)
    return _pair(f"({kind}){{0}}", "0")(args, step)


_COMPLEX: dict[Op, Spelling] = {
    e.add: _pair("{0}.first + {1}.first", "{0}.second + {1}.second"),
    e.sub: _pair("{0}.first - {1}.first", "{0}.second - {1}.second"),
    e.neg: _pair_template("pg_neg_{t}({0})"),
    e.mul: _pair_template("pg_mul_{t}({0}, {1})"),
    e.div: _pair_template("pg_div_{t}({0}, {1})"),
    e.cast: _cast_pair,
    logic.equal: _pair_template("{0}.first == {1}.first && {0}.second == {1}.second"),
    logic.not_equal: _pair_template("{0}.first != {1}.first || {0}.second != {1}.second"),
    logic.select: _pair_template("{0} ? {1} : {2}"),
    parts.real: _pair_template("pg_real_{t}({0})"),
    parts.imag: _pair_template("pg_imag_{t}({0})"),
    parts.conj: _pair_template("pg_conj_{t}({0})"),
    parts.complex_: _pair("{0}", "{1}"),
}


def expression_writer(step: Step) -> Spelling | None:
    """Return the generator of the C expression of a step, or None."""
    types = (*step.operands, *step.results)
    table = _COMPLEX if any(t.is_complex for t in types) else SPELLINGS
    return table.get(step.op)


def template(step: Step) -> str | None:
    """Return the C expression of a step, with `@0@`, `@1@` and so on for operands, or None."""
    spelled = expression_writer(step)
    return None if spelled is None else spelled([f"@{k}@" for k in range(len(step.inputs))], step)


# Additional C code of user primitives.
CODES: dict[Op, str] = {}


def codes_of(steps: Iterable[Step | None]) -> list[str]:
    """Return the code of the user that steps need."""
    found = [CODES.get(step.op) for step in steps if step is not None]
    return [code for code in found if code is not None]


# Unary functions of runs in the runtime, by name.
FUNCTIONS: dict[Op, str] = {
    e.exp: "exp",
    e.expm1: "expm1",
    e.log: "log",
    e.log1p: "log1p",
    e.sin: "sin",
    e.cos: "cos",
    e.tan: "tan",
    e.sinh: "sinh",
    e.cosh: "cosh",
    e.tanh: "tanh",
    e.arcsin: "asin",
    e.arccos: "acos",
    e.arctan: "atan",
    e.arcsinh: "asinh",
    e.arccosh: "acosh",
    e.arctanh: "atanh",
    e.erf: "erf",
    e.erfc: "erfc",
    e.sigmoid: "sigmoid",
}

# Binary functions of runs; `SPELLINGS` may also have an expression for one element.
FUNCTIONS_OF_TWO: dict[Op, str] = {e.power: "pow", e.arctan2: "atan2", e.logaddexp: "logaddexp"}


def function(step: Step) -> tuple[str, str]:
    """Return the runtime function of a step, and its constant last operand; or empty strings."""
    dtype = step.results[0].dtype
    if step.op in FUNCTIONS:
        return FUNCTIONS[step.op], ""
    if dtype.kind != "f":
        return "", ""
    if step.op is e.integer_pow and not -1 <= step.params["n"] <= _PRODUCTS:
        return "pow", literal(float(step.params["n"]), dtype)
    return FUNCTIONS_OF_TWO.get(step.op, ""), ""
