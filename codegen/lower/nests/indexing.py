"""Gather and scatter-add in loop nests."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from primgraph.codegen.ir.access import Access, loop_strides, row_major
from primgraph.codegen.ir.c_extents import is_zero
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ir.statements import Node
from primgraph.codegen.lower.nests.copy_elision import store_last_part, store_part, whole_part
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
        own = draft.new_value(type.with_shape(shape))
        if v in draft.numbers:
            draft.same(own, v)
        else:
            access = draft.access[v]
            rest = (0,) * (len(shape) - axis - type.ndim)
            strides = ((0,) * axis + access.strides) + rest
            draft.access[own] = Access(access.root, access.offset, strides)
        found.append(own)
    return found


def take(draft: LoweringState, step: Step) -> None:
    """Add a gather: read an element at indexed positions."""
    axis, types = step.params["axis"], step.operands[1:]
    end = axis + len(types)
    own, strides = _source(draft, step, range(axis, end), types[0].ndim)
    spread = _broadcast_indices(draft, step.inputs[1:], types, step.results[0].shape, axis)
    _take(draft, step, own, spread, strides[axis:end])


def take_along(draft: LoweringState, step: Step) -> None:
    """Reorder elements along an axis by an array of positions."""
    axis = step.params["axis"]
    own, strides = _source(draft, step, range(axis, axis + 1), 1)
    _take(draft, step, own, step.inputs[1:], strides[axis : axis + 1])


def _source(draft: LoweringState, step: Step, axes: range, new: int) -> tuple[int, tuple[int, ...]]:
    """Return the first elements along `axes` of operand 0, with `new` axes there; its strides."""
    x = step.inputs[0]
    access = draft.access[copy_or_constant(draft, x) if x in draft.numbers else x]
    strides = access.strides
    kept = (*strides[: axes.start], *(0,) * new, *strides[axes.stop :])
    return draft.new_value(step.results[0], Access(access.root, access.offset, kept)), strides


def _take(
    draft: LoweringState, step: Step, own: int, indices: Sequence[int], strides: Sequence[int]
) -> None:
    """Read the elements of `own` at indices along axes with these strides."""
    (value,), shape, axis = step.outputs, step.results[0].shape, step.params["axis"]
    at = draft.nest_for(shape, indices, draft.made_by.get(draft.access[own].root, -1) + 1)
    reach = zip(step.operands[0].shape[axis:], strides, strict=False)
    operands = tuple([draft.operand(v, shape, at) for v in (own, *indices)])
    draft.compute(at, Node(step, value, "take", "", operands, reach=tuple(reach)))


def add_at(draft: LoweringState, step: Step) -> None:
    """Add a scatter-add: elements are added at indexed positions, in order."""
    (x, y, *indices), (value,), axis = step.inputs, step.outputs, step.params["axis"]
    type, part, *types = step.operands
    shape, count = part.shape, len(indices)
    strides = row_major(type.shape)
    first = store_part(draft, value, whole_part(x, type.shape))
    spread = _broadcast_indices(draft, indices, types, shape, axis)
    at = draft.nest_for(shape, (y, *spread), first + 1)
    reach = zip(type.shape[axis : axis + count], strides[axis:], strict=False)
    operands = tuple([draft.operand(v, shape, at) for v in (y, *spread)])
    along = (*strides[:axis], *(0,) * types[0].ndim, *strides[axis + count :])
    longer = loop_strides(along, shape)
    draft.node(at, Node(step, value, "add", "", operands, longer, reach=tuple(reach)))
    store_last_part(draft, value, at)
