"""Sums, extremes, statistics and order along axes, with Paddle's names and arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph import linalg
from primgraph import operators as pg
from primgraph.compat.paddle.functions.rows import define_functions
from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.types import as_axis

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


_ROWS = """
sum(x, axis=None, dtype=None, keepdim=False): sum(x, axis_of(axis), keepdim, dtype=dtype)
Compute sums over `axis`. | [[1.0, 2.0], [3.0, 4.0]], axis=0 -> [4.0, 6.0]
mean(x, axis=None, keepdim=False, *, dtype=None) = average(x, axis, keepdim, dtype)
Compute means over `axis`. | [[1.0, 5.0], [3.0, 4.0]], axis=0 -> [2.0, 4.5]
prod(x, axis=None, keepdim=False, dtype=None): prod(x, axis_of(axis), keepdim, dtype=dtype)
Compute products over `axis`. | [[1.0, 2.0], [3.0, 4.0]], axis=0 -> [3.0, 8.0]
max|amax(x, axis=None, keepdim=False): max(x, axis_of(axis), keepdim)
Return the largest elements over `axis`. | [[1.0, 5.0], [3.0, 4.0]], axis=1 -> [5.0, 4.0]
min|amin(x, axis=None, keepdim=False): min(x, axis_of(axis), keepdim)
Return the smallest elements over `axis`. | [[1.0, 5.0], [3.0, 4.0]], axis=1 -> [1.0, 3.0]
argmax(x, axis=None, keepdim=False, dtype="int64") = pg.cast(pg.argmax(x, axis, keepdim), dtype)
Return the indices of the first largest elements. | [1.0, 5.0, 3.0] -> 1
argmin(x, axis=None, keepdim=False, dtype="int64") = pg.cast(pg.argmin(x, axis, keepdim), dtype)
Return the indices of the first smallest elements. | [1.0, 5.0, 3.0] -> 0
all(x, axis=None, keepdim=False): all(x, axis_of(axis), keepdim)
Return whether all elements over `axis` are nonzero. \
| [[True, False], [True, True]], axis=1 -> [False, True]
any(x, axis=None, keepdim=False): any(x, axis_of(axis), keepdim)
Return whether an element over `axis` is nonzero. \
| [[True, False], [False, False]], axis=1 -> [True, False]
count_nonzero(x, axis=None, keepdim=False): count_nonzero(x, axis_of(axis), keepdim)
Count the nonzero elements over `axis`. | [[1.0, 0.0], [3.0, 4.0]], axis=1 -> [1, 2]
var(x, axis=None, unbiased=None, keepdim=False, *, correction=1) = \
spread(pg.var, x, axis, correction if unbiased is None else unbiased, keepdim)
Compute variances, with divisor `n - 1` if `unbiased`. | [1.0, 3.0] -> 2.0
std(x, axis=None, unbiased=True, keepdim=False) = spread(pg.std, x, axis, unbiased, keepdim)
Compute standard deviations, the roots of `var`. | [1.0, 3.0], unbiased=False -> 1.0
logsumexp(x, axis=None, keepdim=False): logsumexp(x, axis_of(axis), keepdim)
Compute `log(sum(exp(x)))` over `axis`. | [0.0, 0.0] ~ 0.693
nansum(x, axis=None, dtype=None, keepdim=False): nansum(x, axis_of(axis), keepdim, dtype=dtype)
Compute sums of the elements that are no NaN. | [1.0, float("nan")] -> 1.0
nanmean(x, axis=None, keepdim=False): nanmean(x, axis_of(axis), keepdim)
Compute means of the elements that are no NaN. | [1.0, float("nan")] -> 1.0
median(x, axis=None, keepdim=False, mode="avg") = middle(x, axis, keepdim, mode, pg.median)
Return medians; with `mode` "min" the lower of two, and its index. | [1.0, 2.0, 4.0, 8.0] -> 3.0
nanmedian(x, axis=None, keepdim=False, mode="avg") = middle(x, axis, keepdim, mode, pg.nanmedian)
Return medians of the elements that are no NaN. | [1.0, float("nan")] -> 1.0
quantile(x, q, axis=None, keepdim=False, interpolation="linear") = \
of_floats(pg.quantile, x, q, axis, keepdim, interpolation)
Return quantiles; a list `q` gives one more leading axis. | [1.0, 2.0, 3.0], 0.25 -> 1.5
nanquantile(x, q, axis=None, keepdim=False, interpolation="linear") = \
of_floats(pg.nanquantile, x, q, axis, keepdim, interpolation)
Return quantiles of the elements that are no NaN. | [1.0, 2.0, float("nan")], 0.5 -> 1.5
cumsum(x, axis=None, dtype=None): cumsum(x, axis, dtype=dtype)
Compute running sums, of all elements without an `axis`. | [1.0, 2.0, 3.0] -> [1.0, 3.0, 6.0]
cumprod(x, dim=None, *, dtype=None): cumprod(x, dim, dtype=dtype)
Compute running products. | [1.0, 2.0, 3.0], dim=0 -> [1.0, 2.0, 6.0]
cummax(x, axis=None, dtype="int64") = running(pg.cummax, x, axis, dtype)
Return running maxima, and their indices. | [1.0, 3.0, 2.0] => [[1.0, 3.0, 3.0], [0, 1, 1]]
cummin(x, axis=None, dtype="int64") = running(pg.cummin, x, axis, dtype)
Return running minima, and their indices. | [1.0, 3.0, 2.0] => [[1.0, 1.0, 1.0], [0, 0, 0]]
logcumsumexp(x, axis=None, dtype=None) = \
pg.logcumsumexp(x if dtype is None else pg.cast(x, dtype), axis)
Compute logarithms of running sums of exponentials. | [0.0, 0.0] ~ [0.    0.693]
diff(x, n=1, axis=-1, prepend=None, append=None) = differences(x, n, axis, prepend, append)
Compute differences of neighbours, `n` times. | [1.0, 4.0, 9.0] -> [3.0, 5.0]
trapezoid(y, x=None, dx=None, axis=-1) = pg.sum(trapezoids(y, x, dx, axis), axis)
Integrate by the trapezoidal rule. | [1.0, 2.0, 3.0] -> 4.0
cumulative_trapezoid(y, x=None, dx=None, axis=-1) = pg.cumsum(trapezoids(y, x, dx, axis), axis)
Return the running integrals of `trapezoid`. | [1.0, 2.0, 3.0] -> [1.5, 4.0]
norm(x, p=None, axis=None, keepdim=False) = vector_or_matrix_norm(x, p, axis, keepdim)
Compute norms over `axis`, of all elements by default. | [3.0, 4.0] -> 5.0
dist(x, y, p=2) = vector_or_matrix_norm(pg.subtract(x, y), p, None, False)
Compute the norm of the difference. | [3.0, 4.0], [0.0, 0.0] -> 5.0
sort(x, axis=-1, descending=False, stable=False) = ordered(x, axis, descending)[0]
Sort along `axis`. | [3.0, 1.0, 2.0], descending=True -> [3.0, 2.0, 1.0]
argsort(x, axis=-1, descending=False, stable=False) = ordered(x, axis, descending)[1]
Return the indices that sort along `axis`. | [3.0, 1.0, 2.0] -> [1, 2, 0]
msort(input) = pg.sort(input, 0)
Sort along the first axis. | [3.0, 1.0, 2.0] -> [1.0, 2.0, 3.0]
topk(x, k, axis=None, largest=True, sorted=True) = topmost(x, k, axis, largest)
Return the `k` largest elements along `axis`, and their indices. \
| [3.0, 1.0, 2.0], 2 => [[3.0, 2.0], [0, 2]]
kthvalue(x, k, axis=None, keepdim=False) = ranked(x, k, axis, keepdim)
Return the `k`-th smallest elements along `axis`, and their indices. \
| [3.0, 1.0, 2.0], 2 => [2.0, 2]
mode(x, axis=-1, keepdim=False) = frequent(x, axis, keepdim)
Return the most frequent elements along `axis`, and their last indices. \
| [3.0, 1.0, 3.0] => [3.0, 2]
searchsorted(sorted_sequence, values, out_int32=False, right=False, *, side=None, sorter=None) = \
searched(sorted_sequence, values, out_int32, right or side == "right", sorter)
Return where to insert values so that the sequence stays sorted. | [1.0, 3.0], [2.0, 3.0] -> [1, 1]
bucketize(x, sorted_sequence, out_int32=False, right=False) = \
searched(sorted_sequence, x, out_int32, right)
Return the index of the interval of each element. | [2.0, 3.0], [1.0, 3.0] -> [1, 1]
bincount(x, weights=None, minlength=0) = weighed(x, weights, minlength)
Count how often each integer occurs. | [0, 2, 2] -> [1, 0, 2]
histogram(input, bins=100, min=0.0, max=0.0, weight=None, density=False) = \
counted(input, bins, min, max, weight, density)[0]
Count elements in intervals of equal width; those between the extremes by default. \
| [1.0, 2.0, 4.0], bins=3 -> [1, 1, 1]
histogram_bin_edges(input, bins=100, min=0.0, max=0.0) = \
counted(input, bins, min, max, None, False)[1]
Return the ends of the intervals of `histogram`. | [1.0, 2.0, 4.0], bins=3 -> [1.0, 2.0, 3.0, 4.0]
unique(x, return_index=False, return_inverse=False, return_counts=False, axis=None, \
dtype="int64", sorted=True): unique(x, return_index, return_inverse, return_counts, axis)
Return the sorted different elements. | [3, 1, 3] -> [1, 3]
unique_consecutive(x, return_inverse=False, return_counts=False, axis=None, dtype="int64") = \
runs(x, return_inverse, return_counts, axis)
Return the elements that differ from the one before. | [1, 1, 2, 1] -> [1, 2, 1]
nonzero(x, as_tuple=False) = tuple(pg.nonzero(x)) if as_tuple else pg.argwhere(x)
Return the indices of nonzero elements. | [0.0, 2.0, 3.0] -> [[1], [2]]
argwhere(input) = pg.argwhere(input)
Return the indices of nonzero elements. | [0.0, 2.0, 3.0] -> [[1], [2]]
renorm(x, p, axis, max_norm) = limited_norms(x, p, axis, max_norm)
Scale the slices along `axis` whose norms are above `max_norm`. \
| [[3.0, 0.0], [0.0, 0.5]], 2.0, 0, 1.0 -> [[1.0, 0.0], [0.0, 0.5]]
"""


def axis_of(axis: Any) -> Any:
    """Return an axis or several; an empty list means all, as None does."""
    if not isinstance(axis, list | tuple):
        return axis
    return tuple(axis) if axis else None


def of_floats(function: Any, x: Any, q: Any, axis: Any, keepdim: bool, method: str) -> Any:
    """Compute quantiles, in the dtype of floats."""
    places = np.asarray(q) if isinstance(q, list | tuple) else q
    known = x if x.dtype.kind == "f" else pg.multiply(x, 1.0)
    found = function(known, places, axis_of(axis), method=method, keepdims=keepdim)
    return pg.astype(found, known.dtype)


def average(x: Any, axis: Any, keepdim: bool, dtype: Any) -> Any:
    """Compute means; those of integers are integers."""
    x = x if dtype is None else pg.cast(x, dtype)
    found = pg.mean(x, axis_of(axis), keepdim)
    return found if x.dtype.kind in "fc" else pg.astype(pg.trunc(found), x.dtype)


def spread(function: Any, x: Any, axis: Any, unbiased: float, keepdim: bool) -> Any:
    """Compute `function`, a variance or its root."""
    return function(x, axis_of(axis), keepdim, ddof=unbiased + 0)


def middle(x: Any, axis: Any, keepdim: bool, mode: str, function: Any) -> Any:
    """Return medians, by `mode`."""
    if mode == "avg":
        return function(x if x.dtype.kind == "f" else pg.multiply(x, 1.0), axis_of(axis), keepdim)
    if mode != "min":
        raise ArgumentError(f"median has no mode {mode!r:.40}: it is 'avg' or 'min'")
    along = pg.reshape(x, (-1,)) if axis is None else x
    k = (along.shape[0 if axis is None else axis] + 1) // 2
    values, indices = ranked(along, k, 0 if axis is None else axis, keepdim)
    return values if axis is None else (values, indices)


def running(function: Any, x: Any, axis: Any, dtype: Any) -> Any:
    """Return running extremes and the indices where they were last found."""
    along = pg.reshape(x, (-1,)) if axis is None else x
    place = as_axis(0 if axis is None else axis, len(along.shape))
    found = function(along, place)
    shape = [1] * len(along.shape)
    shape[place] = along.shape[place]
    numbers = pg.reshape(pg.arange(along.shape[place]), tuple(shape))
    places = pg.where(pg.equal(along, found), numbers, 0)
    return found, pg.cast(pg.cummax(pg.broadcast_to(places, along.shape), place), dtype)


def differences(x: Any, n: int, axis: int, prepend: Any, append: Any) -> Any:
    """Return the `n`-th differences of `x` between what is put before and after it."""
    parts = [part for part in (prepend, x, append) if part is not None]
    found = x if len(parts) == 1 else pg.concatenate(parts, axis)
    place = (slice(None),) * as_axis(axis, len(x.shape))
    for _ in range(n):
        found = pg.subtract(found[(*place, slice(1, None))],
                            found[(*place, slice(None, -1))])  # fmt: skip
    return found


def trapezoids(y: Any, x: Any, dx: Any, axis: int) -> Any:
    """Return the areas below the lines between neighbours."""
    if x is not None and dx is not None:
        raise ArgumentError("trapezoid takes x or dx, not both")
    place = (slice(None),) * as_axis(axis, len(y.shape))
    means = pg.multiply(pg.add(y[(*place, slice(1, None))],
                               y[(*place, slice(None, -1))]), 0.5)  # fmt: skip
    if x is None:
        return pg.multiply(means, 1.0 if dx is None else dx)
    widths = differences(x, 1, -1 if len(x.shape) == 1 else axis, None, None)
    if len(x.shape) == 1 and as_axis(axis, len(y.shape)) < len(y.shape) - 1:
        widths = pg.reshape(widths, (-1, *[1] * (len(y.shape) - 1 - axis)))
    return pg.multiply(means, widths)


def vector_or_matrix_norm(x: Any, p: Any, axis: Any, keepdim: bool) -> Any:
    """Compute norms: of vectors for one axis and for all elements, of matrices for two axes."""
    rank = len(x.shape)
    axes = axis_of(axis)
    if isinstance(axes, tuple) and len(axes) == 1:
        axes = axes[0]
    if p == "nuc" or (isinstance(axes, tuple) and p is not None and p != "fro"):
        return matrix_norm(x, p, axes, keepdim)
    order = 2 if p in (None, "fro") else p
    if isinstance(order, str):
        raise ArgumentError(f"norm takes no p={p!r:.40}: it is 'fro', 'nuc' or a number")
    if axes is None:
        found = linalg.vector_norm(pg.reshape(x, (-1,)), ord=order)
        return pg.reshape(found, (1,) * rank) if keepdim else found
    return linalg.vector_norm(x, axis=axes, ord=order, keepdims=keepdim)


def matrix_norm(x: Any, p: Any, axes: Any, keepdim: bool) -> Any:
    """Compute norms of matrices over two axes."""
    rank = len(x.shape)
    first, second = (as_axis(a, rank) for a in ((0, 1) if axes is None else axes))
    found = linalg.matrix_norm(pg.moveaxis(x, (first, second), (-2, -1)), ord=p)
    for place in sorted((first, second)) if keepdim else ():
        found = pg.expand_dims(found, place)
    return found


def ordered(x: Any, axis: int, descending: bool) -> tuple[Any, Any]:
    """Return sorted elements and their indices; equal ones in their order."""
    indices = pg.argsort(x, axis, stable=True)
    if descending:
        turned = pg.argsort(pg.flip(x, axis), axis, stable=True)
        indices = pg.flip(pg.subtract(x.shape[axis] - 1, turned), axis)
    return pg.take_along_axis(x, indices, axis), indices


def topmost(x: Any, k: Any, axis: Any, largest: bool) -> tuple[Any, Any]:
    """Return the `k` largest or smallest elements, and their indices."""
    place = as_axis(-1 if axis is None else axis, len(x.shape))
    count = int(k)
    if not 0 < count <= x.shape[place]:
        raise ShapeError(f"topk takes k between 1 and {x.shape[place]}, not {count}")
    part = (*[slice(None)] * place, slice(0, count))
    values, indices = ordered(x, place, largest)
    return values[part], indices[part]


def ranked(x: Any, k: int, axis: Any, keepdim: bool) -> tuple[Any, Any]:
    """Return the `k`-th smallest elements, and their indices."""
    place = as_axis(-1 if axis is None else axis, len(x.shape))
    if not 0 < k <= x.shape[place]:
        raise ShapeError(f"kthvalue takes k between 1 and {x.shape[place]}, not {k}")
    part = slice(k - 1, k) if keepdim else k - 1
    values, indices = ordered(x, place, False)
    index = (*[slice(None)] * place, part)
    return values[index], indices[index]


def frequent(x: Any, axis: int, keepdim: bool) -> tuple[Any, Any]:
    """Return the most frequent elements, the smallest of several, and their last indices."""
    along = pg.moveaxis(x, axis, -1)
    counts = pg.count_nonzero(pg.equal(along[..., :, None], along[..., None, :]), -1)
    best = pg.equal(counts, pg.max(counts, -1, True))
    large = pg.max(along, -1, True)
    value = pg.min(pg.where(best, along, large), -1, True)
    places = pg.where(pg.equal(along, value), pg.arange(along.shape[-1]), -1)
    indices = pg.max(places, -1, True)
    found = pg.take_along_axis(along, indices, -1), indices
    if keepdim:
        return pg.moveaxis(found[0], -1, axis), pg.moveaxis(found[1], -1, axis)
    return found[0][..., 0], found[1][..., 0]


def searched(sequence: Any, values: Any, is_small: bool, right: bool, sorter: Any = None) -> Any:
    """Return the places of values in a sorted sequence, or in each of several."""
    side = "right" if right else "left"
    if sorter is not None:
        sequence = pg.take_along_axis(sequence, sorter, -1)
    if len(sequence.shape) == 1:
        found = pg.searchsorted(sequence, values, side)
    else:
        above = pg.less_equal if right else pg.less
        pairs = above(sequence[..., None, :], values[..., :, None])
        found = pg.count_nonzero(pairs, -1)
    return pg.cast(found, "int32" if is_small else "int64")


def counted(
    x: Any, bins: int, low: float, high: float, weight: Any, density: bool
) -> tuple[Any, Any]:
    """Return the counts of elements in intervals, and the ends of the intervals."""
    given = None if low == 0 and high == 0 else (float(low), float(high))
    plain = pg.stop_gradient(pg.reshape(x, (-1,)))
    weights = None if weight is None else pg.reshape(weight, (-1,))
    counts, edges = pg.histogram(plain, bins, given, density, weights)
    is_float = density or weight is not None
    return pg.cast(counts, "float32" if is_float else "int64"), pg.cast(edges, "float32")


def weighed(x: Any, weights: Any, minlength: int) -> Any:
    """Count integers, or add up weights in their dtype."""
    found = pg.bincount(x, weights, minlength)
    return found if weights is None else pg.astype(found, weights.dtype)


def runs(x: Any, return_inverse: bool, return_counts: bool, axis: Any) -> Any:
    """Return the first of equal neighbours, and what else is asked for."""
    along = pg.reshape(x, (-1,)) if axis is None else pg.moveaxis(x, axis, 0)
    flat = pg.reshape(along, (along.shape[0], -1))
    is_new = pg.any(pg.not_equal(flat[1:], flat[:-1]), 1)
    starts = pg.concatenate([np.ones(1, bool), is_new])
    (places,) = pg.nonzero(starts)
    values = pg.take(along, places, 0)
    found = [values if axis is None else pg.moveaxis(values, 0, axis)]
    if return_inverse:
        found.append(pg.subtract(pg.cumsum(starts), 1))
    if return_counts:
        ends = pg.concatenate([places[1:], np.array([along.shape[0]])])
        found.append(pg.subtract(ends, places))
    return found[0] if len(found) == 1 else tuple(found)


def limited_norms(x: Any, p: float, axis: int, max_norm: float) -> Any:
    """Scale the slices along `axis` whose norms are too large."""
    place = as_axis(axis, len(x.shape))
    others = tuple(i for i in range(len(x.shape)) if i != place)
    norms = linalg.vector_norm(x, axis=others, ord=p, keepdims=True)
    factors = pg.divide(max_norm, pg.maximum(norms, max_norm))
    return pg.multiply(x, factors)


__all__ = define_functions(globals(), _ROWS)
