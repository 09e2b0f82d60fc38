"""Conditions that hold within bodies, as conditions around the branch or the loop."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import final

from primgraph.ir.builder import Builder
from primgraph.ir.dims import is_open
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Op, Primitive
from primgraph.ir.types import BOOL
from primgraph.primitives.control import scan
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.logic import logical_and, logical_or
from primgraph.primitives.shapes import broadcast
from primgraph.transforms.dataflow.locality import is_elementwise
from primgraph.transforms.dataflow.masks.conditions import BACK, Conditions, any_along
from primgraph.transforms.dataflow.masks.guard import Guard
from primgraph.transforms.dataflow.masks.repeated_conditions import spread
from primgraph.transforms.dataflow.region_interface import Entry, Frame, Marked

# What computes conditions within a body does so around it again, if it is no more equations than
# these, all of which work on elements or move them.
_FEW = 256
_LONG: frozenset[Op] = frozenset({matmul})
# How deep it is looked for a part that can be computed.
_DEEP = 8


@final
class Passage:
    """The way out of `body`, one of the bodies of `eqn`, for conditions of `inner` to `outer`."""

    def __init__(
        self, eqn: Equation, marked: Marked, body: Graph, inner: Conditions, outer: Conditions
    ) -> None:
        self.eqn, self.frame, self.entry = eqn, marked.frame, marked.entry
        self.inner, self.outer = inner, outer
        # The body has conditions among its inputs, which its operands do not have.
        own = [v for v in body.inputs if self.entry.source(v) is None]
        self.places = {v: i for i, v in enumerate(own)}
        self.operands = {v: eqn.inputs[i + self.frame.lead] for i, v in enumerate(own)}
        self.fixed = set(own[: self.frame.consts])

    def to_operand(self, i: int, guard: Guard) -> Guard | None:
        """The guard of the operand that the bodies have at `i`; None if there is none.

        What all trips take matters if it does in one of them.
        """
        found = (self.around if guard.side else self._out)(guard.condition)
        if found is None:
            return None
        value, row = found
        if self.frame.is_row(i):
            operand = self.eqn.inputs[i + self.frame.lead]
            return replace(guard, condition=value if row else self._spread(value, operand))
        if not row:
            return replace(guard, condition=value)
        if i >= self.frame.consts:
            return None
        matters = value if guard.side else self.outer.negated(value)
        return replace(guard, condition=any_along(self.outer, matters, (0,)), side=True)

    def to_result(self, k: int, condition: Value) -> Value | None:
        """The condition on the result that the bodies have at `k`; None if there is none."""
        found = self.around(condition)
        if found is None:
            return None
        value, row = found
        if not self.frame.is_loop or self.frame.is_carried(k):
            return None if row else value
        return value if row else self._spread(value, self.eqn.outputs[self.frame.result(k)])

    def stack(self, k: int) -> Value | None:
        """The stack that rows at `k` make; None if it is not seen how."""
        if self.frame.is_carried(k):
            return None
        found = self._out(self.eqn.bodies[0].outputs[k])
        return None if found is None else spread(self.outer, found[0], self.eqn.outputs[k].shape)

    def around(self, condition: Value, depth: int = _DEEP) -> tuple[Value, bool] | None:
        """What `condition` is outside, or what holds there wherever it does; and whether that is a
        stack of which it is a row."""
        found = self._out(condition)
        eqn = self.inner.definition(condition)
        if found is not None or eqn is None or not depth:
            return found
        if eqn.op not in (logical_and, logical_or):
            return None
        parts = [self.around(v, depth - 1) for v in eqn.inputs]
        present = [part for part in parts if part is not None]
        if eqn.op is logical_and:
            return present[0] if present else None
        if len(present) < len(parts) or present[0][1] != present[1][1]:
            return None
        return self.outer.either(*[value for value, _ in present]), present[0][1]

    def _spread(self, condition: Value, like: Value) -> Value:
        """A condition on rows as one on the stack `like`, of which all rows are alike.

        Of a stack that grows it is taken as what it is on rows, and not computed.
        """
        return self.outer.record(broadcast, condition, shape=like.shape, new_axes=(0,))

    def _out(self, condition: Value) -> tuple[Value, bool] | None:
        """What `condition` is outside, and whether it is a stack of which this is a row."""
        known = self._leaf(condition)
        if known is not None:
            return known
        order = self._computing(condition)
        if not order:
            return None
        made = {e.output for e in order}
        taken = dict.fromkeys(v for e in order for v in e.inputs if v not in made)
        leaves = {v: self._leaf(v) for v in taken}
        present = {v: leaf for v, leaf in leaves.items() if leaf is not None}
        if len(present) < len(leaves):
            return None
        moved = {v: outer for v, (outer, _) in present.items()}
        rows = [v for v, (_, row) in present.items() if row]
        if rows:
            return self._in_all_rows(order, moved, rows, condition), True
        for eqn in order:
            moved[eqn.output] = self._recorded(eqn, moved)
        return moved[condition], False

    def _in_all_rows(
        self,
        order: Sequence[Equation],
        moved: Mapping[Value, Value],
        rows: Collection[Value],
        condition: Value,
    ) -> Value:
        """What the equations in `order` make of all rows of stacks at once."""
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
            around[eqn.output] = self._recorded(eqn, around)
        return around[inner[condition]]

    def _recorded(self, eqn: Equation, moved: Mapping[Value, Value]) -> Value:
        return self.outer.record(eqn.op, *[moved[v] for v in eqn.inputs], **eqn.kwargs)

    def _leaf(self, value: Value) -> tuple[Value, bool] | None:
        """What an input of the body is outside, and whether it is a row of that; None for others,
        and for what goes from trip to trip."""
        known = self.entry.source(value)
        if known is None and value in self.operands:
            row = self.frame.is_row(self.places[value]) and self.frame.is_loop
            if row or value in self.fixed:
                known = self.operands[value], row
        return None if known is None or (known[1] and is_open(known[0].shape)) else known

    def _computing(self, condition: Value) -> list[Equation] | None:
        """The equations that compute `condition` within, in order; None if they are too many."""
        found: dict[Equation, None] = {}
        waiting = [condition]
        while waiting:
            eqn = self.inner.definition(waiting[-1])
            if eqn is None or eqn in found:
                waiting.pop()
                continue
            if eqn.op.multiple or eqn.op in _LONG or not self._is_short(eqn):
                return None
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
        return not eqn.inputs or eqn.op in BACK or is_elementwise(eqn)


def look_into_loops(conditions: Conditions, graph: Graph) -> None:
    """Let what `conditions` knows of `graph` be told of stacks of conditions, too, that its loops
    give: how these are made of what is before the loop, where no trip needs the one before."""
    for eqn in graph.body:
        if eqn.op is not scan or eqn.kwargs["counted"]:
            continue
        (body,), frame = eqn.bodies, Frame.of(eqn)
        places = [k for k, v in enumerate(body.outputs) if v.dtype == BOOL]
        if not any(not frame.is_carried(k) for k in places):
            continue
        inner = Conditions(body)
        look_into_loops(inner, body)
        way = Passage(eqn, Marked(frame, Entry(), eqn.bodies), body, inner, conditions)
        for k in places:
            value, found = eqn.outputs[k], way.stack(k)
            made = None if found is None else conditions.definition(found)
            if made is not None and made.output.type == value.type:
                known = Equation(made.op, made.inputs, made.params, (value,), made.source)
                conditions.definitions[value] = known
