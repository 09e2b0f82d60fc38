"""Callbacks of `paddle.Model.fit`, `evaluate` and `predict`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.paddle.hapi.callbacks import (
    Callback,
    EarlyStopping,
    LRScheduler,
    ModelCheckpoint,
    ReduceLROnPlateau,
)
from primgraph.compat.paddle.hapi.progress import ProgBarLogger

__all__ = [
    "Callback",
    "EarlyStopping",
    "LRScheduler",
    "ModelCheckpoint",
    "ProgBarLogger",
    "ReduceLROnPlateau",
]

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
