"""Convolutions and means of windows, and maxima with their positions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from inspect import cleandoc
from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.errors import ArgumentError
from primgraph.operators.names import define

# Rows of functions that differ from ours by names alone, along `n` axes.
_CONVOLUTIONS = """
convNd(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1): convNd
Compute sums of products of windows with a weight.
>>> torch.nn.functional.convNd(torch.ones(FOURS), torch.ones(TWOS)).shape
torch.Size([THREES])

conv_transposeNd(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, \
dilation=1): conv_transposeNd
Compute the transpose of `convNd`.
>>> torch.nn.functional.conv_transposeNd(torch.ones(THREES), torch.ones(TWOS)).shape
torch.Size([FOURS])

avg_poolNd(input, kernel_size, stride=None, padding=0, ceil_mode=False, \
count_include_pad=TrueOVERRIDE): avg_poolNd
Compute the mean of each window.
>>> torch.nn.functional.avg_poolNd(torch.ones(FOURS), 2).shape
torch.Size([TWOS])

adaptive_avg_poolNd(input, output_size): adaptive_avg_poolNd
Compute the mean of each of `output_size` bins along each axis.
>>> torch.nn.functional.adaptive_avg_poolNd(torch.ones(FOURS), 2).shape
torch.Size([TWOS])
"""


def _rows(n: int) -> str:
    """Return the rows along `n` axes."""
    sizes = {
        name: ", ".join(["1", "1", *digit * n])
        for name, digit in (("FOURS", "4"), ("TWOS", "2"), ("THREES", "3"))
    }
    text = _CONVOLUTIONS.replace("OVERRIDE", "" if n == 1 else ", divisor_override=None")
    for name, value in {**sizes, "Nd": f"{n}d"}.items():
        text = text.replace(name, value)
    return text.strip()


def _sizes(value: Any, count: int) -> tuple[int, ...]:
    found = (value,) * count if isinstance(value, int) else tuple(value)
    return found * count if len(found) == 1 else found


def _maxima(input: Any, starts: Sequence[Any], count: int) -> tuple[Any, Any]:
    """Return the maxima of windows, and their positions in the flattened image.

    `starts` has for each axis an array of the positions that each window takes, negative if none.
    """
    extents = input.shape[-count:]
    flat: Any = np.zeros((1,) * (2 * count), np.int64)
    taken: Any = np.ones((1,) * (2 * count), bool)
    for axis, (places, n) in enumerate(zip(starts, extents, strict=True)):
        shape = [1] * (2 * count)
        shape[axis], shape[count + axis] = places.shape
        placed = places.reshape(shape)
        taken = taken & (placed >= 0)
        flat = flat * n + np.maximum(placed, 0)
    sizes = tuple(places.shape[0] for places in starts)
    flat, taken = (
        np.broadcast_to(a, flat.shape).reshape(math.prod(sizes), -1) for a in (flat, taken)
    )
    lead = tuple(input.shape[:-count])
    pixels = pg.reshape(input, (*lead, -1))
    values = pg.take(pixels, np.where(taken, flat, flat[:, :1]), -1)
    lowest = -np.inf if input.dtype.kind == "f" else np.iinfo(input.type.dtype).min
    chosen = pg.argmax(pg.where(taken, values, np.array(lowest, input.type.dtype)), -1)
    found = pg.squeeze(pg.take_along_axis(values, pg.expand_dims(chosen, -1), -1), -1)
    indices = pg.take(flat.reshape(-1), chosen + np.arange(flat.shape[0]) * flat.shape[1])
    return pg.reshape(found, (*lead, *sizes)), pg.reshape(indices, (*lead, *sizes))


def _sliding(
    input: Any, count: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> list[Any]:
    """Return for each axis the positions of the elements of each window, -1 for pads."""
    kernel = _sizes(kernel, count)
    stride = kernel if stride is None or stride == () else _sizes(stride, count)
    found = []
    for n, k, s, p, d in zip(
        input.shape[-count:],
        kernel,
        stride,
        _sizes(padding, count),
        _sizes(dilation, count),
        strict=True,
    ):
        if 2 * p > k:
            raise ArgumentError(
                f"pad should be at most half of effective kernel size, but got pad={p}, "
                f"kernel_size={k} and dilation={d}"
            )
        room = n + 2 * p - d * (k - 1) - 1
        windows = (-(-room // s) if ceil_mode else room // s) + 1
        if ceil_mode and (windows - 1) * s >= n + p:
            windows -= 1
        places = np.arange(windows)[:, None] * s - p + np.arange(k) * d
        found.append(np.where((places >= 0) & (places < n), places, -1))
    return found


def _bins(input: Any, count: int, output_size: Any) -> list[Any]:
    """Return for each axis the positions of the elements of each bin, -1 behind them."""
    found = []
    for n, size in zip(input.shape[-count:], _adaptive(output_size, count), strict=True):
        size = n if size is None else size
        first = np.arange(size) * n // size
        last = -(-(np.arange(size) + 1) * n // size)
        places = first[:, None] + np.arange(int((last - first).max(initial=1)))
        found.append(np.where(places < last[:, None], places, -1))
    return found


def _adaptive(output_size: Any, count: int) -> tuple[Any, ...]:
    return (
        (output_size,) * count if not isinstance(output_size, tuple | list) else tuple(output_size)
    )


def _unpool(
    count: int, input: Any, indices: Any, kernel: Any, stride: Any, padding: Any, size: Any
) -> Any:
    """Put elements at positions of zeros, the inverse of pooling."""
    kernel = _sizes(kernel, count)
    stride = kernel if stride is None else _sizes(stride, count)
    extents = input.shape[-count:]
    default = [
        (n - 1) * s - 2 * p + k
        for n, s, p, k in zip(extents, stride, _sizes(padding, count), kernel, strict=True)
    ]
    sizes = default if size is None else list(size)[-count:]
    lead = tuple(input.shape[:-count])
    rows, whole = math.prod(lead), math.prod(sizes)
    offsets = np.arange(rows)[:, None] * whole
    places = pg.reshape(pg.reshape(indices, (rows, -1)) + offsets, (-1,))
    total = pg.scatter_add(pg.zeros((rows * whole,), input.dtype), places, pg.reshape(input, (-1,)))
    return pg.reshape(total, (*lead, *sizes))


def _maximum_pools(n: int) -> tuple[Callable[..., Any], ...]:
    """Return the functions of the largest elements of windows along `n` axes."""
    largest = getattr(pg, f"max_pool{n}d")

    def max_pool_with_indices(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> tuple[Any, Any]:
        """Return the largest element of each window, and its position in the flattened image.

        >>> torch.nn.functional.max_pool{n}d_with_indices(torch.ones({fours}), 4)[1].flatten()
        tensor([0])
        """
        windows = _sliding(input, n, kernel_size, stride, padding, dilation, ceil_mode)
        return _maxima(input, windows, n)

    def max_pool(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """Return the largest element of each window, and its position if `return_indices`.

        >>> torch.nn.functional.max_pool{n}d(torch.ones({fours}), 2).shape
        torch.Size([{twos}])
        """
        options = (kernel_size, None if stride == () else stride, padding, dilation, ceil_mode)
        return (max_pool_with_indices if return_indices else largest)(input, *options)

    return max_pool, max_pool_with_indices


def _adaptive_pools(n: int) -> tuple[Callable[..., Any], ...]:
    """Return the functions of the largest elements of bins along `n` axes."""
    largest_of_bins = getattr(pg, f"adaptive_max_pool{n}d")

    def adaptive_max_pool_with_indices(
        input: Any, output_size: Any, return_indices: bool = False
    ) -> tuple[Any, Any]:
        """Return the largest element of each bin, and its position in the flattened image.

        >>> image = torch.ones({fours})
        >>> torch.nn.functional.adaptive_max_pool{n}d_with_indices(image, 1)[1].flatten()
        tensor([0])
        """
        return _maxima(input, _bins(input, n, output_size), n)

    def adaptive_max_pool(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        """Return the largest element of each of `output_size` bins along each axis.

        >>> torch.nn.functional.adaptive_max_pool{n}d(torch.ones({fours}), 2).shape
        torch.Size([{twos}])
        """
        if return_indices:
            return _maxima(input, _bins(input, n, output_size), n)
        return largest_of_bins(input, output_size)

    return adaptive_max_pool, adaptive_max_pool_with_indices


def _other_pools(n: int) -> tuple[Callable[..., Any], ...]:
    """Return the inverse of the pools of largest elements, and norms of windows."""
    mean = getattr(pg, f"avg_pool{n}d")

    def max_unpool(
        input: Any,
        indices: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        output_size: Any = None,
    ) -> Any:
        """Put the maxima of windows at their positions, among zeros.

        >>> image = torch.ones({fours})
        >>> y, places = torch.nn.functional.max_pool{n}d(image, 2, return_indices=True)
        >>> torch.nn.functional.max_unpool{n}d(y, places, 2).shape
        torch.Size([{fours}])
        """
        return _unpool(n, input, indices, kernel_size, stride, padding, output_size)

    def lp_pool(
        input: Any,
        norm_type: float,
        kernel_size: Any,
        stride: Any = None,
        ceil_mode: bool = False,
    ) -> Any:
        """Return the p-norm of each window.

        >>> torch.nn.functional.lp_pool{n}d(torch.ones({fours}), 2, 2).shape
        torch.Size([{twos}])
        """
        means = mean(pg.power(input, norm_type), kernel_size, stride, 0, ceil_mode)
        sums = pg.sign(means) * pg.relu(pg.abs(means)) * math.prod(_sizes(kernel_size, n))
        return pg.power(sums, 1.0 / norm_type)

    return max_unpool, lp_pool


def _pools(n: int) -> dict[str, Callable[..., Any]]:
    """Return the functions of windows along `n` axes, by name."""
    found = {}
    for function in (*_maximum_pools(n), *_adaptive_pools(n), *_other_pools(n)):
        name, _, rest = function.__name__.partition("_with")
        name = f"{name}{n}d{rest and '_with'}{rest}"
        function.__name__ = function.__qualname__ = name
        shapes = {"fours": ", ".join("1" + "4" * n), "twos": ", ".join("1" + "2" * n)}
        function.__doc__ = cleandoc(str(function.__doc__)).format(n=n, **shapes)
        found[name] = function
    return found


_POOLS = {**_pools(1), **_pools(2), **_pools(3)}
globals().update(_POOLS)
_SAME = "\n\n".join(map(_rows, (1, 2, 3)))
__all__ = [*define("torch.nn.functional", globals(), _SAME), *_POOLS]
