"""Moving conditions out of the bodies of branches and loops."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import final

from primgraph.ir.builder import Builder
from primgraph.ir.dims import is_open
from primgraph.ir.facts.choices import LOGIC, Logic
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Primitive
from primgraph.ir.types import BOOL
from primgraph.primitives.control import REGIONS, Regions
from primgraph.primitives.shapes import broadcast
from primgraph.transforms.dataflow.locality import is_elementwise, multiplies_sums
from primgraph.transforms.dataflow.masks.conditions import Conditions, any_along, moves_back
from primgraph.transforms.dataflow.masks.guard import Guard
from primgraph.transforms.dataflow.masks.repeated_conditions import spread_over_stack
from primgraph.transforms.dataflow.region_interface import ConditionInputs, MarkedBodies

# Limit of the equations that are recomputed outside a body. All must be elementwise or move
# elements.
_FEW = 256
# Maximum depth of the search for a part that can be computed outside.
_DEEP = 8


@final
class OuterConditions:
    """Map from conditions of `inner`, in one of the bodies of `eqn`, to conditions of `outer`."""

    def __init__(
        self, eqn: Equation, marked: MarkedBodies, body: Graph, inner: Conditions, outer: Conditions
    ) -> None:
        self.eqn, self.regions, self.entry = eqn, marked.regions, marked.entry
        self.inner, self.outer = inner, outer
        # A marked body has conditions among its inputs, which are not operands of `eqn`.
        own = [v for v in body.inputs if self.entry.source(v) is None]
        self.places = {v: i for i, v in enumerate(own)}
        self.operands = {v: eqn.inputs[i + self.regions.lead] for i, v in enumerate(own)}
        self.fixed = set(own[: self.regions.consts])
        # What `_outer_condition` has found, and whether values need what is not known outside.
        self.found: dict[Value, tuple[Value, bool] | None] = {}
        self.inside: dict[Value, bool] = {}

    def to_operand(self, i: int, guard: Guard) -> Guard | None:
        """Move a guard of body input `i` to the operand; None if that is not possible.

        A loop-invariant operand matters if it matters in some iteration.
        """
        found = (self.around if guard.side else self._outer_condition)(guard.condition)
        if found is None:
            return None
        value, row = found
        if self.regions.is_row(i):
            operand = self.eqn.inputs[i + self.regions.lead]
            return replace(guard, condition=value if row else self._broadcast_rows(value, operand))
        if not row:
            return replace(guard, condition=value)
        if i >= self.regions.consts:
            return None
        matters = value if guard.side else self.outer.negate_condition(value)
        return replace(guard, condition=any_along(self.outer, matters, (0,)), side=True)

    def to_result(self, k: int, condition: Value) -> Value | None:
        """Move the condition on body result `k` to the equation's result; None if not possible."""
        found = self.around(condition)
        if found is None:
            return None
        value, row = found
        if not self.regions.is_loop or self.regions.is_carried(k):
            return None if row else value
        return (
            value if row else self._broadcast_rows(value, self.eqn.outputs[self.regions.result(k)])
        )

    def stack(self, k: int) -> Value | None:
        """Return the stacked output `k`, computed outside the loop; None if not possible."""
        if self.regions.is_carried(k):
            return None
        found = self._outer_condition(self.eqn.bodies[0].outputs[k])
        return (
            None
            if found is None
            else spread_over_stack(self.outer, found[0], self.eqn.outputs[k].shape)
        )

    def around(self, condition: Value, depth: int = _DEEP) -> tuple[Value, bool] | None:
        """Return the condition outside or a weaker one, and whether it is a stack; or None."""
        found = self._outer_condition(condition)
        eqn = self.inner.definition(condition)
        if found is not None or eqn is None or not depth:
            return found
        logic = eqn.op.fact(LOGIC)
        if logic not in (Logic.AND, Logic.OR):
            return None
        parts = [self.around(v, depth - 1) for v in eqn.inputs]
        present = [part for part in parts if part is not None]
        if logic is Logic.AND:
            return present[0] if present else None
        if len(present) < len(parts) or present[0][1] != present[1][1]:
            return None
        return self.outer.either(*[value for value, _ in present]), present[0][1]

    def _broadcast_rows(self, condition: Value, like: Value) -> Value:
        """Broadcast a condition on rows over the stack `like`.

        For a growing stack the broadcast is only recorded; it is never computed.
        """
        return self.outer.record(broadcast, condition, shape=like.shape, new_axes=(0,))

    def _outer_condition(self, condition: Value) -> tuple[Value, bool] | None:
        """Return the condition outside, and whether it is a stack of the condition's values."""
        if condition not in self.found:
            self.found[condition] = self._compute_outside(condition)
        return self.found[condition]

    def _compute_outside(self, condition: Value) -> tuple[Value, bool] | None:
        known = self._leaf(condition)
        if known is not None or self._stays_inside(condition):
            return known
        order = self._defining_equations(condition)
        if not order:
            return None
        made = {e.output for e in order}
        taken = dict.fromkeys(v for e in order for v in e.inputs if v not in made)
        leaves = {v: self._leaf(v) for v in taken}
        present = {v: leaf for v, leaf in leaves.items() if leaf is not None}
        moved = {v: outer for v, (outer, _) in present.items()}
        rows = [v for v, (_, row) in present.items() if row]
        if rows:
            return self._in_all_rows(order, moved, rows, condition), True
        for eqn in order:
            moved[eqn.output] = self._record_outside(eqn, moved)
        return moved[condition], False

    def _in_all_rows(
        self,
        order: Sequence[Equation],
        moved: Mapping[Value, Value],
        rows: Collection[Value],
        condition: Value,
    ) -> Value:
        """Batch the equations in `order` over all rows of stacks, as `vmap` does."""
        builder, having, around = Builder(), set(rows), dict(moved)
        inner = {v: builder.input(outer.type) for v, outer in moved.items()}
        around = {inner[v]: outer for v, outer in moved.items()}
        with builder:
            for eqn in order:
                operands = [inner[v] for v in eqn.inputs]
                if having.isdisjoint(eqn.inputs):
                    (inner[eqn.output],) = builder.copy(eqn, tuple(operands))
                    continue
                assert isinstance(eqn.op, Primitive)
                flags = tuple([v in having for v in eqn.inputs])
                inner[eqn.output] = eqn.op.batch_rule(flags, *operands, **eqn.kwargs)
                having.add(eqn.output)
        for eqn in builder.body:
            around[eqn.output] = self._record_outside(eqn, around)
        return around[inner[condition]]

    def _record_outside(self, eqn: Equation, moved: Mapping[Value, Value]) -> Value:
        return self.outer.record(eqn.op, *[moved[v] for v in eqn.inputs], **eqn.kwargs)

    def _leaf(self, value: Value) -> tuple[Value, bool] | None:
        """Return the outer value of a body input, and whether the input is a row of it.

        Return None for loop carries, and for values that are not inputs.
        """
        known = self.entry.source(value)
        if known is None and value in self.operands:
            row = self.regions.is_row(self.places[value]) and self.regions.is_loop
            if row or value in self.fixed:
                known = self.operands[value], row
        return None if known is None or (known[1] and is_open(known[0].shape)) else known

    def _stays_inside(self, value: Value) -> bool:
        """Return whether `value` depends on a carry, or on an equation that is not moved."""
        inside, waiting = self.inside, [value]
        while waiting:
            found = waiting[-1]
            eqn = self.inner.definition(found)
            if found in inside:
                waiting.pop()
            elif eqn is None:
                inside[found] = self._leaf(found) is None
            elif (
                eqn.op.multiple
                or not self._is_short(eqn)
                or any(inside.get(v, False) for v in eqn.inputs)
            ):
                inside[found] = True
            else:
                missing = [v for v in eqn.inputs if v not in inside]
                waiting += missing
                if not missing:
                    inside[found] = False
        return inside[value]

    def _defining_equations(self, condition: Value) -> list[Equation] | None:
        """Return the equations that compute `condition` in the body, in order; None if too many."""
        found: dict[Equation, None] = {}
        waiting = [condition]
        while waiting:
            eqn = self.inner.definition(waiting[-1])
            if eqn is None or eqn in found:
                waiting.pop()
                continue
            missing = [
                v for v in eqn.inputs
                if (made := self.inner.definition(v)) is not None and made not in found
            ]  # fmt: skip
            if missing:
                waiting += missing
                if len(waiting) > 64 * _FEW:
                    return None
                continue
            found[eqn] = None
            if len(found) > _FEW:
                return None
        return list(found)

    @staticmethod
    def _is_short(eqn: Equation) -> bool:
        if multiplies_sums(eqn.op):
            return False
        return not eqn.inputs or moves_back(eqn.op) or is_elementwise(eqn)


def look_into_loops(conditions: Conditions, graph: Graph) -> None:
    """Add definitions of boolean stacks that scans of `graph` return, so that they can be analysed.

    A stack is defined where its rows do not depend on earlier iterations.
    """
    for eqn in graph.body:
        if eqn.op.fact(REGIONS) is None or (regions := Regions.from_equation(eqn)).steps is None:
            continue
        (body,) = regions.bodies
        places = [k for k, v in enumerate(body.outputs) if v.dtype == BOOL]
        if not any(not regions.is_carried(k) for k in places):
            continue
        inner = Conditions(body)
        look_into_loops(inner, body)
        way = OuterConditions(
            eqn, MarkedBodies(regions, ConditionInputs(), eqn.bodies), body, inner, conditions
        )
        for k in places:
            value, found = eqn.outputs[k], way.stack(k)
            made = None if found is None else conditions.definition(found)
            if made is not None and made.output.type == value.type:
                known = Equation(made.op, made.inputs, made.params, (value,), made.source)
                conditions.definitions[value] = known
