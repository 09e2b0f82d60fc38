"""Removal of products with a matrix that is known to be the identity."""

from __future__ import annotations

from primgraph.ir.graph import Graph, Value
from primgraph.ir.rebuild import copy, rebuild
from primgraph.primitives.linear_algebra.products import CONTRACTS, transpose_source
from primgraph.transforms.optimize.edits import dead_code


def drop_identity_products(graph: Graph, seed: int) -> Graph:
    """Remove products with the input at `seed`, which holds all unit vectors in order.

    The zeros of the identity are structural, as in `strong_zeros`: infinite or NaN factors that
    they would multiply do not reach the result. If the unit vectors are no matrix (arrays of more
    axes), return the graph unchanged.
    """
    shape = graph.inputs[seed].type.shape
    if len(shape) != 2 or shape[0] != shape[1]:
        return graph
    unit: set[Value | None] = {graph.inputs[seed]}
    made = {e.outputs[0]: e for e in graph.body}
    builder, moved = rebuild(graph)
    with builder:
        for eqn in graph.body:
            if transpose_source(eqn.outputs[0], made.get) in unit:
                unit.add(eqn.output)
            other = _other(eqn.inputs, unit) if eqn.op.fact(CONTRACTS) else None
            if other is not None and other.type == eqn.output.type:
                moved[eqn.output] = moved[other]
            else:
                copy(builder, eqn, moved)
    return dead_code(builder.graph([moved[v] for v in graph.outputs]))


def _other(factors: tuple[Value, ...], unit: set[Value | None]) -> Value | None:
    """Return the factor beside an identity, or None."""
    x, y = factors
    if x in unit:
        return y
    return x if y in unit else None
