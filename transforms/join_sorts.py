"""Sorted values from the order of the elements, where the graph computes that, too."""

from __future__ import annotations

from primgraph.ir.facts.passes import BY_ORDER
from primgraph.ir.graph import Equation, Graph, map_bodies
from primgraph.ir.primitive import Op
from primgraph.ir.rebuild import NOWHERE, copy, rebuild
from primgraph.transforms.dataflow.contract import primitives_only, transform


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def join_sorts(graph: Graph) -> Graph:
    """Sort once where both `sort(x)` and `argsort(x)` are needed, as for a gradient.

    Only real numbers: equal elements, which are rare among them, take both.
    """
    body = [map_bodies(e, join_sorts) for e in graph.body] if graph.has_bodies else graph.body
    graph = Graph(graph.inputs, body, graph.outputs, graph.name)
    known: dict[object, Equation] = {
        (e.op, e.inputs, e.params): e for e in graph.body if len(e.inputs) == 1
    }
    pairs: dict[Equation, tuple[Equation, Op]] = {}
    for eqn in graph.body:
        found = eqn.op.fact(BY_ORDER)
        order = None if found is None else known.get((found[0], eqn.inputs, eqn.params))
        if found is not None and order is not None and eqn.inputs[0].dtype.kind == "f":
            pairs[eqn] = order, found[1]
    return _rebuilt(graph, pairs) if pairs else graph


def _rebuilt(graph: Graph, pairs: dict[Equation, tuple[Equation, Op]]) -> Graph:
    """Return the graph with the argsort of each pair before the sorted values."""
    builder, moved = rebuild(graph)
    with builder:
        for eqn in graph.body:
            if eqn not in pairs:
                if not set(eqn.outputs) <= moved.keys():
                    copy(builder, eqn, moved)
                continue
            order, by_order = pairs[eqn]
            if order.output not in moved:
                copy(builder, order, moved)
            builder.source = eqn.source or NOWHERE
            operands = [moved[eqn.inputs[0]], moved[order.output]]
            (moved[eqn.output],) = builder.emit(by_order, operands, eqn.kwargs)
    return builder.graph([moved[v] for v in graph.outputs])
