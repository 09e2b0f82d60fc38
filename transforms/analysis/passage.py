"""Conditions that hold within bodies, as conditions around the branch or the loop."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import final

from primgraph.ir.builder import Builder
from primgraph.ir.dims import is_open
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Op, Primitive
from primgraph.ir.types import Shape
from primgraph.primitives.constants import full
from primgraph.primitives.linalg import matmul
from primgraph.primitives.logic import logical_and, logical_not, logical_or
from primgraph.primitives.shapes import broadcast
from primgraph.transforms.analysis.conditions import BACK, Conditions, any_along
from primgraph.transforms.analysis.frames import Marked
from primgraph.transforms.analysis.guard import Guard
from primgraph.transforms.analysis.locality import is_elementwise

# How far it is looked into what conditions are made of.
_DEEP = 8

# What computes conditions within a body does so around it again, if it is no more equations than
# these, all of which work on elements or move them.
_FEW = 64
_LONG: frozenset[Op] = frozenset({matmul})


# Conditions on stacks, and on rows.


def of_row(conditions: Conditions, condition: Value) -> Value:
    """The condition on each row of a stack, where that is the same one; else `condition`."""
    return _of_row(conditions, condition, _DEEP) or condition


def _of_row(conditions: Conditions, condition: Value, depth: int) -> Value | None:
    eqn = conditions.definition(condition)
    if eqn is None or depth == 0:
        return None
    if eqn.op is broadcast and 0 in eqn.kwargs["new_axes"]:
        axes = tuple([i - 1 for i in eqn.kwargs["new_axes"] if i])
        return _repeated(conditions, eqn.inputs[0], condition.shape[1:], axes)
    if eqn.op is full:
        return conditions.record(full, **{**eqn.kwargs, "shape": condition.shape[1:]})
    if eqn.op not in (logical_and, logical_or, logical_not):
        return None
    rows = [_of_row(conditions, v, depth - 1) for v in eqn.inputs]
    present = [v for v in rows if v is not None]
    return conditions.record(eqn.op, *present) if len(present) == len(rows) else None


def _repeated(
    conditions: Conditions, condition: Value, shape: Shape, new_axes: tuple[int, ...]
) -> Value:
    if not new_axes:
        return condition
    return conditions.record(broadcast, condition, shape=shape, new_axes=new_axes)


def spread(conditions: Conditions, condition: Value, shape: Shape) -> Value:
    """A condition on the last axes as one on all of `shape`."""
    lead = len(shape) - len(condition.shape)
    return _repeated(conditions, condition, shape, tuple(range(lead)))


def core(conditions: Conditions, condition: Value) -> Value:
    """What `condition` is along all leading axes along which it is the same everywhere."""
    while condition.shape and (row := _of_row(conditions, condition, _DEEP)) is not None:
        condition = row
    return condition


def reduced(conditions: Conditions, condition: Value, shape: Shape) -> Value:
    """Where some element matters along the axes before those of `shape`."""
    while len(condition.shape) > len(shape):
        row = _of_row(conditions, condition, _DEEP)
        if row is None:
            lead = len(condition.shape) - len(shape)
            return any_along(conditions, condition, tuple(range(lead)))
        condition = row
    return condition


def fitted(conditions: Conditions, condition: Value, shape: Shape) -> Value:
    """A condition in `shape`: repeated along leading axes, or where some element along them is."""
    made = spread if len(condition.shape) <= len(shape) else reduced
    return made(conditions, condition, shape)


def implies(conditions: Conditions, condition: Value, wanted: Sequence[frozenset[Value]]) -> bool:
    """Whether `condition` is seen to hold only where all conditions in one of `wanted` do."""
    waiting = [condition]
    for _ in range(_DEEP * _DEEP):
        if not waiting:
            return True
        value = waiting.pop()
        if conditions.never(value) or any(w <= _parts(conditions, value) for w in wanted):
            continue
        eqn = conditions.definition(value)
        if eqn is None or eqn.op is not logical_or:
            return False
        waiting += eqn.inputs
    return False


def _parts(conditions: Conditions, condition: Value) -> set[Value]:
    """Conditions that hold wherever `condition` does."""
    found, waiting = {condition}, [condition]
    while waiting and len(found) < _DEEP * _DEEP:
        eqn = conditions.definition(waiting.pop())
        if eqn is not None and eqn.op is logical_and:
            found.update(eqn.inputs)
            waiting += eqn.inputs
    return found


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
        found = self._out(guard.condition)
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
        found = self._out(condition)
        if found is None:
            return None
        value, row = found
        if not self.frame.is_loop or self.frame.is_carried(k):
            return None if row else value
        return value if row else self._spread(value, self.eqn.outputs[self.frame.result(k)])

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
                if len(waiting) > _FEW * _FEW:
                    return None
                continue
            found[eqn] = None
            if len(found) > _FEW:
                return None
        return list(found)

    @staticmethod
    def _is_short(eqn: Equation) -> bool:
        return not eqn.inputs or eqn.op in BACK or is_elementwise(eqn)
