"""Eigenvalues and singular values without vectors, where nothing reads the vectors."""

from __future__ import annotations

from primgraph.ir.facts.passes import SPECTRUM
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Primitive
from primgraph.ir.rebuild import copy, rebuild
from primgraph.transforms.dataflow.contract import primitives_only, transform


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def drop_eigenvectors(graph: Graph) -> Graph:
    """Compute values alone if no equation and no output needs the vectors.

    A derivative needs them: then the factorisation that gives both also serves the value.
    """
    read = {v for eqn in graph.body for v in eqn.inputs}.union(graph.outputs)
    alone = {
        eqn: found for eqn in graph.body if (found := _single_read_result(eqn, read)) is not None
    }
    if not alone:
        return graph
    builder, moved = rebuild(graph)
    for eqn in graph.body:
        if eqn not in alone:
            copy(builder, eqn, moved)
            continue
        place, op = alone[eqn]
        builder.source = eqn.source
        (moved[eqn.outputs[place]],) = builder.emit(op, [moved[eqn.inputs[0]]], {})
    return builder.graph([moved[v] for v in graph.outputs])


def _single_read_result(eqn: Equation, read: set[Value]) -> tuple[int, Primitive[Value]] | None:
    """Return which result is read, and the primitive that computes it alone; else None."""
    found = eqn.op.fact(SPECTRUM) if eqn.op.multiple else None
    others = () if found is None else (v for k, v in enumerate(eqn.outputs) if k != found[0])
    return found if read.isdisjoint(others) else None
