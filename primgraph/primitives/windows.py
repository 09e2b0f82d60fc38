"""Sliding windows over the elements of an array, and the sum of overlapping windows.

Convolutions and pooling are built from these two primitives, which are each other's transposes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primgraph.errors import DTypeError, ShapeError
from primgraph.ir.assumptions import assume_at_least, equal
from primgraph.ir.graph import Value
from primgraph.ir.index_maps import Index, IndexMap, axes_at
from primgraph.ir.primitive import Linear, Types, primitive
from primgraph.ir.types import BOOL, Shape, TensorType, as_shape
from primgraph.primitives.reductions import accumulator

Slices = tuple[int, ...]


def span(size: int, dilation: int) -> int:
    """Return the number of elements that a window of `size` spans."""
    return dilation * (size - 1) + 1


def _counts(
    name: str, x: TensorType, axis: int, extents: Shape, sizes: Slices, steps: Slices, apart: Slices
) -> Shape:
    """Return the number of windows along each axis; raise `ShapeError` if there is none."""
    number = len(sizes)
    if not len(steps) == len(apart) == len(extents) == number or not 0 <= axis <= x.ndim - number:
        raise ShapeError(f"{name} of {x}: windows {sizes} from axis {axis} on do not fit")
    if not all(type(n) is int and n > 0 for n in (*sizes, *steps, *apart)):
        raise ShapeError(f"{name} takes sizes, steps and dilations of at least 1")
    counts = []
    for extent, size, step, dilation in zip(extents, sizes, steps, apart, strict=True):
        rest = extent - span(size, dilation)
        if not assume_at_least(rest, 0):
            raise ShapeError(
                f"{name}: a window of {span(size, dilation)} elements leaves an axis of {extent}"
            )
        counts.append(rest // step + 1)
    return tuple(counts)


def places(
    offset: Sequence[int], counts: Sequence[int], steps: Slices, dilations: Slices
) -> list[slice]:
    """Return the slices of the elements at `offset` of all windows."""
    return [
        slice(k * d, k * d + (n - 1) * step + 1, step)
        for k, n, step, d in zip(offset, counts, steps, dilations, strict=True)
    ]


def _windows(x: Any, *, axis: int, sizes: Slices, steps: Slices, dilations: Slices) -> Any:
    number, shape = len(sizes), np.shape(x)
    reach = [span(n, d) for n, d in zip(sizes, dilations, strict=True)]
    extents = shape[axis : axis + number]
    counts = [(n - m) // s + 1 for n, m, s in zip(extents, reach, steps, strict=True)]
    result = np.empty((*shape[:axis], *sizes, *counts, *shape[axis + number :]), x.dtype)
    before = (slice(None),) * axis
    for offset in np.ndindex(sizes):
        result[(*before, *offset)] = x[(*before, *places(offset, counts, steps, dilations))]
    return result


@primitive(impl=_windows, linear=True, moves=True, flops=0)
def windows(
    x: TensorType, *, axis: int, sizes: Slices, steps: Slices, dilations: Slices
) -> TensorType:
    """Return windows of `sizes` elements, `dilations` apart, whose starts are `steps` apart.

    The axes from `axis` on are replaced by as many axes of window elements, followed by as many
    axes that count windows. Along one axis element `[k, i]` is `x[i * step + k * dilation]`.
    """
    end = axis + len(sizes)
    counts = _counts("windows", x, axis, x.shape[axis:end], sizes, steps, dilations)
    return x.with_shape((*x.shape[:axis], *sizes, *counts, *x.shape[end:]))


def _slid_over(
    windowed: Shape, rank: int, axis: int, steps: Slices, dilations: Slices
) -> tuple[tuple[Index, ...], tuple[Index, ...]]:
    """The places of elements of windows, and of these elements in what windows slide over."""
    number = len(steps)
    inside = [
        Index(0, ((axis + n, apart), (axis + number + n, step)))
        for n, (step, apart) in enumerate(zip(steps, dilations, strict=True))
    ]
    behind = axes_at(a + number for a in range(axis + number, rank))
    return axes_at(range(len(windowed))), (*axes_at(range(axis)), *inside, *behind)


@windows.index_map
def _windows_map(
    k: int,
    i: int,
    operands: Types,
    results: Types,
    *,
    axis: int,
    sizes: Slices,
    steps: Slices,
    dilations: Slices,
) -> IndexMap:
    shape = results[0].shape
    return IndexMap(shape, *_slid_over(shape, operands[0].ndim, axis, steps, dilations))


@windows.transpose
def _windows_transpose(
    ct: Value, x: Linear, *, axis: int, sizes: Slices, steps: Slices, dilations: Slices
) -> tuple[Value]:
    extents = x.shape[axis : axis + len(sizes)]
    return (overlap_add(ct, axis=axis, extents=extents, steps=steps, dilations=dilations),)


@windows.batch
def _windows_batch(
    batched: tuple[bool, ...],
    x: Value,
    *,
    axis: int,
    sizes: Slices,
    steps: Slices,
    dilations: Slices,
) -> Value:
    return windows(x, axis=axis + 1, sizes=sizes, steps=steps, dilations=dilations)


def _overlap_add(x: Any, *, axis: int, extents: Shape, steps: Slices, dilations: Slices) -> Any:
    """Return the sum of windows, added offset by offset, so that the order of addition is fixed."""
    shape, number = np.shape(x), len(extents)
    ends = (*shape[:axis], *extents, *shape[axis + 2 * number :])
    total = np.zeros(ends, accumulator(x.dtype))
    before = (slice(None),) * axis
    counts = shape[axis + number : axis + 2 * number]
    for offset in np.ndindex(shape[axis : axis + number]):
        total[(*before, *places(offset, counts, steps, dilations))] += x[(*before, *offset)]
    return total.astype(x.dtype)


@primitive(impl=_overlap_add, linear=True, flops=lambda x, **_: x.size)
def overlap_add(
    x: TensorType, *, axis: int, extents: Shape, steps: Slices, dilations: Slices
) -> TensorType:
    """Return the sums of the elements of windows at their positions, in axes of `extents`.

    Windows are laid out as by `windows`. Elements in no window are 0; float16 accumulates in
    float32.
    """
    if x.dtype == BOOL:
        raise DTypeError(f"overlap_add does not take {x}", hint="cast it to an integer dtype first")
    number = len(extents)
    sizes, found = x.shape[axis : axis + number], x.shape[axis + number : axis + 2 * number]
    whole = x.with_shape((*x.shape[:axis], *as_shape(extents), *x.shape[axis + 2 * number :]))
    counts = _counts("overlap_add", x, axis, extents, sizes, steps, dilations)
    if len(found) != number or not all(equal(a, b) for a, b in zip(found, counts, strict=True)):
        raise ShapeError(f"overlap_add of {x}: axes of {extents} have windows {counts}")
    return whole


@overlap_add.index_map
def _overlap_add_map(
    k: int,
    i: int,
    operands: Types,
    results: Types,
    *,
    axis: int,
    extents: Shape,
    steps: Slices,
    dilations: Slices,
) -> IndexMap:
    shape = operands[0].shape
    part, whole = _slid_over(shape, results[0].ndim, axis, steps, dilations)
    return IndexMap(shape, whole, part)


@overlap_add.transpose
def _overlap_add_transpose(
    ct: Value, x: Linear, *, axis: int, extents: Shape, steps: Slices, dilations: Slices
) -> tuple[Value]:
    sizes = x.shape[axis : axis + len(extents)]
    return (windows(ct, axis=axis, sizes=sizes, steps=steps, dilations=dilations),)


@overlap_add.batch
def _overlap_add_batch(
    batched: tuple[bool, ...],
    x: Value,
    *,
    axis: int,
    extents: Shape,
    steps: Slices,
    dilations: Slices,
) -> Value:
    return overlap_add(x, axis=axis + 1, extents=extents, steps=steps, dilations=dilations)
