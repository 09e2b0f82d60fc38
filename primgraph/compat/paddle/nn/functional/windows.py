"""Convolutions and pools by the names that they and their arguments have in Paddle."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.paddle.functions.rows import define_functions
from primgraph.compat.torch.nn.functional import windows as torch
from primgraph.errors import ArgumentError

_CONVOLUTIONS: dict[int, Any] = {1: pg.conv1d, 2: pg.conv2d, 3: pg.conv3d}
_TRANSPOSED: dict[int, Any] = {
    1: pg.conv_transpose1d,
    2: pg.conv_transpose2d,
    3: pg.conv_transpose3d,
}
_LAYOUTS = {
    **dict.fromkeys(("NCL", "NCHW", "NCDHW", "NC"), False),
    **dict.fromkeys(("NLC", "NHWC", "NDHWC"), True),
}


def in_layout(data_format: str, x: Any, compute: Callable[[Any], Any]) -> Any:
    """Return `compute(x)` with channels at axis 1, which `data_format` may have at the end."""
    if data_format not in _LAYOUTS:
        raise ArgumentError(
            f"Attr(data_format) should be one of {', '.join(map(repr, _LAYOUTS))}. "
            f"Received: {data_format!r:.60}"
        )
    if not _LAYOUTS[data_format]:
        return compute(x)
    found = compute(pg.moveaxis(x, -1, 1))
    if isinstance(found, tuple):
        return tuple([pg.moveaxis(y, 1, -1) for y in found])
    return pg.moveaxis(found, 1, -1)


def sizes_of(value: Any, count: int) -> list[int]:
    """Return `count` sizes: a list of them, or one for all."""
    listed = list(value) if isinstance(value, list | tuple) else [value] * count
    return [int(n) for n in (listed * count if len(listed) == 1 else listed)]


def pads_of(
    padding: Any, x: Any, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> list[tuple[int, int]]:
    """Return pairs of pads of the axes of windows.

    `padding` is a number, a list of one for each axis, of two for each axis, or of pairs for all
    axes, "SAME" or "VALID".
    """
    count = len(kernel)
    if isinstance(padding, str):
        return _named_pads(padding, x, kernel, stride, dilation)
    listed = list(padding) if isinstance(padding, list | tuple) else [padding] * count
    if listed and isinstance(listed[0], list | tuple):
        pairs = [(int(a), int(b)) for a, b in listed]
        return pairs[-count:] if pairs[:2] == [(0, 0)] * 2 else pairs[1 : count + 1]
    if len(listed) == 2 * count and count > 1:
        return [(int(listed[2 * i]), int(listed[2 * i + 1])) for i in range(count)]
    if len(listed) == 2 and count == 1:
        return [(int(listed[0]), int(listed[1]))]
    numbers = sizes_of(listed, count)
    if len(numbers) != count:
        raise ArgumentError(f"padding {padding!r:.60} does not fit {count} axes")
    return [(n, n) for n in numbers]


def _named_pads(
    padding: str, x: Any, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> list[tuple[int, int]]:
    name = padding.upper()
    if name == "VALID":
        return [(0, 0)] * len(kernel)
    if name != "SAME":
        raise ArgumentError(f"Unknown padding: '{padding}'. It can only be 'SAME' or 'VALID'.")
    pairs = []
    for n, k, s in zip(x.type.shape[2:], kernel, stride, strict=True):
        lacking = max((-(-n // s) - 1) * s + k - n, 0)
        pairs.append((lacking // 2, lacking - lacking // 2))
    return pairs


def pad_pairs(x: Any, pairs: Sequence[tuple[int, int]], value: Any = 0.0) -> Any:
    """Return `x` with a constant around its last axes."""
    return pg.pad(x, [(0, 0)] * (x.ndim - len(pairs)) + list(pairs), constant_values=value)


def _padded(x: Any, pairs: Sequence[tuple[int, int]], value: Any = 0.0) -> tuple[Any, list[int]]:
    """Return `x` and equal pads of both sides: unequal ones are made at once."""
    if all(a == b for a, b in pairs):
        return x, [a for a, _ in pairs]
    return pad_pairs(x, pairs, value), [0] * len(pairs)


def convolve(
    count: int, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any,
    groups: int, data_format: str,
) -> Any:  # fmt: skip
    """Return a convolution along `count` axes."""
    steps, apart = sizes_of(stride, count), sizes_of(dilation, count)
    kernel = list(weight.type.shape[2:])

    def compute(x: Any) -> Any:
        same = isinstance(padding, str) and padding.upper() == "SAME"
        pairs = pads_of(padding, x, kernel, steps, [1] * count if same else apart)
        value, pads = _padded(x, pairs)
        # Paddle's "SAME" lets windows be dense.
        gaps = [1] * count if same else apart
        return _CONVOLUTIONS[count](value, weight, bias, steps, pads, gaps, groups)

    return in_layout(data_format, x, compute)


def convolve_transposed(
    count: int, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, output_padding: Any,
    groups: int, dilation: Any, output_size: Any, data_format: str,
) -> Any:  # fmt: skip
    """Return the transpose of a convolution along `count` axes."""
    steps, apart = sizes_of(stride, count), sizes_of(dilation, count)
    kernel = list(weight.type.shape[2:])

    def compute(x: Any) -> Any:
        pairs = pads_of(padding, x, kernel, steps, apart)
        sizes = [
            (m - 1) * s + d * (k - 1) + 1
            for m, s, d, k in zip(x.type.shape[2:], steps, apart, kernel, strict=True)
        ]
        more = sizes_of(output_padding, count)
        if output_size is not None:
            if any(more):
                raise ArgumentError("output_padding option is mutually exclusive with output_size")
            wanted = sizes_of(_numbers(output_size), count)
            more = [n - (m - a - b) for n, m, (a, b) in zip(wanted, sizes, pairs, strict=True)]
        limits = [max(s, d) for s, d in zip(steps, apart, strict=True)]
        if all(a == b for a, b in pairs) and all(
            0 <= n < most for n, most in zip(more, limits, strict=True)
        ):
            pads = [a for a, _ in pairs]
            return _TRANSPOSED[count](x, weight, bias, steps, pads, more, groups, apart)
        whole = _TRANSPOSED[count](x, weight, None, steps, 0, 0, groups, apart)
        behind = [n - b for n, (_, b) in zip(more, pairs, strict=True)]
        whole = pad_pairs(whole, [(0, max(n, 0)) for n in behind])
        parts = [slice(a, m + n) for (a, _), m, n in zip(pairs, sizes, behind, strict=True)]
        found = whole[(slice(None), slice(None), *parts)]
        return found if bias is None else found + pg.reshape(bias, (-1, *[1] * count))

    return in_layout(data_format, x, compute)


def _numbers(given: Any) -> Any:
    """Return sizes as numbers, which may be given as a tensor."""
    return given.tolist() if hasattr(given, "tolist") else given


def pool_largest(
    count: int, x: Any, kernel_size: Any, stride: Any, padding: Any, return_mask: bool,
    ceil_mode: bool, data_format: str,
) -> Any:  # fmt: skip
    """Return the largest element of each window, and with `return_mask` its position."""
    kernel = sizes_of(kernel_size, count)
    steps = kernel if stride is None else sizes_of(stride, count)
    pool = getattr(torch, f"max_pool{count}d")

    def compute(x: Any) -> Any:
        pairs = pads_of(padding, x, kernel, steps, [1] * count)
        value, pads = _padded(x, pairs, -math.inf)
        found = pool(value, kernel, steps, pads, 1, ceil_mode, return_indices=return_mask)
        return _with_mask(found) if return_mask else found

    return in_layout(data_format, x, compute)


def pool_means(
    count: int, x: Any, kernel_size: Any, stride: Any, padding: Any, exclusive: bool,
    ceil_mode: bool, divisor: Any, data_format: str,
) -> Any:  # fmt: skip
    """Return the mean of each window; with `exclusive` without pads."""
    kernel = sizes_of(kernel_size, count)
    steps = kernel if stride is None else sizes_of(stride, count)
    pool: Any = {1: pg.avg_pool1d, 2: pg.avg_pool2d, 3: pg.avg_pool3d}[count]
    override = () if count == 1 else (divisor,)

    def compute(x: Any) -> Any:
        pairs = pads_of(padding, x, kernel, steps, [1] * count)
        value, pads = _padded(x, pairs)
        found = pool(value, kernel, steps, pads, ceil_mode, not exclusive, *override)
        if value is x or not exclusive or divisor is not None:
            return found
        ones = pad_pairs(np.ones((1, 1, *x.type.shape[2:]), x.dtype), pairs)
        return pg.divide(found, pool(ones, kernel, steps, pads, ceil_mode, True, *override))

    return in_layout(data_format, x, compute)


def pool_adaptively(
    kind: str, count: int, x: Any, output_size: Any, data_format: str, return_mask: bool = False
) -> Any:
    """Return the mean or largest element of each of as many bins as `output_size` says."""
    sizes = _numbers(output_size)
    if return_mask:
        pool: Any = getattr(torch, f"adaptive_{kind}_pool{count}d_with_indices")
        return in_layout(data_format, x, lambda x: _with_mask(pool(x, sizes)))
    pool = getattr(pg, f"adaptive_{kind}_pool{count}d")
    return in_layout(data_format, x, lambda x: pool(x, sizes))


def _with_mask(found: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the largest elements, and positions of Paddle's dtype."""
    return found[0], pg.astype(found[1], "int32")


def pool_norms(
    count: int, x: Any, norm_type: float, kernel_size: Any, stride: Any, padding: Any,
    ceil_mode: bool, data_format: str,
) -> Any:  # fmt: skip
    """Return the norm of each window."""
    pool: Any = getattr(torch, f"lp_pool{count}d")

    def compute(x: Any) -> Any:
        kernel = sizes_of(kernel_size, count)
        value = pad_pairs(x, pads_of(padding, x, kernel, kernel, [1] * count))
        return pool(value, float(norm_type), kernel_size, stride, ceil_mode)

    return in_layout(data_format, x, compute)


def unpool(
    count: int, x: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any,
    output_size: Any, data_format: str,
) -> Any:  # fmt: skip
    """Return zeros with the elements of `x` at `indices`."""
    if _LAYOUTS.get(data_format) is not False:
        raise ArgumentError(f"max_unpool takes channels at axis 1, not {data_format!r:.60}")
    size = None if output_size is None else list(output_size)[-count:]
    pool = getattr(torch, f"max_unpool{count}d")
    return pool(x, indices, kernel_size, stride, padding, size)


_CONV_ROW = """
conv{n}d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format='{f}') = convolve({n}, x, weight, bias, stride, padding, dilation, groups, data_format)
Compute sums of products of windows along {n} axes with a weight. | paddle.ones({x}), paddle.ones({x}) -> {sum}
conv{n}d_transpose({order}) = convolve_transposed({n}, x, weight, bias, stride, padding, output_padding, groups, dilation, output_size, data_format)
Compute the transpose of `conv{n}d`. | paddle.ones({single}), paddle.ones({single}) -> {one}
max_pool{n}d(x, kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False{layout}) = pool_largest({n}, x, kernel_size, stride, padding, return_mask, ceil_mode, {format})
Return the largest element of each window; `return_mask` adds its position. | paddle.ones({x}), 2 -> {one}
avg_pool{n}d(x, kernel_size, stride=None, padding=0, {means}{layout}) = pool_means({n}, x, kernel_size, stride, padding, exclusive, ceil_mode, {divisor}, {format})
Compute the mean of each window; pads count unless `exclusive`. | paddle.ones({x}), 2 -> {one}
adaptive_avg_pool{n}d(x, output_size{layout}) = pool_adaptively('avg', {n}, x, output_size, {format})
Compute the mean of each of `output_size` bins along each axis. | paddle.ones({x}), 1 -> {one}
adaptive_max_pool{n}d(x, output_size, return_mask=False) = pool_adaptively('max', {n}, x, output_size, '{f}', return_mask)
Return the largest element of each of `output_size` bins. | paddle.ones({x}), 1 -> {one}
max_unpool{n}d(x, indices, kernel_size, stride=None, padding=0, data_format='{f}', output_size=None) = unpool({n}, x, indices, kernel_size, stride, padding, output_size, data_format)
Return zeros with the elements of `x` at `indices`. | paddle.ones({single}), paddle.zeros({single}, 'int64'), 1 -> {one}
"""  # noqa: E501
_NORM_ROW = """
lp_pool{n}d(x, norm_type, kernel_size, stride=None, padding=0, ceil_mode=False, data_format='{f}') = pool_norms({n}, x, norm_type, kernel_size, stride, padding, ceil_mode, data_format)
Compute the norm of each window. | paddle.ones({x}), 1, 2 -> {sum}
"""  # noqa: E501
_FORMATS = {1: "NCL", 2: "NCHW", 3: "NCDHW"}


def _rows(n: int) -> str:
    """Return the rows of functions along `n` axes."""
    format = _FORMATS[n]
    first = "groups=1, dilation=1" if n != 2 else "dilation=1, groups=1"
    means = "exclusive=True, ceil_mode=False" if n == 1 else "ceil_mode=False, exclusive=True"
    fields = {
        "n": n,
        "f": format,
        "x": (1, 1, *[2] * n),
        "single": (1,) * (n + 2),
        "sum": "[" * (n + 2) + f"{2.0**n}" + "]" * (n + 2),
        "one": "[" * (n + 2) + "1.0" + "]" * (n + 2),
        "order": "x, weight, bias=None, stride=1, padding=0, output_padding=0, "
        f"{first}, output_size=None, data_format='{format}'",
        "means": means + ("" if n == 1 else ", divisor_override=None"),
        "divisor": "None" if n == 1 else "divisor_override",
        "layout": "" if n == 1 else f", data_format='{format}'",
        "format": f"'{format}'" if n == 1 else "data_format",
    }
    return (_CONV_ROW + (_NORM_ROW if n < 3 else "")).format(**fields)


__all__ = [
    name for n in _FORMATS for name in define_functions(globals(), _rows(n), "paddle.nn.functional")
]
