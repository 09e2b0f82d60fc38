"""Layers by the names that they and their arguments have in `paddle.nn`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.paddle.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from primgraph.compat.paddle.nn import functional, initializer, layer, utils
from primgraph.compat.paddle.nn.layer import *  # noqa: F403
from primgraph.compat.paddle.nn.layer import Layer
from primgraph.compat.paddle.parameters import EagerParamBase

Module = Layer
Parameter = EagerParamBase

__all__ = [
    *layer.__all__,
    "ClipGradByGlobalNorm",
    "ClipGradByNorm",
    "ClipGradByValue",
    "functional",
    "initializer",
    "utils",
]

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
