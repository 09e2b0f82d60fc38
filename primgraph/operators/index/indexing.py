"""Indexing: `x[...]`, take, gather, slices."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any, TypeAlias, cast

import numpy as np

from primgraph.base.providers import provider
from primgraph.base.records import dataclass
from primgraph.errors import ArgumentError, BoundsError, DTypeError, ShapeError, UnknownSizeError
from primgraph.ir.assumptions import assume_at_least, is_at_least
from primgraph.ir.dims import Dim, bounds
from primgraph.ir.types import INT64, Shape, broadcast_shapes, integer
from primgraph.operators.call import public
from primgraph.operators.call_cache import decided_by_types
from primgraph.operators.handle import ArrayLike
from primgraph.operators.index.dynamic_slices import dynamic_slices, has_variable_bounds
from primgraph.operators.promotion import (
    array_of,
    axis_of,
    broadcast_to_shape,
    convert_dtype,
    describe_operand,
    lift,
    none_of_no_axes,
)
from primgraph.operators.shape.shaping import permute_axes, reshape_to
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import constants, indexing, shapes

Entry: TypeAlias = "int | slice | Variable | np.ndarray[Any, Any] | EllipsisType | bool | None"


@public
@decided_by_types
def getitem(x: ArrayLike, index: Any) -> Variable:
    """Return `x[index]` as NumPy does; only positions may depend on values.

    The index may hold integers, slices, `...`, None, arrays or lists of integers, integer
    variables, and constant boolean arrays. Raises `BoundsError` for constant positions outside the
    array and for too many of them, `DTypeError` for a float variable, and `ArgumentError` for
    anything else. An integer variable out of range is an `IndexError` in the run.

    A boolean variable alone, of the shape of `x`, chooses elements, though their number is not
    known: functions of each element and sums take them, and `y[mask] = f(x[mask])` assigns them.

    Bounds of slices may be integer variables if the length is known, as in `x[k:k + 2]`; a slice
    that does not lie within the array is an `IndexError` in the run.

    >>> pg.getitem([1.0, 2.0, 3.0], slice(1, None))
    tensor([2., 3.])
    """
    value = lift(x)
    if isinstance(index, Variable) and index.dtype.kind == "b" and index.ndim >= min(1, value.ndim):
        chosen: Any = provider("elements of masks").choose(value, index)
        return cast("Variable", chosen)
    entries = index_entries(value, index if isinstance(index, tuple) else (index,))
    if any(map(has_variable_bounds, entries)):
        value, entries = dynamic_slices(value, entries)
    sliced_part, plan = _basic_part(value, entries)
    return (
        _gather_elements(sliced_part, plan) if plan.arrays else reshape_to(sliced_part, plan.shape)
    )


def index_entries(x: Variable, index: tuple[Any, ...]) -> list[Entry]:
    """Return the index with masks as positions and one entry per axis of `x`.

    A written `...` stays before the slices that it stands for, as it separates index arrays even if
    it stands for no axis.
    """
    known: list[Any] = []
    for item in index:
        known += _entry(x, item)
    consumed = sum(map(_takes_an_axis, known))
    if consumed > x.ndim:
        raise BoundsError(f"{consumed} indices are too many for {x.type}, which has {x.ndim} axes")
    places = [i for i, item in enumerate(known) if item is Ellipsis]
    if len(places) > 1:
        raise BoundsError(f"an index of {x.type} can have only one ellipsis")
    place = places[0] if places else len(known)
    rest = [slice(None)] * (x.ndim - consumed)
    entries: list[Entry] = [*known[: place + 1], *rest, *known[place + 1 :]]
    _check_masks(x, index)
    return entries


def _takes_an_axis(entry: Any) -> bool:
    return entry is not None and entry is not Ellipsis and not isinstance(entry, bool)


def _entry(x: Variable, item: Any) -> list[Any]:
    """Return the entries for one item of an index; a boolean array gives one for each of its axes.

    A single boolean stays one: it is an index array of one or no element along a new axis.
    """
    if item is None or item is Ellipsis or isinstance(item, slice):
        return [item]
    if isinstance(item, Variable):
        if item.dtype.kind in "iu":
            return [item]
        raise DTypeError(
            f"{x.type} cannot be indexed by the variable {item.type}",
            hint=(
                "the size of the result would not be known; use pg.where(mask, x, 0), or "
                "pg.extract(mask, x, size=n)"
                if item.dtype.kind == "b"
                else "an index is an integer; convert it with pg.astype"
            ),
        )
    if _is_mask(item) and np.ndim(item) == 0:
        return [bool(item)]
    if isinstance(item, int | np.integer):
        return [int(item)]
    if isinstance(item, Dim):
        return [item]
    if not isinstance(item, np.ndarray | Sequence) or isinstance(item, str | bytes):
        raise ArgumentError(
            f"{x.type} cannot be indexed by {type(item).__name__} {item!r:.60}",
            hint="an index is an integer, slice, None, ..., or an array of integers",
        )
    return _array_entry(x, array_of(item))


def _array_entry(x: Variable, array: np.ndarray[Any, Any]) -> list[Any]:
    if array.dtype.kind == "b":
        return list(array.nonzero())
    if array.size == 0 and array.dtype.kind == "f":
        return [array.astype(INT64)]
    if array.dtype.kind not in "iu":
        raise DTypeError(f"{x.type} cannot be indexed by an array of dtype {array.dtype}")
    return [int(array)] if array.ndim == 0 else [array]


def _check_masks(x: Variable, index: tuple[Any, ...]) -> None:
    """Check that each mask has the shape of the axes that it stands for."""
    axis = 0
    for i, item in enumerate(index):
        if item is Ellipsis:
            axis = x.ndim - sum(map(_width, index[i + 1 :]))
            continue
        width = _width(item)
        if _is_mask(item) and np.shape(item) != x.shape[axis : axis + width]:
            raise BoundsError(
                f"a mask of shape {np.shape(item)} does not fit axes {axis} to "
                f"{axis + width - 1} of {x.type}"
            )
        axis += width


def _is_mask(item: Any) -> bool:
    return not isinstance(item, Variable | slice) and _kind(item) == "b"


def _kind(item: Any) -> str:
    """Return the dtype kind of an item of an index that may be an array."""
    if isinstance(item, bool | np.bool_):
        return "b"
    if isinstance(item, list):
        item = array_of(item)
    return str(item.dtype.kind) if isinstance(item, np.ndarray) else ""


def _width(item: Any) -> int:
    """Return the number of axes that an item of an index stands for."""
    if item is None:
        return 0
    return np.ndim(item) if _is_mask(item) else 1


@dataclass(frozen=True, slots=True)
class _Plan:
    """Remaining indexing after slices and integers are applied.

    `shape` is the shape without the axes of integers and with new axes. `arrays` maps axes of that
    shape to index arrays. `first` says that their axes come first, because other axes separate
    them.
    """

    shape: Shape
    arrays: dict[int, Variable | np.ndarray[Any, Any]]
    first: bool


def _basic_part(x: Variable, entries: list[Entry]) -> tuple[Variable, _Plan]:
    """Apply slices and integers to `x`, keeping all axes, and return the remaining indexing."""
    starts, sizes, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
    shape: list[int] = []
    arrays: dict[int, Variable | np.ndarray[Any, Any]] = {}
    advanced: list[int] = []
    axis = 0
    for place, entry in enumerate(entries):
        if entry is Ellipsis:
            continue
        if entry is None:
            shape.append(1)
            continue
        if isinstance(entry, bool):
            advanced.append(place)
            arrays[len(shape)] = np.zeros(int(entry), np.int64)
            shape.append(1)
            continue
        if isinstance(entry, slice):
            starts[axis], sizes[axis], steps[axis] = resolve_slice(x, entry, axis)
            shape.append(sizes[axis])
        else:
            advanced.append(place)
            if isinstance(entry, int | Dim):
                starts[axis], sizes[axis] = resolve_position(x, entry, axis), 1
            else:
                arrays[len(shape)] = _validate(x, entry, axis)
                shape.append(x.shape[axis])
        axis += 1
    if (starts, sizes, steps) != ([0] * x.ndim, list(x.shape), [1] * x.ndim):
        bounds = {"starts": tuple(starts), "sizes": tuple(sizes), "steps": tuple(steps)}
        x = emit(shapes.slice_, x, **bounds)
    apart = bool(advanced) and advanced[-1] - advanced[0] >= len(advanced)
    return x, _Plan(tuple(shape), arrays, apart)


def _gather_elements(x: Variable, plan: _Plan) -> Variable:
    """Gather the elements at the index arrays, with the axes in NumPy's order."""
    x = reshape_to(x, plan.shape)
    axes = list(plan.arrays)
    index = _broadcast_indices(x, list(plan.arrays.values()))
    if not plan.first and axes == list(range(axes[0], axes[0] + len(axes))):
        return emit(indexing.gather, x, *index, axis=axes[0])
    others = [a for a in range(x.ndim) if a not in axes]
    return emit(indexing.gather, permute_axes(x, (*axes, *others)), *index, axis=0)


def _broadcast_indices(
    x: Variable, arrays: list[Variable | np.ndarray[Any, Any]]
) -> list[Variable]:
    try:
        shape = broadcast_shapes(*(a.shape for a in arrays))
    except ShapeError:
        found = " and ".join(describe_operand(a) for a in arrays)
        raise BoundsError(f"index arrays {found} of {x.type} cannot be broadcast") from None
    return [
        broadcast_to_shape(a, shape)
        if isinstance(a, Variable)
        else lift(np.array(np.broadcast_to(a, shape)))
        for a in arrays
    ]


def resolve_slice(x: Variable, entry: slice, axis: int) -> tuple[int, int, int]:
    """Return start, size and step of a slice, clipped to the axis."""
    if any(isinstance(n, Dim) for n in (x.shape[axis], entry.start, entry.stop)):
        return _resolved_by_sizes(x, entry, x.shape[axis])
    try:
        positions = range(*entry.indices(x.shape[axis]))
    except TypeError:
        raise ArgumentError(f"a slice of {x.type} has bounds {entry}, not integers") from None
    except ValueError:
        raise ArgumentError(f"a slice of {x.type} has step zero") from None
    return (positions.start, len(positions), positions.step) if positions else (0, 0, 1)


def _resolved_by_sizes(x: Variable, entry: slice, extent: int) -> tuple[int, int, int]:
    """Return start, size and step of a slice with symbolic bounds.

    The bounds are assumed to be within the array, and start not to be after stop.
    """
    step = 1 if entry.step is None else entry.step
    if type(step) is not int or step == 0:
        raise ArgumentError(f"a slice of {x.type} has step {step!r:.40}: it is a number, not zero")
    first, last = (0, extent) if step > 0 else (extent - 1, -1)
    start = first if entry.start is None else _slice_bound(x, entry.start, extent, step)
    stop = last if entry.stop is None else _slice_bound(x, entry.stop, extent, step)
    size = (stop - start + step - 1) // step if step > 0 else (start - stop - step - 1) // -step
    if not is_at_least(stop - start if step > 0 else start - stop, 0) and type(size) is int:
        return 0, 0, 1
    return start, size, step


def _slice_bound(x: Variable, number: Any, extent: int, step: int) -> int:
    """Return a bound of a slice, counted from the front; a bound beyond the end is the end.

    A bound of unknown sign is assumed not to be negative, which the rule of slices checks if the
    step is positive. Raises `UnknownSizeError` if nothing would check it.
    """
    try:
        found = integer(number)
    except TypeError:
        raise ArgumentError(f"a slice of {x.type} has bound {number!r:.40}, no integer") from None
    low, high = bounds(found)
    if low >= 0 and is_at_least(found, extent):
        return extent if step > 0 else extent - 1
    if low >= 0:
        return found
    from_end = found + extent
    if high < 0 or (type(from_end) is int and from_end == 0):
        return from_end
    if high <= 0:
        raise UnknownSizeError(
            f"a slice of {x.type} has bound {found}, which is 0 for some sizes and would count "
            "from the front there",
            hint=f"count from the front for all sizes, as in x[{from_end}:]",
        )
    if step != 1:
        raise UnknownSizeError(
            f"a slice of {x.type} with step {step} has bound {found}, which is negative for some "
            "sizes and would count from the end there",
            hint=f"slice by bounds alone and then by steps, as in x[a:b][::{step}]",
        )
    return found


def resolve_position(x: Variable, number: int, axis: int) -> int:
    extent = x.shape[axis]
    if type(extent) is int and type(number) is int:
        if not -extent <= number < extent:
            raise BoundsError(f"index {number} is out of bounds for axis {axis} of {x.type}")
        return number % extent
    # A position of unknown sign is assumed not to be negative, as in a slice.
    place = number if bounds(number)[1] > 0 or bounds(number)[0] >= 0 else number + extent
    if not assume_at_least(place, 0) or not assume_at_least(extent, place + 1):
        raise BoundsError(f"index {number} is out of bounds for axis {axis} of {x.type}")
    return place


def _validate(
    x: Variable, array: Variable | np.ndarray[Any, Any], axis: int
) -> Variable | np.ndarray[Any, Any]:
    """Return a constant index array if it is within the axis; a variable as it is."""
    if isinstance(array, np.ndarray):
        extent = x.shape[axis]
        if isinstance(extent, Dim):
            # Positions out of range raise an error at run time.
            return array
        outside = array[(array < -extent) | (array >= extent)]
        if outside.size:
            raise BoundsError(f"index {outside[0]} is out of bounds for axis {axis} of {x.type}")
    return array


def as_index(name: str, x: Variable, indices: ArrayLike, axis: int) -> Variable:
    """Convert `indices` to a handle; constants are checked against the size of `axis`."""
    if not isinstance(indices, Variable):
        array = array_of(indices)
        if array.size == 0:
            array = array.astype(INT64)
        if array.dtype.kind in "iu":
            return lift(np.asarray(_validate(x, np.atleast_1d(array), axis)).reshape(array.shape))
        indices = lift(array)
    if indices.dtype.kind not in "iu":
        raise DTypeError(f"{name} takes integer indices, not {indices.type}")
    return indices


@public
def take(x: ArrayLike, indices: ArrayLike, axis: int | None = None) -> Variable:
    """Return the elements at `indices` along `axis`; without one, of the flattened array.

    The axes of `indices` replace `axis`. Raises `BoundsError` for constant indices out of range and
    `DTypeError` for indices that are not integers.

    >>> pg.take([1.0, 2.0, 3.0], [2, 0])
    tensor([3., 1.])
    """
    value = lift(x)
    if none_of_no_axes(value, axis) is None:
        value, axis = reshape_to(value, (value.size,)), 0
    number = axis_of("take", value, axis)
    return emit(indexing.gather, value, as_index("take", value, indices, number), axis=number)


@public
def gather(x: ArrayLike, index: ArrayLike, axis: int = 0) -> Variable:
    """Return the slices of `x` at positions `index` along `axis`; the same as `take` with an axis.

    >>> pg.gather([1.0, 2.0, 3.0], [2, 0])
    tensor([3., 1.])
    """
    value = lift(x)
    number = axis_of("gather", value, axis)
    return emit(indexing.gather, value, as_index("gather", value, index, number), axis=number)


@public
def take_along_axis(x: ArrayLike, indices: ArrayLike, axis: int | None = -1) -> Variable:
    """Take, for each row along `axis`, the elements at the positions in that row of `indices`.

    The other axes are broadcast. Raises `ShapeError` if `indices` has another number of axes than
    `x`, and the errors of `take`.

    >>> pg.take_along_axis([[3.0, 1.0]], [[1, 0]], 1)
    tensor([[1., 3.]])
    """
    value = lift(x)
    if axis is None:
        value, axis = reshape_to(value, (value.size,)), 0
    number = axis_of("take_along_axis", value, axis)
    index = as_index("take_along_axis", value, indices, number)
    if index.ndim != value.ndim:
        raise ShapeError(f"take_along_axis takes as many axes in {index.type} as in {value.type}")
    lead = tuple(1 if i == number else n for i, n in enumerate(value.shape))
    shape = broadcast_shapes(lead, index.shape)
    wide = tuple(value.shape[i] if i == number else n for i, n in enumerate(shape))
    value, index = (
        broadcast_to_shape(value, wide),
        convert_dtype(broadcast_to_shape(index, shape), INT64),
    )
    grid = [
        index if a == number else emit(constants.iota, shape=shape, axis=a, dtype=INT64)
        for a in range(value.ndim)
    ]
    return emit(indexing.gather, value, *grid, axis=0)


@public
def strided_slice(
    x: ArrayLike,
    axes: Sequence[int],
    starts: Sequence[int],
    ends: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Variable:
    """Return `x` with the slice `starts[i]:ends[i]:strides[i]` taken along `axes[i]`, for all i.

    Negative bounds count from the end, and bounds beyond the array are clipped, as in Python.
    Raises `ShapeError` if the sequences have different lengths.

    >>> pg.strided_slice([1.0, 2.0, 3.0, 4.0], [0], [0], [4], [2])
    tensor([1., 3.])
    """
    value = lift(x)
    for numbers in (axes, starts, ends, () if strides is None else strides):
        if not isinstance(numbers, Sequence) or isinstance(numbers, str | bytes):
            raise ArgumentError(f"strided_slice takes sequences of integers, not {numbers!r:.60}")
    steps = [1] * len(axes) if strides is None else strides
    if not len(axes) == len(starts) == len(ends) == len(steps):
        raise ShapeError(f"strided_slice of {value.type}: as many bounds as axes are needed")
    entries = [slice(None)] * value.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        entries[axis_of("strided_slice", value, axis)] = slice(start, end, step)
    return getitem(value, tuple(entries))
