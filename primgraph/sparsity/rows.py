"""Compressed rows of columns: dependences without a regular pattern."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from primgraph.sparsity.affine import Maps, Shape

Indices: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


class Rows(NamedTuple):
    """Columns of each element of an array in row-major order: those of element i are from
    `starts[i]` to before `starts[i + 1]` in `columns`, ascending and without duplicates."""

    starts: Indices
    columns: Indices

    @property
    def extent(self) -> int:
        """Return the number of elements."""
        return len(self.starts) - 1


def size_of(maps: Maps) -> int:
    """Return the number of pairs of index and column, with overlaps counted repeatedly."""
    return sum(m.places * m.width for m in maps)


def from_pairs(places: Indices, columns: Indices, count: int, width: int) -> Rows:
    """Return rows of `count` elements from pairs in any order, with duplicates, for columns below
    `width`."""
    keys = places * width
    keys += columns
    return _from_keys(keys, count, width)


def _from_keys(keys: Indices, count: int, width: int) -> Rows:
    """Return rows from row-major numbers of matrix elements, which are sorted in place."""
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
    """Return the row-major numbers of the indices in a box, as an array of the shape of the box."""
    found = np.zeros((1,) * len(shape), np.int64)
    step = 1
    for axis in range(len(shape) - 1, -1, -1):
        along = np.arange(low[axis], high[axis], dtype=np.int64) * step
        found = found + along.reshape([-1 if i == axis else 1 for i in range(len(shape))])
        step *= shape[axis]
    return found


def list_columns(maps: Maps, shape: Shape, width: int) -> Rows:
    """List the columns that maps give to the elements of an array of that shape."""
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


def take_rows(rows: Rows, places: Indices) -> Rows:
    """Return the rows at `places`, in that order; empty ones for negative places."""
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
    """Return, for each column listed, its element."""
    return np.repeat(np.arange(rows.extent, dtype=np.int64), np.diff(rows.starts))


def scatter_rows(rows: Rows, targets: Indices, count: int, width: int) -> Rows:
    """Scatter-add: unite each row with those of its target, of `count` targets; negative ones are
    dropped."""
    goal = targets[places_of(rows)]
    kept = goal >= 0
    if not bool(np.all(kept)):
        return from_pairs(goal[kept], rows.columns[kept], count, width)
    return from_pairs(goal, rows.columns, count, width)


def unite_rows(parts: Sequence[Rows], width: int) -> Rows:
    """Unite rows of equally many elements."""
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


def mask_rows(rows: Rows, mask: np.ndarray[Any, np.dtype[np.bool_]]) -> Rows:
    """Keep the rows where `mask` is true; empty the others."""
    return take_rows(rows, np.where(mask.reshape(-1), np.arange(rows.extent, dtype=np.int64), -1))
