"""Optimizers by the names that they and their arguments have in `paddle.optimizer`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.paddle.optimizer import lr
from primgraph.compat.paddle.optimizer.adam import Adam, Adamax, AdamW, Lamb, NAdam, RAdam
from primgraph.compat.paddle.optimizer.base import Optimizer
from primgraph.compat.paddle.optimizer.lbfgs import LBFGS
from primgraph.compat.paddle.optimizer.rules import (
    ASGD,
    SGD,
    Adadelta,
    Adagrad,
    Momentum,
    RMSProp,
    Rprop,
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
    "Lamb",
    "Momentum",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSProp",
    "Rprop",
    "lr",
]

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
