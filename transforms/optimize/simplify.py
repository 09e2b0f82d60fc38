"""Algebraic simplification: by default only rewrites that keep every bit of the results.

The rules are in one table, made of families; each has its level. At the default level all are exact
for NaN, infinities and signed zeros: `x + 0` is not `x` for x = -0, so only `x + (-0)` is
rewritten. `x * 0` is not 0 for an infinite x, so it stays. Equations of derivatives, known by their
source, are exact up to the sign of zero: see `rules/signs.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from primgraph.base.user_lines import Source
from primgraph.ir.graph import Graph, Value
from primgraph.ir.primitive import recording
from primgraph.ir.rebuild import NOWHERE, rebuild
from primgraph.transforms.dataflow.contract import primitives_only, transform
from primgraph.transforms.optimize.edits import dead_code
from primgraph.transforms.rewrite.arithmetic import ARITHMETIC, FACTORS
from primgraph.transforms.rewrite.assembly import PLACES
from primgraph.transforms.rewrite.complex_parts import PARTS_OF_COMPLEX
from primgraph.transforms.rewrite.functions import FUNCTIONS, STABLE
from primgraph.transforms.rewrite.logic import LOGIC
from primgraph.transforms.rewrite.rule import (
    Family,
    Fold,
    Readers,
    Seen,
    Table,
    check_level,
    level_of_derivatives,
    select_rules,
)
from primgraph.transforms.rewrite.signs import SIGNS
from primgraph.transforms.rewrite.sink_moves import LAST, OWN_SLOPES
from primgraph.transforms.rewrite.slices import PARTS
from primgraph.transforms.rewrite.sums import DERIVED, SUMS
from primgraph.transforms.rewrite.views import VIEWS

FAMILIES = (
    VIEWS, PARTS, PLACES, LOGIC, PARTS_OF_COMPLEX, ARITHMETIC, FACTORS, FUNCTIONS, SUMS, SIGNS,
    DERIVED,
)  # fmt: skip

# One sweep finds all rewrites except those enabled when a value loses its other readers.
_SWEEPS = 4


def _families(last: bool, stable: bool) -> tuple[Family, ...]:
    return (*(STABLE,) * stable, *FAMILIES, *(LAST, OWN_SLOPES) * last)


def _table(families: Sequence[Family], math: str) -> Table:
    return Table(lambda op: select_rules(families, op, math))


@cache
def table_of(math: str, last: bool, stable: bool, late: int) -> Table:
    """Return the rule table of a level, cached for all graphs.

    `late` counts the rules of `LAST`: lazily loaded primitives add theirs.
    """
    return _table(_families(last, stable), math)


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def simplify(graph: Graph, math: str = "exact", extra: Family | None = None) -> Graph:
    """Apply the rules of level `math`, "exact", "signs", "finite" or "fast", and drop dead code.

    With "exact", rules of "signs" also apply to equations of derivatives. Rules in `extra` of that
    level apply too, before the others of the same primitive. Raises `ArgumentError` for another
    level.

    >>> graph = pg.trace(lambda x: x * 1.0 + 0.0, pg.spec(3))
    >>> len(pg.transforms.simplify(pg.transforms.lower(graph), "fast"))
    0
    """
    return simplify_graph(graph, lambda builder, eqn, inputs: None, math, extra=extra)


def simplify_graph(
    graph: Graph,
    fold: Fold,
    math: str = "exact",
    *,
    last: bool = False,
    stable: bool = False,
    extra: Family | None = None,
) -> Graph:
    """Rewrite each equation by `fold`, else by the rules, else copy it; then eliminate dead code.

    With `last`, apply the rules for graphs that will not be differentiated any more. With `stable`,
    apply those for forms that do not overflow. Equations are visited in order of definition, so
    that rules see simplified operands. Another sweep runs only if a rule waited for a value to have
    a single reader.
    """
    check_level(math)
    levels = math, level_of_derivatives(math)
    if extra is None:
        own, derived = (table_of(level, last, stable, LAST.count) for level in levels)
    else:
        families = extra, *_families(last, stable)
        own, derived = (_table(families, level) for level in levels)
    for _ in range(_SWEEPS):
        graph = dead_code(graph)
        result, unsettled = _sweep(graph, fold, (own, derived))
        if not unsettled or result == graph:
            return result
        graph = result
    return graph


def _sweep(graph: Graph, fold: Fold, tables: tuple[Table, Table]) -> tuple[Graph, bool]:
    """Return the graph after one sweep, and whether another one might find more."""
    builder, _ = rebuild(graph)
    readers = Readers(graph)
    seen = Seen(builder, tables, fold, readers)
    # Map from values that are not in the new graph to their replacements.
    moved: dict[Value, Value] = {}
    gone = moved.keys()
    source: Source | None = None
    with recording(seen), np.errstate(all="ignore"):
        for eqn in graph.body:
            inputs, results = eqn.inputs, None
            if not gone.isdisjoint(inputs):
                inputs = tuple([moved.get(v, v) for v in inputs])
            if eqn.source is not source:
                source = eqn.source
                seen.turn(source is not None and source.is_derived)
            possible = seen.possible(eqn.op, inputs)
            if possible.folding or possible.rules:
                builder.source = eqn.source or NOWHERE
                operands = list(inputs)
                results = seen.fold(eqn, operands) if possible.folding else None
                if results is None:
                    results = seen.rewrite(possible, operands, eqn.kwargs, eqn.outputs[0].type)
            if results is None and possible.makes_factor:
                seen.has_factors = True
            new = builder.share(eqn, inputs) if results is None else results
            if new is not eqn.outputs:
                for value, result in zip(eqn.outputs, new, strict=True):
                    moved[value] = result
                    readers.replace(value, result)
    if not moved:
        return graph, seen.declined
    outputs = [moved.get(v, v) for v in graph.outputs]
    return dead_code(builder.graph(outputs)), seen.declined
