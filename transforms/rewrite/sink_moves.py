"""Rules of `clean_up` for the last time: what moves elements comes after what computes them.

They are exact, but they take functions out of the choices that guard them, so that derivatives
taken afterwards could be NaN: `where(x > 0, log(x), 0)` is guarded as long as all its parts have
the shape of the condition.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from primgraph.ir.graph import Equation, Value
from primgraph.ir.primitive import Primitive, loaded
from primgraph.primitives import logic
from primgraph.primitives.constants import filled, full
from primgraph.primitives.elementwise import add, as_another, steady, stop_gradient
from primgraph.primitives.linear_algebra.spectral_derivatives import (
    as_spectral_gradient,
    as_spectral_tangent,
)
from primgraph.primitives.linear_algebra.systems import as_cholesky_of, as_symmetric
from primgraph.primitives.linear_algebra.ties import if_distinct
from primgraph.primitives.reductions import as_softmax_of
from primgraph.primitives.shapes import broadcast, pad, permute, reshape, slice_, slice_assign
from primgraph.primitives.special_functions.special import as_gamma_of
from primgraph.transforms.rewrite.assembly import sum_of_overlapping
from primgraph.transforms.rewrite.rows import rows
from primgraph.transforms.rewrite.rule import Family, Seen
from primgraph.transforms.rewrite.slices import assign_joined, slice_across
from primgraph.transforms.rewrite.terms import words, x, y
from primgraph.transforms.rewrite.views import permuted, repeated, reshaped

LAST = Family(any_dtype=True)
# Those by which what derivatives are taken of becomes what is computed.
OWN_SLOPES = Family(any_dtype=True)
_rule = LAST.rule
exact = rows(LAST, "exact")

select, unless_nan, equal = words(logic.select, logic.unless_nan, logic.equal)
greater, less_equal = words(logic.greater, logic.less_equal)

# How many choices, one in another, are looked through.
_NESTED = 3

# Elements from which on moving them takes longer than calling a function.
_LARGE = 2048
# A slice that is so many times shorter is not worth computing the whole.
_SHORTER = 8


@OWN_SLOPES.rule(as_another)
@OWN_SLOPES.rule(steady)
@OWN_SLOPES.rule(as_softmax_of)
@OWN_SLOPES.rule(as_symmetric)
@OWN_SLOPES.rule(as_cholesky_of)
@OWN_SLOPES.rule(as_spectral_tangent)
@OWN_SLOPES.rule(as_spectral_gradient)
@OWN_SLOPES.rule(if_distinct)
@OWN_SLOPES.rule(as_gamma_of)
def _value_with_own_slope(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """What a derivative is taken of matters to derivatives only."""
    return without_own_slope(seen, inputs, params)


def without_own_slope(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """What a value with a slope of its own was computed by, which is computed once and for all."""
    plain = seen.inside(stop_gradient, inputs[0])
    return inputs[0] if plain is None else plain


def _before_moving(op: Primitive[Value]) -> None:
    @_rule(op, of=(broadcast, reshape))
    def before_moving(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
        """What depends on each element alone is computed before elements are repeated or reshaped.

        So reshapes meet, and one undoes the other.
        """
        made = [seen.builder.definition(v) for v in inputs]
        moves = [eqn for eqn in made if eqn is not None and eqn.op in (broadcast, reshape)]
        if not moves or any(eqn is None or not (eqn in moves or eqn.op is full) for eqn in made):
            return None
        first, lead = moves[0], moves[0].inputs[0].shape
        if any(e.op is not first.op or e.kwargs != first.kwargs for e in moves):
            return None
        shape = seen.type.shape
        if first.op is reshape:
            # Another shape of what is reshaped costs nothing; most of them keep theirs.
            lead = Counter(e.inputs[0].shape for e in moves).most_common(1)[0][0]
            parts = [reshaped(_small(e, lead), lead) for e in made if e is not None]
            return reshaped(op(*parts, **params), shape)
        if any(e.inputs[0].shape != lead for e in moves):
            return None
        small = [_small(eqn, lead) for eqn in made if eqn is not None]
        result = op(*small, **params)
        return repeated(result, shape, first.kwargs["new_axes"])


def _before_turning(op: Primitive[Value]) -> None:
    @_rule(op, of=(permute,))
    def before_turning(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
        """What depends on each element alone is computed before the last axis comes to the front.

        Convolutions have the samples in the last axis, where neighbours are neighbours in memory;
        what follows them goes along that memory, too, and two of them meet.
        """
        rank = seen.type.ndim
        axes = (rank - 1, *range(rank - 1))
        made = [seen.made_by(permute, v) for v in inputs]
        if rank < 3 or not any(e is not None and e.kwargs["axes"] == axes for e in made):
            return None
        operands = [permuted(v, [*range(1, rank), 0]) for v in inputs]
        return permuted(op(*operands, **params), axes)


def _small(eqn: Equation, shape: tuple[int, ...]) -> Value:
    if eqn.op is full:
        return filled(eqn.kwargs["value"], eqn.output.type.with_shape(shape))
    return eqn.inputs[0]


@_rule(add, of=(pad, slice_assign))
def _sum_of_overlapping(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Where parts among zeros overlap they are added, and elsewhere they are put side by side.

    For small arrays that takes as long as to put each among zeros.
    """
    return sum_of_overlapping(seen, inputs) if seen.type.size >= _LARGE else None


@_rule(slice_)
def _slice_across(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """A short slice of what is joined needs only the pieces that it is of."""
    return slice_across(seen, inputs, params)


@_rule(slice_)
def _short_slice_of_sum(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """A short slice of a sum with a number is had without the rest, which nobody reads."""
    found = _with_number(seen, inputs[0])
    if found is None or _SHORTER * seen.type.size > inputs[0].type.size:
        return None
    if not seen.single(inputs[0]):
        return None
    other, number = found
    return add(slice_(other, **params), filled(number, seen.type))


@_rule(add, level="fast")
def _numbers_around_slice(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Numbers that are added before and after a slice is taken are added once."""
    for part, added in (inputs, inputs[::-1]):
        second, cut = seen.scalar(added), seen.made_by(slice_, part)
        found = None if second is None or cut is None else _with_number(seen, cut.inputs[0])
        if found is None or cut is None or second is None:
            continue
        inner, first = found
        total = filled(seen.type.dtype.type(first + second).item(), seen.type)
        return add(slice_(inner, **cut.kwargs), total)
    return None


def _with_number(seen: Seen, value: Value) -> tuple[Value, float] | None:
    """What a number is added to, and the number."""
    eqn = seen.made_by(add, value)
    if eqn is None or not value.type.is_float:
        return None
    for other, added in (eqn.inputs, eqn.inputs[::-1]):
        number = seen.scalar(added)
        if number is not None and seen.scalar(other) is None:
            return other, float(number)
    return None


@_rule(slice_assign)
def _assign_joined(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Pieces are put where they are to be, without being joined before."""
    pieces = inputs[1].type.size >= _LARGE
    return assign_joined(seen, inputs, params) if pieces else None


# A choice by a comparison with a NaN takes what stands last, and so does a choice by `y == y`.


@_rule(logic.unless_nan)
def _nan_already(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """What is NaN wherever `y` is needs no choice by `y == y`."""
    x, y = inputs
    return x if _is_nan_with(seen, x, y) else None


def _is_nan_with(seen: Seen, x: Value, y: Value) -> bool:
    """Whether `x` is known to be NaN where `y` is."""
    for _ in range(_NESTED):
        eqn = seen.made_by(logic.select, x)
        if eqn is None:
            break
        test = seen.builder.definition(eqn.inputs[0])
        if test is None or test.op not in logic.COMPARISONS:
            break
        if not any(v is y or v is eqn.inputs[2] for v in test.inputs):
            break
        x = eqn.inputs[2]
    return x is y


exact(unless_nan(x, y), select(equal(y, y), x, y))

# Where `x` is positive `y`, where it is not zero, NaN where it is NaN: that is one choice between
# `y` and `max(x, 0)`. Where it is a slope of `max(x, 0)`, that is there already.

_not_positive = less_equal(x, 0.0)
_positive_part = select(_not_positive, 0.0, x)
exact(select(equal(x, x), _positive_part, x), _positive_part)
for _choices in (
    select(equal(x, x), select(_not_positive, 0.0, y), x),
    select(_not_positive, 0.0, select(equal(x, x), y, x)),
):
    exact(_choices, select(greater(_positive_part, 0.0), y, _positive_part))


for _op in loaded().values():
    if isinstance(_op, Primitive) and _op.elementwise:
        _before_moving(_op)
        _before_turning(_op)
