"""Uses of values with their guards, joined to guards of the values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from primgraph.base.records import dataclass
from primgraph.ir.graph import Equation, Value
from primgraph.ir.index_maps import IndexMap
from primgraph.primitives.constants import constant_op
from primgraph.transforms.dataflow.masks.box_conditions import any_of
from primgraph.transforms.dataflow.masks.conditions import LARGEST, Conditions
from primgraph.transforms.dataflow.masks.guard import Guard, Guards, common, sides


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a value: its guards, or the equation and result that read a part of it."""

    guards: Guards = ()
    part: tuple[Equation, int] | None = None


def matters(conditions: Conditions, guard: Guard) -> Value:
    """Return the condition that holds where the guarded value matters."""
    return guard.condition if guard.side else conditions.negate_condition(guard.condition)


def join_uses(conditions: Conditions, value: Value, uses: Sequence[Use]) -> Guards:
    """Return the guards that hold on all uses; else one guard that some use matters.

    A guard that is risky for one use is risky for the value.
    """
    risky = {(g.condition, g.side) for u in uses for g in u.guards if g.risky}
    found = _combine_guards(conditions, value, uses)
    return tuple(replace(g, risky=(g.condition, g.side) in risky) for g in found)


def _combine_guards(conditions: Conditions, value: Value, uses: Sequence[Use]) -> Guards:
    if not all(u.guards or u.part for u in uses):
        return ()
    parts = [u.part for u in uses if u.part is not None]
    guards = [u.guards for u in uses if u.guards]
    guards = [g for g in guards if _may_matter(g)] or guards[:1]
    if not guards:
        return _guard_of_parts(conditions, value, parts)
    if not parts:
        shared = common(guards)
        if shared:
            return (*shared, *_either_of_rest(conditions, shared, guards))
    elif not (read := _guard_of_parts(conditions, value, parts)):
        return ()
    else:
        # Elements outside all parts matter to no part: strictness is decided by the other
        # guards.
        guards.append(tuple(replace(g, strict=True) for g in read))
    return _either(conditions, guards)


def _either_of_rest(conditions: Conditions, shared: Guards, uses: Sequence[Guards]) -> Guards:
    """Return the disjunction of the guards in which uses differ, beside `shared` ones."""
    held = set(sides(shared))
    rest = [tuple(g for g in u if (g.condition, g.side) not in held) for u in uses]
    return _either(conditions, rest) if all(rest) else ()


def _either(conditions: Conditions, uses: Sequence[Guards]) -> Guards:
    """Return one guard in place of the guards of several uses: at least one of them matters.

    Each use also keeps its own risky guards.
    """
    uses = _merge_complementary_uses(uses)
    if not all(uses):
        return ()
    both = conditions.both
    each = [reduce(both, [matters(conditions, g) for g in guards]) for guards in uses]
    found = any_of(conditions, each)
    strict = all(any(g.strict for g in guards) for guards in uses)
    return () if conditions.always(found) else (Guard(found, True, strict),)


def _guard_of_parts(
    conditions: Conditions, value: Value, parts: Sequence[tuple[Equation, int]]
) -> Guards:
    """Return the guard of the elements that some part reads; empty if all are read."""
    if len(parts) > 1 and not value.type.is_larger(LARGEST):
        read = np.zeros(value.shape, bool)
        for eqn, place in parts:
            _mark(read, eqn, place)
        op, params = constant_op(read)
        condition = conditions.record(op, **params)
    else:
        # A constant of a larger size would be stored in the program.
        found = [
            conditions.operand_condition(eqn, 0, place, conditions.everywhere(eqn.outputs[place]))
            for eqn, place in parts
        ]
        condition = found[0] if len(found) == 1 else any_of(conditions, found)
    return () if conditions.always(condition) else (Guard(condition, True),)


def _mark(read: np.ndarray[Any, Any], eqn: Equation, place: int) -> None:
    """Set the elements of the operand that `eqn` reads for its result `place` to True."""
    found = eqn.dependence(place, 0)
    assert isinstance(found, IndexMap)
    _, sources = found.pairs(eqn.outputs[place].shape, eqn.inputs[0].shape)
    read.reshape(-1)[sources] = True


def _may_matter(guards: Guards) -> bool:
    """Return whether `guards` do not require both sides of one condition."""
    sides = {(g.condition, g.side) for g in guards}
    return len({condition for condition, _ in sides}) == len(sides)


def _merge_complementary_uses(uses: Sequence[Guards]) -> list[Guards]:
    """Merge uses that differ in the side of the last condition only, by dropping that condition."""
    found: dict[tuple[tuple[Value, bool], ...], Guards] = {}
    for guards in uses:
        while guards:
            *outer, (condition, side) = sides(guards)
            twin = found.pop((*outer, (condition, not side)), None)
            if twin is None:
                break
            guards = _alike(guards[:-1], twin)
        key = sides(guards)
        found[key] = _alike(guards, found.get(key, guards))
    return list(found.values())


def _alike(one: Guards, other: Guards) -> Guards:
    """Merge the guards of two uses that have the same conditions."""
    return tuple(
        replace(g, strict=g.strict and h.strict, risky=g.risky or h.risky)
        for g, h in zip(one, other, strict=False)
    )
