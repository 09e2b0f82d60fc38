"""Support of tangents: where they may be nonzero.

A `select` or a join of active and inactive parts, or zero padding, has tangents that are zero at
known places. They stay zero there even if a later derivative is infinite. Reverse mode agrees, as
it passes no cotangent back from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Literal, TypeAlias, final

from primgraph.ir.dims import bounds
from primgraph.ir.facts.choices import CHOICE, Choice
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Primitive
from primgraph.primitives.control import Regions
from primgraph.transforms.dataflow.activity import dependent_values
from primgraph.transforms.dataflow.engine import Analysis, Facts, Flow
from primgraph.transforms.dataflow.locality import is_elementwise
from primgraph.transforms.dataflow.masks.conditions import Conditions, moves_forth
from primgraph.transforms.dataflow.masks.masks_through_loops import OuterConditions
from primgraph.transforms.dataflow.masks.repeated_conditions import row_condition
from primgraph.transforms.dataflow.masks.slope_risks import ALWAYS, Risks
from primgraph.transforms.dataflow.region_interface import BodyConditions, mark_bodies
from primgraph.transforms.dataflow.value_bounds import ranges_within

# The condition under which a tangent may be nonzero; True if it may be so everywhere.
Support: TypeAlias = "Value | Literal[True]"


def supports_of(
    graph: Graph, sources: Iterable[Value], conditions: Conditions, risks: Risks
) -> tuple[dict[Equation, list[Value | None]], dict[Equation, BodyConditions]]:
    """Return supports of operand tangents of equations with risky derivatives, and body conditions.

    A support is None if the tangent may be nonzero everywhere. For branches and loops the supports
    are passed into their bodies.
    """
    analysis = _Supports(conditions, risks)
    analysis.run(graph, dict.fromkeys(sources, True))
    return analysis.found, analysis.openings


@final
class _Supports(Analysis[Support]):
    """Supports of tangents, from operands to results; one instance for each graph.

    Facts on inputs and outputs of bodies are conditions outside; those on carries hold in every
    iteration. Zeros in an initial carry stay zeros if the body preserves them.
    """

    __slots__ = ("conditions", "found", "openings", "risks")

    def __init__(self, conditions: Conditions, risks: Risks) -> None:
        self.conditions = conditions
        self.risks = risks
        self.found: dict[Equation, list[Value | None]] = {}
        self.openings: dict[Equation, BodyConditions] = {}

    def update(self, value: Value, old: Support, new: Support) -> Support:
        return old

    def visit(self, eqn: Equation, given: Facts[Support], flow: Flow[Support]) -> Facts[Support]:
        if self.risks.active.isdisjoint(eqn.outputs):
            return [None] * len(eqn.outputs)
        found = super().visit(eqn, given, flow)
        return [
            self._unless_everywhere(x) if v in self.risks.active else None
            for v, x in zip(eqn.outputs, found, strict=True)
        ]

    def _unless_everywhere(self, support: Support | None) -> Support:
        if isinstance(support, Value) and not self.conditions.always(support):
            return support
        return True

    def transfer(self, eqn: Equation, given: Facts[Support], flow: Flow[Support]) -> Facts[Support]:
        """Return the supports of the results, and note the operand tangents to mask."""
        known = [x if isinstance(x, Value) else None for x in given]
        operands = [
            self.conditions.everywhere(v) if x is True else x
            for v, x in zip(eqn.inputs, given, strict=True)
        ]
        found = [self._result_support(eqn, k, operands, known) for k in range(len(eqn.outputs))]
        if any(known) and is_elementwise(eqn):
            masked = [x if x and self._is_risky(eqn, i) else None for i, x in enumerate(known)]
            if any(masked):
                self.found[eqn] = masked
        return [*found]

    def _is_risky(self, eqn: Equation, position: int) -> bool:
        return self.risks.operand_risk(eqn, position) == ALWAYS

    def _result_support(
        self,
        eqn: Equation,
        place: int,
        operands: Sequence[Value | None],
        known: Sequence[Value | None],
    ) -> Value | None:
        """Return the support of a result; None if it is everywhere or unknown."""
        choice = eqn.op.fact(CHOICE)
        if choice is not None and is_elementwise(eqn):
            if choice.by is not None:
                return self._selection_support(eqn, choice, operands, known)
            if None in operands:
                return self._extremum_support(eqn, choice, operands, known)
        assert isinstance(eqn.op, Primitive)
        if is_elementwise(eqn):
            if not any(known):
                return None
            present = [s for s in operands if s is not None]
            return reduce(self.conditions.either, dict.fromkeys(present))
        rest = eqn.outputs[place].type.size - sum(v.type.size for v in eqn.inputs)
        surrounded = bounds(rest)[1] > 0
        if moves_forth(eqn.op) and (None in operands or any(known) or surrounded):
            return self.conditions.result_condition(eqn, place, operands)
        return None

    def _selection_support(
        self,
        eqn: Equation,
        choice: Choice,
        operands: Sequence[Value | None],
        known: Sequence[Value | None],
    ) -> Value | None:
        """Return where the operand that a condition chooses has a tangent."""
        present = [i for i in choice.sides if operands[i] is not None]
        if len(present) == 1:
            (i,) = present
            condition = eqn.inputs[choice.by or 0]
            where = condition if choice.sides[i] else self.conditions.negate_condition(condition)
            return self._restrict_support(where, known[i])
        if not any(known[i] for i in present):
            return None
        values = [v if s is None else s for v, s in zip(eqn.inputs, operands, strict=True)]
        return self.conditions.record(eqn.op, *values)

    def _extremum_support(
        self,
        eqn: Equation,
        choice: Choice,
        operands: Sequence[Value | None],
        known: Sequence[Value | None],
    ) -> Value | None:
        """Return where the only active operand is selected, that is, not beaten by the other."""
        place = 1 if operands[0] is None else 0
        assert choice.lost is not None
        lost = choice.lost(self.conditions.record, place, eqn.inputs, eqn.outputs, **eqn.kwargs)
        return self._restrict_support(self.conditions.negate_condition(lost), known[place])

    def _restrict_support(self, condition: Value, support: Value | None) -> Value:
        return condition if support is None else self.conditions.both(condition, support)

    # Bodies of branches and loops.

    def join(self, value: Value, facts: Sequence[Support | None]) -> Support | None:
        present = [x for x in facts if x is not None]
        known = [x for x in present if isinstance(x, Value)]
        if len(known) < len(present):
            return True
        found: Value | None = reduce(self.conditions.either, known) if known else None
        return found

    def row(self, fact: Support, stack: Value, row: Value) -> Support:
        return fact if fact is True else row_condition(self.conditions, fact)

    def entry_facts(self, eqn: Equation, regions: Regions, given: Facts[Support]) -> Facts[Support]:
        """Return the supports of body inputs; growing stacks have no rows to take."""
        facts = super().entry_facts(eqn, regions, given)
        return [
            True if isinstance(x, Value) and not regions.stacks and x.shape != v.shape else x
            for x, v in zip(facts, regions.bodies[0].inputs, strict=True)
        ]

    def follow(
        self,
        body: Graph,
        given: Facts[Support],
        eqn: Equation | None = None,
        outer: Flow[Support] | None = None,
    ) -> Facts[Support]:
        assert eqn is not None
        marks = mark_bodies(eqn, _opening(given), bodies=[body])
        (inside,) = marks.bodies
        sources = [v for v, x in zip(body.inputs, given, strict=True) if x is not None]
        ranges = ranges_within(eqn, [self.risks.ranges[v] for v in eqn.inputs])
        conditions, active = Conditions(inside), dependent_values(inside, sources)
        known = dict(zip(body.inputs, ranges, strict=True))
        inner = _Supports(conditions, Risks(inside, active, known, conditions))
        facts = inner.run(inside, dict.fromkeys(sources, True)).facts
        outside = OuterConditions(eqn, marks, inside, conditions, self.conditions)
        consts = marks.regions.consts
        found: Facts[Support] = []
        for k, value in enumerate(inside.outputs):
            support = facts.get(value)
            before = given[consts + k] if marks.regions.is_carried(k) else None
            if isinstance(support, Value) and isinstance(before, Value):
                # A step keeps the support of a carry, or it is given up.
                kept = support is marks.entry.body_input(before, False)
                found.append(before if kept else True)
            elif isinstance(support, Value):
                found.append(outside.to_result(k, support) or True)
            else:
                found.append(support)
        return found

    def advance(
        self, values: Sequence[Value], state: Facts[Support], found: Facts[Support]
    ) -> Facts[Support]:
        """Reach all carries that have a tangent in some step; then drop supports that change."""
        pairs = list(zip(state, found, strict=True))
        if any(x is None and y is not None for x, y in pairs):
            return [y if x is None else x for x, y in pairs]
        return [x if y is None or x is y else True for x, y in pairs]

    def settle(
        self,
        regions: Regions,
        state: Facts[Support],
        eqn: Equation | None = None,
        flow: Flow[Support] | None = None,
    ) -> tuple[Facts[Support], Facts[Support]]:
        within, found = super().settle(regions, state, eqn, flow)
        assert eqn is not None
        opening, active = _opening(within), self.risks.active
        risky = (self._is_risky(eqn, i) for i, v in enumerate(eqn.inputs) if v in active)
        if opening.differs and any(risky):
            self.openings[eqn] = opening
        return within, found


def _opening(given: Facts[Support]) -> BodyConditions:
    return BodyConditions(differs={i: x for i, x in enumerate(given) if isinstance(x, Value)})
