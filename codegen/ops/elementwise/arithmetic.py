"""Cards of arithmetic, extremes, signs, and copies of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from primgraph.codegen.ir.axis_semantics import ALIGNED
from primgraph.codegen.ir.extents import ADD, ATOM, MUL, UNARY, Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card, Marks, element_card
from primgraph.codegen.ops.cost_model import MOVED, Time, per_element
from primgraph.codegen.ops.shapes import view_card
from primgraph.codegen.ops.spelling.complex_step import (
    ANALYTIC,
    MARGIN,
    Arrays,
    ComplexStep,
    Function,
    as_on_reals,
    distance_to_integer,
    real,
    smooth_away_from,
    smooth_everywhere,
)
from primgraph.codegen.ops.spelling.literals import converted
from primgraph.codegen.ops.spelling.notation import reading, statements
from primgraph.codegen.ops.spelling.numbers import Number, Numbers
from primgraph.codegen.ops.spelling.scalar import Scalar, each, number_word
from primgraph.codegen.ops.spelling.ufuncs import ufunc
from primgraph.ir.primitive import Op
from primgraph.ir.types import BOOL, FLOAT64, INT64
from primgraph.primitives.elementwise import arithmetic as e


def ufunc_card(name: str, time: Time, scalar: Scalar | None, step: ComplexStep) -> Card:
    """Return the card of a NumPy function of that name."""
    return ufunc(name, time=time, scalar=scalar, complex_step=step, marks=Marks.EACH)


def operator_card(
    name: str, infix: str, rank: int, time: Time, scalar: Scalar | None, step: ComplexStep
) -> Card:
    """Return the card of a ufunc with a Python operator."""
    return ufunc(
        name, infix, rank, time=time, scalar=scalar, complex_step=step, marks=Marks.EACH
    )  # fmt: skip


def _quotient(x: Any, y: Any) -> Any:
    """Return `x / y` with a real part that is rounded like real division."""
    quotient = np.asarray(np.real(x) / np.real(y), complex)
    quotient.imag = (np.imag(x) - quotient.real * np.imag(y)) / np.real(y)
    return quotient


_off_zero = smooth_away_from(lambda x: x)
_off_integers = smooth_away_from(distance_to_integer)
_off_halves = smooth_away_from(lambda x: x - np.floor(x.real) - 0.5)
_off_ties = smooth_away_from(lambda x, y: x - y)
_is_quotient_off_integers = smooth_away_from(lambda x, y: distance_to_integer(x / y))


def _is_off_jumps(inputs: Arrays, params: dict[str, Any]) -> bool:
    """Return whether quotients are far from integers, and divisors from zero."""
    if np.any(np.abs(inputs[1]) < MARGIN):
        return False
    return _is_quotient_off_integers(inputs, params)


def step_of(function: Function, smooth: Any) -> ComplexStep:
    """Return the complex step of a function that is smooth where `smooth` says so."""
    return ComplexStep(function, partial=False, smooth=smooth)


def _constant(function: Function, smooth: Any) -> ComplexStep:
    """Return the complex step of a piecewise constant function."""
    return ComplexStep(as_on_reals(function), partial=False, smooth=smooth)


_ABSOLUTE = step_of(lambda x: x * np.sign(x.real), _off_zero)
_LARGER = step_of(lambda x, y: np.where(x.real >= y.real, x, y), _off_ties)
_SMALLER = step_of(lambda x, y: np.where(x.real <= y.real, x, y), _off_ties)
_REMAINDER = step_of(lambda x, y: x - y * np.floor_divide(x.real, y.real), _is_off_jumps)

# Conversion.


def _read_cast(args: Sequence[Text], step: Step) -> Text:
    return Text(converted(args[0].operand_code(ATOM), step.params["dtype"]))


def _scalar_cast(new: Numbers, args: Sequence[Number], step: Step) -> Number | None:
    source, target = step.operands[0].dtype, step.results[0].dtype
    if source == target:
        return args[0]
    if target == BOOL:
        return new("!=", args[0], new.constant(0 if source == INT64 else 0.0))
    if target == INT64:
        return new("int", *args) if source == BOOL else None
    if source == INT64:
        return new("float", *args)
    return new("if", args[0], new.constant(1.0), new.constant(0.0))


def extremum(comparison: str) -> Scalar:
    """Choose the operand that compares so, the first one if it is NaN; of floats only."""

    def rule(new: Numbers, args: Sequence[Number], step: Step) -> Number | None:
        x, y = args
        if step.operands[0].dtype != FLOAT64:
            return None
        return new("if", new("or", new(comparison, x, y), new("!=", x, x)), x, y)

    return each(rule)


def _complex_cast(x: Any, *, dtype: Any) -> Any:
    return x if dtype.kind == "f" else real(x).astype(dtype)


def _is_cast_smoothly(inputs: Arrays, params: dict[str, Any]) -> bool:
    return params["dtype"].kind not in "iub" or _off_integers(inputs, params)


CARDS: dict[Op, Card] = {
    e.add: operator_card("add", "+", ADD, MOVED, number_word("+"), ANALYTIC),
    e.sub: operator_card("subtract", "-", ADD, MOVED, number_word("-"), ANALYTIC),
    # With strided output, NumPy 2.4 reads 4-byte numbers 4 bytes apart, and 8-byte numbers 8 bytes
    # apart, as if contiguous.
    e.neg: replace(
        operator_card("negative", "-", UNARY, MOVED, number_word("-x"), ANALYTIC), spaced=False
    ),
    e.mul: operator_card("multiply", "*", MUL, MOVED, number_word("*"), ANALYTIC),
    e.div: replace(
        operator_card(
            "divide", "/", MUL, MOVED, number_word("/", integers=False), step_of(_quotient, None)
        ),
        advice="keep its divisor off 0: pg.where on the divisor leaves no NaN in the gradient",
    ),
    e.abs_: replace(
        ufunc_card("absolute", MOVED, number_word("fabs", integers=False), _ABSOLUTE),
        read=reading("np.abs({0})"),
    ),
    e.maximum: ufunc_card("maximum", MOVED, extremum(">"), _LARGER),
    e.minimum: ufunc_card("minimum", MOVED, extremum("<"), _SMALLER),
    e.remainder: operator_card("remainder", "%", MUL, per_element(5.6, 5.6), None, _REMAINDER),
    e.sign: ufunc_card("sign", per_element(0.5, 0.3), None, _constant(np.sign, _off_zero)),
    e.floor: ufunc_card("floor", MOVED, None, _constant(np.floor, _off_integers)),
    e.ceil: ufunc_card("ceil", MOVED, None, _constant(np.ceil, _off_integers)),
    e.round_: ufunc_card("rint", MOVED, None, _constant(np.rint, _off_halves)),
    e.floor_divide: operator_card(
        "floor_divide",
        "//",
        MUL,
        per_element(5.9, 5.8),
        None,
        _constant(np.floor_divide, _is_off_jumps),
    ),
    e.stop_gradient: replace(
        view_card(ALIGNED),
        complex_step=_constant(np.array, smooth_everywhere),
    ),
    e.cast: replace(
        element_card(_read_cast, statements("{out}[...] = {0}"), MOVED),
        scalar=each(_scalar_cast, integers=True),
        complex_step=step_of(_complex_cast, _is_cast_smoothly),
        inline=True,
        broadcasts=(0,),
    ),
}
