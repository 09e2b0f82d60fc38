"""Assignment to parts of arrays, at constant and at computed positions, as NumPy does it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primgraph.errors import BoundsError, DTypeError, ShapeError
from primgraph.ir.dims import Dim
from primgraph.ir.types import BOOL, Shape
from primgraph.operators.call import handle_operator, public
from primgraph.operators.handle import ArrayLike, Handle
from primgraph.operators.index.dynamic_slices import has_variable_bounds
from primgraph.operators.index.indexing import (
    as_index,
    getitem,
    index_entries,
    resolve_position,
    resolve_slice,
)
from primgraph.operators.numpy_arguments import call_named
from primgraph.operators.promotion import (
    SCALARS,
    axis_of,
    broadcast_to_shape,
    broadcasts_to,
    convert_dtype,
    lift,
    result_dtype,
    wrap,
)
from primgraph.operators.shape.shaping import reshape_to
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import indexing, logic, shapes
from primgraph.primitives.constants import filled_constant


@public
def scatter_add(x: ArrayLike, index: ArrayLike, updates: ArrayLike, axis: int = 0) -> Variable:
    """Return `x` with `updates` added at the positions `index` along `axis`; repeated ones add up.

    `updates` is broadcast to the shape of `gather(x, index, axis)`. Raises `DTypeError` if the
    dtype of `x` cannot represent `updates`, and the errors of `gather`.

    >>> pg.scatter_add(np.zeros(3), [2, 2], [1.0, 5.0])
    tensor([0., 0., 6.])
    """
    value = lift(x)
    number = axis_of("scatter_add", value, axis)
    position = as_index("scatter_add", value, index, number)
    shape = value.shape[:number] + position.shape + value.shape[number + 1 :]
    part = _fit_update("scatter_add", value, updates, shape)
    return emit(indexing.scatter_add, value, part, position, axis=number)


@public
def scatter_max(x: ArrayLike, index: ArrayLike, updates: ArrayLike, axis: int = 0) -> Variable:
    """Return the maximum of `x` and of all `updates` at the positions `index` along `axis`.

    NaN is the maximum, as in `maximum`. The derivative is that of one of equal updates. Shapes and
    errors are those of `scatter_add`.

    >>> pg.scatter_max(np.zeros(3), [2, 2, 0], [1.0, 5.0, -1.0])
    tensor([0., 0., 5.])
    """
    return _scatter_extreme("scatter_max", x, index, updates, axis)


@public
def scatter_min(x: ArrayLike, index: ArrayLike, updates: ArrayLike, axis: int = 0) -> Variable:
    """Return the minimum of `x` and of all `updates` at the positions `index` along `axis`.

    See `scatter_max`.

    >>> pg.scatter_min(np.zeros(3), [2, 2, 0], [1.0, -5.0, -1.0])
    tensor([-1.,  0., -5.])
    """
    return _scatter_extreme("scatter_min", x, index, updates, axis)


def _scatter_extreme(
    name: str, x: ArrayLike, index: ArrayLike, updates: ArrayLike, axis: int
) -> Variable:
    """Assign updates in the order of their size, so that the last one at a position is extreme."""
    value = lift(x)
    number = axis_of(name, value, axis)
    position = as_index(name, value, index, number)
    shape = value.shape[:number] + position.shape + value.shape[number + 1 :]
    part = _fit_update(name, value, updates, shape)
    flat = reshape_to(part, (part.size,))
    if name == "scatter_max":
        order = call_named("argsort", flat)
    elif flat.dtype.kind == "f":
        # NaN is the last one in this order, too.
        order = call_named("argsort", -flat)
    else:
        order = call_named("flip", call_named("argsort", flat))
    elements = reshape_to(call_named("arange", value.size), value.shape)
    places = reshape_to(call_named("take", elements, position, number), (part.size,))
    row = assign_elements(
        reshape_to(value, (value.size,)), places[order], call_named("take", flat, order)
    )
    extreme = "maximum" if name == "scatter_max" else "minimum"
    found: Variable = call_named(extreme, value, reshape_to(row, value.shape))
    return found


def _fit_update(name: str, x: Variable, y: ArrayLike, shape: Shape) -> Variable:
    """Convert `y` to the dtype of `x`, and broadcast it to the part of `x` that it replaces.

    An assignment drops first axes of size one that `y` has too many, as NumPy's does.
    """
    if type(y) in SCALARS and result_dtype(x, y) == x.dtype:
        return wrap(filled_constant(y, x.type.with_shape(shape)))
    part = lift(y)
    if not np.can_cast(part.dtype, x.dtype, "same_kind"):
        cast = "bool" if x.dtype == bool else "int" if x.dtype.kind in "iu" else f"{x.dtype.name!r}"
        raise DTypeError(
            f"{name} cannot put {part.type} into {x.type}",
            hint=f"convert the value by .astype({cast}), or make an array of {part.dtype.name}",
        )
    more = part.ndim - len(shape)
    if more > 0 and name == "set_slice" and part.shape[:more] == (1,) * more:
        part = reshape_to(part, part.shape[more:])
    if not broadcasts_to(part.shape, shape):
        raise ShapeError(f"{name} into {x.type} cannot put {part.type} where {shape} is needed")
    return broadcast_to_shape(convert_dtype(part, x.dtype), shape)


@public
def set_slice(x: ArrayLike, index: Any, y: ArrayLike) -> Variable:
    """Return a copy of `x` with `x[index] = y`, for any index of `x[index]`.

    `y` is broadcast; of several elements for one place, the last one stays. The index may also be a
    boolean variable, with one number of `y` for all places along its axes. Raises `DTypeError` if
    the dtype of `x` cannot hold `y`, and the errors of `x[index]`.

    >>> pg.set_slice([1.0, 2.0, 3.0], 0, 9.0)
    tensor([9., 2., 3.])
    """
    value = lift(x)
    if isinstance(index, Variable) and index.dtype == BOOL:
        return _set_where(value, index, y)
    entries = index_entries(value, index if isinstance(index, tuple) else (index,))
    if is_computed(tuple(entries)):
        return _set_computed(value, index, y)
    if any(isinstance(e, bool | np.ndarray) for e in entries):
        return _set_at(value, index, y)
    starts: list[int] = []
    sizes: list[int] = []
    steps: list[int] = []
    shape: list[int] = []
    for entry in entries:
        if entry is Ellipsis:
            continue
        if entry is None:
            shape.append(1)
            continue
        axis = len(sizes)
        if isinstance(entry, slice):
            start, size, step = resolve_slice(value, entry, axis)
            shape.append(size)
        else:
            assert isinstance(entry, int | Dim)
            start, size, step = resolve_position(value, entry, axis), 1, 1
        starts.append(start)
        sizes.append(size)
        steps.append(step)
    part = reshape_to(_fit_update("set_slice", value, y, tuple(shape)), tuple(sizes))
    return emit(shapes.slice_assign, value, part, starts=tuple(starts), steps=tuple(steps))


def _set_computed(x: Variable, index: Any, y: ArrayLike) -> Variable:
    """Return `x` with `y` at an index with integer variables, of which only the shape is known."""
    shape = getitem(broadcast_to_shape(lift(0), x.shape), index).shape
    found: Variable = assign_elements(x, index, _fit_update("set_slice", x, y, shape))
    return found


def _set_where(x: Variable, mask: Variable, y: ArrayLike) -> Variable:
    """Return `x` with `y` where `mask`, over the first axes of `x`, is true."""
    lead = x.shape[: mask.ndim]
    if mask.shape != lead:
        raise BoundsError(f"a mask {mask.type} does not fit the first axes of {x.type}")
    part = _fit_update("set_slice", x, y, (1, *x.shape[mask.ndim :]))
    rest = (1,) * (x.ndim - mask.ndim)
    whole = reshape_to(part, ((1,) * mask.ndim + x.shape[mask.ndim :]))
    chosen = broadcast_to_shape(reshape_to(mask, (*mask.shape, *rest)), x.shape)
    return emit(logic.select, chosen, broadcast_to_shape(whole, x.shape), x)


def _set_at(x: Variable, index: Any, y: ArrayLike) -> Variable:
    """Return `x` with `y` at a constant index: each position takes an element of `y`, or none.

    NumPy determines the positions, by assigning the elements' numbers in an array like `x`.
    """
    index_entries(x, index if isinstance(index, tuple) else (index,))
    return _set_places(x, *places_of(x.shape, index), y)


def places_of(
    extents: Shape, index: Any
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], Shape]:
    """Return which element of a value goes where in an array of this shape, by `x[index] = value`.

    The results are, for each position, the number of the element and whether there is one, and the
    shape to which the value is broadcast.
    """
    places = np.full(extents, -1)
    shape = places[index].shape
    places[index] = np.arange(math.prod(shape)).reshape(shape)
    return np.maximum(places, 0), places >= 0, shape


def _set_places(x: ArrayLike, numbers: Any, taking: Any, shape: Shape, y: ArrayLike) -> Variable:
    value = lift(x)
    part = _fit_update("set_slice", value, y, shape)
    flat = reshape_to(part, (part.size,))
    if part.size == 0:
        whole = reshape_to(value, (value.size,))
        found = emit(shapes.slice_assign, whole, flat, starts=(0,), steps=(1,))
        return reshape_to(found, value.shape)
    taken = emit(indexing.gather, flat, lift(numbers), axis=0)
    return emit(logic.select, lift(taking), taken, value)


# `x` with elements of `y` by the result of `places_of`, which is data: an unnamed operator.
set_places = handle_operator(_set_places)


# Computed positions.


def is_computed(index: Any) -> bool:
    """Return whether an index contains integer variables, also as bounds of slices."""
    entries = index if isinstance(index, tuple) else (index,)
    return any(
        has_variable_bounds(e) or (isinstance(e, Handle) and e.dtype.kind in "iu") for e in entries
    )


def assign_elements(x: Any, index: Any, value: Any) -> Any:
    """Return `x` after `x[index] = value`, with integer variables in the index.

    If several elements are assigned to one position, the last one counts: positions are sorted, and
    each element of `x` is searched among them.
    """
    size = math.prod(x.shape)
    elements = call_named("arange", size)
    places = call_named("getitem", call_named("reshape", elements, x.shape), index)
    count = math.prod(places.shape)
    if count == 0 or (not isinstance(size, Dim) and size == 0):
        return x
    flat = call_named("reshape", places, (count,))
    values = call_named(
        "reshape", call_named("broadcast_to", call_named("asarray", value), places.shape), (-1,)
    )
    order = call_named("argsort", flat)
    ordered = call_named("take", flat, order)
    last = call_named("searchsorted", ordered, elements, side="right") - 1
    at = call_named("maximum", last, 0)
    is_there = call_named(
        "logical_and", last >= 0, call_named("equal", call_named("take", ordered, at), elements)
    )
    chosen = call_named("take", values, call_named("take", order, at))
    found = call_named("where", is_there, chosen, call_named("reshape", x, (size,)))
    return call_named("astype", call_named("reshape", found, x.shape), x.dtype)


def assign_along_axis(arr: Any, indices: Any, values: Any, axis: int) -> Any:
    """Return `arr` after `np.put_along_axis`, at integer variables along an axis.

    Along other axes of size one the indices are repeated.
    """
    grid = []
    for i, extent in enumerate(arr.shape):
        ones = tuple(-1 if i == j else 1 for j in range(arr.ndim))
        grid.append(call_named("reshape", call_named("arange", extent), ones))
    grid[axis] = indices
    return assign_elements(arr, tuple(grid), values)


def assign_flat(array: Any, places: Any, values: Any) -> Any:
    """Return `array` after `np.put`, at integer variables that are flat indices.

    Values are repeated if there are fewer than positions.
    """
    count = math.prod(places.shape)
    flat = call_named("resize", call_named("asarray", values), (count,))
    row = assign_elements(
        call_named("reshape", array, (-1,)), call_named("reshape", places, (count,)), flat
    )
    return call_named("reshape", row, array.shape)
