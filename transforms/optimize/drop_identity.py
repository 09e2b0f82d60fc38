"""Products with a matrix that is known to be an identity fall away."""

from __future__ import annotations

from primgraph.ir.graph import Graph, Value
from primgraph.ir.rebuild import copy, rebuild
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.shapes import permute
from primgraph.transforms.optimize.dead_code import dead_code


def without_identity(graph: Graph, seed: int) -> Graph:
    """`graph` without products with its input at `seed`, which has all unit vectors in order.

    As a matrix that is an identity, whose zeros are structural, as those of unit vectors are in
    `strong_zeros`: nothing that they are multiplied by comes into the result, be it infinite or
    NaN. Unit vectors that are arrays of more axes are no matrix: then the graph is as it was.
    """
    shape = graph.inputs[seed].type.shape
    if len(shape) != 2 or shape[0] != shape[1]:
        return graph
    unit = {graph.inputs[seed]}
    builder, moved = rebuild(graph)
    with builder:
        for eqn in graph.body:
            if eqn.op is permute and eqn.inputs[0] in unit:
                unit.add(eqn.output)
            other = _other(eqn.inputs, unit) if eqn.op is matmul else None
            if other is not None and other.type == eqn.output.type:
                moved[eqn.output] = moved[other]
            else:
                copy(builder, eqn, moved)
    return dead_code(builder.graph([moved[v] for v in graph.outputs]))


def _other(factors: tuple[Value, ...], unit: set[Value]) -> Value | None:
    """The factor that stands beside an identity."""
    x, y = factors
    if x in unit:
        return y
    return x if y in unit else None
