"""Where what a loop carries on matters behind a trip: at the end of the loop, or to later trips.

What is carried on matters to rows of stacks as well as to what the loop ends with. Where rows
differ, so do trips: behind each of them it matters where the end or a later row asks for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import final

from primgraph.ir.graph import Equation, Value
from primgraph.ir.types import BOOL, INT64, Shape
from primgraph.primitives.constants import full
from primgraph.primitives.elementwise import cast
from primgraph.primitives.logic import logical_and, logical_not, logical_or, not_equal
from primgraph.primitives.reductions import cumsum
from primgraph.primitives.shapes import broadcast
from primgraph.transforms.analysis.conditions import Conditions, any_along

# How far it is looked into what conditions are made of.
_DEEP = 8


@final
@dataclass(frozen=True, slots=True)
class Ahead:
    """Where it matters what is carried on: `behind` each trip, maybe as a stack, and `first`,
    before all trips.

    Before each trip that is where it matters behind it, or where all conditions in one of
    `reasons` hold, which are stacks.
    """

    behind: Value
    first: Value
    reasons: list[list[Value]]


def ahead(
    conditions: Conditions,
    ends: Sequence[Sequence[Value]],
    rows: Sequence[Sequence[Value]],
    stack: Shape,
    *,
    reverse: bool,
) -> Ahead | None:
    """Where it matters what is carried on: at the end where all conditions in one of `ends` hold,
    in each trip where all of those in one of `rows` do, which may be stacks, of the shape `stack`.

    With `reverse` the last trip comes first. None if it matters everywhere.
    """
    shape = stack[1:]
    end = _any_of(conditions, ends, shape)
    if all(c.shape == shape for row in rows for c in row):
        behind = first = conditions.either(end, _any_of(conditions, rows, shape))
    else:
        row = _any_of(conditions, [[spread(conditions, c, stack) for c in r] for r in rows], stack)
        later = _later(conditions, row, reverse=reverse)
        behind = of_row(conditions, conditions.either(later, spread(conditions, end, stack)))
        first = conditions.either(end, any_along(conditions, row, (0,)))
    if conditions.always(behind):
        return None
    return Ahead(behind, first, [[spread(conditions, c, stack) for c in row] for row in rows])


def _any_of(conditions: Conditions, found: Iterable[Sequence[Value]], shape: Shape) -> Value:
    """Where all conditions in one of `found` hold."""
    nowhere = conditions.record(full, value=False, shape=shape, dtype=BOOL)
    return reduce(conditions.either, [reduce(conditions.both, row) for row in found], nowhere)


def _later(conditions: Conditions, row: Value, *, reverse: bool) -> Value:
    """Where `row` holds in some later row; `reverse` if these stand in front."""
    eqn = conditions.definition(row)
    if eqn is not None and eqn.op is broadcast and 0 not in eqn.kwargs["new_axes"]:
        found = _later(conditions, eqn.inputs[0], reverse=reverse)
        return conditions.record(broadcast, found, **eqn.kwargs)
    here = conditions.record(cast, row, dtype=INT64)
    ahead = conditions.record(cumsum, here, axis=0, reverse=not reverse)
    return conditions.record(not_equal, ahead, here)


# Conditions on stacks, and on their rows.


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


def spread(conditions: Conditions, condition: Value, stack: Shape) -> Value:
    """A condition on each row as one on the stack; a stack stays what it is."""
    lead = len(stack) - len(condition.shape)
    return _repeated(conditions, condition, stack, tuple(range(lead)))


# What conditions tell of each other.


def implies(
    conditions: Conditions, held: Sequence[Value], wanted: Sequence[Sequence[Value]]
) -> bool:
    """Whether all of `held` are seen to hold only where all conditions in one of `wanted` do."""
    if _Proof(conditions, wanted).succeeds(held):
        return True
    repeated = [e for e in map(conditions.definition, held) if e is not None and e.op is broadcast]
    return any(
        implies(conditions, [eqn.inputs[0]], _less_repeated(conditions, wanted, eqn))
        for eqn in repeated
    )


@final
class _Proof:
    """Looks whether one of `wanted` holds, however what is given holds; not beyond some steps."""

    def __init__(self, conditions: Conditions, wanted: Sequence[Sequence[Value]]) -> None:
        self.conditions = conditions
        self.wanted = wanted
        self.steps = 16 * _DEEP

    def succeeds(self, given: Iterable[Value]) -> bool:
        """Whether that is seen where all that is `given` holds."""
        held = self._taken_apart(given)
        if any(map(self.conditions.never, held)):
            return True
        if any(all(self._holds(c, held, _DEEP) for c in listed) for listed in self.wanted):
            return True
        for value in held:
            eqn = self.conditions.definition(value)
            if eqn is None or eqn.op is not logical_or or not held.keys().isdisjoint(eqn.inputs):
                continue
            self.steps -= 1
            rest = [v for v in held if v is not value]
            return self.steps > 0 and all(self.succeeds([*rest, part]) for part in eqn.inputs)
        return False

    def _taken_apart(self, given: Iterable[Value]) -> dict[Value, None]:
        """All that holds where what is `given` does."""
        held = dict.fromkeys(given)
        waiting = list(held)
        while waiting:
            eqn = self.conditions.definition(waiting.pop())
            if eqn is not None and eqn.op is logical_and:
                new = [v for v in eqn.inputs if v not in held]
                held.update(dict.fromkeys(new))
                waiting += new
        return held

    def _holds(self, condition: Value, held: Collection[Value], depth: int) -> bool:
        if condition in held:
            return True
        eqn = self.conditions.definition(condition)
        if eqn is None or not depth or eqn.op not in (logical_and, logical_or):
            return False
        every = all if eqn.op is logical_and else any
        return every(self._holds(c, held, depth - 1) for c in eqn.inputs)


def _less_repeated(
    conditions: Conditions, wanted: Sequence[Sequence[Value]], like: Equation
) -> list[list[Value]]:
    """What those of `wanted` are that are repeated as the result of `like`, before that."""
    found = []
    for listed in wanted:
        made = [conditions.definition(c) for c in listed]
        same = [e for e in made if e is not None and (e.op, e.params) == (like.op, like.params)]
        if len(same) == len(listed):
            found.append([e.inputs[0] for e in same])
    return found
