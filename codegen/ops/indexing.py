"""Cards of gather, scatter-add, and placement at constant strides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from primgraph.codegen.ir.axis_semantics import Axes, Blocking, Role, common
from primgraph.codegen.ir.extents import ATOM, Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ir.views import tuple_text
from primgraph.codegen.ops.card import Card, Marks
from primgraph.codegen.ops.cost_model import MOVED, per_element
from primgraph.codegen.ops.shapes import moving_card, read_copy
from primgraph.codegen.ops.spelling.library import call
from primgraph.codegen.ops.spelling.literals import shape_text
from primgraph.codegen.ops.spelling.notation import Target
from primgraph.codegen.ops.spelling.numbers import Number, Numbers
from primgraph.codegen.ops.spelling.scalar import Elements, Scalar
from primgraph.ir.primitive import Op
from primgraph.ir.types import FLOAT64
from primgraph.primitives import indexing as p


def _subscripts(indices: Sequence[str], axis: int) -> str:
    return ", ".join([*[":"] * axis, *indices])


def _read_gather(args: Sequence[Text], step: Step) -> Text:
    chosen = _subscripts([a.code for a in args[1:]], step.params["axis"])
    return Text(f"{args[0].operand_code(ATOM)}[{chosen}]")


def _write_gather(to: Target) -> list[str]:
    axis = to.step.params["axis"]
    # `take` cannot cast the widest unsigned integers to indices.
    if len(to.args) == 2 and to.step.operands[1].dtype != np.dtype(np.uint64):
        return [f"{to.args[0]}.take({to.args[1]}, {axis}, {to.out})"]
    read = f"{to.args[0]}[{_subscripts(to.args[1:], axis)}]"
    return [f"{to.out}[...] = {read}"]


def _index_text(indices: Sequence[str], axis: int) -> str:
    if len(indices) == 1 and axis == 0:
        return indices[0]
    if axis == 0:
        return f"({', '.join(indices)})"
    return f"({', '.join([*['slice(None)'] * axis, *indices])})"


def amend_scatter(name: str, args: Sequence[Text], step: Step) -> str:
    """Return the statement that adds to the elements of an array."""
    index = _index_text([a.code for a in args[2:]], step.params["axis"])
    return call("add.at", name, index, args[1].code)


def assign_scatter(name: str, args: Sequence[Text], step: Step) -> str:
    """Return the statement for zeros, if all positions are different."""
    chosen = _subscripts([a.code for a in args[2:]], step.params["axis"])
    return f"{name}[{chosen}] = {args[1].code}"


def _write_scatter(to: Target) -> list[str]:
    lines = [] if to.reused_operand == 0 else [f"{to.out}[...] = {to.args[0]}"]
    axis, indices = to.step.params["axis"], to.args[2:]
    index = _index_text(indices, 0) if axis == 0 else ""
    if axis:
        index = f"({', '.join([*[to.np('everything')] * axis, *indices])})"
    return [*lines, f"{to.np('add.at')}({to.out}, {index}, {to.args[1]})"]


def _rows_of_indices(step: Step, axes: Axes) -> Role | None:
    """Return the role: rows of indices give rows of the result."""
    axis = common(axes[1:])
    if axes[0] is not None or axis is None:
        return None
    return Role(step.params["axis"] + axis, (None, *(axis,) * (len(axes) - 1)))


def _read_placed(args: Sequence[Text], step: Step) -> Text:
    shape, starts, strides = (step.params[k] for k in ("shape", "starts", "strides"))
    parts = ", ".join([a.code for a in args])
    lead = step.operands[0].ndim - len(strides[0])
    return Text(f"placed([{parts}], {shape_text(shape)}, {lead}, {starts}, {strides})")


def _write_placed(to: Target) -> list[str]:
    """Write each operand into a strided view of the result, which is zero elsewhere."""
    out, types = to.out, to.step.operands
    shape, starts, strides = (to.step.params[k] for k in ("shape", "starts", "strides"))
    lead = types[0].ndim - len(strides[0])
    size, lines = prod(shape[lead:]), [] if to.new else [f"{out}[...] = 0"]
    before = ":, " * lead
    parts = [f"flat = {out}.reshape({', '.join([*map(str, shape[:lead]), str(size)])})"]
    for x, type, start, steps in zip(to.args, types, starts, strides, strict=True):
        if not type.size:
            continue
        if not steps:
            parts.append(f"flat[{before}{start}] = {x}")
        elif len(steps) == 1 and steps[0] > 0:
            end = start + (type.shape[-1] - 1) * steps[0] + 1
            parts.append(f"flat[{before}{start}:{end}:{steps[0]}] = {x}")
        else:
            seen = to.np("lib.stride_tricks.as_strided")
            ahead = [size * prod(shape[a + 1 : lead]) for a in range(lead)]
            by = tuple_text([str(n * type.dtype.itemsize) for n in (*ahead, *steps)])
            where = f"{out}.reshape({out}.size)[{start}:]"
            parts.append(f"{seen}({where}, {shape_text(type.shape)}, {by})[...] = {x}")
    # One line, as the name `flat` is known in this line only.
    return [*lines, "; ".join(parts)]


def _scalar_placed(
    step: Step, operands: Sequence[Elements], in_order: bool, new: Numbers
) -> list[Number] | None:
    """Return the placed elements, and zeros elsewhere; None with batch axes."""
    if step.operands[0].ndim > len(step.params["strides"][0]):
        return None
    zero = new.constant(0.0 if step.results[0].dtype == FLOAT64 else False)
    made = np.full(step.results[0].size, zero, object)
    for x, start, steps in zip(
        operands, step.params["starts"], step.params["strides"], strict=True
    ):
        made[p.places_in(x.shape, start, steps)] = x
    found: list[Number] = made.tolist()
    return found


CARDS: dict[Op, Card] = {
    p.gather: replace(
        moving_card(_read_gather, _write_gather, None, Blocking(_rows_of_indices, 1, "")),
        aliases=True,
        fallible=True,
        nanoseconds=per_element(0.5, 0.5),
        scalar=None,
    ),
    p.placed: replace(
        moving_card(_read_placed, _write_placed, None, None),
        helper="placed",
        zeroed=True,
        scalar=Scalar(_scalar_placed),
    ),
    p.scatter_add: replace(
        moving_card(read_copy, _write_scatter, None, None),
        amend=amend_scatter,
        # NumPy's `add.at` reads past the end of an operand that it would have to broadcast.
        broadcasts=(0,),
        in_place=(0,),
        fallible=True,
        nanoseconds=MOVED,
        scalar=None,
        marks=Marks.UNKNOWN,
    ),
}
