"""The constant prefix of a kernel: the part of a graph that depends on no input."""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.ir.graph import Graph
from primgraph.ir.slices import backward_slice


def split_constant_prefix(graph: Graph, once: Sequence[int]) -> tuple[Graph, Graph]:
    """Split `f(x) -> y` into `early() -> r` and `late(x, r) -> y`.

    `once` are the indices of the equations to move to `early`; none of them depends on an input.
    Equations that both parts need, such as constants, are in both. All equations keep their
    identity.
    """
    taken = [graph.body[i] for i in once]
    gone = set(taken)
    rest = [eqn for eqn in graph.body if eqn not in gone]
    read = {v for eqn in rest for v in eqn.inputs}.union(graph.outputs)
    kept = [v for eqn in taken for v in eqn.outputs if v in read]
    first = Graph((), backward_slice(graph.body, kept), kept, f"{graph.name}_once")
    return first, Graph([*graph.inputs, *kept], rest, graph.outputs, graph.name)
