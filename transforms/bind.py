"""Bind inputs to uniform constants."""

from __future__ import annotations

from collections.abc import Mapping

from primgraph.ir.contract import transform
from primgraph.ir.graph import Equation, Graph
from primgraph.ir.params import freeze_all
from primgraph.ir.rebuild import NOWHERE
from primgraph.ir.types import scalar_of
from primgraph.primitives.constants import full


@transform()
def bind(graph: Graph, scalars: Mapping[int, float]) -> Graph:
    """Replace the inputs at the positions in `scalars` by constants of that value.

    The other inputs keep their order. Each constant has the type of its input and is the same
    value, so that the rest of the graph is unchanged.
    """
    constants = []
    for position, scalar in sorted(scalars.items()):
        value = graph.inputs[position]
        number = scalar_of(scalar, value.dtype)
        params = {"value": number, "shape": value.shape, "dtype": value.dtype}
        constants.append(Equation(full, (), freeze_all(params.items()), (value,), NOWHERE))
    inputs = [v for i, v in enumerate(graph.inputs) if i not in scalars]
    return Graph(inputs, [*constants, *graph.body], graph.outputs, graph.name)
