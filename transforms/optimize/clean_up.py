"""The clean-up pipeline: simplification, constant folding and dead code elimination."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from primgraph.base.providers import late
from primgraph.ir.graph import Graph
from primgraph.transforms.dataflow.contract import (
    every_equation_is_used,
    primitives_only,
    transform,
)
from primgraph.transforms.optimize.fold_constants import fold
from primgraph.transforms.optimize.simplify import simplify_graph

if TYPE_CHECKING:
    from primgraph.transforms.optimize import join_checkpoints, join_loops, simplify_loops
else:
    join_checkpoints = late("primgraph.transforms.optimize.join_checkpoints")
    join_loops = late("primgraph.transforms.optimize.join_loops")
    simplify_loops = late("primgraph.transforms.optimize.simplify_loops")


# Maximum number of rounds: each round may enable rewrites in bodies and around them.
_ROUNDS = 8


@transform(requires=(primitives_only,), ensures=(primitives_only, every_equation_is_used))
def clean_up(
    graph: Graph, math: str = "exact", *, last: bool = False, stable: bool = False
) -> Graph:
    """Eliminate dead code, simplify and fold constants; by default results keep their bits.

    `math` is the level of the rules, as in `simplify`. With `last` functions are computed before
    elements are repeated or reshaped, which is right for graphs that are compiled, and not for
    those that are differentiated. With `stable` and level "fast" forms that overflow or cancel
    become others that do not, even where these take longer.

    >>> graph = pg.trace(lambda x: -(-x) * (1.0 + 1.0), pg.spec(3))
    >>> print(pg.transforms.clean_up(graph))
    graph f(%x: f64[3]) {
      %0: f64[3] = full(dtype=f64, shape=(3,), value=2.0)
      %1: f64[3] = mul(%x, %0)
      return %1
    }
    """
    key = ("clean_up", math, last, stable)
    if graph.noted(key):
        return graph
    found = simplify_graph(graph, fold, math, last=last, stable=stable)
    if not found.has_bodies:
        return _mark_clean(found, graph, key) if found == graph else found

    def clean(body: Graph) -> Graph:
        return clean_up(body, math, last=last, stable=stable)

    for _ in range(_ROUNDS):
        before, found = (
            found,
            join_checkpoints.merge_checkpoints(
                join_loops.merge_loops(simplify_loops.tidy_bodies(found, clean))
            ),
        )
        found = simplify_graph(found, fold, math, last=last, stable=stable)
        if found == before:
            return _mark_clean(found, graph, key)
    return found


def _mark_clean(found: Graph, graph: Graph, key: Hashable) -> Graph:
    """Mark `found` as clean, or `graph` if that is equal, and return it.

    Enclosing levels then skip it, so that nested bodies take linear time.
    """
    found = graph if found == graph else found
    found.note(key, True)
    return found
