"""Interpolation: images of other sizes, and samples at points of a grid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import primgraph.numpy as pnp
from primgraph.interop.onnx.node import Known, Node, Optional, Value
from primgraph.interop.onnx.table import means

Numbers = npt.NDArray[np.float64]


def _cubic_kernel(x: Any, a: float) -> Any:
    """Return the cubic convolution kernel (R. G. Keys, 1981)."""
    near, x = (x <= 1) & (x >= -1), pnp.abs(x)
    inner = ((a + 2) * x - (a + 3)) * x * x + 1
    outer = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return pnp.where(near, inner, pnp.where(x < 2, outer, 0 * x))


def _sizes_and_scales(
    node: Node, x: Value, inputs: Sequence[Optional], axes: Sequence[int]
) -> tuple[list[int], list[float]]:
    """Return the new sizes along axes, and the factors by which coordinates grow."""
    extents = [x.shape[axis] for axis in axes]
    if node.version < 11:
        factors = node.numbers("scales", inputs, 1)
        sizes = None
    else:
        factors, sizes = node.numbers("scales", inputs, 2), node.numbers("sizes", inputs, 3)
    if sizes is None:
        assert factors is not None
        return [math.floor(f * n) for f, n in zip(factors, extents, strict=True)], factors
    factors = [m / n for m, n in zip(sizes, extents, strict=True)]
    policy = node.get("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return sizes, factors
    factor = min(factors) if policy == "not_larger" else max(factors)
    return [math.floor(factor * n + 0.5) for n in extents], [factor] * len(extents)


def _coordinates(
    mode: str, scale: float, size: int, extent: int, region: tuple[float, float]
) -> Numbers:
    """Return the coordinates of `size` elements along an axis of `extent` elements."""
    k, whole = np.arange(size, dtype=float), scale * extent
    low, high = region
    if mode == "align_corners":
        return k * (extent - 1) / (whole - 1) if whole != 1 else 0 * k
    if mode == "asymmetric":
        return k / scale
    if mode == "tf_crop_and_resize":
        middle = 0.5 * (low + high) * (extent - 1)
        if whole == 1:
            return 0 * k + middle
        return low * (extent - 1) + k * (high - low) * (extent - 1) / (whole - 1)
    if mode == "pytorch_half_pixel" and whole == 1:
        return 0 * k - 0.5
    found = (k + 0.5) / scale - 0.5
    if mode == "half_pixel_symmetric":
        found = found + extent / 2 * (1 - size / whole)
    return found


_NEAREST: dict[str, Callable[[Numbers], Numbers]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _weights(node: Node, x: Numbers, scale: float, extent: int) -> Numbers:
    """Return the matrix that interpolates along an axis at coordinates `x`."""
    found = np.zeros((len(x), extent))
    rows = np.arange(len(x))
    if node.get("mode", "nearest") == "nearest":
        default = "floor" if node.version < 11 else "round_prefer_floor"
        places = _NEAREST[node.get("nearest_mode", default)](x)
        found[rows, np.clip(places, 0, extent - 1).astype(int)] = 1
        return found
    shrink = min(scale, 1.0) if node.get("antialias", 0) else 1.0
    reach = 2 if node.get("mode") == "cubic" else 1
    first = math.floor(-reach / shrink) + 1
    base = np.ceil(x) - 1
    for place, weight in _taps(node, x, base, first, shrink):
        outside = (place < 0) | (place >= extent)
        kept = np.where(outside, 0.0, weight) if node.get("exclude_outside", 0) else weight
        np.add.at(found, (rows, np.clip(place, 0, extent - 1).astype(int)), kept)
    normalized: Numbers = found / found.sum(axis=1, keepdims=True)
    return normalized


def _taps(
    node: Node, x: Numbers, base: Numbers, first: int, shrink: float
) -> list[tuple[Numbers, Numbers]]:
    """Return the places of neighbours, and their weights."""
    a, found = node.get("cubic_coeff_a", -0.75), []
    for offset in range(first, 2 - first):
        distance = (base + offset - x) * shrink
        if node.get("mode") == "cubic":
            weight = _cubic_kernel(distance, a)
        else:
            weight = np.clip(1 - np.abs(distance), 0, 1)
        found.append((base + offset, weight))
    return found


@means("Resize", "Upsample")
def _resize(node: Node, x: Value, *inputs: Optional) -> Any:
    """Interpolate along each axis, by a matrix, or by a choice of elements."""
    given = (x, *inputs)
    axes = [axis % x.ndim for axis in node.get("axes", range(x.ndim))]
    sizes, scales = _sizes_and_scales(node, x, given, axes)
    default = "asymmetric" if node.version < 11 else "half_pixel"
    mode = node.get("coordinate_transformation_mode", default)
    roi = node.numbers("roi", given, 1) if mode == "tf_crop_and_resize" else None
    inside: Any = True
    found, nearest = x, node.get("mode", "nearest") == "nearest"
    for k, (axis, size, scale) in enumerate(zip(axes, sizes, scales, strict=True)):
        region = (roi[k], roi[k + len(axes)]) if roi else (0.0, 1.0)
        extent = x.shape[axis]
        if size == extent and scale == 1 and not roi:
            continue
        places = _coordinates(mode, scale, size, extent, region)
        weights = _weights(node, places, scale, extent)
        if nearest:
            found = pnp.take(found, weights.argmax(axis=1), axis)
        else:
            matrix = weights.astype(x.dtype)
            found = pnp.moveaxis(pnp.tensordot(matrix, found, ((1,), (axis,))), 0, axis)
        if mode == "tf_crop_and_resize":
            shape = [1] * x.ndim
            shape[axis] = size
            inside = inside & ((places >= 0) & (places <= extent - 1)).reshape(shape)
    if inside is True:
        return found
    return pnp.where(inside, found, x.dtype.type(node.get("extrapolation_value", 0.0)))


# Samples at points.


def _reflect(x: Any, low: float, high: float) -> Any:
    """Reflect coordinates at both ends of an interval."""
    if high <= low:
        return 0 * x
    period = high - low
    away = pnp.remainder(x - low, x.dtype.type(2 * period))
    return low + pnp.minimum(away, x.dtype.type(2 * period) - away)


def _bounds(align: bool, size: int) -> tuple[float, float]:
    return (0.0, size - 1.0) if align else (-0.5, size - 0.5)


def _fit_coordinate(x: Any, size: int, padding: str, align: bool) -> Any:
    """Return coordinates within an axis, unless elements beyond it are zeros."""
    if padding == "border":
        return pnp.clip(x, x.dtype.type(0), x.dtype.type(size - 1))
    if padding == "reflection":
        low, high = _bounds(align, size)
        return pnp.where((x < low) | (x > high), _reflect(x, low, high), x)
    return x


def _fit_place(place: Any, size: int, padding: str, align: bool) -> tuple[Any, Any]:
    """Return the index that a place stands for, and whether there is one."""
    inside = (place >= 0) & (place <= size - 1) if padding == "zeros" else np.asarray(True)
    if padding == "reflection":
        place = pnp.round(_fit_coordinate(place, size, padding, align))
    return pnp.clip(place, place.dtype.type(0), place.dtype.type(size - 1)).astype(np.int64), inside


def _neighbours(x: Any, mode: str) -> list[tuple[Any, Any]]:
    """Return places around coordinates along one axis, and their weights."""
    if mode == "nearest":
        return [(pnp.round(x), x.dtype.type(1))]
    base = pnp.floor(x)
    if mode in ("linear", "bilinear"):
        return [(base, base + 1 - x), (base + 1, x - base)]
    return [(base + k, _cubic_kernel(x - (base + k), -0.75)) for k in (-1, 0, 1, 2)]


@means("GridSample")
def _grid_sample(node: Node, x: Value, grid: Value) -> Any:
    """Interpolate at points, whose coordinates run from -1 to 1, the last axis first."""
    mode, padding = node.get("mode", "bilinear"), node.get("padding_mode", "zeros")
    align = bool(node.get("align_corners", 0))
    extents = x.shape[2:]
    rank = len(extents)
    places = []
    for k, size in enumerate(extents):
        u = grid[..., rank - 1 - k]
        number = u.dtype.type
        u = (u + 1) * number((size - 1) / 2) if align else ((u + 1) * number(size) - 1) / number(2)
        u = pnp.round(u) if mode == "nearest" else u
        places.append(_neighbours(_fit_coordinate(u, size, padding, align), mode))
    sample = np.arange(x.shape[0]).reshape(-1, *[1] * (grid.ndim - 2))
    channels_last = pnp.moveaxis(x, 1, -1)
    total: Any = 0
    for taps in itertools.product(*places):
        weight: Any = np.asarray(True)
        index = [sample]
        for size, (place, part) in zip(extents, taps, strict=True):
            fitted, inside = _fit_place(place, size, padding, align)
            index.append(fitted)
            weight = weight * part * inside
        values = channels_last[tuple(index)]
        total = total + values * pnp.expand_dims(weight, -1).astype(x.dtype)
    return pnp.moveaxis(total, -1, 1)


@means("NonMaxSuppression")
def _non_max_suppression(node: Node, *inputs: Optional) -> Any:
    """Return the best boxes of each class that overlap no better one too much."""
    boxes, scores = (node.known(inputs, k, "boxes") for k in (0, 1))
    most, overlap, least = (
        node.known(inputs, k, "bounds").reshape(-1)[0].item()
        if len(inputs) > k and inputs[k] is not None
        else default
        for k, default in ((2, 0), (3, 0.0), (4, -math.inf))
    )
    found = []
    for sample, kind in np.ndindex(scores.shape[:2]):
        row, chosen = scores[sample, kind], list[int]()
        corners = _corners(boxes[sample], node.get("center_point_box", 0))
        for k in np.argsort(-row, kind="stable"):
            if len(chosen) >= most or row[k] <= least:
                break
            if all(_overlap(corners[k], corners[other]) <= overlap for other in chosen):
                chosen.append(int(k))
        found += [(sample, kind, k) for k in chosen]
    return np.array(found, np.int64).reshape(-1, 3)


def _corners(boxes: Known, centred: int) -> Known:
    """Return boxes as their lower and upper corners."""
    if centred:
        middle, half = boxes[:, :2], boxes[:, 2:] / 2
        return np.concatenate([middle - half, middle + half], 1)
    first, second = boxes[:, :2], boxes[:, 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], 1)


def _overlap(a: Known, b: Known) -> float:
    """Return the area of the intersection over that of the union."""
    sides = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0)
    shared = float(np.prod(sides))
    union = float(np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2])) - shared
    return shared / union if union > 0 else 0.0
