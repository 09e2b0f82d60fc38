"""Dead code elimination (DCE)."""

from __future__ import annotations

from primgraph.ir.graph import Graph
from primgraph.ir.slices import backward_slice
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
