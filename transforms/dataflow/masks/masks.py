"""Masks for linearize: infinite derivatives of unselected elements must not reach results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from primgraph.ir.facts.choices import CHOICE, JOINS
from primgraph.ir.facts.ranges import Range
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.primitives.control import REGIONS, Regions
from primgraph.transforms.dataflow.masks.conditions import Conditions
from primgraph.transforms.dataflow.masks.guard import Guards
from primgraph.transforms.dataflow.masks.guards import (
    ByOperand,
    are_met,
    guards_of,
    guards_of_results,
)
from primgraph.transforms.dataflow.masks.slope_risks import ALWAYS, Risks
from primgraph.transforms.dataflow.region_interface import NONE, Opening
from primgraph.transforms.dataflow.tangent_support import supports_of
from primgraph.transforms.dataflow.value_bounds import ranges_within


@dataclass(frozen=True, slots=True)
class Masks:
    """Masks of a graph, by equation and then by operand.

    `tangents` has guards of operand tangents, `factors` guards of matrix factors. `results` has the
    support of each tangent's contribution. `openings` has the masks within branches and loops.
    `made` maps results to equations of conditions that are not in the graph.
    """

    tangents: ByOperand = field(default_factory=dict)
    factors: ByOperand = field(default_factory=dict)
    results: dict[Equation, list[Value | None]] = field(default_factory=dict)
    openings: dict[Equation, Opening] = field(default_factory=dict)
    made: dict[Value, Equation] = field(default_factory=dict)


def masks_of(
    graph: Graph,
    active: AbstractSet[Value],
    sources: Iterable[Value],
    given: Callable[[], Mapping[Value, Range]],
) -> Masks:
    """Return the masks of `graph` differentiated by `sources`, on which the values `active` depend.

    There are none if all derivatives are known to be finite. `given` returns the ranges of inputs,
    and is called only if they matter.
    """
    at_work = [e for e in graph.body if not active.isdisjoint(e.outputs)]
    if not any(e.has_fact(CHOICE) or e.has_fact(JOINS) for e in at_work):
        return Masks()
    conditions = Conditions(graph)
    risks = Risks(graph, active, given(), conditions)
    masks = Masks(made=conditions.made)
    if are_met(graph, risks):
        begin, factors, openings = guards_of(graph, sources, conditions, risks)
        masks = replace(masks, tangents=begin, factors=factors, openings=openings)
    if any(e.has_fact(JOINS) for e in at_work) and ALWAYS in risks.before.values():
        found, more = supports_of(graph, sources, conditions, risks)
        openings = {e: masks.openings.get(e, NONE).joined(more.get(e, NONE))
                    for e in {**masks.openings, **more}}  # fmt: skip
        masks = replace(masks, results=found, openings=openings)
    return replace(masks, openings=_with_unsure(at_work, masks.openings, risks))


def _with_unsure(
    equations: Iterable[Equation], openings: Mapping[Equation, Opening], risks: Risks
) -> dict[Equation, Opening]:
    """Add to `openings` the body inputs that may not be finite, where elements are selected."""
    found = dict(openings)
    for eqn in equations:
        if eqn.op.fact(REGIONS) is None:
            continue
        if eqn in openings or eqn.has_fact(CHOICE) or eqn.has_fact(JOINS):
            known = ranges_within(eqn, [risks.ranges[v] for v in eqn.inputs])
            inputs = eqn.inputs[Regions.of(eqn).lead :]
            unsure = frozenset(
                i for i, x in enumerate(known) if not x.finite and inputs[i].type.is_inexact
            )
            if unsure:
                found[eqn] = found.get(eqn, NONE).joined(Opening(unsure=unsure))
    return found


def guards_at(
    graph: Graph,
    active: AbstractSet[Value],
    sources: Iterable[Value],
    values: AbstractSet[Value],
) -> tuple[dict[Value, Guards], list[Equation]]:
    """Return the guards of `values`, and the equations of their conditions.

    Only guards that matter are kept: derivatives before them may be infinite or NaN. The equations
    are those that the graph does not have itself.
    """
    conditions = Conditions(graph)
    risks = Risks(graph, active, {}, conditions)
    if not are_met(graph, risks):
        return {}, []
    held = guards_of_results(graph, sources, conditions, risks)
    found = {v: guards for v, guards in held.items() if v in values and guards}
    return found, list(conditions.made.values())
