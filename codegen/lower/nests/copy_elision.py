"""Copy elision: values that are joined, padded or assigned from parts.

Nests write each part directly to its place in the memory of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from primgraph.codegen.ir.access import loop_strides, row_major, whole
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ir.statements import Nest, Node, Operand
from primgraph.codegen.lower.arrays.copy_elision import chains, leaves_nothing
from primgraph.codegen.lower.nests.lowering_state import AssembledArray, LoweringState
from primgraph.codegen.ops.c.spellings import c_type
from primgraph.ir.index_maps import Index, IndexMap
from primgraph.ir.sizes import names_in_params
from primgraph.ir.types import Shape

# Larger arrays do not track which elements are assigned.
_LOOKED_AT = 2**24


class Part(NamedTuple):
    """A value in another one: its elements begin at `offset`, and are `strides` apart."""

    value: int
    shape: Shape
    offset: int
    strides: Sequence[int]


def whole_part(value: int, shape: Shape) -> Part:
    """Return a value as a part that is the whole."""
    return Part(value, shape, 0, row_major(shape))


def store_part(draft: LoweringState, value: int, part: Part, least: int = 0) -> int:
    """Store a part of `value`; return the index of the nest."""
    # All parts are stored by one C function.
    at = draft.nest_for(part.shape, (part.value,), max(least, draft.after_numpy))
    _store_at(draft, value, part, at)
    return at


def _store_at(draft: LoweringState, value: int, part: Part, at: int) -> None:
    operand = draft.operand(part.value, part.shape, at)
    along = loop_strides(part.strides, part.shape)
    draft.node(at, Node(None, value, "put", "", (operand,), along, part.offset))


def store_last_part(draft: LoweringState, value: int, at: int) -> None:
    """Declare `value` as in memory, with its last part stored by the nest at `at`."""
    draft.last_item(value, at)
    draft.reduced.add(value)
    draft.keep(value, at)


class _Operand(NamedTuple):
    """An operand in the result: its elements begin at `starts`, `steps` apart."""

    value: int
    shape: Shape
    starts: Shape
    steps: Shape

    def part_of(self, shape: Shape) -> Part:
        """Return the part of a result of that shape."""
        strides = row_major(shape)
        offset = sum(n * s for n, s in zip(self.starts, strides, strict=True))
        by = [n * s for n, s in zip(self.steps, strides, strict=True)]
        return Part(self.value, self.shape, offset, by)


def _parts(step: Step) -> tuple[int | None, list[_Operand]]:
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
        parts.append(_Operand(value, type.shape, tuple(starts), tuple(steps)))
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
    if below is not None:
        _overlay(draft, value, below, parts[0].part_of(type.shape))
        return
    at, least = -1, 0
    if not is_whole:
        at = store_part(draft, value, whole_part(draft.zero(value), type.shape))
        least = at + 1
    for part in parts:
        at = max(at, store_part(draft, value, part.part_of(type.shape), least))
    store_last_part(draft, value, at)


def _is_read_by_element(
    draft: LoweringState, step: Step, below: int | None, parts: Sequence[_Operand], is_whole: bool
) -> bool:
    """Return whether a part embedded in a constant is better selected per element.

    This requires that the whole is read over the same indices, and that C has its dtype.
    """
    part = parts[-1]
    alone = not is_whole if below is None else below in draft.numbers and draft.numbers[below].text
    # An empty part has no position, also along an axis of size 1, which has no loop.
    if not alone or 0 in part.shape or any(n != 1 for n in part.steps):
        return False
    if draft.alone or part.value in draft.numbers or step.outputs[0] in draft.whole:
        return False
    type = step.results[0]
    return type.dtype.kind in "biuf" and c_type(type.dtype) is not None and type.size != 1


def _select(draft: LoweringState, step: Step, below: int, part: _Operand) -> None:
    """Select between part and constant per element, in the loops that read the whole."""
    (value,), shape, low = step.outputs, step.results[0].shape, part.starts
    access = draft.access[part.value]
    at = draft.nest_for(shape, (), draft.made_by.get(access.root, -1) + 1)
    draft.read(access.root, at)
    axes = [i for i, n in enumerate(shape) if n != 1]
    offset, indices, within = access.offset, [], []
    for i in axes:
        offset -= low[i] * access.strides[i]
        if low[i] != 0 or part.shape[i] != shape[i]:
            indices.append(Operand(cast="long", strides=tuple([int(i == k) for k in axes])))
            within.append((low[i], part.shape[i]))
    strides = tuple([access.strides[i] for i in axes])
    read = Operand(root=access.root, offset=offset, strides=strides)
    number = draft.numbers[below].text
    draft.compute(at, Node(step, value, "inner", number, (read, *indices), within=tuple(within)))


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
            draft.fills[begun] = boxes = [whole_part(first.inputs[0], first.results[0].shape)]
            if len(chain) == 1 and all(n == 1 for n in first.params["steps"]):
                boxes[:] = _borders(first)
            draft.items += [Nest(tuple([n for n in box.shape if n != 1])) for box in boxes]


def _borders(step: Step) -> list[Part]:
    """Return the parts that cover the elements around the part that a step assigns."""
    (x, _), (whole, part), starts = step.inputs, step.operands, step.params["starts"]
    found, strides = [], row_major(whole.shape)
    for axis, (n, m, start) in enumerate(zip(whole.shape, part.shape, starts, strict=True)):
        # Along earlier axes these parts are as long as what is assigned.
        shape = (*part.shape[:axis], 0, *whole.shape[axis + 1 :])
        for first, count in ((0, start), (start + m, n - start - m)):
            if count:
                place = (*starts[:axis], first)
                offset = sum(n * s for n, s in zip(place, strides, strict=False))
                box = (*shape[:axis], count, *shape[axis + 1 :])
                found.append(Part(x, box, offset, strides))
    return found


def place(draft: LoweringState, step: Step) -> None:
    """Store operands at their positions among zeros."""
    (value,), p = step.outputs, step.params
    shape, starts, steps = p["shape"], p["starts"], p["strides"]
    at = first = store_part(draft, value, whole_part(draft.zero(value), shape))
    before = row_major(shape)[: step.operands[0].ndim - len(steps[0])]
    for v, type, start, by in zip(step.inputs, step.operands, starts, steps, strict=True):
        part = Part(v, type.shape, start, (*before, *by))
        at = max(at, store_part(draft, value, part, first + 1))
    store_last_part(draft, value, at)


def _overlay(draft: LoweringState, value: int, x: int, part: Part) -> None:
    """Assign a part onto `x`, in the memory of `x` if no other value reads it."""
    type = draft.types[value]
    below = draft.overlaid.get(x)
    if below is None or draft.schedule.uses[x] > 1 or below.begun < draft.after_numpy:
        below = _begin_overlay(draft, value, x)
    draft.overlaid[value] = below
    least = below.last + 1
    _, shape, offset, strides = part
    if not all(isinstance(n, int) for n in (offset, *shape, *strides)):
        below.laid = None
    # An empty part may begin behind the last element.
    if below.laid is not None and 0 not in shape:
        here = np.ndarray(shape, bool, below.laid, offset, tuple(strides))
        # Disjoint parts may be stored in any order.
        least = least if here.any() else below.least
        here[...] = True
    below.last = max(below.last, store_part(draft, below.root, part, least))
    store_last_part(draft, below.root, below.last)
    draft.access[value] = whole(below.root, type.shape)


def _begin_overlay(draft: LoweringState, value: int, x: int) -> AssembledArray:
    """Create memory for `value`, filled with `x`, onto which parts are assigned."""
    type = draft.types[value]
    known = not type.names and type.size <= _LOOKED_AT
    laid = np.zeros(type.size, bool) if known else None
    begun, first = draft.after_numpy, -1
    if value not in draft.unfilled:
        begun = first = draft.front.get(value, -1)
        if begun >= draft.after_numpy:
            for first, part in enumerate(draft.fills[value], begun):
                _store_at(draft, value, part, first)
        else:
            begun = first = store_part(draft, value, whole_part(x, type.shape))
    return AssembledArray(value, begun, max(first + 1, draft.after_numpy), first, laid)


# Maximum number of parts of an array, and of pieces of a loop, each of which repeats the nest.
_PARTS, _PIECES = 3, 6


def read_parts(draft: LoweringState, step: Step, starts: Sequence[Shape]) -> bool:
    """Read the parts of a joined array, which begin at `starts`, in the nest that reads the whole.

    Return False, without effect, if the array is better joined in memory.
    """
    (value,), shape = step.outputs, step.results[0].shape
    if len(starts) > _PARTS or not _are_read_by_element(draft, step):
        return False
    axes = [i for i, n in enumerate(shape) if any(s[i] for s in starts)]
    if len(axes) != 1 or shape[axes[0]] == 1:
        # All parts but one are empty, or there is more than one axis.
        return False
    (axis,), loops = axes, [i for i, n in enumerate(shape) if n != 1]
    accesses = [draft.access[v] for v in step.inputs]
    others = {tuple([a.strides[i] for i in loops if i != axis]) for a in accesses}
    if len(others) > 1:
        # Outside of the innermost loop a part is chosen by its first element only.
        return False
    roots = [a.root for a in accesses]
    at = draft.nest_for(shape, (), max(draft.made_by.get(root, -1) + 1 for root in roots))
    place, edges = loops.index(axis), [s[axis] for s in starts]
    if len(_edges(draft.nest(at).nodes, place).union(edges)) > _PIECES:
        return False
    operands = []
    for access, first in zip(accesses, edges, strict=True):
        draft.read(access.root, at)
        offset = access.offset - first * access.strides[axis]
        strides = tuple([access.strides[i] for i in loops])
        operands.append(Operand(root=access.root, offset=offset, strides=strides))
    counts = [type.shape[axis] for type in step.operands]
    within = tuple(zip(edges, counts, strict=True))
    draft.compute(at, Node(step, value, "parts", "", tuple(operands), (), place, (), within))
    return True


def _are_read_by_element(draft: LoweringState, step: Step) -> bool:
    """Return whether loops may read the parts of the result where they are."""
    (value,), type = step.outputs, step.results[0]
    if draft.alone or value in draft.whole or c_type(type.dtype) is None:
        return False
    if any(t.names for t in (type, *step.operands)) or 0 in type.shape:
        return False
    return not any(v in draft.numbers for v in step.inputs)


def _edges(nodes: Sequence[Node], axis: int) -> set[int]:
    """Return the indices along an axis at which the parts of a nest begin."""
    found = [n for node in nodes if node.kind == "parts" for n in node.within
             if node.offset == axis]  # fmt: skip
    return {first for first, _ in found}
