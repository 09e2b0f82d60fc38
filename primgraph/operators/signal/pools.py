"""Pooling: the maximum, or the mean, of each window."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, ShapeError, UnknownSizeError
from primgraph.ir.dims import Dim
from primgraph.ir.types import INT64
from primgraph.operators.elementwise.arithmetic import maximum
from primgraph.operators.elementwise.logic import equal, where
from primgraph.operators.handle import ArrayLike
from primgraph.operators.index.indexing import take
from primgraph.operators.linear_algebra.products import tensordot
from primgraph.operators.promotion import (
    entries_of,
    lift,
    require_flag,
    require_integer,
    require_number,
)
from primgraph.operators.reduce.reductions import max, sum
from primgraph.operators.reduce.statistics import mean, narrow, wide
from primgraph.operators.shape.joining import concatenate, slice_axis
from primgraph.operators.shape.shaping import moveaxis, reshape
from primgraph.operators.signal.window_geometry import (
    Sizes,
    Slices,
    Sliding,
    along_axes,
    channels_first,
    channels_only,
    numbers,
    samples_first,
    samples_last,
)
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import constants, shapes
from primgraph.primitives.constants import filled_constant


def _windows_and_edges(
    name: str, count: int, size: Sizes, stride: Sizes | None, padding: Sizes, dilation: Sizes
) -> tuple[Sliding, Slices]:
    """Return the windows and the padding at both ends."""
    sizes = numbers(name, "kernel_size", size, count, 1)
    steps = sizes if stride is None else numbers(name, "stride", stride, count, 1)
    edges = numbers(name, "padding", padding, count, 0)
    if any(2 * p > n for n, p in zip(sizes, edges, strict=True)):
        raise ArgumentError(f"{name}: padding {edges} is more than half a window of {sizes}")
    return Sliding(name, sizes, steps, numbers(name, "dilation", dilation, count, 1)), edges


def _pad(sliding: Sliding, x: Variable, edges: Slices, ceil_mode: bool, fill: Any) -> Variable:
    """Pad `x`, with samples last, with `fill`, as far as windows reach.

    With `ceil_mode` a window at the end may extend beyond it if it starts before.
    """
    extents = x.shape[1:-1]
    wide_ones = [n + 2 * p for n, p in zip(extents, edges, strict=True)]
    sliding.require_fit(x, wide_ones)
    behind = list(edges)
    if require_flag("ceil_mode", ceil_mode):
        for i, (n, p) in enumerate(zip(extents, edges, strict=True)):
            step, reach = sliding.steps[i], sliding.spans[i]
            last = -(-(wide_ones[i] - reach) // step)
            if last * step >= n + p:
                last = last - 1
            beyond = last * step + reach - wide_ones[i]
            behind[i] = p + beyond if beyond > 0 else p
    if not any((*edges, *behind)):
        return x
    low, high = (0, *edges, 0), (0, *behind, 0)
    if fill == 0:
        return emit(shapes.pad, x, low=low, high=high)
    shape = tuple(a + n + b for a, n, b in zip(low, x.shape, high, strict=True))
    frame = Variable(x.recorder, filled_constant(fill, x.type.with_shape(shape)))
    return emit(shapes.slice_assign, frame, x, starts=low, steps=(1,) * x.ndim)


def _lowest(x: Variable) -> Any:
    """Return a value that is not larger than any element."""
    if x.type.is_float:
        return -math.inf
    return False if x.dtype.kind == "b" else int(np.iinfo(x.dtype).min)


def _largest(
    name: str,
    count: int,
    x: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Variable:
    value, had_samples = channels_first(name, lift(x), count)
    sliding, edges = _windows_and_edges(name, count, kernel_size, stride, padding, dilation)
    placed = _pad(sliding, samples_last(value), edges, ceil_mode, _lowest(value))
    found = sliding.reduce_windows(placed, 1, max)
    return channels_only(samples_first(found), had_samples)


def _average_pool(
    name: str,
    count: int,
    x: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: float | None = None,
) -> Variable:
    value, had_samples = channels_first(name, lift(x), count)
    sliding, edges = _windows_and_edges(name, count, kernel_size, stride, padding, 1)
    placed = samples_last(wide(value))
    whole = _pad(sliding, placed, edges, ceil_mode, 0)
    total = sliding.reduce_windows(whole, 1, sum)
    if divisor_override is not None:
        divisor: Any = require_number("divisor_override", divisor_override)
    elif whole is placed or (
        require_flag("count_include_pad", count_include_pad) and not ceil_mode
    ):
        divisor = float(math.prod(sliding.sizes))
    else:
        divisor = _divisors(sliding, placed.shape[1:-1], total.shape, edges, count_include_pad)
        divisor = divisor.astype(total.dtype)
    return channels_only(samples_first(narrow(total / divisor, value)), had_samples)


def _divisors(
    sliding: Sliding, extents: Slices, shape: Slices, edges: Slices, padded: bool
) -> np.ndarray[Any, Any]:
    """Return the number of elements in each window, with or without padding."""
    if any(type(n) is Dim for n in extents):
        raise UnknownSizeError(
            f"{sliding.name}: how many elements a window has depends on {extents}",
            hint="count_include_pad=True without ceil_mode counts all of them",
        )
    found: np.ndarray[Any, Any] = np.ones(1)
    for n, p, size, step, windows in zip(
        extents, edges, sliding.sizes, sliding.steps, shape[1:-1], strict=True
    ):
        first = np.arange(windows) * step - p
        low, high = (-p, n + p) if padded else (0, n)
        held = np.minimum(first + size, high) - np.maximum(first, low)
        found = found[..., None] * held
    return found[..., None]


def _pool_bins(name: str, count: int, x: ArrayLike, output_size: Any, largest: bool) -> Variable:
    """Pool bins of the elements from `floor(i n / m)` to `ceil((i + 1) n / m)`."""
    value, had_samples = channels_first(name, lift(x), count)
    given = entries_of(output_size)
    wanted = list(given) * count if len(given) == 1 else list(given)
    if len(wanted) != count:
        raise ArgumentError(f"{name} takes {count} extents or one, not {output_size!r:.60}")
    placed = samples_last(value if largest else wide(value))
    for axis, size in enumerate(wanted, 1):
        extent = placed.shape[axis]
        number = extent if size is None else require_integer(f"{name}: output_size", size)
        if type(number) is int and number < 1:
            raise ArgumentError(f"{name}: output_size is at least 1, not {size!r:.60}")
        if type(number) is int and number > np.iinfo(np.int64).max:
            raise ArgumentError(f"{name}: output_size {size!r:.60} is more than an array can have")
        if type(extent) is int and extent == 0:
            raise ShapeError(f"{name} of {value.type}: there are no elements")
        placed = _in_bins(name, placed, axis, number, largest)
    return channels_only(samples_first(narrow(placed, value)), had_samples)


def _largest_of_bins(name: str, count: int, x: ArrayLike, output_size: Any) -> Variable:
    return _pool_bins(name, count, x, output_size, largest=True)


def _means_of_bins(name: str, count: int, x: ArrayLike, output_size: Any) -> Variable:
    return _pool_bins(name, count, x, output_size, largest=False)


def _in_bins(name: str, x: Variable, axis: int, number: int, largest: bool) -> Variable:
    """Pool an axis into a number of bins."""
    extent, function = x.shape[axis], max if largest else mean
    if extent == number:
        return x
    if number == 1:
        return function(x, axis, True)
    if type(extent) is Dim:
        raise UnknownSizeError(
            f"{name}: what lies in {number} bins depends on {extent}",
            hint="one bin, or as many as elements, can be had of any extent",
        )
    if extent % number == 0:
        size = (extent // number,)
        return Sliding(name, size, size, (1,)).reduce_windows(x, axis, function)
    if number > extent:
        return _in_more_bins(name, x, axis, number, largest)
    ends = [(i * extent // number, -(-(i + 1) * extent // number)) for i in range(number)]
    if largest:
        return concatenate([max(slice_axis(x, axis, a, b - a), axis, True) for a, b in ends], axis)
    shares = np.zeros((number, extent), x.dtype)
    for row, (a, b) in zip(shares, ends, strict=True):
        row[a:b] = 1 / (b - a)
    return moveaxis(tensordot(shares, x, ((1,), (axis,))), 0, axis)


def _in_more_bins(name: str, x: Variable, axis: int, number: int, largest: bool) -> Variable:
    """Pool into more bins than elements, each with one element or two neighbours.

    Bounds of bins are computed at run time, which needs no memory before.
    """
    extent = x.shape[axis]
    if number > np.iinfo(np.int64).max // extent:
        raise ArgumentError(f"{name}: output_size {number} of {extent} elements is too large")
    place = emit(constants.iota, shape=(number,), axis=0, dtype=INT64)
    first = (place * extent) // number
    last = ((place + 1) * extent - 1) // number
    one, other = take(x, first, axis), take(x, last, axis)
    if largest:
        return maximum(one, other)
    spread = reshape(equal(first, last), (number, *(1,) * (x.ndim - axis - 1)))
    return where(spread, one, 0.5 * one + 0.5 * other)


max_pool1d, max_pool2d, max_pool3d = along_axes(
    "max_pool",
    ("x",),
    _largest,
    """Return the largest element of each window along the last axis; parameters as in `torch`.

    `x` is of shape (samples, channels, length), or (channels, length). Windows of `kernel_size`
    elements, `dilation` apart, start `stride` elements apart, by default `kernel_size`. `padding`,
    at most half a window, is how far the first and the last extend beyond the ends; with
    `ceil_mode` there is one more window if elements remain. Tied elements share the derivative
    evenly, and NaN stays.

    Raises `ShapeError` if no window fits.

    >>> pg.max_pool1d([[[1.0, 3.0, 2.0, 4.0]]], 2)
    tensor([[[3., 4.]]])
    """,
    """Return `max_pool1d` along two axes; numbers are for all, or one for each.

    >>> pg.max_pool2d(np.ones((1, 1, 4, 4)), 2).shape
    (1, 1, 2, 2)
    """,
    """Return `max_pool1d` along three axes; numbers are for all, or one for each.

    >>> pg.max_pool3d(np.ones((1, 1, 4, 4, 4)), 2).shape
    (1, 1, 2, 2, 2)
    """,
)

avg_pool1d, avg_pool2d, avg_pool3d = along_axes(
    "avg_pool",
    ("x",),
    _average_pool,
    """Return the mean of each window along the last axis; windows are as those of `max_pool1d`.

    Zeros of the padding count as elements if `count_include_pad`; those added by `ceil_mode` never
    do. With `divisor_override`, sums are divided by that number. float16 is summed in float32.

    Raises `ShapeError` if no window fits.

    >>> pg.avg_pool1d([[[1.0, 3.0, 2.0, 4.0]]], 2)
    tensor([[[2., 3.]]])
    """,
    """Return `avg_pool1d` along two axes; numbers are for all, or one for each.

    >>> pg.avg_pool2d(np.ones((1, 1, 4, 4)), 2).shape
    (1, 1, 2, 2)
    """,
    """Return `avg_pool1d` along three axes; numbers are for all, or one for each.

    >>> pg.avg_pool3d(np.ones((1, 1, 4, 4, 4)), 2).shape
    (1, 1, 2, 2, 2)
    """,
)

adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = along_axes(
    "adaptive_max_pool",
    ("x",),
    _largest_of_bins,
    """Return the largest element of each of `output_size` bins along the last axis, as in `torch`.

    Bin `i` of `m` has the elements from `i n / m`, rounded down, to `(i + 1) n / m`, rounded up;
    None stands for as many bins as elements. Raises `ArgumentError` for no bins.

    >>> pg.adaptive_max_pool1d([[[1.0, 3.0, 2.0, 4.0]]], 2)
    tensor([[[3., 4.]]])
    """,
    """Return `adaptive_max_pool1d` along two axes; None leaves an axis as it is.

    >>> pg.adaptive_max_pool2d(np.ones((1, 1, 6, 6)), 2).shape
    (1, 1, 2, 2)
    """,
    """Return `adaptive_max_pool1d` along three axes; None leaves an axis as it is.

    >>> pg.adaptive_max_pool3d(np.ones((1, 1, 6, 6, 6)), 2).shape
    (1, 1, 2, 2, 2)
    """,
)

adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = along_axes(
    "adaptive_avg_pool",
    ("x",),
    _means_of_bins,
    """Return the mean of each of `output_size` bins along the last axis, as in `torch`.

    Bin `i` of `m` has the elements from `i n / m`, rounded down, to `(i + 1) n / m`, rounded up;
    None stands for as many bins as elements. Raises `ArgumentError` for no bins.

    >>> pg.adaptive_avg_pool1d([[[1.0, 3.0, 2.0, 4.0]]], 2)
    tensor([[[2., 3.]]])
    """,
    """Return `adaptive_avg_pool1d` along two axes; None leaves an axis as it is.

    >>> pg.adaptive_avg_pool2d(np.ones((1, 1, 6, 6)), 2).shape
    (1, 1, 2, 2)
    """,
    """Return `adaptive_avg_pool1d` along three axes; None leaves an axis as it is.

    >>> pg.adaptive_avg_pool3d(np.ones((1, 1, 6, 6, 6)), 2).shape
    (1, 1, 2, 2, 2)
    """,
)
