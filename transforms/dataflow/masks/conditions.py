"""Conditions (boolean masks) on elements: where values matter, and where tangents are nonzero.

A condition has the shape of its value. Equations that move elements move their conditions as well:
backward from results to operands, and forward from operands to results. Equations that compute
conditions are recorded beside the graph; a later pass decides which of them to emit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, final

import numpy as np

from primgraph.ir.dims import Dim
from primgraph.ir.facts.choices import LOGIC, MOVES_BACK, MOVES_FORTH, Logic
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.index_maps import (
    Dependence,
    Index,
    IndexMap,
    Lookup,
    Place,
    RowMajor,
    variables_of,
)
from primgraph.ir.params import freeze_all
from primgraph.ir.primitive import Op, Primitive
from primgraph.ir.types import BOOL, INT64, drop_axes
from primgraph.primitives.constants import full
from primgraph.primitives.elementwise import cast
from primgraph.primitives.indexing import gather, scatter_add
from primgraph.primitives.logic import logical_and, logical_not, logical_or, not_equal
from primgraph.primitives.reductions import cumsum, reduce_max, reduce_sum
from primgraph.primitives.shapes import (
    broadcast,
    permute,
    reshape,
    reverse,
    slice_,
    slice_assign,
)
from primgraph.transforms.dataflow.locality import (
    assignment_of,
    repeated_axes,
    view_of,
)
from primgraph.transforms.dataflow.masks.implications import absorb_condition
from primgraph.transforms.dataflow.masks.repeated_conditions import (
    broadcast_condition,
    join_before_broadcast,
    remove_axes,
    split_conjunction,
    view_condition,
)

# Larger constant conditions are not evaluated.
LARGEST = 2**20


@final
class Conditions:
    """Recorder of conditions on values of `graph`, with rules that move them through equations.

    `made` maps results to the defining equations that are not in the graph.
    """

    def __init__(self, graph: Graph) -> None:
        self.made: dict[Value, Equation] = {}
        self.definitions = {v: e for e in graph.body for v in e.outputs}
        self.known = {
            (e.op, e.inputs, e.params): e.outputs[0] for e in graph.body if len(e.outputs) == 1
        }
        self._arrays: dict[Value, np.ndarray[Any, Any] | None] = dict.fromkeys(graph.inputs)
        self._repeating: dict[Equation, bool] = {}

    def record(self, op: Op, *inputs: Value, **params: Any) -> Value:
        """Return the result of an equal equation, or record the equation beside the graph."""
        frozen = freeze_all(params.items())
        key = (op, inputs, frozen)
        made = self.definition(inputs[0]) if op.is_view else None
        if made is None and key in self.known:
            return self.known[key]
        (type,) = op.infer(tuple(v.type for v in inputs), params)
        eqn = Equation(op, inputs, frozen, (Value(type),), None)
        same = None if made is None else self._simplify_move(eqn, made)
        if same is None and key not in self.known:
            self.known[key] = eqn.output
            self.made[eqn.output] = eqn
        return same or self.known[key]

    def _simplify_move(self, eqn: Equation, made: Equation) -> Value | None:
        """Return an equal condition with less elements to move, or without any.

        Moving commutes with broadcasting, and may read exactly the part that was assigned.
        """
        (x,), result = eqn.inputs, eqn.output
        if repeated_axes(made):
            if axes := repeated_axes(eqn):
                return broadcast_condition(self, x, result.shape, axes)
            return view_condition(self, x, view_of(eqn), result.shape)
        assigned = assignment_of(made)
        read = None if assigned is None else eqn.dependence(0, 0)
        if assigned is None or not isinstance(read, IndexMap):
            return None
        same = (assigned.extents, assigned.result) == (read.extents, read.operand)
        return made.inputs[1] if same else None

    def plain(self, condition: Value) -> tuple[Value, bool]:
        """Strip negations: return the inner condition, and whether it is negated."""
        negated = False
        while (eqn := self.definition(condition)) is not None and eqn.op.fact(LOGIC) is Logic.NOT:
            condition, negated = eqn.inputs[0], not negated
        return condition, negated

    def negate_condition(self, condition: Value) -> Value:
        plain, negated = self.plain(condition)
        return plain if negated else self.record(logical_not, plain)

    def either(self, x: Value, y: Value) -> Value:
        if x is y or self.never(y) or self.always(x):
            return x
        if self.never(x) or self.always(y):
            return y
        found = absorb_condition(self, Logic.OR, x, y) or join_before_broadcast(
            self, self.either, x, y
        )
        return found or self.record(logical_or, x, y)

    def both(self, x: Value, y: Value) -> Value:
        if x is y or self.always(y) or self.never(x):
            return x
        if self.always(x) or self.never(y):
            return y
        found = absorb_condition(self, Logic.AND, x, y) or join_before_broadcast(
            self, self.both, x, y
        )
        return found or self._both_there(x, y) or self.record(logical_and, x, y)

    def _both_there(self, x: Value, y: Value) -> Value | None:
        """Record the conjunction of two conditions that were assigned at the same place."""
        one, other = self.definition(x), self.definition(y)
        if one is None or other is None or not (assignment_of(one) and assignment_of(other)):
            return None
        nowhere, first = one.inputs
        same = other.inputs[0] is nowhere and first.shape == other.inputs[1].shape
        if not same or one.params != other.params or not self.never(nowhere):
            return None
        there = self.record(logical_and, first, other.inputs[1])
        return self.record(one.op, nowhere, there, **one.kwargs)

    def nowhere(self, like: Value) -> Value:
        """Record a condition that is false everywhere, in the shape of `like`."""
        return self.record(full, value=False, shape=like.shape, dtype=BOOL)

    def everywhere(self, like: Value) -> Value:
        """Record a condition that is true everywhere, in the shape of `like`."""
        return self.record(full, value=True, shape=like.shape, dtype=BOOL)

    def definition(self, value: Value) -> Equation | None:
        return self.made.get(value) or self.definitions.get(value)

    def number(self, value: Value) -> Any:
        """Return the number that all elements equal, if a parameter holds it; else None."""
        eqn = self.definition(value)
        return eqn and eqn.number

    def always(self, condition: Value) -> bool:
        """Return whether `condition` is known to hold everywhere."""
        number = self.number(condition)
        if number is not None:
            return bool(number)
        array = self.array(condition)
        return array is not None and bool(array.all())

    def never(self, condition: Value) -> bool:
        """Return whether `condition` is known to hold nowhere."""
        number = self.number(condition)
        if number is not None:
            return not number
        array = self.array(condition)
        return array is not None and not array.any()

    def array(self, value: Value) -> np.ndarray[Any, Any] | None:
        """Evaluate `value` if it depends on no input and is not too large; else return None."""
        waiting = [value]
        while waiting:
            last = waiting[-1]
            eqn = self.definition(last)
            operands = eqn.inputs if eqn is not None else ()
            varies = eqn is None or any(self._arrays.get(v, _UNKNOWN) is None for v in operands)
            missing = next((v for v in operands if v not in self._arrays), None)
            if last in self._arrays:
                waiting.pop()
            elif missing is not None and not varies:
                waiting.append(missing)
            else:
                waiting.pop()
                self._arrays[last] = None if eqn is None or varies else self._evaluate(eqn)
        return self._arrays[value]

    def _evaluate(self, eqn: Equation) -> np.ndarray[Any, Any] | None:
        kind = eqn.outputs[0].type
        # An empty array may have symbolic sizes too, as may rows counted while a loop runs.
        sizes = (*kind.shape, *[p for _, p in eqn.params])
        unknown = kind.names or any(type(n) is Dim for n in sizes)
        if eqn.op.multiple or kind.is_larger(LARGEST) or unknown:
            return None
        with np.errstate(all="ignore"):
            (result,) = eqn.op.evaluate([self._arrays[v] for v in eqn.inputs], eqn.kwargs)
        return np.asarray(result)

    # Moving conditions through equations.

    def operand_condition(self, eqn: Equation, position: int, place: int, matters: Value) -> Value:
        """Return where the operand at `position` matters, given where result `place` matters.

        An element of a broadcast operand matters if any of its copies does.
        """
        return self.repeats_alike(eqn, matters) or _operand_condition(
            self, eqn, position, place, matters
        )

    def repeats_alike(self, eqn: Equation, condition: Value) -> Value | None:
        """Return the condition that was broadcast or gathered as `eqn` does, or None."""
        if axes := repeated_axes(eqn):
            return remove_axes(self, condition, axes)
        found = self.definition(condition)
        if found is None or (found.op, found.params) != (eqn.op, eqn.params):
            return None
        way = eqn.dependence(0, 0)
        if not isinstance(way, IndexMap) or not way.lookups():
            return None
        same = found.inputs[1:] == eqn.inputs[1:]
        return found.inputs[0] if same and found.inputs[0].shape == eqn.inputs[0].shape else None

    def repeats(self, eqn: Equation) -> bool:
        """Return whether an element of an operand may come to several places of a result."""
        if eqn not in self._repeating:
            self._repeating[eqn] = any(
                _may_repeat(eqn.dependence(0, i))
                for i, value in enumerate(eqn.inputs)
                if value.type.is_inexact
            )
        return self._repeating[eqn]

    def keeps(self, eqn: Equation, condition: Value) -> bool:
        """Return whether a condition moved backward through `eqn` is exact, not only a superset."""
        return not self.repeats(eqn) or self.repeats_alike(eqn, condition) is not None

    def result_condition(
        self, eqn: Equation, place: int, operands: Sequence[Value | None]
    ) -> Value | None:
        """Return where result `place` depends on `operands`, given a condition for each.

        None stands for an operand that is nowhere nonzero, and for a result without a rule.
        """
        return _result_condition(self, eqn, place, operands) if moves_forth(eqn.op) else None


_UNKNOWN = np.zeros(0)


def any_along(conditions: Conditions, matters: Value, axes: tuple[int, ...]) -> Value:
    """Record where `matters` holds for some element along `axes`."""
    if matters.type.size == 0:
        shape = tuple(n for i, n in enumerate(matters.shape) if i not in axes)
        return conditions.record(full, value=False, shape=shape, dtype=BOOL)
    eqn = conditions.definition(matters)
    if eqn is not None and (new_axes := repeated_axes(eqn)):
        return _any_of_repeated(conditions, eqn, new_axes, axes)
    if eqn is not None and eqn.op.fact(LOGIC) is Logic.AND:
        differing, alike = split_conjunction(conditions, matters, axes)
        if alike and differing:
            found = any_along(conditions, reduce(conditions.both, differing), axes)
            return reduce(conditions.both, alike, found)
    if any(type(matters.shape[a]) is Dim for a in axes):
        # An empty axis has no maximum.
        numbers = conditions.record(cast, matters, dtype=INT64)
        total = conditions.record(reduce_sum, numbers, axes=axes)
        none = conditions.record(full, value=0, shape=total.shape, dtype=INT64)
        return conditions.record(not_equal, total, none)
    return conditions.record(reduce_max, matters, axes=axes)


def _any_of_repeated(
    conditions: Conditions, eqn: Equation, new_axes: tuple[int, ...], axes: tuple[int, ...]
) -> Value:
    """Reduce the operand of the broadcast `eqn`, and broadcast the result."""
    (x,), shape = eqn.inputs, eqn.outputs[0].shape
    own = [i for i in range(len(shape)) if i not in new_axes]
    some = tuple([k for k, i in enumerate(own) if i in axes])
    kept = [i for i in range(len(shape)) if i not in axes]
    again = [k for k, i in enumerate(kept) if i in new_axes]
    found = any_along(conditions, x, some) if some else x
    return broadcast_condition(conditions, found, drop_axes(shape, axes), again)


def _carry_condition(
    conditions: Conditions,
    extents: Sequence[int],
    source: Sequence[Place],
    target: Sequence[Place],
    matters: Value,
    like: Value,
) -> Value | None:
    """Carry a condition on the elements at `source` to the elements of `like` at `target`.

    Both have places along axes for each point of a box of `extents`. None where an axis of either
    goes by several variables, or by places that are looked up.
    """
    ways = [strides_of(places) for places in (source, target)]
    if None in ways:
        return None
    (starts, steps, own), (goals, apart, wanted) = (way for way in ways if way is not None)
    sizes = tuple([extents[v] for v in own])
    if any(starts) or set(steps) - {1} or sizes != matters.shape:
        matters = conditions.record(slice_, matters, starts=starts, sizes=sizes, steps=steps)
    gone = tuple([a for a, v in enumerate(own) if v not in wanted])
    if gone:
        matters = any_along(conditions, matters, gone)
    kept = [v for v in own if v in wanted]
    order = tuple([kept.index(v) for v in wanted if v in kept])
    if order != tuple(range(len(order))):
        matters = conditions.record(permute, matters, axes=order)
    shape = tuple([extents[v] for v in wanted])
    new = tuple([a for a, v in enumerate(wanted) if v not in own])
    if new:
        matters = conditions.record(broadcast, matters, shape=shape, new_axes=new)
    turned = tuple([a for a, step in enumerate(apart) if step == -1])
    whole = all(
        start == (n - 1 if a in turned else 0)
        for a, (start, n) in enumerate(zip(goals, like.shape, strict=True))
    )
    if shape == like.shape and whole and not set(apart) - {1, -1}:
        return conditions.record(reverse, matters, axes=turned) if turned else matters
    nowhere = conditions.nowhere(like)
    return conditions.record(slice_assign, nowhere, matters, starts=goals, steps=apart)


def strides_of(
    places: Sequence[Place],
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
    """Starts, steps and variables along axes; None where one has not just one variable."""
    if not all(isinstance(p, Index) and len(p.terms) == 1 for p in places):
        return None
    found = [(p.start, *p.terms[0]) for p in places if isinstance(p, Index)]
    starts, variables, steps = zip(*found, strict=True) if found else ((), (), ())
    return starts, steps, variables


def _may_repeat(found: Dependence) -> bool:
    if not isinstance(found, IndexMap):
        return False
    looks_up = any(isinstance(p, Lookup) for p in found.operand)
    more = variables_of(found.result) - variables_of(found.operand)
    return bool(more) or looks_up or found.order is not None


def _operand_condition(
    conditions: Conditions, eqn: Equation, position: int, place: int, matters: Value
) -> Value:
    """Return the condition under which an operand matters, by the index map."""
    x = eqn.inputs[position]
    # A derivative of its own looks at the value wherever it looks at what that is a function of.
    found = eqn.dependence(place, max(position, 1 if eqn.op.own_slope else 0))
    if isinstance(found, RowMajor):
        return conditions.record(reshape, matters, shape=x.shape)
    assert isinstance(found, IndexMap)
    if found.lookups():
        return _lookup_operand_condition(conditions, eqn, found, matters, x)
    if found.order is not None:
        return _cumulative_operand_condition(conditions, found, matters)
    if found.hole is not None:
        hole = conditions.record(full, value=False, shape=found.hole.sizes, dtype=BOOL)
        starts, steps = found.hole.starts, found.hole.steps
        return conditions.record(slice_assign, matters, hole, starts=starts, steps=steps)
    before = _carry_condition(conditions, found.extents, found.result, found.operand, matters, x)
    assert before is not None
    return before


def _lookup_operand_condition(
    conditions: Conditions, eqn: Equation, found: IndexMap, matters: Value, x: Value
) -> Value:
    """Return where elements matter whose places, or those of results, are looked up.

    An element that is read matters where any of its copies does.
    """
    read = [p for p in found.operand if isinstance(p, Lookup)]
    places = read or [p for p in found.result if isinstance(p, Lookup)]
    indices = [eqn.inputs[p.operand] for p in places]
    axis = (found.operand if read else found.result).index(places[0])
    if not read:
        return conditions.record(gather, matters, *indices, axis=axis)
    none = conditions.record(full, value=0, shape=x.shape, dtype=INT64)
    count = conditions.record(cast, matters, dtype=INT64)
    total = conditions.record(scatter_add, none, count, *indices, axis=axis)
    return conditions.record(not_equal, total, none)


def _cumulative_operand_condition(conditions: Conditions, found: IndexMap, matters: Value) -> Value:
    """Return where an element matters: it contributes to all later cumulative results."""
    assert found.order is not None
    count = conditions.record(cast, matters, dtype=INT64)
    own = variables_of(found.result)
    (axis,) = own.intersection(found.order)
    reverse = found.order[0] in own
    total = conditions.record(cumsum, count, axis=axis, reverse=not reverse)
    none = conditions.record(full, value=0, shape=matters.shape, dtype=INT64)
    return conditions.record(not_equal, total, none)


def moves_back(op: Op) -> bool:
    """Return whether it is known where operands matter, from where results do."""
    return op.is_view or op.fact(MOVES_BACK)


def moves_forth(op: Op) -> bool:
    """Return whether it is known where results depend on operands, from where those count."""
    return op.is_view or op.fact(MOVES_FORTH)


def _result_condition(
    conditions: Conditions, eqn: Equation, place: int, operands: Sequence[Value | None]
) -> Value | None:
    """Return the condition under which a result depends on operands, by the index map.

    What moves elements moves conditions as well; nothing counts that is put in between.
    """
    op = eqn.op
    assert isinstance(op, Primitive)
    if op.moves and not op.multiple:
        moving = op.linear_operands(len(eqn.inputs))
        moved = [
            v if i not in moving else m or conditions.nowhere(v)
            for i, (v, m) in enumerate(zip(eqn.inputs, operands, strict=True))
        ]
        return conditions.record(op, *moved, **eqn.kwargs)
    found = []
    for i, known in enumerate(operands):
        if known is not None and not op.is_flat(i):
            way = eqn.dependence(place, i)
            assert isinstance(way, IndexMap)
            like = eqn.outputs[place]
            one = _carry_condition(conditions, way.extents, way.operand, way.result, known, like)
            if one is not None:
                found.append(one)
    return reduce(conditions.either, found) if found else None
