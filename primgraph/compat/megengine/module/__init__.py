"""Layers by the names that they and their arguments have in `megengine.module`."""

# All that is imported is public.
# ruff: noqa: F401

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.megengine.module import conv, init, joined, layers, normalization, rnn
from primgraph.compat.megengine.module.conv import *  # noqa: F403
from primgraph.compat.megengine.module.joined import *  # noqa: F403
from primgraph.compat.megengine.module.layers import *  # noqa: F403
from primgraph.compat.megengine.module.module import Module
from primgraph.compat.megengine.module.normalization import *  # noqa: F403
from primgraph.compat.megengine.module.rnn import *  # noqa: F403

__all__ = sorted([
    *conv.__all__,
    *joined.__all__,
    *layers.__all__,
    *normalization.__all__,
    *rnn.__all__,
    "Module",
    "init",
])  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
