"""nanmedian, nanquantile, nancumprod."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.types import FLOAT64, INT64, as_axis, keep_axes
from primgraph.operators.call import public
from primgraph.operators.elementwise.arithmetic import clip, floor
from primgraph.operators.elementwise.logic import (
    equal,
    greater,
    greater_equal,
    isnan,
    logical_not,
    where,
)
from primgraph.operators.handle import ArrayLike, Axes
from primgraph.operators.index.indexing import take_along_axis
from primgraph.operators.index.quantiles import (
    METHODS,
    OF_ELEMENTS,
    place_of,
    quantile_by_weight,
    weights_of,
)
from primgraph.operators.promotion import array_of, convert_dtype, lift, require_flag
from primgraph.operators.reduce.cumulative import cumprod
from primgraph.operators.reduce.reductions import sum
from primgraph.operators.shape.creation import astype
from primgraph.operators.shape.joining import stack
from primgraph.operators.shape.shaping import permute_axes, reshape_to
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import sorting


@public
def nancumprod(x: ArrayLike, axis: int | None = None, *, dtype: Any = None) -> Variable:
    """Compute the running product along `axis`, or over the flattened array; NaN counts as 1.

    >>> pg.nancumprod([1.0, np.nan, 3.0])
    tensor([1., 1., 3.])
    """
    value = lift(x)
    value = where(isnan(value), 1, value) if value.type.is_inexact else value
    return cumprod(value, axis, dtype=dtype)


def _middle_of_rows(ordered: Variable, n: Variable) -> Variable:
    """Return the middle element of each row, or the mean of two; see `_quantile_of_rows`."""
    lower: Any = astype(floor(where(greater(n, 0), n - 1.0, 0.0) / 2.0), INT64)
    upper = astype(floor(n / 2.0), INT64)
    low, high = (take_along_axis(ordered, p, -1) for p in (lower, upper))
    return where(equal(lower, upper), low, low * 0.5 + high * 0.5)


def _quantile_of_rows(ordered: Variable, n: Variable, q: Any, method: str) -> Variable:
    """Return a quantile of each row of sorted elements, the last of which may be NaN."""
    last = where(greater(n, 0), n - 1.0, 0.0)
    place = clip(place_of(n, q, method), 0.0, last)
    below = floor(place)
    lower: Any = astype(below, INT64)
    upper = astype(where(greater(below + 1.0, last), last, below + 1.0), INT64)
    part = convert_dtype(place - below, ordered.dtype)
    low, high = (take_along_axis(ordered, p, -1) for p in (lower, upper))
    gap = where(equal(part, 0), 0, high - low)
    # Interpolate from the nearer element, like NumPy.
    near = high - gap * (1 - part)
    return where(greater_equal(part, 0.5), near, low + gap * part)


def _numbers(name: str, q: Any) -> tuple[tuple[int, ...], list[Any]]:
    """Return the shape of `q`, and its elements, which are variables if `q` is."""
    given = q if isinstance(q, Variable) else array_of(q)
    if given.dtype.kind not in "biuf":
        raise ArgumentError(f"{name} takes real numbers as q, not those of {given.dtype}")
    if isinstance(given, Variable):
        flat = reshape_to(convert_dtype(given, FLOAT64), (given.size,))
        return given.shape, [flat[i] for i in range(given.size)]
    numbers = given.astype(np.float64)
    if numbers.size and not (np.all(numbers >= 0) and np.all(numbers <= 1)):
        raise ArgumentError(f"{name}: quantiles lie between 0 and 1, percentiles below 100")
    return numbers.shape, numbers.ravel().tolist()


def _nan_quantile(
    name: str,
    x: ArrayLike,
    q: Any,
    axis: Axes,
    method: str,
    keepdims: bool,
    weights: ArrayLike | None = None,
) -> Variable:
    if method not in METHODS:
        raise ArgumentError(f"{name} takes no method {method!r:.40}", hint=", ".join(METHODS))
    shape_of_q, numbers = _numbers(name, q)
    value = lift(x)
    complete = value.type.is_float or (name == "nanmedian" and value.type.is_complex)
    value = value if complete else convert_dtype(value, FLOAT64)
    entries = range(value.ndim) if axis is None else axis if isinstance(axis, Sequence) else [axis]
    axes = tuple(sorted(as_axis(a, value.ndim) for a in entries))
    others = tuple(a for a in range(value.ndim) if a not in axes)
    shape = tuple(value.shape[a] for a in others)
    count = math.prod(value.shape[a] for a in axes)
    if type(count) is int and count == 0:
        raise ShapeError(f"{name} over no elements")
    flat = reshape_to(permute_axes(value, (*others, *axes)), (*shape, count))
    ordered = emit(sorting.sort, flat, axis=len(shape))
    missing = isnan(flat)
    if weights is not None:
        parts = where(missing, 0.0, weights_of(value, axes, weights))
        found = [quantile_by_weight(name, flat, ordered, parts, q, method) for q in numbers]
    else:
        n = sum(convert_dtype(logical_not(missing), FLOAT64), -1, True)
        if name == "nanmedian":
            found = [_middle_of_rows(ordered, n)]
        else:
            found = [_quantile_of_rows(ordered, n, q, method) for q in numbers]
    kept = keep_axes(value.shape, axes) if require_flag("keepdims", keepdims) else shape
    lines = [reshape_to(f, kept) for f in found]
    if shape_of_q == ():
        return lines[0]
    result = reshape_to(stack(lines), (*shape_of_q, *kept))
    return result if method in OF_ELEMENTS else convert_dtype(result, FLOAT64)


@public
def nanquantile(
    x: ArrayLike,
    q: Any,
    axis: Axes = None,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Variable:
    """Return the quantiles `q` of what is not NaN over `axis`, or of all; NaN where all are.

    Axes of `q`, numbers or variables from 0 to 1, come first; `method` is one of NumPy's, and
    "inverted_cdf" with `weights`. Raises `ShapeError` for no elements and for other weights,
    `ArgumentError` for another method. See `quantile`.

    >>> pg.nanquantile([1.0, np.nan, 3.0], 0.5)
    tensor(2.)
    """
    return _nan_quantile("nanquantile", x, q, axis, method, keepdims, weights)


@public
def nanpercentile(
    x: ArrayLike,
    q: Any,
    axis: Axes = None,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Variable:
    """Return the quantiles `q / 100` of what is not NaN; see `nanquantile`.

    >>> pg.nanpercentile([1.0, np.nan, 3.0], 50.0)
    tensor(2.)
    """
    parts = (q if isinstance(q, Variable) else array_of(q)) / 100
    return _nan_quantile("nanpercentile", x, parts, axis, method, keepdims, weights)


@public
def nanmedian(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Variable:
    """Return the median of what is not NaN over `axis`, or of all; see `nanquantile`.

    >>> pg.nanmedian([1.0, np.nan, 3.0])
    tensor(2.)
    """
    return _nan_quantile("nanmedian", x, 0.5, axis, "linear", keepdims)
