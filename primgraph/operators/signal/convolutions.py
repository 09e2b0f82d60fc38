"""Convolutions and their transposes: matrix products of weights with all windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

from primgraph.errors import ArgumentError, ShapeError
from primgraph.operators.elementwise.arithmetic import add
from primgraph.operators.handle import ArrayLike
from primgraph.operators.linear_algebra.products import product
from primgraph.operators.promotion import lift, require_integer, result_dtype
from primgraph.operators.shape.shaping import permute_axes, reshape_to
from primgraph.operators.signal.window_geometry import (
    Sizes,
    Sliding,
    along_axes,
    both_ends,
    channels_first,
    channels_only,
    numbers,
    samples_first,
    samples_last,
)
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import shapes

Padding: TypeAlias = Sizes | Literal["same", "valid"]


def _operands(
    name: str, x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None, count: int
) -> tuple[Variable, Variable, Variable | None, bool]:
    """Return array, weight and bias in one dtype, and whether the array has a batch axis."""
    dtype = result_dtype(x, weight)
    value, had_samples = channels_first(name, lift(x, dtype), count)
    kernel = lift(weight, dtype)
    if kernel.ndim != count + 2:
        raise ShapeError(
            f"{name} takes a weight with channels of both sides and {count} more axes, "
            f"not {kernel.type}"
        )
    added = None if bias is None else lift(bias, dtype if isinstance(bias, int | float) else None)
    return value, kernel, added, had_samples


def _groups(name: str, value: object, *channels: int) -> int:
    number = require_integer(f"{name}: groups", value)
    if number < 1 or any(n % number for n in channels):
        raise ArgumentError(
            f"{name}: {number} groups do not divide {' and '.join(map(str, channels))} channels"
        )
    return number


def _with_bias(name: str, x: Variable, bias: Variable | None) -> Variable:
    """Add a bias to each row (channel) of a matrix, or of a stack of matrices for groups."""
    if bias is None:
        return x
    wanted = math.prod(x.shape[:-1])
    if bias.shape != (wanted,):
        raise ShapeError(f"{name} needs a bias of shape ({wanted},), not {bias.type}")
    return add(x, reshape_to(bias, (*x.shape[:-1], 1)))


def _convolve(
    name: str,
    count: int,
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Sizes = 1,
    padding: Padding = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Variable:
    value, kernel, added, had_samples = _operands(name, x, weight, bias, count)
    channels, outputs = value.shape[1], kernel.shape[0]
    parts = _groups(name, groups, channels, outputs)
    if kernel.shape[1] * parts != channels:
        raise ShapeError(
            f"{name} of {value.type} by {kernel.type}: the weight takes "
            f"{kernel.shape[1] * parts} channels, there are {channels}"
        )
    sliding = Sliding(
        name,
        kernel.shape[2:],
        numbers(name, "stride", stride, count, 1),
        numbers(name, "dilation", dilation, count, 1),
    )
    ends = both_ends(name, padding, sliding.spans, sliding.steps)
    extents = [n + a + b for n, (a, b) in zip(value.shape[2:], ends, strict=True)]
    sliding.require_fit(value, extents)
    placed = samples_last(value)
    if any(a or b for a, b in ends):
        low, high = ((0, *(e[i] for e in ends), 0) for i in (0, 1))
        placed = emit(shapes.pad, placed, low=low, high=high)
    columns = sliding.extract_windows(placed, 1)
    # One matrix of all windows, per group: its rows are elements of a window.
    inner, outer = math.prod(kernel.shape[1:]), math.prod(columns.shape[count + 1 :])
    stack = (parts,) if parts > 1 else ()
    rows = reshape_to(kernel, (*stack, outputs // parts, inner))
    found = product(rows, reshape_to(columns, (*stack, inner, outer)))
    found = _with_bias(name, found, added)
    result = samples_first(reshape_to(found, (outputs, *columns.shape[count + 1 :])))
    return channels_only(result, had_samples)


def _windows_of_elements(value: Variable, kernel: Variable, parts: int) -> Variable:
    """Return the window that each element spreads over, of all output channels."""
    placed, channels = samples_last(value), value.shape[1] // parts
    stack, order = ((parts,), (0, 2, 1)) if parts > 1 else ((), (1, 0))
    inner, outer = math.prod(kernel.shape[1:]), math.prod(placed.shape[1:])
    columns = permute_axes(reshape_to(kernel, (*stack, channels, inner)), order)
    found = product(columns, reshape_to(placed, (*stack, channels, outer)))
    return reshape_to(found, (parts * kernel.shape[1], *kernel.shape[2:], *placed.shape[1:]))


def _inner(x: Variable, starts: Sequence[int], sizes: Sequence[int]) -> Variable:
    """Return a part along all axes but the first, the channels, and the last, the samples."""
    first, *_, last = x.shape
    begin, steps = (0, *starts, 0), (1,) * x.ndim
    return emit(shapes.slice_, x, starts=begin, sizes=(first, *sizes, last), steps=steps)


def _convolve_transposed(
    name: str,
    count: int,
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Variable:
    value, kernel, added, had_samples = _operands(name, x, weight, bias, count)
    channels = value.shape[1]
    parts = _groups(name, groups, channels)
    if kernel.shape[0] != channels:
        raise ShapeError(
            f"{name} of {value.type} by {kernel.type}: the weight takes {kernel.shape[0]} "
            f"channels, there are {channels}"
        )
    sliding = Sliding(
        name,
        kernel.shape[2:],
        numbers(name, "stride", stride, count, 1),
        numbers(name, "dilation", dilation, count, 1),
    )
    cut = numbers(name, "padding", padding, count, 0)
    more = numbers(name, "output_padding", output_padding, count, 0)
    beyond = zip(more, sliding.steps, sliding.dilations, strict=True)
    if any(n >= max(s, d) for n, s, d in beyond):
        raise ArgumentError(f"{name}: output_padding is smaller than stride or dilation")
    whole = _windows_of_elements(value, kernel, parts)
    outputs = parts * kernel.shape[1]
    reach = zip(value.shape[2:], sliding.steps, sliding.spans, more, strict=True)
    # A window at each element; elements beyond the last one are zero.
    extents = tuple((n - 1) * s + m + e for n, s, m, e in reach)
    ends = tuple(n - 2 * p for n, p in zip(extents, cut, strict=True))
    if any(type(n) is int and n < 1 for n in ends):
        raise ShapeError(f"{name} of {value.type}: padding {cut} leaves nothing")
    total = _sum_windows(sliding, whole, extents, more)
    if any(cut):
        total = _inner(total, cut, ends)
    if added is not None:
        flat = reshape_to(total, (outputs, math.prod(total.shape[1:])))
        total = reshape_to(_with_bias(name, flat, added), (outputs, *total.shape[1:]))
    return channels_only(samples_first(total), had_samples)


def _sum_windows(
    sliding: Sliding, x: Variable, extents: tuple[int, ...], more: tuple[int, ...]
) -> Variable:
    """Return the sums of overlapping windows, padded with zeros by at most one step."""
    least = tuple(n - m for n, m in zip(extents, more, strict=True))
    if sliding.counts(extents) == sliding.counts(least):
        return sliding.add_windows(x, 1, extents)
    total = sliding.add_windows(x, 1, least)
    none = (0,) * total.ndim
    return emit(shapes.pad, total, low=none, high=(0, *more, 0))


conv1d, conv2d, conv3d = along_axes(
    "conv",
    (
        "x",
        "weight",
        "bias",
    ),
    _convolve,
    """Return sums of products of windows along the last axis with a weight, as `torch` names them.

    `x` is of shape (samples, channels, length), or (channels, length), `weight` of shape (outputs,
    channels / groups, size) and `bias` of shape (outputs,): the result is of shape (samples,
    outputs, windows). Windows start `stride` elements apart, their elements are `dilation` apart;
    the weight is not flipped. `padding` is the number of zeros at both ends, "valid" for none, or
    "same" for as many windows as elements, with stride 1. Channels and outputs are split into
    `groups`, which are convolved separately.

    Raises `ShapeError` for shapes that do not match, `ArgumentError` for groups that do not divide
    the channels and for other paddings.

    >>> pg.conv1d(np.ones((1, 1, 4)), np.ones((1, 1, 2)))
    tensor([[[2., 2., 2.]]])
    """,
    """Compute `conv1d` along two axes.

    `x` is (samples, channels, height, width), the weight (outputs, channels / groups, rows,
    columns). Numbers are for both axes, or one for each.

    It is a product of the weight, as a matrix, with all windows (K. Chellapilla, S. Puri and P.
    Simard, High performance convolutional neural networks for document processing, 2006).

    >>> pg.conv2d(np.ones((1, 1, 4, 4)), np.ones((2, 1, 3, 3))).shape
    (1, 2, 2, 2)
    """,
    """Compute `conv1d` along three axes.

    `x` is (samples, channels, depth, height, width), the weight (outputs, channels / groups, and
    three sizes).

    >>> pg.conv3d(np.ones((1, 1, 4, 4, 4)), np.ones((2, 1, 3, 3, 3))).shape
    (1, 2, 2, 2, 2)
    """,
)

conv_transpose1d, conv_transpose2d, conv_transpose3d = along_axes(
    "conv_transpose",
    (
        "x",
        "weight",
        "bias",
    ),
    _convolve_transposed,
    """Return the transpose of `conv1d` as a linear map: sums of overlapping windows.

    `weight` is of shape (channels, outputs / groups, size). `padding` elements are cut off at both
    ends of the sums, and `output_padding` more are kept at the end, so that all lengths are
    possible that a convolution maps to that of `x`: (n - 1) * stride - 2 * padding + dilation *
    (size - 1) + output_padding + 1.

    Raises the errors of `conv1d`, and `ArgumentError` for an output_padding that is not smaller
    than stride or dilation.

    >>> pg.conv_transpose1d(np.ones((1, 1, 3)), np.ones((1, 1, 2)))
    tensor([[[1., 2., 2., 1.]]])
    """,
    """Return `conv_transpose1d` along two axes.

    >>> pg.conv_transpose2d(np.ones((1, 1, 4, 4)), np.ones((1, 2, 3, 3))).shape
    (1, 2, 6, 6)
    """,
    """Return `conv_transpose1d` along three axes.

    >>> pg.conv_transpose3d(np.ones((1, 1, 4, 4, 4)), np.ones((1, 2, 3, 3, 3))).shape
    (1, 2, 6, 6, 6)
    """,
)
