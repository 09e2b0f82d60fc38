"""Rules of the final `clean_up`: functions before moves of elements, and selects of parts.

They are exact. But they move functions out of the `select` that guards them, so that later
derivatives could be NaN. `where(x > 0, log(x), 0)` is guarded only while all its parts have the
shape of the condition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from primgraph.ir.facts.choices import FALSE_AT_NAN
from primgraph.ir.graph import Equation, Value
from primgraph.ir.primitive import Primitive
from primgraph.primitives import logic
from primgraph.primitives.constants import filled_constant, full
from primgraph.primitives.elementwise import (
    abs_,
    add,
    exp,
    mul,
    neg,
    stop_gradient,
)
from primgraph.primitives.shapes import broadcast, pad, permute, reshape, slice_, slice_assign
from primgraph.transforms.rewrite.assembly import sum_of_overlapping
from primgraph.transforms.rewrite.rows import rows
from primgraph.transforms.rewrite.rule import Family, Rule, Seen, is_zero
from primgraph.transforms.rewrite.slices import assign_joined, slice_across
from primgraph.transforms.rewrite.terms import words, x, y
from primgraph.transforms.rewrite.views import permute_axes, repeat_axes, reshape_to

LAST = Family(any_dtype=True, late=True)
# Rules that replace values with a custom derivative by the plain computation.
OWN_SLOPES = Family(any_dtype=True, late=True)
_rule = LAST.rule
exact = rows(LAST, "exact")

select, unless_nan, equal = words(logic.select, logic.unless_nan, logic.equal)
greater, less_equal = words(logic.greater, logic.less_equal)

# Maximum number of nested `select` equations that are inspected.
_NESTED = 3

# Maximum number of operations through which a `select` by the same condition is sought, or that are
# computed for a part of the elements only.
_NESTED_DEEP = 6

# Minimum number of elements at which moving them takes longer than a function call.
_LARGE = 2048
# Maximum shortening: a slice shorter by this factor is not worth computing the whole.
_SHORTER = 8


def without_own_slope(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Return the plain value of an op with a custom derivative, so that it is shared."""
    plain = seen.inside(stop_gradient, inputs[0])
    return inputs[0] if plain is None else plain


def _move_rules(op: Primitive[Value]) -> Iterator[Rule]:
    """Yield the rules that compute an elementwise function before elements are moved."""

    def before_moving(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
        """Compute elementwise functions before elements are broadcast or reshaped.

        Reshapes then meet, and cancel. Numbers keep their shape.
        """
        made = [seen.builder.definition(v) for v in inputs]
        moves = [eqn for eqn in made if eqn is not None and eqn.op in (broadcast, reshape)]
        if not moves or any(eqn is None or not (eqn in moves or eqn.op is full) for eqn in made):
            return None
        first, lead = moves[0], moves[0].inputs[0].shape
        if any(e.op is not first.op or e.kwargs != first.kwargs for e in moves):
            return None
        shape = seen.type.shape
        if first.op is reshape and not shape:
            return None
        if first.op is reshape:
            # Reshapes are free; choose the most frequent operand shape, so that most operands keep
            # theirs.
            lead = Counter(e.inputs[0].shape for e in moves).most_common(1)[0][0]
            parts = [reshape_to(_small(e, lead), lead) for e in made if e is not None]
            return reshape_to(op(*parts, **params), shape)
        if any(e.inputs[0].shape != lead for e in moves):
            return None
        small = [_small(eqn, lead) for eqn in made if eqn is not None]
        result = op(*small, **params)
        return repeat_axes(result, shape, first.kwargs["new_axes"])

    def before_turning(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
        """Compute elementwise functions before the last axis is moved to the front.

        Convolutions have samples in the last axis, contiguous in memory. Functions behind them then
        run along contiguous memory too, and permutations meet.
        """
        rank = seen.type.ndim
        axes = (rank - 1, *range(rank - 1))
        made = [seen.made_by(permute, v) for v in inputs]
        if rank < 3 or not any(e is not None and e.kwargs["axes"] == axes for e in made):
            return None
        operands = [permute_axes(v, [*range(1, rank), 0]) for v in inputs]
        return permute_axes(op(*operands, **params), axes)

    yield Rule("exact", before_moving, frozenset((broadcast, reshape)), any_dtype=True)
    yield Rule("exact", before_turning, frozenset((permute,)), any_dtype=True)


def _small(eqn: Equation, shape: tuple[int, ...]) -> Value:
    if eqn.op is full:
        return filled_constant(eqn.kwargs["value"], eqn.output.type.with_shape(shape))
    return eqn.inputs[0]


@_rule(add, of=(pad, slice_assign))
def _sum_of_overlapping(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Add embedded parts where they overlap, and concatenate them elsewhere.

    For small arrays this is no faster than padding each part.
    """
    return sum_of_overlapping(seen, inputs) if seen.type.size >= _LARGE else None


@_rule(slice_)
def _slice_across(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Slice only the pieces of a concatenation that a short slice needs."""
    return slice_across(seen, inputs, params)


@_rule(slice_)
def _short_slice_of_sum(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Slice the operand of an addition of a constant, if the slice is far shorter."""
    found = _with_number(seen, inputs[0])
    if found is None or _SHORTER * seen.type.size > inputs[0].type.size:
        return None
    if not seen.single(inputs[0]):
        return None
    other, number = found
    return add(slice_(other, **params), filled_constant(number, seen.type))


@_rule(add, level="fast")
def _numbers_around_slice(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Merge constants that are added before and after a slice."""
    for part, added in (inputs, inputs[::-1]):
        second, cut = seen.scalar(added), seen.made_by(slice_, part)
        found = None if second is None or cut is None else _with_number(seen, cut.inputs[0])
        if found is None or cut is None or second is None:
            continue
        inner, first = found
        total = filled_constant(seen.type.dtype.type(first + second).item(), seen.type)
        return add(slice_(inner, **cut.kwargs), total)
    return None


def _with_number(seen: Seen, value: Value) -> tuple[Value, float] | None:
    """Return the operand to which a constant is added, and the constant; or None."""
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
    """Assign the pieces of a concatenation directly, without concatenating them."""
    pieces = inputs[1].type.size >= _LARGE
    return assign_joined(seen, inputs, params) if pieces else None


# `unless_nan` and a `select` by a comparison with NaN both return the last operand for NaN.


@_rule(logic.unless_nan)
def _nan_already(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Drop `unless_nan` if `x` is NaN wherever `y` is."""
    x, y = inputs
    return x if _is_nan_with(seen, x, y) else None


def _is_nan_with(seen: Seen, x: Value, y: Value) -> bool:
    """Return whether `x` is known to be NaN wherever `y` is."""
    for _ in range(_NESTED):
        eqn = seen.made_by(logic.select, x)
        if eqn is None:
            break
        test = seen.builder.definition(eqn.inputs[0])
        if test is None or not test.op.fact(FALSE_AT_NAN):
            break
        if not any(v is y or v is eqn.inputs[2] for v in test.inputs):
            break
        x = eqn.inputs[2]
    return x is y


exact(unless_nan(x, y), select(equal(y, y), x, y))

# `y` where `x` is positive, zero where it is not, NaN where it is NaN: one `select` between `y` and
# `max(x, 0)`. In the derivative of `max(x, 0)`, the maximum is available already.

_not_positive = less_equal(x, 0.0)
_positive_part = select(_not_positive, 0.0, x)
exact(select(equal(x, x), _positive_part, x), _positive_part)
for _choices in (
    select(equal(x, x), select(_not_positive, 0.0, y), x),
    select(_not_positive, 0.0, select(equal(x, x), y, x)),
):
    exact(_choices, select(greater(_positive_part, 0.0), y, _positive_part))


# A `select` by a constant between an array and zeros, as in derivatives by single elements. Further
# derivatives need the constant, which tells where zeros meet no infinite factor.


@_rule(logic.select)
def _select_of_range(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Pad the part of an array that a constant selects along one axis; it is zero elsewhere."""
    mask = seen.array(inputs[0])
    if mask is None or not is_zero(seen.scalar(inputs[2]), 1.0):
        return None
    for axis in range(mask.ndim):
        others = tuple(a for a in range(mask.ndim) if a != axis)
        along = np.any(mask, axis=others)
        where = np.flatnonzero(along)
        if not where.size or not np.array_equal(np.all(mask, axis=others), along):
            continue
        start, stop = int(where[0]), int(where[-1]) + 1
        if stop - start != where.size or where.size == along.size:
            continue
        part = _part(seen, inputs[1], axis, start, stop, _NESTED_DEEP)
        low, high = ([0] * mask.ndim for _ in range(2))
        low[axis], high[axis] = start, along.size - stop
        result: Value = pad(part, low=tuple(low), high=tuple(high))
        return result
    return None


def _part(seen: Seen, x: Value, axis: int, start: int, stop: int, depth: int) -> Value:
    """Return the elements from `start` to `stop`; elementwise functions are computed for these."""
    eqn = seen.builder.definition(x)
    if depth and eqn is not None and _is_elementwise(eqn) and seen.single(x):
        parts = [_part(seen, v, axis, start, stop, depth - 1) for v in eqn.inputs]
        op: Any = eqn.op
        found: Value = op(*parts, **eqn.kwargs)
        return found
    starts = tuple(start if a == axis else 0 for a in range(x.type.ndim))
    sizes = tuple(stop - start if a == axis else n for a, n in enumerate(x.shape))
    result = slice_(x, starts=starts, sizes=sizes, steps=(1,) * x.type.ndim)
    return result


def _is_elementwise(eqn: Equation) -> bool:
    return isinstance(eqn.op, Primitive) and eqn.op.elementwise and len(eqn.outputs) == 1


# A `select` inside another one by the same condition. It may guard a derivative that is not taken:
# `where(x > 0, log(where(x > 0, x, 1)), 0)` has a finite one, `where(x > 0, log(x), 0)` has not.


@_rule(logic.select)
def _select_in_select(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Replace selects by the same condition inside a branch by what they choose there."""
    condition, first, second = inputs
    found = [_chosen(seen, v, condition, k, _NESTED_DEEP) for k, v in ((1, first), (2, second))]
    if found == [None, None]:
        return None
    chosen = [v if new is None else new for v, new in zip((first, second), found, strict=True)]
    result: Value = logic.select(condition, *chosen)
    return result


def _chosen(seen: Seen, value: Value, condition: Value, branch: int, depth: int) -> Value | None:
    """Return `value` where `condition` has chosen that branch, if it has a select by it."""
    eqn = seen.builder.definition(value)
    if eqn is None or not depth or not isinstance(eqn.op, Primitive):
        return None
    if eqn.op is logic.select and eqn.inputs[0] is condition:
        inner = _chosen(seen, eqn.inputs[branch], condition, branch, depth - 1)
        return eqn.inputs[branch] if inner is None else inner
    if not eqn.op.elementwise or len(eqn.outputs) != 1 or not seen.single(value):
        return None
    found = [_chosen(seen, v, condition, branch, depth - 1) for v in eqn.inputs]
    if not any(v is not None for v in found):
        return None
    operands = [v if new is None else new for v, new in zip(eqn.inputs, found, strict=True)]
    result: Value = eqn.op(*operands, **eqn.kwargs)
    return result


@_rule(exp, of=(neg,))
def _bell_of_clamped(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Rewrite `exp(-near**2)`, where `near` is x or a bound at which this is 0, to `exp(-x**2)`."""
    square = seen.inside(neg, inputs[0])
    product = None if square is None else seen.made_by(mul, square)
    near = None if product is None or product.inputs[0] is not product.inputs[1] else product
    chosen = None if near is None else seen.made_by(logic.select, near.inputs[0])
    test = None if chosen is None else seen.made_by(logic.greater, chosen.inputs[0])
    if chosen is None or test is None:
        return None
    edge, x = seen.scalar(chosen.inputs[1]), chosen.inputs[2]
    if edge is None or seen.inside(abs_, test.inputs[0]) is not x:
        return None
    least = seen.scalar(test.inputs[1])
    with np.errstate(under="ignore"):
        vanishes = np.exp(np.asarray(-edge * edge, x.dtype)) == 0
    if not vanishes or least is None or least < abs(edge):
        return None
    result: Value = exp(-(x * x))
    return result


LAST.add_where(lambda op: isinstance(op, Primitive) and op.elementwise, _move_rules)
_plain_value = Rule("exact", without_own_slope, any_dtype=True)
OWN_SLOPES.add_where(lambda op: op.own_slope is True, lambda op: [_plain_value])
