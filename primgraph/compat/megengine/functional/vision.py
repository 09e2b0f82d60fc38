"""Functions of images by the names that they have in `megengine.functional.vision`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.absent import absent
from primgraph.compat.megengine.tensor import Tensor
from primgraph.errors import ShapeError

__all__ = ["flip", "nms", "rot90"]


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
