"""Which target a graph is for where the user leaves that open: by what native code would save.

Nothing is measured. NumPy takes some time for each of its calls, and goes through memory in each;
native code saves the first, and about half of the second, in all steps that it does itself but
products of matrices, which are BLAS's in both. It costs what a C compiler takes. It is chosen where
it has paid for that after `RUNS` calls, and not where no compiler is there.
"""

from __future__ import annotations

import importlib

from primgraph.codegen.cards.table import CARDS
from primgraph.codegen.plan.schedule import Schedule, Step, schedule
from primgraph.errors import PrimgraphError
from primgraph.ir.dims import of_one_trip, typical
from primgraph.ir.graph import Graph
from primgraph.ir.sizes import at_sizes
from primgraph.primitives.control import scan, while_loop

# After how many calls a compilation is to have paid.
RUNS = 10_000

# Nanoseconds of a call of NumPy's, and of going from C to one of its steps and back.
_CALL, _STEP = 400, 2000
# The share of the time in a step's loop that native code saves.
_SHARE = 0.5
# Nanoseconds that the compiler takes, and those for each equation.
_COMPILER, _EQUATION = 80_000_000, 400_000
# Trips of a loop without a bound, and what sizes count as.
_TRIPS, _SIZE = 16, 64


def style_of(graph: Graph) -> str:
    """The style of the code generator's for a graph of primitives: "native" or "planned"."""
    build = importlib.import_module("primgraph.codegen.native.build")
    if build.found() is None:
        return "planned"
    try:
        known = at_sizes(graph, dict.fromkeys(graph.sizes, _SIZE)) if graph.sizes else graph
        saved = _saved(schedule(known))
    except PrimgraphError:
        # Sizes that are assumed to be others tell nothing.
        return "planned"
    cost = _COMPILER + _EQUATION * len(graph.body)
    return "native" if saved * RUNS >= cost else "planned"


def _saved(steps: Schedule) -> float:
    """The nanoseconds that native code saves in one call."""
    native = importlib.import_module("primgraph.codegen.native.nests")
    items = importlib.import_module("primgraph.codegen.native.items")
    outside = {id(i.step.eqn) for i in native.nests(steps).items if isinstance(i, items.Outside)}
    total = -float(_STEP * len(outside))
    for step in steps.steps:
        here = step.outputs and not steps.is_view(step.outputs[0]) and not step.op.literal
        if here and id(step.eqn) not in outside:
            total += _in_step(step)
    return total


def _in_step(step: Step) -> float:
    if step.op.has_bodies:
        inside = sum([_CALL + _saved(schedule(body)) for body in step.eqn.bodies])
        return inside * _trips(step)
    if CARDS[step.op].blas:
        return 0.0
    return _CALL + _SHARE * CARDS[step.op].nanoseconds(step)


def _trips(step: Step) -> int:
    if step.op is scan:
        return typical(of_one_trip(step.params["length"]))
    if step.op is while_loop:
        return min(typical(step.params["limit"] or _TRIPS), _TRIPS)
    return 1
