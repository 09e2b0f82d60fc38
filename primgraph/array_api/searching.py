"""Positions, order and sets of elements, by the names of the standard."""

from __future__ import annotations

from typing import Any

from primgraph import operators as ops
from primgraph.operators.index.sets import UniqueAll, UniqueCounts, UniqueInverse

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "count_nonzero",
    "nonzero",
    "searchsorted",
    "sort",
    "take",
    "take_along_axis",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "where",
]


def argmax(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """The position of the first largest element."""
    return ops.argmax(x, axis, keepdims)


def argmin(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """The position of the first smallest element."""
    return ops.argmin(x, axis, keepdims)


def argsort(x: Any, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Any:
    """The positions of the elements in order; equal ones stay in theirs."""
    if not descending:
        return ops.argsort(x, axis)
    order = ops.flip(ops.argsort(ops.flip(x, axis), axis), axis)
    return x.shape[axis] - 1 - order


def sort(x: Any, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Any:
    """The elements in order along an axis."""
    found = ops.sort(x, axis)
    return ops.flip(found, axis) if descending else found


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    """How many elements differ from zero."""
    return ops.count_nonzero(x, axis, keepdims)


def nonzero(x: Any, /) -> Any:
    """The positions along each axis of what differs from zero; of a variable see `pg.nonzero`."""
    return ops.nonzero(x)


def searchsorted(x1: Any, x2: Any, /, *, side: Any = "left", sorter: Any = None) -> Any:
    """Return the positions at which elements would be inserted into a sorted vector."""
    return ops.searchsorted(x1, x2, side, sorter)


def take(x: Any, indices: Any, /, *, axis: Any = None) -> Any:
    """The parts along an axis at positions; of a vector it need not be named."""
    return ops.take(x, indices, axis)


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """The elements along an axis at positions for each line along it."""
    return ops.take_along_axis(x, indices, axis)


def unique_all(x: Any, /) -> UniqueAll:
    """The elements once each, with their first positions, inverse and counts."""
    return ops.unique_all(x)


def unique_counts(x: Any, /) -> UniqueCounts:
    """The elements once each, and how often each is there."""
    return ops.unique_counts(x)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """The elements once each, and which of them each element is."""
    return ops.unique_inverse(x)


def unique_values(x: Any, /) -> Any:
    """The elements once each."""
    return ops.unique_values(x)


def where(condition: Any, x1: Any, x2: Any, /) -> Any:
    """Elements of the first array where a condition is true, of the second elsewhere."""
    return ops.where(condition, x1, x2)
