"""Small edits of graphs: equations that no output needs are dropped, inputs are bound."""

from __future__ import annotations

from collections.abc import Mapping

from primgraph.ir.graph import Equation, Graph
from primgraph.ir.params import freeze_all
from primgraph.ir.rebuild import NOWHERE
from primgraph.ir.slices import backward_slice
from primgraph.ir.types import scalar_of
from primgraph.primitives.constants import full
from primgraph.transforms.dataflow.contract import every_equation_is_used, transform


@transform(ensures=(every_equation_is_used,))
def dead_code(graph: Graph) -> Graph:
    """Drop every equation that no output needs. Inputs stay, used or not.

    >>> graph = pg.trace(lambda x: (pg.sin(x), pg.cos(x)), pg.spec(3))
    >>> print(pg.transforms.dead_code(graph.with_outputs(graph.outputs[1:])))
    graph f(%x: f64[3]) {
      %0: f64[3] = cos(%x)
      return %0
    }
    """
    kept = backward_slice(graph.body, graph.outputs)
    return Graph(graph.inputs, kept, graph.outputs, graph.name)


@transform()
def bind(graph: Graph, scalars: Mapping[int, float]) -> Graph:
    """Replace the inputs at the positions in `scalars` by constants of that value.

    The other inputs keep their order. Each constant has the type of the input it stands for, and
    is the same value, so that the rest of the graph stays as it is.

    >>> graph = pg.trace(lambda x, n: x * n, pg.spec(3), pg.spec(()))
    >>> print(pg.transforms.bind(graph, {1: 2.0}))
    graph f(%x: f64[3]) {
      %n: f64[] = full(dtype=f64, shape=(), value=2.0)
      %0: f64[3] = broadcast(%n, new_axes=(0,), shape=(3,))
      %1: f64[3] = mul(%x, %0)
      return %1
    }
    """
    constants = []
    for position, scalar in sorted(scalars.items()):
        value = graph.inputs[position]
        number = scalar_of(scalar, value.dtype)
        params = {"value": number, "shape": value.shape, "dtype": value.dtype}
        constants.append(Equation(full, (), freeze_all(params.items()), (value,), NOWHERE))
    inputs = [v for i, v in enumerate(graph.inputs) if i not in scalars]
    return Graph(inputs, [*constants, *graph.body], graph.outputs, graph.name)
