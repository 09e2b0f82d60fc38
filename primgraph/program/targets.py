"""Cost model for `target="auto"`: estimate the time that native code saves.

It decides what tiered kernels do before they have measured anything, and where there are none.
NumPy has an overhead for each call, and a memory pass in each. Native code saves the first, and
about half of the second, in all steps that it compiles. For matrix products and LAPACK functions it
saves the call overhead. It saves more only if C has its own loops, as for small products, or if
NumPy combines several calls. Its cost is that of the C compiler. It is chosen if it pays off within
`RUNS` calls and a compiler is installed.
"""

from __future__ import annotations

import importlib
import math
from functools import partial
from typing import Any, NamedTuple

from primgraph.codegen.ir.schedule import Schedule, Step, schedule
from primgraph.codegen.ops.table import CARDS
from primgraph.codegen.tiered.prior import RUNS, Prior
from primgraph.errors import PrimgraphError
from primgraph.ir.dims import single_row_size, typical
from primgraph.ir.graph import Graph
from primgraph.ir.sizes import specialize_graph
from primgraph.primitives.control import Flow
from primgraph.primitives.linear_algebra.products import CONTRACTS
from primgraph.primitives.reductions import REDUCES

_TOOLCHAIN = "primgraph.codegen.runtime.toolchain.compile_c"

# Nanoseconds of a NumPy call, of leaving C for a step and returning, and of a Python operator,
# which computes small arrays without NumPy.
_CALL, _STEP, _OPERATOR = 400, 2000, 15
# Nanoseconds of a product, of a reduction, of a LAPACK function, and of a function that NumPy
# combines from several calls.
_PRODUCT, _REDUCTION, _LAPACK, _HELPER = 800, 1500, 4000, 10_000
# Number of multiplications up to which matrix products never use BLAS.
_FEW = 131_072
# Nanoseconds that native code saves for an element, in a rough estimate.
_ELEMENT = 2.0
# Fraction of a step's loop time that native code saves.
_SHARE = 0.5
# Nanoseconds of the compiler, in all and per equation.
_COMPILER, _EQUATION = 80_000_000, 400_000
# Assumed steps of a loop without a bound, and assumed value of symbolic sizes.
_TRIPS, _SIZE = 16, 64


class Choice(NamedTuple):
    """A style of the code generator, "native" or "planned", and the reason for it."""

    style: str
    reason: str


def style_of(graph: Graph) -> str:
    """Return the code generator's style for a graph of primitives: "native" or "planned"."""
    return choice_of(graph).style


def choice_of(graph: Graph) -> Choice:
    """Return the style for a graph of primitives, with the estimate that decides it."""
    if find_compiler() is None:
        return Choice("planned", "there is no C compiler")
    try:
        saved = _saving(graph)
    except PrimgraphError:
        # Assumed sizes that violate a condition give no estimate.
        return Choice("planned", "the sizes are unknown, so that nothing can be estimated")
    cost = _cost(graph)
    style = "native" if saved * RUNS >= cost else "planned"
    compiled = f"in {RUNS:,} calls, and takes {cost / 1e9:.2f} s to compile"
    return Choice(style, f"C would save about {saved * RUNS / 1e9:.2f} s {compiled}")


def find_compiler() -> Any:
    """Return the compiler of this machine; None if there is none."""
    return importlib.import_module(_TOOLCHAIN).find_compiler()


def _cost(graph: Graph) -> int:
    return _COMPILER + _EQUATION * len(graph.body)


def _saving(graph: Graph) -> float:
    """Estimate the nanoseconds that C saves in a call. Raises `PrimgraphError` if it cannot."""
    known = specialize_graph(graph, dict.fromkeys(graph.sizes, _SIZE)) if graph.sizes else graph
    return _CALL + _estimate_saving(schedule(known))


def saving_of(graph: Graph) -> float:
    """Estimate the nanoseconds that C saves in a call; 0.0 if they cannot be estimated."""
    try:
        return _saving(graph)
    except PrimgraphError:
        return 0.0


def prior_of(graph: Graph) -> Prior:
    """Return what is expected of C for a graph before anything is measured."""
    return Prior(_cost(graph), _rough_saving(schedule(graph)), partial(saving_of, graph))


def _rough_saving(steps: Schedule) -> float:
    """Estimate what C saves in a call from the numbers of steps and elements, without lowering."""
    total = 0.0
    for step in steps.steps:
        if step.op.has_bodies:
            total += _trips(step) * sum([_rough_saving(schedule(b)) for b in step.eqn.bodies])
        else:
            total += _CALL + _ELEMENT * typical(step.eqn.outputs[0].type.size)
    return total


def _estimate_saving(steps: Schedule, in_trip: bool = False) -> float:
    """Estimate the nanoseconds that native code saves in one call, or one iteration of a loop."""
    native = importlib.import_module("primgraph.codegen.lower.nests.nests")
    items = importlib.import_module("primgraph.codegen.ir.statements")
    scalars = importlib.import_module("primgraph.codegen.lower.scalars.program")
    outside = {id(i.step.eqn) for i in native.nests(steps).items if isinstance(i, items.HostCall)}
    numbers = (
        scalars.number_trip([steps], CARDS) if in_trip else scalars.number_program(steps, CARDS)
    )
    total = -float(_STEP * len(outside))
    for step in steps.steps:
        here = step.outputs and not steps.is_view(step.outputs[0]) and not step.op.literal
        if here and id(step.eqn) not in outside:
            total += _in_step(step)
    return min(total, math.inf if numbers is None else _OPERATOR * numbers.operators)


def _in_step(step: Step) -> float:
    if step.op.has_bodies:
        trips, bodies = _trips(step), map(schedule, step.eqn.bodies)
        return trips * sum([_CALL + _estimate_saving(body, trips > 1) for body in bodies])
    card = CARDS[step.op]
    saved = _SHARE * card.nanoseconds(step)
    if step.op.fact(CONTRACTS):
        m, n = step.results[0].shape[-2:]
        return _PRODUCT + (saved if m * n * step.operands[0].shape[-1] < _FEW else 0.0)
    if card.blas and card.fallible:
        return _HELPER + saved if card.helper else _LAPACK
    if step.op.fact(REDUCES):
        # BLAS computes sums along the first axes as products.
        return _REDUCTION + (0.0 if card.blas else saved)
    return _CALL + saved


def _trips(step: Step) -> int:
    most = step.most_trips
    if step.flow is Flow.TEST:
        return min(typical(most or _TRIPS), _TRIPS)
    return 1 if most is None else typical(single_row_size(most))
