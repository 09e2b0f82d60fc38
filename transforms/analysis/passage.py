"""Conditions that hold within bodies, as conditions around the branch or the loop."""

from __future__ import annotations

from typing import final

from primgraph.ir.dims import is_open
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Op, Primitive
from primgraph.primitives.linalg import matmul
from primgraph.primitives.shapes import broadcast
from primgraph.transforms.analysis.conditions import Conditions, any_along
from primgraph.transforms.analysis.frames import Marked

# What conditions are computed by within a body is computed around it again, if it is no more
# equations than these, and none of what takes long.
_FEW = 16
_LONG: frozenset[Op] = frozenset({matmul})


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

    def to_operand(self, i: int, condition: Value) -> Value | None:
        """The condition on the operand that the bodies have at `i`; None if there is none."""
        found = self._out(condition)
        if found is None:
            return None
        value, row = found
        operand = self.eqn.inputs[i + self.frame.lead]
        if self.frame.is_row(i):
            return value if row else self._spread(value, operand)
        if i >= self.frame.consts:
            return None if row else value
        return any_along(self.outer, value, (0,)) if row else value

    def to_result(self, k: int, condition: Value) -> Value | None:
        """The condition on the result that the bodies have at `k`; None if there is none."""
        found = self._out(condition)
        if found is None:
            return None
        value, row = found
        if not self.frame.is_loop or self.frame.is_carried(k):
            return None if row else value
        return value if row else self._spread(value, self.eqn.outputs[self.frame.result(k)])

    def _spread(self, condition: Value, like: Value) -> Value | None:
        """A condition on rows as one on the stack `like`, of which all rows are alike."""
        if is_open(like.shape):
            return None
        return self.outer.record(broadcast, condition, shape=like.shape, new_axes=(0,))

    def _out(self, condition: Value) -> tuple[Value, bool] | None:
        """What `condition` is outside, and whether it is a stack of which this is a row."""
        known = self.entry.source(condition)
        if known is not None:
            return known
        if condition in self.operands:
            row = self.frame.is_loop and self.frame.is_row(self.places[condition])
            fixed = condition in self.fixed
            return (self.operands[condition], row) if row or fixed else None
        order = self._computing(condition)
        if not order:
            return None
        moved: dict[Value, Value] = {}
        for eqn in order:
            inputs = [moved.get(v) or self._fixed(v) for v in eqn.inputs]
            present = [v for v in inputs if v is not None]
            if len(present) < len(inputs):
                return None
            moved[eqn.output] = self.outer.record(eqn.op, *present, **eqn.kwargs)
        return moved[condition], False

    def _fixed(self, value: Value) -> Value | None:
        """What an input of the body is outside, where it is the same in every trip."""
        known = self.entry.source(value)
        if known is not None:
            return None if known[1] else known[0]
        return self.operands[value] if value in self.fixed else None

    def _computing(self, condition: Value) -> list[Equation] | None:
        """The equations that compute `condition` within, in order; None if they are too many."""
        found: dict[Equation, None] = {}
        waiting = [condition]
        while waiting:
            eqn = self.inner.definition(waiting[-1])
            if eqn is None or eqn in found:
                waiting.pop()
                continue
            if not isinstance(eqn.op, Primitive) or eqn.op.multiple or eqn.op in _LONG:
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
