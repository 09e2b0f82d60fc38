"""Positions, order and sets of elements, by the names of the standard."""

from __future__ import annotations

from typing import Any

from primgraph import operators as ops
from primgraph.operators.index.sets import UniqueAll, UniqueCounts, UniqueInverse
from primgraph.operators.names import define

_ROWS = """
argmax(x, /, *, axis=None, keepdims=False)
Return the position of the first largest element.
>>> xp.argmax(xp.asarray([1.0, 3.0, 3.0]))
tensor(1, dtype=int64)

argmin(x, /, *, axis=None, keepdims=False)
Return the position of the first smallest element.
>>> xp.argmin(xp.asarray([2.0, 1.0, 1.0]))
tensor(1, dtype=int64)

count_nonzero(x, /, *, axis=None, keepdims=False)
Count the elements that differ from zero.
>>> xp.count_nonzero(xp.asarray([0, 1, 2]))
tensor(2, dtype=int64)

nonzero(x, /)
Return the positions of nonzero elements along each axis; for variables see `pg.nonzero`.
>>> xp.nonzero(xp.asarray([[0, 1], [2, 0]]))
(tensor([0, 1], dtype=int64), tensor([1, 0], dtype=int64))

searchsorted(x1, x2, /, *, side='left', sorter=None)
Return the positions at which elements of `x2` belong in the sorted vector `x1`.
>>> xp.searchsorted(xp.asarray([1.0, 2.0, 4.0]), xp.asarray([3.0]))
tensor([2], dtype=int64)

take(x, indices, /, *, axis=None)
Take the parts at `indices` along an axis, which may be left out for a vector.
>>> xp.take(xp.asarray([5.0, 6.0, 7.0]), xp.asarray([2, 0]))
tensor([7., 5.])

take_along_axis(x, indices, /, *, axis: int = -1)
Take the elements at `indices` along an axis, where each line along it has its own.
>>> x = xp.asarray([[1, 2], [3, 4]])
>>> xp.take_along_axis(x, xp.asarray([[1], [0]]), axis=1)
tensor([[2],
        [3]], dtype=int64)

unique_values(x, /)
Return the distinct elements.
>>> xp.unique_values(xp.asarray([2, 1, 2]))
tensor([1, 2], dtype=int64)

where(condition, x1, x2, /)
Choose elements of `x1` where the condition is true, and of `x2` elsewhere.
>>> x = xp.asarray([-1.0, 2.0])
>>> xp.where(x > 0.0, x, xp.zeros(2))
tensor([0., 2.])
"""

__all__ = [
    *define("array_api", globals(), _ROWS),
    "argsort",
    "sort",
    "unique_all",
    "unique_counts",
    "unique_inverse",
]


def argsort(x: Any, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Any:
    """Return the positions of the elements in order; equal elements keep their order.

    >>> xp.argsort(xp.asarray([2.0, 3.0, 1.0]))
    tensor([2, 0, 1], dtype=int64)
    """
    if not descending:
        return ops.argsort(x, axis)
    order = ops.flip(ops.argsort(ops.flip(x, axis), axis), axis)
    return x.shape[axis] - 1 - order


def sort(x: Any, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Any:
    """Sort the elements along an axis.

    >>> xp.sort(xp.asarray([2.0, 3.0, 1.0]), descending=True)
    tensor([3., 2., 1.])
    """
    found = ops.sort(x, axis)
    return ops.flip(found, axis) if descending else found


def unique_all(x: Any, /) -> UniqueAll:
    """Return the distinct elements with their first positions, the inverse, and their counts.

    >>> values, indices, inverse, counts = xp.unique_all(xp.asarray([2, 1, 2]))
    >>> inverse
    tensor([1, 0, 1], dtype=int64)
    """
    return ops.unique_all(x)


def unique_counts(x: Any, /) -> UniqueCounts:
    """Return the distinct elements and how often each occurs.

    >>> values, counts = xp.unique_counts(xp.asarray([2, 1, 2]))
    >>> counts
    tensor([1, 2], dtype=int64)
    """
    return ops.unique_counts(x)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """Return the distinct elements and, for each element, the position of its value among them.

    >>> values, inverse = xp.unique_inverse(xp.asarray([2, 1, 2]))
    >>> inverse
    tensor([1, 0, 1], dtype=int64)
    """
    return ops.unique_inverse(x)
