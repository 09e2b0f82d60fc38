"""How views and parts of arrays are written: what moves elements and computes nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from primgraph.codegen.cards.notation import ATOM, WIDEST, Spelling, Target, Text
from primgraph.codegen.plan.places import Place
from primgraph.codegen.plan.program import Site
from primgraph.codegen.plan.schedule import Step
from primgraph.codegen.plan.views import (
    VIEWS,
    Reshape,
    Slice,
    part_of,
    sliced,
    view_text,
)
from primgraph.ir.types import Shape
from primgraph.primitives.shapes import strided

# Views.


def viewed(name: str) -> Spelling:
    """The row of a primitive that is a view; only a copy of it is ever written."""

    def read(args: Sequence[Text], step: Step) -> Text:
        how = VIEWS[name](step, 0)
        return args[0] if how is None else Text(view_text(how, args[0].within(ATOM)))

    copied = name == "reshape"
    return Spelling(read, _write_copy if copied else _nothing, inline=True, view=VIEWS[name],
                    needs=_copied_into if copied else None)  # fmt: skip


def _nothing(to: Target) -> list[str]:
    raise AssertionError("a view is not written")


def _copied_into(site: Site) -> list[Place]:
    """A reshape of elements that are not in order is a copy into the result, as it was before."""
    return [site.part(Reshape(site.step.operands[0].shape))]


def _write_copy(to: Target) -> list[str]:
    return [f"{to.parts[0]}[...] = {to.args[0]}"]


# Parts of arrays.


def _assigned(step: Step) -> Slice | None:
    p, y = step.params, step.operands[1]
    return sliced(strided(p["starts"], y.shape, p["steps"]), step.results[0].shape)


def amend_slice(name: str, args: Sequence[Text], step: Step) -> str:
    how = _assigned(step)
    target = f"{name}[...]" if how is None else view_text(how, name)
    return f"{target} = {args[1].code}"


def read_copy(args: Sequence[Text], step: Step) -> Text:
    return Text(f"np.array({args[0].code})")


def assigned_part(site: Site) -> list[Place]:
    return [site.part(_assigned(site.step))]


def write_slice_assign(to: Target) -> list[str]:
    lines = [] if to.taken == 0 else [f"{to.out}[...] = {to.args[0]}"]
    return [*lines, f"{to.parts[0]}[...] = {to.args[1]}"]


def read_pad(args: Sequence[Text], step: Step) -> Text:
    if not step.params["low"]:
        return Text(f"np.array({args[0].code})")
    widths = tuple(zip(step.params["low"], step.params["high"], strict=True))
    return Text(f"np.pad({args[0].code}, {widths})")


def padding(site: Site) -> list[Place]:
    """Zero, the parts that are padding, and the one between them, for the operand."""
    dtype, shape = site.step.results[0].dtype, site.step.results[0].shape
    p, size = site.step.params, site.step.operands[0].shape
    inner = sliced([slice(a, a + n) for a, n in zip(p["low"], size, strict=True)], shape)
    zero = site.number(dtype.type(0).item(), dtype)
    edges = _edges(shape, p["low"], p["high"]) or [None]
    return [zero, *map(site.part, edges), site.part(inner)]


def write_pad(to: Target) -> list[str]:
    """Zeros at the edges and the operand between them; zeros everywhere if many axes have edges."""
    zero, *edges, inner = to.parts
    return [*(f"{edge}[...] = {zero}" for edge in edges), f"{inner}[...] = {to.args[0]}"]


def _edges(shape: Shape, low: Sequence[int], high: Sequence[int]) -> list[Slice | None]:
    """The parts of an array that are padding, if that is so along one axis only; else nothing."""
    padded = [a for a in range(len(low)) if low[a] or high[a]]
    if len(padded) != 1:
        return []
    axis, end = padded[0], shape[padded[0]]
    ranges = ((0, low[axis]), (end - high[axis], end))
    return [part_of(shape, axis, start, stop) for start, stop in ranges if start < stop]


def read_concat(args: Sequence[Text], step: Step) -> Text:
    """Long lists are joined in groups, so that no expression names very many variables."""
    parts = [a.code for a in args]
    axis = step.params["axis"]
    while len(parts) > WIDEST:
        groups = [parts[i : i + WIDEST] for i in range(0, len(parts), WIDEST)]
        parts = [f"np.concatenate([{', '.join(g)}], axis={axis})" for g in groups]
    return Text(f"np.concatenate([{', '.join(parts)}], axis={axis})")


def joined_parts(site: Site) -> list[Place]:
    """Where each of very many operands goes; fewer are written at once."""
    axis, shape, start = site.step.params["axis"], site.step.results[0].shape, 0
    parts: list[Place] = []
    for x in site.step.operands if len(site.operands) > WIDEST else ():
        parts.append(site.part(part_of(shape, axis, start, start + x.shape[axis])))
        start += x.shape[axis]
    return parts


def write_concat(to: Target) -> list[str]:
    if to.parts:
        return [f"{part}[...] = {x}" for part, x in zip(to.parts, to.args, strict=True)]
    axis = to.step.params["axis"]
    return [f"{to.np('concatenate')}(({', '.join(to.args)},), {axis}, {to.out})"]


def subscripts(indices: Sequence[str], axis: int) -> str:
    return ", ".join([*[":"] * axis, *indices])


def read_gather(args: Sequence[Text], step: Step) -> Text:
    chosen = subscripts([a.code for a in args[1:]], step.params["axis"])
    return Text(f"{args[0].within(ATOM)}[{chosen}]")


def write_gather(to: Target) -> list[str]:
    axis = to.step.params["axis"]
    # `take` has no cast from the widest unsigned integers to positions.
    if len(to.args) == 2 and to.step.operands[1].dtype != np.dtype(np.uint64):
        return [f"{to.args[0]}.take({to.args[1]}, {axis}, {to.out})"]
    read = f"{to.args[0]}[{subscripts(to.args[1:], axis)}]"
    return [f"{to.out}[...] = {read}"]


def index_text(indices: Sequence[str], axis: int) -> str:
    if len(indices) == 1 and axis == 0:
        return indices[0]
    if axis == 0:
        return f"({', '.join(indices)})"
    return f"({', '.join([*['slice(None)'] * axis, *indices])})"


def amend_scatter(name: str, args: Sequence[Text], step: Step) -> str:
    index = index_text([a.code for a in args[2:]], step.params["axis"])
    return f"np.add.at({name}, {index}, {args[1].code})"


def write_scatter(to: Target) -> list[str]:
    lines = [] if to.taken == 0 else [f"{to.out}[...] = {to.args[0]}"]
    axis, indices = to.step.params["axis"], to.args[2:]
    index = index_text(indices, 0) if axis == 0 else ""
    if axis:
        index = f"({', '.join([*[to.np('everything')] * axis, *indices])})"
    return [*lines, f"{to.np('add.at')}({to.out}, {index}, {to.args[1]})"]
