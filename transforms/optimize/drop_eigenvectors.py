"""Eigenvalues and singular values without vectors, where nothing reads the vectors."""

from __future__ import annotations

from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.rebuild import copy, rebuild
from primgraph.primitives.linear_algebra.spectra import VALUES_ALONE
from primgraph.transforms.dataflow.contract import primitives_only, transform


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def values_alone(graph: Graph) -> Graph:
    """Compute values alone if no equation and no output needs the vectors.

    A derivative needs them: then the factorisation that gives both also serves the value.
    """
    if not any(eqn.op in VALUES_ALONE for eqn in graph.body):
        return graph
    read = {v for eqn in graph.body for v in eqn.inputs}.union(graph.outputs)
    builder, moved = rebuild(graph)
    for eqn in graph.body:
        if eqn.op not in VALUES_ALONE or not _alone(eqn, read):
            copy(builder, eqn, moved)
            continue
        place, op = VALUES_ALONE[eqn.op]
        builder.source = eqn.source
        (moved[eqn.outputs[place]],) = builder.emit(op, [moved[eqn.inputs[0]]], {})
    return builder.graph([moved[v] for v in graph.outputs])


def _alone(eqn: Equation, read: set[Value]) -> bool:
    place, _ = VALUES_ALONE[eqn.op]
    return all(k == place or v not in read for k, v in enumerate(eqn.outputs))
