"""Which values matter only where some `select` selects them.

A `select` chooses elements of its operands. What feeds one of them alone, through elementwise
primitives, matters only where the condition picks that side: elsewhere its value, infinite or
NaN as it may be, is thrown away. Derivatives must not let it back in, as 0 * inf would.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Primitive
from primgraph.primitives.logic import select

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


def guards_of(graph: Graph, active: set[Value]) -> dict[Equation, list[Guards]]:
    """For each elementwise equation, per operand, the guards that begin to hold there.

    Those are the risky guards of the operand's use that do not hold for the operand itself. Only
    uses by `active` values count: others carry no derivative.
    """
    if not any(eqn.op is select for eqn in graph.body):
        return {}
    constants = {e.outputs[0] for e in graph.body if e.op.name == "full"}
    held: dict[Value, Guards] = dict.fromkeys(graph.outputs, ())
    uses: list[tuple[Equation, list[Guards]]] = []
    for eqn in reversed(graph.body):
        result = held.get(eqn.outputs[0])
        if result is None or eqn.outputs[0] not in active:
            continue
        along = [_use(eqn, i, result, constants) for i in range(len(eqn.inputs))]
        for value, guards in zip(eqn.inputs, along, strict=True):
            if value in active:
                held[value] = _both(held[value], guards) if value in held else guards
        if isinstance(eqn.op, Primitive) and eqn.op.elementwise:
            uses.append((eqn, along))
    inside = {v for e, _ in uses for v in e.outputs}
    return {
        eqn: [
            _beginning(guards, held.get(v, ()) if v in inside else ())
            for v, guards in zip(eqn.inputs, along, strict=True)
        ]
        for eqn, along in uses
        if any(along)
    }


def _use(eqn: Equation, position: int, result: Guards, constants: set[Value]) -> Guards:
    """The guards of one operand's use, from those of the result."""
    if not (isinstance(eqn.op, Primitive) and eqn.op.elementwise):
        return ()
    if eqn.op is select:
        if position == 0:
            return ()
        return (*result, Guard(eqn.inputs[0], position == 1))[-_NESTING:]
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
