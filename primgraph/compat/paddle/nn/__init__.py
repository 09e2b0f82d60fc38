"""Layers by the names that they and their arguments have in `paddle.nn`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.paddle.core.parameters import EagerParamBase
from primgraph.compat.paddle.nn import functional, initializer, layer, utils
from primgraph.compat.paddle.nn.clip import (
    ClipGradByGlobalNorm,
    ClipGradByNorm,
    ClipGradByValue,
)
from primgraph.compat.paddle.nn.layer import *  # noqa: F403
from primgraph.compat.paddle.nn.layer import Layer

Module = Layer
ModuleDict, ModuleList = layer.LayerDict, layer.LayerList
Parameter = EagerParamBase

# Names as torch writes them: `Conv2d` for `Conv2D`.
_ALIASES = {
    name[:-1] + "d": name
    for name in layer.__all__
    if re.fullmatch(r"(Conv|LPPool|AdaptiveMaxPool|(Constant|Circular|Re\w+)Pad)[123]D", name)
}
globals().update({alias: globals()[name] for alias, name in _ALIASES.items()})

__all__ = [
    *_ALIASES,
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
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
