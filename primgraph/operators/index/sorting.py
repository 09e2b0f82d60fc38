"""Sorting, searching and order statistics. Sorts are stable.

A sorted array has the derivatives of its elements; positions have none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from primgraph.errors import ArgumentError, ShapeError, UnknownSizeError
from primgraph.ir.dims import Dim
from primgraph.ir.types import FLOAT64, as_axis, keep_axes
from primgraph.operators.call import handle_operator, public
from primgraph.operators.elementwise.arithmetic import ceil, clip, floor, minimum, remainder, round
from primgraph.operators.elementwise.logic import equal, isnan, logical_and, where
from primgraph.operators.handle import ArrayLike, Axes
from primgraph.operators.index.indexing import take, take_along_axis
from primgraph.operators.promotion import (
    axis_of,
    convert_dtype,
    lift,
    require_flag,
    require_integer,
    result_dtype,
)
from primgraph.operators.shape.creation import astype, stop_gradient
from primgraph.operators.shape.joining import flip, slice_axis
from primgraph.operators.shape.shaping import permute_axes, reshape_to
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import sorting


def _line(name: str, x: ArrayLike, axis: int | None) -> tuple[Variable, int]:
    """Return the array and its axis; the flattened array without an axis."""
    value = lift(x)
    if axis is None:
        return reshape_to(value, (value.size,)), 0
    return value, axis_of(name, value, axis)


@public
def sort(
    x: ArrayLike, axis: int | None = -1, kind: str | None = None, *, stable: bool | None = None
) -> Variable:
    """Sort the elements along `axis` in ascending order, NaNs last; all without an axis.

    `kind` and `stable` have no effect: the sort is stable, and each of equal elements has its own
    derivative. Raises `ShapeError` for an axis that `x` lacks.

    >>> pg.sort([3.0, 1.0, 2.0])
    tensor([1., 2., 3.])
    """
    value, number = _line("sort", x, axis)
    return emit(sorting.sort, value, axis=number)


@public
def argsort(
    x: ArrayLike, axis: int | None = -1, kind: str | None = None, *, stable: bool | None = None
) -> Variable:
    """Return positions along `axis`, as int64, of the elements in ascending order; see `sort`.

    >>> pg.argsort([3.0, 1.0, 2.0])
    tensor([1, 2, 0], dtype=int64)
    """
    value, number = _line("argsort", x, axis)
    return emit(sorting.argsort, value, axis=number)


@public
def partition(x: ArrayLike, kth: int | Sequence[int], axis: int | None = -1) -> Variable:
    """Return the elements along `axis`, element `kth` where it is when all are sorted.

    Smaller ones are before it and larger ones after it, here in ascending order. Raises
    `ShapeError` for an axis that `x` lacks, `ArgumentError` for positions out of bounds.

    >>> pg.partition([3.0, 1.0, 2.0], 1)[1]
    tensor(2.)
    """
    value, number = _line("partition", x, axis)
    _require_within("partition", kth, value.shape[number])
    return emit(sorting.sort, value, axis=number)


@public
def argpartition(x: ArrayLike, kth: int | Sequence[int], axis: int | None = -1) -> Variable:
    """Return positions along `axis` of what `partition` gives, as int64.

    >>> pg.argpartition([3.0, 1.0, 2.0], 1)[1]
    tensor(2, dtype=int64)
    """
    value, number = _line("argpartition", x, axis)
    _require_within("argpartition", kth, value.shape[number])
    return emit(sorting.argsort, value, axis=number)


def _require_within(name: str, kth: Any, extent: int) -> None:
    for k in kth if isinstance(kth, Sequence | np.ndarray) else [kth]:
        number = require_integer(name, k)
        if type(extent) is int and not -extent <= number < extent:
            raise ArgumentError(f"{name}: there is no element {number} among {extent}")


@public
def lexsort(keys: Sequence[ArrayLike] | ArrayLike, axis: int = -1) -> Variable:
    """Return positions along `axis` of elements sorted by several keys, the last one first.

    Raises `ShapeError` for keys of different shapes, `ArgumentError` if there are none.

    >>> pg.lexsort([[3, 1, 2]])
    tensor([1, 2, 0], dtype=int64)
    """
    given = [lift(k) for k in keys]  # type: ignore[union-attr]
    if not given:
        raise ArgumentError("lexsort takes at least one key")
    if any(k.shape != given[0].shape for k in given):
        raise ShapeError(f"lexsort takes keys of one shape, not {[str(k.type) for k in given]}")
    number = axis_of("lexsort", given[0], axis)
    order = emit(sorting.argsort, given[0], axis=number)
    for key in given[1:]:
        sorted_so_far = emit(sorting.reorder, key, order, axis=number)
        again = emit(sorting.argsort, sorted_so_far, axis=number)
        order = emit(sorting.reorder, order, again, axis=number)
    return order


@public
def searchsorted(
    x: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None
) -> Variable:
    """Return the positions of the elements of `v` in the ascending vector `x`, as int64.

    These are before equal elements, or after them if `side` is "right". `sorter` has the positions
    that sort `x`. Raises `ShapeError` if `x` is not a vector, `ArgumentError` for another side.

    >>> pg.searchsorted([1.0, 2.0, 3.0], 2.5)
    tensor(2, dtype=int64)
    """
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted takes side 'left' or 'right', not {side!r:.40}")
    dtype = result_dtype(x, v)
    vector, value = lift(x, dtype), lift(v, dtype)
    if vector.ndim != 1:
        raise ShapeError(f"searchsorted takes a vector in ascending order, not {vector.type}")
    if sorter is not None:
        vector = take(vector, sorter)
    return emit(sorting.searchsorted, vector, value, right=side == "right")


@public
def digitize(x: ArrayLike, bins: Any, right: bool = False) -> Variable:
    """Return the bin number of each element, as int64, by the ascending or descending `bins`.

    Bin `i` has `bins[i - 1] <= x < bins[i]`; if `right`, it includes its upper bound instead of its
    lower one. Raises `ShapeError` for bins that are not a vector, `ArgumentError` for known bins
    that are not monotonic; others are assumed to be.

    >>> pg.digitize([0.5, 1.5], [0.0, 1.0, 2.0])
    tensor([1, 2], dtype=int64)
    """
    side = "left" if right else "right"
    if not isinstance(bins, Variable):
        steps = np.diff(np.asarray(bins))
        if np.all(steps >= 0):
            return searchsorted(bins, x, side)
        if not np.all(steps <= 0):
            raise ArgumentError("digitize takes bins in ascending or descending order")
    edges = lift(bins)
    turned = edges.shape[0] - searchsorted(flip(edges, 0), x, side)
    if not isinstance(bins, Variable):
        return turned
    first, last = (slice_axis(edges, 0, i, 1) for i in (0, edges.shape[0] - 1))
    return where(first > last, turned, searchsorted(edges, x, side))


class TopK(NamedTuple):
    """Largest elements in descending order, and their positions."""

    values: Variable
    indices: Variable


@handle_operator
def _top_k(x: ArrayLike, k: int, axis: int) -> tuple[Variable, Variable]:
    value = lift(x)
    number = axis_of("top_k", value, axis)
    count, extent = require_integer("top_k", k), value.shape[number]
    if count < 0 or (type(extent) is int and count > extent):
        raise ArgumentError(f"top_k of {value.type}: there are no {count} elements along {axis}")
    # To keep the first of equal elements first, the order is reversed before and after sorting.
    order = emit(sorting.argsort, flip(value, number), axis=number)
    indices = slice_axis(extent - 1 - flip(order, number), number, 0, count)
    return take_along_axis(value, indices, number), indices


@public
def top_k(x: ArrayLike, k: int, axis: int = -1) -> TopK:
    """Return the `k` largest elements along `axis` in descending order, and their int64 positions.

    Of equal elements the first comes first; NaNs are the largest. Raises `ShapeError` for an axis
    that `x` lacks, `ArgumentError` if there are less than `k`.

    >>> pg.top_k([3.0, 1.0, 2.0], 2)
    TopK(values=tensor([3., 2.]), indices=tensor([0, 2], dtype=int64))
    """
    return TopK(*_top_k(x, k, axis))


# Order statistics.

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
        return _computed_places(count, q, method)
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


def _computed_places(count: int, q: Variable, method: str) -> Variable:
    """Return the positions of quantiles that are variables, which may have derivatives."""
    place = place_of_quantile(float(count), convert_dtype(q, FLOAT64), method)
    return clip(place, 0.0, count - 1.0)


def place_of_quantile(n: Any, q: Any, method: str) -> Any:
    """Return the position of a quantile among `n` sorted elements; one of them may be a variable.

    A fraction lies between two elements.
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
    stays = logical_and(equal(half, floor(half)), equal(remainder(floor(half), 2.0), 1.0))
    return where(stays, half, floor(half) + 1.0)


def _interpolate(ordered: Variable, places: Any, count: int) -> Variable:
    """Return sorted elements at positions, by linear interpolation."""
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


def _quantile(name: str, x: ArrayLike, q: Any, axis: Axes, method: str, keepdims: bool) -> Variable:
    value = lift(x)
    if not value.type.is_float:
        value = convert_dtype(value, FLOAT64)
    entries = range(value.ndim) if axis is None else axis if isinstance(axis, Sequence) else [axis]
    axes = tuple(sorted(as_axis(a, value.ndim) for a in entries))
    others = tuple(a for a in range(value.ndim) if a not in axes)
    shape = tuple(value.shape[a] for a in others)
    count = math.prod(value.shape[a] for a in axes)
    places = _places(name, count, q, method)
    flat = reshape_to(permute_axes(value, (*others, *axes)), (*shape, count))
    ordered = emit(sorting.sort, flat, axis=len(shape))
    result = _middle(ordered, count) if name == "median" else _interpolate(ordered, places, count)
    rank = len(places.shape)
    last = slice_axis(ordered, len(shape), count - 1, 1)
    bad = isnan(reshape_to(last, (*shape, *(1 for _ in range(rank)))))
    result = where(bad, math.nan, result)
    result = permute_axes(result, (*range(len(shape), result.ndim), *range(len(shape))))
    if rank and value.dtype != FLOAT64:
        result = convert_dtype(result, FLOAT64)
    if require_flag("keepdims", keepdims):
        result = reshape_to(result, (*places.shape, *keep_axes(value.shape, axes)))
    return result


@public
def quantile(
    x: ArrayLike, q: Any, axis: Axes = None, method: str = "linear", keepdims: bool = False
) -> Variable:
    """Return the quantiles `q` from 0 to 1, over `axis`, or of all; axes of `q` come first.

    `method` is one of NumPy's thirteen; those that interpolate accept variables as `q`, too. The
    result is NaN if an element is NaN. The derivative is that of the elements between which a
    quantile lies. Raises `ShapeError` without elements, `ArgumentError` for another method,
    `UnknownSizeError` for a symbolic number of elements.

    >>> pg.quantile([1.0, 2.0, 3.0], 0.5)
    tensor(2.)
    """
    return _quantile("quantile", x, q, axis, method, keepdims)


@public
def percentile(
    x: ArrayLike, q: Any, axis: Axes = None, method: str = "linear", keepdims: bool = False
) -> Variable:
    """Return the quantiles `q / 100`; see `quantile`.

    >>> pg.percentile([1.0, 2.0, 3.0], 50.0)
    tensor(2.)
    """
    parts = q / 100 if isinstance(q, Variable) else _numbers("percentile", q) / 100
    return _quantile("percentile", x, parts, axis, method, keepdims)


@public
def median(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Variable:
    """Return the element in the middle, or the mean of the two there; see `quantile`.

    >>> pg.median([3.0, 1.0, 2.0])
    tensor(2.)
    """
    return _quantile("median", x, 0.5, axis, "linear", keepdims)
