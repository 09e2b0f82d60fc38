"""Substitution of numbers for symbolic sizes."""

from __future__ import annotations

from collections.abc import Mapping

from primgraph.ir.contract import transform
from primgraph.ir.graph import Graph
from primgraph.ir.sizes import at_sizes, checked_sizes


@transform()
def instantiate(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """The graph for these sizes: extents that are made of them become numbers.

    Sizes that are not named stay as they are; names that the graph does not have change nothing.
    Raises `ArgumentError` for what is no integer of at least 0, `ShapeError`, with the user's
    line, where the sizes are not as the graph assumes.

    >>> graph = pg.trace(lambda x: pg.sum(x * x), pg.spec(("N",)))
    >>> pg.transforms.instantiate(graph, {"N": 5}).inputs[0].type
    f64[5]
    """
    return at_sizes(graph, checked_sizes(sizes))
