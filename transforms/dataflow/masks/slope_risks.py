"""Risk analysis: derivatives that may be infinite or NaN, and values behind them."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import final

from primgraph.ir.facts.ranges import Range
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Op, Primitive
from primgraph.primitives.control import REGIONS, Regions
from primgraph.transforms.dataflow.activity import active_inputs, dependent_values
from primgraph.transforms.dataflow.engine import Analysis, Facts, Flow
from primgraph.transforms.dataflow.locality import multiplies_sums
from primgraph.transforms.dataflow.masks.conditions import Conditions
from primgraph.transforms.dataflow.value_bounds import (
    factors_of_slope,
    ranges_of,
    ranges_within,
    slope_stays_finite,
)

# Risk of a derivative: a finite constant; finite at finite inputs; maybe infinite or NaN at finite
# inputs too.
NEVER, AT_NAN, ALWAYS = 0, 1, 2


def is_riskless(op: Op) -> bool:
    """Return whether all derivatives of `op` are finite constants, whatever the operands."""
    return isinstance(op, Primitive) and (op.constant or op.linear is True)


@final
class _Fixed(Analysis[bool]):
    """Whether values are the same for all inputs; equations with bodies are not entered."""

    __slots__ = ()

    dense = True
    enters = False

    def transfer(self, eqn: Equation, given: Facts[bool], flow: Flow[bool]) -> list[bool | None]:
        return [all(given) or None] * len(eqn.outputs)


@final
class Risks(Analysis[int]):
    """Risks of derivatives along operands, and of products of derivatives before values.

    `before` has the risks before inputs, where there is one.
    """

    enters = False

    def __init__(
        self,
        graph: Graph,
        active: AbstractSet[Value],
        given: Mapping[Value, Range],
        conditions: Conditions,
        before: Mapping[Value, int] = MappingProxyType({}),
    ) -> None:
        self.active = active
        self.ranges = ranges_of(graph, given, conditions.array)
        self._within: dict[Equation, int] = {}
        numbers = {v: True for v in graph.inputs if self.ranges[v].is_number}
        self.fixed = {*_Fixed().run(graph, numbers).facts}
        self.before: dict[Value, int] = {}
        self.run(graph, {**dict.fromkeys(active, NEVER), **before})

    def scope(self, flow: Flow[int], eqn: Equation | None, outer: Flow[int] | None) -> None:
        self.before = flow.facts

    def update(self, value: Value, old: int, new: int) -> int:
        return new

    def transfer(self, eqn: Equation, given: Facts[int], flow: Flow[int]) -> Facts[int]:
        """Return the risk before the results; the bodies of an equation are one factor."""
        if self.active.isdisjoint(eqn.outputs) or self.fixed.issuperset(eqn.inputs):
            return [None] * len(eqn.outputs)
        risks = [
            max(risk or NEVER, self.operand_risk(eqn, i))
            for i, (v, risk) in enumerate(zip(eqn.inputs, given, strict=True))
            if v in self.active
        ]
        return [max(risks, default=NEVER)] * len(eqn.outputs)

    def operand_risk(self, eqn: Equation, position: int) -> int:
        """Return the risk of the derivative of `eqn` along the operand at `position`."""
        assert isinstance(eqn.op, Primitive)
        if is_riskless(eqn.op):
            return NEVER
        if eqn.op.fact(REGIONS) is not None:
            return self._body_risk(eqn)
        if not slope_stays_finite(eqn, position, self.ranges):
            return ALWAYS
        factors = [eqn.inputs[i] for i in factors_of_slope(eqn.op, position, len(eqn.inputs))]
        if any(self.before.get(v) == ALWAYS for v in factors):
            return ALWAYS
        if multiplies_sums(eqn.op):
            return NEVER
        varying = any(v.type.is_inexact and v not in self.fixed for v in factors)
        return AT_NAN if varying else NEVER

    def _body_risk(self, eqn: Equation) -> int:
        """Return the largest risk of a path through the bodies of `eqn`."""
        if eqn not in self._within:
            regions = Regions.from_equation(eqn)
            inputs = eqn.inputs[regions.lead :]
            present = active_inputs(regions, [i for i, v in enumerate(inputs) if v in self.active])
            known = ranges_within(eqn, [self.ranges[v] for v in eqn.inputs])
            self._within[eqn] = max(
                [_risk_through(body, tuple(present), tuple(known)) for body in regions.bodies],
                default=NEVER,
            )
        return self._within[eqn]


def _risk_through(body: Graph, present: tuple[int, ...], known: tuple[Range, ...]) -> int:
    """Return the largest risk of a path from the inputs `present`, for inputs in the ranges."""
    key = (_risk_through, present, known)
    found: int | None = body.noted(key)
    if found is None:
        active = dependent_values(body, [body.inputs[i] for i in present])
        given = dict(zip(body.inputs, known, strict=True))
        inner = Risks(body, active, given, Conditions(body))
        found = max([inner.before.get(v, NEVER) for v in body.outputs], default=NEVER)
        body.note(key, found)
    return found
