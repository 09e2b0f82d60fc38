"""What each primitive does to one axis: the axis along which a region of steps runs in blocks.

A step works row by row if the rows of its result depend on the same rows of its operands only,
and on other operands as a whole. It contracts if it sums over the rows, or takes their product,
maximum or minimum: the blocks then give partial results, to be combined from the first to the
last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple, TypeAlias

from primgraph.codegen.plan.schedule import Step
from primgraph.ir.types import FLOAT16, Shape


class Role(NamedTuple):
    """How a step takes part: where the rows of the result are, and of which operands it has rows.

    `operands` has the axis of the rows for each operand, None for one that is read as a whole.
    A step that contracts has no `axis`, and a ufunc, `combine`, that joins partial results.
    """

    axis: int | None
    operands: tuple[int | None, ...]
    combine: str = ""


Axes: TypeAlias = Sequence[int | None]
Rule: TypeAlias = Callable[[Step, Axes], Role | None]


def role_of(step: Step, axes: Axes) -> Role | None:
    """The role of `step`, where `axes` says of which operands rows are given, and along which axis.

    The other operands are there as a whole, so that any rows of them can be had. None if the
    step needs all rows of something of which it is given a block.
    """
    if step.op.elementwise:
        return _aligned(step, axes)
    rule = _RULES.get(step.op.name)
    return rule(step, axes) if rule is not None else None


def _common(axes: Axes) -> int | None:
    """The only axis among `axes`; None where there are several."""
    found = {a for a in axes if a is not None}
    return found.pop() if len(found) == 1 else None


def _aligned(step: Step, axes: Axes) -> Role | None:
    axis = _common(axes)
    return None if axis is None else Role(axis, (axis,) * len(axes))


def _permute(step: Step, axes: Axes) -> Role | None:
    return Role(step.params["axes"].index(axes[0]), (axes[0],))


def _broadcast(step: Step, axes: Axes) -> Role | None:
    new = set(step.params["new_axes"])
    kept = [a for a in range(len(step.params["shape"])) if a not in new]
    assert axes[0] is not None
    return Role(kept[axes[0]], (axes[0],))


def _reshape(step: Step, axes: Axes) -> Role | None:
    source, shape, axis = step.operands[0].shape, step.params["shape"], axes[0]
    assert axis is not None
    place = _same_place(source, shape, axis)
    return None if place is None else Role(place, (axis,))


def _same_place(source: Shape, shape: Shape, axis: int) -> int | None:
    """The axis of `shape` that counts the same rows as that of `source`, in row-major order."""
    before = prod(source[:axis])
    for place, extent in enumerate(shape):
        if extent == source[axis] and prod(shape[:place]) == before:
            return place
    return None


def _reverse(step: Step, axes: Axes) -> Role | None:
    return None if axes[0] in step.params["axes"] else Role(axes[0], (axes[0],))


def _slice(step: Step, axes: Axes) -> Role | None:
    p, axis = step.params, axes[0]
    assert axis is not None
    every = (p["starts"][axis], p["sizes"][axis], p["steps"][axis])
    return Role(axis, (axis,)) if every == (0, step.operands[0].shape[axis], 1) else None


def _along_another(step: Step, axes: Axes) -> Role | None:
    """Steps that work along one axis, which must not be that of the rows."""
    axis = _common(axes)
    if axis is None or step.params["axis"] == axis:
        return None
    return Role(axis, (axis,) * len(axes))


def _pad(step: Step, axes: Axes) -> Role | None:
    axis = axes[0]
    assert axis is not None
    widened = step.params["low"] and (step.params["low"][axis] or step.params["high"][axis])
    return None if widened else Role(axis, (axis,))


def _slice_assign(step: Step, axes: Axes) -> Role | None:
    axis, (x, y) = _common(axes), step.operands
    if axis is None or x.shape[axis] != y.shape[axis]:
        return None
    whole = step.params["starts"][axis] == 0 and step.params["steps"][axis] == 1
    return Role(axis, (axis, axis)) if whole else None


def _gather(step: Step, axes: Axes) -> Role | None:
    """Rows of indices give rows of the result."""
    axis = _common(axes[1:])
    if axes[0] is not None or axis is None:
        return None
    return Role(step.params["axis"] + axis, (None, *(axis,) * (len(axes) - 1)))


def _reduce(combine: str) -> Rule:
    def rule(step: Step, axes: Axes) -> Role | None:
        axis, reduced = axes[0], step.params["axes"]
        assert axis is not None
        if axis not in reduced:
            return Role(axis - sum(a < axis for a in reduced), (axis,))
        dtype = step.results[0].dtype
        # A product that underflows before it meets an infinity is NaN in one order only. Partial
        # sums of halves are kept in a wider type, which the result does not have.
        if combine == "multiply" and dtype.kind == "f":
            return None
        if combine == "add" and dtype == FLOAT16:
            return None
        return Role(None, (axis,), combine)

    return rule


def _root_of_squares(step: Step, axes: Axes) -> Role | None:
    """Rows of the sum go with those of what was summed, which must not be along them."""
    reduced = step.params["axes"]
    remaining = [a for a in range(step.operands[0].ndim) if a not in reduced]
    whole, total = axes
    if whole is None:
        assert total is not None
        whole = remaining[total]
    if whole in reduced or total not in (None, remaining.index(whole)):
        return None
    place = remaining.index(whole)
    return Role(place, (whole, place))


def _position(step: Step, axes: Axes) -> Role | None:
    axis, reduced = axes[0], step.params["axis"]
    assert axis is not None
    return None if axis == reduced else Role(axis - (reduced < axis), (axis,))


def _matmul(step: Step, axes: Axes) -> Role | None:
    x, y = axes
    inner = step.results[0].ndim - 1
    if (x is not None and x < inner - 1) or (y is not None and y < inner - 1):
        return _aligned(step, axes)
    if x == inner - 1 and y is None:
        return Role(inner - 1, (x, None))
    if y == inner and x is None:
        return Role(inner, (None, y))
    if x in (None, inner) and y in (None, inner - 1) and step.results[0].dtype != FLOAT16:
        return Role(None, (inner, inner - 1), "add")
    return None


_RULES: dict[str, Rule] = {
    "stop_gradient": _aligned,
    "permute": _permute,
    "broadcast": _broadcast,
    "reshape": _reshape,
    "reverse": _reverse,
    "slice": _slice,
    "split": _along_another,
    "concat": _along_another,
    "cumsum": _along_another,
    "pad": _pad,
    "slice_assign": _slice_assign,
    "gather": _gather,
    "argmax": _position,
    "argmin": _position,
    "matmul": _matmul,
    "reduce_sum": _reduce("add"),
    "reduce_prod": _reduce("multiply"),
    "reduce_max": _reduce("maximum"),
    "reduce_min": _reduce("minimum"),
    "root_of_squares": _root_of_squares,
}
