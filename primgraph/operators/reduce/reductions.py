"""Sums, products, extrema and their positions along axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primgraph.errors import ShapeError
from primgraph.ir.graph import Value
from primgraph.ir.primitive import Primitive
from primgraph.ir.types import BOOL, INT64, DType, as_dtype, keep_axes
from primgraph.operators.call import public
from primgraph.operators.call_cache import decided_by_types
from primgraph.operators.elementwise.logic import (
    equal,
    greater,
    invert,
    logical_and,
    not_equal,
    truth,
    where,
)
from primgraph.operators.handle import ArrayLike, Axes
from primgraph.operators.index.indexing import take_along_axis
from primgraph.operators.promotion import (
    axes_of,
    axis_of,
    convert_dtype,
    lift,
    none_of_no_axes,
    require_flag,
)
from primgraph.operators.shape.shaping import permute_axes, reshape_to
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import parts
from primgraph.primitives import reductions as p


def keep_reduced_axes(
    result: Variable, x: Variable, axes: tuple[int, ...], keepdims: bool
) -> Variable:
    """Return `result` of a reduction over `axes`, with those as axes of size one if `keepdims`."""
    if not require_flag("keepdims", keepdims):
        return result
    return reshape_to(result, keep_axes(x.shape, axes))


def summed_dtype(dtype: DType) -> DType:
    """Return the dtype in which NumPy sums: 64 bits for small integers and booleans."""
    return as_dtype(np.add.reduce(np.zeros(0, dtype)).dtype)


def _reduce_axes(
    name: str, op: Primitive[Value], x: ArrayLike, axis: Axes, keepdims: bool, dtype: Any
) -> Variable:
    value = lift(x)
    wanted = summed_dtype(value.dtype) if dtype is None else as_dtype(dtype)
    value = convert_dtype(value, wanted)
    axes = axes_of(name, value, none_of_no_axes(value, axis))
    result = emit(op, value, axes=axes) if axes else value
    return keep_reduced_axes(result, value, axes, keepdims)


@public
@decided_by_types
def sum(x: ArrayLike, axis: Axes = None, keepdims: bool = False, *, dtype: Any = None) -> Variable:
    """Return the sum over `axis`, or over all axes.

    Booleans and integers are summed in 64 bits, as in NumPy, unless `dtype` is given; in dtype bool
    the sum is whether any is nonzero. Raises `ShapeError` for missing or repeated axes.

    >>> pg.sum([[1.0, 2.0], [3.0, 4.0]], axis=0)
    tensor([4., 6.])
    """
    if dtype is not None and as_dtype(dtype) == BOOL:
        return any(x, axis, keepdims)
    return _reduce_axes("sum", p.reduce_sum, x, axis, keepdims, dtype)


@public
@decided_by_types
def prod(x: ArrayLike, axis: Axes = None, keepdims: bool = False, *, dtype: Any = None) -> Variable:
    """Compute the product over `axis`, or over all axes; its derivative is right at zeros too.

    Booleans and integers are multiplied in 64 bits, as in NumPy, unless `dtype` is given; in dtype
    bool the product is whether all are nonzero. Raises `ShapeError` for missing or repeated axes.

    >>> pg.prod([2.0, 3.0])
    tensor(6.)
    """
    if dtype is not None and as_dtype(dtype) == BOOL:
        return all(x, axis, keepdims)
    return _reduce_axes("prod", p.reduce_prod, x, axis, keepdims, dtype)


def _extremum(
    name: str, op: Primitive[Value], x: ArrayLike, axis: Axes, keepdims: bool
) -> Variable:
    value = lift(x)
    axes = axes_of(name, value, none_of_no_axes(value, axis))
    if 0 in (value.shape[a] for a in axes):
        raise ShapeError(f"{name} of {value.type} over axes {axes}: there are no elements")
    if value.type.is_complex and axes:
        return keep_reduced_axes(_complex_extremum(op, value, axes), value, axes, keepdims)
    result = emit(op, value, axes=axes) if axes else value
    return keep_reduced_axes(result, value, axes, keepdims)


def _complex_extremum(op: Primitive[Value], x: Variable, axes: tuple[int, ...]) -> Variable:
    """Return the extremum over axes of complex numbers, which is the first of equal ones."""
    rest = tuple(a for a in range(x.ndim) if a not in axes)
    shape = tuple(x.shape[a] for a in rest)
    rows = reshape_to(permute_axes(x, rest + axes), (*shape, math.prod(x.shape[a] for a in axes)))
    at = _complex_position(op, rows, len(rest))
    found = take_along_axis(rows, reshape_to(at, (*shape, 1)), len(rest))
    return reshape_to(found, shape)


def _complex_position(op: Primitive[Value], x: Variable, axis: int) -> Variable:
    """Return the index of the first extremum along an axis of complex numbers, or of a NaN.

    They are compared by their real parts, or their imaginary parts if those are equal.
    """
    over, kept = (axis,), keep_axes(x.shape, (axis,))
    real, imaginary = emit(parts.real, x), emit(parts.imag, x)
    tied = equal(real, reshape_to(emit(op, real, axes=over), kept))
    among = where(tied, imaginary, -math.inf if op is p.reduce_max else math.inf)
    found = logical_and(tied, equal(imaginary, reshape_to(emit(op, among, axes=over), kept)))
    unknown = not_equal(x, x)
    chosen = where(any(unknown, axis, keepdims=True), unknown, found)
    return emit(p.argmax, chosen, axis=axis)


@public
@decided_by_types
def max(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Variable:
    """Return the largest element over `axis`, or of all; NaN if there is one.

    Tied elements share the derivative evenly. Raises `ShapeError` without elements.

    >>> pg.max([[1.0, 5.0], [3.0, 2.0]], axis=1)
    tensor([5., 3.])
    """
    return _extremum("max", p.reduce_max, x, axis, keepdims)


@public
@decided_by_types
def min(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Variable:
    """Return the smallest element over `axis`, or of all; NaN if there is one.

    Tied elements share the derivative evenly. Raises `ShapeError` without elements.

    >>> pg.min([[1.0, 5.0], [3.0, 2.0]], axis=1)
    tensor([1., 2.])
    """
    return _extremum("min", p.reduce_min, x, axis, keepdims)


def _position(
    name: str, op: Primitive[Value], x: ArrayLike, axis: int | None, keepdims: bool
) -> Variable:
    value = lift(x)
    axis = none_of_no_axes(value, axis)
    axes = axes_of(name, value, None) if axis is None else (axis_of(name, value, axis),)
    along = reshape_to(value, (value.size,)) if axis is None else value
    number = 0 if axis is None else axes[0]
    if along.shape[number] == 0:
        raise ShapeError(f"{name} of {value.type}: there are no elements")
    if value.type.is_complex:
        extremum = p.reduce_max if op is p.argmax else p.reduce_min
        return keep_reduced_axes(_complex_position(extremum, along, number), value, axes, keepdims)
    return keep_reduced_axes(emit(op, along, axis=number), value, axes, keepdims)


@public
@decided_by_types
def argmax(x: ArrayLike, axis: int | None = None, keepdims: bool = False) -> Variable:
    """Return the index of the first largest element along `axis`, or in the flattened array.

    A NaN counts as maximum. Raises `ShapeError` without elements.

    >>> pg.argmax([1.0, 5.0, 2.0])
    tensor(1, dtype=int64)
    """
    return _position("argmax", p.argmax, x, axis, keepdims)


@public
@decided_by_types
def argmin(x: ArrayLike, axis: int | None = None, keepdims: bool = False) -> Variable:
    """Return the index of the first smallest element along `axis`, or in the flattened array.

    A NaN counts as minimum. Raises `ShapeError` without elements.

    >>> pg.argmin([1.0, 5.0, 2.0])
    tensor(0, dtype=int64)
    """
    return _position("argmin", p.argmin, x, axis, keepdims)


@public
@decided_by_types
def cumsum(x: ArrayLike, axis: int | None = None, *, dtype: Any = None) -> Variable:
    """Compute the running sum along `axis`, or over the flattened array; dtypes are as for `sum`.

    Element `i` is the sum of the elements up to and including `i`; in dtype bool, whether one of
    them is nonzero. Raises `ShapeError` for an axis that `x` lacks.

    >>> pg.cumsum([1.0, 2.0, 3.0])
    tensor([1., 3., 6.])
    """
    value = lift(x)
    wanted = summed_dtype(value.dtype) if dtype is None else as_dtype(dtype)
    if wanted == BOOL:
        return greater(cumsum(truth(value), axis), 0)
    value = convert_dtype(value, wanted)
    if none_of_no_axes(value, axis) is None:
        return emit(p.cumsum, reshape_to(value, (value.size,)), axis=0, reverse=False)
    return emit(p.cumsum, value, axis=axis_of("cumsum", value, axis), reverse=False)


@public
def count_nonzero(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Variable:
    """Count the nonzero elements over `axis`, or of all, as int64.

    Raises `ShapeError` for missing or repeated axes.

    >>> pg.count_nonzero([0.0, 5.0, 2.0])
    tensor(2, dtype=int64)
    """
    return _reduce_axes("count_nonzero", p.reduce_sum, truth(x), axis, keepdims, INT64)


@public
@decided_by_types
def any(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Variable:
    """Return whether an element over `axis`, or of all, differs from zero; false if there are none.

    The result is boolean; NaN is nonzero. Raises `ShapeError` for missing or repeated axes.

    >>> pg.any([True, False])
    tensor(True, dtype=bool)
    """
    return greater(_reduce_axes("any", p.reduce_sum, truth(x), axis, keepdims, INT64), 0)


@public
@decided_by_types
def all(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Variable:
    """Return whether all elements over `axis`, or all, differ from zero; true if there are none.

    The result is boolean; NaN is nonzero. Raises `ShapeError` for missing or repeated axes.

    >>> pg.all([True, False])
    tensor(False, dtype=bool)
    """
    zeros = invert(truth(x))
    return invert(greater(_reduce_axes("all", p.reduce_sum, zeros, axis, keepdims, INT64), 0))
