"""Functions that OneFlow has at its root beside those of torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.eager.node import array_node
from primgraph.eager.tensor import family_of
from primgraph.errors import ArgumentError, ShapeError

__all__ = [
    "batch_gather",
    "broadcast_like",
    "cast",
    "ceil_",
    "floor_",
    "frac_",
    "gather_nd",
    "in_top_k",
    "lerp_",
    "new_ones",
    "nms",
    "quick_gelu",
    "roc_auc_score",
    "round_",
    "scatter_nd",
    "sin_",
    "slice",
    "slice_update",
    "square_relu",
    "tensor_scatter_nd_update",
]


def cast(x: Any, dtype: Any) -> Any:
    """Convert a tensor to another dtype.

    >>> flow.cast(flow.ones(1), flow.int64)
    tensor([1], dtype=oneflow.int64)
    """
    return x.to(dtype)


def _in_place(name: str, example: str) -> Callable[..., Any]:
    """Return the function of a method that changes its tensor; `example` has call and result."""

    def call(input: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(input, name)(*args, **kwargs)

    given, result = example.split(" -> ")
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"""Compute `{name.rstrip("_")}` in place: change the tensor, and return it.

    >>> flow.{name}({given})
    tensor({result}, dtype=oneflow.float32)
    """
    return call


ceil_ = _in_place("ceil_", "flow.tensor([1.5]) -> [2.]")
floor_ = _in_place("floor_", "flow.tensor([1.5]) -> [1.]")
frac_ = _in_place("frac_", "flow.tensor([1.5]) -> [0.5000]")
lerp_ = _in_place("lerp_", "flow.tensor([1.0]), flow.tensor([3.0]), 0.5 -> [2.]")
round_ = _in_place("round_", "flow.tensor([1.7]) -> [2.]")
sin_ = _in_place("sin_", "flow.tensor([0.0]) -> [0.]")


def quick_gelu(x: Any) -> Any:
    """Compute `x * sigmoid(1.702 * x)` (Hendrycks and Gimpel, 2016).

    >>> flow.quick_gelu(flow.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8458], dtype=oneflow.float32)
    """
    return x * pg.sigmoid(x * 1.702)


def square_relu(input: Any) -> Any:
    """Compute the squares of positive elements, and 0 of others.

    >>> flow.square_relu(flow.tensor([-1.0, 2.0]))
    tensor([0., 4.], dtype=oneflow.float32)
    """
    return pg.square(pg.relu(input))


def broadcast_like(x: Any, like_tensor: Any, broadcast_axes: Sequence[int] | None = None) -> Any:
    """Broadcast to the shape of another tensor; `broadcast_axes` are new axes of `x`.

    >>> flow.broadcast_like(flow.tensor([1.0, 2.0]), flow.zeros(3, 2)).shape
    oneflow.Size([3, 2])
    """
    shape = like_tensor.type.shape
    axes = sorted(axis % len(shape) for axis in broadcast_axes or ())
    if len(axes) + x.ndim == len(shape):
        for axis in axes:
            x = pg.expand_dims(x, axis)
    return pg.broadcast_to(x, shape)


def batch_gather(input: Any, indices: Any) -> Any:
    """Take elements along the last axis of `indices`, for each index of the axes before it.

    >>> x = flow.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> flow.batch_gather(x, flow.tensor([[2, 0], [1, 1]]))
    tensor([[3., 1.],
            [5., 5.]], dtype=oneflow.float32)
    """
    axis = indices.ndim - 1
    if indices.type.shape[:axis] != input.type.shape[:axis]:
        raise ShapeError(f"batch_gather: indices of {indices.type} do not fit {input.type}")
    inner = input.type.shape[axis + 1 :]
    places = pg.reshape(indices, (*indices.type.shape, *[1] * len(inner)))
    wanted = (*indices.type.shape, *inner)
    return pg.take_along_axis(input, pg.astype(pg.broadcast_to(places, wanted), "int64"), axis)


def _coordinates(index: Any) -> tuple[Any, ...]:
    """Return the indices along the first axes that the last axis of `index` has."""
    count = index.type.shape[-1]
    return tuple(pg.astype(index[..., axis], "int64") for axis in np.arange(count))


def gather_nd(input: Any, index: Any) -> Any:
    """Return elements or parts of `input` at the coordinates in the last axis of `index`.

    >>> x = flow.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> flow.gather_nd(x, flow.tensor([[0, 1], [1, 0]]))
    tensor([2., 3.], dtype=oneflow.float32)
    """
    return input[_coordinates(index)]


def scatter_nd(index: Any, update: Any, shape: Sequence[int]) -> Any:
    """Return zeros of a shape to which `update` is added at the coordinates in `index`.

    >>> index = flow.tensor([[1], [3], [1]])
    >>> flow.scatter_nd(index, flow.tensor([1.0, 2.0, 3.0]), [4])
    tensor([0., 4., 0., 2.], dtype=oneflow.float32)
    """
    zeros = update.new_zeros(tuple(shape))
    return zeros.index_put(_coordinates(index), update, accumulate=True)


def tensor_scatter_nd_update(tensor: Any, indices: Any, updates: Any) -> Any:
    """Return `tensor` with `updates` at the coordinates in `indices`.

    >>> flow.tensor_scatter_nd_update(flow.zeros(3), flow.tensor([[1]]), flow.ones(1))
    tensor([0., 1., 0.], dtype=oneflow.float32)
    """
    return tensor.index_put(_coordinates(indices), updates)


def _slices(tensor: Any, slice_tup_list: Any) -> tuple[Any, ...]:
    if len(slice_tup_list) > tensor.ndim:
        raise ArgumentError(f"slice: {len(slice_tup_list)} slices for {tensor.type}")
    return tuple(np.s_[start:stop:step] for start, stop, step in slice_tup_list)


def slice(input: Any, slice_tup_list: Sequence[Sequence[Any]]) -> Any:
    """Return a part of a tensor by `(start, stop, step)` for each axis.

    >>> flow.slice(flow.tensor([1.0, 2.0, 3.0]), [(0, None, 2)])
    tensor([1., 3.], dtype=oneflow.float32)
    """
    return input[_slices(input, slice_tup_list)]


def slice_update(input: Any, update: Any, slice_tup_list: Sequence[Sequence[Any]]) -> Any:
    """Store `update` in a part of `input` by `(start, stop, step)` for each axis; return `input`.

    >>> flow.slice_update(flow.zeros(3), flow.ones(2), [(1, 3, 1)])
    tensor([0., 1., 1.], dtype=oneflow.float32)
    """
    input[_slices(input, slice_tup_list)] = update
    return input


def new_ones(x: Any, size: Any = None, dtype: Any = None, **options: Any) -> Any:
    """Return ones of the dtype of `x`, and of its shape by default.

    >>> flow.new_ones(flow.zeros(2, dtype=flow.float64), (1,)).dtype
    oneflow.float64
    """
    return x.new_ones(tuple(x.shape) if size is None else size, dtype=dtype, **options)


def in_top_k(targets: Any, predictions: Any, k: int) -> Any:
    """Tell for each row whether its target is among the `k` largest predictions.

    >>> scores = flow.tensor([[0.8, 0.6, 0.3], [0.1, 0.6, 0.4]])
    >>> flow.in_top_k(flow.tensor([1, 2]), scores, k=1)
    tensor([False, False], dtype=oneflow.bool)
    """
    places = pg.astype(pg.expand_dims(targets, 1), "int64")
    score = pg.take_along_axis(predictions, places, 1)
    better = pg.sum(pg.astype(pg.greater(predictions, score), "int64"), 1)
    return pg.less(better, k)


def _tensor(like: Any, array: Any) -> Any:
    """Return an array as a tensor of the library of another tensor."""
    return family_of([like])(array_node(array))


def nms(boxes: Any, scores: Any, iou_threshold: float) -> Any:
    """Return the indices of boxes, best scores first, that do not overlap with better ones.

    Two boxes `(x1, y1, x2, y2)` overlap if the area of their intersection is more than
    `iou_threshold` times that of their union.

    >>> boxes = flow.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.9], [3.0, 3.0, 4.0, 4.0]])
    >>> flow.nms(boxes, flow.tensor([0.5, 0.9, 0.1]), 0.5)
    tensor([1, 2], dtype=oneflow.int64)
    """
    corners, order = (
        np.asarray(boxes.detach()),
        np.argsort(-np.asarray(scores.detach()), kind="stable"),
    )
    areas = np.prod(corners[:, 2:] - corners[:, :2], axis=1)
    kept: list[int] = []
    for place in order.tolist():
        low = np.maximum(corners[place, :2], corners[kept, :2])
        high = np.minimum(corners[place, 2:], corners[kept, 2:])
        common = np.prod(np.clip(high - low, 0.0, None), axis=1)
        if np.all(common <= iou_threshold * (areas[place] + areas[kept] - common)):
            kept.append(place)
    return _tensor(boxes, np.array(kept, np.int64))


def roc_auc_score(label: Any, pred: Any) -> Any:
    """Return the area under the ROC curve: the share of pairs whose positive has the larger score.

    Pairs of equal scores count half.

    >>> flow.roc_auc_score(flow.tensor([0, 1, 1]), flow.tensor([0.2, 0.1, 0.7]))
    tensor([0.5000], dtype=oneflow.float32)
    """
    labels = np.asarray(label.detach()).reshape(-1) == 1
    scores = np.asarray(pred.detach()).reshape(-1)
    difference = scores[labels][:, None] - scores[~labels][None]
    area = np.mean((np.sign(difference) + 1.0) / 2.0)
    return _tensor(pred, np.array([area], np.float32))
