"""Concatenation, splitting, repetition, flipping and padding of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.assumptions import assume_at_least, equal, is_at_least
from primgraph.ir.dims import Dim, names_in
from primgraph.ir.types import INT64, TensorType, as_axis, as_dtype, larger, smaller
from primgraph.operators.call import public
from primgraph.operators.call_cache import decided_by_types
from primgraph.operators.handle import ArrayLike, Axes, Handle
from primgraph.operators.lazy_loading import functions
from primgraph.operators.promotion import (
    array_of,
    axes_of,
    axis_of,
    broadcast_to_shape,
    entries_of,
    join_alike,
    lift,
    none_of_no_axes,
    prefix_errors,
    require_integer,
    result_dtype,
    wrap,
)
from primgraph.operators.shape.shaping import permute_axes, reshape_to
from primgraph.operators.variable import Variable, emit, emit_all, handles
from primgraph.primitives import indexing, shapes
from primgraph.primitives.constants import filled_constant


def slice_axis(x: Variable, axis: int, start: int, size: int, step: int = 1) -> Variable:
    """Return `size` elements along `axis` from `start` on; `x` itself if those are all."""
    if (start, size, step) == (0, x.shape[axis], 1):
        return x
    starts, sizes, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
    starts[axis], sizes[axis], steps[axis] = start if size != 0 else 0, size, step
    return emit(shapes.slice_, x, starts=tuple(starts), sizes=tuple(sizes), steps=tuple(steps))


def _parts(name: str, arrays: Any) -> list[Variable]:
    """Return the arrays to be joined, in one dtype."""
    if isinstance(arrays, Variable):
        return [lift(a) for a in arrays] if arrays.ndim else _refuse(name, arrays)
    several = isinstance(arrays, Sequence) or (isinstance(arrays, np.ndarray) and arrays.ndim)
    if not several or isinstance(arrays, str | bytes) or len(arrays) == 0:
        return _refuse(name, arrays)
    dtype = result_dtype(*arrays)
    return [lift(a, dtype) for a in arrays]


def _refuse(name: str, arrays: Any) -> list[Variable]:
    raise ArgumentError(f"{name} takes a list of at least one array, not {arrays!r:.60}")


@public
def concatenate(arrays: Sequence[ArrayLike], axis: int | None = 0) -> Variable:
    """Join arrays along `axis`; with None, all their elements in a row.

    They are promoted to one dtype. Raises `ShapeError` if other sizes differ, or for 0-d arrays,
    and `ArgumentError` for an empty list.

    >>> pg.concatenate([[1.0, 2.0], [3.0]])
    tensor([1., 2., 3.])
    """
    parts = _parts("concatenate", arrays)
    if axis is None:
        parts = [reshape_to(v, (v.size,)) for v in parts]
        axis = 0
    first = parts[0]
    if isinstance(arrays, Handle) and hasattr(axis, "shape"):
        axis_of("concatenate", first, axis)
    if first.ndim == 0:
        raise ShapeError(
            f"concatenate cannot join 0-d arrays such as {first.type}", hint="use pg.stack"
        )
    number = axis_of("concatenate", first, axis)
    for other in parts[1:]:
        if other.ndim != first.ndim or any(
            n != m
            for i, (n, m) in enumerate(zip(first.shape, other.shape, strict=True))
            if i != number
        ):
            raise ShapeError(
                f"concatenate along axis {number} cannot join {first.type} and {other.type}: "
                "all other extents are to be equal"
            )
    return first if len(parts) == 1 else emit(shapes.concat, *parts, axis=number)


concat = concatenate


@public
def stack(arrays: Sequence[ArrayLike], axis: int = 0) -> Variable:
    """Stack arrays of one shape along a new axis.

    They are promoted to one dtype. Raises `ShapeError` if their shapes differ and
    `ArgumentError` for an empty list.

    >>> pg.stack([[1.0, 2.0], [3.0, 4.0]], axis=1)
    tensor([[1., 3.],
            [2., 4.]])
    """
    parts = _parts("stack", arrays)
    first = parts[0]
    for other in parts[1:]:
        if other.shape != first.shape:
            raise ShapeError(f"stack takes arrays of one shape, not {first.type} and {other.type}")
    with prefix_errors(f"stack of {first.type}"):
        number = as_axis(axis, first.ndim + 1)
    return join_alike(parts, number)


@public
def array(value: ArrayLike, dtype: Any = None, *, copy: bool | None = True) -> Variable:
    """Return `value` as a constant of the program; a handle stays, a list of handles is stacked.

    Python floats take the default dtype, other numbers the dtype that NumPy gives them, unless
    `dtype` is given. `copy` exists for compatibility with NumPy and has no effect, as values are
    immutable. Raises `DTypeError` for numbers that the dtype cannot represent, and `ArgumentError`
    for objects that are not arrays.

    >>> pg.asarray([1.0, 2.0])
    tensor([1., 2.])
    """
    if handles((value,)) or dtype is None:
        return lift(value, None if dtype is None else as_dtype(dtype))
    wanted = as_dtype(dtype)
    if isinstance(value, int | list | tuple) and wanted.kind in "iu":
        found = array_of(value)
        limits = np.iinfo(wanted)
        if found.dtype.kind in "iu" and found.size:
            smallest, largest = int(found.min()), int(found.max())
            if smallest < limits.min or largest > limits.max:
                raise DTypeError(f"{smallest} to {largest} do not fit dtype {wanted}")
    return lift(value, wanted)


asarray = functions["asarray"] = array


@public
def split(x: ArrayLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Variable]:
    """Split `x` along `axis` into consecutive parts, as a list.

    An integer is the number of equal parts; a sequence gives the indices at which to cut.
    Raises `ShapeError` if the parts would not be equal.

    >>> pg.split([1.0, 2.0, 3.0, 4.0], 2)
    [tensor([1., 2.]), tensor([3., 4.])]
    """
    value = lift(x)
    number = axis_of("split", value, axis)
    extent = value.shape[number]
    if isinstance(indices_or_sections, int | np.integer):
        count = int(indices_or_sections)
        if count < 1 or not equal(extent % count, 0):
            raise ShapeError(
                f"split of {value.type}: axis {number} does not divide into {count} equal parts"
            )
        if isinstance(extent, Dim):
            return _split_sizes(value, (extent // count,) * count, number)
        cuts = [extent // count * i for i in range(1, count)]
    else:
        given: Any = indices_or_sections
        entries = given if isinstance(given, np.ndarray) else entries_of(given)
        cuts = [require_integer("split", i) for i in entries]
    if names_in((extent, *cuts)):
        # Symbolic bounds are assumed to be within the array, in order.
        cuts = [i + extent if is_at_least(-1, i) else i for i in cuts]
        bounds = list(pairwise([0, *cuts, extent]))
    else:
        bounds = [
            slice(a, b).indices(extent)[:2] for a, b in zip([0, *cuts], [*cuts, None], strict=True)
        ]
    sizes = tuple(b - a if names_in((a, b)) else max(b - a, 0) for a, b in bounds)
    if len(sizes) == 1:
        return [value]
    if sum(sizes) == extent and all(a[1] == b[0] for a, b in pairwise(bounds)):
        return _split_sizes(value, sizes, number)
    return [
        slice_axis(value, number, start, n) for (start, _), n in zip(bounds, sizes, strict=True)
    ]


def _split_sizes(x: Variable, sizes: tuple[int, ...], axis: int) -> list[Variable]:
    """Return consecutive parts of these sizes, which add up."""
    return list(emit_all(shapes.split, x, sizes=sizes, axis=axis))


@public
@decided_by_types
def diagonal(x: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Variable:
    """Return the diagonal of two axes, which becomes the last axis; `offset` counts to the right.

    Raises `ShapeError` for less than two axes, or one named twice.

    >>> pg.diagonal([[1.0, 2.0], [3.0, 4.0]])
    tensor([1., 4.])
    """
    value = lift(x)
    first, second = (axis_of("diagonal", value, a) for a in (axis1, axis2))
    if first == second:
        raise ShapeError(f"diagonal of {value.type} takes two different axes, not {first} twice")
    offset = require_integer("diagonal", offset)
    others = [a for a in range(value.ndim) if a not in (first, second)]
    value = permute_axes(value, (*others, first, second))
    rows, columns = value.shape[-2:]
    top, left = larger(-offset, 0), larger(offset, 0)
    count = larger(smaller(rows - top, columns - left), 0)
    top, left = smaller(top, rows), smaller(left, columns)
    flat = reshape_to(value, (*value.shape[:-2], rows * columns))
    return slice_axis(flat, value.ndim - 2, top * columns + left, count, columns + 1)


@public
@decided_by_types
def flip(x: ArrayLike, axis: Axes = None) -> Variable:
    """Reverse the order of elements of `x` along `axis`, or along all axes.

    Raises `ShapeError` for axes that `x` lacks or that are named twice.

    >>> pg.flip([1.0, 2.0, 3.0])
    tensor([3., 2., 1.])
    """
    value = lift(x)
    axes = axes_of("flip", value, axis)
    return emit(shapes.reverse, value, axes=axes) if axes else value


@public
@decided_by_types
def roll(x: ArrayLike, shift: int | Sequence[int], axis: Axes = None) -> Variable:
    """Shift `x` by `shift` places along `axis`, in a circle; without axis, in row-major order.

    With several axes `shift` may be one number for all or one number each.

    >>> pg.roll([1.0, 2.0, 3.0], 1)
    tensor([3., 1., 2.])
    """
    value = lift(x)
    if axis is None:
        shape = value.shape
        flat = reshape_to(value, (value.size,))
        total = sum(require_integer("roll", s) for s in entries_of(shift))
        return reshape_to(_roll_axis(flat, total, 0), shape)
    axes = [axis_of("roll", value, a) for a in entries_of(axis)]
    shifts = [require_integer("roll", s) for s in entries_of(shift)]
    if not axes or not shifts:
        return value
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise ShapeError(f"roll of {value.type}: {len(shifts)} shifts for {len(axes)} axes")
    count = max(len(shifts), len(axes))
    for places, a in zip(shifts * (count // len(shifts)), axes * (count // len(axes)), strict=True):
        value = _roll_axis(value, places, a)
    return value


def _roll_axis(x: Variable, shift: int, axis: int) -> Variable:
    extent = x.shape[axis]
    if isinstance(extent, Dim):
        # A symbolic shift is assumed to be less than the size.
        places = shift if shift >= 0 else shift + extent
    else:
        places = shift % extent if extent else 0
    if places == 0:
        return x
    last = slice_axis(x, axis, extent - places, places)
    return emit(shapes.concat, last, slice_axis(x, axis, 0, extent - places), axis=axis)


@public
@decided_by_types
def tile(x: ArrayLike, reps: int | Sequence[int]) -> Variable:
    """Return `x` repeated as a whole `reps[i]` times along each axis `i`; new axes come first.

    Missing leading numbers of repetitions count as 1. Raises `ShapeError` for negative ones.

    >>> pg.tile([1.0, 2.0], 2)
    tensor([1., 2., 1., 2.])
    """
    value = lift(x)
    counts = [require_integer("tile", n) for n in entries_of(reps)]
    if not all(assume_at_least(n, 0) for n in counts):
        raise ShapeError(f"tile of {value.type}: {tuple(counts)} has a negative number")
    ndim = max(len(counts), value.ndim)
    counts = [1] * (ndim - len(counts)) + counts
    shape = (1,) * (ndim - value.ndim) + value.shape
    spaced = tuple(n for extent in shape for n in (1, extent))
    wide = tuple(n for pair in zip(counts, shape, strict=True) for n in pair)
    result = tuple(count * extent for count, extent in zip(counts, shape, strict=True))
    return reshape_to(broadcast_to_shape(reshape_to(value, spaced), wide), result)


@public
@decided_by_types
def repeat(x: ArrayLike, repeats: int | Sequence[int], axis: int | None = None) -> Variable:
    """Return each element repeated, along `axis` or, without one, in row-major order.

    `repeats` is one number for all elements, or one each; numbers may be symbolic sizes. Raises
    `ShapeError` unless there are as many numbers as elements, all nonnegative.

    >>> pg.repeat([1.0, 2.0], 2)
    tensor([1., 1., 2., 2.])
    """
    value = lift(x)
    if none_of_no_axes(value, axis) is None:
        value, axis = reshape_to(value, (value.size,)), 0
    number = axis_of("repeat", value, axis)
    extent = value.shape[number]
    counts = [require_integer("repeat", n) for n in entries_of(repeats)]
    if not all(assume_at_least(n, 0) for n in counts) or len(counts) not in (1, extent):
        raise ShapeError(f"repeat of {value.type} along axis {number}: {counts} does not fit")
    if len(counts) != 1:
        return emit(indexing.gather, value, _places(counts), axis=number)
    lead, rest = value.shape[:number], value.shape[number + 1 :]
    spaced = reshape_to(value, (*lead, extent, 1, *rest))
    wide = broadcast_to_shape(spaced, (*lead, extent, counts[0], *rest))
    return reshape_to(wide, (*lead, extent * counts[0], *rest))


def _places(counts: Sequence[int]) -> Variable:
    """Return each position as often as `counts` says; counts may be symbolic."""
    if not names_in(tuple(counts)):
        return lift(np.repeat(np.arange(len(counts)), np.array(counts, np.int64)))
    runs = [wrap(filled_constant(i, TensorType((n,), INT64))) for i, n in enumerate(counts)]
    return emit(shapes.concat, *runs, axis=0)
