"""Which target a graph is for where the user leaves that open: by what native code would save.

Nothing is measured. NumPy takes some time for each of its calls, and goes through memory in each;
native code saves the first, and about half of the second, in all steps that it does itself. Of
products of matrices and what LAPACK does it saves the call, which takes longer; the rest only where
C has loops of its own for it, as for small products, and where NumPy has to put it together of
several calls. It costs what a C compiler takes. It is chosen where it has paid for that after
`RUNS` calls, and not where no compiler is there.
"""

from __future__ import annotations

import importlib
import math

from primgraph.codegen.cards.table import CARDS
from primgraph.codegen.plan.schedule import Schedule, Step, schedule
from primgraph.errors import PrimgraphError
from primgraph.ir.dims import of_one_trip, typical
from primgraph.ir.graph import Graph
from primgraph.ir.sizes import at_sizes
from primgraph.primitives.control import scan, while_loop
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.reductions import reduce_max, reduce_min, reduce_prod, reduce_sum

# After how many calls a compilation is to have paid.
RUNS = 10_000

# Nanoseconds of a call of NumPy's, and of going from C to one of its steps and back; and of an
# operator of Python's, by which small arrays are computed without NumPy.
_CALL, _STEP, _OPERATOR = 400, 2000, 15
# Of a product, a sum or extremum, a function of LAPACK's, and what NumPy puts together of several.
_PRODUCT, _REDUCTION, _LAPACK, _HELPER = 800, 1500, 4000, 10_000
_REDUCTIONS = (reduce_sum, reduce_prod, reduce_max, reduce_min)
# Multiplications of a matrix with another up to which products are done without BLAS everywhere.
_FEW = 131_072
# The share of the time in a step's loop that native code saves.
_SHARE = 0.5
# Nanoseconds that the compiler takes, and those for each equation.
_COMPILER, _EQUATION = 80_000_000, 400_000
# Trips of a loop without a bound, and what sizes count as.
_TRIPS, _SIZE = 16, 64


def style_of(graph: Graph) -> str:
    """The style of the code generator's for a graph of primitives: "native" or "planned"."""
    build = importlib.import_module("primgraph.codegen.native.toolchain.compile_c")
    if build.found() is None:
        return "planned"
    try:
        known = at_sizes(graph, dict.fromkeys(graph.sizes, _SIZE)) if graph.sizes else graph
        saved = _CALL + _saved(schedule(known))
    except PrimgraphError:
        # Sizes that are assumed to be others tell nothing.
        return "planned"
    cost = _COMPILER + _EQUATION * len(graph.body)
    return "native" if saved * RUNS >= cost else "planned"


def _saved(steps: Schedule) -> float:
    """The nanoseconds that native code saves in one call."""
    native = importlib.import_module("primgraph.codegen.native.lower.nests")
    items = importlib.import_module("primgraph.codegen.native.items")
    outside = {id(i.step.eqn) for i in native.nests(steps).items if isinstance(i, items.Outside)}
    total, scalar = -float(_STEP * len(outside)), 0.0
    for step in steps.steps:
        here = step.outputs and not steps.is_view(step.outputs[0]) and not step.op.literal
        if here and id(step.eqn) not in outside:
            total += _in_step(step)
            scalar += _in_operators(step)
    return min(total, scalar)


def _in_step(step: Step) -> float:
    if step.op.has_bodies:
        inside = sum([_CALL + _saved(schedule(body)) for body in step.eqn.bodies])
        return inside * _trips(step)
    card = CARDS[step.op]
    saved = _SHARE * card.nanoseconds(step)
    if step.op is matmul:
        m, n = step.results[0].shape[-2:]
        return _PRODUCT + (saved if m * n * step.operands[0].shape[-1] < _FEW else 0.0)
    if card.blas and card.fallible:
        return _HELPER + saved if card.helper else _LAPACK
    if step.op in _REDUCTIONS:
        # Of sums along the first axes BLAS makes products.
        return _REDUCTION + (0.0 if card.blas else saved)
    return _CALL + saved


def _in_operators(step: Step) -> float:
    """The nanoseconds of a step that Python does element by element."""
    scalar = None if step.op.has_bodies else CARDS[step.op].scalar
    if step.op is matmul and any(t.size != 1 for t in step.operands):
        return math.inf
    elements = sum([typical(t.size) for t in step.results])
    return math.inf if scalar is None else _OPERATOR * scalar.weight * elements


def _trips(step: Step) -> int:
    if step.op is scan:
        return typical(of_one_trip(step.params["length"]))
    if step.op is while_loop:
        return min(typical(step.params["limit"] or _TRIPS), _TRIPS)
    return 1
