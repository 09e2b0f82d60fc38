"""Rules of `simplify` for parts that are put in their places: sums of them are joins.

What is put at places of its own, or added at positions that no other element has, meets nothing
but a zero. Adding that zero is left over, as it makes 0 of -0; rules for finite numbers drop it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from primgraph.ir.graph import Value
from primgraph.ir.types import Shape
from primgraph.primitives.constants import constant_op
from primgraph.primitives.elementwise import add
from primgraph.primitives.indexing import gather, scatter_add
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
from primgraph.transforms.rewrite.views import reshaped

PLACES = Family(any_dtype=True)
_rule = PLACES.rule

# Parts up to which a chain of assignments is followed.
_LONGEST = 16

# How many positions are looked at for one element of a result.
_MOST = 64


class _Placed(NamedTuple):
    """A part of an array, and where it begins along each axis."""

    part: Value
    starts: tuple[int, ...]

    def along(self, shape: Shape) -> list[int]:
        """The axes along which the part is not the whole."""
        return [a for a, n in enumerate(self.part.shape) if n != shape[a]]


def _placed(seen: Seen, value: Value) -> _Placed | None:
    """What stands among zeros in `value`, element beside element."""
    eqn = seen.made_by(pad, value)
    if eqn is not None:
        return _Placed(eqn.inputs[0], eqn.kwargs["low"])
    eqn = seen.made_by(slice_assign, value)
    if eqn is None or not is_zero(seen.scalar(eqn.inputs[0]), 1.0):
        return None
    return _put(eqn.inputs[1], eqn.kwargs)


def _put(part: Value, params: dict[str, Any]) -> _Placed | None:
    """What a `slice_assign` puts somewhere, if it leaves no gaps."""
    single = all(s == 1 or n == 1 for s, n in zip(params["steps"], part.shape, strict=True))
    return _Placed(part, params["starts"]) if single and part.type.size else None


@_rule(add, of=(pad, slice_assign))
def _sum_of_neighbours(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Two parts among zeros that stand side by side are joined, and put among zeros as one."""
    shape = seen.type.shape
    placed = [p for p in (_placed(seen, v) for v in inputs) if p is not None]
    if len(placed) < 2:
        return None
    unequal = [a for a in range(len(shape)) if placed[0].starts[a] != placed[1].starts[a]]
    if len(unequal) != 1:
        return None
    axis = unequal[0]
    first, second = sorted(placed, key=lambda p: p.starts[axis])
    if first.starts[axis] + first.part.shape[axis] != second.starts[axis]:
        return None
    if _without(first.part.shape, axis) != _without(second.part.shape, axis):
        return None
    both = concat(first.part, second.part, axis=axis)
    total = both + (0.0 if seen.type.is_inexact else 0)
    ends = zip(first.starts, both.shape, shape, strict=True)
    return pad(total, low=first.starts, high=tuple(n - a - m for a, m, n in ends))


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


def sum_of_overlapping(seen: Seen, inputs: list[Value]) -> Value | None:
    """Two parts among zeros that meet along one axis: what only one of them has, and the sum."""
    placed = [p for p in (_placed(seen, v) for v in inputs) if p is not None]
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


def _columns(placed: _Placed, axis: int, start: int, stop: int) -> Value:
    """What a part has at places `start` up to but not at `stop` of the whole."""
    starts, sizes = [0] * placed.part.type.ndim, list(placed.part.shape)
    starts[axis], sizes[axis] = start - placed.starts[axis], stop - start
    steps = (1,) * len(sizes)
    return slice_(placed.part, starts=tuple(starts), sizes=tuple(sizes), steps=steps)


@_rule(slice_assign)
def _everything_assigned(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Parts that are put somewhere one after the other, until all is replaced, are joined."""
    shape, parts = seen.type.shape, {}
    below, last = inputs[0], _put(inputs[1], params)
    axis = None
    for _ in range(_LONGEST):
        if last is None or len(last.along(shape)) != 1 or axis not in (None, *last.along(shape)):
            return None
        axis = last.along(shape)[0]
        if last.starts[axis] in parts:
            return None
        parts[last.starts[axis]] = last.part
        if _is_cover(parts, axis, shape[axis]):
            return concat(*(parts[k] for k in sorted(parts)), axis=axis)
        eqn = seen.made_by(slice_assign, below)
        if eqn is None:
            return None
        below, last = eqn.inputs[0], _put(eqn.inputs[1], eqn.kwargs)
    return None


def _is_cover(parts: dict[int, Value], axis: int, extent: int) -> bool:
    """Whether the parts, by their starts, follow one another from the first place to the last."""
    reached = 0
    for start in sorted(parts):
        if start != reached:
            return False
        reached += parts[start].shape[axis]
    return reached == extent


# Constant positions.


def _positions(seen: Seen, indices: Sequence[Value], extents: Shape) -> np.ndarray | None:
    """The places that constant indices name in row-major order, if they are all within `extents`.

    An index that is out of range has to be an error when the program runs.
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
    """Whether joining axes of `value` needs no copy, as far as is known."""
    return all(seen.made_by(op, value) is None for op in (broadcast, permute, reverse, slice_))


@_rule(gather)
def _gather_of_pairs(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Constant positions along neighbouring axes are positions along both as one."""
    x, axis, count = inputs[0], params["axis"], len(inputs) - 1
    if count < 2 or not _in_order(seen, x):
        return None
    flat = _positions(seen, inputs[1:], x.shape[axis : axis + count])
    if flat is None:
        return None
    return gather(_joined(x, axis, count), _constant(flat), axis=axis)


def _joined(x: Value, axis: int, count: int) -> Value:
    """`x` with `count` axes from `axis` on as one."""
    extent = int(np.prod(x.shape[axis : axis + count]))
    return reshaped(x, (*x.shape[:axis], extent, *x.shape[axis + count :]))


@_rule(slice_)
def _slice_of_scattered(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Of what is added to zeros at constant positions, a part where each is named just once."""
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
    part = gather(_joined(y, axis, index.type.ndim), _constant(place[wanted]), axis=axis)
    return part + 0.0 if seen.type.is_inexact else part
