"""Weighted averages, covariances, ranges, and statistics without NaN."""

from __future__ import annotations

import math
from typing import Any

from primgraph.errors import ShapeError
from primgraph.ir.types import COMPLEX128, FLOAT64, as_axis, real_dtype
from primgraph.operators.call import public
from primgraph.operators.elementwise.arithmetic import clip, multiply, subtract
from primgraph.operators.elementwise.elementary import sqrt
from primgraph.operators.elementwise.logic import isnan, logical_not, where
from primgraph.operators.handle import ArrayLike, Axes
from primgraph.operators.promotion import (
    axes_of,
    broadcast_to_shape,
    convert_dtype,
    entries_of,
    fractional,
    lift,
    require_flag,
    require_integer,
    require_number,
)
from primgraph.operators.reduce.reductions import all, argmax, argmin, max, min, sum
from primgraph.operators.reduce.statistics import mean, narrow, norm, squares, wide
from primgraph.operators.shape.creation import full
from primgraph.operators.shape.joining import concatenate, diagonal
from primgraph.operators.shape.shaping import permute_axes, reshape_to
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import parts


@public
def ptp(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Variable:
    """Return the largest element over `axis`, or of all, less the smallest.

    Raises `ShapeError` for axes that `x` lacks and for no elements.

    >>> pg.ptp([1.0, 5.0])
    tensor(4.)
    """
    return subtract(max(x, axis, keepdims), min(x, axis, keepdims))


@public
def average(
    x: ArrayLike,
    axis: Axes = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """Return the mean over `axis`, or of all, in which elements count by `weights`.

    The weights have the shape of `x`, or of the axes in the given order. With `returned`, the sum
    of the weights is the second of two results. Raises `ShapeError` for weights of another shape.

    >>> pg.average([1.0, 4.0], weights=[3.0, 1.0])
    tensor(1.75)
    """
    value = lift(x)
    axes = axes_of("average", value, axis)
    order = axes if axis is None else tuple(as_axis(a, value.ndim) for a in entries_of(axis))
    if weights is None:
        found = mean(value, axes, keepdims)
        total = full((), math.prod(value.shape[a] for a in axes), found.dtype)
    else:
        count = _align_weights(value, lift(weights), order, axis is None)
        dtype = fractional(value, count) if value.type.is_inexact else FLOAT64
        count = convert_dtype(count, dtype)
        total = sum(count, axes, keepdims)
        found = sum(multiply(convert_dtype(value, dtype), count), axes, keepdims) / total
    if not require_flag("returned", returned):
        return found
    return found, broadcast_to_shape(total, found.shape)


def _align_weights(x: Variable, weights: Variable, axes: tuple[int, ...], of_all: bool) -> Variable:
    """Broadcast the weights of `axes`, in this order, to the elements."""
    if weights.shape == x.shape:
        return weights
    extents = tuple(x.shape[a] for a in axes)
    if of_all or weights.shape != extents:
        raise ShapeError(
            f"average of {x.type} over axes {axes}: weights {weights.type} have neither the shape "
            "of the array nor that of the axes"
        )
    thin = tuple(n if i in axes else 1 for i, n in enumerate(x.shape))
    ordered = permute_axes(weights, tuple(sorted(range(len(axes)), key=axes.__getitem__)))
    return broadcast_to_shape(reshape_to(ordered, thin), x.shape)


@public
def cov(
    x: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
) -> Variable:
    """Return the covariances of the rows of a matrix, or of its columns if not `rowvar`.

    A vector counts as one row; the rows of `y` are appended to those of `x`. Sums of products are
    divided by `n - ddof`, where `ddof` is 1 or, with `bias`, 0. Observations count `fweights`
    times, weighted by `aweights`. The result is float64. Raises `ShapeError` for more than two
    axes.

    >>> pg.cov([[1.0, 3.0], [2.0, 6.0]])
    tensor([[2., 4.],
            [4., 8.]])
    """
    rows = _variables(x, rowvar)
    if y is not None:
        rows = concatenate([rows, _variables(y, rowvar)], 0)
    lost = (0 if bias else 1) if ddof is None else require_integer("ddof", ddof)
    weights = _weights(rows, fweights, aweights)
    if weights is None:
        centered = rows - mean(rows, 1, True)
        divisor = float(rows.shape[1] - lost)
        found = centered @ _conjugate(centered).T / _positive(divisor)
    else:
        total = sum(weights)
        centered = rows - sum(rows * weights, 1, True) / total
        left = total - float(lost)
        if aweights is not None and lost:
            by = lift(aweights)
            left = total - lost * sum(weights * by) / total
        freedom = where(left > 0, left, 0.0)
        found = (centered * weights) @ _conjugate(centered).T / freedom
    return found[0, 0] if rows.shape[0] == 1 else found


def _conjugate(x: Variable) -> Variable:
    return emit(parts.conj, x) if x.type.is_complex else x


def _positive(divisor: float) -> float:
    return divisor if divisor > 0 else 0.0


def _variables(x: ArrayLike, rowvar: bool) -> Variable:
    """Return the observations as floats, with a row for each variable."""
    value = lift(x)
    value = convert_dtype(value, COMPLEX128 if value.type.is_complex else FLOAT64)
    if value.ndim > 2:
        raise ShapeError(f"cov takes a vector or a matrix, not {value.type}")
    if value.ndim < 2:
        return reshape_to(value, (1, value.size))
    # Some write 1 and 0, as SciPy does.
    flag = bool(rowvar) if isinstance(rowvar, int) and rowvar in (0, 1) else rowvar
    return value if require_flag("rowvar", flag) else value.T


def _weights(
    rows: Variable, fweights: ArrayLike | None, aweights: ArrayLike | None
) -> Variable | None:
    given = [convert_dtype(lift(w), rows.dtype) for w in (fweights, aweights) if w is not None]
    for weights in given:
        if weights.shape != rows.shape[1:]:
            raise ShapeError(f"cov: weights {weights.type} are not one for each observation")
    if not given:
        return None
    return given[0] if len(given) == 1 else multiply(*given)


@public
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True) -> Variable:
    """Return the coefficients of correlation of the rows of a matrix, or of its columns; see `cov`.

    >>> pg.corrcoef([[1.0, 3.0], [2.0, 6.0]]).numpy().round(4)
    array([[1., 1.],
           [1., 1.]])
    """
    found = cov(x, y, rowvar)
    if found.ndim == 0:
        return found / found
    variances = diagonal(found)
    spread = sqrt(emit(parts.real, variances) if found.type.is_complex else variances)
    ratio = found / spread[:, None] / spread[None, :]
    if not found.type.is_complex:
        return clip(ratio, -1.0, 1.0)
    halves = [clip(emit(part, ratio), -1.0, 1.0) for part in (parts.real, parts.imag)]
    return emit(parts.complex_, *halves)


def _replace_nan(x: Variable, number: float) -> Variable:
    """Return `x` with a number for NaN, and with both parts of it for complex NaN."""
    filler = complex(number, number) if x.type.is_complex else number
    return where(isnan(x), filler, x)


def _with_nan(found: Variable, x: Variable, axis: Axes, keepdims: bool) -> Variable:
    """Return `found`, with NaN where all elements are NaN."""
    return where(all(isnan(x), axis, keepdims), math.nan, found)


@public
def nanmax(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Variable:
    """Return the largest element that is not NaN over `axis`, or of all; NaN where all are.

    >>> pg.nanmax([1.0, np.nan])
    tensor(1.)
    """
    value = lift(x)
    if value.dtype.kind not in "fc":
        return max(value, axis, keepdims)
    return _with_nan(max(_replace_nan(value, -math.inf), axis, keepdims), value, axis, keepdims)


@public
def nanmin(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Variable:
    """Return the smallest element that is not NaN over `axis`, or of all; NaN where all are.

    >>> pg.nanmin([1.0, np.nan])
    tensor(1.)
    """
    value = lift(x)
    if value.dtype.kind not in "fc":
        return min(value, axis, keepdims)
    return _with_nan(min(_replace_nan(value, math.inf), axis, keepdims), value, axis, keepdims)


@public
def nanargmax(x: ArrayLike, axis: int | None = None, keepdims: bool = False) -> Variable:
    """Return the index of the first largest element that is not NaN; 0 where all are.

    >>> pg.nanargmax([1.0, np.nan, 3.0])
    tensor(2, dtype=int64)
    """
    value = lift(x)
    value = _replace_nan(value, -math.inf) if value.dtype.kind in "fc" else value
    return argmax(value, axis, keepdims)


@public
def nanargmin(x: ArrayLike, axis: int | None = None, keepdims: bool = False) -> Variable:
    """Return the index of the first smallest element that is not NaN; 0 where all are.

    >>> pg.nanargmin([1.0, np.nan, 3.0])
    tensor(0, dtype=int64)
    """
    value = lift(x)
    value = _replace_nan(value, math.inf) if value.dtype.kind in "fc" else value
    return argmin(value, axis, keepdims)


def _count_non_nan(x: Variable, axis: Axes, keepdims: bool) -> Variable:
    """Return the number of elements that are not NaN, in the dtype of `x` or of its parts."""
    return sum(convert_dtype(logical_not(isnan(x)), real_dtype(x.dtype)), axis, keepdims)


@public
def nanmean(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Variable:
    """Return the mean of the elements that are not NaN over `axis`, or of all; NaN where all are.

    float16 is summed in float32; integers give float64.

    >>> pg.nanmean([1.0, np.nan, 3.0])
    tensor(2.)
    """
    value = lift(x)
    elements = wide(value)
    total = sum(_replace_nan(elements, 0.0), axis, keepdims)
    return narrow(total / _count_non_nan(elements, axis, keepdims), value)


def _deviations(
    name: str, x: ArrayLike, axis: Axes, keepdims: bool, ddof: float
) -> tuple[Variable, Variable, Variable]:
    """Return deviations from the mean, with 0 for NaN; the divisor of their squares; and the
    array."""
    value = lift(x)
    elements = wide(value)
    axes = axes_of(name, value, axis)
    center = sum(_replace_nan(elements, 0.0), axes, True) / _count_non_nan(elements, axes, True)
    away = where(isnan(elements), 0.0, elements - center)
    count = _count_non_nan(elements, axes, keepdims) - require_number("ddof", ddof)
    return away, where(count > 0, count, math.nan), value


@public
def nanvar(x: ArrayLike, axis: Axes = None, keepdims: bool = False, *, ddof: float = 0) -> Variable:
    """Return the variance of the elements that are not NaN, with divisor `n - ddof`; see `var`.

    It is NaN if at most `ddof` elements remain.

    >>> pg.nanvar([1.0, np.nan, 3.0])
    tensor(1.)
    """
    away, divisor, value = _deviations("nanvar", x, axis, keepdims, ddof)
    return narrow(sum(squares(away), axis, keepdims) / divisor, value)


@public
def nanstd(x: ArrayLike, axis: Axes = None, keepdims: bool = False, *, ddof: float = 0) -> Variable:
    """Return the standard deviation of the elements that are not NaN; see `nanvar` and `std`.

    >>> pg.nanstd([1.0, np.nan, 3.0])
    tensor(1.)
    """
    away, divisor, value = _deviations("nanstd", x, axis, keepdims, ddof)
    return narrow(norm(away, axis=axis, keepdims=keepdims) / sqrt(divisor), value)
