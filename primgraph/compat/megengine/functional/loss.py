"""Losses by the names that they and their arguments have in `megengine.functional.loss`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.absent import absent
from primgraph.errors import OptionError, ShapeError

__all__ = [
    "binary_cross_entropy",
    "cross_entropy",
    "ctc_loss",
    "hinge_loss",
    "l1_loss",
    "square_loss",
]


def square_loss(pred: Any, label: Any, reduction: str = "mean") -> Any:
    """Compute the squared difference: its mean over all elements, its sum, or neither.

    >>> F = megengine.functional
    >>> F.loss.square_loss(F.zeros(2), F.full(2, 3.0))
    Tensor(9.0, device=xpux:0)
    """
    return _reduce((pred - label) ** 2, reduction)


def l1_loss(pred: Any, label: Any, reduction: str = "mean") -> Any:
    """Compute the absolute difference: its mean over all elements, its sum, or neither.

    >>> F = megengine.functional
    >>> F.loss.l1_loss(F.zeros(2), F.full(2, 3.0))
    Tensor(3.0, device=xpux:0)
    """
    return _reduce(pg.abs(pred - label), reduction)


def cross_entropy(
    pred: Any,
    label: Any,
    axis: int = 1,
    with_logits: bool = True,
    label_smooth: float = 0.0,
    reduction: str = "mean",
) -> Any:
    """Compute the cross entropy of logits, or of probabilities, along `axis`, for class indices.

    `label_smooth` is the share of the loss that is the mean over all classes. Raises `LabelError`,
    an `AssertionError`, for labels with other than one axis less than `pred`.

    >>> F = megengine.functional
    >>> F.loss.cross_entropy(F.zeros((1, 2)), megengine.tensor([1]))
    Tensor(0.6931472, device=xpux:0)
    """
    if pred.ndim != label.ndim + 1:
        raise LabelError(f"cross_entropy: labels {label.shape} are not classes of {pred.shape}")
    logarithms = pg.log_softmax(pred, axis) if with_logits else pg.log(pred)
    places = label if label.dtype == "int32" else pg.astype(label, "int32")
    places = pg.expand_dims(places, axis)
    loss = -pg.squeeze(pg.take_along_axis(logarithms, places, axis), axis)
    if label_smooth:
        loss = (1 - label_smooth) * loss - label_smooth * pg.mean(logarithms, axis)
    return _reduce(loss, reduction)


def binary_cross_entropy(
    pred: Any, label: Any, with_logits: bool = True, reduction: str = "mean"
) -> Any:
    """Compute the cross entropy of logits, or of probabilities, for labels between 0 and 1.

    >>> F = megengine.functional
    >>> F.loss.binary_cross_entropy(F.zeros(2), F.ones(2))
    Tensor(0.6931472, device=xpux:0)
    """
    if with_logits:
        return _reduce(label * pg.softplus(-pred) + (1 - label) * pg.softplus(pred), reduction)
    return _reduce(-(label * pg.log(pred) + (1 - label) * pg.log(1 - pred)), reduction)


def hinge_loss(pred: Any, label: Any, norm: str = "L1", reduction: str = "mean") -> Any:
    """Compute `max(0, 1 - pred * label)`, or its square for "L2", summed over axis 1.

    >>> F = megengine.functional
    >>> F.loss.hinge_loss(megengine.Tensor([[0.5, -0.5]]), megengine.Tensor([[1, -1]]))
    Tensor(1.0, device=xpux:0)
    """
    if norm.upper() not in ("L1", "L2"):
        raise OptionError(f"hinge_loss: norm is 'L1' or 'L2', not {norm!r:.60}")
    loss = pg.relu(1.0 - pred * label)
    return _reduce(pg.sum(loss if norm.upper() == "L1" else loss * loss, 1), reduction)


def ctc_loss(
    pred: Any,
    pred_lengths: Any,
    label: Any,
    label_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
) -> Any:
    """Compute the loss of connectionist temporal classification (Graves et al., 2006).

    `pred` has probabilities, of shape (times, samples, classes); labels are of shape (samples,
    length), or all of them one after the other. The mean is that of losses by label lengths.

    >>> F = megengine.functional
    >>> two = megengine.Tensor([2])
    >>> F.loss.ctc_loss(F.full((2, 1, 3), 1 / 3), two, megengine.Tensor([[1, 2]]), two)
    Tensor(1.0986123, device=xpux:0)
    """
    logarithms = pg.log(pg.maximum(pred, np.finfo(pred.dtype).tiny))
    lengths = (pred_lengths, label_lengths)
    return torch_functions().ctc_loss(logarithms, label, *lengths, blank, reduction)


@cache
def torch_functions() -> Any:
    """Return the functions of torch's networks, which are loaded with the first call."""
    return import_module("primgraph.compat.torch.nn.functional")


class LabelError(ShapeError, AssertionError):
    """Error for labels whose shape does not fit: an `AssertionError` in MegEngine."""


def _reduce(loss: Any, reduction: str) -> Any:
    if reduction not in ("mean", "sum", "none"):
        raise OptionError(f"reduction is 'mean', 'sum' or 'none', not {reduction!r:.60}")
    if reduction == "none":
        return loss
    return pg.mean(loss) if reduction == "mean" else pg.sum(loss, dtype=loss.dtype)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
