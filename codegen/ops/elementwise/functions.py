"""Cards of powers, exponentials, circular and other functions of single elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from primgraph.codegen.ir.card import Site
from primgraph.codegen.ir.extents import ATOM, MUL, POWER, Text
from primgraph.codegen.ir.places import Place
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card
from primgraph.codegen.ops.cost_model import Time, per_element
from primgraph.codegen.ops.elementwise.arithmetic import step_of, ufunc_card
from primgraph.codegen.ops.spelling import compositions
from primgraph.codegen.ops.spelling.complex_step import (
    ANALYTIC,
    MARGIN,
    PARTIAL,
    Arrays,
    ComplexStep,
)
from primgraph.codegen.ops.spelling.library import call
from primgraph.codegen.ops.spelling.notation import Target, number_of
from primgraph.codegen.ops.spelling.numbers import Number, Numbers
from primgraph.codegen.ops.spelling.scalar import Scalar, each, word
from primgraph.ir.primitive import Op
from primgraph.ir.types import FLOAT64, scalar_of
from primgraph.ir.views import Reshape
from primgraph.primitives.elementwise import functions as e

# Exponents for which NumPy does not call `pow`, if they are not elements of an array.
SHORT_CUTS = (-1.0, 0.0, 0.5, 1.0, 2.0)


def _helper(name: str, time: Time, scalar: Scalar | None, step: ComplexStep) -> Card:
    """Return the card of a support function that reads all operands before it writes."""
    return replace(
        ufunc_card(name, time, scalar, step),
        read=lambda args, step: Text(f"{name}({args[0].code})"),
        write=lambda to: [f"{name}({to.args[0]}, {to.out})"],
        helper=name,
        broadcasts=(0,),
        in_place=(0,),
        ufunc="",
    )


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
        return Text(call("square", args[0].code))
    x = args[0].operand_code(ATOM)
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
        return [] if to.reused_operand is not None else [f"{out}[...] = {x}"]
    if n == 0:
        return [f"{out}[...] = {to.parts[0]}"]
    if n == -1:
        return [f"{to.np('reciprocal')}({x}, {out})"]
    if dtype.kind == "f":
        return [f"{to.np('power')}({x}, {to.parts[0]}, {out})"]
    return [f"{out}[...] = {x}**{n}"]


def _scalar_power_of_each(new: Numbers, args: Sequence[Number], step: Step) -> Number | None:
    return new("pow", *args) if step.results[0].dtype == FLOAT64 else None


def _scalar_power(new: Numbers, args: Sequence[Number], step: Step) -> Number | None:
    """Return small powers as NumPy computes them; others by the C library."""
    n, x = step.params["n"], args[0]
    if step.results[0].dtype != FLOAT64:
        return None
    match n:
        case 0:
            return new.constant(1.0)
        case 1:
            return x
        case 2:
            return new("*", x, x)
        case -1:
            return new("/", new.constant(1.0), x)
    return new("pow", x, new.constant(float(n)))


def _scalar_rsqrt(new: Numbers, args: Sequence[Number], step: Step) -> Number:
    return new("/", new.constant(1.0), new("sqrt", *args))


def _scalar_sigmoid(new: Numbers, args: Sequence[Number], step: Step) -> Number | None:
    """Return `e / (e + 1)` for `e = exp(min(x, c))`, as NumPy code does."""
    (x,), limit = args, new.constant(compositions.SATURATED)
    if step.results[0].dtype != FLOAT64:
        return None
    e = new("exp", new("if", new(">", x, limit), limit, x))
    return new("/", e, new("+", e, new.constant(1.0)))


def _scalar_logaddexp(new: Numbers, args: Sequence[Number], step: Step) -> Number | None:
    """Return `max(x, y) + log1p(exp(-|x - y|))`, as NumPy does, for finite numbers."""
    x, y = args
    if step.results[0].dtype != FLOAT64:
        return None
    new.required.append(new("-", x, y))
    gap = new("-x", new("fabs", new("-", x, y)))
    top = new("if", new(">", x, y), x, y)
    rest = new("+", top, new("log1p", new("exp", gap)))
    twice = new("+", x, new.constant(math.log(2.0)))
    return new("if", new("==", x, y), twice, rest)


def _repeated_product(x: Any, *, n: int) -> Any:
    if n > 0:
        return np.prod([x] * n, axis=0)
    return 1 / np.prod([x] * -n, axis=0) if n else x**0


def _is_positive(inputs: Arrays, params: dict[str, Any]) -> bool:
    return bool(np.all(np.real(inputs[0]) > 0.01))


def _erf_step(function: Callable[[float], float], sign: float) -> ComplexStep:
    def rule(x: Any) -> Any:
        value = np.reshape([function(v) for v in x.real.reshape(-1)], x.shape)
        slope = sign * 2 / math.sqrt(math.pi) * np.exp(-(x.real**2))
        return value + 1j * slope * x.imag

    return step_of(rule, None)


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


CARDS: dict[Op, Card] = {
    e.power: replace(
        ufunc_card(
            "power",
            per_element(1.2, 0.4),
            each(_scalar_power_of_each),
            PARTIAL._replace(smooth=_is_positive),
        ),
        write=_write_power_of_each,
        needs=_exponents,
        # In place, NumPy treats an exponent array of one element as a scalar.
        in_place=(),
        repeated=lambda args, step: Text(f"power_of_each({args[0].code}, {args[1].code})"),
        helper="power_of_each",
        ufunc="",
    ),
    e.sqrt: replace(
        ufunc_card("sqrt", per_element(0.9, 0.3), word("sqrt"), PARTIAL),
        advice="keep its operand from 0 on: pg.where on the operand leaves no NaN in the gradient",
    ),
    e.rsqrt: replace(
        ufunc_card("sqrt", per_element(1.2, 0.4), each(_scalar_rsqrt), PARTIAL),
        read=lambda args, step: Text(f"1.0 / np.sqrt({args[0].code})", MUL),
        write=compositions.write_rsqrt,
        needs=compositions.a_one,
        ufunc="",
    ),
    e.integer_pow: replace(
        ufunc_card(
            "power",
            per_element(1.4, 1.0),
            each(_scalar_power),
            step_of(_repeated_product, None),
        ),
        read=_read_power,
        write=_write_power,
        needs=_exponent,
        broadcasts=(0,),
        in_place=(0,),
        ufunc="",
    ),
    e.exp: replace(
        ufunc_card("exp", per_element(0.5, 0.3), word("exp"), ANALYTIC),
        advice="it overflows at about 709 in float64, 88 in float32: shift or scale its operand",
    ),
    e.expm1: ufunc_card("expm1", per_element(0.7, 0.3), word("expm1"), ANALYTIC),
    e.log: replace(
        ufunc_card("log", per_element(0.5, 0.3), word("log"), PARTIAL),
        advice="keep its operand above 0: pg.where on the operand leaves no NaN in the gradient",
    ),
    e.log1p: ufunc_card("log1p", per_element(0.6, 0.3), word("log1p"), PARTIAL),
    e.sigmoid: replace(
        _helper(
            "sigmoid",
            per_element(1.8, 1.4),
            each(_scalar_sigmoid),
            step_of(lambda x: 1 / (1 + np.exp(-x)), None),
        ),
        write=compositions.write_sigmoid,
        needs=compositions.saturation,
    ),
    e.logaddexp: compositions.logaddexp(
        ufunc_card(
            "logaddexp",
            per_element(12.0, 11.0),
            each(_scalar_logaddexp),
            step_of(_complex_logaddexp, None),
        )
    ),
    e.sin: ufunc_card("sin", per_element(7.2, 0.4), word("sin"), ANALYTIC),
    e.cos: ufunc_card("cos", per_element(7.1, 0.4), word("cos"), ANALYTIC),
    e.tan: ufunc_card("tan", per_element(0.8, 0.2), word("tan"), ANALYTIC),
    e.sinh: ufunc_card("sinh", per_element(0.7, 0.2), None, ANALYTIC),
    e.cosh: ufunc_card("cosh", per_element(0.6, 0.2), word("cosh"), ANALYTIC),
    e.tanh: ufunc_card("tanh", per_element(0.7, 0.2), word("tanh"), ANALYTIC),
    e.arcsin: ufunc_card("arcsin", per_element(0.7, 0.2), word("asin"), PARTIAL),
    e.arccos: ufunc_card("arccos", per_element(0.7, 0.2), word("acos"), PARTIAL),
    e.arctan: ufunc_card("arctan", per_element(0.7, 0.2), word("atan"), ANALYTIC),
    e.arcsinh: ufunc_card("arcsinh", per_element(1.2, 0.4), None, ANALYTIC),
    e.arccosh: ufunc_card("arccosh", per_element(2.9, 2.0), None, PARTIAL),
    e.arctanh: ufunc_card("arctanh", per_element(0.8, 0.3), None, PARTIAL),
    e.arctan2: ufunc_card(
        "arctan2", per_element(1.3, 0.4), word("atan2"), step_of(_complex_arctan2, _is_off_cut)
    ),
    e.erf: replace(
        _helper("erf", per_element(9.0, 7.0), word("erf"), _erf_step(math.erf, 1.0)),
        library="erf",
    ),
    e.erfc: replace(
        _helper("erfc", per_element(9.5, 7.5), word("erfc"), _erf_step(math.erfc, -1.0)),
        library="erfc",
    ),
}
