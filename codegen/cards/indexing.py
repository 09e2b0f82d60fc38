"""Cards of reading and adding at computed positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from primgraph.codegen.cards.card import Card, Marks
from primgraph.codegen.cards.notation import ATOM, Target, Text
from primgraph.codegen.cards.shapes import moved, read_copy
from primgraph.codegen.plan.roles import Axes, Blocking, Role, common
from primgraph.codegen.plan.schedule import Step
from primgraph.codegen.plan.work import MOVED, per_element
from primgraph.ir.primitive import Op
from primgraph.primitives import indexing as p


def _subscripts(indices: Sequence[str], axis: int) -> str:
    return ", ".join([*[":"] * axis, *indices])


def _read_gather(args: Sequence[Text], step: Step) -> Text:
    chosen = _subscripts([a.code for a in args[1:]], step.params["axis"])
    return Text(f"{args[0].within(ATOM)}[{chosen}]")


def _write_gather(to: Target) -> list[str]:
    axis = to.step.params["axis"]
    # `take` has no cast from the widest unsigned integers to positions.
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


def _amend_scatter(name: str, args: Sequence[Text], step: Step) -> str:
    index = _index_text([a.code for a in args[2:]], step.params["axis"])
    return f"np.add.at({name}, {index}, {args[1].code})"


def _write_scatter(to: Target) -> list[str]:
    lines = [] if to.taken == 0 else [f"{to.out}[...] = {to.args[0]}"]
    axis, indices = to.step.params["axis"], to.args[2:]
    index = _index_text(indices, 0) if axis == 0 else ""
    if axis:
        index = f"({', '.join([*[to.np('everything')] * axis, *indices])})"
    return [*lines, f"{to.np('add.at')}({to.out}, {index}, {to.args[1]})"]


def _rows_of_indices(step: Step, axes: Axes) -> Role | None:
    """Rows of indices give rows of the result."""
    axis = common(axes[1:])
    if axes[0] is not None or axis is None:
        return None
    return Role(step.params["axis"] + axis, (None, *(axis,) * (len(axes) - 1)))


CARDS: dict[Op, Card] = {
    p.gather: replace(
        moved(_read_gather, _write_gather, None, Blocking(_rows_of_indices, 1, "")),
        fallible=True,
        nanoseconds=per_element(0.5, 0.5),
        scalar=None,
    ),
    p.scatter_add: replace(
        moved(read_copy, _write_scatter, None, None),
        amend=_amend_scatter,
        # NumPy's `add.at` reads past the end of an operand that it would have to repeat.
        broadcasts=(0,),
        in_place=(0,),
        fallible=True,
        nanoseconds=MOVED,
        scalar=None,
        marks=Marks.UNKNOWN,
    ),
}
