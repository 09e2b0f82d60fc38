"""What a kernel computes but once: the part of a graph that depends on none of its inputs."""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.ir.graph import Graph
from primgraph.ir.slices import backward_slice


def parted(graph: Graph, once: Sequence[int]) -> tuple[Graph, Graph]:
    """Split `f(x) -> y` into `early() -> r` and `late(x, r) -> y`.

    `once` are the places in the body of the equations that `late` has no more; none of them
    depends on an input. What both need, such as constants, both have. All equations stay the
    objects that they are.
    """
    taken = [graph.body[i] for i in once]
    gone = set(taken)
    rest = [eqn for eqn in graph.body if eqn not in gone]
    read = {v for eqn in rest for v in eqn.inputs}.union(graph.outputs)
    kept = [v for eqn in taken for v in eqn.outputs if v in read]
    first = Graph((), backward_slice(graph.body, kept), kept, f"{graph.name}_once")
    return first, Graph([*graph.inputs, *kept], rest, graph.outputs, graph.name)
