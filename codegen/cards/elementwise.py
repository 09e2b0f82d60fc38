"""Cards of elementwise arithmetic and functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from primgraph.codegen.cards.card import Card, Marks
from primgraph.codegen.cards.shapes import viewed
from primgraph.codegen.cards.spelling import compositions
from primgraph.codegen.cards.spelling.complex_step import (
    ANALYTIC,
    MARGIN,
    PARTIAL,
    Arrays,
    ComplexStep,
    Function,
    as_on_reals,
    everywhere,
    kinked,
    real,
    to_whole_number,
)
from primgraph.codegen.cards.spelling.literals import dtype_text
from primgraph.codegen.cards.spelling.notation import (
    ADD,
    ATOM,
    MUL,
    POWER,
    UNARY,
    Target,
    Text,
    number_of,
)
from primgraph.codegen.cards.spelling.scalar import (
    CALL,
    Scalar,
    by_element,
    function,
    of_floats,
    template,
)
from primgraph.codegen.cards.spelling.ufuncs import ufunc
from primgraph.codegen.plan.axis_semantics import ALIGNED
from primgraph.codegen.plan.card import Site
from primgraph.codegen.plan.cost_model import MOVED, Time, per_element
from primgraph.codegen.plan.schedule import Step
from primgraph.codegen.plan.storage.places import Place
from primgraph.ir.primitive import Op
from primgraph.ir.types import BOOL, FLOAT64, scalar_of
from primgraph.ir.views import Reshape
from primgraph.primitives import elementwise as e


def _function(name: str, time: Time, scalar: Scalar | None, step: ComplexStep) -> Card:
    """Return the card of a NumPy function of that name."""
    return ufunc(name, time=time, scalar=scalar, complex_step=step, marks=Marks.EACH)


def _operator(
    name: str, infix: str, rank: int, time: Time, scalar: Scalar | None, step: ComplexStep
) -> Card:
    """Return the card of a ufunc with a Python operator."""
    return ufunc(
        name, infix, rank, time=time, scalar=scalar, complex_step=step, marks=Marks.EACH
    )  # fmt: skip


def _helper(name: str, time: Time, scalar: Scalar | None, step: ComplexStep) -> Card:
    """Return the card of a support function that reads all operands before it writes."""
    return replace(
        _function(name, time, scalar, step),
        read=lambda args, step: Text(f"{name}({args[0].code})"),
        write=lambda to: [f"{name}({to.args[0]}, {to.out})"],
        helper=name,
        broadcasts=(0,),
        in_place=(0,),
        ufunc="",
    )


# Powers.

# Exponents for which NumPy does not call `pow`, if they are not elements of an array.
SHORT_CUTS = (-1.0, 0.0, 0.5, 1.0, 2.0)


def _exponents(site: Site) -> Sequence[Place]:
    """Return places for exponents that may share memory: arrays with an axis, or a copy."""
    type, number = site.step.results[0], number_of(site.operands[1])
    if not type.is_float or (number is not None and number not in SHORT_CUTS):
        return []
    if not type.shape:
        one = Reshape((1,))
        return [site.operand_part(1, one), site.part(one)]
    return [site.scratch()] if site.is_repeated(1) else []


def _write_power_of_each(to: Target) -> list[str]:
    """Write powers with an array of exponents: NumPy takes the square root for a scalar 0.5."""
    (x, y), out, power = to.args, to.out, to.np("power")
    match to.parts:
        case [exponents]:
            return [f"{exponents}[...] = {y}", f"{power}({x}, {exponents}, {out})"]
        case [exponent, whole]:
            return [f"{power}({x}, {exponent}, {whole})"]
        case _:
            return [f"{power}({x}, {y}, {out})"]


def _read_power(args: Sequence[Text], step: Step) -> Text:
    n = step.params["n"]
    if n == 2:
        return Text(f"np.square({args[0].code})")
    x = args[0].within(ATOM)
    # Formatters put spaces around it unless both sides are names or numbers.
    return Text(f"{x}**{n}" if x.isidentifier() else f"{x} ** {n}", POWER)


def _exponent(site: Site) -> Sequence[Place]:
    """Return the exponent as an array, or 1, if the statements need one."""
    n, dtype = site.step.params["n"], site.step.results[0].dtype
    if n == 0:
        return [site.number(dtype.type(1).item(), dtype)]
    if dtype.kind not in "fc" or n in (-1, 1, 2):
        return []
    return [site.number(scalar_of(n, dtype), dtype)]


def _write_power(to: Target) -> list[str]:
    """Write a power with the faster function that NumPy's operator uses, if there is one."""
    n, (x, out), dtype = to.step.params["n"], (to.args[0], to.out), to.step.results[0].dtype
    if n == 2:
        return [f"{to.np('square')}({x}, {out})"]
    if n == 1:
        return [] if to.taken is not None else [f"{out}[...] = {x}"]
    if n == 0:
        return [f"{out}[...] = {to.parts[0]}"]
    if n == -1:
        return [f"{to.np('reciprocal')}({x}, {out})"]
    if dtype.kind == "f":
        return [f"{to.np('power')}({x}, {to.parts[0]}, {out})"]
    return [f"{out}[...] = {x}**{n}"]


def _scalar_power_of_each(args: Sequence[str], step: Step) -> str | None:
    return f"math_pow({args[0]}, {args[1]})" if step.results[0].dtype == FLOAT64 else None


def _scalar_power(args: Sequence[str], step: Step) -> str | None:
    """Return small powers as NumPy computes them; others by the C library."""
    n, x = step.params["n"], args[0]
    if step.results[0].dtype != FLOAT64:
        return None
    short = {0: "1.0", 1: x, 2: f"{x} * {x}", -1: f"1.0 / {x}"}
    return short.get(n, f"math_pow({x}, {float(n)!r})")


def _repeated_product(x: Any, *, n: int) -> Any:
    if n > 0:
        return np.prod([x] * n, axis=0)
    return 1 / np.prod([x] * -n, axis=0) if n else x**0


def _quotient(x: Any, y: Any) -> Any:
    """Return `x / y` with a real part that is rounded like real division."""
    quotient = np.asarray(np.real(x) / np.real(y), complex)
    quotient.imag = (np.imag(x) - quotient.real * np.imag(y)) / np.real(y)
    return quotient


def _is_positive(inputs: Arrays, params: dict[str, Any]) -> bool:
    return bool(np.all(np.real(inputs[0]) > 0.01))


# The error function.


def _complex_erf(function: Callable[[float], float], sign: float) -> Function:
    def rule(x: Any) -> Any:
        value = np.reshape([function(v) for v in x.real.reshape(-1)], x.shape)
        slope = sign * 2 / math.sqrt(math.pi) * np.exp(-(x.real**2))
        return value + 1j * slope * x.imag

    return rule


# Other functions of complex numbers, and their smoothness.


def _complex_logaddexp(x: Any, y: Any) -> Any:
    top = np.maximum(x.real, y.real)
    return top + np.log(np.exp(x - top) + np.exp(y - top))


def _complex_arctan2(x: Any, y: Any) -> Any:
    slope = (y.real * x.imag - x.real * y.imag) / (x.real**2 + y.real**2)
    return np.arctan2(x.real, y.real) + 1j * slope


def _is_off_cut(inputs: Arrays, params: dict[str, Any]) -> bool:
    """Return whether points are far from the origin and from the branch cut."""
    x, y = (np.real(v) for v in inputs)
    cut = (np.abs(x) < MARGIN) & (y < 0)
    return not np.any((x * x + y * y < 0.01) | cut)


def _is_off_jumps(inputs: Arrays, params: dict[str, Any]) -> bool:
    """Return whether quotients are far from integers, and divisors from zero."""
    if np.any(np.abs(inputs[1]) < MARGIN):
        return False
    return _jumps_of_quotient(inputs, params)


_jumps_of_quotient = kinked(lambda x, y: to_whole_number(x / y))


def _step(function: Function, smooth: Any) -> ComplexStep:
    return ComplexStep(function, partial=False, smooth=smooth)


def _constant(function: Function, smooth: Any) -> ComplexStep:
    """Return the complex step of a piecewise constant function."""
    return ComplexStep(as_on_reals(function), partial=False, smooth=smooth)


# Conversion.


def _read_cast(args: Sequence[Text], step: Step) -> Text:
    return Text(f"{args[0].within(ATOM)}.astype({dtype_text(step.params['dtype'])})")


def _scalar_cast(args: Sequence[str], step: Step) -> str:
    source, target = step.operands[0].dtype, step.results[0].dtype
    if source == target:
        return args[0]
    return f"{args[0]} != 0.0" if target == BOOL else f"1.0 if {args[0]} else 0.0"


def _complex_cast(x: Any, *, dtype: Any) -> Any:
    return x if dtype.kind == "f" else real(x).astype(dtype)


def _is_cast_smoothly(inputs: Arrays, params: dict[str, Any]) -> bool:
    return params["dtype"].kind not in "iub" or _truncated(inputs, params)


_truncated = kinked(to_whole_number)


CARDS: dict[Op, Card] = {
    e.add: _operator("add", "+", ADD, MOVED, of_floats("{} + {}"), ANALYTIC),
    e.sub: _operator("subtract", "-", ADD, MOVED, of_floats("{} - {}"), ANALYTIC),
    # With strided output, NumPy 2.4 reads 4-byte numbers 4 bytes apart, and 8-byte numbers 8 bytes
    # apart, as if contiguous.
    e.neg: replace(
        _operator("negative", "-", UNARY, MOVED, of_floats("-{}"), ANALYTIC), spaced=False
    ),
    e.mul: _operator("multiply", "*", MUL, MOVED, of_floats("{} * {}"), ANALYTIC),
    e.div: replace(
        _operator("divide", "/", MUL, MOVED, of_floats("{} / {}"), _step(_quotient, None)),
        advice="keep its divisor off 0: pg.where on the divisor leaves no NaN in the gradient",
    ),
    e.power: replace(
        _function("power", per_element(1.2, 0.4), Scalar(by_element(_scalar_power_of_each), 1),
                  PARTIAL._replace(smooth=_is_positive)),
        write=_write_power_of_each,
        needs=_exponents,
        # In place, NumPy treats an exponent array of one element as a scalar.
        in_place=(),
        repeated=lambda args, step: Text(f"power_of_each({args[0].code}, {args[1].code})"),
        helper="power_of_each",
        ufunc="",
    ),
    e.sqrt: replace(
        _function("sqrt", per_element(0.9, 0.3), function("sqrt"), PARTIAL),
        advice="keep its operand from 0 on: pg.where on the operand leaves no NaN in the gradient",
    ),
    e.rsqrt: replace(
        _function("sqrt", per_element(1.2, 0.4), template("1.0 / math_sqrt({})"), PARTIAL),
        read=lambda args, step: Text(f"1.0 / np.sqrt({args[0].code})", MUL),
        write=compositions.write_rsqrt,
        needs=compositions.a_one,
        ufunc="",
    ),
    e.integer_pow: replace(
        _function("power", per_element(1.4, 1.0), Scalar(by_element(_scalar_power), 1),
                  _step(_repeated_product, None)),
        read=_read_power,
        write=_write_power,
        needs=_exponent,
        broadcasts=(0,),
        in_place=(0,),
        ufunc="",
    ),
    e.exp: replace(
        _function("exp", per_element(0.5, 0.3), function("exp"), ANALYTIC),
        advice="it overflows at about 709 in float64, 88 in float32: shift or scale its operand",
    ),
    e.expm1: _function("expm1", per_element(0.7, 0.3), function("expm1"), ANALYTIC),
    e.log: replace(
        _function("log", per_element(0.5, 0.3), function("log"), PARTIAL),
        advice="keep its operand above 0: pg.where on the operand leaves no NaN in the gradient",
    ),
    e.log1p: _function("log1p", per_element(0.6, 0.3), function("log1p"), PARTIAL),
    e.sigmoid: replace(
        _helper("sigmoid", per_element(1.8, 1.4), None,
                _step(lambda x: 1 / (1 + np.exp(-x)), None)),
        write=compositions.write_sigmoid,
        needs=compositions.saturation,
    ),
    e.logaddexp: compositions.logaddexp(
        _function("logaddexp", per_element(12.0, 11.0), None, _step(_complex_logaddexp, None))
    ),
    e.sin: _function("sin", per_element(7.2, 0.4), function("sin"), ANALYTIC),
    e.cos: _function("cos", per_element(7.1, 0.4), function("cos"), ANALYTIC),
    e.tan: _function("tan", per_element(0.8, 0.2), function("tan"), ANALYTIC),
    e.sinh: _function("sinh", per_element(0.7, 0.2), None, ANALYTIC),
    e.cosh: _function("cosh", per_element(0.6, 0.2), function("cosh"), ANALYTIC),
    e.tanh: _function(
        "tanh", per_element(0.7, 0.2), template("float_of(ufunc_tanh({}))", CALL), ANALYTIC
    ),
    e.arcsin: _function("arcsin", per_element(0.7, 0.2), function("asin"), PARTIAL),
    e.arccos: _function("arccos", per_element(0.7, 0.2), function("acos"), PARTIAL),
    e.arctan: _function("arctan", per_element(0.7, 0.2), function("atan"), ANALYTIC),
    e.arcsinh: _function("arcsinh", per_element(1.2, 0.4), None, ANALYTIC),
    e.arccosh: _function("arccosh", per_element(2.9, 2.0), None, PARTIAL),
    e.arctanh: _function("arctanh", per_element(0.8, 0.3), None, PARTIAL),
    e.arctan2: _function(
        "arctan2", per_element(1.3, 0.4), None, _step(_complex_arctan2, _is_off_cut)
    ),
    e.erf: replace(
        _helper("erf", per_element(9.0, 7.0), None, _step(_complex_erf(math.erf, 1.0), None)),
        library="erf",
    ),
    e.erfc: replace(
        _helper("erfc", per_element(9.5, 7.5), None, _step(_complex_erf(math.erfc, -1.0), None)),
        library="erfc",
    ),
    e.abs_: ufunc(
        "absolute",
        shown="abs",
        time=MOVED,
        scalar=of_floats("math_fabs({})"),
        complex_step=_step(lambda x: x * np.sign(x.real), kinked(lambda x: x)),
        marks=Marks.EACH,
    ),
    e.maximum: _function(
        "maximum", MOVED, of_floats("{0} if {0} > {1} or {0} != {0} else {1}"),
        _step(lambda x, y: np.where(x.real >= y.real, x, y), kinked(lambda x, y: x - y)),
    ),
    e.minimum: _function(
        "minimum", MOVED, of_floats("{0} if {0} < {1} or {0} != {0} else {1}"),
        _step(lambda x, y: np.where(x.real <= y.real, x, y), kinked(lambda x, y: x - y)),
    ),
    e.remainder: _operator(
        "remainder", "%", MUL, per_element(5.6, 5.6), None,
        _step(lambda x, y: x - y * np.floor_divide(x.real, y.real), _is_off_jumps),
    ),
    e.sign: _function("sign", per_element(0.5, 0.3), None, _constant(np.sign, kinked(lambda x: x))),
    e.floor: _function("floor", MOVED, None, _constant(np.floor, kinked(to_whole_number))),
    e.ceil: _function("ceil", MOVED, None, _constant(np.ceil, kinked(to_whole_number))),
    e.round_: _function(
        "rint", MOVED, None, _constant(np.rint, kinked(lambda x: x - np.floor(x.real) - 0.5))
    ),
    e.floor_divide: _operator(
        "floor_divide", "//", MUL, per_element(5.9, 5.8), None,
        _constant(np.floor_divide, _is_off_jumps),
    ),
    e.stop_gradient: replace(
        viewed(ALIGNED),
        complex_step=ComplexStep(as_on_reals(np.array), partial=False, smooth=everywhere),
    ),
    e.cast: replace(
        _function("cast", MOVED, Scalar(by_element(_scalar_cast), 1),
                  _step(_complex_cast, _is_cast_smoothly)),
        read=_read_cast,
        write=lambda to: [f"{to.out}[...] = {to.args[0]}"],
        broadcasts=(0,),
        in_place=(),
        ufunc="",
    ),
}  # fmt: skip
