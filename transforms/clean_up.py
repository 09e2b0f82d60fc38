"""The exact clean-up passes, in the order that serves derivatives and kernels."""

from __future__ import annotations

from primgraph.ir.graph import Graph
from primgraph.transforms.contract import every_equation_is_used, primitives_only, transform
from primgraph.transforms.dead_code import dead_code
from primgraph.transforms.fold_constants import fold_constants
from primgraph.transforms.simplify import simplify


@transform(requires=(primitives_only,), ensures=(primitives_only, every_equation_is_used))
def clean_up(graph: Graph) -> Graph:
    """Drop dead code, simplify, fold constants: the same bits from fewer equations."""
    return dead_code(fold_constants(simplify(dead_code(graph))))
