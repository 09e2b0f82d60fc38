"""Where tangents may differ from zero.

A `select` between what is differentiated and what is not, a join of such parts, or zeros put
around one, has tangents that are zero in known places, whatever slopes they meet later: zero times
an infinite slope is zero there, as it is in reverse mode, where nothing comes back from there.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import final

from primgraph.ir.dims import bounds
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Primitive
from primgraph.primitives.elementwise import maximum, minimum
from primgraph.primitives.logic import greater, select
from primgraph.transforms.analysis.conditions import FORTH, Conditions
from primgraph.transforms.analysis.locality import is_elementwise
from primgraph.transforms.analysis.risks import ALWAYS, Risks


def supports_of(
    graph: Graph, sources: Iterable[Value], conditions: Conditions, risks: Risks
) -> dict[Equation, list[Value | None]]:
    """For each equation with slopes that may be infinite or NaN, where its operands' tangents may
    differ from zero, if not everywhere."""
    walk = _Walk(conditions, risks, frozenset(sources))
    for eqn in graph.body:
        if not risks.active.isdisjoint(eqn.outputs):
            walk.visit(eqn)
    return walk.found


@final
class _Walk:
    """Follows conditions from operands to results; equations are to be visited in order."""

    def __init__(self, conditions: Conditions, risks: Risks, sources: frozenset[Value]) -> None:
        self.conditions = conditions
        self.risks = risks
        self.sources = sources
        self.known: dict[Value, Value] = {}
        self.found: dict[Equation, list[Value | None]] = {}

    def visit(self, eqn: Equation) -> None:
        """Note where the results of `eqn` may have a tangent, and which of its slopes to hold."""
        operands = [self._support(v) for v in eqn.inputs]
        for place, value in enumerate(eqn.outputs):
            support = None if value in self.sources else self._behind(eqn, place, operands)
            if support is not None and not self.conditions.always(support):
                self.known[value] = support
        assert isinstance(eqn.op, Primitive)
        if self.known.keys().isdisjoint(eqn.inputs) or not is_elementwise(eqn):
            return
        found = [
            self.known.get(v) if v in self.risks.active and self._is_risky(eqn, i) else None
            for i, v in enumerate(eqn.inputs)
        ]
        if any(found):
            self.found[eqn] = found

    def _is_risky(self, eqn: Equation, position: int) -> bool:
        return self.risks.along(eqn, position) == ALWAYS

    def _support(self, value: Value) -> Value | None:
        """Where the tangent of `value` may differ from zero; None for nowhere."""
        if value not in self.risks.active:
            return None
        return self.known.get(value) or self.conditions.everywhere(value)

    def _behind(self, eqn: Equation, place: int, operands: list[Value | None]) -> Value | None:
        """Where a result may have a tangent; None for everywhere, or where it is not known."""
        if eqn.op is select:
            return self._of_select(eqn, operands)
        if eqn.op in (maximum, minimum) and None in operands:
            return self._of_extremum(eqn, operands)
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
        if eqn.op in FORTH and (changes or surrounded):
            return FORTH[eqn.op](self.conditions, eqn, place, operands)
        return None

    def _of_select(self, eqn: Equation, operands: list[Value | None]) -> Value | None:
        condition = eqn.inputs[0]
        _, left, right = operands
        if left is None and right is None:
            return None
        if right is None:
            assert left is not None
            return self._within(condition, eqn.inputs[1], left)
        if left is None:
            return self._within(self.conditions.negated(condition), eqn.inputs[2], right)
        if self.known.keys().isdisjoint(eqn.inputs[1:]):
            return None
        return self.conditions.record(select, condition, left, right)

    def _of_extremum(self, eqn: Equation, operands: list[Value | None]) -> Value | None:
        """Where the only operand with a tangent is not beaten by the other."""
        x, y = eqn.inputs
        place = 1 if operands[0] is None else 0
        beaten = (y, x) if (eqn.op is maximum) == (place == 0) else (x, y)
        lost = self.conditions.record(greater, *beaten)
        support = operands[place]
        assert support is not None
        return self._within(self.conditions.negated(lost), eqn.inputs[place], support)

    def _within(self, condition: Value, value: Value, support: Value) -> Value:
        return self.conditions.both(condition, support) if value in self.known else condition
