"""Optimizers by the names that they and their arguments have in `oneflow.optim`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.oneflow.optim import lr_scheduler
from primgraph.compat.oneflow.optim.rules import (
    LAMB,
    LBFGS,
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    AdamW,
    RMSprop,
)

if TYPE_CHECKING:
    from primgraph.compat.torch.optim.optimizer import Optimizer
else:
    from primgraph.compat.oneflow.optim.optimizer import Optimizer

__all__ = [
    "LAMB",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Optimizer",
    "RMSprop",
    "lr_scheduler",
]

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
