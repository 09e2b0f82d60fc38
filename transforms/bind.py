"""Replaces inputs by uniform constants."""

from __future__ import annotations

from collections.abc import Mapping

from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.primitives.constants import filled
from primgraph.transforms.contract import transform
from primgraph.transforms.rebuild import NOWHERE


@transform()
def bind(graph: Graph, scalars: Mapping[int, float]) -> Graph:
    """Replace the inputs at the positions in `scalars` by constants of that value.

    The other inputs keep their order. Each constant has the type of the input it stands for.
    """
    builder = Builder(graph.name, source=NOWHERE)
    inputs: list[Value] = []
    with builder:
        for position, value in enumerate(graph.inputs):
            if position in scalars:
                inputs.append(filled(scalars[position], value.type))
            else:
                inputs.append(builder.input(value.type, value.hint))
        outputs = builder.inline(graph, inputs)
    return builder.graph(outputs)
