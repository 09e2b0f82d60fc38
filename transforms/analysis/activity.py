"""Which values carry derivatives."""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.ir.graph import Graph, Value


def depending(graph: Graph, sources: Sequence[Value]) -> set[Value]:
    """The float values that depend on `sources` in a differentiable way, and those themselves."""
    active = set(sources)
    for eqn in graph.body:
        if not active.isdisjoint(eqn.inputs) and not eqn.op.stops:
            active.update(v for v in eqn.outputs if v.type.is_inexact)
    return active
