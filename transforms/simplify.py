"""Rewrites equations into simpler ones: by default those that give the same bits.

The rules stand in one table, made of families; each has its level. At the default level all are
exact for NaN, infinities and both zeros: `x + 0` is not `x` for x = -0, so only `x + (-0)` is
rewritten; `x * 0` is not 0 for an infinite x, so it stays.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain

import numpy as np

from primgraph.ir.graph import Graph
from primgraph.ir.primitive import Op, recording
from primgraph.transforms.contract import primitives_only, transform
from primgraph.transforms.dead_code import dead_code
from primgraph.transforms.rebuild import NOWHERE, copy, rebuild
from primgraph.transforms.rules import Family, Fold, Rule, Seen, SimplifyRule, selected
from primgraph.transforms.rules_arithmetic import ARITHMETIC
from primgraph.transforms.rules_factors import FACTORS
from primgraph.transforms.rules_functions import FUNCTIONS
from primgraph.transforms.rules_last import LAST
from primgraph.transforms.rules_logic import LOGIC
from primgraph.transforms.rules_parts import PARTS
from primgraph.transforms.rules_stable import STABLE
from primgraph.transforms.rules_sums import SUMS
from primgraph.transforms.rules_views import VIEWS


def _table(*families: dict[Op, list[Rule]]) -> dict[Op, list[Rule]]:
    table: dict[Op, list[Rule]] = {}
    for family in families:
        for op, listed in family.items():
            table.setdefault(op, []).extend(listed)
    return table


rules = _table(*(f.rules for f in (VIEWS, PARTS, LOGIC, ARITHMETIC, FACTORS, FUNCTIONS, SUMS)))

# One sweep finds all but what becomes possible where a value has lost its other readers.
_SWEEPS = 4


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def simplify(graph: Graph, math: str = "exact", extra: Family | None = None) -> Graph:
    """Apply the rules of level `math`, "exact", "finite" or "fast", and drop dead code.

    Those in `extra` of that level are applied too, before the others of the same primitive.
    Raises `ArgumentError` for another level.
    """
    return simplified(graph, lambda builder, eqn, inputs: None, math, extra=extra)


def simplified(
    graph: Graph,
    fold: Fold,
    math: str = "exact",
    *,
    last: bool = False,
    stable: bool = False,
    extra: Family | None = None,
) -> Graph:
    """Rewrite each equation by `fold`, else by the rules, else copy it; then clean up.

    With `last` the rules for graphs that will not be differentiated any more are applied too,
    with `stable` those for forms that do not overflow. Equations are visited in order of
    definition, and rules look at operands that are simple already. Another sweep is made only
    where a rule waited for a value to have one reader.
    """
    own = [extra.rules] if extra is not None else []
    chosen = selected(_table(*own, *[STABLE.rules] * stable, rules, *[LAST.rules] * last), math)
    for _ in range(_SWEEPS):
        graph = dead_code(graph)
        result, unsettled = _sweep(graph, fold, chosen)
        if not unsettled or result == graph:
            return result
        graph = result
    return graph


def _sweep(graph: Graph, fold: Fold, chosen: dict[Op, list[SimplifyRule]]) -> tuple[Graph, bool]:
    """The graph after one pass, and whether a second one might find more."""
    builder, moved = rebuild(graph)
    seen = Seen(builder, chosen, fold)
    reads = Counter(chain(graph.outputs, chain.from_iterable(e.inputs for e in graph.body)))
    uses = seen.uses
    uses.update((moved[v], reads[v]) for v in graph.inputs)
    with recording(seen), np.errstate(all="ignore"):
        for eqn in graph.body:
            inputs = [moved[v] for v in eqn.inputs]
            builder.source = eqn.source or NOWHERE
            results = fold(builder, eqn, inputs)
            if results is None and eqn.op in chosen:
                results = seen.rewrite(eqn.op, inputs, eqn.kwargs, eqn.outputs[0].type)
            if results is None:
                copy(builder, eqn, moved)
            else:
                moved.update(zip(eqn.outputs, results, strict=True))
            for value in eqn.outputs:
                new = moved[value]
                uses[new] = uses.get(new, 0) + reads[value]
    return dead_code(builder.graph([moved[v] for v in graph.outputs])), seen.declined
