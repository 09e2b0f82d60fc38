"""Containers as vectors, optimizers, fixed points."""

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.autograd.misc.flatten import flatten
from primgraph.compat.autograd.misc.tracers import const_graph

__all__ = ["const_graph", "flatten"]


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
