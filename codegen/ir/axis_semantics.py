"""Axis semantics: how a primitive acts on the axis along which a region is blocked.

A step works row by row if each row of its result depends on the same rows of its operands, and on
other operands as a whole. It contracts if it reduces over the rows by a sum, product, maximum or
minimum: blocks then give partial results, which are combined in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from primgraph.codegen.ir.schedule import Form, Step
from primgraph.ir.graph import Equation, Value
from primgraph.ir.types import TensorType


class Role(NamedTuple):
    """How a step takes part in a region: the axes of rows of its result and operands.

    `operands` has the axis of rows of each operand, None for one that is read as a whole. A
    contraction has no `axis`, but a ufunc `combine` that joins partial results.
    """

    axis: int | None
    operands: tuple[int | None, ...]
    combine: str = ""


Axes: TypeAlias = Sequence[int | None]


class Blocking(NamedTuple):
    """How a primitive runs in blocks.

    `role` returns the role of a step, given the axis of rows of each operand; None marks a whole
    operand, of which any rows are available. It returns None if the step needs all rows of an
    operand that is blocked. If all operands are whole, the rows are those of operand `led_by`.
    `resized` is the parameter with the shape of the result, if there is one; a block has fewer
    rows.
    """

    role: Callable[[Step, Axes], Role | None]
    led_by: int
    resized: str


def common(axes: Axes) -> int | None:
    """Return the only axis among `axes`; None if there are several."""
    found = {a for a in axes if a is not None}
    return found.pop() if len(found) == 1 else None


def aligned_role(step: Step, axes: Axes) -> Role | None:
    """Return the role of a step that works on equal rows of all operands."""
    axis = common(axes)
    return None if axis is None else Role(axis, (axis,) * len(axes))


ALIGNED = Blocking(aligned_role, 0, "")


def restrict_rows(step: Step, blocking: Blocking | None, role: Role, rows: int) -> Step:
    """Return `step` restricted to a block of `rows` rows."""
    eqn = step.eqn
    inputs = tuple(
        Value(_block_type(v.type, a, rows)) for v, a in zip(eqn.inputs, role.operands, strict=True)
    )
    outputs = tuple(Value(_block_type(v.type, role.axis, rows)) for v in eqn.outputs)
    params = eqn.params
    resized = blocking.resized if blocking is not None else ""
    if resized and role.axis is not None:
        params = tuple((k, outputs[0].shape if k == resized else p) for k, p in params)
    local = Equation(eqn.op, inputs, params, outputs, eqn.source)
    return step._replace(eqn=local, form=Form(local))


def _block_type(type: TensorType, axis: int | None, rows: int) -> TensorType:
    if axis is None:
        return type
    return type.with_shape((*type.shape[:axis], rows, *type.shape[axis + 1 :]))
