"""Losses by the names that they have in `megengine.functional`."""

from __future__ import annotations

from typing import Any

from primgraph import operators as pg
from primgraph.errors import OptionError


def square_loss(pred: Any, label: Any, reduction: str = "mean") -> Any:
    """Compute the squared difference: its mean over all elements, its sum, or neither.

    >>> F = megengine.functional
    >>> F.square_loss(F.zeros(2), F.full(2, 3.0))
    tensor(9., dtype=float32)
    """
    return pg.mse_loss(pred, label, reduction)


def l1_loss(pred: Any, label: Any, reduction: str = "mean") -> Any:
    """Compute the absolute difference: its mean over all elements, its sum, or neither.

    >>> F = megengine.functional
    >>> F.l1_loss(F.zeros(2), F.full(2, 3.0))
    tensor(3., dtype=float32)
    """
    return pg.l1_loss(pred, label, reduction)


def cross_entropy(
    pred: Any,
    label: Any,
    axis: int = 1,
    with_logits: bool = True,
    label_smooth: float = 0.0,
    reduction: str = "mean",
) -> Any:
    """Compute the cross entropy of logits, or of probabilities, along `axis`, for class indices.

    >>> F = megengine.functional
    >>> F.cross_entropy(F.zeros((1, 2)), megengine.tensor([1]))
    tensor(0.6931472, dtype=float32)
    """
    if label_smooth:
        raise OptionError(f"cross_entropy: label_smooth={label_smooth!r:.60} is not supported")
    return pg.cross_entropy(pred if with_logits else pg.log(pred), label, axis, reduction)


def binary_cross_entropy(
    pred: Any, label: Any, with_logits: bool = True, reduction: str = "mean"
) -> Any:
    """Compute the cross entropy of logits, or of probabilities, for labels between 0 and 1.

    >>> F = megengine.functional
    >>> F.binary_cross_entropy(F.zeros(2), F.ones(2))
    tensor(0.6931472, dtype=float32)
    """
    if with_logits:
        return pg.binary_cross_entropy_with_logits(pred, label, reduction)
    return pg.binary_cross_entropy(pred, label, reduction)
