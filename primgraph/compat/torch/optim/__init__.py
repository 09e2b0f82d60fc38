"""Optimizers by the names that they and their arguments have in `torch.optim`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.torch.optim import lr_scheduler, swa_utils
from primgraph.compat.torch.optim.lbfgs import LBFGS
from primgraph.compat.torch.optim.optimizer import Optimizer
from primgraph.compat.torch.optim.rules import (
    ASGD,
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    NAdam,
    RAdam,
    RMSprop,
    Rprop,
    SparseAdam,
)

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
]

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
