"""Cards of primitives that only move elements: views, and parts of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from math import prod

import numpy as np

from primgraph.codegen.ir.axis_semantics import Axes, Blocking, Role, common
from primgraph.codegen.ir.card import Site
from primgraph.codegen.ir.extents import Text
from primgraph.codegen.ir.places import Place
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ir.views import view_text
from primgraph.codegen.ops.card import Card, Marks, array_card
from primgraph.codegen.ops.cost_model import MOVED
from primgraph.codegen.ops.spelling.complex_step import ANALYTIC
from primgraph.codegen.ops.spelling.library import call, library
from primgraph.codegen.ops.spelling.literals import parameter_text
from primgraph.codegen.ops.spelling.notation import (
    WIDEST,
    Needs,
    Read,
    Target,
    Write,
    statements,
)
from primgraph.codegen.ops.spelling.numbers import Number, Numbers
from primgraph.codegen.ops.spelling.scalar import MOVING, Elements, Scalar
from primgraph.ir.primitive import Op
from primgraph.ir.types import FLOAT64, Shape
from primgraph.ir.views import Reshape, Slice, part_of, slice_view
from primgraph.primitives import shapes as s
from primgraph.primitives.shapes import strided_slices

# Up to these limits, of numbers and of copies, copies are faster than a call that joins arrays.
_FEW_NUMBERS = 256
_MOST_COPIES = 5


def moving_card(read: Read, write: Write, needs: Needs | None, blocking: Blocking | None) -> Card:
    """Return the card of a primitive that moves elements to a new array."""
    made = array_card(read, write, needs, blocking, MOVED, ANALYTIC)
    return replace(made, scalar=MOVING, marks=Marks.MOVED)


# Views.


def view_card(blocking: Blocking) -> Card:
    """Return the card of a primitive that is a view."""
    return replace(moving_card(_read_view, _not_written, None, blocking), inline=True)


def _read_view(args: Sequence[Text], step: Step) -> Text:
    how = step.form.seen[0]
    return args[0] if how is None else Text(library().view(how, args[0]))


def _not_written(to: Target) -> list[str]:
    raise AssertionError("a view is not written")


def _copied_into(site: Site) -> list[Place]:
    """Return the result in the operand's shape: a reshape that is no view copies into it."""
    return [site.part(Reshape(site.step.operands[0].shape))]


# Parts of arrays.


def assigned_slice(step: Step) -> Slice | None:
    p, y = step.params, step.operands[1]
    shape = step.results[0].shape
    return slice_view(strided_slices(p["starts"], y.shape, p["steps"], shape), shape)


def _amend_slice(name: str, args: Sequence[Text], step: Step) -> str:
    how = assigned_slice(step)
    target = f"{name}[...]" if how is None else view_text(how, name)
    return f"{target} = {args[1].code}"


def read_copy(args: Sequence[Text], step: Step) -> Text:
    """Return a copy of the first operand."""
    return Text(library().copy(args[0]))


def _assigned_part(site: Site) -> list[Place]:
    return [site.part(assigned_slice(site.step))]


def _write_slice_assign(to: Target) -> list[str]:
    is_there = to.reused_operand == 0 or to.is_overwritten
    lines = [] if is_there else [f"{to.out}[...] = {to.args[0]}"]
    return [*lines, f"{to.parts[0]}[...] = {to.args[1]}"]


def _read_pad(args: Sequence[Text], step: Step) -> Text:
    if not step.params["low"]:
        return read_copy(args, step)
    widths = tuple(zip(step.params["low"], step.params["high"], strict=True))
    return Text(call("pad", args[0].code, parameter_text(widths)))


def _padding(site: Site) -> list[Place]:
    """Return zero, the padded parts of the result, and the inner part for the operand."""
    dtype, shape = site.step.results[0].dtype, site.step.results[0].shape
    p, size = site.step.params, site.step.operands[0].shape
    inner = slice_view([slice(a, a + n) for a, n in zip(p["low"], size, strict=True)], shape)
    zero = site.number(dtype.type(0).item(), dtype)
    edges = _edges(shape, p["low"], p["high"]) or [None]
    return [zero, *map(site.part, edges), site.part(inner)]


def _write_pad(to: Target) -> list[str]:
    """Write zero edges and the operand inside; fill with zeros if several axes have edges."""
    zero, *edges, inner = to.parts
    return [*(f"{edge}[...] = {zero}" for edge in edges), f"{inner}[...] = {to.args[0]}"]


def _edges(shape: Shape, low: Sequence[int], high: Sequence[int]) -> list[Slice | None]:
    """Return the padded parts if only one axis is padded, else nothing."""
    padded = [a for a in range(len(low)) if low[a] or high[a]]
    if len(padded) != 1:
        return []
    axis, end = padded[0], shape[padded[0]]
    ranges = ((0, low[axis]), (end - high[axis], end))
    return [part_of(shape, axis, start, stop) for start, stop in ranges if start < stop]


def _read_concat(args: Sequence[Text], step: Step) -> Text:
    """Return a concatenation; long lists are joined in groups, to limit names per expression."""
    parts = [a.code for a in args]
    axis = step.params["axis"]
    while len(parts) > WIDEST:
        groups = [parts[i : i + WIDEST] for i in range(0, len(parts), WIDEST)]
        parts = [call("concatenate", f"[{', '.join(g)}]", axis=axis) for g in groups]
    return Text(call("concatenate", f"[{', '.join(parts)}]", axis=axis))


def _joined_parts(site: Site) -> list[Place]:
    """Return the places of very many operands, or of a few short ones; else none."""
    step = site.step
    if len(site.operands) <= WIDEST:
        if not site.is_lasting or step.results[0].is_larger(_FEW_NUMBERS):
            return []
        count = len(step.inputs)
        return [
            site.part(Reshape((count, *step.operands[k].shape)), _rows(pieces, count))
            if len(pieces) > 1
            else site.part(_piece(step, pieces[0]))
            for k, pieces in _fillings(step)
        ]
    return [site.part(_piece(step, k)) for k in range(len(site.operands))]


def _rows(taken: range, count: int) -> Slice | None:
    return slice_view([slice(taken.start, taken.stop, taken.step)], (count,))


def _piece(step: Step, position: int) -> Slice | None:
    """Return the part of the result for an operand, or None for the whole."""
    axis = step.params["axis"]
    ends = list(accumulate([x.shape[axis] for x in step.operands], initial=0))
    return part_of(step.results[0].shape, axis, ends[position], ends[position + 1])


def _fillings(step: Step) -> list[tuple[int, range]]:
    """Return which operand is copied to which pieces of the result, in order.

    An operand that occurs several times is copied to all pieces first. The list is empty if there
    are too many copies to pay.
    """
    places: dict[int, list[int]] = {}
    for k, value in enumerate(step.inputs):
        places.setdefault(value, []).append(k)
    shapes = {x.shape for x in step.operands}
    if step.params["axis"] or len(shapes) > 1:
        found = [(k, range(k, k + 1)) for k in range(len(step.inputs))]
    else:
        most = max(places.values(), key=len)
        found = [(most[0], range(len(step.inputs)))] if len(most) > 1 else []
        for ks in places.values():
            if ks is most and found:
                continue
            gaps = {b - a for a, b in pairwise(ks)}
            if len(gaps) == 1:
                found.append((ks[0], range(ks[0], ks[-1] + 1, gaps.pop())))
            else:
                found += [(k, range(k, k + 1)) for k in ks]
    return found if len(found) <= _MOST_COPIES else []


def _write_concat(to: Target) -> list[str]:
    if len(to.args) > WIDEST:
        return [f"{part}[...] = {x}" for part, x in zip(to.parts, to.args, strict=True)]
    if to.parts:
        pairs = zip(to.parts, _fillings(to.step), strict=True)
        return [f"{part}[...] = {to.args[k]}" for part, (k, _) in pairs]
    axis = to.step.params["axis"]
    return [f"{to.np('concatenate')}(({', '.join(to.args)},), {axis}, {to.out})"]


def _scalar_pad(
    step: Step, operands: Sequence[Elements], in_order: bool, new: Numbers
) -> list[Number]:
    """Return the elements, with zeros around them."""
    places = step.op.impl(np.ones(operands[0].shape, bool), **step.params)
    made = np.empty(places.shape, object)
    made[...] = new.constant(0.0 if step.results[0].dtype == FLOAT64 else False)
    made[places] = operands[0].ravel()
    found: list[Number] = made.ravel().tolist()
    return found


# Rows of the result, and of operands.


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
    """Return the axis of `shape` that counts the same rows as `axis` of `source`, or None."""
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


def role_along_axis(step: Step, axes: Axes) -> Role | None:
    """Return the role of a step that works along one axis, other than that of rows."""
    axis = common(axes)
    if axis is None or step.params["axis"] == axis:
        return None
    return Role(axis, (axis,) * len(axes))


# Steps along one axis, in blocks of rows along another one.
ALONG = Blocking(role_along_axis, 0, "")


def _pad(step: Step, axes: Axes) -> Role | None:
    axis = axes[0]
    assert axis is not None
    widened = step.params["low"] and (step.params["low"][axis] or step.params["high"][axis])
    return None if widened else Role(axis, (axis,))


def _slice_assign(step: Step, axes: Axes) -> Role | None:
    axis, (x, y) = common(axes), step.operands
    if axis is None or x.shape[axis] != y.shape[axis]:
        return None
    whole = step.params["starts"][axis] == 0 and step.params["steps"][axis] == 1
    return Role(axis, (axis, axis)) if whole else None


CARDS: dict[Op, Card] = {
    s.reshape: replace(
        view_card(Blocking(_reshape, 0, "shape")),
        write=statements("{parts[0]}[...] = {0}"),
        needs=_copied_into,
    ),
    s.permute: view_card(Blocking(_permute, 0, "")),
    s.broadcast: view_card(Blocking(_broadcast, 0, "shape")),
    s.reverse: view_card(Blocking(_reverse, 0, "")),
    s.slice_: view_card(Blocking(_slice, 0, "sizes")),
    s.split: view_card(ALONG),
    s.slice_assign: replace(
        moving_card(read_copy, _write_slice_assign, _assigned_part, Blocking(_slice_assign, 0, "")),
        amend=_amend_slice,
        broadcasts=(0, 1),
        in_place=(0,),
    ),
    s.pad: replace(
        moving_card(_read_pad, _write_pad, _padding, Blocking(_pad, 0, "")),
        scalar=Scalar(_scalar_pad),
    ),
    s.concat: moving_card(_read_concat, _write_concat, _joined_parts, ALONG),
}
