"""Losses as layers: the functions of the same names with their settings kept."""

from __future__ import annotations

from typing import Any, final

from primgraph.ir.frontend.signature import checked_methods
from primgraph.nn.layer import Layer
from primgraph.operators import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    l1_loss,
    mse_loss,
)
from primgraph.operators.handle import ArrayLike


@checked_methods()
class _Reduced(Layer):
    """A loss whose elements are combined by `reduction`: mean, sum or none."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction


@final
@checked_methods()
class MSELoss(_Reduced):
    """`pg.mse_loss`.

    >>> pg.nn.MSELoss()([1.0, 2.0], [1.0, 4.0])
    tensor(2.)
    """

    def forward(self, x: ArrayLike, target: ArrayLike) -> Any:
        """The loss of `x` against `target`."""
        return mse_loss(x, target, self.reduction)


@final
@checked_methods()
class L1Loss(_Reduced):
    """`pg.l1_loss`.

    >>> pg.nn.L1Loss()([1.0, 2.0], [1.0, 4.0])
    tensor(1.)
    """

    def forward(self, x: ArrayLike, target: ArrayLike) -> Any:
        """The loss of `x` against `target`."""
        return l1_loss(x, target, self.reduction)


@final
@checked_methods()
class BCELoss(_Reduced):
    """`pg.binary_cross_entropy`, of probabilities."""

    def forward(self, x: ArrayLike, target: ArrayLike) -> Any:
        """The loss of the probabilities `x` against `target`."""
        return binary_cross_entropy(x, target, self.reduction)


@final
@checked_methods()
class BCEWithLogitsLoss(_Reduced):
    """`pg.binary_cross_entropy_with_logits`."""

    def forward(self, x: ArrayLike, target: ArrayLike) -> Any:
        """The loss of the logits `x` against `target`."""
        return binary_cross_entropy_with_logits(x, target, self.reduction)


@final
@checked_methods()
class HuberLoss(_Reduced):
    """`pg.huber_loss`, quadratic up to the distance `delta`.

    >>> pg.nn.HuberLoss()([1.0, 2.0], [1.0, 4.0])
    tensor(0.75)
    """

    def __init__(self, delta: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, x: ArrayLike, target: ArrayLike) -> Any:
        """The loss of `x` against `target`."""
        return huber_loss(x, target, self.delta, self.reduction)


@final
@checked_methods()
class CrossEntropyLoss(_Reduced):
    """`pg.cross_entropy` of logits along `axis`, against positions or probabilities.

    >>> print(f"{pg.nn.CrossEntropyLoss()([[0.0, 0.0]], [1]):.4f}")
    0.6931
    """

    def __init__(self, reduction: str = "mean", axis: int = -1) -> None:
        super().__init__(reduction)
        self.axis = axis

    def forward(self, logits: ArrayLike, labels: ArrayLike) -> Any:
        """The loss of `logits` against `labels`."""
        return cross_entropy(logits, labels, self.axis, self.reduction)
