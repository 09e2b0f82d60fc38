"""Support of tangents: where they may be nonzero.

A `select` or a join of active and inactive parts, or zero padding, has tangents that are zero at
known places. They stay zero there even if a later derivative is infinite. Reverse mode agrees, as
it passes no cotangent back from there.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import final

from primgraph.ir.dims import bounds
from primgraph.ir.facts.choices import CHOICE, Choice
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Primitive
from primgraph.primitives.control import REGIONS, Regions
from primgraph.transforms.dataflow.activity import depending
from primgraph.transforms.dataflow.locality import is_elementwise
from primgraph.transforms.dataflow.masks.conditions import Conditions, moves_forth
from primgraph.transforms.dataflow.masks.masks_through_loops import Passage
from primgraph.transforms.dataflow.masks.repeated_conditions import of_row
from primgraph.transforms.dataflow.masks.slope_risks import ALWAYS, Risks
from primgraph.transforms.dataflow.region_interface import Opening, marked
from primgraph.transforms.dataflow.value_bounds import ranges_within


def supports_of(
    graph: Graph, sources: Iterable[Value], conditions: Conditions, risks: Risks
) -> tuple[dict[Equation, list[Value | None]], dict[Equation, Opening]]:
    """Return supports of operand tangents of equations with risky derivatives, and body conditions.

    A support is None if the tangent may be nonzero everywhere. For branches and loops the supports
    are passed into their bodies.
    """
    walk = _Walk(conditions, risks, frozenset(sources))
    for eqn in graph.body:
        if not risks.active.isdisjoint(eqn.outputs):
            walk.visit(eqn)
    return walk.found, walk.openings


@final
class _Walk:
    """Forward walk that moves supports from operands to results; visit equations in order."""

    def __init__(self, conditions: Conditions, risks: Risks, sources: frozenset[Value]) -> None:
        self.conditions = conditions
        self.risks = risks
        self.sources = sources
        self.known: dict[Value, Value] = {}
        self.found: dict[Equation, list[Value | None]] = {}
        self.openings: dict[Equation, Opening] = {}

    def visit(self, eqn: Equation) -> None:
        """Record the supports of the results of `eqn`, and the operand tangents to mask."""
        if eqn.op.fact(REGIONS) is not None:
            self._enter(eqn)
            return
        operands = [self._support(v) for v in eqn.inputs]
        for place, value in enumerate(eqn.outputs):
            support = None if value in self.sources else self._result_support(eqn, place, operands)
            if support is not None and not self.conditions.always(support):
                self.known[value] = support
        assert isinstance(eqn.op, Primitive)
        if self.known.keys().isdisjoint(eqn.inputs) or not is_elementwise(eqn):
            return
        found = [
            self.known.get(v) if v in self.risks.active and self.is_risky(eqn, i) else None
            for i, v in enumerate(eqn.inputs)
        ]
        if any(found):
            self.found[eqn] = found

    def _enter(self, eqn: Equation) -> None:
        """Pass supports of operands into the bodies of `eqn`, and record those of its results."""
        within = _Within(self, eqn)
        risky = (self.is_risky(eqn, i) for i, v in enumerate(eqn.inputs) if v in self.risks.active)
        if within.known and any(risky):
            self.openings[eqn] = Opening(differs=within.known)
        for place, value in enumerate(eqn.outputs):
            if value in self.risks.active and value not in self.sources:
                support = within.result(place)
                if support is not None and not self.conditions.always(support):
                    self.known[value] = support

    def is_risky(self, eqn: Equation, position: int) -> bool:
        return self.risks.along(eqn, position) == ALWAYS

    def _support(self, value: Value) -> Value | None:
        """Return where the tangent of `value` may be nonzero; None if nowhere."""
        if value not in self.risks.active:
            return None
        return self.known.get(value) or self.conditions.everywhere(value)

    def _result_support(
        self, eqn: Equation, place: int, operands: list[Value | None]
    ) -> Value | None:
        """Return the support of a result; None if it is everywhere or unknown."""
        choice = eqn.op.fact(CHOICE)
        if choice is not None and is_elementwise(eqn):
            if choice.by is not None:
                return self._selection_support(eqn, choice, operands)
            if None in operands:
                return self._extremum_support(eqn, choice, operands)
        changes = any(
            s is None or v in self.known for v, s in zip(eqn.inputs, operands, strict=True)
        )
        assert isinstance(eqn.op, Primitive)
        if is_elementwise(eqn):
            if self.known.keys().isdisjoint(eqn.inputs):
                return None
            present = [s for s in operands if s is not None]
            return reduce(self.conditions.either, dict.fromkeys(present))
        rest = eqn.outputs[place].type.size - sum(v.type.size for v in eqn.inputs)
        surrounded = bounds(rest)[1] > 0
        if moves_forth(eqn.op) and (changes or surrounded):
            return self.conditions.behind(eqn, place, operands)
        return None

    def _selection_support(
        self, eqn: Equation, choice: Choice, operands: list[Value | None]
    ) -> Value | None:
        """Return where the operand that a condition chooses has a tangent."""
        present = [i for i in choice.sides if operands[i] is not None]
        if len(present) == 1:
            (i,) = present
            condition, support = eqn.inputs[choice.by or 0], operands[i]
            assert support is not None
            where = condition if choice.sides[i] else self.conditions.negated(condition)
            return self._restrict_support(where, eqn.inputs[i], support)
        if self.known.keys().isdisjoint([eqn.inputs[i] for i in present]):
            return None
        values = [v if s is None else s for v, s in zip(eqn.inputs, operands, strict=True)]
        return self.conditions.record(eqn.op, *values)

    def _extremum_support(
        self, eqn: Equation, choice: Choice, operands: list[Value | None]
    ) -> Value | None:
        """Return where the only active operand is selected, that is, not beaten by the other."""
        place = 1 if operands[0] is None else 0
        assert choice.lost is not None
        lost = choice.lost(self.conditions.record, place, eqn.inputs, eqn.outputs, **eqn.kwargs)
        support = operands[place]
        assert support is not None
        return self._restrict_support(self.conditions.negated(lost), eqn.inputs[place], support)

    def _restrict_support(self, condition: Value, value: Value, support: Value) -> Value:
        return self.conditions.both(condition, support) if value in self.known else condition


@final
class _Within:
    """Supports of tangents in the bodies of a branch or a loop, and of its results.

    `known` has conditions on body inputs by position; on carries they hold in every iteration.
    Zeros in an initial carry stay zeros if the body preserves them.
    """

    def __init__(self, around: _Walk, eqn: Equation) -> None:
        self.around, self.eqn, self.regions = around, eqn, Regions.of(eqn)
        regions = self.regions
        operands = eqn.inputs[regions.lead :]
        self.known: dict[int, Value] = {}
        for i, value in enumerate(operands):
            if value in around.known:
                is_row = regions.is_loop and regions.is_row(i)
                condition = around.known[value]
                if is_row:
                    condition = of_row(around.conditions, condition)
                if regions.stacks or condition.shape == regions.bodies[0].inputs[i].shape:
                    self.known[i] = condition
        self.present = {i for i, v in enumerate(operands) if v in around.risks.active}
        self._follow()
        while lost := self._lost_carries():
            for i in lost:
                del self.known[i]
            self._walk_through()

    def result(self, place: int) -> Value | None:
        """Return the support of the result at `place`; None if it is unknown."""
        k = self.regions.kept(place)
        if k is None:
            return None
        if self.regions.is_carried(k):
            return self.known.get(self.regions.consts + k)
        return self._result_support(k)

    def _follow(self) -> None:
        """Find supports of carries that have a tangent only after the first iteration."""
        self._walk_through()
        while True:
            found = [
                i for i, value in self._returned_carries() if value in self.walks[0].risks.active
            ]
            found = [i for i in found if i not in self.present]
            if not found:
                return
            for i in found:
                support = self._result_support(i - self.regions.consts)
                if support is not None:
                    self.known[i] = support
            self.present.update(found)
            self._walk_through()

    def _lost_carries(self) -> list[int]:
        """Return the carries whose known support an iteration does not preserve."""
        walk, of = self.walks[0], self.marked.entry.of
        return [
            i
            for i, value in self._returned_carries()
            if i in self.known
            and value in walk.risks.active
            and walk.known.get(value) is not of(self.known[i], False)
        ]

    def _returned_carries(self) -> list[tuple[int, Value]]:
        """Return the carries that the body returns, with their input positions."""
        outputs = self.marked.bodies[0].outputs[: self.regions.carries]
        return list(enumerate(outputs, self.regions.consts))

    def _result_support(self, k: int) -> Value | None:
        """Return the support of body result `k`, joined over all bodies."""
        supports = []
        for walk, body in zip(self.walks, self.marked.bodies, strict=True):
            value = body.outputs[k]
            if value in walk.risks.active:
                way = Passage(self.eqn, self.marked, body, walk.conditions, self.around.conditions)
                inner = walk.known.get(value)
                support = None if inner is None else way.to_result(k, inner)
                if support is None:
                    return None
                supports.append(support)
        return reduce(self.around.conditions.either, supports) if supports else None

    def _walk_through(self) -> None:
        self.marked = marked(self.eqn, Opening(differs=self.known))
        self.walks = list(map(self._walk, self.regions.bodies, self.marked.bodies))

    def _walk(self, own: Graph, body: Graph) -> _Walk:
        """Analyse `body`, which is `own` with marks."""
        ranges = self.around.risks.ranges
        given = ranges_within(self.eqn, [ranges[v] for v in self.eqn.inputs])
        conditions = Conditions(body)
        active = depending(body, [own.inputs[i] for i in sorted(self.present)])
        risks = Risks(body, active, dict(zip(own.inputs, given, strict=True)), conditions)
        walk = _Walk(conditions, risks, frozenset())
        for inner in body.body:
            if not active.isdisjoint(inner.outputs):
                walk.visit(inner)
        return walk
