"""The clean-up passes in one, so that each finds what the others leave."""

from __future__ import annotations

from primgraph.ir.contract import every_equation_is_used, primitives_only, transform
from primgraph.ir.graph import Graph
from primgraph.transforms.optimize.fold_constants import fold
from primgraph.transforms.optimize.join_checkpoints import joined_checkpoints
from primgraph.transforms.optimize.join_loops import joined
from primgraph.transforms.optimize.loops import tidied
from primgraph.transforms.optimize.simplify import simplified

# What one round makes possible in bodies and around them, the next one finds.
_ROUNDS = 8


@transform(requires=(primitives_only,), ensures=(primitives_only, every_equation_is_used))
def clean_up(
    graph: Graph, math: str = "exact", *, last: bool = False, stable: bool = False
) -> Graph:
    """Drop dead code, simplify, fold constants: by default the same bits from fewer equations.

    `math` is the level of the rules, as in `simplify`. With `last` functions are computed before
    elements are repeated or reshaped, which is right for graphs that are compiled, and not for
    those that are differentiated. With `stable` and level "fast" forms that overflow or cancel
    become others that do not, even where these take longer.
    """
    found = simplified(graph, fold, math, last=last, stable=stable)
    if not found.has_bodies:
        return found

    def clean(body: Graph) -> Graph:
        return clean_up(body, math, last=last, stable=stable)

    for _ in range(_ROUNDS):
        before, found = found, joined_checkpoints(joined(tidied(found, clean)))
        found = simplified(found, fold, math, last=last, stable=stable)
        if found == before:
            break
    return found
