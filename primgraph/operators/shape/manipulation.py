"""Array manipulation as in NumPy: joining, splitting, rotating and resizing along axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.types import as_shape
from primgraph.operators.call import public, public_with_fixed, require_fixed
from primgraph.operators.handle import ArrayLike
from primgraph.operators.promotion import (
    axis_of,
    broadcast_to_shape,
    common_shape,
    convert_dtype,
    entries_of,
    lift,
    require_integer,
)
from primgraph.operators.shape.joining import concatenate, flip, slice_axis, split
from primgraph.operators.shape.shaping import moveaxis, permute_axes, reshape_to, swapaxes
from primgraph.operators.variable import Variable


def _items(name: str, arrays: Any) -> list[Variable]:
    """Return the arrays to be joined, one by one."""
    if isinstance(arrays, Variable):
        return list(arrays) if arrays.ndim else _refuse(name, arrays)
    several = isinstance(arrays, Sequence) or (isinstance(arrays, np.ndarray) and arrays.ndim)
    if not several or isinstance(arrays, str | bytes) or len(arrays) == 0:
        return _refuse(name, arrays)
    return [lift(item) for item in arrays]


def _refuse(name: str, arrays: Any) -> list[Variable]:
    raise ArgumentError(f"{name} takes a list of at least one array, not {arrays!r:.60}")


def _one_axis(x: Variable) -> Variable:
    return x if x.ndim else reshape_to(x, (1,))


def _two_axes(x: Variable) -> Variable:
    return x if x.ndim > 1 else reshape_to(x, (1, x.size))


def _three_axes(x: Variable) -> Variable:
    if x.ndim > 2:
        return x
    return reshape_to(x, (*x.shape, 1) if x.ndim == 2 else (1, x.size, 1))


def _each(shaped: Any, arrays: Sequence[ArrayLike]) -> Any:
    found = tuple([shaped(lift(x)) for x in arrays])
    return found[0] if len(found) == 1 else found


@public
def atleast_1d(*arrays: ArrayLike) -> Any:
    """Return the array with at least one axis; of several arrays a tuple.

    >>> pg.atleast_1d(1.0)
    tensor([1.])
    """
    return _each(_one_axis, arrays)


@public
def atleast_2d(*arrays: ArrayLike) -> Any:
    """Return the array with at least two axes, new ones in front; of several arrays a tuple.

    >>> pg.atleast_2d([1.0, 2.0])
    tensor([[1., 2.]])
    """
    return _each(_two_axes, arrays)


@public
def atleast_3d(*arrays: ArrayLike) -> Any:
    """Return the array with at least three axes; of several arrays a tuple.

    A vector of n elements becomes of shape `(1, n, 1)`, a matrix gets a last axis of size one.

    >>> pg.atleast_3d([1.0, 2.0]).shape
    (1, 2, 1)
    """
    return _each(_three_axes, arrays)


@public
def hstack(arrays: Sequence[ArrayLike]) -> Variable:
    """Return arrays one after the other along the second axis, vectors along their only one.

    Raises `ShapeError` if other sizes differ and `ArgumentError` for an empty list.

    >>> pg.hstack([[1.0, 2.0], [3.0]])
    tensor([1., 2., 3.])
    """
    parts = [_one_axis(x) for x in _items("hstack", arrays)]
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1)


@public
def vstack(arrays: Sequence[ArrayLike]) -> Variable:
    """Return arrays one below the other along the first axis; vectors are rows.

    Raises `ShapeError` if other sizes differ and `ArgumentError` for an empty list.

    >>> pg.vstack([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    return concatenate([_two_axes(x) for x in _items("vstack", arrays)], 0)


@public
def dstack(arrays: Sequence[ArrayLike]) -> Variable:
    """Return arrays one behind the other along the third axis, which vectors and matrices get.

    Raises `ShapeError` if other sizes differ and `ArgumentError` for an empty list.

    >>> pg.dstack([[1.0, 2.0], [3.0, 4.0]]).shape
    (1, 2, 2)
    """
    return concatenate([_three_axes(x) for x in _items("dstack", arrays)], 2)


@public
def column_stack(arrays: Sequence[ArrayLike]) -> Variable:
    """Return vectors as the columns of a matrix, matrices beside them as they are.

    Raises `ShapeError` if numbers of rows differ and `ArgumentError` for an empty list.

    >>> pg.column_stack([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 3.],
            [2., 4.]])
    """
    parts = [
        reshape_to(x, (x.size, 1)) if x.ndim < 2 else x for x in _items("column_stack", arrays)
    ]
    return concatenate(parts, 1)


@public
def block(arrays: Any) -> Variable:
    """Return an array of nested lists of blocks; innermost lists are joined along the last axis.

    Raises `ArgumentError` for lists of different nesting depths or empty lists, and `ShapeError`
    for blocks that do not match.

    >>> pg.block([[np.eye(1), np.zeros((1, 1))]])
    tensor([[1., 0.]])
    """
    depth = _depth(arrays)
    ndim = max(depth, *[lift(x).ndim for x in _leaves(arrays)])
    return _concatenate_nested(arrays, depth, ndim)


def _depth(arrays: Any) -> int:
    """Return the nesting depth of the lists."""
    if not isinstance(arrays, list):
        if isinstance(arrays, tuple):
            raise ArgumentError(f"block takes lists, not tuples such as {arrays!r:.60}")
        return 0
    depths = {_depth(item) for item in arrays}
    if len(depths) != 1:
        raise ArgumentError("block takes lists that are nested to one depth and not empty")
    return depths.pop() + 1


def _leaves(arrays: Any) -> list[Any]:
    return [leaf for a in arrays for leaf in _leaves(a)] if isinstance(arrays, list) else [arrays]


def _concatenate_nested(arrays: Any, depth: int, ndim: int) -> Variable:
    if depth == 0:
        x = lift(arrays)
        return reshape_to(x, (1,) * (ndim - x.ndim) + x.shape)
    return concatenate([_concatenate_nested(a, depth - 1, ndim) for a in arrays], -depth)


@public
def broadcast_arrays(*args: ArrayLike) -> tuple[Variable, ...]:
    """Return the arrays, each repeated to the shape that all of them broadcast to.

    Raises `ShapeError` if there is none.

    >>> pg.broadcast_arrays([1.0, 2.0], 3.0)
    (tensor([1., 2.]), tensor([3., 3.]))
    """
    shape = common_shape("broadcast_arrays", *args)
    return tuple([broadcast_to_shape(lift(x), shape) for x in args])


@public
def append(x: ArrayLike, values: ArrayLike, axis: int | None = None) -> Variable:
    """Return `x` with `values` behind it along `axis`; without one, all elements of both in a row.

    Raises `ShapeError` if other sizes differ.

    >>> pg.append([1.0, 2.0], 3.0)
    tensor([1., 2., 3.])
    """
    return concatenate([lift(x), lift(values)], axis)


@public_with_fixed("obj")
def delete(x: ArrayLike, obj: Any, axis: int | None = None) -> Variable:
    """Return `x` without the parts `obj` along `axis`, or without elements of the flattened array.

    `obj` is an integer, a slice, a list of integers or a mask, and constant. Raises `BoundsError`
    for an index out of bounds.

    >>> pg.delete([1.0, 2.0, 3.0], 1)
    tensor([1., 3.])
    """
    require_fixed("obj", obj)
    value, number = _array_and_axis("delete", x, axis)
    left = np.delete(np.arange(value.shape[number]), obj)
    return _take_constant_places(value, left, number)


@public_with_fixed("obj")
def insert(x: ArrayLike, obj: Any, values: ArrayLike, axis: int | None = None) -> Variable:
    """Return `x` with `values` before the places `obj` along `axis`, or in the flattened array.

    `obj` is an integer, a slice, a list of integers or a mask, and constant; `values` are
    broadcast. The dtype is that of `x`. Raises `BoundsError` for a position out of bounds.

    >>> pg.insert([1.0, 3.0], 1, 2.0)
    tensor([1., 2., 3.])
    """
    require_fixed("obj", obj)
    value, number = _array_and_axis("insert", x, axis)
    extent = value.shape[number]
    places = np.arange(extent)[obj] if isinstance(obj, slice) else np.asarray(obj)
    if places.dtype == bool:
        places = np.flatnonzero(places)
    if places.size == 0:
        places = places.astype(np.int64)
    new = convert_dtype(lift(values), value.dtype)
    new = reshape_to(new, (1,) * (value.ndim - new.ndim) + new.shape)
    if places.ndim == 0:
        new = moveaxis(new, 0, number)
    count = new.shape[number] if places.size == 1 else places.size
    shape = (*value.shape[:number], count, *value.shape[number + 1 :])
    new = broadcast_to_shape(new, shape)
    where_from = np.arange(extent, extent + count)
    if places.size == 1:
        places = places.reshape(-1)[0]
    order = np.insert(np.arange(extent), places, where_from)
    return _take_constant_places(concatenate([value, new], number), order, number)


def _array_and_axis(name: str, x: ArrayLike, axis: int | None) -> tuple[Variable, int]:
    """Return the array and the axis; the flattened array if there is no axis."""
    value = lift(x)
    if axis is None:
        return reshape_to(value, (value.size,)), 0
    return value, axis_of(name, value, axis)


def _take_constant_places(x: Variable, places: Any, axis: int) -> Variable:
    """Take parts of `x` at constant positions along an axis, as a slice if they are consecutive."""
    steps = np.diff(places)
    if places.size and (steps == 1).all():
        return slice_axis(x, axis, int(places[0]), int(places.size))
    index = (slice(None),) * axis + (places,)
    return x[index]


@public
def fliplr(x: ArrayLike) -> Variable:
    """Return `x` with the order along its second axis turned round; `ShapeError` for less than two.

    >>> pg.fliplr([[1.0, 2.0]])
    tensor([[2., 1.]])
    """
    return flip(_with_axes("fliplr", x, 2), 1)


@public
def flipud(x: ArrayLike) -> Variable:
    """Return `x` with the order along its first axis turned round; `ShapeError` for a 0-d array.

    >>> pg.flipud([[1.0], [2.0]])
    tensor([[2.],
            [1.]])
    """
    return flip(_with_axes("flipud", x, 1), 0)


def _with_axes(name: str, x: ArrayLike, count: int) -> Variable:
    value = lift(x)
    if value.ndim < count:
        raise ShapeError(f"{name} takes an array of at least {count} axes, not {value.type}")
    return value


@public
def rot90(x: ArrayLike, k: int = 1, axes: Sequence[int] = (0, 1)) -> Variable:
    """Return `x` turned `k` times by a quarter, from the first of two axes towards the second.

    Raises `ShapeError` for axes that `x` lacks and `ArgumentError` for other than two.

    >>> pg.rot90([[1.0, 2.0], [3.0, 4.0]])
    tensor([[2., 4.],
            [1., 3.]])
    """
    value, entries = lift(x), entries_of(axes)
    turns = require_integer("rot90", k) % 4
    if len(entries) != 2:
        raise ArgumentError(f"rot90 takes two axes, not {axes!r:.60}")
    first, second = (axis_of("rot90", value, a) for a in entries)
    if first == second:
        raise ShapeError(f"rot90 of {value.type} takes two different axes, not {first} twice")
    if turns == 0:
        return value
    if turns == 2:
        return flip(value, (first, second))
    if turns == 1:
        return swapaxes(flip(value, second), first, second)
    return flip(swapaxes(value, first, second), second)


@public
def rollaxis(x: ArrayLike, axis: int, start: int = 0) -> Variable:
    """Move `axis` of `x` to before the place `start`; `moveaxis` says the same more simply.

    >>> pg.rollaxis(np.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    value = lift(x)
    number, place = axis_of("rollaxis", value, axis), require_integer("rollaxis", start)
    place = place + value.ndim if place < 0 else place
    if not 0 <= place <= value.ndim:
        raise ShapeError(f"rollaxis of {value.type}: there is no place {start}")
    order = [a for a in range(value.ndim) if a != number]
    order.insert(place - 1 if number < place else place, number)
    return permute_axes(value, tuple(order))


@public
def unstack(x: ArrayLike, *, axis: int = 0) -> tuple[Variable, ...]:
    """Return the parts of `x` along `axis`, which they lack, as a tuple.

    Raises `ShapeError` for an axis that `x` lacks.

    >>> pg.unstack([[1.0, 2.0], [3.0, 4.0]])
    (tensor([1., 2.]), tensor([3., 4.]))
    """
    value = lift(x)
    number = axis_of("unstack", value, axis)
    return tuple(moveaxis(value, number, 0))


@public_with_fixed("indices_or_sections")
def array_split(
    x: ArrayLike, indices_or_sections: int | Sequence[int], axis: int = 0
) -> list[Variable]:
    """Split `x` along `axis` into consecutive parts, of which the first may be longer by one.

    A sequence gives the indices at which to split. Raises `ShapeError` for an axis that `x` lacks.

    >>> pg.array_split([1.0, 2.0, 3.0], 2)
    [tensor([1., 2.]), tensor([3.])]
    """
    value = lift(x)
    if not isinstance(indices_or_sections, int | np.integer):
        return split(value, indices_or_sections, axis)
    count = require_integer("array_split", indices_or_sections)
    if count < 1:
        raise ArgumentError(f"array_split makes at least one part, not {count}")
    extent = value.shape[axis_of("array_split", value, axis)]
    each, more = divmod(extent, count)
    sizes = [each + 1] * more + [each] * (count - more)
    return split(value, np.cumsum(sizes)[:-1].tolist(), axis)


def _split_along(name: str, x: ArrayLike, places: Any, axis: int, least: int) -> list[Variable]:
    return split(_with_axes(name, x, least), places, axis)


@public_with_fixed("indices_or_sections")
def hsplit(x: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Variable]:
    """Return equal parts of `x`, or those between indices, along the second axis, or the only one.

    Raises `ShapeError` if the parts would not be equal.

    >>> pg.hsplit([1.0, 2.0, 3.0, 4.0], 2)
    [tensor([1., 2.]), tensor([3., 4.])]
    """
    return _split_along("hsplit", x, indices_or_sections, 1 if lift(x).ndim > 1 else 0, 1)


@public_with_fixed("indices_or_sections")
def vsplit(x: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Variable]:
    """Return equal parts of `x`, or those between indices, along the first axis of at least two.

    Raises `ShapeError` if the parts would not be equal.

    >>> pg.vsplit([[1.0], [2.0]], 2)
    [tensor([[1.]]), tensor([[2.]])]
    """
    return _split_along("vsplit", x, indices_or_sections, 0, 2)


@public_with_fixed("indices_or_sections")
def dsplit(x: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Variable]:
    """Return equal parts of `x`, or those between indices, along the third axis.

    Raises `ShapeError` if the parts would not be equal.

    >>> [a.shape for a in pg.dsplit(np.ones((1, 1, 4)), 2)]
    [(1, 1, 2), (1, 1, 2)]
    """
    return _split_along("dsplit", x, indices_or_sections, 2, 3)


@public
def resize(x: ArrayLike, new_shape: Any) -> Variable:
    """Return the elements of `x` in row-major order, repeated as often as needed, in another shape.

    Zeros if `x` is empty. Raises `ShapeError` for a negative size.

    >>> pg.resize([1.0, 2.0], (3,))
    tensor([1., 2., 1.])
    """
    value, shape = lift(x), as_shape(new_shape)
    flat, size = reshape_to(value, (value.size,)), math.prod(shape)
    if value.size == 0:
        return broadcast_to_shape(lift(np.zeros((), value.dtype)), shape)
    rounds = -(-size // value.size)
    if rounds > 1:
        flat = concatenate([flat] * rounds)
    return reshape_to(slice_axis(flat, 0, 0, size), shape)
