"""Conditions that are constant along some axes, kept as broadcasts of smaller conditions.

Broadcasts are sunk: conditions are joined, reduced and moved before they are broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Protocol

from primgraph.ir.facts.choices import LOGIC, Logic
from primgraph.ir.graph import Equation, Value
from primgraph.ir.primitive import Op
from primgraph.ir.types import Shape, drop_axes
from primgraph.ir.views import Reshape, Slice, View
from primgraph.primitives.constants import full
from primgraph.primitives.shapes import broadcast
from primgraph.transforms.dataflow.locality import repeated_axes

# Maximum depth of defining equations that are visited.
DEEP = 8


class Record(Protocol):
    """Interface of an object that records conditions."""

    def record(self, op: Op, *inputs: Value, **params: Any) -> Value:
        """Return the result of an equation, which is recorded if it is new."""

    def definition(self, value: Value) -> Equation | None:
        """Return the equation that defines `value`."""


def broadcast_condition(
    conditions: Record, condition: Value, shape: Shape, new_axes: Collection[int]
) -> Value:
    """Broadcast `condition` along `new_axes` of `shape`; without axes return it as it is."""
    if not new_axes:
        return condition
    eqn = conditions.definition(condition)
    if eqn is not None and (again := repeated_axes(eqn)):
        own = [i for i in range(len(shape)) if i not in new_axes]
        new_axes = {*new_axes, *[own[i] for i in again]}
        condition = eqn.inputs[0]
    return conditions.record(broadcast, condition, shape=shape, new_axes=tuple(sorted(new_axes)))


def spread_over_stack(conditions: Record, condition: Value, stack: Shape) -> Value:
    """Broadcast a condition on rows over the stack; a stack is returned as it is."""
    return broadcast_condition(
        conditions, condition, stack, range(len(stack) - len(condition.shape))
    )


def remove_axes(
    conditions: Record, condition: Value, axes: Collection[int], deep: int = 1
) -> Value | None:
    """Return `condition` without `axes` if it is seen to be constant along them, else None.

    At most `deep` nested defining equations are visited.
    """
    eqn = conditions.definition(condition)
    if not axes or eqn is None or not deep:
        return None if axes else condition
    shape = drop_axes(condition.shape, tuple(axes))
    if (number := eqn.number) is not None:
        return conditions.record(full, value=number, shape=shape, dtype=condition.dtype)
    if (new_axes := repeated_axes(eqn)) and set(axes) <= set(new_axes):
        left = [i for i in range(len(condition.shape)) if i not in axes]
        again = [k for k, i in enumerate(left) if i in new_axes]
        return broadcast_condition(conditions, eqn.inputs[0], shape, again)
    if eqn.op.fact(LOGIC) in (None, Logic.SOME):
        return None
    parts = [remove_axes(conditions, v, axes, deep - 1) for v in eqn.inputs]
    present = [v for v in parts if v is not None]
    return conditions.record(eqn.op, *present) if len(present) == len(parts) else None


def split_conjunction(
    conditions: Record, condition: Value, axes: Collection[int]
) -> tuple[list[Value], list[Value]]:
    """Split a conjunction into conditions that vary along `axes`, and those that do not.

    The second ones are returned without the axes.
    """
    differing: list[Value] = []
    alike: list[Value] = []
    waiting = [condition]
    while waiting:
        value = waiting.pop()
        eqn = conditions.definition(value)
        same = remove_axes(conditions, value, axes, DEEP)
        if same is not None:
            alike.append(same)
        elif eqn is not None and eqn.op.fact(LOGIC) is Logic.AND and len(differing) < DEEP:
            waiting += reversed(eqn.inputs)
        else:
            differing.append(value)
    return differing, alike


def row_condition(conditions: Record, condition: Value) -> Value:
    """Return the condition on each row if it is the same for all rows, else `condition`."""
    return remove_axes(conditions, condition, (0,), DEEP) or condition


def join_before_broadcast(
    conditions: Record, join: Callable[[Value, Value], Value], x: Value, y: Value
) -> Value | None:
    """Join two conditions before they are broadcast along common axes; None without such axes."""
    one, other = (set(repeated_axes(conditions.definition(v))) for v in (x, y))
    if not (common := one & other):
        return None
    first, last = remove_axes(conditions, x, common), remove_axes(conditions, y, common)
    assert first is not None
    assert last is not None
    return broadcast_condition(conditions, join(first, last), x.shape, common)


def view_condition(
    conditions: Record, condition: Value, view: View | None, shape: Shape
) -> Value | None:
    """Return a view of `condition` if viewing and broadcasting commute; else None."""
    eqn = conditions.definition(condition)
    new_axes = repeated_axes(eqn)
    if eqn is None or not new_axes:
        return None
    (x,) = eqn.inputs
    match view:
        case None if shape == condition.shape:
            return condition
        case Slice(ranges) if all(step == 1 for *_, step in ranges):
            same = drop_axes(shape, new_axes) == x.shape
            return broadcast_condition(conditions, x, shape, new_axes) if same else None
        case Reshape():
            return _reshape_broadcast(conditions, x, new_axes, shape)
    return None


def _reshape_broadcast(
    conditions: Record, x: Value, new_axes: tuple[int, ...], shape: Shape
) -> Value | None:
    """Reshape the broadcast of `x` if only leading axes change along which it is constant."""
    lead, begin = len(shape) - len(x.shape), len(new_axes)
    if shape == x.shape:
        return x
    if lead < 1 or new_axes != tuple(range(begin)) or shape[lead:] != x.shape:
        return None
    return broadcast_condition(conditions, x, shape, range(lead))
