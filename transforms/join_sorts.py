"""Sorted values from the order of the elements, where the graph computes that, too."""

from __future__ import annotations

from primgraph.ir.graph import Equation, Graph, Value, map_bodies
from primgraph.ir.rebuild import NOWHERE, copy, rebuild
from primgraph.primitives.sorting import argsort, sort, sort_by
from primgraph.transforms.dataflow.contract import primitives_only, transform


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def join_sorts(graph: Graph) -> Graph:
    """Sort once where both `sort(x)` and `argsort(x)` are needed, as for a gradient.

    Only real numbers: equal elements, which are rare among them, take both.
    """
    body = [map_bodies(e, join_sorts) for e in graph.body] if graph.has_bodies else graph.body
    graph = Graph(graph.inputs, body, graph.outputs, graph.name)
    orders = {(e.inputs[0], e.params): e for e in graph.body if e.op is argsort}
    pairs = {
        eqn: orders[eqn.inputs[0], eqn.params]
        for eqn in graph.body
        if eqn.op is sort
        and (eqn.inputs[0], eqn.params) in orders
        and eqn.inputs[0].dtype.kind == "f"
    }
    return _rebuilt(graph, pairs) if pairs else graph


def _rebuilt(graph: Graph, pairs: dict[Equation, Equation]) -> Graph:
    """Return the graph with the argsort of each pair before the sorted values."""
    builder, moved = rebuild(graph)
    with builder:
        for eqn in graph.body:
            order = pairs.get(eqn)
            if order is None:
                if not set(eqn.outputs) <= moved.keys():
                    copy(builder, eqn, moved)
                continue
            if order.output not in moved:
                copy(builder, order, moved)
            builder.source = eqn.source or NOWHERE
            moved[eqn.output] = _sorted_by(moved[eqn.inputs[0]], moved[order.output], eqn)
    return builder.graph([moved[v] for v in graph.outputs])


def _sorted_by(x: Value, order: Value, eqn: Equation) -> Value:
    found: Value = sort_by(x, order, **eqn.kwargs)
    return found
