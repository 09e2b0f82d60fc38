"""Rules of `simplify` for assembling arrays from parts: sums of disjoint parts become joins.

Disjoint parts, and parts scattered to distinct positions, are only added to zeros. The addition of
zero is kept, as it turns -0 into 0; rules for finite numbers drop it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from primgraph.ir.graph import Equation, Value
from primgraph.ir.types import Shape
from primgraph.primitives.constants import constant_op
from primgraph.primitives.elementwise import add
from primgraph.primitives.indexing import gather, scatter_add
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.shapes import (
    broadcast,
    concat,
    pad,
    permute,
    reverse,
    slice_,
    slice_assign,
)
from primgraph.transforms.rewrite.rule import Family, Seen, is_zero
from primgraph.transforms.rewrite.views import permute_axes, reshape_to

PLACES = Family(any_dtype=True)
_rule = PLACES.rule

# Maximum length of a chain of assignments that is followed.
_LONGEST = 16

# Maximum number of positions inspected per element of a result.
_MOST = 64


class _PlacedPart(NamedTuple):
    """A part of an array, and its start along each axis."""

    part: Value
    starts: tuple[int, ...]

    def partial_axes(self, shape: Shape) -> list[int]:
        """Return the axes along which the part does not cover the whole."""
        return [a for a, n in enumerate(self.part.shape) if n != shape[a]]


def _embedded_part(seen: Seen, value: Value) -> _PlacedPart | None:
    """Return the part that `value` embeds in zeros, or None."""
    eqn = seen.made_by(pad, value)
    if eqn is not None:
        return _PlacedPart(eqn.inputs[0], eqn.kwargs["low"])
    eqn = seen.made_by(slice_assign, value)
    if eqn is None or not is_zero(seen.scalar(eqn.inputs[0]), 1.0):
        return None
    return _written_part(eqn.inputs[1], eqn.kwargs)


def _written_part(part: Value, params: dict[str, Any]) -> _PlacedPart | None:
    """Return the part that a `slice_assign` writes, if it is contiguous."""
    single = all(s == 1 or n == 1 for s, n in zip(params["steps"], part.shape, strict=True))
    return _PlacedPart(part, params["starts"]) if single and part.type.size else None


@_rule(add, of=(pad, slice_assign))
def _sum_of_neighbours(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Join two adjacent parts that are embedded in zeros, and pad them as one."""
    found = _join_neighbours(seen, inputs)
    if found is None:
        return None
    total = found.part + (0.0 if seen.type.is_inexact else 0)
    ends = zip(found.starts, total.shape, seen.type.shape, strict=True)
    return pad(total, low=found.starts, high=tuple(n - a - m for a, m, n in ends))


@_rule(add, of=(pad, slice_assign))
def _sum_with_neighbours(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Add two parts of a whole at once to what they are added to one after the other.

    The gradient of an array that is rolled is such a sum.
    """
    for first, last in (inputs, inputs[::-1]):
        inner = seen.made_by(add, first)
        if inner is None or not seen.single(first) or _embedded_part(seen, last) is None:
            continue
        for x, part in (inner.inputs, inner.inputs[::-1]):
            found = _join_neighbours(seen, (part, last))
            if found is not None and found.part.shape == seen.type.shape:
                return (x + found.part) + (0.0 if seen.type.is_inexact else 0)
    return None


def _join_neighbours(seen: Seen, values: Sequence[Value]) -> _PlacedPart | None:
    """Return the join of two adjacent parts that are embedded in zeros."""
    placed = [p for p in (_embedded_part(seen, v) for v in values) if p is not None]
    if len(placed) < 2:
        return None
    shape = values[0].shape
    unequal = [a for a in range(len(shape)) if placed[0].starts[a] != placed[1].starts[a]]
    if len(unequal) != 1:
        return None
    axis = unequal[0]
    first, second = sorted(placed, key=lambda p: p.starts[axis])
    if first.starts[axis] + first.part.shape[axis] != second.starts[axis]:
        return None
    if _drop_axis(first.part.shape, axis) != _drop_axis(second.part.shape, axis):
        return None
    return _PlacedPart(concat(first.part, second.part, axis=axis), first.starts)


def _drop_axis(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


def sum_of_overlapping(seen: Seen, inputs: list[Value]) -> Value | None:
    """Split two embedded parts that overlap along one axis into exclusive parts and their sum."""
    placed = [p for p in (_embedded_part(seen, v) for v in inputs) if p is not None]
    if len(placed) < 2:
        return None
    shape, (x, y) = seen.type.shape, placed
    differing = [
        a for a in range(len(shape))
        if (x.starts[a], x.part.shape[a]) != (y.starts[a], y.part.shape[a])
    ]  # fmt: skip
    if len(differing) != 1:
        return None
    (axis,) = differing
    ends = [p.starts[axis] + p.part.shape[axis] for p in placed]
    both = max(x.starts[axis], y.starts[axis]), min(ends)
    if both[0] >= both[1]:
        return None
    first = min(placed, key=lambda p: p.starts[axis])
    last = placed[ends.index(max(ends))]
    start, stop = first.starts[axis], max(ends)
    shared = add(_columns(x, axis, *both), _columns(y, axis, *both))
    zero = 0.0 if seen.type.is_inexact else 0
    pieces = (
        _columns(first, axis, start, both[0]) + zero,
        shared,
        _columns(last, axis, both[1], stop) + zero,
    )
    total = concat(*(v for v in pieces if v.shape[axis]), axis=axis)
    behind = zip(first.starts, total.shape, shape, strict=True)
    return pad(total, low=first.starts, high=tuple(n - a - m for a, m, n in behind))


def _columns(placed: _PlacedPart, axis: int, start: int, stop: int) -> Value:
    """Return the elements of a part at positions `start` to `stop` (exclusive) of the whole."""
    return _part_along(placed.part, axis, start - placed.starts[axis], stop - start)


@_rule(slice_assign)
def _everything_assigned(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Replace a chain of assignments that overwrites everything by a concatenation."""
    shape, parts = seen.type.shape, {}
    below, last = inputs[0], _written_part(inputs[1], params)
    axis = None
    for _ in range(_LONGEST):
        if (
            last is None
            or len(last.partial_axes(shape)) != 1
            or axis not in (None, *last.partial_axes(shape))
        ):
            return None
        axis = last.partial_axes(shape)[0]
        if last.starts[axis] in parts:
            return None
        parts[last.starts[axis]] = last.part
        if _is_cover(parts, axis, shape[axis]):
            return concat(*(parts[k] for k in sorted(parts)), axis=axis)
        eqn = seen.made_by(slice_assign, below)
        if eqn is None:
            return None
        below, last = eqn.inputs[0], _written_part(eqn.inputs[1], eqn.kwargs)
    return None


def _is_cover(parts: dict[int, Value], axis: int, extent: int) -> bool:
    """Return whether the parts, by their starts, cover the axis without gaps."""
    reached = 0
    for start in sorted(parts):
        if start != reached:
            return False
        reached += parts[start].shape[axis]
    return reached == extent


def product_with_embedded_part(seen: Seen, inputs: list[Value]) -> Value | None:
    """Multiply only the part of a factor that a derivative has embedded in zeros.

    These zeros stand for paths that do not exist: infinite factors beside them do not reach the
    result, as in `strong_zeros`. Along axes that the product keeps, the part of the result is
    embedded in turn, if it is at most half of it.
    """
    last = seen.type.ndim - 1
    for k, summed, kept in ((0, last, last - 1), (1, last - 1, last)):
        placed, other = _structural_part(seen, inputs[k]), inputs[1 - k]
        partial = [] if placed is None else placed.partial_axes(inputs[k].shape)
        if placed is None or not partial or not {summed, kept}.issuperset(partial):
            continue
        start, size = placed.starts[kept], placed.part.shape[kept]
        if summed in partial:
            along = placed.starts[summed], placed.part.shape[summed]
            other = _part_along(other, last - 1 if k == 0 else last, *along)
        elif 2 * size > seen.type.shape[kept]:
            continue
        total = matmul(placed.part, other) if k == 0 else matmul(other, placed.part)
        if kept not in partial:
            return total
        low, high = [0] * (last + 1), [0] * (last + 1)
        low[kept], high[kept] = start, seen.type.shape[kept] - start - size
        result: Value = pad(total, low=tuple(low), high=tuple(high))
        return result
    return None


def _structural_part(seen: Seen, value: Value) -> _PlacedPart | None:
    """Return the part that an equation of a derivative embeds in zeros, or None."""
    eqn = seen.builder.definition(value)
    if eqn is None or not eqn.is_derived:
        return None
    if eqn.op is permute:
        placed, axes = _structural_part(seen, eqn.inputs[0]), eqn.kwargs["axes"]
        if placed is None:
            return None
        return _PlacedPart(permute_axes(placed.part, axes), tuple([placed.starts[a] for a in axes]))
    return _joined_part(seen, eqn) if eqn.op is concat else _embedded_part(seen, value)


def _joined_part(seen: Seen, eqn: Equation) -> _PlacedPart | None:
    """Return what a concatenation joins to zeros at its ends."""
    parts, axis = list(eqn.inputs), eqn.kwargs["axis"]
    start = 0
    while parts and is_zero(seen.scalar(parts[0]), 1.0):
        start += parts.pop(0).shape[axis]
    while parts and is_zero(seen.scalar(parts[-1]), 1.0):
        parts.pop()
    if not parts:
        return None
    starts = [0] * eqn.output.type.ndim
    starts[axis] = start
    return _PlacedPart(concat(*parts, axis=axis) if len(parts) > 1 else parts[0], tuple(starts))


def _part_along(x: Value, axis: int, start: int, size: int) -> Value:
    """Return the elements at positions `start` to `start + size` along one axis."""
    starts, sizes = [0] * x.type.ndim, list(x.shape)
    starts[axis], sizes[axis] = start, size
    result: Value = slice_(x, starts=tuple(starts), sizes=tuple(sizes), steps=(1,) * len(sizes))
    return result


# Constant positions.


def _positions(seen: Seen, indices: Sequence[Value], extents: Shape) -> np.ndarray | None:
    """Return the flat row-major positions of constant indices; None if any is out of bounds.

    An index out of bounds must raise when the program runs.
    """
    arrays = [seen.array(v) for v in indices]
    flat = np.zeros(indices[0].shape, np.int64)
    for array, extent in zip(arrays, extents, strict=True):
        if array is None or not np.all((-extent <= array) & (array < extent)):
            return None
        flat = flat * extent + array.astype(np.int64) % extent
    return flat


def _constant(array: np.ndarray) -> Value:
    op, params = constant_op(array)
    return op(**params)


def _in_order(seen: Seen, value: Value) -> bool:
    """Return whether joining axes of `value` needs no copy, as far as is known."""
    return all(seen.made_by(op, value) is None for op in (broadcast, permute, reverse, slice_))


@_rule(gather)
def _gather_of_pairs(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Merge constant indices along adjacent axes into indices along one joined axis."""
    x, axis, count = inputs[0], params["axis"], len(inputs) - 1
    if count < 2 or not _in_order(seen, x):
        return None
    flat = _positions(seen, inputs[1:], x.shape[axis : axis + count])
    if flat is None:
        return None
    return gather(_join_axes(x, axis, count), _constant(flat), axis=axis)


def _join_axes(x: Value, axis: int, count: int) -> Value:
    """Return `x` with `count` axes from `axis` on joined into one."""
    extent = int(np.prod(x.shape[axis : axis + count]))
    return reshape_to(x, (*x.shape[:axis], extent, *x.shape[axis + count :]))


@_rule(slice_)
def _slice_of_scattered(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Turn a slice of a scatter to zeros into a gather, where each position occurs exactly once."""
    eqn = seen.made_by(scatter_add, inputs[0])
    if eqn is None or len(eqn.inputs) != 3 or not is_zero(seen.scalar(eqn.inputs[0]), 1.0):
        return None
    (x, y, index), axis = eqn.inputs, eqn.kwargs["axis"]
    full = [(0, n, 1) for n in x.shape]
    ranges = list(zip(params["starts"], params["sizes"], params["steps"], strict=True))
    start, size, step = full[axis] = ranges[axis]
    looked_at = index.type.size + x.shape[axis]
    if ranges != full or looked_at > _MOST * size:
        return None
    flat = _positions(seen, [index], x.shape[axis : axis + 1])
    if flat is None:
        return None
    wanted = start + step * np.arange(size)
    if np.any(np.bincount(flat.reshape(-1), minlength=x.shape[axis])[wanted] != 1):
        return None
    place = np.empty(x.shape[axis], np.int64)
    place[flat.reshape(-1)] = np.arange(flat.size)
    part = gather(_join_axes(y, axis, index.type.ndim), _constant(place[wanted]), axis=axis)
    return part + 0.0 if seen.type.is_inexact else part
