"""Arrays in other shapes and joined, by the names of the standard."""

from __future__ import annotations

from typing import Any

from primgraph import operators as ops
from primgraph.errors import ArgumentError, BoundsError, ShapeError
from primgraph.operators.handle import Handle
from primgraph.operators.index.known_elements import elements

__all__ = [
    "broadcast_arrays",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "unstack",
]


def broadcast_arrays(*arrays: Any) -> Any:
    """The arrays in the shape to which they broadcast."""
    return list(ops.broadcast_arrays(*arrays))


def broadcast_to(x: Any, /, shape: Any) -> Any:
    """The array repeated to a shape."""
    return ops.broadcast_to(x, shape)


def concat(arrays: Any, /, *, axis: Any = 0) -> Any:
    """Arrays behind each other along an axis; the flattened ones without."""
    if axis is None:
        return ops.concatenate([ops.ravel(x) for x in arrays])
    return ops.concatenate(arrays, axis)


def expand_dims(x: Any, /, axis: Any) -> Any:
    """The array with a new axis of extent one; with several, at these places of the result.

    Raises `BoundsError`, an `IndexError`, for a place that the result lacks.
    """
    try:
        return ops.expand_dims(x, axis)
    except ShapeError as error:
        raise BoundsError(error.message, origin=error.origin, hint=error.hint) from None


def flip(x: Any, /, *, axis: Any = None) -> Any:
    """Elements in reverse order along axes, or along all."""
    return ops.flip(x, axis)


def moveaxis(x: Any, source: Any, destination: Any, /) -> Any:
    """Axes moved to other places; the others stay in their order."""
    return ops.moveaxis(x, source, destination)


def permute_dims(x: Any, /, axes: Any) -> Any:
    """Axes in another order."""
    return ops.transpose(x, axes)


def repeat(x: Any, repeats: Any, /, *, axis: Any = None) -> Any:
    """Each element several times along an axis, or of the flattened array.

    An array of `repeats` tells it for each, and has to be known.
    """
    if isinstance(repeats, Handle):
        repeats = elements("repeat", repeats, "").tolist()
    return ops.repeat(x, repeats, axis)


def reshape(x: Any, /, shape: Any, *, copy: Any = None) -> Any:
    """The same elements in another shape."""
    if copy is not None and not isinstance(copy, bool):
        raise ArgumentError(f"copy is True, False or None, not {copy!r:.60}")
    return ops.reshape(x, shape)


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Any:
    """Elements moved in a circle along axes, or of the flattened array."""
    return ops.roll(x, shift, axis)


def squeeze(x: Any, /, axis: Any) -> Any:
    """The array without axes of extent one."""
    return ops.squeeze(x, axis)


def stack(arrays: Any, /, *, axis: Any = 0) -> Any:
    """Arrays of one shape along a new axis."""
    return ops.stack(arrays, axis)


def tile(x: Any, repetitions: Any, /) -> Any:
    """The array beside itself, as often along each axis as is said."""
    return ops.tile(x, repetitions)


def unstack(x: Any, /, *, axis: Any = 0) -> Any:
    """The parts of an array along an axis, which they lack."""
    return tuple(ops.unstack(x, axis=axis))
