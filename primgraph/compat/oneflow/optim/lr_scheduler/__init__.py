"""Schedules of learning rates by the names and arguments of `oneflow.optim.lr_scheduler`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.oneflow.optim.lr_scheduler.schedules import (
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    CosineDecayLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
    WarmUpLR,
)
from primgraph.compat.oneflow.optim.lr_scheduler.stepped import LRScheduler

if TYPE_CHECKING:
    from primgraph.compat.torch.optim.lr_scheduler.chains import ChainedScheduler, SequentialLR
    from primgraph.compat.torch.optim.lr_scheduler.decays import ReduceLROnPlateau
else:
    from primgraph.compat.oneflow.optim.lr_scheduler.chains import ChainedScheduler, SequentialLR
    from primgraph.compat.oneflow.optim.lr_scheduler.decays import ReduceLROnPlateau

# Older names.
WarmupLR = WarmUpLR
_LRScheduler = LRScheduler

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CosineDecayLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
    "WarmUpLR",
    "WarmupLR",
]

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
