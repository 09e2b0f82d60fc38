"""Which values matter only where some `select` selects them.

A `select` chooses elements of its operands. What feeds one of them alone, through elementwise
primitives, matters only where the condition picks that side: elsewhere its value, infinite or
NaN as it may be, is thrown away. Derivatives must not let it back in, as 0 * inf would.

What moves elements, such as a broadcast, passes a guard on if the condition was moved likewise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import Params, freeze_all
from primgraph.ir.primitive import Op, Primitive
from primgraph.ir.types import BOOL
from primgraph.primitives.logic import logical_not, select
from primgraph.primitives.reductions import reduce_sum
from primgraph.primitives.shapes import broadcast, permute, reshape, reverse

# How many nested guards of one value are followed; it bounds the work on chains of `select`.
_NESTING = 4


@dataclass(frozen=True, slots=True)
class Guard:
    """A value matters only where `condition` is `side`.

    `risky` if a factor on the way to the `select` may be infinite or NaN elsewhere.
    """

    condition: Value
    side: bool
    risky: bool = False


Guards: TypeAlias = tuple[Guard, ...]

_MOVING = frozenset({broadcast, permute, reduce_sum, reshape, reverse})


class _Moves:
    """How the conditions of a graph are moved."""

    def __init__(self, graph: Graph) -> None:
        moved = [e for e in graph.body if e.op in _MOVING and e.outputs[0].dtype == BOOL]
        self.made_by = {e.outputs[0]: e for e in moved}
        self.made_from = {(e.inputs[0], e.op, e.params): e.outputs[0] for e in moved}

    def before(self, eqn: Equation, guard: Guard) -> Guard | None:
        """`guard` of the result of `eqn`, which moves elements, as a guard of its operand."""
        made = self.made_by.get(guard.condition)
        same = made is not None and (made.op, made.params) == (eqn.op, eqn.params)
        if made is not None and same and made.inputs[0].shape == eqn.inputs[0].shape:
            return replace(guard, condition=made.inputs[0])
        found = self.made_from.get((guard.condition, *_inverse(eqn)))
        return None if found is None else replace(guard, condition=found)


def _inverse(eqn: Equation) -> tuple[Op, Params]:
    """What moves the elements of a result back to where they were in the operand."""
    shape = eqn.inputs[0].shape
    if eqn.op is reduce_sum:
        return broadcast, freeze_all({"shape": shape, "new_axes": eqn.kwargs["axes"]}.items())
    if eqn.op is broadcast:
        return reduce_sum, freeze_all({"axes": eqn.kwargs["new_axes"]}.items())
    if eqn.op is reshape:
        return reshape, freeze_all({"shape": shape}.items())
    if eqn.op is permute:
        axes = eqn.kwargs["axes"]
        return permute, freeze_all({"axes": [axes.index(i) for i in range(len(axes))]}.items())
    return eqn.op, eqn.params


def guards_of(graph: Graph, active: set[Value]) -> dict[Equation, list[Guards]]:
    """For each equation that passes guards on, per operand, those that begin to hold there.

    Those are the risky guards of the operand's use that do not hold for the operand itself. Only
    uses by `active` values count: others carry no derivative.
    """
    if not any(eqn.op is select for eqn in graph.body):
        return {}
    constants = {e.outputs[0] for e in graph.body if e.op.name == "full"}
    negated = {e.outputs[0]: e.inputs[0] for e in graph.body if e.op is logical_not}
    held: dict[Value, Guards] = dict.fromkeys(graph.outputs, ())
    moves = _Moves(graph)
    passed: dict[Value, Guards] = {}
    uses: list[tuple[Equation, list[Guards]]] = []
    for eqn in reversed(graph.body):
        used = [held[v] for v in eqn.outputs if v in held]
        if not used or eqn.outputs[0] not in active:
            continue
        result = used[0]
        if eqn.op in _MOVING:
            both = [(g, moves.before(eqn, g)) for g in result]
            passed[eqn.outputs[0]] = tuple(g for g, before in both if before is not None)
            along = [tuple(before for _, before in both if before is not None)]
            uses.append((eqn, along))
        else:
            along = [_use(eqn, i, result, constants, negated) for i in range(len(eqn.inputs))]
        for value, guards in zip(eqn.inputs, along, strict=True):
            if value in active:
                held[value] = _both(held[value], guards) if value in held else guards
        if isinstance(eqn.op, Primitive) and eqn.op.elementwise:
            uses.append((eqn, along))
            passed[eqn.outputs[0]] = result
    return {
        eqn: [
            _beginning(guards, passed.get(v, ()))
            for v, guards in zip(eqn.inputs, along, strict=True)
        ]
        for eqn, along in uses
        if any(along)
    }


def _use(
    eqn: Equation,
    position: int,
    result: Guards,
    constants: set[Value],
    negated: dict[Value, Value],
) -> Guards:
    """The guards of one operand's use, from those of the result."""
    if not (isinstance(eqn.op, Primitive) and eqn.op.elementwise):
        return ()
    if eqn.op is select:
        if position == 0:
            return ()
        condition, side = eqn.inputs[0], position == 1
        while condition in negated:
            condition, side = negated[condition], not side
        return (*result, Guard(condition, side))[-_NESTING:]
    if _harmless(eqn, position, constants):
        return result
    return tuple(g if g.risky else replace(g, risky=True) for g in result)


def _harmless(eqn: Equation, position: int, constants: set[Value]) -> bool:
    """Whether the slope along this operand is finite whatever the other operands are."""
    assert isinstance(eqn.op, Primitive)
    others = [v for i, v in enumerate(eqn.inputs) if i != position]
    if eqn.op.linear == "each" or (eqn.op.name == "div" and position == 0):
        return all(v in constants for v in others)
    return not eqn.op.singular


def _both(left: Guards, right: Guards) -> Guards:
    """The guards that hold on both uses."""
    risky = {(g.condition, g.side): g.risky for g in right}
    return tuple(
        replace(g, risky=g.risky or risky[g.condition, g.side])
        for g in left
        if (g.condition, g.side) in risky
    )


def _beginning(use: Guards, held: Guards) -> Guards:
    before = {(g.condition, g.side) for g in held}
    return tuple(g for g in use if g.risky and (g.condition, g.side) not in before)
