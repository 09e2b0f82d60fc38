"""Drops equations that no output needs."""

from __future__ import annotations

from primgraph.ir.contract import every_equation_is_used, transform
from primgraph.ir.graph import Graph


@transform(ensures=(every_equation_is_used,))
def dead_code(graph: Graph) -> Graph:
    """Drop every equation that no output needs. Inputs stay, used or not."""
    needed, kept = set(graph.outputs), []
    for eqn in reversed(graph.body):
        if not needed.isdisjoint(eqn.outputs):
            needed.update(eqn.inputs)
            kept.append(eqn)
    return Graph(graph.inputs, reversed(kept), graph.outputs, graph.name)
