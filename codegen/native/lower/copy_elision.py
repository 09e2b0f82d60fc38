"""Values that consist of parts: joined, padded, among zeros, or laid over another value.

Each part is left by a nest at its place in the memory of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from primgraph.codegen.native.c.spellings import c_type
from primgraph.codegen.native.items import Nest, Node, Operand
from primgraph.codegen.native.lower.access import row_major, whole
from primgraph.codegen.native.lower.lowering_state import Draft, Overlaid
from primgraph.codegen.plan.copy_elision import chains, leaves_nothing
from primgraph.codegen.plan.schedule import Step
from primgraph.ir.sizes import names_in_params
from primgraph.ir.types import Shape
from primgraph.primitives.shapes import concat, pad, slice_assign

# Of larger arrays it is not looked at which elements are written.
_LOOKED_AT = 2**24


def put(
    draft: Draft,
    value: int,
    part: int,
    shape: Shape,
    offset: int,
    strides: Sequence[int],
    least: int = 0,
) -> int:
    """Leave `part`, of `shape`, in memory that is a part of `value`; in which nest."""
    # All parts are put by one function of C.
    at, _ = draft.nest_for(shape, (part,), max(least, draft.after_numpy))
    operand = draft.operand(part, shape, at)
    along = tuple([s for s, n in zip(strides, shape, strict=True) if n != 1])
    draft.node(at, Node(None, value, "put", "", (operand,), along, offset))
    return at


def put_together(draft: Draft, value: int, at: int) -> None:
    """Let `value` be in memory, of which the last part is put by the nest at that place."""
    draft.last_item(value, at)
    draft.reduced.add(value)
    draft.last[value] = max(at, draft.last.get(value, -1))


def join(draft: Draft, step: Step) -> None:
    """Leave operands in parts of the result."""
    (value,), shape, p = step.outputs, step.results[0].shape, step.params
    strides, at = row_major(shape), -1
    if _is_read_by_element(draft, step):
        _select(draft, step)
        return
    if step.op is concat:
        start = 0
        for v, type in zip(step.inputs, step.operands, strict=True):
            at = max(at, put(draft, value, v, type.shape, start * strides[p["axis"]], strides))
            start += type.shape[p["axis"]]
    elif step.op is pad:
        (x,), (type,) = step.inputs, step.operands
        first = put(draft, value, draft.zero(value), shape, 0, strides)
        offset = sum(n * s for n, s in zip(p["low"], strides, strict=True))
        at = put(draft, value, x, type.shape, offset, strides, first + 1)
    else:
        (x, y), (_, type) = step.inputs, step.operands
        offset = sum(n * s for n, s in zip(p["starts"], strides, strict=True))
        by = tuple([n * s for n, s in zip(p["steps"], strides, strict=True)])
        _overlay(draft, value, x, y, type.shape, offset, by)
        return
    put_together(draft, value, at)


def _is_read_by_element(draft: Draft, step: Step) -> bool:
    """Whether a part lies in one piece in what is a number elsewhere, and C has its elements; and
    whether what reads the whole goes over the same indices."""
    part = step.inputs[-1]
    if step.op is slice_assign:
        alone = step.inputs[0] in draft.numbers and all(n == 1 for n in step.params["steps"])
    else:
        alone = step.op is pad
    # An empty part is nowhere, also along an axis of one place, over which no loop goes.
    if 0 in step.operands[-1].shape:
        return False
    if not alone or draft.alone or part in draft.numbers or step.outputs[0] in draft.whole:
        return False
    type = step.results[0]
    return type.dtype.kind in "biuf" and c_type(type.dtype) is not None and type.size != 1


def _select(draft: Draft, step: Step) -> None:
    """Read a part where it is there, in the loops of what reads the whole."""
    (value,), x, type = step.outputs, step.inputs[-1], step.operands[-1]
    shape = step.results[0].shape
    below = step.inputs[0] if step.op is slice_assign else draft.zero(value)
    low = step.params["starts" if step.op is slice_assign else "low"]
    access = draft.access[x]
    at, _ = draft.nest_for(shape, (), draft.made_by.get(access.root, -1) + 1)
    draft.stored(access.root)
    draft.last[access.root] = max(at, draft.last.get(access.root, -1))
    axes = [i for i, n in enumerate(shape) if n != 1]
    offset, indices, within = access.offset, [], []
    for i in axes:
        offset -= low[i] * access.strides[i]
        if low[i] != 0 or type.shape[i] != shape[i]:
            indices.append(Operand(text="(long)", strides=tuple([int(i == k) for k in axes])))
            within.append((low[i], type.shape[i]))
    strides = tuple([access.strides[i] for i in axes])
    part = Operand(root=access.root, offset=offset, strides=strides)
    operands = (part, *indices)
    number = draft.numbers[below]
    draft.node(at, Node(step, value, "inner", number, operands, within=tuple(within)))
    draft.access[value] = whole(value, shape)
    draft.made_by[value] = at


def expect(draft: Draft) -> None:
    """Look which arrays come to be part by part, so that parts are left where they are to be by
    what computes them: what is filled with what is known before is filled first of all."""
    steps = draft.schedule.steps
    known = {v for step in steps if step.op.literal for v in step.outputs}
    for value, chain in chains(draft.schedule, ()):
        laid = [steps[k] for k in chain]
        if any(names_in_params(s.eqn.params) or s.operands[1].names for s in laid):
            continue
        first, begun = laid[0], laid[0].outputs[0]
        if leaves_nothing(laid):
            draft.unfilled.add(begun)
        elif value in draft.schedule.outputs and first.inputs[0] in known:
            draft.front[begun] = len(draft.items)
            draft.items.append(Nest(tuple([n for n in first.results[0].shape if n != 1])))


def place(draft: Draft, step: Step) -> None:
    """Operands at places of their own among zeros."""
    (value,), p = step.outputs, step.params
    shape, starts, steps = p["shape"], p["starts"], p["strides"]
    strides = row_major(shape)
    lead = step.operands[0].ndim - len(steps[0])
    at = first = put(draft, value, draft.zero(value), shape, 0, strides)
    for v, type, start, by in zip(step.inputs, step.operands, starts, steps, strict=True):
        to = (*strides[:lead], *by)
        at = max(at, put(draft, value, v, type.shape, start, to, first + 1))
    put_together(draft, value, at)


def _overlay(
    draft: Draft,
    value: int,
    x: int,
    part: int,
    shape: Shape,
    offset: int,
    strides: Sequence[int],
) -> None:
    """Let `value` be `x` with a part laid on it, of `shape`: in the memory of `x`, where that was
    made so, too, and nobody else reads it."""
    type = draft.types[value]
    below = draft.overlaid.get(x)
    if below is None or draft.uses[x] > 1 or below.begun < draft.after_numpy:
        below = _begun(draft, value, x)
    draft.overlaid[value] = below
    least = below.last + 1
    if not all(isinstance(n, int) for n in (offset, *shape, *strides)):
        below.laid = None
    # A part without elements may begin behind the last one.
    if below.laid is not None and 0 not in shape:
        here = np.ndarray(shape, bool, below.laid, offset, tuple(strides))
        # Parts that have no element in common may be laid in any order.
        least = least if here.any() else below.least
        here[...] = True
    below.last = max(below.last, put(draft, below.root, part, shape, offset, strides, least))
    if below.fill is not None and below.laid is not None and below.laid.all():
        nest = draft.nest(below.begun)
        nest.nodes[:] = [node for node in nest.nodes if node is not below.fill]
    put_together(draft, below.root, below.last)
    draft.access[value] = whole(below.root, type.shape)


def _begun(draft: Draft, value: int, x: int) -> Overlaid:
    """Memory for `value` that is filled with `x`, on which parts are to be laid."""
    type = draft.types[value]
    known = not type.names and type.size <= _LOOKED_AT
    laid = np.zeros(type.size, bool) if known else None
    if value in draft.unfilled:
        return Overlaid(value, draft.after_numpy, None, draft.after_numpy, -1, laid)
    strides = row_major(type.shape)
    first = draft.front.get(value, -1)
    if first >= draft.after_numpy:
        operand = draft.operand(x, type.shape, first)
        along = tuple([s for s, n in zip(strides, type.shape, strict=True) if n != 1])
        draft.node(first, Node(None, value, "put", "", (operand,), along))
    else:
        first = put(draft, value, x, type.shape, 0, strides)
    return Overlaid(value, first, draft.nest(first).nodes[-1], first + 1, first, laid)
