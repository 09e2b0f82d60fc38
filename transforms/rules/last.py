"""Rules of `clean_up` for the last time: what moves elements comes after what computes them.

They are exact, but they take functions out of the choices that guard them, so that derivatives
taken afterwards could be NaN: `where(x > 0, log(x), 0)` is guarded as long as all its parts have
the shape of the condition.
"""

from __future__ import annotations

from typing import Any

from primgraph.ir.graph import Equation, Value
from primgraph.ir.primitive import Primitive, registered
from primgraph.primitives.constants import filled, full
from primgraph.primitives.elementwise import add, stop_gradient
from primgraph.primitives.logic import (
    COMPARISONS,
    equal,
    greater,
    less_equal,
    select,
    unless_nan,
)
from primgraph.primitives.reductions import as_softmax_of
from primgraph.primitives.shapes import broadcast, pad, reshape, slice_assign
from primgraph.transforms.rules.assembly import sum_of_overlapping
from primgraph.transforms.rules.rule import Family, Seen, is_zero
from primgraph.transforms.rules.views import repeated, reshaped

LAST = Family()
# Those by which what derivatives are taken of becomes what is computed.
OWN_SLOPES = Family()
_rule = LAST.rule

# How many choices, one in another, are looked through.
_NESTED = 3

# Elements from which on moving them takes longer than calling a function.
_LARGE = 2048


@OWN_SLOPES.rule(as_softmax_of)
def _value_with_own_slope(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """What a derivative is taken of matters to derivatives only."""
    plain = seen.inside(stop_gradient, inputs[0])
    return inputs[0] if plain is None else plain


def _before_moving(op: Primitive) -> None:
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
        if any(e.inputs[0].shape != lead for e in moves):
            return None
        small = [_small(eqn, lead) for eqn in made if eqn is not None]
        shape = seen.type.shape
        result: Value = op(*small, **params)
        if first.op is reshape:
            return reshaped(result, shape)
        return repeated(result, shape, first.kwargs["new_axes"])


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


# A choice by a comparison with a NaN takes what stands last, and so does a choice by `y == y`.


@_rule(unless_nan)
def _unless_nan(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x` where `y == y`; what is NaN wherever `y` is needs no such choice."""
    x, y = inputs
    if _is_nan_with(seen, x, y):
        return x
    result: Value = select(equal(y, y), x, y)
    return result


def _is_nan_with(seen: Seen, x: Value, y: Value) -> bool:
    """Whether `x` is known to be NaN where `y` is."""
    for _ in range(_NESTED):
        eqn = seen.made_by(select, x)
        if eqn is None:
            break
        test = seen.builder.definition(eqn.inputs[0])
        if test is None or test.op not in COMPARISONS:
            break
        if not any(v is y or v is eqn.inputs[2] for v in test.inputs):
            break
        x = eqn.inputs[2]
    return x is y


@_rule(select, of=(select,))
def _positive_part(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`d` where `x > 0`, 0 where `x <= 0`, NaN at NaN: one choice, between `d` and `max(x, 0)`.

    Where this is a slope of `max(x, 0)`, that is there already.
    """
    by_size = seen.made_by(less_equal, inputs[0])
    inner = seen.made_by(select, inputs[1 if by_size is None else 2])
    if inner is None:
        return None
    if by_size is None:
        (same, _, x), (below, zero, d) = inputs, inner.inputs
        by_size = seen.made_by(less_equal, below)
    else:
        (below, zero, _), (same, d, x) = inputs, inner.inputs
    itself = seen.made_by(equal, same)
    if by_size is None or itself is None or itself.inputs != (x, x) or by_size.inputs[0] is not x:
        return None
    if not all(is_zero(seen.scalar(v), 1.0) for v in (zero, by_size.inputs[1])):
        return None
    part = select(below, zero, x)
    result: Value = select(greater(part, zero), d, part)
    return result


for _op in registered().values():
    if isinstance(_op, Primitive) and _op.elementwise:
        _before_moving(_op)
