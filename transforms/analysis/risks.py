"""Which slopes may be infinite or NaN, and where such slopes are on the way to a value."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import final

from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Primitive
from primgraph.primitives.linalg import matmul
from primgraph.transforms.analysis.bounds import factors_of_slope, ranges_of, slope_stays_finite
from primgraph.transforms.analysis.conditions import Conditions
from primgraph.transforms.analysis.ranges import Range

# A slope that is a finite constant; that is finite if all inputs are; that may be infinite or NaN
# at finite inputs too.
NEVER, AT_NAN, ALWAYS = 0, 1, 2


@final
class Risks:
    """How far slopes may be infinite or NaN: along operands, and anywhere before a value."""

    def __init__(
        self,
        graph: Graph,
        active: AbstractSet[Value],
        given: Mapping[Value, Range],
        conditions: Conditions,
    ) -> None:
        self.active = active
        self.ranges = ranges_of(graph, given, conditions.array)
        self.before = dict.fromkeys(active, NEVER)
        self.fixed = {v for v in graph.inputs if self.ranges[v].is_number}
        for eqn in graph.body:
            if self.fixed.issuperset(eqn.inputs):
                self.fixed.update(eqn.outputs)
            elif not active.isdisjoint(eqn.outputs):
                places = [i for i, v in enumerate(eqn.inputs) if v in active]
                found = [max(self.before[eqn.inputs[i]], self.along(eqn, i)) for i in places]
                for value in eqn.outputs:
                    self.before[value] = max(found, default=NEVER)

    def along(self, eqn: Equation, position: int) -> int:
        """The risk of the slope of `eqn` along that operand."""
        assert isinstance(eqn.op, Primitive)
        if eqn.op.constant or eqn.op.linear is True:
            return NEVER
        if not slope_stays_finite(eqn, position, self.ranges):
            return ALWAYS
        factors = [eqn.inputs[i] for i in factors_of_slope(eqn.op, position, len(eqn.inputs))]
        if any(self.before.get(v) == ALWAYS for v in factors):
            return ALWAYS
        if eqn.op is matmul:
            return NEVER
        varying = any(v.type.is_inexact and v not in self.fixed for v in factors)
        return AT_NAN if varying else NEVER
