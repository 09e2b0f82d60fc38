"""Order statistics: quantiles, percentiles and the median."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, ShapeError, UnknownSizeError
from primgraph.ir.dims import Dim
from primgraph.ir.types import FLOAT64, DType, as_axis, keep_axes
from primgraph.operators.call import public
from primgraph.operators.elementwise.arithmetic import ceil, clip, floor, minimum, remainder, round
from primgraph.operators.elementwise.logic import equal, isnan, where
from primgraph.operators.handle import ArrayLike, Axes
from primgraph.operators.index.indexing import take, take_along_axis
from primgraph.operators.index.sorting import argsort
from primgraph.operators.lazy_loading import functions
from primgraph.operators.promotion import (
    broadcast_to_shape,
    convert_dtype,
    lift,
    require_flag,
)
from primgraph.operators.shape.creation import astype, stop_gradient
from primgraph.operators.shape.joining import slice_axis
from primgraph.operators.shape.shaping import permute_axes, reshape_to
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import sorting

METHODS = (
    *("inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf"),
    *("hazen", "weibull", "linear", "median_unbiased", "normal_unbiased"),
    *("lower", "higher", "midpoint", "nearest"),
)


def _places(name: str, count: int, q: Any, method: str) -> Any:
    """Return the positions of quantiles among sorted elements; fractions lie between two of them.

    The quantiles of 0, 1, 2, ... are the positions for all arrays, by any method.
    """
    if method not in METHODS:
        raise ArgumentError(f"{name} takes no method {method!r:.40}", hint=", ".join(METHODS))
    if type(count) is Dim:
        raise UnknownSizeError(f"{name} over {count} elements: their number has to be known")
    if count == 0:
        raise ShapeError(f"{name} over no elements")
    if isinstance(q, Variable):
        number = q if q.type.is_float else convert_dtype(q, FLOAT64)
        return clip(place_of(count, number, method), 0.0, count - 1.0)
    numbers = _numbers(name, q)
    if numbers.size and not (np.all(numbers >= 0) and np.all(numbers <= 1)):
        raise ArgumentError(f"{name}: quantiles lie between 0 and 1, percentiles below 100")
    whole: Any = np.quantile(np.arange(count, dtype=np.float64), numbers, method=method)  # type: ignore[call-overload]
    return whole


def _numbers(name: str, q: Any) -> Any:
    """Return the numbers of quantiles in float64. Raises `ArgumentError` for other objects."""
    found = np.asarray(q)
    if found.dtype.kind not in "iuf":
        raise ArgumentError(f"{name} takes numbers as q, not {q!r:.60}")
    return found.astype(np.float64)


# Parameters of R. J. Hyndman and Y. Fan, Sample quantiles in statistical packages, 1996.
PARAMETERS = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "linear": (1.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}


def place_of(n: Any, q: Any, method: str) -> Any:
    """Return the position of a quantile among `n` elements; a fraction lies between two.

    The formulas are those of R. J. Hyndman and Y. Fan, Sample quantiles in statistical packages,
    1996, and NumPy's further methods.
    """
    if method in PARAMETERS:
        alpha, beta = PARAMETERS[method]
        return n * q + (alpha - 1.0) + q * (1.0 - alpha - beta)
    straight, counted = (n - 1.0) * q, n * q - 1.0
    below = floor(counted)
    if method == "lower":
        return floor(straight)
    if method == "higher":
        return ceil(straight)
    if method == "nearest":
        return round(straight)
    if method == "midpoint":
        return (floor(straight) + ceil(straight)) * 0.5
    if method == "inverted_cdf":
        return ceil(counted)
    if method == "averaged_inverted_cdf":
        return where(equal(counted, below), below + 0.5, below + 1.0)
    # The closest element; of two equally close ones that with an even number, counted from one.
    half = counted - 0.5
    stays = equal(half, floor(half)) & equal(remainder(floor(half), 2.0), 1.0)
    return where(stays, half, floor(half) + 1.0)


def _interpolate(ordered: Variable, places: Any, count: int) -> Variable:
    """Return sorted elements at positions, by linear interpolation."""
    if not ordered.type.is_float:
        # The positions of methods that keep this dtype are whole.
        whole = places if isinstance(places, Variable) else lift(places)
        return take(ordered, astype(whole, np.int64), -1)
    if isinstance(places, Variable):
        below = stop_gradient(floor(places))
        lower: Any = astype(below, np.int64)
        upper, part = minimum(lower + 1, count - 1), convert_dtype(places - below, ordered.dtype)
        low = take(ordered, lower, -1)
        gap = where(equal(part, 0), 0, take(ordered, upper, -1) - low)
        return low + gap * part
    lower = np.floor(places).astype(np.int64)
    weight = np.asarray(places - lower, ordered.dtype)
    low = take(ordered, lower, -1)
    if not np.any(weight):
        return low
    high = take(ordered, np.minimum(lower + 1, count - 1), -1)
    # Interpolate from the nearer element, like NumPy, which matters for infinities.
    near, gap = weight >= 0.5, high - low
    if near.all():
        between = high - gap * (1 - weight)
    elif not near.any():
        between = low + gap * weight
    else:
        between = where(near, high - gap * (1 - weight), low + gap * weight)
    return between if np.all(weight) else where(weight != 0, between, low)


def _middle(ordered: Variable, count: int) -> Variable:
    """Return the middle sorted element, or the mean of the two middle ones."""
    high = take(ordered, count // 2, -1)
    return high if count % 2 else take(ordered, count // 2 - 1, -1) * 0.5 + high * 0.5


# Methods whose quantiles are elements, of the dtype of the array.
OF_ELEMENTS = ("closest_observation", "higher", "inverted_cdf", "lower", "nearest")


def _quantile_dtype(name: str, x: Variable, q: Any, method: str, rank: int) -> DType:
    """Return NumPy's dtype of quantiles: Python numbers as `q` are weak."""
    if name != "median" and method in OF_ELEMENTS:
        return x.dtype
    if isinstance(q, Variable):
        return np.result_type(x.dtype, q.dtype, np.float16)
    weights = () if type(q) in (int, float) else (np.asarray(q).dtype,)
    return np.result_type(x.dtype, *weights, 1.0)


def _rows(value: Variable, axes: tuple[int, ...]) -> Variable:
    """Return an array with the elements over `axes` in one row, behind the other axes."""
    others = tuple(a for a in range(value.ndim) if a not in axes)
    shape = tuple(value.shape[a] for a in others)
    count = math.prod(value.shape[a] for a in axes)
    return reshape_to(permute_axes(value, (*others, *axes)), (*shape, count))


def _quantile(
    name: str,
    x: ArrayLike,
    q: Any,
    axis: Axes,
    method: str,
    keepdims: bool,
    weights: ArrayLike | None = None,
) -> Variable:
    value = lift(x)
    entries = range(value.ndim) if axis is None else axis if isinstance(axis, Sequence) else [axis]
    axes = tuple(sorted(as_axis(a, value.ndim) for a in entries))
    shape = tuple(value.shape[a] for a in range(value.ndim) if a not in axes)
    count = math.prod(value.shape[a] for a in axes)
    places = _places(name, count, q, method)
    rank = len(places.shape)
    dtype = _quantile_dtype(name, value, q, method, rank)
    if not value.type.is_float and dtype != value.dtype:
        value = convert_dtype(value, FLOAT64)
    flat = _rows(value, axes)
    ordered = emit(sorting.sort, flat, axis=len(shape))
    if name == "median":
        result = _middle(ordered, count)
    elif weights is None:
        result = _interpolate(ordered, places, count)
    else:
        result = quantile_by_weight(
            name, flat, ordered, weights_of(value, axes, weights), q, method
        )
    if value.type.is_inexact:
        last = slice_axis(ordered, len(shape), count - 1, 1)
        last = reshape_to(last, (*shape, *(1 for _ in range(rank))))
        result = where(isnan(last), math.nan if value.type.is_float else last, result)
    result = permute_axes(result, (*range(len(shape), result.ndim), *range(len(shape))))
    result = convert_dtype(result, dtype)
    if require_flag("keepdims", keepdims):
        result = reshape_to(result, (*places.shape, *keep_axes(value.shape, axes)))
    return result


def weights_of(x: Variable, axes: tuple[int, ...], weights: ArrayLike) -> Variable:
    """Return the weights of each element, in rows. Raises `ShapeError` for other shapes."""
    given = lift(weights)
    if given.shape != x.shape:
        if given.shape != tuple(x.shape[a] for a in axes):
            raise ShapeError(
                f"Shape of weights must be consistent with shape of a along specified axis: "
                f"{given.type} for axes {axes} of {x.type}"
            )
        wide = tuple(x.shape[a] if a in axes else 1 for a in range(x.ndim))
        given = broadcast_to_shape(reshape_to(given, wide), x.shape)
    return _rows(convert_dtype(given, FLOAT64), axes)


def quantile_by_weight(
    name: str, flat: Variable, ordered: Variable, weights: Variable, q: Any, method: str
) -> Variable:
    """Return the first elements up to which the weights make a part `q` of their sum."""
    if method != "inverted_cdf":
        raise ArgumentError(
            f"Only method 'inverted_cdf' supports weights, and this is {name} by {method!r}"
        )
    by_size = take_along_axis(weights, argsort(stop_gradient(flat), -1), -1)
    parts = functions["cumsum"](by_size, -1)
    parts = parts / slice_axis(parts, parts.ndim - 1, parts.shape[-1] - 1, 1)
    # Elements without weight in front are no quantile, not even of 0.
    parts = functions["expand_dims"](where(equal(parts, 0), -1.0, parts), -1)
    numbers = q if isinstance(q, Variable) else _numbers(name, q)
    lower = functions["sum"](parts < numbers.reshape(-1), -2)
    found = take_along_axis(ordered, minimum(lower, ordered.shape[-1] - 1), -1)
    return reshape_to(found, (*ordered.shape[:-1], *np.shape(q)))


@public
def quantile(
    x: ArrayLike,
    q: Any,
    axis: Axes = None,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Variable:
    """Return the quantiles `q` from 0 to 1, over `axis`, or of all; axes of `q` come first.

    `method` is one of NumPy's thirteen; those that interpolate accept variables as `q`, too. The
    result is NaN if an element is NaN. The derivative is that of the elements between which a
    quantile lies. `weights`, of the shape of `x` or of its reduced axes, are taken by method
    "inverted_cdf", and have no derivative. Raises `ShapeError` without elements and for other
    weights, `ArgumentError` for another method, `UnknownSizeError` for a symbolic number of
    elements.

    >>> pg.quantile([1.0, 2.0, 3.0], 0.5)
    tensor(2.)
    >>> pg.quantile([1.0, 2.0, 3.0], 0.5, method="inverted_cdf", weights=[1.0, 1.0, 5.0])
    tensor(3.)
    """
    return _quantile("quantile", x, q, axis, method, keepdims, weights)


@public
def percentile(
    x: ArrayLike,
    q: Any,
    axis: Axes = None,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Variable:
    """Return the quantiles `q / 100`; see `quantile`.

    >>> pg.percentile([1.0, 2.0, 3.0], 50.0)
    tensor(2.)
    """
    is_weak = isinstance(q, Variable) or type(q) in (int, float)
    parts = q / 100 if is_weak else _hundredths(q)
    return _quantile("percentile", x, parts, axis, method, keepdims, weights)


def _hundredths(q: Any) -> Any:
    """Return percentiles as quantiles, in their float dtype."""
    _numbers("percentile", q)
    found = np.asarray(q)
    return found / found.dtype.type(100) if found.dtype.kind == "f" else found / 100


@public
def median(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Variable:
    """Return the element in the middle, or the mean of the two there; see `quantile`.

    >>> pg.median([3.0, 1.0, 2.0])
    tensor(2.)
    """
    return _quantile("median", x, 0.5, axis, "linear", keepdims)
