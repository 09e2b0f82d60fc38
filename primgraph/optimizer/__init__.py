"""Optimizers: the update of parameters, in a program, or step by step eagerly.

Each has one rule, over handles. In a program it is recorded with the rest. Eagerly it is traced
once, and what it is applied to, gradients included, is computed in the same kernel.
"""

from typing import TYPE_CHECKING, NoReturn

from primgraph.errors import unknown_name
from primgraph.optimizer.base import Optimizer
from primgraph.optimizer.clipping import clip_by_global_norm, clip_by_norm, clip_by_value
from primgraph.optimizer.kinds import Clip, Schedule
from primgraph.optimizer.rules import SGD, Adam, AdamW, Momentum, RMSProp
from primgraph.optimizer.schedules import (
    cosine_decay,
    exponential_decay,
    polynomial_decay,
    step_decay,
    warmup,
)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise unknown_name("primgraph.optimizer", name, __all__)

    def __dir__() -> list[str]:
        return sorted(__all__)


__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "Clip",
    "Momentum",
    "Optimizer",
    "RMSProp",
    "Schedule",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "cosine_decay",
    "exponential_decay",
    "polynomial_decay",
    "step_decay",
    "warmup",
]
