"""Gather, scatter-add and overlapping windows in loop nests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from primgraph.codegen.ir.access import Access, row_major, whole
from primgraph.codegen.ir.c_extents import is_zero
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ir.statements import Node
from primgraph.codegen.lower.nests.copy_elision import store_last_part, store_part
from primgraph.codegen.lower.nests.lowering_state import LoweringState, copy_or_constant
from primgraph.codegen.ops.c.spellings import c_type
from primgraph.ir.assumptions import is_at_least
from primgraph.ir.dims import Dim
from primgraph.ir.types import Shape, TensorType
from primgraph.primitives.indexing import scatter_add


def can_index(draft: LoweringState, step: Step) -> bool:
    """Return whether loops can gather or scatter at the indices of `step`."""
    x, axis, scatters = step.operands[0], step.params["axis"], step.op is scatter_add
    indices = step.operands[1 + scatters :]
    end = axis + len(indices)
    if scatters and (c_type(x.dtype) is None or x.dtype.kind == "c"):
        return False
    # NumPy still checks the indices into an array without elements.
    rest, reached = prod((*x.shape[:axis], *x.shape[end:])), x.shape[axis:end]
    if is_zero(indices[0].size) or (is_at_least(rest, 1) and not any(map(is_zero, reached))):
        return True
    if not any(type(n) is Dim for n in (rest, *reached)) or any(map(is_zero, (rest, *reached))):
        return False
    # If this depends on symbolic sizes, loops do it only where NumPy would have to take the whole.
    return draft.complete or _are_within(draft, step.inputs[1 + scatters :], reached)


def _are_within(draft: LoweringState, indices: Sequence[int], reached: Shape) -> bool:
    """Return whether indices are constants, all in bounds."""
    for v, n in zip(indices, reached, strict=True):
        array = draft.constants.get(v)
        array = draft.exact.get(v) if array is None else array
        if array is None or type(n) is Dim or np.min(array) < -n or np.max(array) >= n:
            return False
    return True


def _broadcast_indices(
    draft: LoweringState,
    indices: Sequence[int],
    types: Sequence[TensorType],
    shape: Shape,
    axis: int,
) -> list[int]:
    """Broadcast index arrays, whose axes begin at `axis` of `shape`, to the whole shape."""
    found = []
    for v, type in zip(indices, types, strict=True):
        own = len(draft.types)
        draft.types[own] = type.with_shape(shape)
        if v in draft.numbers:
            draft.same(own, v)
        else:
            access = draft.access[v]
            rest = (0,) * (len(shape) - axis - type.ndim)
            strides = ((0,) * axis + access.strides) + rest
            draft.access[own] = Access(access.root, access.offset, strides)
        found.append(own)
    return found


def _index_after(draft: LoweringState, value: int) -> int:
    """Return the first index behind the item that computes `value`."""
    return draft.made_by.get(draft.access[value].root, -1) + 1


def take(draft: LoweringState, step: Step) -> None:
    """Add a gather: read an element at indexed positions."""
    (x, *indices), (value,), axis = step.inputs, step.outputs, step.params["axis"]
    type, *types = step.operands
    shape, count = step.results[0].shape, len(indices)
    if x in draft.numbers:
        x = copy_or_constant(draft, x)
    access, own = draft.access[x], len(draft.types)
    along = (0,) * types[0].ndim
    strides = (*access.strides[:axis], *along, *access.strides[axis + count :])
    draft.types[own] = step.results[0]
    draft.access[own] = Access(access.root, access.offset, strides)
    spread = _broadcast_indices(draft, indices, types, shape, axis)
    at, _ = draft.nest_for(shape, spread, _index_after(draft, x))
    reach = zip(type.shape[axis : axis + count], access.strides[axis:], strict=False)
    operands = tuple([draft.operand(v, shape, at) for v in (own, *spread)])
    draft.node(at, Node(step, value, "take", "", operands, reach=tuple(reach)))
    draft.access[value] = whole(value, shape)
    draft.made_by[value] = at


def take_along(draft: LoweringState, step: Step) -> None:
    """Reorder elements along an axis by an array of positions."""
    (x, index), (value,), axis = step.inputs, step.outputs, step.params["axis"]
    shape = step.results[0].shape
    if x in draft.numbers:
        x = copy_or_constant(draft, x)
    access, own = draft.access[x], len(draft.types)
    strides = tuple([0 if i == axis else s for i, s in enumerate(access.strides)])
    draft.types[own] = step.results[0]
    draft.access[own] = Access(access.root, access.offset, strides)
    at, _ = draft.nest_for(shape, (index,), _index_after(draft, x))
    operands = tuple([draft.operand(v, shape, at) for v in (own, index)])
    reach = ((shape[axis], access.strides[axis]),)
    draft.node(at, Node(step, value, "take", "", operands, reach=reach))
    draft.access[value] = whole(value, shape)
    draft.made_by[value] = at


def add_at(draft: LoweringState, step: Step) -> None:
    """Add a scatter-add: elements are added at indexed positions, in order."""
    (x, y, *indices), (value,), axis = step.inputs, step.outputs, step.params["axis"]
    type, part, *types = step.operands
    shape, count = part.shape, len(indices)
    strides = row_major(type.shape)
    first = store_part(draft, value, x, type.shape, 0, strides)
    spread = _broadcast_indices(draft, indices, types, shape, axis)
    at, _ = draft.nest_for(shape, (y, *spread), first + 1)
    reach = zip(type.shape[axis : axis + count], strides[axis:], strict=False)
    operands = tuple([draft.operand(v, shape, at) for v in (y, *spread)])
    along = (*strides[:axis], *(0,) * types[0].ndim, *strides[axis + count :])
    longer = tuple([s for s, n in zip(along, shape, strict=True) if n != 1])
    draft.node(at, Node(step, value, "add", "", operands, longer, reach=tuple(reach)))
    store_last_part(draft, value, at)


# Windows.


def strides_of_windows(params: Mapping[str, Any], strides: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of windows over an array with these strides."""
    axis, steps, apart = params["axis"], params["steps"], params["dilations"]
    end = axis + len(steps)
    over = strides[axis:end]
    within = [s * d for s, d in zip(over, apart, strict=True)]
    counting = [s * d for s, d in zip(over, steps, strict=True)]
    return (*strides[:axis], *within, *counting, *strides[end:])


def window(draft: LoweringState, step: Step) -> None:
    """Alias windows to the elements of their array."""
    access = draft.access[step.inputs[0]]
    strides = strides_of_windows(step.params, access.strides)
    draft.access[step.outputs[0]] = Access(access.root, access.offset, strides)
