"""Which values matter only where some `select` selects them.

A `select` chooses elements of its operands. What feeds one of them alone matters only where the
condition picks that side: elsewhere its value, infinite or NaN as it may be, is thrown away.
Derivatives must not let it back in, as 0 * inf would.

Elementwise primitives pass a guard on as it is. What moves elements, such as a slice or a
broadcast, passes on the condition moved back: an element matters where it comes to a place that
matters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, TypeAlias, final

from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import freeze_all
from primgraph.ir.primitive import Op, Primitive
from primgraph.ir.types import BOOL, INT64
from primgraph.primitives.constants import full
from primgraph.primitives.elementwise import cast
from primgraph.primitives.indexing import gather, scatter_add
from primgraph.primitives.logic import logical_not, logical_or, not_equal, select
from primgraph.primitives.reductions import reduce_max, reduce_sum
from primgraph.primitives.shapes import (
    broadcast,
    concat,
    pad,
    permute,
    reshape,
    reverse,
    slice_,
    slice_assign,
    split,
)

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


@dataclass(frozen=True, slots=True)
class Guarding:
    """Guards of a graph: for each equation that passes some on, per operand, those that begin.

    `made` has the equations of conditions that the graph does not have itself, by their results.
    """

    begin: dict[Equation, list[Guards]] = field(default_factory=dict)
    made: dict[Value, Equation] = field(default_factory=dict)


# These may bring one element to several places.
_REPEATING = frozenset({broadcast, gather})


@final
class _Moves:
    """Moves conditions from the results of equations that move elements to their operands."""

    def __init__(self, graph: Graph) -> None:
        self.made: dict[Value, Equation] = {}
        moved = [e for e in graph.body if e.op in _REPEATING and e.outputs[0].dtype == BOOL]
        self.moved = {e.outputs[0]: e for e in moved}
        single = (e for e in graph.body if len(e.outputs) == 1)
        self.known = {(e.op, e.inputs, e.params): e.outputs[0] for e in single}

    def before(self, eqn: Equation, position: int, place: int, guard: Guard) -> Guard:
        """`guard` of result `place` of `eqn` as a guard of its operand at `position`.

        Of an operand that is repeated any place counts, so that the places have to be guarded
        as well: nothing that is risky there is left to this guard.
        """
        alike = self._repeats_alike(eqn, guard)
        if alike is not None:
            return replace(guard, condition=alike)
        back = _BACK[eqn.op](self, eqn, position, place, self.matters(guard))
        return Guard(back, True, guard.risky and eqn.op not in _REPEATING)

    def _repeats_alike(self, eqn: Equation, guard: Guard) -> Value | None:
        """The condition from which that of `guard` was made as `eqn` makes its result."""
        found = self.moved.get(guard.condition)
        if found is None or (found.op, found.params) != (eqn.op, eqn.params):
            return None
        same = found.inputs[1:] == eqn.inputs[1:]
        return found.inputs[0] if same and found.inputs[0].shape == eqn.inputs[0].shape else None

    def keeps(self, eqn: Equation, guard: Guard) -> bool:
        """Whether what holds before `eqn` is no less than what holds behind it."""
        return eqn.op not in _REPEATING or self._repeats_alike(eqn, guard) is not None

    def record(self, op: Op, *inputs: Value, **params: Any) -> Value:
        """The result of an equation beside the graph, or of the one that the graph has."""
        frozen = freeze_all(params.items())
        key = (op, inputs, frozen)
        if key not in self.known:
            (type,) = op.infer(tuple(v.type for v in inputs), params)
            value = self.known[key] = Value(type)
            self.made[value] = Equation(op, inputs, frozen, (value,), None)
        return self.known[key]

    def matters(self, guard: Guard) -> Value:
        """Where what `guard` guards matters."""
        return guard.condition if guard.side else self.record(logical_not, guard.condition)

    def nowhere(self, like: Value) -> Value:
        """False everywhere, in the shape of `like`."""
        return self.record(full, value=False, shape=like.shape, dtype=BOOL)


def _any(moves: _Moves, matters: Value, axes: tuple[int, ...]) -> Value:
    """Where some element along `axes` matters."""
    if not matters.type.size:
        shape = tuple(n for i, n in enumerate(matters.shape) if i not in axes)
        return moves.record(full, value=False, shape=shape, dtype=BOOL)
    return moves.record(reduce_max, matters, axes=axes)


def _before_broadcast(
    moves: _Moves, eqn: Equation, position: int, place: int, matters: Value
) -> Value:
    return _any(moves, matters, eqn.kwargs["new_axes"])


def _before_reduce_sum(
    moves: _Moves, eqn: Equation, position: int, place: int, matters: Value
) -> Value:
    shape, axes = eqn.inputs[0].shape, eqn.kwargs["axes"]
    return moves.record(broadcast, matters, shape=shape, new_axes=axes)


def _before_reshape(
    moves: _Moves, eqn: Equation, position: int, place: int, matters: Value
) -> Value:
    return moves.record(reshape, matters, shape=eqn.inputs[0].shape)


def _before_permute(
    moves: _Moves, eqn: Equation, position: int, place: int, matters: Value
) -> Value:
    axes = eqn.kwargs["axes"]
    return moves.record(permute, matters, axes=tuple(axes.index(i) for i in range(len(axes))))


def _before_reverse(
    moves: _Moves, eqn: Equation, position: int, place: int, matters: Value
) -> Value:
    return moves.record(reverse, matters, **eqn.kwargs)


def _before_pad(moves: _Moves, eqn: Equation, position: int, place: int, matters: Value) -> Value:
    low, sizes = eqn.kwargs["low"], eqn.inputs[0].shape
    return moves.record(slice_, matters, starts=low, sizes=sizes, steps=(1,) * len(low))


def _before_slice(moves: _Moves, eqn: Equation, position: int, place: int, matters: Value) -> Value:
    starts, steps = eqn.kwargs["starts"], eqn.kwargs["steps"]
    nowhere = moves.nowhere(eqn.inputs[0])
    return moves.record(slice_assign, nowhere, matters, starts=starts, steps=steps)


def _before_slice_assign(
    moves: _Moves, eqn: Equation, position: int, place: int, matters: Value
) -> Value:
    part = eqn.inputs[1]
    if position == 0:
        return moves.record(slice_assign, matters, moves.nowhere(part), **eqn.kwargs)
    return moves.record(slice_, matters, sizes=part.shape, **eqn.kwargs)


def _before_concat(
    moves: _Moves, eqn: Equation, position: int, place: int, matters: Value
) -> Value:
    axis, x = eqn.kwargs["axis"], eqn.inputs[position]
    start = sum(v.shape[axis] for v in eqn.inputs[:position])
    starts = tuple(start if i == axis else 0 for i in range(len(x.shape)))
    return moves.record(slice_, matters, starts=starts, sizes=x.shape, steps=(1,) * len(starts))


def _before_split(moves: _Moves, eqn: Equation, position: int, place: int, matters: Value) -> Value:
    axis, x = eqn.kwargs["axis"], eqn.inputs[0]
    start = [*accumulate(eqn.kwargs["sizes"], initial=0)][place]
    starts = tuple(start if i == axis else 0 for i in range(len(x.shape)))
    steps = (1,) * len(starts)
    return moves.record(slice_assign, moves.nowhere(x), matters, starts=starts, steps=steps)


def _before_gather(
    moves: _Moves, eqn: Equation, position: int, place: int, matters: Value
) -> Value:
    """An element that is read several times matters if it does in any of these places."""
    x, indices = eqn.inputs[0], eqn.inputs[1:]
    none = moves.record(full, value=0, shape=x.shape, dtype=INT64)
    count = moves.record(cast, matters, dtype=INT64)
    total = moves.record(scatter_add, none, count, *indices, **eqn.kwargs)
    return moves.record(not_equal, total, none)


def _before_scatter_add(
    moves: _Moves, eqn: Equation, position: int, place: int, matters: Value
) -> Value:
    return (
        matters if position == 0 else moves.record(gather, matters, *eqn.inputs[2:], **eqn.kwargs)
    )


# Where an operand matters, from where a result does.
_BACK: dict[Op, Callable[[_Moves, Equation, int, int, Value], Value]] = {
    broadcast: _before_broadcast,
    concat: _before_concat,
    gather: _before_gather,
    pad: _before_pad,
    permute: _before_permute,
    reduce_sum: _before_reduce_sum,
    reshape: _before_reshape,
    reverse: _before_reverse,
    scatter_add: _before_scatter_add,
    slice_: _before_slice,
    slice_assign: _before_slice_assign,
    split: _before_split,
}


def guards_of(graph: Graph, active: set[Value]) -> Guarding:
    """For each equation that passes guards on, per operand, those that begin to hold there.

    Those are the risky guards of the operand's use that do not hold for the operand itself. Only
    uses by `active` values count: others carry no derivative.
    """
    if not any(eqn.op is select for eqn in graph.body):
        return Guarding()
    constants = {e.outputs[0] for e in graph.body if e.op.name == "full"}
    negated = {e.outputs[0]: e.inputs[0] for e in graph.body if e.op is logical_not}
    held: dict[Value, Guards] = dict.fromkeys(graph.outputs, ())
    moves = _Moves(graph)
    passed: dict[Value, Guards] = {}
    uses: list[tuple[Equation, list[Guards]]] = []
    for eqn in reversed(graph.body):
        used = [(i, held[v]) for i, v in enumerate(eqn.outputs) if v in held]
        if not used or eqn.outputs[0] not in active:
            continue
        place, result = used[0]
        moving = eqn.op in _BACK and len(used) == 1
        if moving:
            along = [_moved(moves, eqn, i, place, result, active) for i in range(len(eqn.inputs))]
        else:
            along = [_use(eqn, i, result, constants, negated) for i in range(len(eqn.inputs))]
        for value, guards in zip(eqn.inputs, along, strict=True):
            if value in active:
                held[value] = _both(moves, held[value], guards) if value in held else guards
        if moving or (isinstance(eqn.op, Primitive) and eqn.op.elementwise):
            uses.append((eqn, along))
            kept = not moving or eqn.op not in _REPEATING
            passed[eqn.outputs[place]] = tuple(g for g in result if kept or moves.keeps(eqn, g))
    begin = {
        eqn: [
            _beginning(guards, passed.get(v, ()))
            for v, guards in zip(eqn.inputs, along, strict=True)
        ]
        for eqn, along in uses
        if any(along)
    }
    return Guarding(begin, moves.made)


def _moved(
    moves: _Moves, eqn: Equation, position: int, place: int, guards: Guards, active: set[Value]
) -> Guards:
    """The guards of one operand's use by an equation that moves elements."""
    if eqn.inputs[position] not in active:
        return ()
    return tuple(moves.before(eqn, position, place, g) for g in guards)


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


def _both(moves: _Moves, left: Guards, right: Guards) -> Guards:
    """The guards that hold on both uses; if there are none, that one of two conditions holds."""
    risky = {(g.condition, g.side): g.risky for g in right}
    common = tuple(
        replace(g, risky=g.risky or risky[g.condition, g.side])
        for g in left
        if (g.condition, g.side) in risky
    )
    if common or not left or not right:
        return common
    one, other = left[-1], right[-1]
    if one.condition is other.condition:
        return ()
    either = moves.record(logical_or, moves.matters(one), moves.matters(other))
    # Each use keeps its own guard too, where that is risky.
    return (Guard(either, True),)


def _beginning(use: Guards, held: Guards) -> Guards:
    before = {(g.condition, g.side) for g in held}
    return tuple(g for g in use if g.risky and (g.condition, g.side) not in before)
