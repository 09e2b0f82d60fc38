"""Convolutions and pooling."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import primgraph.numpy as pnp
from primgraph import operators
from primgraph.interop.onnx.node import Node, Optional, Value
from primgraph.interop.onnx.operators.shapes import pad_constant
from primgraph.interop.onnx.table import means
from primgraph.operators.promotion import lift
from primgraph.operators.signal.window_geometry import Sliding
from primgraph.primitives.windows import span

_CONVOLVE: dict[int, Callable[..., Any]] = {
    1: operators.conv1d, 2: operators.conv2d, 3: operators.conv3d,
}  # fmt: skip
_TRANSPOSED: dict[int, Callable[..., Any]] = {
    1: operators.conv_transpose1d, 2: operators.conv_transpose2d, 3: operators.conv_transpose3d,
}  # fmt: skip


def _geometry(node: Node, sizes: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return strides and dilations of windows of `sizes`."""
    ones = [1] * len(sizes)
    return node.get("strides", ones), node.get("dilations", ones)


def _edges(node: Node, extents: Sequence[Any], sizes: Sequence[int]) -> list[tuple[Any, Any]]:
    """Return the padding at both ends of each axis, by `pads` or `auto_pad`."""
    strides, dilations = _geometry(node, sizes)
    kind, count = node.get("auto_pad", "NOTSET"), len(sizes)
    if kind in ("NOTSET", "VALID"):
        pads = node.get("pads", [0] * 2 * count) if kind == "NOTSET" else [0] * 2 * count
        return list(zip(pads[:count], pads[count:], strict=True))
    found = []
    for extent, size, step, apart in zip(extents, sizes, strides, dilations, strict=True):
        total = max((-(-extent // step) - 1) * step + span(size, apart) - extent, 0)
        less, more = total // 2, total - total // 2
        found.append((less, more) if kind == "SAME_UPPER" else (more, less))
    return found


@means("Conv")
def _conv(node: Node, x: Value, weight: Value, bias: Optional = None) -> Any:
    strides, dilations = _geometry(node, weight.shape[2:])
    edges = _edges(node, x.shape[2:], weight.shape[2:])
    padded = pnp.pad(x, [(0, 0), (0, 0), *edges]) if any(map(any, edges)) else x
    convolve = _by_axes(node, _CONVOLVE, x)
    groups = node.get("group", 1)
    return convolve(padded, weight, bias, tuple(strides), 0, tuple(dilations), groups)


def _by_axes(node: Node, functions: dict[int, Callable[..., Any]], x: Value) -> Callable[..., Any]:
    if x.ndim - 2 not in functions:
        raise node.unsupported(f"a convolution along {x.ndim - 2} axes")
    return functions[x.ndim - 2]


@means("ConvTranspose")
def _conv_transpose(node: Node, x: Value, weight: Value, bias: Optional = None) -> Any:
    """Convolve by the transpose, all windows in full, and cut off the padding."""
    sizes = weight.shape[2:]
    strides, dilations = _geometry(node, sizes)
    beyond = node.get("output_padding", [0] * len(sizes))
    convolve = _by_axes(node, _TRANSPOSED, x)
    groups = node.get("group", 1)
    whole = convolve(x, weight, None, tuple(strides), 0, 0, groups, tuple(dilations))
    extents = [
        (n - 1) * s + span(k, d) + more
        for n, s, k, d, more in zip(x.shape[2:], strides, sizes, dilations, beyond, strict=True)
    ]
    index = [slice(None), slice(None)]
    width = [(0, 0), (0, 0)]
    for extent, there, (low, high) in zip(
        extents, whole.shape[2:], _cut(node, extents, x, strides), strict=True
    ):
        end = extent - high
        index.append(slice(max(low, 0), min(end, there)))
        width.append((max(-low, 0), max(end - there, 0)))
    found = whole[tuple(index)]
    found = pnp.pad(found, width) if any(map(any, width)) else found
    if bias is None:
        return found
    return found + pnp.reshape(bias, (-1, *[1] * len(sizes)))


def _cut(
    node: Node, extents: Sequence[int], x: Value, strides: Sequence[int]
) -> list[tuple[int, int]]:
    """Return how much of each axis to cut off at both ends."""
    count, kind = len(extents), node.get("auto_pad", "NOTSET")
    wanted = node.get("output_shape")
    if wanted is None and kind in ("NOTSET", "VALID"):
        pads = node.get("pads", [0] * 2 * count)
        return list(zip(pads[:count], pads[count:], strict=True))
    if wanted is None:
        wanted = [n * s for n, s in zip(x.shape[2:], strides, strict=True)]
    found = []
    for extent, size in zip(extents, wanted[-count:], strict=True):
        total = extent - size
        half = total // 2
        found.append((half, total - half) if kind == "SAME_UPPER" else (total - half, half))
    return found


# Pooling.


def _windows(node: Node, x: Value, fill: float, edge: float | None = None) -> Any:
    """Return the windows of `x`, whose elements are the axes from 2 on.

    It is padded with `edge`, by default `fill`; in ceiling mode further with `fill`.
    """
    sizes = node.get("kernel_shape")
    strides, dilations = _geometry(node, sizes)
    edges = _edges(node, x.shape[2:], sizes)
    sliding = Sliding(node.kind, tuple(sizes), tuple(strides), tuple(dilations))
    beyond = []
    for n, (low, high), size, step, apart in zip(
        x.shape[2:], edges, sizes, strides, dilations, strict=True
    ):
        more = 0
        if node.get("ceil_mode", 0):
            rest = n + low + high - span(size, apart)
            count = -(-rest // step)
            # A window that starts in the padding at the end does not count.
            count = count if count * step < n + low else count - 1
            more = max(count * step - rest, 0)
        beyond.append((0, more))
    padded = _padded(x, edges, fill if edge is None else edge)
    return sliding.extract_windows(lift(_padded(padded, beyond, fill)), 2)


def _padded(x: Value, width: Sequence[tuple[Any, Any]], fill: float) -> Value:
    if not any(map(any, width)):
        return x
    padded: Value = pad_constant(x, [(0, 0), (0, 0), *width], x.dtype.type(fill))
    return padded


def _lowest(dtype: np.dtype[Any]) -> Any:
    return -math.inf if dtype.kind == "f" else np.iinfo(dtype).min


@means("MaxPool")
def _max_pool(node: Node, x: Value) -> Any:
    found = _windows(node, x, _lowest(x.dtype))
    axes = tuple(range(2, x.ndim))
    largest = pnp.max(found, axes)
    if not (len(node.wanted) > 1 and node.wanted[1]):
        return largest
    order: Any = "F" if node.get("storage_order", 0) else "C"
    numbers = np.reshape(np.arange(math.prod(x.shape[2:])), x.shape[2:], order)
    offset = np.arange(x.shape[0] * x.shape[1]).reshape(x.shape[:2]) * math.prod(x.shape[2:])
    places = offset.reshape((*x.shape[:2], *[1] * len(axes))) + numbers
    named = _windows(node, places, -1)
    count, shape = math.prod(found.shape[2 : x.ndim]), found.shape[x.ndim :]
    flat = pnp.reshape(found, (*x.shape[:2], count, *shape))
    chosen = pnp.expand_dims(pnp.argmax(flat, 2), 2)
    named = pnp.reshape(named, (*x.shape[:2], count, *shape))
    return largest, pnp.squeeze(pnp.take_along_axis(named, chosen, 2), 2)


@means("AveragePool")
def _average_pool(node: Node, x: Value) -> Any:
    axes = tuple(range(2, x.ndim))
    total = pnp.sum(_windows(node, x, 0.0), axes)
    ones = np.ones((1, 1, *x.shape[2:]), x.dtype)
    edge = 1.0 if node.get("count_include_pad", 0) else 0.0
    return total / pnp.sum(_windows(node, ones, 0.0, edge), axes)


@means("LpPool")
def _lp_pool(node: Node, x: Value) -> Any:
    p = node.get("p", 2)
    found = _windows(node, x, 0.0)
    total = pnp.sum(pnp.abs(found) ** x.dtype.type(p), tuple(range(2, x.ndim)))
    return total ** x.dtype.type(1 / p)


@means("GlobalAveragePool")
def _global_average_pool(node: Node, x: Value) -> Any:
    return pnp.mean(x, tuple(range(2, x.ndim)), keepdims=True)


@means("GlobalMaxPool")
def _global_max_pool(node: Node, x: Value) -> Any:
    return pnp.max(x, tuple(range(2, x.ndim)), keepdims=True)


@means("GlobalLpPool")
def _global_lp_pool(node: Node, x: Value) -> Any:
    p = node.get("p", 2)
    total = pnp.sum(pnp.abs(x) ** x.dtype.type(p), tuple(range(2, x.ndim)), keepdims=True)
    return total ** x.dtype.type(1 / p)


@means("MaxUnpool")
def _max_unpool(node: Node, x: Value, indices: Value, *shape: Optional) -> Any:
    """Put elements where `MaxPool` took them from, and zeros elsewhere."""
    wanted = node.numbers("output_shape", (x, indices, *shape), 2)
    sizes = node.get("kernel_shape")
    strides, _ = _geometry(node, sizes)
    pads = node.get("pads", [0] * 2 * len(sizes))
    edges = zip(pads[: len(sizes)], pads[len(sizes) :], strict=True)
    own = [
        (n - 1) * s + k - a - b
        for n, s, k, (a, b) in zip(x.shape[2:], strides, sizes, edges, strict=True)
    ]
    natural = [*x.shape[:2], *own]
    flat = pnp.reshape(indices, (-1,))
    found = operators.scatter_add(
        np.zeros(math.prod(natural), x.dtype), flat, pnp.reshape(x, (-1,))
    )
    if wanted is None:
        return pnp.reshape(found, tuple(natural))
    place = np.arange(math.prod(natural)).reshape(natural)
    width = [(0, m - n) for m, n in zip(wanted, natural, strict=True)]
    spread = np.pad(place, width, constant_values=-1)
    return pnp.where(spread >= 0, found[np.maximum(spread, 0)], x.dtype.type(0))


@means("Col2Im")
def _col2im(node: Node, x: Value, image: Value, block: Value) -> Any:
    """Add up overlapping blocks, the columns of `x`, in an image."""
    extents, sizes = ([int(n) for n in node.known((x, image, block), k, "shape")] for k in (1, 2))
    strides, dilations = _geometry(node, sizes)
    pads = node.get("pads", [0] * 2 * len(sizes))
    edges = list(zip(pads[: len(sizes)], pads[len(sizes) :], strict=True))
    whole = tuple(n + a + b for n, (a, b) in zip(extents, edges, strict=True))
    sliding = Sliding("Col2Im", tuple(sizes), tuple(strides), tuple(dilations))
    counts = sliding.counts(whole)
    channels = x.shape[1] // math.prod(sizes)
    blocks = pnp.reshape(x, (x.shape[0], channels, *sizes, *counts))
    found = sliding.add_windows(lift(blocks), 2, whole)
    inner = [slice(a, n - b) for n, (a, b) in zip(whole, edges, strict=True)]
    return found[(slice(None), slice(None), *inner)]
