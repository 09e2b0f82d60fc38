"""Conditions (boolean masks) on elements: where values matter, and where tangents are nonzero.

A condition has the shape of its value. Equations that move elements move their conditions as well:
backward from results to operands, and forward from operands to results. Equations that compute
conditions are recorded beside the graph; a later pass decides which of them to emit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.ir.dims import Dim
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
from primgraph.primitives.constants import extent, full
from primgraph.primitives.elementwise import cast
from primgraph.primitives.indexing import gather, scatter_add
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.logic import logical_and, logical_not, logical_or, not_equal
from primgraph.primitives.reductions import (
    as_softmax_of,
    cumsum,
    reduce_max,
    reduce_min,
    reduce_prod,
    reduce_sum,
    root_of_squares,
)
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
from primgraph.transforms.dataflow.masks.implications import absorbed
from primgraph.transforms.dataflow.masks.repeated_conditions import (
    apart,
    joined,
    part,
    repeated,
    reshaped,
    without,
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

    def record(self, op: Op, *inputs: Value, **params: Any) -> Value:
        """Return the result of an equal equation, or record the equation beside the graph."""
        same = self._less_repeated(op, inputs, params) or self._assigned(op, inputs, params)
        if same is not None:
            return same
        frozen = freeze_all(params.items())
        key = (op, inputs, frozen)
        if key not in self.known:
            (type,) = op.infer(tuple(v.type for v in inputs), params)
            value = self.known[key] = Value(type)
            self.made[value] = Equation(op, inputs, frozen, (value,), None)
        return self.known[key]

    def _less_repeated(
        self, op: Op, inputs: tuple[Value, ...], params: dict[str, Any]
    ) -> Value | None:
        """Return the broadcast of a moved condition, where moving and broadcasting commute."""
        if op is reshape:
            return reshaped(self, inputs[0], params["shape"])
        if op is slice_ and not set(params["steps"]) - {1}:
            return part(self, inputs[0], params["sizes"])
        eqn = self.definition(inputs[0]) if op is broadcast else None
        if eqn is not None and eqn.op is broadcast:
            return repeated(self, inputs[0], **params)
        return None

    def _assigned(self, op: Op, inputs: tuple[Value, ...], params: dict[str, Any]) -> Value | None:
        """Return the assigned part, where a slice reads exactly the part that was assigned."""
        eqn = self.definition(inputs[0]) if op is slice_ else None
        if eqn is None or eqn.op is not slice_assign or eqn.inputs[1].shape != params["sizes"]:
            return None
        same = all(eqn.kwargs[name] == params[name] for name in ("starts", "steps"))
        return eqn.inputs[1] if same else None

    def plain(self, condition: Value) -> tuple[Value, bool]:
        """Strip negations: return the inner condition, and whether it is negated."""
        negated = False
        while (eqn := self.definition(condition)) is not None and eqn.op is logical_not:
            condition, negated = eqn.inputs[0], not negated
        return condition, negated

    def negated(self, condition: Value) -> Value:
        plain, negated = self.plain(condition)
        return plain if negated else self.record(logical_not, plain)

    def either(self, x: Value, y: Value) -> Value:
        if x is y or self.never(y) or self.always(x):
            return x
        if self.never(x) or self.always(y):
            return y
        found = absorbed(self, logical_or, x, y) or joined(self, self.either, x, y)
        return found or self.record(logical_or, x, y)

    def both(self, x: Value, y: Value) -> Value:
        if x is y or self.always(y) or self.never(x):
            return x
        if self.always(x) or self.never(y):
            return y
        found = absorbed(self, logical_and, x, y) or joined(self, self.both, x, y)
        return found or self._both_there(x, y) or self.record(logical_and, x, y)

    def _both_there(self, x: Value, y: Value) -> Value | None:
        """Record the conjunction of two conditions that were assigned at the same place."""
        one, other = self.definition(x), self.definition(y)
        if one is None or other is None or not one.op is other.op is slice_assign:
            return None
        nowhere, first = one.inputs
        same = other.inputs[0] is nowhere and first.shape == other.inputs[1].shape
        if not same or one.params != other.params or not self.never(nowhere):
            return None
        there = self.record(logical_and, first, other.inputs[1])
        return self.record(slice_assign, nowhere, there, **one.kwargs)

    def nowhere(self, like: Value) -> Value:
        """Record a condition that is false everywhere, in the shape of `like`."""
        return self.record(full, value=False, shape=like.shape, dtype=BOOL)

    def everywhere(self, like: Value) -> Value:
        """Record a condition that is true everywhere, in the shape of `like`."""
        return self.record(full, value=True, shape=like.shape, dtype=BOOL)

    def definition(self, value: Value) -> Equation | None:
        return self.made.get(value) or self.definitions.get(value)

    def always(self, condition: Value) -> bool:
        """Return whether `condition` is known to hold everywhere."""
        eqn = self.definition(condition)
        if eqn is not None and eqn.op is full:
            return bool(eqn.kwargs["value"])
        array = self.array(condition)
        return array is not None and bool(array.all())

    def never(self, condition: Value) -> bool:
        """Return whether `condition` is known to hold nowhere."""
        eqn = self.definition(condition)
        if eqn is not None and eqn.op is full:
            return not eqn.kwargs["value"]
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
                self._arrays[last] = None if eqn is None or varies else self._evaluated(eqn)
        return self._arrays[value]

    def _evaluated(self, eqn: Equation) -> np.ndarray[Any, Any] | None:
        kind = eqn.outputs[0].type
        # An empty array may have symbolic sizes too, as may rows counted while a loop runs.
        unknown = kind.names or any(type(n) is Dim for n in kind.shape)
        if eqn.op.multiple or kind.is_larger(LARGEST) or unknown or eqn.op is extent:
            return None
        with np.errstate(all="ignore"):
            (result,) = eqn.op.evaluate([self._arrays[v] for v in eqn.inputs], eqn.kwargs)
        return np.asarray(result)

    # Moving conditions through equations.

    def before(self, eqn: Equation, position: int, place: int, matters: Value) -> Value:
        """Return where the operand at `position` matters, given where result `place` matters.

        An element of a broadcast operand matters if any of its copies does.
        """
        alike = self.repeats_alike(eqn, matters)
        return alike or _COUNTING.get(eqn.op, _before)(self, eqn, position, place, matters)

    def repeats_alike(self, eqn: Equation, condition: Value) -> Value | None:
        """Return the condition that was broadcast or gathered as `eqn` does, or None."""
        if eqn.op is broadcast:
            return without(self, condition, eqn.kwargs["new_axes"])
        found = self.definition(condition) if eqn.op is gather else None
        if found is None or (found.op, found.params) != (eqn.op, eqn.params):
            return None
        same = found.inputs[1:] == eqn.inputs[1:]
        return found.inputs[0] if same and found.inputs[0].shape == eqn.inputs[0].shape else None

    def keeps(self, eqn: Equation, condition: Value) -> bool:
        """Return whether a condition moved backward through `eqn` is exact, not only a superset."""
        return not repeats(eqn) or self.repeats_alike(eqn, condition) is not None

    def behind(self, eqn: Equation, place: int, operands: Sequence[Value | None]) -> Value | None:
        """Return where result `place` depends on `operands`, given a condition for each.

        None stands for an operand that is nowhere nonzero, and for a result without a rule.
        """
        return _behind(self, eqn, place, operands) if eqn.op in FORTH else None


_UNKNOWN = np.zeros(0)


def any_along(conditions: Conditions, matters: Value, axes: tuple[int, ...]) -> Value:
    """Record where `matters` holds for some element along `axes`."""
    if matters.type.size == 0:
        shape = tuple(n for i, n in enumerate(matters.shape) if i not in axes)
        return conditions.record(full, value=False, shape=shape, dtype=BOOL)
    eqn = conditions.definition(matters)
    if eqn is not None and eqn.op is broadcast:
        return _any_of_repeated(conditions, eqn, axes)
    if eqn is not None and eqn.op is logical_and:
        differing, alike = apart(conditions, matters, axes)
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


def _any_of_repeated(conditions: Conditions, eqn: Equation, axes: tuple[int, ...]) -> Value:
    """Reduce the operand of the broadcast `eqn`, and broadcast the result."""
    (x,), new_axes, shape = eqn.inputs, eqn.kwargs["new_axes"], eqn.outputs[0].shape
    own = [i for i in range(len(shape)) if i not in new_axes]
    some = tuple([k for k, i in enumerate(own) if i in axes])
    kept = [i for i in range(len(shape)) if i not in axes]
    again = [k for k, i in enumerate(kept) if i in new_axes]
    found = any_along(conditions, x, some) if some else x
    return repeated(conditions, found, drop_axes(shape, axes), again)


def _carried(
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
    ways = [_strides(places) for places in (source, target)]
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


def _strides(
    places: Sequence[Place],
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
    """Starts, steps and variables along axes; None where one has not just one variable."""
    if not all(isinstance(p, Index) and len(p.terms) == 1 for p in places):
        return None
    found = [(p.start, *p.terms[0]) for p in places if isinstance(p, Index)]
    starts, variables, steps = zip(*found, strict=True) if found else ((), (), ())
    return starts, steps, variables


def repeats(eqn: Equation) -> bool:
    """Whether an element of an operand may come to several places of a result."""
    if isinstance(eqn.op, Primitive) and eqn.op.elementwise:
        return False
    for i, value in enumerate(eqn.inputs):
        found = dependence_of(eqn, 0, i) if value.type.is_inexact else None
        if isinstance(found, IndexMap):
            looks_up = any(isinstance(p, Lookup) for p in found.operand)
            more = variables_of(found.result) - variables_of(found.operand)
            if more or looks_up or found.order is not None:
                return True
    return False


def dependence_of(eqn: Equation, place: int, position: int) -> Dependence:
    """Return the index map of a result and an operand."""
    assert isinstance(eqn.op, Primitive)
    operands, results = (tuple([v.type for v in vs]) for vs in (eqn.inputs, eqn.outputs))
    return eqn.op.dependence(place, position, operands, results, eqn.kwargs)


def _before(
    conditions: Conditions, eqn: Equation, position: int, place: int, matters: Value
) -> Value:
    """Return the condition under which an operand matters, by the index map."""
    x = eqn.inputs[position]
    # A derivative of its own looks at the value wherever it looks at what that is a function of.
    found = dependence_of(eqn, place, max(position, 1 if eqn.op.own_slope else 0))
    if isinstance(found, RowMajor):
        return conditions.record(reshape, matters, shape=x.shape)
    assert isinstance(found, IndexMap)
    if found.hole is not None:
        hole = conditions.record(full, value=False, shape=found.hole.sizes, dtype=BOOL)
        starts, steps = found.hole.starts, found.hole.steps
        return conditions.record(slice_assign, matters, hole, starts=starts, steps=steps)
    before = _carried(conditions, found.extents, found.result, found.operand, matters, x)
    assert before is not None
    return before


def _before_gather(
    conditions: Conditions, eqn: Equation, position: int, place: int, matters: Value
) -> Value:
    """Return where an element matters: where any of its gathered copies does."""
    x, indices = eqn.inputs[0], eqn.inputs[1:]
    none = conditions.record(full, value=0, shape=x.shape, dtype=INT64)
    count = conditions.record(cast, matters, dtype=INT64)
    total = conditions.record(scatter_add, none, count, *indices, **eqn.kwargs)
    return conditions.record(not_equal, total, none)


def _before_scatter_add(
    conditions: Conditions, eqn: Equation, position: int, place: int, matters: Value
) -> Value:
    return (
        matters
        if position == 0
        else conditions.record(gather, matters, *eqn.inputs[2:], **eqn.kwargs)
    )


def _before_scan(
    conditions: Conditions, eqn: Equation, position: int, place: int, matters: Value
) -> Value:
    """Return where an element matters: it contributes to all later cumulative sums."""
    count = conditions.record(cast, matters, dtype=INT64)
    axis, reverse = eqn.kwargs["axis"], eqn.kwargs["reverse"]
    total = conditions.record(cumsum, count, axis=axis, reverse=not reverse)
    none = conditions.record(full, value=0, shape=matters.shape, dtype=INT64)
    return conditions.record(not_equal, total, none)


_Back: TypeAlias = Callable[[Conditions, Equation, int, int, Value], Value]

# Of these it is known where operands matter, from where results do.
BACK: frozenset[Op] = frozenset(
    {
        as_softmax_of, broadcast, concat, cumsum, gather, matmul, pad, permute, reduce_max,
        reduce_min, reduce_prod, reduce_sum, reshape, reverse, root_of_squares, scatter_add,
        slice_, slice_assign, split,
    }
)  # fmt: skip
# Places that are looked up, or in an order, make sums of conditions.
_COUNTING: dict[Op, _Back] = {
    cumsum: _before_scan,
    gather: _before_gather,
    scatter_add: _before_scatter_add,
}

# Of these it is known where results depend on operands, from where those count.
FORTH: frozenset[Op] = frozenset(
    {
        as_softmax_of, broadcast, concat, gather, pad, permute, reduce_sum, reshape, reverse,
        root_of_squares, slice_, slice_assign, split,
    }
)  # fmt: skip


def _behind(
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
            way = dependence_of(eqn, place, i)
            assert isinstance(way, IndexMap)
            like = eqn.outputs[place]
            one = _carried(conditions, way.extents, way.operand, way.result, known, like)
            if one is not None:
                found.append(one)
    return reduce(conditions.either, found) if found else None
