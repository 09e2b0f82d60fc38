"""Rows of columns, compressed: how dependencies are kept that follow no rule."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from primgraph.sparsity.affine import Maps, Shape

Indices: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


class Rows(NamedTuple):
    """The columns of each element of an array in row-major order: those of element i stand from
    `starts[i]` to before `starts[i + 1]` in `columns`, ascending and each once."""

    starts: Indices
    columns: Indices

    @property
    def extent(self) -> int:
        """How many elements of an array have columns listed."""
        return len(self.starts) - 1


def size_of(maps: Maps) -> int:
    """How many pairs of a place and a column maps have, those in several counted as often."""
    return sum(m.places * m.width for m in maps)


def from_pairs(places: Indices, columns: Indices, count: int, width: int) -> Rows:
    """Of `count` elements, from pairs in any order, once or more, of columns before `width`."""
    keys = places * width
    keys += columns
    return _from_keys(keys, count, width)


def _from_keys(keys: Indices, count: int, width: int) -> Rows:
    """Of numbers that count elements of a matrix of that width; they are sorted in place."""
    if keys.size > 1 and not bool(np.all(keys[1:] > keys[:-1])):
        keys.sort()
        fresh = np.empty(keys.size, np.bool_)
        fresh[0] = True
        np.not_equal(keys[1:], keys[:-1], out=fresh[1:])
        keys = keys[fresh]
    width = max(width, 1)
    starts = np.searchsorted(keys, np.arange(count + 1, dtype=np.int64) * width)
    columns = keys % width
    return Rows(starts.astype(np.int64, copy=False), columns)


def _numbers(shape: Shape, low: Shape, high: Shape) -> Indices:
    """Row-major numbers of the places in a box, as an array of the shape of the box."""
    found = np.zeros((1,) * len(shape), np.int64)
    step = 1
    for axis in range(len(shape) - 1, -1, -1):
        along = np.arange(low[axis], high[axis], dtype=np.int64) * step
        found = found + along.reshape([-1 if i == axis else 1 for i in range(len(shape))])
        step *= shape[axis]
    return found


def listed(maps: Maps, shape: Shape, width: int) -> Rows:
    """The columns that maps give to elements of an array of that shape, one by one."""
    count = prod(shape)
    parts = []
    for m in maps:
        keys = _numbers(shape, m.low, m.high) * width + m.offset
        for axis, stride in enumerate(m.strides):
            if stride:
                along = np.arange(m.low[axis], m.high[axis], dtype=np.int64) * stride
                keys += along.reshape([-1 if i == axis else 1 for i in range(len(shape))])
        for step, number in reversed(m.free):
            keys = keys[..., None] + np.arange(number, dtype=np.int64) * step
        parts.append(keys.reshape(-1))
    if not parts:
        return Rows(np.zeros(count + 1, np.int64), np.zeros(0, np.int64))
    keys = np.concatenate(parts) if len(parts) != 1 else parts[0]
    return _from_keys(keys, count, width)


def taken(rows: Rows, places: Indices) -> Rows:
    """The rows at `places`, in that order; none at those below zero."""
    counts = np.diff(rows.starts)
    present = places >= 0
    sizes = np.where(present, counts[np.where(present, places, 0)] if counts.size else 0, 0)
    starts = np.zeros(len(places) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    source = np.arange(starts[-1], dtype=np.int64)
    begins = rows.starts[np.where(present, places, 0)] - starts[:-1]
    source += np.repeat(begins, sizes)
    return Rows(starts, rows.columns[source])


def places_of(rows: Rows) -> Indices:
    """For each column listed, the element that it is of."""
    return np.repeat(np.arange(rows.extent, dtype=np.int64), np.diff(rows.starts))


def sent(rows: Rows, targets: Indices, count: int, width: int) -> Rows:
    """Each row added to what its target has, of `count` targets; below zero it goes nowhere."""
    goal = targets[places_of(rows)]
    kept = goal >= 0
    if not bool(np.all(kept)):
        return from_pairs(goal[kept], rows.columns[kept], count, width)
    return from_pairs(goal, rows.columns, count, width)


def united(parts: Sequence[Rows], width: int) -> Rows:
    """All columns of rows of as many elements."""
    first = parts[0]
    others = [p for p in parts[1:] if not _is_equal(p, first)]
    if not others:
        return first
    keys = [places_of(p) * width + p.columns for p in (first, *others)]
    return _from_keys(np.concatenate(keys), first.extent, width)


def _is_equal(a: Rows, b: Rows) -> bool:
    return a is b or (
        a.columns.size == b.columns.size
        and bool(np.array_equal(a.starts, b.starts))
        and bool(np.array_equal(a.columns, b.columns))
    )


def kept(rows: Rows, mask: np.ndarray[Any, np.dtype[np.bool_]]) -> Rows:
    """The rows where `mask` is true, and none elsewhere."""
    return taken(rows, np.where(mask.reshape(-1), np.arange(rows.extent, dtype=np.int64), -1))
