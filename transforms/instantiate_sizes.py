"""Substitution of numbers for symbolic sizes."""

from __future__ import annotations

from collections.abc import Mapping

from primgraph.ir.graph import Graph
from primgraph.ir.sizes import checked_sizes, specialize_graph
from primgraph.transforms.dataflow.contract import transform


@transform()
def instantiate(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """Return the graph for these sizes: extents that are made of them become numbers.

    Other symbolic sizes stay symbolic; names that the graph does not have are ignored. Raises
    `ArgumentError` for a size that is not a nonnegative integer, and `ShapeError`, with the user's
    source line, if the sizes violate an assumption of the graph.

    >>> graph = pg.trace(lambda x: pg.sum(x * x), pg.spec(("N",)))
    >>> pg.transforms.instantiate(graph, {"N": 5}).inputs[0].type
    f64[5]
    """
    return specialize_graph(graph, checked_sizes(sizes))
