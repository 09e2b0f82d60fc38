"""Masks for linearize: infinite derivatives of unselected elements must not reach results.

`Masking` applies them to tangents while a graph is differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field, replace
from itertools import chain
from typing import TYPE_CHECKING, final

from primgraph.base.providers import late
from primgraph.base.records import dataclass
from primgraph.ir.facts.choices import CHOICE, JOINS
from primgraph.ir.facts.ranges import Range
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.primitives.constants import zeros_like
from primgraph.primitives.control import REGIONS, Regions
from primgraph.primitives.logic import select
from primgraph.transforms.dataflow.activity import dependent_values

if TYPE_CHECKING:
    from primgraph.transforms.dataflow import region_interface, tangent_support, value_bounds
    from primgraph.transforms.dataflow.masks import conditions as choice_conditions
    from primgraph.transforms.dataflow.masks import guard as guard_kinds
    from primgraph.transforms.dataflow.masks import guards as guard_analysis
    from primgraph.transforms.dataflow.masks import slope_risks
else:
    choice_conditions = late("primgraph.transforms.dataflow.masks.conditions")
    guard_kinds = late("primgraph.transforms.dataflow.masks.guard")
    guard_analysis = late("primgraph.transforms.dataflow.masks.guards")
    slope_risks = late("primgraph.transforms.dataflow.masks.slope_risks")
    region_interface = late("primgraph.transforms.dataflow.region_interface")
    tangent_support = late("primgraph.transforms.dataflow.tangent_support")
    value_bounds = late("primgraph.transforms.dataflow.value_bounds")


@dataclass(frozen=True, slots=True)
class Masks:
    """Masks of a graph, by equation and then by operand.

    `tangents` has guards of operand tangents, `factors` guards of matrix factors. `results` has the
    support of each tangent's contribution. `openings` has the masks within branches and loops.
    `made` maps results to equations of conditions that are not in the graph.
    """

    tangents: guard_analysis.ByOperand = field(default_factory=dict)
    factors: guard_analysis.ByOperand = field(default_factory=dict)
    results: dict[Equation, list[Value | None]] = field(default_factory=dict)
    openings: dict[Equation, region_interface.BodyConditions] = field(default_factory=dict)
    made: dict[Value, Equation] = field(default_factory=dict)


def masks_of(
    graph: Graph, sources: Sequence[Value], given: Callable[[], Mapping[Value, Range]]
) -> Masks:
    """Return the masks of `graph` differentiated by `sources`.

    There are none if all derivatives are known to be finite. `given` returns the ranges of inputs,
    and is called only if they matter.
    """
    ops = graph.ops
    if not any(op.fact(CHOICE) or op.fact(JOINS) for op in ops) or all(
        map(slope_risks.is_riskless, ops)
    ):
        return Masks()
    active = dependent_values(graph, sources, by_tangents=True)
    at_work = [e for e in graph.body if not active.isdisjoint(e.outputs)]
    if not any(e.has_fact(CHOICE) or e.has_fact(JOINS) for e in at_work):
        return Masks()
    conditions = choice_conditions.Conditions(graph)
    risks = slope_risks.Risks(graph, active, given(), conditions)
    masks = Masks(made=conditions.made)
    if guard_analysis.has_relevant_risk(graph, risks):
        begin, factors, openings = guard_analysis.guards_of(graph, sources, conditions, risks)
        masks = replace(masks, tangents=begin, factors=factors, openings=openings)
    if any(e.has_fact(JOINS) for e in at_work) and slope_risks.ALWAYS in risks.before.values():
        found, more = tangent_support.supports_of(graph, sources, conditions, risks)
        none = region_interface.NONE
        openings = {e: masks.openings.get(e, none).merge_openings(more.get(e, none))
                    for e in {**masks.openings, **more}}  # fmt: skip
        masks = replace(masks, results=found, openings=openings)
    return replace(masks, openings=_with_unsure(at_work, masks.openings, risks))


def _with_unsure(
    equations: Iterable[Equation],
    openings: Mapping[Equation, region_interface.BodyConditions],
    risks: slope_risks.Risks,
) -> dict[Equation, region_interface.BodyConditions]:
    """Add to `openings` the body inputs that may not be finite, where elements are selected."""
    found = dict(openings)
    for eqn in equations:
        if eqn.op.fact(REGIONS) is None:
            continue
        if eqn in openings or eqn.has_fact(CHOICE) or eqn.has_fact(JOINS):
            known = value_bounds.ranges_within(eqn, [risks.ranges[v] for v in eqn.inputs])
            inputs = eqn.inputs[Regions.from_equation(eqn).lead :]
            unsure = frozenset(
                i for i, x in enumerate(known) if not x.finite and inputs[i].type.is_inexact
            )
            if unsure:
                found[eqn] = found.get(eqn, region_interface.NONE).merge_openings(
                    region_interface.BodyConditions(unsure=unsure)
                )
    return found


def guards_at(
    graph: Graph,
    active: AbstractSet[Value],
    sources: Iterable[Value],
    values: AbstractSet[Value],
) -> tuple[dict[Value, guard_kinds.Guards], list[Equation]]:
    """Return the guards of `values`, and the equations of their conditions.

    Only guards that matter are kept: derivatives before them may be infinite or NaN. The equations
    are those that the graph does not have itself.
    """
    conditions = choice_conditions.Conditions(graph)
    risks = slope_risks.Risks(graph, active, {}, conditions)
    if not guard_analysis.has_relevant_risk(graph, risks):
        return {}, []
    held = guard_analysis.guards_of_results(graph, sources, conditions, risks)
    found = {v: guards for v, guards in held.items() if v in values and guards}
    return found, list(conditions.made.values())


@final
class Masking:
    """Masks of a graph by equation and operand; without a mask, arguments are returned unchanged.

    `moved` maps values of the graph to recorded values.
    """

    def __init__(self, masks: Masks, graph: Graph, moved: Mapping[Value, Value]) -> None:
        self.masks = masks
        self.moved = moved
        self.definitions = dict(masks.made)
        if masks.tangents or masks.factors or masks.results or masks.openings:
            self.definitions.update((v, e) for e in graph.body for v in e.outputs)

    def tangents(self, eqn: Equation, dx: Mapping[int, Value]) -> Mapping[int, Value]:
        """Return the operand tangents, set to zero where they do not matter."""
        guards = self.masks.tangents.get(eqn)
        return dx if guards is None else {i: self._guard(d, guards[i]) for i, d in dx.items()}

    def factors(self, eqn: Equation, x: Sequence[Value]) -> Sequence[Value]:
        """Return the factors of a matrix product, set to zero where they do not matter."""
        guards = self.masks.factors.get(eqn)
        return x if guards is None else list(map(self._guard, x, guards))

    def terms(
        self, eqn: Equation, found: Mapping[tuple[int, ...], Sequence[Value | None]]
    ) -> Iterable[Sequence[Value | None]]:
        """Return the contributions of tangents, keyed by the operands they come from.

        The contribution of a single operand is set to zero outside the support of its tangent.
        """
        where = self.masks.results.get(eqn)
        if where is None:
            return found.values()
        return [
            [self._mask_tangent(where[places[0]], d) for d in results]
            if len(places) == 1
            else results
            for places, results in found.items()
        ]

    def conditions(self, eqn: Equation) -> Iterator[Equation]:
        """Yield the equations that compute the masks of `eqn` and are not recorded yet, in order.

        Some of them may come after `eqn` in the graph. Record each equation before advancing the
        iterator.
        """
        guards = chain(self.masks.tangents.get(eqn, ()), self.masks.factors.get(eqn, ()))
        waiting = [g.condition for g in chain.from_iterable(guards)]
        waiting += [c for c in self.masks.results.get(eqn, ()) if c is not None]
        if eqn in self.masks.openings:
            waiting += self.masks.openings[eqn].conditions
        while waiting:
            if waiting[-1] in self.moved:
                waiting.pop()
                continue
            needed = self.definitions[waiting[-1]]
            missing = [v for v in needed.inputs if v not in self.moved]
            if missing:
                waiting += missing
            else:
                yield needed

    def open_bodies(self, eqn: Equation) -> tuple[Equation, Sequence[int]]:
        """Return `eqn` with masks in its bodies, and the new positions of its operands."""
        opening = self.masks.openings.get(eqn)
        return (
            (eqn, range(len(eqn.inputs)))
            if opening is None
            else region_interface.add_condition_operands(eqn, opening)
        )

    def _mask_tangent(self, condition: Value | None, found: Value | None) -> Value | None:
        if condition is None or found is None:
            return found
        return select(self.moved[condition], found, zeros_like(found))

    def _guard(self, value: Value, guards: guard_kinds.Guards) -> Value:
        for guard in guards:
            zero = zeros_like(value)
            sides = (value, zero) if guard.side else (zero, value)
            value = select(self.moved[guard.condition], *sides)
        return value
