"""Functions of images by the names that they have in `megengine.functional.vision`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.absent import absent
from primgraph.compat.megengine.functional.loss import torch_functions
from primgraph.compat.megengine.tensor import Tensor
from primgraph.errors import OptionError, ShapeError

__all__ = ["flip", "interpolate", "nms", "resize", "rot90"]

_MODES = ("bilinear", "linear", "trilinear", "bicubic", "nearest")


def flip(inp: Any, vertical: bool = True, horizontal: bool = True) -> Any:
    """Reverse rows, columns or both of images (n, h, w, c).

    >>> F = megengine.functional
    >>> F.vision.flip(F.arange(4).reshape(1, 2, 2, 1)).flatten()
    Tensor([3. 2. 1. 0.], device=xpux:0)
    """
    axes = tuple(axis for axis, is_wanted in ((1, vertical), (2, horizontal)) if is_wanted)
    return pg.flip(inp, axes) if axes else inp


def rot90(inp: Any, clockwise: bool = True) -> Any:
    """Turn images (n, h, w, c) by 90 degrees.

    >>> F = megengine.functional
    >>> F.vision.rot90(F.arange(4).reshape(1, 2, 2, 1)).flatten()
    Tensor([2. 0. 3. 1.], device=xpux:0)
    """
    return pg.rot90(inp, -1 if clockwise else 1, (1, 2))


def interpolate(
    inp: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "bilinear",
    align_corners: bool | None = None,
) -> Any:
    """Return images (n, c, h, w) of another size, or of sizes times factors, by interpolation.

    `mode` is "bilinear", "linear" (n, c, l), "trilinear", "bicubic" or "nearest".

    >>> F = megengine.functional
    >>> F.vision.interpolate(F.arange(4).reshape(1, 1, 2, 2), scale_factor=2, mode="nearest").shape
    (1, 1, 4, 4)
    """
    if mode.lower() not in _MODES:
        raise OptionError(f"unsupported interpolate mode: {mode!r:.60}")
    if size is None and scale_factor is None:
        raise OptionError("scale_factor must not be None when size is None")
    if align_corners is not None and not mode.lower().endswith("linear"):
        raise OptionError("align_corners is an option of linear modes")
    size = size.tolist() if isinstance(size, Tensor) else size
    return torch_functions().interpolate(inp, size, scale_factor, mode.lower(), align_corners)


def resize(
    inp: Any,
    size: Any,
    format: str = "NCHW",
    imode: str = "bilinear",
    max_size: int | None = None,
) -> Any:
    """Return images of another size; extents are at most `max_size`, if that is given.

    >>> F = megengine.functional
    >>> F.vision.resize(F.ones((1, 3, 4, 4)), (2, 6)).shape
    (1, 3, 2, 6)
    """
    if format not in ("NCHW", "NHWC"):
        raise OptionError(f"resize: format is 'NCHW' or 'NHWC', not {format!r:.60}")
    wanted = [n if max_size is None else min(n, max_size) for n in map(int, size)]
    if format == "NCHW":
        return interpolate(inp, wanted, None, imode)
    return pg.moveaxis(interpolate(pg.moveaxis(inp, 3, 1), wanted, None, imode), 1, 3)


def nms(boxes: Any, scores: Any, iou_thresh: float, max_output: int | None = None) -> Tensor:
    """Return the indices of boxes (x1, y1, x2, y2), best first, that overlap no better one.

    Two overlap if intersection over union is more than `iou_thresh`.

    >>> boxes = megengine.Tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.9], [5.0, 5.0, 6.0, 6.0]])
    >>> megengine.functional.vision.nms(boxes, megengine.Tensor([0.5, 0.9, 0.7]), 0.5)
    Tensor([1 2], dtype=int32, device=xpux:0)
    """
    if boxes.ndim != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        raise ShapeError(f"nms: boxes {boxes.shape} are (n, 4), and scores {scores.shape} (n,)")
    array = boxes.numpy()
    order = np.argsort(-scores.numpy(), kind="stable")
    kept: list[int] = []
    while len(order) and len(kept) != max_output:
        best, order = order[0], order[1:]
        kept.append(int(best))
        order = order[_overlaps(array[best], array[order]) <= iou_thresh]
    return Tensor(np.array(kept, "int32"))


def _overlaps(box: np.ndarray[Any, Any], others: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Intersection over union of a box with others."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    common = np.prod(np.maximum(high - low, 0), axis=1)
    areas = np.prod(others[:, 2:] - others[:, :2], axis=1) + np.prod(box[2:] - box[:2])
    return np.asarray(common / np.maximum(areas - common, 1e-30))


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
