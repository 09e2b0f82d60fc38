"""Guard analysis: values that matter only where they are selected.

A `select` chooses elements of its operands, a maximum the larger ones, a slice a region. A value
used only there matters only where it is selected: elsewhere it is discarded, even if it is infinite
or NaN. A derivative must not let it back in, as 0 * inf would.

Elementwise primitives pass a guard on unchanged. Primitives that move or sum elements pass on the
condition moved backward.

A guard is followed only while derivatives behind it may be infinite or NaN. Behind a `select` this
includes every derivative that depends on an operand, as unselected inputs may be NaN. Elsewhere
only derivatives that may be infinite at finite inputs count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeAlias, final

from primgraph.ir.facts.choices import CHOICE, FALSE_AT_NAN, NAN_OF, Choice
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.index_maps import IndexMap
from primgraph.ir.primitive import Op, Primitive
from primgraph.transforms.dataflow.engine import Analysis, Facts, Flow
from primgraph.transforms.dataflow.locality import (
    is_elementwise,
    multiplies_sums,
)
from primgraph.transforms.dataflow.masks.conditions import (
    Conditions,
    moves_back,
)
from primgraph.transforms.dataflow.masks.guard import Guard, Guards
from primgraph.transforms.dataflow.masks.guards_through_loops import BodyGuards
from primgraph.transforms.dataflow.masks.slope_risks import ALWAYS, AT_NAN, NEVER, Risks
from primgraph.transforms.dataflow.masks.uses import Use, join_uses, matters
from primgraph.transforms.dataflow.region_interface import BodyConditions

# Maximum number of nested guards that are tracked separately; it bounds the work on chains of
# `select`.
_NESTING = 6


ByOperand: TypeAlias = dict[Equation, list[Guards]]


def has_relevant_risk(graph: Graph, risks: Risks) -> bool:
    """Return whether some equation discards elements whose derivative has a relevant risk."""
    return any(
        risks.before.get(v, NEVER) >= _least_risk(eqn.op)
        for eqn in graph.body
        if eqn.has_fact(CHOICE)
        for v in eqn.inputs
    )


def _least_risk(op: Op) -> int:
    """Return the lowest risk at which a derivative needs the guards of a choice."""
    choice = op.fact(CHOICE)
    return AT_NAN if choice is None or choice.by is not None else ALWAYS


def guards_of(
    graph: Graph, sources: Iterable[Value], conditions: Conditions, risks: Risks
) -> tuple[ByOperand, ByOperand, dict[Equation, BodyConditions]]:
    """Return the guards that begin at operands, those of factors, and those taken into bodies.

    The first are the risky guards of an operand's use that do not hold for the operand itself. The
    second are guards of matrix factors of which only some elements matter. Only uses by active
    values count, as others carry no derivative. No guard passes `sources`, whose tangents come from
    outside.
    """
    analysis = GuardAnalysis(conditions, risks, frozenset(sources))
    analysis.uses_of(graph)
    return analysis.beginning(), analysis.factors, analysis.openings


def guards_of_results(
    graph: Graph, sources: Iterable[Value], conditions: Conditions, risks: Risks
) -> dict[Value, Guards]:
    """Return the guards that hold for the results of equations, on all their uses."""
    analysis = GuardAnalysis(conditions, risks, frozenset(sources))
    analysis.uses_of(graph)
    return analysis.held


@final
class GuardAnalysis(Analysis[list[Use]]):
    """Uses of values, with their guards, from results to operands; one instance for each graph."""

    __slots__ = ("along", "conditions", "factors", "held", "openings", "passed", "risks", "sources")

    backward = True

    def __init__(
        self, conditions: Conditions, risks: Risks, sources: frozenset[Value] = frozenset()
    ) -> None:
        self.sources = sources
        self.conditions = conditions
        self.risks = risks
        self.passed: dict[Value, Guards] = {}
        self.along: list[tuple[Equation, list[Guards]]] = []
        self.factors: ByOperand = {}
        # Guards by result.
        self.held: dict[Value, Guards] = {}
        self.openings: dict[Equation, BodyConditions] = {}

    def beginning(self) -> ByOperand:
        """Return the guards that begin at uses."""
        begin = {}
        for eqn, along in self.along:
            pairs = zip(eqn.inputs, along, strict=True)
            found = [_new_risky_guards(guards, self.passed.get(v, ())) for v, guards in pairs]
            if any(found):
                begin[eqn] = found
        return begin

    def uses_of(self, graph: Graph) -> dict[Value, list[Use]]:
        """Return the uses of all values of `graph` that have some; its results have no guards."""
        return self.run(graph, {v: [Use()] for v in graph.outputs}).facts

    def of_body(self, conditions: Conditions, risks: Risks) -> GuardAnalysis:
        """Return the analysis of a body of an equation of this graph."""
        return GuardAnalysis(conditions, risks)

    def update(self, value: Value, old: list[Use], new: list[Use]) -> list[Use]:
        # In place, as a value may have any number of uses.
        old.extend(new)
        return old

    def visit(
        self, eqn: Equation, given: Facts[list[Use]], flow: Flow[list[Use]]
    ) -> Sequence[list[Use] | None]:
        if self.risks.active.isdisjoint(eqn.outputs):
            return [None] * len(eqn.inputs)
        return super().visit(eqn, given, flow)

    def transfer(
        self, eqn: Equation, given: Facts[list[Use]], flow: Flow[list[Use]]
    ) -> Facts[list[Use]]:
        """Return the uses of the operands, and note the guards that begin at this equation."""
        results = self._guards_of_results(eqn, given)
        ways = [(place, guards) for place, guards in enumerate(results) if guards is not None]
        place, guards = ways[0]
        if len(ways) == 1:
            self._pass(eqn, eqn.outputs[place], guards)
        along: list[Guards] = []
        uses: Facts[list[Use]] = []
        for i, value in enumerate(eqn.inputs):
            is_active = value in self.risks.active
            found = [self._use(eqn, i, *way) for way in ways] if is_active else [Use()]
            uses.append(found if is_active else None)
            many = len(found) > 1
            along.append(join_uses(self.conditions, value, found) if many else found[0].guards)
        if any(along):
            self.along.append((eqn, along))
        if guards and multiplies_sums(eqn.op):
            self._guard_factors(eqn, guards)
        return uses

    def analyze_bodies(
        self, eqn: Equation, given: Facts[list[Use]], flow: Flow[list[Use]] | None
    ) -> Facts[list[Use]]:
        """Return the uses of the operands of an equation with bodies.

        Guards of results begin within the bodies, at their marks.
        """
        results = self._guards_of_results(eqn, given)
        bodies = BodyGuards(self, eqn)
        found = bodies.analyze_bodies(eqn, results, None)
        self.openings[eqn] = bodies.opening()
        for place, guards in enumerate(results):
            if guards is not None:
                self.passed[eqn.outputs[place]] = bodies.handed_on(place, guards)
        return [
            None if guards is None or v not in self.risks.active else [self._use_before(v, guards)]
            for v, guards in zip(eqn.inputs, found, strict=True)
        ]

    def _guards_of_results(self, eqn: Equation, given: Facts[list[Use]]) -> Facts[Guards]:
        """Return the guards of each result that has uses, and note them."""
        pairs = zip(eqn.outputs, given, strict=True)
        found = [None if uses is None else join_uses(self.conditions, v, uses) for v, uses in pairs]
        self.held.update((v, x) for v, x in zip(eqn.outputs, found, strict=True) if x is not None)
        return found

    def _use_before(self, value: Value, guards: Guards) -> Use:
        """Return the use of an operand, with those guards that matter to derivatives before it."""
        before = self.risks.before[value]
        return Use(self._cap_depth(tuple(g for g in guards if g.risky or before >= g.least)))

    def _pass(self, eqn: Equation, value: Value, guards: Guards) -> None:
        """Record which guards of `value` are also enforced at the operands it is computed from."""
        assert isinstance(eqn.op, Primitive)
        if value in self.sources or not (moves_back(eqn.op) or is_elementwise(eqn)):
            return
        self.passed[value] = tuple(g for g in guards if self.conditions.keeps(eqn, g.condition))

    def _use(self, eqn: Equation, position: int, place: int, guards: Guards) -> Use:
        """Return the use of one operand for the result at `place`, which has `guards`."""
        assert isinstance(eqn.op, Primitive)
        fewer = True
        if moves_back(eqn.op):
            guards = self._merge_copied(eqn, guards)
            fewer = all(self.conditions.keeps(eqn, g.condition) for g in guards)
            guards = tuple(self._move_guard(eqn, position, place, g) for g in guards)
        elif not is_elementwise(eqn):
            return Use()
        value = eqn.inputs[position]
        if (choice := eqn.op.fact(CHOICE)) is not None:
            guards = (*guards, *self._choice_guard(eqn, position, choice, fewer=fewer))
        if not multiplies_sums(eqn.op):
            risk = self.risks.operand_risk(eqn, position)
            guards = tuple(
                replace(g, risky=g.risky or (risk >= g.least and not self._spares(eqn, g)))
                for g in guards
            )
        use = self._use_before(value, guards)
        part = choice is not None and not use.guards and self.risks.before[value] == ALWAYS
        if part and _leaves_out(eqn, place, position):
            return replace(use, part=(eqn, place))
        return use

    def _spares(self, eqn: Equation, guard: Guard) -> bool:
        """Return whether a NaN in the derivative of `unless_nan` needs no mask for `guard`.

        No comparison holds for a NaN. A random mask, such as dropout after a `relu`, is independent
        of the values that it drops.
        """
        tested = eqn.op.fact(NAN_OF)
        if tested is None:
            return False
        made = self.conditions.definition(guard.condition)
        if made is None:
            return False
        if isinstance(made.op, Primitive) and made.op.random:
            return True
        compares = made.op.fact(FALSE_AT_NAN) and eqn.inputs[tested] in made.inputs
        return compares and not guard.side

    def _merge_copied(self, eqn: Equation, guards: Guards) -> Guards:
        """Merge those `guards` that `eqn`, which copies elements, does not copy alike.

        An operand element matters if one of its copies satisfies all guards. It is not enough that
        each guard holds for some copy.
        """
        if len(guards) < 2 or not self.conditions.repeats(eqn):
            return guards
        alike = tuple(g for g in guards if self.conditions.keeps(eqn, g.condition))
        others = [g for g in guards if g not in alike]
        return (*alike, reduce(self._both, others)) if others else alike

    def _both(self, one: Guard, other: Guard) -> Guard:
        condition = self.conditions.both(*[matters(self.conditions, g) for g in (one, other)])
        return Guard(condition, True, one.strict or other.strict, one.risky or other.risky)

    def _move_guard(self, eqn: Equation, position: int, place: int, guard: Guard) -> Guard:
        """Move `guard` of a result to an operand.

        Where elements are copied, the use must be guarded as well: a moved guard is not risky
        there.
        """
        back = self.conditions.operand_condition(eqn, position, place, guard.condition)
        if back is not None and self.conditions.repeats_alike(eqn, guard.condition) is not None:
            return replace(guard, condition=back)
        held = matters(self.conditions, guard)
        back = self.conditions.operand_condition(eqn, position, place, held)
        risky = guard.risky and self.conditions.keeps(eqn, guard.condition)
        return Guard(back, True, guard.strict and not multiplies_sums(eqn.op), risky)

    def _choice_guard(self, eqn: Equation, position: int, choice: Choice, *, fewer: bool) -> Guards:
        """Return the guard of the elements that `eqn` itself chooses.

        Of elements that are looked up none is needed beside guards that say it already.
        """
        if choice.by is not None:
            plain, negated = self.conditions.plain(eqn.inputs[choice.by])
            return (Guard(plain, choice.sides[position] != negated, strict=True),)
        if choice.lost is not None:
            record = self.conditions.record
            lost = choice.lost(record, position, eqn.inputs, eqn.outputs, **eqn.kwargs)
            return (Guard(lost, False),)
        found = eqn.dependence(0, position)
        if not fewer or not isinstance(found, IndexMap) or not found.lookups():
            return ()
        everywhere = self.conditions.everywhere(eqn.outputs[0])
        return (Guard(self.conditions.operand_condition(eqn, position, 0, everywhere), True),)

    def _cap_depth(self, guards: Guards) -> Guards:
        """Return `guards`, with the two outermost merged if there are too many."""
        if len(guards) <= _NESTING:
            return guards
        return (self._both(*guards[:2]), *guards[2:])

    def _guard_factors(self, eqn: Equation, guards: Guards) -> None:
        """Guard the factors of a matrix product where they do not matter but may not be finite.

        The sum over their elements mixes them with elements that matter.
        """
        found = [
            ()
            if self.risks.ranges[v].finite and self.risks.before.get(v) != ALWAYS
            else tuple(self._move_guard(eqn, i, 0, replace(g, risky=True)) for g in guards)
            for i, v in enumerate(eqn.inputs)
        ]
        if any(found):
            self.factors[eqn] = found


def _leaves_out(eqn: Equation, place: int, position: int) -> bool:
    """Return whether `eqn` reads elements of an operand at fixed places, and not the others."""
    found = eqn.dependence(place, position)
    return isinstance(found, IndexMap) and (eqn.op.is_view or found.hole is not None)


def _new_risky_guards(use: Guards, held: Guards) -> Guards:
    before = {(g.condition, g.side) for g in held}
    return tuple(g for g in use if g.risky and (g.condition, g.side) not in before)
