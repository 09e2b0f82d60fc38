"""Conditions that are the same along some axes, as conditions without these.

They are kept so: what is repeated is joined, reduced and moved before it is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Protocol

from primgraph.ir.graph import Equation, Value
from primgraph.ir.primitive import Op
from primgraph.ir.types import Shape, drop_axes
from primgraph.primitives.constants import full
from primgraph.primitives.logic import logical_and, logical_not, logical_or
from primgraph.primitives.shapes import broadcast

# How far it is looked into what conditions are made of.
DEEP = 8


class Record(Protocol):
    """Where conditions are recorded."""

    def record(self, op: Op, *inputs: Value, **params: Any) -> Value:
        """The result of an equation."""

    def definition(self, value: Value) -> Equation | None:
        """The equation that gives `value`."""


def repeated(
    conditions: Record, condition: Value, shape: Shape, new_axes: Collection[int]
) -> Value:
    """`condition` repeated along `new_axes` of `shape`, of which there may be none."""
    if not new_axes:
        return condition
    eqn = conditions.definition(condition)
    if eqn is not None and eqn.op is broadcast:
        own = [i for i in range(len(shape)) if i not in new_axes]
        new_axes = {*new_axes, *[own[i] for i in eqn.kwargs["new_axes"]]}
        condition = eqn.inputs[0]
    return conditions.record(broadcast, condition, shape=shape, new_axes=tuple(sorted(new_axes)))


def spread(conditions: Record, condition: Value, stack: Shape) -> Value:
    """A condition on each row as one on the stack; a stack stays what it is."""
    return repeated(conditions, condition, stack, range(len(stack) - len(condition.shape)))


def without(
    conditions: Record, condition: Value, axes: Collection[int], deep: int = 1
) -> Value | None:
    """`condition` without `axes`, if it is seen to be the same along these.

    It is looked into what it is made of, up to `deep` equations one behind the other.
    """
    eqn = conditions.definition(condition)
    if not axes or eqn is None or not deep:
        return None if axes else condition
    shape = drop_axes(condition.shape, tuple(axes))
    if eqn.op is full:
        return conditions.record(full, **{**eqn.kwargs, "shape": shape})
    if eqn.op is broadcast and set(axes) <= set(new_axes := eqn.kwargs["new_axes"]):
        left = [i for i in range(len(condition.shape)) if i not in axes]
        again = [k for k, i in enumerate(left) if i in new_axes]
        return repeated(conditions, eqn.inputs[0], shape, again)
    if eqn.op not in (logical_and, logical_or, logical_not):
        return None
    parts = [without(conditions, v, axes, deep - 1) for v in eqn.inputs]
    present = [v for v in parts if v is not None]
    return conditions.record(eqn.op, *present) if len(present) == len(parts) else None


def apart(
    conditions: Record, condition: Value, axes: Collection[int]
) -> tuple[list[Value], list[Value]]:
    """What all has to hold for `condition`: that which differs along `axes`, and that which is the
    same there, without these."""
    differing: list[Value] = []
    alike: list[Value] = []
    waiting = [condition]
    while waiting:
        value = waiting.pop()
        eqn = conditions.definition(value)
        same = without(conditions, value, axes, DEEP)
        if same is not None:
            alike.append(same)
        elif eqn is not None and eqn.op is logical_and and len(differing) < DEEP:
            waiting += reversed(eqn.inputs)
        else:
            differing.append(value)
    return differing, alike


def of_row(conditions: Record, condition: Value) -> Value:
    """The condition on each row of a stack, where that is the same one; else `condition`."""
    return without(conditions, condition, (0,), DEEP) or condition


def joined(
    conditions: Record, join: Callable[[Value, Value], Value], x: Value, y: Value
) -> Value | None:
    """What `join` makes of two conditions, before they are repeated along the same axes."""
    both = [conditions.definition(v) for v in (x, y)]
    axes = [set(e.kwargs["new_axes"]) for e in both if e is not None and e.op is broadcast]
    if len(axes) < 2 or not (common := axes[0] & axes[1]):
        return None
    one, other = without(conditions, x, common), without(conditions, y, common)
    assert one is not None
    assert other is not None
    return repeated(conditions, join(one, other), x.shape, common)


def part(conditions: Record, condition: Value, sizes: Shape) -> Value | None:
    """A part of `condition` that is cut along axes along which it is the same."""
    eqn = conditions.definition(condition)
    if eqn is None or eqn.op is not broadcast:
        return None
    (x,), new_axes = eqn.inputs, eqn.kwargs["new_axes"]
    same = drop_axes(sizes, new_axes) == x.shape
    return conditions.record(broadcast, x, shape=sizes, new_axes=new_axes) if same else None


def reshaped(conditions: Record, condition: Value, shape: Shape) -> Value | None:
    """`condition` in another shape, where only leading axes along which it is the same change."""
    eqn = conditions.definition(condition)
    if eqn is None or eqn.op is not broadcast:
        return None
    (x,), new_axes = eqn.inputs, eqn.kwargs["new_axes"]
    lead, begin = len(shape) - len(x.shape), len(new_axes)
    if shape == x.shape:
        return x
    if lead < 1 or new_axes != tuple(range(begin)) or shape[lead:] != x.shape:
        return None
    return repeated(conditions, x, shape, range(lead))
