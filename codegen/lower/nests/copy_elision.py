"""Copy elision: values that are joined, padded or assigned from parts.

Nests write each part directly to its place in the memory of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from primgraph.codegen.ir.access import row_major, whole
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ir.statements import Nest, Node, Operand
from primgraph.codegen.lower.arrays.copy_elision import chains, leaves_nothing
from primgraph.codegen.lower.nests.lowering_state import AssembledArray, LoweringState
from primgraph.codegen.lower.nests.shifts import read_parts
from primgraph.codegen.ops.c.spellings import c_type
from primgraph.ir.index_maps import Index, IndexMap
from primgraph.ir.sizes import names_in_params
from primgraph.ir.types import Shape

# Larger arrays do not track which elements are assigned.
_LOOKED_AT = 2**24


def store_part(
    draft: LoweringState,
    value: int,
    part: int,
    shape: Shape,
    offset: int,
    strides: Sequence[int],
    least: int = 0,
) -> int:
    """Store `part`, of `shape`, into a part of `value`; return the index of the nest."""
    # All parts are stored by one C function.
    at, _ = draft.nest_for(shape, (part,), max(least, draft.after_numpy))
    operand = draft.operand(part, shape, at)
    along = tuple([s for s, n in zip(strides, shape, strict=True) if n != 1])
    draft.node(at, Node(None, value, "put", "", (operand,), along, offset))
    return at


def store_last_part(draft: LoweringState, value: int, at: int) -> None:
    """Declare `value` as in memory, with its last part stored by the nest at `at`."""
    draft.last_item(value, at)
    draft.reduced.add(value)
    draft.last[value] = max(at, draft.last.get(value, -1))


class _Part(NamedTuple):
    """An operand in the result: its elements begin at `starts`, `steps` apart."""

    value: int
    shape: Shape
    starts: Shape
    steps: Shape


def _parts(step: Step) -> tuple[int | None, list[_Part]]:
    """Return the parts of the result, and the operand that they replace parts of, if any."""
    below, parts = None, []
    for i, (value, type) in enumerate(zip(step.inputs, step.operands, strict=True)):
        shown = step.dependence(0, i)
        assert isinstance(shown, IndexMap)
        if shown.hole is not None:
            below = value
            continue
        places = [p for p in shown.result if isinstance(p, Index)]
        starts, steps = [p.start for p in places], [p.terms[0][1] for p in places]
        parts.append(_Part(value, type.shape, tuple(starts), tuple(steps)))
    return below, parts


def join(draft: LoweringState, step: Step) -> None:
    """Store the operands into parts of the result."""
    (value,), type = step.outputs, step.results[0]
    below, parts = _parts(step)
    is_whole = sum(t.size for t in step.operands) == type.size
    plain = below is None and is_whole and all(n == 1 for part in parts for n in part.steps)
    if plain and read_parts(draft, step, [part.starts for part in parts]):
        return
    if _is_read_by_element(draft, step, below, parts, is_whole):
        _select(draft, step, draft.zero(value) if below is None else below, parts[0])
        return
    strides, at, least = row_major(type.shape), -1, 0
    if below is None and not is_whole:
        at = store_part(draft, value, draft.zero(value), type.shape, 0, strides)
        least = at + 1
    for v, shape, starts, steps in parts:
        offset = sum(n * s for n, s in zip(starts, strides, strict=True))
        by = tuple([n * s for n, s in zip(steps, strides, strict=True)])
        if below is not None:
            _overlay(draft, value, below, v, shape, offset, by)
            return
        at = max(at, store_part(draft, value, v, shape, offset, by, least))
    store_last_part(draft, value, at)


def _is_read_by_element(
    draft: LoweringState, step: Step, below: int | None, parts: Sequence[_Part], is_whole: bool
) -> bool:
    """Return whether a part embedded in a constant is better selected per element.

    This requires that the whole is read over the same indices, and that C has its dtype.
    """
    part = parts[-1]
    alone = not is_whole if below is None else below in draft.numbers
    # An empty part has no position, also along an axis of size 1, which has no loop.
    if not alone or 0 in part.shape or any(n != 1 for n in part.steps):
        return False
    if draft.alone or part.value in draft.numbers or step.outputs[0] in draft.whole:
        return False
    type = step.results[0]
    return type.dtype.kind in "biuf" and c_type(type.dtype) is not None and type.size != 1


def _select(draft: LoweringState, step: Step, below: int, part: _Part) -> None:
    """Select between part and constant per element, in the loops that read the whole."""
    (value,), shape, low = step.outputs, step.results[0].shape, part.starts
    access = draft.access[part.value]
    at, _ = draft.nest_for(shape, (), draft.made_by.get(access.root, -1) + 1)
    draft.store_value(access.root)
    draft.last[access.root] = max(at, draft.last.get(access.root, -1))
    axes = [i for i, n in enumerate(shape) if n != 1]
    offset, indices, within = access.offset, [], []
    for i in axes:
        offset -= low[i] * access.strides[i]
        if low[i] != 0 or part.shape[i] != shape[i]:
            indices.append(Operand(text="(long)", strides=tuple([int(i == k) for k in axes])))
            within.append((low[i], part.shape[i]))
    strides = tuple([access.strides[i] for i in axes])
    read = Operand(root=access.root, offset=offset, strides=strides)
    number = draft.numbers[below]
    draft.node(at, Node(step, value, "inner", number, (read, *indices), within=tuple(within)))
    draft.access[value] = whole(value, shape)
    draft.made_by[value] = at


def expect(draft: LoweringState) -> None:
    """Find arrays that are assembled from parts, so that parts are stored in place.

    Fills with constants are moved to the front.
    """
    steps = draft.schedule.steps
    known = {v for step in steps if step.op.literal for v in step.outputs}
    for value, chain in chains(draft.schedule, ()):
        laid = [steps[k] for k in chain]
        if any(names_in_params(s.eqn.params) or s.operands[1].names for s in laid):
            continue
        first, begun = laid[0], laid[0].outputs[0]
        if leaves_nothing(laid):
            draft.unfilled.add(begun)
        elif value in draft.whole and first.inputs[0] in known:
            draft.front[begun] = len(draft.items)
            whole, part = first.results[0].shape, first.operands[1].shape
            if len(chain) == 1 and all(n == 1 for n in first.params["steps"]):
                draft.borders[begun] = _borders(whole, part, first.params["starts"])
            domains = [shape for _, shape in draft.borders.get(begun, [((), whole)])]
            draft.items += [Nest(tuple([n for n in shape if n != 1])) for shape in domains]


def _borders(whole: Shape, part: Shape, starts: Shape) -> list[tuple[Shape, Shape]]:
    """Return the starts and shapes of boxes that cover the elements of the whole beside a part."""
    found: list[tuple[Shape, Shape]] = []
    for axis, (n, m, start) in enumerate(zip(whole, part, starts, strict=True)):
        # Along earlier axes these boxes are as long as the part, along later ones as the whole.
        for first, count in ((0, start), (start + m, n - start - m)):
            if count:
                begin = (*starts[:axis], first, *(0,) * (len(whole) - axis - 1))
                found.append((begin, (*part[:axis], count, *whole[axis + 1 :])))
    return found


def place(draft: LoweringState, step: Step) -> None:
    """Store operands at their positions among zeros."""
    (value,), p = step.outputs, step.params
    shape, starts, steps = p["shape"], p["starts"], p["strides"]
    strides = row_major(shape)
    lead = step.operands[0].ndim - len(steps[0])
    at = first = store_part(draft, value, draft.zero(value), shape, 0, strides)
    for v, type, start, by in zip(step.inputs, step.operands, starts, steps, strict=True):
        to = (*strides[:lead], *by)
        at = max(at, store_part(draft, value, v, type.shape, start, to, first + 1))
    store_last_part(draft, value, at)


def _overlay(
    draft: LoweringState,
    value: int,
    x: int,
    part: int,
    shape: Shape,
    offset: int,
    strides: Sequence[int],
) -> None:
    """Assign a part of `shape` onto `x`, in the memory of `x` if no other value reads it."""
    type = draft.types[value]
    below = draft.overlaid.get(x)
    if below is None or draft.uses[x] > 1 or below.begun < draft.after_numpy:
        below = _begin_overlay(draft, value, x)
    draft.overlaid[value] = below
    least = below.last + 1
    if not all(isinstance(n, int) for n in (offset, *shape, *strides)):
        below.laid = None
    # An empty part may begin behind the last element.
    if below.laid is not None and 0 not in shape:
        here = np.ndarray(shape, bool, below.laid, offset, tuple(strides))
        # Disjoint parts may be stored in any order.
        least = least if here.any() else below.least
        here[...] = True
    below.last = max(below.last, store_part(draft, below.root, part, shape, offset, strides, least))
    if below.fill is not None and below.laid is not None and below.laid.all():
        nest = draft.nest(below.begun)
        nest.nodes[:] = [node for node in nest.nodes if node is not below.fill]
    store_last_part(draft, below.root, below.last)
    draft.access[value] = whole(below.root, type.shape)


def _begin_overlay(draft: LoweringState, value: int, x: int) -> AssembledArray:
    """Create memory for `value`, filled with `x`, onto which parts are assigned."""
    type = draft.types[value]
    known = not type.names and type.size <= _LOOKED_AT
    laid = np.zeros(type.size, bool) if known else None
    if value in draft.unfilled:
        return AssembledArray(value, draft.after_numpy, None, draft.after_numpy, -1, laid)
    strides = row_major(type.shape)
    first = draft.front.get(value, -1)
    if first >= draft.after_numpy and value in draft.borders:
        boxes = draft.borders[value]
        for at, (starts, shape) in enumerate(boxes, first):
            offset = sum(n * s for n, s in zip(starts, strides, strict=True))
            along = tuple([s for s, n in zip(strides, shape, strict=True) if n != 1])
            operand = draft.operand(x, shape, at)
            draft.node(at, Node(None, value, "put", "", (operand,), along, offset))
        last = first + len(boxes) - 1
        return AssembledArray(value, first, None, last + 1, last, None)
    if first >= draft.after_numpy:
        operand = draft.operand(x, type.shape, first)
        along = tuple([s for s, n in zip(strides, type.shape, strict=True) if n != 1])
        draft.node(first, Node(None, value, "put", "", (operand,), along))
    else:
        first = store_part(draft, value, x, type.shape, 0, strides)
    return AssembledArray(value, first, draft.nest(first).nodes[-1], first + 1, first, laid)
