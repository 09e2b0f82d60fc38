"""Resampling of images, and patches of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.torch.functions.compositions import clone
from primgraph.errors import (
    ArgumentError,
    MissingMethodError,
    OptionError,
    ShapeError,
    UnsupportedError,
)

__all__ = [
    "affine_grid", "channel_shuffle", "fold", "grid_sample", "interpolate", "pad",
    "pixel_shuffle", "pixel_unshuffle", "unfold", "upsample", "upsample_bilinear",
    "upsample_nearest",
]  # fmt: skip

_MODES = {"nearest": None, "nearest-exact": None, "linear": 3, "bilinear": 4, "trilinear": 5}
_MODES |= {"bicubic": 4, "area": None}


def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:
    """Resample the axes behind samples and channels to a size, or by a factor.

    With `antialias` the weights of a smaller size reach over as many elements as it has fewer.

    >>> torch.nn.functional.interpolate(torch.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    if mode not in _MODES:
        raise UnsupportedError(
            f"interpolate has no mode {mode!r:.60}: use one of {', '.join(_MODES)}"
        )
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ArgumentError(
            "Anti-alias option is only supported for bilinear and bicubic modes, and not for "
            f"{mode!r}"
        )
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise ArgumentError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear "
            "| bicubic | trilinear"
        )
    if _MODES[mode] not in (None, input.ndim):
        raise MissingMethodError(
            f"Got {input.ndim}D input, but {mode} mode needs {_MODES[mode]}D input"
        )
    count = input.ndim - 2
    sizes, scales = _output_sizes(input, size, scale_factor, count)
    if recompute_scale_factor:
        scales = [None] * count
    for axis, (wanted, scale) in enumerate(zip(sizes, scales, strict=True), 2):
        weights = _antialiased_weights if antialias else _weights
        matrix = weights(input.shape[axis], wanted, scale, mode, bool(align_corners))
        input = _apply_along(input, matrix, axis)
    return input


def _output_sizes(input: Any, size: Any, factor: Any, count: int) -> tuple[list[int], list[Any]]:
    """Return sizes, and scales if they are given."""
    if (size is None) == (factor is None):
        known = "size and scale_factor" if size is not None else "neither size nor scale_factor"
        raise ArgumentError(f"interpolate takes either size or scale_factor, not {known}")
    if size is not None:
        sizes = [size] * count if isinstance(size, int) else list(size)
        if len(sizes) != count:
            raise ArgumentError(
                "Input and output must have the same number of spatial dimensions, but got input "
                f"with spatial dimensions of {list(input.shape[2:])} and output size of {size}."
            )
        return [int(n) for n in sizes], [None] * count
    factors = [factor] * count if isinstance(factor, int | float) else list(factor)
    return [math.floor(n * f) for n, f in zip(input.shape[2:], factors, strict=True)], factors


def _weights(extent: int, size: int, scale: Any, mode: str, align: bool) -> Any:
    """Return positions (nearest), or a matrix of weights, that resample an axis."""
    step = extent / size if scale is None else 1 / scale
    places = np.arange(size)
    if mode == "area":
        first, last = places * extent // size, -(-(places + 1) * extent // size)
        taken = (np.arange(extent) >= first[:, None]) & (np.arange(extent) < last[:, None])
        return taken / taken.sum(1, keepdims=True)
    if mode.startswith("nearest"):
        shift = 0.5 if mode == "nearest-exact" else 0.0
        found = np.floor(np.float32(step) * (places + np.float32(shift)))
        return np.minimum(found.astype(np.int64), extent - 1)
    if align:
        where = places * ((extent - 1) / (size - 1) if size > 1 else 0.0)
    else:
        where = (places + 0.5) * step - 0.5
        where = where if mode == "bicubic" else np.maximum(where, 0.0)
    return _cubic(where, extent) if mode == "bicubic" else _linear(where, extent)


def _antialiased_weights(extent: int, size: int, scale: Any, mode: str, align: bool) -> Any:
    """Return the matrix of weights of windows that are as wide as the step between results."""
    step = extent / size if scale is None else 1 / scale
    if align:
        step = (extent - 1) / (size - 1) if size > 1 else 0.0
    stretch = max(step, 1.0)
    reach = (1.0 if mode == "bilinear" else 2.0) * stretch
    matrix = np.zeros((size, extent))
    for row in range(size):
        center = step * (row + 0.5)
        first = max(int(center - reach + 0.5), 0)
        taken = np.arange(first, min(int(center + reach + 0.5), extent))
        x = np.abs((taken - center + 0.5) / stretch)
        share = np.maximum(1.0 - x, 0.0) if mode == "bilinear" else _cubic_kernel(x, -0.5)
        matrix[row, taken] = share / share.sum()
    return matrix


def _cubic_kernel(x: Any, a: float) -> Any:
    """Return the weights of cubic convolution at distances `x`."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _linear(where: Any, extent: int) -> Any:
    matrix = np.zeros((len(where), extent))
    below = np.minimum(np.floor(where).astype(int), extent - 1)
    share = where - below
    rows = np.arange(len(where))
    np.add.at(matrix, (rows, below), 1 - share)
    np.add.at(matrix, (rows, np.minimum(below + 1, extent - 1)), share)
    return matrix


def _cubic(where: Any, extent: int, a: float = -0.75) -> Any:
    matrix = np.zeros((len(where), extent))
    below = np.floor(where).astype(int)
    rows = np.arange(len(where))
    for offset in range(-1, 3):
        x = np.abs(where - (below + offset))
        share = _cubic_kernel(x, a)
        np.add.at(matrix, (rows, np.clip(below + offset, 0, extent - 1)), share)
    return matrix


def _apply_along(input: Any, matrix: Any, axis: int) -> Any:
    """Resample one axis by positions or by a matrix."""
    if matrix.ndim == 1:
        return pg.take(input, matrix, axis)
    moved = pg.moveaxis(input, axis, -1)
    found = pg.matmul(moved, np.ascontiguousarray(matrix.T).astype(input.type.dtype))
    return pg.moveaxis(found, -1, axis)


def upsample(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Any:
    """Resample, as `interpolate` does.

    >>> torch.nn.functional.upsample(torch.tensor([[[1.0, 2.0]]]), size=4)
    tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Resample by repeating elements.

    >>> torch.nn.functional.upsample_nearest(torch.tensor([[[1.0, 2.0]]]), size=4)
    tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor)


def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Resample images by linear interpolation, with corners that stay.

    >>> torch.nn.functional.upsample_bilinear(torch.ones(1, 1, 1, 1), scale_factor=2).shape
    torch.Size([1, 1, 2, 2])
    """
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


# Grids.


def affine_grid(theta: Any, size: Sequence[int], align_corners: bool | None = None) -> Any:
    """Return the positions, from -1 to 1, to which affine maps take the pixels of images.

    >>> theta = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> torch.nn.functional.affine_grid(theta, (1, 1, 1, 2), align_corners=False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    extents = list(size)[2:]
    if len(extents) not in (2, 3) or tuple(theta.shape[1:]) != (len(extents), len(extents) + 1):
        raise ShapeError(
            f"affine_grid of size {tuple(size)} cannot use a theta of {tuple(theta.shape)}"
        )
    lines = []
    for n in extents:
        line = np.linspace(-1.0, 1.0, n) if n > 1 else np.zeros(1)
        lines.append(line if align_corners else line * ((n - 1) / n))
    axes = np.meshgrid(*lines, indexing="ij")[::-1]
    base = np.stack([*axes, np.ones(extents)], -1).reshape(1, -1, len(extents) + 1)
    found = pg.matmul(base.astype(theta.type.dtype), pg.swapaxes(theta, 1, 2))
    return pg.reshape(found, (theta.shape[0], *extents, len(extents)))


def grid_sample(
    input: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Any:
    """Return images at positions of a grid, from -1 to 1 along x, y (and z).

    >>> image = torch.tensor([[[[1.0, 3.0]]]])
    >>> torch.nn.functional.grid_sample(image, torch.zeros(1, 1, 1, 2), align_corners=False)
    tensor([[[[2.]]]])
    """
    if mode not in ("bilinear", "nearest"):
        raise OptionError(f"grid_sample has modes 'bilinear' and 'nearest', not {mode!r:.60}")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ArgumentError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    count = input.ndim - 2
    if grid.ndim != input.ndim or grid.shape[-1] != count or grid.shape[0] != input.shape[0]:
        raise ShapeError(
            f"grid_sample of {tuple(input.shape)} cannot use a grid of {tuple(grid.shape)}"
        )
    extents = input.shape[2:]
    where = []
    for axis, n in enumerate(extents):
        x = grid[..., count - 1 - axis]
        x = (x + 1) * ((n - 1) / 2) if align_corners else ((x + 1) * n - 1) / 2
        where.append(_inside(x, n, padding_mode, bool(align_corners)))
    if mode == "nearest":
        return _corner(input, [pg.round(x) for x in where], None)
    below = [pg.stop_gradient(pg.floor(x)) for x in where]
    total = None
    for corner in np.ndindex(*(2,) * count):
        places = [b + c for b, c in zip(below, corner, strict=True)]
        share = None
        for x, place, c in zip(where, places, corner, strict=True):
            part = 1 - (place - x) if c else 1 - (x - place)
            share = part if share is None else share * part
        term = _corner(input, places, share)
        total = term if total is None else total + term
    return total


def _inside(x: Any, n: int, padding_mode: str, align: bool) -> Any:
    """Move positions outside of an axis of `n` elements inside, unless zeros lie there."""
    if padding_mode == "border":
        return pg.clip(x, 0, n - 1)
    if padding_mode == "reflection":
        low, span = (0.0, float(n - 1)) if align else (-0.5, float(n))
        if span <= 0:
            return x * 0
        offset = pg.abs(x - low)
        turns = pg.stop_gradient(pg.floor(offset / span))
        rest = offset - turns * span
        is_even = pg.equal(pg.remainder(turns, 2), 0)
        return pg.clip(pg.where(is_even, rest, span - rest) + low, 0, n - 1)
    return x


def _corner(input: Any, places: Sequence[Any], share: Any) -> Any:
    """Return the pixels at integer positions, 0 outside, times a share."""
    extents = input.shape[2:]
    is_inside: Any = None
    flat: Any = 0
    for place, n in zip(places, extents, strict=True):
        fits = pg.logical_and(pg.greater_equal(place, 0), pg.less(place, n))
        is_inside = fits if is_inside is None else pg.logical_and(is_inside, fits)
        flat = flat * n + pg.astype(pg.clip(place, 0, n - 1), "int64")
    samples, channels = input.shape[:2]
    shape = flat.shape[1:]
    pixels = pg.reshape(input, (samples, channels, -1))
    indices = pg.broadcast_to(
        pg.reshape(flat, (samples, 1, -1)), (samples, channels, int(np.prod(shape)))
    )
    found = pg.reshape(pg.take_along_axis(pixels, indices, 2), (samples, channels, *shape))
    found = pg.where(pg.expand_dims(is_inside, 1), found, 0)
    return found if share is None else found * pg.expand_dims(share, 1)


# Patches.


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else tuple(value)


def _patches(extents: Sequence[int], kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    """Return the row and column in the padded image of each element of each patch."""
    places = []
    for n, k, d, p, s in zip(extents, kernel, dilation, padding, stride, strict=True):
        count = (n + 2 * p - d * (k - 1) - 1) // s + 1
        if count < 1:
            raise ShapeError(f"patches of {tuple(kernel)} do not fit an image of {tuple(extents)}")
        places.append(np.arange(k)[:, None] * d + np.arange(count) * s)
    rows, columns = places
    kernels, counts = (rows.shape[0], columns.shape[0]), (rows.shape[1], columns.shape[1])
    both = (rows[:, None, :, None], columns[None, :, None, :])
    return [np.broadcast_to(b, (*kernels, *counts)).reshape(math.prod(kernels), -1) for b in both]


def unfold(
    input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """Return the patches of images as columns.

    >>> torch.nn.functional.unfold(torch.ones(1, 1, 3, 3), 2).shape
    torch.Size([1, 4, 4])
    """
    if input.ndim == 3:
        return unfold(pg.expand_dims(input, 0), kernel_size, dilation, padding, stride)[0]
    if input.ndim != 4:
        raise ShapeError(f"unfold takes images with channels, not {input.ndim} axes")
    kernel, padded = _pair(kernel_size), _pair(padding)
    rows, columns = _patches(input.shape[2:], kernel, _pair(dilation), padded, _pair(stride))
    if any(padded):
        input = pg.pad(input, [(0, 0), (0, 0), *((p, p) for p in padded)])
    found = input[:, :, rows, columns]
    return pg.reshape(found, (input.shape[0], -1, rows.shape[1]))


def fold(
    input: Any,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Any:
    """Add up patches, given as columns, in images; the transpose of `unfold`.

    >>> torch.nn.functional.fold(torch.ones(1, 4, 4), (3, 3), 2)[0, 0, 1]
    tensor([2., 4., 2.])
    """
    if input.ndim == 2:
        return fold(pg.expand_dims(input, 0), output_size, kernel_size, dilation, padding, stride)[
            0
        ]
    sizes, kernel, padded = _pair(output_size), _pair(kernel_size), _pair(padding)
    rows, columns = _patches(sizes, kernel, _pair(dilation), padded, _pair(stride))
    if input.shape[1] % math.prod(kernel) or input.shape[2] != rows.shape[1]:
        raise ShapeError(f"patches of {tuple(input.shape)} do not make images of {sizes}")
    samples, channels = input.shape[0], input.shape[1] // math.prod(kernel)
    wide = [n + 2 * p for n, p in zip(sizes, padded, strict=True)]
    flat = pg.reshape(input, (samples * channels, -1))
    whole = pg.zeros((samples * channels, math.prod(wide)), input.dtype)
    total = pg.moveaxis(
        pg.scatter_add(
            pg.moveaxis(whole, 1, 0),
            (rows * wide[1] + columns).reshape(-1),
            pg.moveaxis(flat, 1, 0),
        ),
        0,
        1,
    )
    found = pg.reshape(total, (samples, channels, *wide))
    (top, left), (height, width) = padded, sizes
    return found[:, :, top : top + height, left : left + width]


def pixel_shuffle(input: Any, upscale_factor: int) -> Any:
    """Turn channels into pixels: (..., C r r, H, W) becomes (..., C, H r, W r).

    >>> torch.nn.functional.pixel_shuffle(torch.ones(1, 4, 1, 1), 2).shape
    torch.Size([1, 1, 2, 2])
    """
    *lead, channels, height, width = input.shape
    r = upscale_factor
    if channels % (r * r):
        raise ShapeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            f"of upscale_factor, but input.size(-3)={channels} is not divisible by {r * r}"
        )
    parts = pg.reshape(input, (*lead, channels // (r * r), r, r, height, width))
    n = len(lead)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return pg.reshape(
        pg.transpose(parts, order), (*lead, channels // (r * r), height * r, width * r)
    )


def pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    """Turn pixels into channels; the inverse of `pixel_shuffle`.

    >>> torch.nn.functional.pixel_unshuffle(torch.ones(1, 1, 2, 2), 2).shape
    torch.Size([1, 4, 1, 1])
    """
    *lead, channels, height, width = input.shape
    r, n = downscale_factor, len(lead)
    if height % r or width % r:
        raise ShapeError(f"pixel_unshuffle: {r} does not divide an image of {height} x {width}")
    parts = pg.reshape(input, (*lead, channels, height // r, r, width // r, r))
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return pg.reshape(
        pg.transpose(parts, order), (*lead, channels * r * r, height // r, width // r)
    )


def channel_shuffle(input: Any, groups: int) -> Any:
    """Deal channels out to groups, as one shuffles cards.

    >>> torch.nn.functional.channel_shuffle(torch.arange(4.0).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    samples, channels, *rest = input.shape
    parts = pg.reshape(input, (samples, groups, channels // groups, *rest))
    return pg.reshape(pg.swapaxes(parts, 1, 2), (samples, channels, *rest))


def pad(input: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Any:
    """Add elements before and after: pairs of counts, the first pair for the last axis.

    Negative counts take elements away. Modes are constant, reflect, replicate and circular.

    >>> torch.nn.functional.pad(torch.ones(2), (1, 2))
    tensor([0., 1., 1., 0., 0.])
    """
    pad = [int(n) for n in pad]
    if len(pad) % 2:
        raise ArgumentError("Padding length must be divisible by 2")
    if len(pad) // 2 > input.ndim:
        raise ArgumentError(
            f"Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(pad)} and input of dimension {input.ndim}"
        )
    names = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode not in names:
        raise UnsupportedError(f"Unrecognised padding mode {mode}")
    pairs = [(0, 0)] * (input.ndim - len(pad) // 2) + [*zip(pad[::2], pad[1::2], strict=True)][::-1]
    if mode != "constant":
        _check_pads(input, pairs, mode)
    if any(n < 0 for pair in pairs for n in pair):
        index = tuple(
            slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(input.shape, pairs, strict=True)
        )
        input, pairs = input[index], [(max(a, 0), max(b, 0)) for a, b in pairs]
    if not any(n for pair in pairs for n in pair):
        return clone(input)
    if mode == "constant":
        return pg.pad(input, pairs, "constant", constant_values=0.0 if value is None else value)
    return pg.pad(input, pairs, names[mode])


def _check_pads(input: Any, pairs: Sequence[tuple[int, int]], mode: str) -> None:
    """Raise as torch does for pads that a mode cannot fill."""
    for n, pair in zip(input.shape, pairs, strict=True):
        limit = {"reflect": n - 1, "circular": n}.get(mode)
        if limit is not None and max(pair) > limit:
            raise ArgumentError(
                f"Padding size should be less than the corresponding input dimension, but got: "
                f"padding {pair} for an axis of {n} elements"
            )
