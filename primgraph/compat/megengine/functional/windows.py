"""Convolutions, pools and other windows, which `megengine.functional.nn` has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.errors import ArgumentError, OptionError, ShapeError
from primgraph.ir.types import as_axis

_PAD_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}


def _convolution(function: Callable[..., Any], axes: int, example: str) -> Callable[..., Any]:
    """A convolution with MegEngine's weights: with groups these are a first axis of their own."""

    def convolve(
        inp: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        conv_mode: str = "cross_correlation",
        compute_mode: str = "default",
    ) -> Any:
        _check_modes(conv_mode, compute_mode)
        weights = _without_groups(weight, groups, axes)
        return function(inp, weights, _of_channels(bias), stride, padding, dilation, groups)

    convolve.__name__ = convolve.__qualname__ = f"conv{axes}d"
    convolve.__doc__ = f"""Compute sums of products of windows along {axes} axes with a weight.

    With `groups` weights are of shape (groups, out / groups, in / groups, ...); the bias has one
    element for each output channel.

    >>> F = megengine.functional
    >>> {example}
    """
    return convolve


def _transposed(function: Callable[..., Any], axes: int, example: str) -> Callable[..., Any]:
    """The transpose of a convolution."""

    def convolve(
        inp: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        conv_mode: str = "cross_correlation",
        compute_mode: str = "default",
    ) -> Any:
        _check_modes(conv_mode, compute_mode)
        weights = _without_groups(weight, groups, axes)
        options = (stride, padding, output_padding, groups, dilation)
        return function(inp, weights, _of_channels(bias), *options)

    convolve.__name__ = convolve.__qualname__ = f"conv_transpose{axes}d"
    convolve.__doc__ = f"""Compute the transpose of `conv{axes}d`.

    Weights are of shape (in, out, ...), with `groups` (groups, in / groups, out / groups, ...).

    >>> F = megengine.functional
    >>> {example}
    """
    return convolve


conv1d = _convolution(
    pg.conv1d, 1, "F.conv1d(F.ones((1, 2, 5)), F.ones((3, 2, 3))).shape\n    (1, 3, 3)"
)
conv2d = _convolution(
    pg.conv2d, 2, "F.conv2d(F.ones((1, 2, 5, 5)), F.ones((3, 2, 3, 3))).shape\n    (1, 3, 3, 3)"
)
conv3d = _convolution(
    pg.conv3d,
    3,
    "F.conv3d(F.ones((1, 2, 3, 3, 3)), F.ones((3, 2, 3, 3, 3))).shape\n    (1, 3, 1, 1, 1)",
)
conv_transpose2d = _transposed(
    pg.conv_transpose2d,
    2,
    "F.conv_transpose2d(F.ones((1, 3, 3, 3)), F.ones((3, 2, 3, 3))).shape\n    (1, 2, 5, 5)",
)
conv_transpose3d = _transposed(
    pg.conv_transpose3d,
    3,
    "F.conv_transpose3d(F.ones((1, 3, 1, 1, 1)), F.ones((3, 2, 3, 3, 3))).shape\n"
    "    (1, 2, 3, 3, 3)",
)


def max_pool2d(inp: Any, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Any:
    """Return the largest element of each window.

    >>> F = megengine.functional
    >>> F.max_pool2d(F.arange(4).reshape(1, 1, 2, 2), 2).item()
    3.0
    """
    return pg.max_pool2d(inp, kernel_size, stride, padding)


def avg_pool2d(
    inp: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    mode: str = "average_count_exclude_padding",
) -> Any:
    """Return the mean of each window: of its elements, or with "average" of padding as well.

    >>> F = megengine.functional
    >>> F.avg_pool2d(F.arange(4).reshape(1, 1, 2, 2), 2).item()
    1.5
    """
    if mode not in ("average_count_exclude_padding", "average"):
        raise OptionError(f"avg_pool2d: there is no mode {mode!r:.60}")
    counts = mode == "average"
    return pg.avg_pool2d(inp, kernel_size, stride, padding, count_include_pad=counts)


def adaptive_max_pool2d(inp: Any, oshp: Any) -> Any:
    """Return the largest element of each window, of which there are `oshp`.

    >>> F = megengine.functional
    >>> F.adaptive_max_pool2d(F.arange(4).reshape(1, 1, 2, 2), 1).item()
    3.0
    """
    return pg.adaptive_max_pool2d(inp, _pair(oshp))


def adaptive_avg_pool2d(inp: Any, oshp: Any) -> Any:
    """Return the mean of each window, of which there are `oshp`.

    >>> F = megengine.functional
    >>> F.adaptive_avg_pool2d(F.arange(4).reshape(1, 1, 2, 2), 1).item()
    1.5
    """
    return pg.adaptive_avg_pool2d(inp, _pair(oshp))


def pad(
    src: Any, pad_width: Sequence[Any], mode: str = "constant", constant_value: float = 0.0
) -> Any:
    """Add elements before and after along each axis: pairs of counts, the first for axis 0.

    `mode` is "constant", "reflect" or "replicate". Axes without a pair stay.

    >>> F = megengine.functional
    >>> F.pad(F.ones(2), ((1, 2),))
    Tensor([0. 1. 1. 0. 0.], device=xpux:0)
    """
    if mode.lower() not in _PAD_MODES:
        raise OptionError(f"pad: mode is one of {', '.join(_PAD_MODES)}, not {mode!r:.60}")
    pairs = [tuple(pair) for pair in pad_width] + [(0, 0)] * (src.ndim - len(pad_width))
    return pg.pad(src, pairs, _PAD_MODES[mode.lower()], constant_values=constant_value)


def pixel_shuffle(inp: Any, upscale_factor: int) -> Any:
    """Move channels into space: (..., c * r * r, h, w) becomes (..., c, h * r, w * r).

    >>> F = megengine.functional
    >>> F.pixel_shuffle(F.arange(4).reshape(1, 4, 1, 1), 2).tolist()
    [[[[0.0, 1.0], [2.0, 3.0]]]]
    """
    *outer, channels, height, width = inp.shape
    r = upscale_factor
    if r < 1 or channels % (r * r):
        raise ShapeError(f"pixel_shuffle: {channels} channels are no multiple of {r} * {r}")
    parts = pg.reshape(inp, (*outer, channels // (r * r), r, r, height, width))
    n = parts.ndim
    moved = pg.transpose(parts, (*range(n - 4), n - 2, n - 4, n - 1, n - 3))
    return pg.reshape(moved, (*outer, channels // (r * r), height * r, width * r))


def sliding_window(
    inp: Any, kernel_size: Any, padding: Any = 0, stride: Any = 1, dilation: Any = 1
) -> Any:
    """Return all windows along the last two axes, as two more axes.

    >>> F = megengine.functional
    >>> F.sliding_window(F.ones((1, 2, 4, 5)), 3).shape
    (1, 2, 2, 3, 3, 3)
    """
    pairs = [(p, p) for p in _pair(padding)]
    padded = pg.pad(inp, [(0, 0), (0, 0), *pairs])
    rows, columns = _window_places(padded.shape[2:], kernel_size, stride, dilation)
    return padded[:, :, rows[:, None, :, None], columns[None, :, None, :]]


def sliding_window_transpose(
    inp: Any,
    output_size: Any,
    kernel_size: Any,
    padding: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
) -> Any:
    """Add up windows where `sliding_window` takes them from: its transpose.

    >>> F = megengine.functional
    >>> windows = F.sliding_window(F.ones((1, 1, 3, 3)), 2)
    >>> F.sliding_window_transpose(windows, 3, 2).tolist()
    [[[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]]]
    """
    (above, left), (height, width) = _pair(padding), _pair(output_size)
    h, w = height + 2 * above, width + 2 * left
    rows, columns = _window_places((h, w), kernel_size, stride, dilation)
    places = rows[:, None, :, None] * w + columns[None, :, None, :]
    if inp.shape[2:] != places.shape:
        raise ShapeError(f"sliding_window_transpose: windows {inp.shape} are not of {(h, w)}")
    outer = inp.shape[:2]
    zeros = pg.zeros((*outer, h * w), inp.dtype)
    sums = pg.scatter_add(zeros, places.ravel(), pg.reshape(inp, (*outer, -1)), axis=2)
    whole = pg.reshape(sums, (*outer, h, w))
    return whole[:, :, above : above + height, left : left + width]


def _window_places(
    extents: Sequence[int], kernel_size: Any, stride: Any, dilation: Any
) -> list[np.ndarray[Any, Any]]:
    """The positions of each window along each axis."""
    found = []
    options = (_pair(kernel_size), _pair(stride), _pair(dilation))
    for extent, size, step, gap in zip(extents, *options, strict=True):
        starts = np.arange(0, extent - gap * (size - 1), step)
        found.append(starts[:, None] + gap * np.arange(size))
    return found


def _pair(x: Any) -> tuple[int, int]:
    if hasattr(x, "tolist"):
        x = x.tolist()
    first, second = (x, x) if isinstance(x, int) else x
    return int(first), int(second)


def _without_groups(weight: Any, groups: int, axes: int) -> Any:
    """The weight without the axis of groups."""
    if groups == 1:
        return weight
    if weight.ndim != axes + 3:
        raise ArgumentError(
            f"with groups={groups} a weight has {axes + 3} axes, and this is {weight.shape}"
        )
    return pg.reshape(weight, (-1, *weight.shape[as_axis(2, weight.ndim) :]))


def _of_channels(bias: Any) -> Any:
    """The bias as a vector."""
    return bias if bias is None or bias.ndim == 1 else pg.reshape(bias, -1)


def _check_modes(conv_mode: str, compute_mode: str) -> None:
    if conv_mode.lower() != "cross_correlation":
        raise OptionError(f"conv_mode is 'cross_correlation', not {conv_mode!r:.60}")
    if compute_mode.lower() not in ("default", "float32"):
        raise OptionError(f"compute_mode is 'default', not {compute_mode!r:.60}")
