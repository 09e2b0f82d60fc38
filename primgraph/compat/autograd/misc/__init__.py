"""Containers as vectors, optimizers, fixed points."""

from primgraph.compat.autograd.misc.flatten import flatten
from primgraph.compat.autograd.misc.tracers import const_graph

__all__ = ["const_graph", "flatten"]


def __dir__() -> list[str]:
    return sorted(__all__)
