"""Rules of `simplify` for slices, concatenations, gathers and scatters, exact by default."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from primgraph.ir.graph import Equation, Value
from primgraph.ir.types import BOOL, TensorType
from primgraph.primitives.constants import filled_constant, iota
from primgraph.primitives.elementwise import add
from primgraph.primitives.indexing import gather, scatter_add
from primgraph.primitives.logic import logical_or
from primgraph.primitives.shapes import (
    broadcast,
    concat,
    pad,
    permute,
    reshape,
    reverse,
    slice_,
    slice_assign,
    split,
)
from primgraph.transforms.rewrite.rule import Family, Seen, is_zero
from primgraph.transforms.rewrite.views import permute_axes, repeat_axes, reshape_to, reverse_axes

PARTS = Family(any_dtype=True)
_rule = PARTS.rule

# Maximum number of operands of a merged concatenation.
_WIDEST = 64
# Maximum number of pieces treated one by one, and minimum ratio of an array to a slice of it.
_FEW, _LONGER = 4, 4


class _Range(NamedTuple):
    """The positions of a slice along one axis."""

    start: int
    size: int
    step: int

    def compose_with(self, outer: _Range) -> _Range:
        """Compose with the slice `outer`: return the positions in the array that `outer` slices."""
        return _Range(outer.start + self.start * outer.step, self.size, self.step * outer.step)

    def ends(self) -> tuple[int, int]:
        """Return the least and the greatest position; meaningless for an empty range."""
        last = self.start + (self.size - 1) * self.step
        return min(self.start, last), max(self.start, last)

    def is_within(self, low: int, high: int) -> bool:
        """Return whether all positions are in `range(low, high)`."""
        first, last = self.ends()
        return self.size == 0 or (low <= first and last < high)

    def outside(self, low: int, high: int) -> bool:
        """Return whether all positions are before `low`, or all are from `high` on."""
        first, last = self.ends()
        return self.size == 0 or last < low or first >= high


def _ranges(params: dict[str, Any]) -> list[_Range]:
    columns = zip(params["starts"], params["sizes"], params["steps"], strict=True)
    return [_Range(*column) for column in columns]


def _plain(ranges: Iterable[_Range]) -> list[_Range]:
    """Normalise ranges: a single position has step 1, so that equal ranges compare equal."""
    return [r if r.size > 1 else _Range(r.start if r.size else 0, r.size, 1) for r in ranges]


def _slice_ranges(x: Value, ranges: Sequence[_Range]) -> Value:
    """Slice `x` at these positions."""
    plain = _plain(ranges)
    starts, sizes, steps = zip(*plain, strict=True) if plain else ((), (), ())
    return slice_(x, starts=starts, sizes=sizes, steps=steps)


@_rule(slice_)
def _slice(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Drop a full slice, and normalise the step of a single position."""
    (x,), ranges = inputs, _ranges(params)
    if all(r == (0, n, 1) for r, n in zip(ranges, x.shape, strict=True)):
        return x
    if any(r.size == 1 and r.step != 1 for r in ranges):
        return _slice_ranges(x, ranges)
    return None


@_rule(slice_)
def _slice_of_slice(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Merge a slice of a slice or of a reversal into one slice."""
    ranges, inner = _ranges(params), seen.made_by(slice_, inputs[0])
    if inner is not None:
        outer = _ranges(inner.kwargs)
        both = [r.compose_with(o) for r, o in zip(ranges, outer, strict=True)]
        return _slice_ranges(inner.inputs[0], both)
    inner = seen.made_by(reverse, inputs[0])
    if inner is None:
        return None
    axes, shape = inner.kwargs["axes"], inputs[0].shape
    turned_back = [
        r.compose_with(_Range(n - 1, n, -1)) if i in axes else r
        for i, (r, n) in enumerate(zip(ranges, shape, strict=True))
    ]
    return _slice_ranges(inner.inputs[0], turned_back)


@_rule(slice_)
def _slice_of_permute(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Sink a permutation below the slice."""
    inner = seen.made_by(permute, inputs[0])
    if inner is None:
        return None
    axes, ranges = inner.kwargs["axes"], _ranges(params)
    within = sorted(zip(axes, ranges, strict=True))
    return permute_axes(_slice_ranges(inner.inputs[0], [r for _, r in within]), axes)


@_rule(slice_)
def _slice_of_pad(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Turn a slice of padding into zeros, and a slice inside it into one of the operand.

    One of both is the padding of a slice, if it is at most half of the whole.
    """
    inner = seen.made_by(pad, inputs[0])
    if inner is None:
        return None
    x, low = inner.inputs[0], inner.kwargs["low"]
    moved = [_Range(r.start - a, r.size, r.step) for r, a in zip(_ranges(params), low, strict=True)]
    extents = list(zip(moved, x.shape, strict=True))
    if any(r.outside(0, n) for r, n in extents):
        return filled_constant(0, seen.type)
    if all(r.is_within(0, n) for r, n in extents):
        return _slice_ranges(x, moved)
    if any(r.step != 1 for r in moved) or 2 * seen.type.size > inputs[0].type.size:
        return None
    cut = [max(-r.start, 0) for r in moved], [max(r.start + r.size - n, 0) for r, n in extents]
    inside = [_Range(r.start + a, r.size - a - b, 1) for r, a, b in zip(moved, *cut, strict=True)]
    return pad(_slice_ranges(x, inside), low=tuple(cut[0]), high=tuple(cut[1]))


@_rule(slice_)
def _slice_of_inserted(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Slice before axes of size 1 are inserted."""
    x, ranges = seen.inside(reshape, inputs[0]), _ranges(params)
    kept = [a for a, n in enumerate(inputs[0].shape) if n != 1]
    if x is None or x.shape != tuple([inputs[0].shape[a] for a in kept]) or not seen.type.size:
        return None
    return reshape_to(_slice_ranges(x, [ranges[a] for a in kept]), seen.type.shape)


@_rule(slice_)
def _slice_of_concat(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Turn a slice within one operand of a concatenation into a slice of that operand."""
    inner = seen.made_by(concat, inputs[0])
    if inner is None:
        return None
    axis, ranges = inner.kwargs["axis"], _ranges(params)
    along = ranges[axis]
    if along.size == 0:
        return None
    starts = accumulate((x.shape[axis] for x in inner.inputs), initial=0)
    for start, x in zip(starts, inner.inputs, strict=False):
        if along.is_within(start, start + x.shape[axis]):
            ranges[axis] = _Range(along.start - start, along.size, along.step)
            return _slice_ranges(x, ranges)
    return None


@_rule(slice_)
def _slice_of_broadcast(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Sink a broadcast below the slice."""
    inner = seen.made_by(broadcast, inputs[0])
    if inner is None:
        return None
    new, ranges = inner.kwargs["new_axes"], _ranges(params)
    kept = [r for i, r in enumerate(ranges) if i not in new]
    return repeat_axes(_slice_ranges(inner.inputs[0], kept), params["sizes"], new)


def _assigned_ranges(eqn: Equation) -> list[_Range]:
    p = eqn.kwargs
    columns = zip(p["starts"], eqn.inputs[1].shape, p["steps"], strict=True)
    return _plain(_Range(*column) for column in columns)


@_rule(slice_)
def _slice_of_assigned(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Turn a slice of an assignment into the assigned part, or into one of the untouched array."""
    inner = seen.made_by(slice_assign, inputs[0])
    if inner is None:
        return None
    ranges, put = _ranges(params), _assigned_ranges(inner)
    if _plain(ranges) == put:
        return inner.inputs[1]
    if any(r.outside(p.ends()[0], p.ends()[1] + 1) for r, p in zip(ranges, put, strict=True)):
        return _slice_ranges(inner.inputs[0], ranges)
    return None


@_rule(slice_assign)
def _slice_assign(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Drop an empty assignment, a full one, and one that is overwritten by the next."""
    x, y = inputs
    if y.type.size == 0:
        return x
    if y.shape == x.shape:
        return reverse_axes(y, [i for i, s in enumerate(params["steps"]) if s < 0])
    inner = seen.made_by(slice_assign, x)
    if inner is None or inner.inputs[1].shape != y.shape or inner.kwargs != params:
        return None
    return slice_assign(inner.inputs[0], y, **params)


@_rule(concat)
def _concat(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Drop a concatenation of one operand, and operands without elements."""
    if len(inputs) == 1:
        return inputs[0]
    axis = params["axis"]
    kept = [x for x in inputs if x.shape[axis]]
    return _concat_parts(kept, axis) if kept and len(kept) < len(inputs) else None


def _concat_parts(parts: Sequence[Value], axis: int) -> Value:
    if len(parts) == 1:
        return parts[0]
    return concat(*parts, axis=axis)


@_rule(concat)
def _concat_of_split(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Turn a concatenation of all parts of a split into the split array."""
    eqn = seen.made_by(split, inputs[0])
    whole = (
        eqn is not None and eqn.outputs == tuple(inputs) and eqn.kwargs["axis"] == params["axis"]
    )
    return eqn.inputs[0] if whole and eqn is not None else None


@_rule(concat)
def _concat_of_slices(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Merge adjacent slices of one array."""
    axis = params["axis"]
    parts: list[Value] = []
    for x in inputs:
        both = _adjacent(seen, parts[-1], x, axis) if parts else None
        parts[len(parts) - (both is not None) :] = [x if both is None else both]
    return _concat_parts(parts, axis) if len(parts) < len(inputs) else None


def _adjacent(seen: Seen, x: Value, y: Value, axis: int) -> Value | None:
    """Return `x` and `y` as one slice if they are adjacent slices of one array, else None."""
    first, second = seen.made_by(slice_, x), seen.made_by(slice_, y)
    if first is None or second is None or first.inputs[0] is not second.inputs[0]:
        return None
    left, right = _ranges(first.kwargs), _ranges(second.kwargs)
    if any(a != b for i, (a, b) in enumerate(zip(left, right, strict=True)) if i != axis):
        return None
    a, b = left[axis], right[axis]
    # A single element fits any step.
    step = a.step if a.size > 1 else b.step if b.size > 1 else b.start - a.start
    fits = step != 0 and b.start == a.start + a.size * step
    if not fits or (b.size > 1 and b.step != step) or 0 in (a.size, b.size):
        return None
    left[axis] = _Range(a.start, a.size + b.size, step)
    return _slice_ranges(first.inputs[0], left)


@_rule(concat)
def _concat_of_reshaped(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Concatenate slices of one array before they are reshaped, so that they merge."""
    made = [seen.made_by(reshape, x) for x in inputs]
    if params["axis"] != 0 or len(inputs) < 2 or any(e is None for e in made):
        return None
    parts = [e.inputs[0] for e in made if e is not None]
    if any(x.type.ndim == 0 or x.shape[1:] != parts[0].shape[1:] for x in parts):
        return None
    bases = {seen.inside(slice_, x) for x in parts}
    if len(bases) > 1 or None in bases:
        return None
    joined = _concat_parts(parts, 0)
    return reshape_to(joined, seen.type.shape) if seen.made_by(concat, joined) is None else None


@_rule(concat)
def _concat_of_concat(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Merge a nested concatenation that has a single use."""
    parts: list[Value] = []
    for x in inputs:
        inner = seen.made_by(concat, x)
        same = inner is not None and inner.kwargs == params and seen.single(x)
        parts += inner.inputs if same and inner is not None else [x]
    fits = len(inputs) < len(parts) <= _WIDEST
    return _concat_parts(parts, params["axis"]) if fits else None


@_rule(permute, of=(concat,))
def _permute_of_concat(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Concatenate along the axis where a permutation puts it, if the operands are only reshaped."""
    inner, axes = seen.made_by(concat, inputs[0]), params["axes"]
    if inner is None or not seen.single(inputs[0]):
        return None
    long = ([a for a in axes if x.shape[a] != 1] for x in inner.inputs)
    if any(moved != sorted(moved) for moved in long):
        return None
    parts = [reshape_to(x, tuple([x.shape[a] for a in axes])) for x in inner.inputs]
    return _concat_parts(parts, axes.index(inner.kwargs["axis"]))


@_rule(add, of=(concat,))
def _zero_added_to_parts(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Drop additions of zero to the operands of a concatenation to which zero is added."""
    whole = next((v for v in inputs if seen.made_by(concat, v) is not None), None)
    zero = next((v for v in inputs if v is not whole), None)
    if whole is None or zero is None or not is_zero(seen.scalar(zero), 1.0):
        return None
    eqn = seen.made_by(concat, whole)
    assert eqn is not None
    parts = [_drop_zero_summand(seen, x) for x in eqn.inputs]
    if parts == list(eqn.inputs):
        return None
    return add(_concat_parts(parts, eqn.kwargs["axis"]), zero)


def _drop_zero_summand(seen: Seen, x: Value) -> Value:
    """Return `y` if `x` is `y + 0.0` with a single use, else `x`."""
    eqn = seen.made_by(add, x)
    if eqn is None or not seen.single(x):
        return x
    y, other = eqn.inputs
    if is_zero(seen.scalar(y), 1.0):
        return other
    return y if is_zero(seen.scalar(other), 1.0) else x


# Constant indices.


def _progression(seen: Seen, index: Value, extent: int) -> _Range | None:
    """Return the range of a constant array of evenly spaced indices, or None."""
    if index.type.ndim > 1:
        return None
    count, scalar, array = index.type.size, seen.scalar(index), seen.array(index)
    if seen.made_by(iota, index) is not None:
        reached = min(extent, int(np.iinfo(index.dtype).max))
        return _Range(0, count, 1) if 0 < count <= reached else None
    if scalar is not None and count == 1:
        array = np.asarray(scalar)
    if array is None or not count or not np.all((-extent <= array) & (array < extent)):
        return None
    positions = array.reshape(-1).astype(np.int64) % extent
    steps = np.diff(positions) if count > 1 else np.ones(1, np.int64)
    step = int(steps[0])
    return _Range(int(positions[0]), count, step) if step and np.all(steps == step) else None


def _window(x: TensorType, axis: int, along: _Range) -> list[_Range]:
    ranges = [_Range(0, n, 1) for n in x.shape]
    ranges[axis] = along
    return ranges


def slice_across(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Concatenate slices of few operands instead of slicing a far longer concatenation.

    If the concatenation has other uses, the slice is a view of it and is kept.
    """
    inner = seen.made_by(concat, inputs[0])
    if inner is None or _LONGER * seen.type.size > inputs[0].type.size:
        return None
    if not seen.single(inputs[0]):
        return None
    axis, ranges = inner.kwargs["axis"], _ranges(params)
    along, parts = ranges[axis], []
    if along.step < 0 or along.size == 0:
        return None
    starts = accumulate((x.shape[axis] for x in inner.inputs), initial=0)
    for start, x in zip(starts, inner.inputs, strict=False):
        first = max(0, -((along.start - start) // along.step))
        stop = min(along.size, -((along.start - start - x.shape[axis]) // along.step))
        if first < stop:
            place = along.start + first * along.step - start
            ranges[axis] = _Range(place, stop - first, along.step)
            parts.append(_slice_ranges(x, ranges))
    return _concat_parts(parts, axis) if len(parts) <= _FEW else None


def assign_joined(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Assign the operands of a concatenation with a single use one by one."""
    result, inner = inputs[0], seen.made_by(concat, inputs[1])
    if inner is None or len(inner.inputs) > _FEW or not seen.single(inputs[1]):
        return None
    axis, starts, steps = inner.kwargs["axis"], list(params["starts"]), params["steps"]
    for x in inner.inputs:
        result = slice_assign(result, x, starts=tuple(starts), steps=steps)
        starts[axis] += x.shape[axis] * steps[axis]
    return result


@_rule(gather)
def _gather(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Turn a gather at evenly spaced constant indices into a slice."""
    x, axis = inputs[0], params["axis"]
    along = _progression(seen, inputs[1], x.shape[axis]) if len(inputs) == 2 else None
    if along is None:
        return None
    return reshape_to(_slice_ranges(x, _window(x.type, axis, along)), seen.type.shape)


@_rule(scatter_add)
def _scatter_add(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Turn a scatter at evenly spaced constant indices into an addition to a slice."""
    x, y, axis = inputs[0], inputs[1], params["axis"]
    along = _progression(seen, inputs[2], x.shape[axis]) if len(inputs) == 3 else None
    if along is None:
        return None
    ranges = _window(x.type, axis, along)
    part = _slice_ranges(x, ranges)
    # A sum of booleans is their disjunction.
    adding = logical_or if x.dtype == BOOL else add
    total = adding(part, reshape_to(y, part.shape))
    return slice_assign(
        x, total, starts=tuple(r.start for r in ranges), steps=tuple(r.step for r in ranges)
    )


@_rule(add, level="finite")
def _sum_of_placed(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Assign two disjoint parts embedded in zeros into one array.

    This drops an addition of zero, which turns -0 into 0.
    """
    x, y = (seen.made_by(slice_assign, v) for v in inputs)
    if x is None or y is None or not is_zero(seen.scalar(y.inputs[0]), 1.0):
        return None
    if not (seen.single(inputs[1]) and is_zero(seen.scalar(x.inputs[0]), 1.0)):
        return None
    pairs = zip(_assigned_ranges(x), _assigned_ranges(y), strict=True)
    if not any(a.outside(b.ends()[0], b.ends()[1] + 1) for a, b in pairs):
        return None
    return slice_assign(inputs[0], y.inputs[1], **y.kwargs)
