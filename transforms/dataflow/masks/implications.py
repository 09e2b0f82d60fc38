"""Implications between conditions, derived from their defining equations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import final

from primgraph.ir.facts.choices import LOGIC, Logic
from primgraph.ir.graph import Equation, Value
from primgraph.transforms.dataflow.locality import repeated_axes
from primgraph.transforms.dataflow.masks.repeated_conditions import (
    DEEP,
    Record,
    broadcast_condition,
)


def absorb_condition(conditions: Record, logic: Logic, x: Value, y: Value) -> Value | None:
    """Return `logic` of `x` and `y` if it is one of them by absorption, else None."""
    for one, other in ((x, y), (y, x)):
        whole, part = _parts(conditions, logic, one), _parts(conditions, logic, other)
        if part <= whole or not whole.isdisjoint(_parts(conditions, logic.dual, other)):
            return one
    return None


def _parts(conditions: Record, logic: Logic, condition: Value) -> set[Value]:
    """Return the operands that `logic` joins to form `condition`, up to a bounded depth."""
    found: set[Value] = set()
    waiting = [condition]
    while waiting:
        value = waiting.pop()
        eqn = conditions.definition(value)
        near = len(found) + len(waiting) < 2 * DEEP
        if eqn is not None and near and eqn.op.fact(LOGIC) is logic:
            waiting += eqn.inputs
        else:
            found.add(value)
    return found


def implies(conditions: Record, held: Sequence[Value], wanted: Sequence[Sequence[Value]]) -> bool:
    """Return whether the conjunction of `held` is proved to imply one in `wanted`."""
    return _Proof(conditions, wanted, 16 * DEEP).succeeds(held)


@final
class _Proof:
    """Proof search, in a bounded number of steps, that given conditions imply one of `wanted`."""

    def __init__(self, conditions: Record, wanted: Sequence[Sequence[Value]], steps: int) -> None:
        self.conditions = conditions
        self.wanted = wanted
        self.steps = steps

    def succeeds(self, given: Iterable[Value]) -> bool:
        """Return whether the proof succeeds where all conditions in `given` hold."""
        held = self._taken_apart(given)
        if any(map(self._is_nowhere, held)):
            return True
        if any(all(self._holds(c, held, DEEP) for c in listed) for listed in self.wanted):
            return True
        for value in held:
            ways = self._made_by(Logic.OR, value)
            if not ways or not held.keys().isdisjoint(ways):
                continue
            self.steps -= 1
            rest = [v for v in held if v is not value]
            return self.steps > 0 and all(self.succeeds([*rest, way]) for way in ways)
        return False

    def _taken_apart(self, given: Iterable[Value]) -> dict[Value, None]:
        """Return the conditions in `given` and their conjuncts."""
        held = dict.fromkeys(given)
        waiting = list(held)
        while waiting:
            new = [v for v in self._made_by(Logic.AND, waiting.pop()) if v not in held]
            held.update(dict.fromkeys(new))
            waiting += new
        return held

    def _made_by(self, logic: Logic, condition: Value) -> list[Value]:
        """Return the operands of `logic` that form `condition`, also under a broadcast."""
        eqn = self.conditions.definition(condition)
        if eqn is None:
            return []
        if not (axes := repeated_axes(eqn)):
            return [*eqn.inputs] if eqn.op.fact(LOGIC) is logic else []
        inner = self._made_by(logic, eqn.inputs[0])
        return [broadcast_condition(self.conditions, v, condition.shape, axes) for v in inner]

    def _is_nowhere(self, condition: Value) -> bool:
        eqn = self.conditions.definition(condition)
        number = eqn and eqn.number
        return number is not None and not number

    def _holds(self, condition: Value, held: Collection[Value], depth: int) -> bool:
        if condition in held:
            return True
        eqn = self.conditions.definition(condition)
        if eqn is None or not depth:
            return False
        if eqn.op.fact(LOGIC) is Logic.SOME:
            return self._holds_somewhere(eqn, held)
        ways, parts = self._made_by(Logic.OR, condition), self._made_by(Logic.AND, condition)
        if ways:
            return any(self._holds(c, held, depth - 1) for c in ways)
        return bool(parts) and all(self._holds(c, held, depth - 1) for c in parts)

    def _holds_somewhere(self, eqn: Equation, held: Iterable[Value]) -> bool:
        """Return whether a held reduction of the same axes implies the reduction `eqn`."""
        made = [self.conditions.definition(c) for c in held]
        more = [e for e in made if e is not None and (e.op, e.params) == (eqn.op, eqn.params)]
        self.steps -= len(more)
        return self.steps > 0 and any(
            _Proof(self.conditions, [eqn.inputs], self.steps).succeeds(e.inputs) for e in more
        )
