"""Cards of sliding windows, and of the sum of overlapping windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from primgraph.codegen.ir.axis_semantics import ROWS
from primgraph.codegen.ir.card import Site
from primgraph.codegen.ir.places import Place
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ir.views import tuple_text
from primgraph.codegen.ops.card import Card, array_card
from primgraph.codegen.ops.cost_model import per_element
from primgraph.codegen.ops.shapes import moving_card
from primgraph.codegen.ops.spelling.complex_step import ANALYTIC
from primgraph.codegen.ops.spelling.notation import Target, filling, reading
from primgraph.ir.primitive import Op
from primgraph.ir.types import FLOAT16, Shape
from primgraph.ir.views import Slice, slice_view
from primgraph.primitives import windows as p

# Maximum number of offsets in a window for which each has a statement of its own.
_FEW = 27


def _sizes(step: Step) -> tuple[int, ...]:
    """Return the sizes of a window."""
    axis, number = step.params["axis"], len(step.params["steps"])
    windowed = step.results[0] if step.op is p.windows else step.operands[0]
    return windowed.shape[axis : axis + number]


def _windows_view(x: str, step: Step) -> str:
    """Return NumPy's view of all windows of an array with these steps and dilations."""
    axis, sizes, steps, apart = (step.params[k] for k in ("axis", "sizes", "steps", "dilations"))
    number, rank = len(sizes), step.operands[0].ndim
    spans = tuple_text([str(p.span(n, d)) for n, d in zip(sizes, apart, strict=True)])
    axes = tuple_text([str(axis + i) for i in range(number)])
    seen = f"np.lib.stride_tricks.sliding_window_view({x}, {spans}, {axes})"
    by = [1] * axis + list(steps) + [1] * (rank - axis - number) + list(apart)
    while by and by[-1] == 1:
        by.pop()
    if by:
        seen += f"[{', '.join(':' if n == 1 else f'::{n}' for n in by)}]"
    order = [*range(axis), *range(rank, rank + number), *range(axis, rank)]
    if order != sorted(order):
        seen += f".transpose({', '.join(map(str, order))})"
    return seen


def _offset_slice(shape: Shape, axis: int, offset: Sequence[int]) -> Slice | None:
    """Return the elements at `offset` of all windows, in axes of size 1."""
    slices = [slice(0, n) for n in shape]
    for i, k in enumerate(offset):
        slices[axis + i] = slice(k, k + 1)
    return slice_view(slices, shape)


def _position_slice(shape: Shape, step: Step, offset: Sequence[int]) -> Slice | None:
    """Return the positions of these elements in the array."""
    axis, number = step.params["axis"], len(offset)
    windowed = step.results[0] if step.op is p.windows else step.operands[0]
    counts = windowed.shape[axis + number : axis + 2 * number]
    slices = [slice(0, n) for n in shape]
    steps, apart = step.params["steps"], step.params["dilations"]
    slices[axis : axis + number] = p.places(offset, counts, steps, apart)
    return slice_view(slices, shape)


def _offsets(step: Step) -> list[tuple[int, ...]]:
    sizes = _sizes(step)
    return list(np.ndindex(sizes)) if prod(sizes) <= _FEW else []


def _windows_parts(site: Site) -> list[Place]:
    """Return, for each offset, the elements of the result and their source."""
    step, found = site.step, []
    whole, shape = step.operands[0].shape, step.results[0].shape
    for offset in _offsets(step):
        found.append(site.part(_offset_slice(shape, step.params["axis"], offset)))
        found.append(site.operand_part(0, _position_slice(whole, step, offset)))
    return found


def _drop_offset_axes(step: Step, part: str) -> str:
    """Return a part of all windows without the size-1 axes of the offset."""
    axis, number = step.params["axis"], len(_sizes(step))
    return f"{part}[{', '.join([':'] * axis + ['0'] * number)}]"


def _write_windows(to: Target) -> list[str]:
    if not to.parts:
        return [f"{to.out}[...] = {_windows_view(to.args[0], to.step)}"]
    pairs = zip(to.parts[::2], to.parts[1::2], strict=True)
    return [f"{_drop_offset_axes(to.step, part)}[...] = {source}" for part, source in pairs]


_read_overlap = reading("overlap_add({0}, {axis}, {extents}, {steps}, {dilations})")


def _overlap_parts(site: Site) -> list[Place]:
    """Return, for each offset, the target elements and the elements to add."""
    step, found = site.step, []
    if step.results[0].dtype == FLOAT16:
        return []
    shape, windowed = step.results[0].shape, step.operands[0].shape
    for offset in _offsets(step):
        found.append(site.part(_position_slice(shape, step, offset)))
        found.append(site.operand_part(0, _offset_slice(windowed, step.params["axis"], offset)))
    return found


def _write_overlap(to: Target) -> list[str]:
    if not to.parts:
        return filling(_read_overlap)(to)
    add = to.np("add")
    lines = [f"{to.out}[...] = 0"]
    for target, part in zip(to.parts[::2], to.parts[1::2], strict=True):
        lines.append(f"{add}({target}, {_drop_offset_axes(to.step, part)}, {target})")
    return lines


CARDS: dict[Op, Card] = {
    p.windows: replace(
        moving_card(
            reading("sliding_windows({0}, {axis}, {sizes}, {steps}, {dilations})"),
            _write_windows,
            _windows_parts,
            ROWS,
        ),
        scalar=None,
        helper="sliding_windows",
    ),
    p.overlap_add: replace(
        array_card(
            _read_overlap,
            _write_overlap,
            _overlap_parts,
            ROWS,
            per_element(1.0, 1.0),
            ANALYTIC,
        ),
        helper="overlap_add",
    ),
}
