"""Resampling, pads and rearrangement of images by the names that they have in Paddle."""

from __future__ import annotations

from typing import Any

from primgraph import operators as pg
from primgraph.compat.paddle.functions.rows import define_functions
from primgraph.compat.paddle.nn.functional.windows import in_layout, pads_of, sizes_of
from primgraph.compat.torch.nn.functional import sampling as torch
from primgraph.errors import ArgumentError, CheckError, OptionError

_NAMES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
_LINEAR = {"linear", "bilinear", "trilinear", "bicubic"}


def numbers_of(given: Any) -> Any:
    """Return numbers for a tensor of them, or a list in which some are tensors."""
    if hasattr(given, "tolist"):
        return given.tolist()
    if isinstance(given, list | tuple):
        return [n.item() if hasattr(n, "item") else n for n in given]
    return given


def pad_axes(
    x: Any, pad: Any, mode: str, value: Any, data_format: str | None, pad_from_left_axis: bool
) -> Any:
    """Return `x` with elements around axes: see Paddle's rules for the order of pads."""
    listed = numbers_of(pad)
    if mode not in _NAMES:
        raise CheckError(f"mode should be one of {list(_NAMES)}, but got mode {mode!r:.60}")
    if isinstance(listed, int):
        listed = [listed] * (2 * (x.ndim - 2))
    pairs = list(zip(listed[::2], listed[1::2], strict=True))
    if mode == "constant" and len(listed) == 2 * x.ndim and pad_from_left_axis:
        return torch.pad(x, [n for pair in reversed(pairs) for n in pair], "constant", value)
    if len(listed) != 2 * (x.ndim - 2):
        if mode != "constant":
            raise ArgumentError(f"pad takes {2 * (x.ndim - 2)} numbers of {x.type}, not {listed}")
        return torch.pad(x, listed, "constant", value)
    layout = (data_format or "NCHW").upper().replace("NCW", "NCL").replace("NWC", "NLC")
    fill = value if mode == "constant" else None
    return in_layout(layout, x, lambda x: torch.pad(x, listed, mode, fill))


def resample(
    x: Any, size: Any, scale_factor: Any, mode: str, align_corners: bool, align_mode: int,
    data_format: str | None, recompute_scale_factor: Any, antialias: bool,
) -> Any:  # fmt: skip
    """Return an image of another size."""
    name = mode.lower()
    if name not in (*_LINEAR, "nearest", "area"):
        raise ArgumentError(
            "The 'resample' of image_resize can only be 'linear', 'bilinear', 'trilinear', "
            f"'bicubic', 'area' or 'nearest' currently, not {mode!r:.60}"
        )
    if align_corners and name == "nearest":
        raise ArgumentError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear "
            "| bicubic | trilinear"
        )
    if size is None and scale_factor is None:
        raise ArgumentError("One of size and scale_factor must not be None.")
    if align_mode == 1 and not align_corners and name in _LINEAR:
        raise OptionError("align_mode=1 is not supported, leave it out")
    sizes, factor = numbers_of(size), numbers_of(scale_factor)
    if isinstance(sizes, list | tuple) and len(sizes) != x.ndim - 2:
        raise ArgumentError("The x and size should satisfy rank(x) - 2 == len(size).")
    align = align_corners if name in _LINEAR else None
    layout = (data_format or "NCHW").upper().replace("NCW", "NCL").replace("NWC", "NLC")

    def compute(x: Any) -> Any:
        return torch.interpolate(x, sizes, factor, name, align, recompute_scale_factor, antialias)

    return in_layout(layout, x, compute)


def columns(x: Any, kernel_sizes: Any, strides: Any, paddings: Any, dilations: Any) -> Any:
    """Return the windows of images as columns."""
    pairs = pads_of(paddings, x, sizes_of(kernel_sizes, 2), [1, 1], [1, 1])
    (top, bottom), (left, right) = pairs
    value = torch.pad(x, [left, right, top, bottom])
    kernel, apart, steps = (sizes_of(n, 2) for n in (kernel_sizes, dilations, strides))
    return torch.unfold(value, kernel, apart, 0, steps)


def images_of(
    x: Any, output_sizes: Any, kernel_sizes: Any, strides: Any, paddings: Any, dilations: Any
) -> Any:
    """Return sums of columns as windows of images."""
    pairs = pads_of(paddings, x, sizes_of(kernel_sizes, 2), [1, 1], [1, 1])
    sizes = sizes_of(numbers_of(output_sizes), 2)
    whole = [n + a + b for n, (a, b) in zip(sizes, pairs, strict=True)]
    kernel, apart, steps = (sizes_of(n, 2) for n in (kernel_sizes, dilations, strides))
    found = torch.fold(x, whole, kernel, apart, 0, steps)
    (top, _), (left, _) = pairs
    return found[:, :, top : top + sizes[0], left : left + sizes[1]]


def shift_times(x: Any, seg_num: int, shift_ratio: float, data_format: str) -> Any:
    """Return images of a film with shares of the channels from the image before and after."""

    def compute(x: Any) -> Any:
        _, channels, height, width = x.type.shape
        film = pg.reshape(x, (-1, seg_num, channels, height, width))
        first, second = int(channels * shift_ratio), int(channels * 2 * shift_ratio)
        longer = pg.pad(film, [(0, 0), (1, 1), (0, 0), (0, 0), (0, 0)])
        parts = (longer[:, :-2, :first], longer[:, 2:, first:second], film[:, :, second:])
        return pg.reshape(pg.concatenate(parts, 2), (-1, channels, height, width))

    return in_layout(data_format, x, compute)


_ROWS = """
affine_grid(theta, out_shape, align_corners=True) = torch.affine_grid(theta, numbers_of(out_shape), align_corners)
Return the positions from which an affine map takes the elements of an image. | [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]], (1, 1, 1, 2) -> [[[[-1.0, 0.0], [1.0, 0.0]]]]
channel_shuffle(x, groups, data_format='NCHW') = in_layout(data_format, x, lambda x: torch.channel_shuffle(x, groups))
Take channels from each of the groups in turn. | [[[[1.0]], [[2.0]]]], 2 -> [[[[1.0]], [[2.0]]]]
fold(x, output_sizes, kernel_sizes, strides=1, paddings=0, dilations=1) = images_of(x, output_sizes, kernel_sizes, strides, paddings, dilations)
Add columns as windows of images: the transpose of `unfold`. | [[[1.0], [2.0]]], (1, 2), (1, 2) -> [[[[1.0, 2.0]]]]
grid_sample(x, grid, mode='bilinear', padding_mode='zeros', align_corners=True) = torch.grid_sample(x, grid, mode, padding_mode, align_corners)
Return the elements of images at positions. | [[[[1.0, 2.0]]]], [[[[0.0, 0.0]]]] -> [[[[1.5]]]]
interpolate(x, size=None, scale_factor=None, mode='nearest', align_corners=False, align_mode=0, data_format=None, recompute_scale_factor=None, antialias=False) = resample(x, size, scale_factor, mode, align_corners, align_mode, data_format, recompute_scale_factor, antialias)
Resample images to a size, or by a factor. | [[[[1.0, 2.0]]]], scale_factor=2 -> [[[[1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 2.0, 2.0]]]]
pad(x, pad, mode='constant', value=0.0, data_format=None, pad_from_left_axis=True) = pad_axes(x, pad, mode, value, data_format, pad_from_left_axis)
Add elements around axes: pairs, the first for the last axis, or for axis 0 if there are as many as axes. | [[[1.0, 2.0]]], (1, 0) -> [[[0.0, 1.0, 2.0]]]
pixel_shuffle(x, upscale_factor, data_format='NCHW') = in_layout(data_format, x, lambda x: torch.pixel_shuffle(x, upscale_factor))
Move channels into the blocks of larger images. | [[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]], 2 -> [[[[1.0, 2.0], [3.0, 4.0]]]]
pixel_unshuffle(x, downscale_factor, data_format='NCHW') = in_layout(data_format, x, lambda x: torch.pixel_unshuffle(x, downscale_factor))
Move the blocks of images into channels. | [[[[1.0, 2.0], [3.0, 4.0]]]], 2 -> [[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]]
unfold(x, kernel_sizes, strides=1, paddings=0, dilations=1) = columns(x, kernel_sizes, strides, paddings, dilations)
Return the windows of images as columns. | [[[[1.0, 2.0, 3.0]]]], (1, 2) -> [[[1.0, 2.0], [2.0, 3.0]]]
upsample(x, size=None, scale_factor=None, mode='nearest', align_corners=False, align_mode=0, data_format=None) = resample(x, size, scale_factor, mode, align_corners, align_mode, data_format, None, False)
Resample images to a size, or by a factor. | [[[[1.0, 2.0]]]], scale_factor=2 -> [[[[1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 2.0, 2.0]]]]
zeropad2d(x, padding, data_format='NCHW') = pad_axes(x, padding, 'constant', 0.0, data_format, False)
Add zeros around images: left, right, top and bottom. | [[[[1.0, 2.0]]]], (1, 0, 0, 0) -> [[[[0.0, 1.0, 2.0]]]]
temporal_shift(x, seg_num, shift_ratio=0.25, name=None, data_format='NCHW') = shift_times(x, seg_num, shift_ratio, data_format)
Take shares of the channels of images from the image before and after. | paddle.ones((2, 4, 1, 1)), 2, 0.5 -> [[[[0.0]], [[0.0]], [[1.0]], [[1.0]]], [[[1.0]], [[1.0]], [[0.0]], [[0.0]]]]
"""  # noqa: E501

__all__ = define_functions(globals(), _ROWS, "paddle.nn.functional")
