"""What conditions tell of each other, as far as it is seen from what they are made of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import final

from primgraph.ir.graph import Equation, Value
from primgraph.ir.primitive import Op
from primgraph.primitives.constants import full
from primgraph.primitives.logic import logical_and, logical_or
from primgraph.primitives.reductions import reduce_max
from primgraph.primitives.shapes import broadcast
from primgraph.transforms.dataflow.masks.repeated_conditions import DEEP, Record


def absorbed(conditions: Record, op: Op, x: Value, y: Value) -> Value | None:
    """What `op` makes of `x` and `y` if that is one of them, as that is made of the other one."""
    dual = logical_or if op is logical_and else logical_and
    for one, other in ((x, y), (y, x)):
        whole, part = _parts(conditions, op, one), _parts(conditions, op, other)
        if part <= whole or not whole.isdisjoint(_parts(conditions, dual, other)):
            return one
    return None


def _parts(conditions: Record, op: Op, condition: Value) -> set[Value]:
    """What `op` joins to make `condition`, not too far back."""
    found: set[Value] = set()
    waiting = [condition]
    while waiting:
        value = waiting.pop()
        eqn = conditions.definition(value)
        if eqn is not None and eqn.op is op and len(found) + len(waiting) < 2 * DEEP:
            waiting += eqn.inputs
        else:
            found.add(value)
    return found


def implies(conditions: Record, held: Sequence[Value], wanted: Sequence[Sequence[Value]]) -> bool:
    """Whether all of `held` are seen to hold only where all conditions in one of `wanted` do."""
    return _Proof(conditions, wanted, 16 * DEEP).succeeds(held)


@final
class _Proof:
    """Looks whether one of `wanted` holds, however what is given holds; not beyond some steps."""

    def __init__(self, conditions: Record, wanted: Sequence[Sequence[Value]], steps: int) -> None:
        self.conditions = conditions
        self.wanted = wanted
        self.steps = steps

    def succeeds(self, given: Iterable[Value]) -> bool:
        """Whether that is seen where all that is `given` holds."""
        held = self._taken_apart(given)
        if any(map(self._is_nowhere, held)):
            return True
        if any(all(self._holds(c, held, DEEP) for c in listed) for listed in self.wanted):
            return True
        for value in held:
            ways = self._made_by(logical_or, value)
            if not ways or not held.keys().isdisjoint(ways):
                continue
            self.steps -= 1
            rest = [v for v in held if v is not value]
            return self.steps > 0 and all(self.succeeds([*rest, way]) for way in ways)
        return False

    def _taken_apart(self, given: Iterable[Value]) -> dict[Value, None]:
        """All that holds where what is `given` does."""
        held = dict.fromkeys(given)
        waiting = list(held)
        while waiting:
            new = [v for v in self._made_by(logical_and, waiting.pop()) if v not in held]
            held.update(dict.fromkeys(new))
            waiting += new
        return held

    def _made_by(self, op: Op, condition: Value) -> list[Value]:
        """What `op` makes `condition` of, maybe before that is repeated."""
        eqn = self.conditions.definition(condition)
        if eqn is None or eqn.op is not broadcast:
            return [*eqn.inputs] if eqn is not None and eqn.op is op else []
        inner = self._made_by(op, eqn.inputs[0])
        return [self.conditions.record(broadcast, v, **eqn.kwargs) for v in inner]

    def _is_nowhere(self, condition: Value) -> bool:
        eqn = self.conditions.definition(condition)
        return eqn is not None and eqn.op is full and not eqn.kwargs["value"]

    def _holds(self, condition: Value, held: Collection[Value], depth: int) -> bool:
        if condition in held:
            return True
        eqn = self.conditions.definition(condition)
        if eqn is None or not depth:
            return False
        if eqn.op is reduce_max:
            return self._holds_somewhere(eqn, held)
        ways, parts = self._made_by(logical_or, condition), self._made_by(logical_and, condition)
        if ways:
            return any(self._holds(c, held, depth - 1) for c in ways)
        return bool(parts) and all(self._holds(c, held, depth - 1) for c in parts)

    def _holds_somewhere(self, eqn: Equation, held: Iterable[Value]) -> bool:
        """Whether what `eqn` looks for along axes is found, as more than that is."""
        made = [self.conditions.definition(c) for c in held]
        more = [e for e in made if e is not None and (e.op, e.params) == (eqn.op, eqn.params)]
        self.steps -= len(more)
        return self.steps > 0 and any(
            _Proof(self.conditions, [eqn.inputs], self.steps).succeeds(e.inputs) for e in more
        )
