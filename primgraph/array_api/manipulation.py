"""Arrays in other shapes and joined, by the names of the standard."""

from __future__ import annotations

from typing import Any

from primgraph import operators as ops
from primgraph.errors import ArgumentError, BoundsError, ShapeError
from primgraph.operators.handle import Handle
from primgraph.operators.index.known_elements import elements
from primgraph.operators.names import define

_ROWS = """
broadcast_to(x, /, shape)
Repeat the array to a shape.
>>> xp.broadcast_to(xp.arange(2), (3, 2))
tensor([[0, 1],
        [0, 1],
        [0, 1]], dtype=int64)

flip(x, /, *, axis=None)
Reverse the order of elements along axes, or along all.
>>> xp.flip(xp.arange(3))
tensor([2, 1, 0], dtype=int64)

moveaxis(x, source, destination, /)
Move axes to other positions; the others stay in their order.
>>> xp.moveaxis(xp.ones((2, 3, 4)), 0, -1).shape
(3, 4, 2)

permute_dims(x, /, axes): transpose
Permute the axes.
>>> xp.permute_dims(xp.ones((2, 3, 4)), (2, 0, 1)).shape
(4, 2, 3)

roll(x, /, shift, *, axis=None)
Shift elements in a circle along axes, or in the flattened array.
>>> xp.roll(xp.arange(4), 1)
tensor([3, 0, 1, 2], dtype=int64)

squeeze(x, /, axis)
Remove axes of size one.
>>> xp.squeeze(xp.ones((2, 1, 3)), 1).shape
(2, 3)

stack(arrays, /, *, axis=0)
Stack arrays of one shape along a new axis.
>>> xp.stack([xp.arange(2), xp.arange(2)], axis=1)
tensor([[0, 0],
        [1, 1]], dtype=int64)

tile(x, repetitions, /)
Repeat the array as a whole along each axis, `repetitions` times.
>>> xp.tile(xp.arange(2), (3,))
tensor([0, 1, 0, 1, 0, 1], dtype=int64)
"""

__all__ = [
    *define("array_api", globals(), _ROWS),
    "broadcast_arrays",
    "concat",
    "expand_dims",
    "repeat",
    "reshape",
    "unstack",
]


def broadcast_arrays(*arrays: Any) -> Any:
    """Return the arrays in the shape to which they broadcast.

    >>> [a.shape for a in xp.broadcast_arrays(xp.ones((2, 1)), xp.ones(3))]
    [(2, 3), (2, 3)]
    """
    return list(ops.broadcast_arrays(*arrays))


def concat(arrays: Any, /, *, axis: Any = 0) -> Any:
    """Join arrays along an axis, or the flattened arrays if `axis` is None.

    >>> xp.concat([xp.arange(2), xp.arange(3)])
    tensor([0, 1, 0, 1, 2], dtype=int64)
    """
    if axis is None:
        return ops.concatenate([ops.ravel(x) for x in arrays])
    return ops.concatenate(arrays, axis)


def expand_dims(x: Any, /, axis: Any) -> Any:
    """Insert a new axis of size one at each position of the result in `axis`.

    Raises `BoundsError`, an `IndexError`, for a position that the result does not have.

    >>> xp.expand_dims(xp.ones((2, 3)), axis=1).shape
    (2, 1, 3)
    """
    try:
        return ops.expand_dims(x, axis)
    except ShapeError as error:
        raise BoundsError(error.message, origin=error.origin, hint=error.hint) from None


def repeat(x: Any, repeats: Any, /, *, axis: Any = None) -> Any:
    """Repeat each element along an axis, or of the flattened array.

    `repeats` is one count or an array with one for each, whose elements must be known.

    >>> xp.repeat(xp.arange(3), 2)
    tensor([0, 0, 1, 1, 2, 2], dtype=int64)
    """
    if isinstance(repeats, Handle):
        repeats = elements("repeat", repeats, "").tolist()
    return ops.repeat(x, repeats, axis)


def reshape(x: Any, /, shape: Any, *, copy: Any = None) -> Any:
    """Return the same elements in another shape.

    >>> xp.reshape(xp.arange(6), (2, -1))
    tensor([[0, 1, 2],
            [3, 4, 5]], dtype=int64)
    """
    if copy is not None and not isinstance(copy, bool):
        raise ArgumentError(f"copy is True, False or None, not {copy!r:.60}")
    return ops.reshape(x, shape)


def unstack(x: Any, /, *, axis: Any = 0) -> Any:
    """Return the parts of an array along an axis, without that axis.

    >>> xp.unstack(xp.asarray([[1, 2], [3, 4]]))
    (tensor([1, 2], dtype=int64), tensor([3, 4], dtype=int64))
    """
    return tuple(ops.unstack(x, axis=axis))
