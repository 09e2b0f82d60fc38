"""Gather and scatter-add at computed positions."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from primgraph.errors import DTypeError, ShapeError
from primgraph.ir.facts.choices import CHOICE, MOVES_BACK, MOVES_FORTH, RAISES, Choice
from primgraph.ir.facts.ranges import RANGE, hull
from primgraph.ir.graph import Value
from primgraph.ir.index_maps import (
    IndexMap,
    Lookup,
    Place,
    axes_at,
    identity,
    tied_map,
)
from primgraph.ir.primitive import Linear, Types, primitive
from primgraph.ir.types import INT64, Shape, TensorType, common_type
from primgraph.primitives.constants import constant_op, iota, zeros_like
from primgraph.primitives.elementwise import cast
from primgraph.primitives.shapes import permute, reshape, slice_, with_batch_axis


def _check_indices(name: str, x: TensorType, indices: tuple[TensorType, ...], axis: int) -> None:
    if not indices or len({i.shape for i in indices}) != 1:
        raise ShapeError(f"{name} takes index arrays of one shape, not {list(indices)}")
    if any(i.dtype.kind not in "iu" for i in indices):
        raise DTypeError(f"{name} takes integer index arrays, not {list(indices)}")
    if axis < 0 or axis + len(indices) > x.ndim:
        raise ShapeError(f"{name} of {x}: no {len(indices)} axes from axis {axis} on")


def _gather_type(x: TensorType, indices: tuple[TensorType, ...], axis: int) -> TensorType:
    return x.with_shape(x.shape[:axis] + indices[0].shape + x.shape[axis + len(indices) :])


def _index(indices: tuple[Any, ...], axis: int) -> tuple[Any, ...]:
    return (slice(None),) * axis + indices


@primitive(
    impl=lambda x, *indices, axis: x[_index(indices, axis)], linear=(0,), moves=True, flops=0
)
def gather(x: TensorType, *indices: TensorType, axis: int) -> TensorType:
    """Return `x[..., i, j, ...]`: index arrays of one shape replace the axes from `axis` on.

    Indices may repeat, and negative ones count from the end; one out of range is an IndexError at
    run time.
    """
    _check_indices("gather", x, indices, axis)
    return _gather_type(x, indices, axis)


gather.declare(CHOICE, Choice())
gather.declare(RANGE, lambda x, *indices, axis: hull([x]))


@gather.transpose
def _gather_transpose(ct: Value, x: Linear, *indices: Value, axis: int) -> tuple[Any, ...]:
    total = scatter_add(zeros_like(x), ct, *indices, axis=axis)
    return (total, *(None for _ in indices))


def _scatter_add(x: Any, y: Any, *indices: Any, axis: int) -> Any:
    result = np.array(x)
    np.add.at(result, _index(indices, axis), y)
    return result


def _scatter_add_flops(x: TensorType, y: TensorType, *indices: TensorType, axis: int) -> int:
    """Return one addition per element of `y`."""
    return y.size


@primitive(impl=_scatter_add, linear=(0, 1), flops=_scatter_add_flops)
def scatter_add(x: TensorType, y: TensorType, *indices: TensorType, axis: int) -> TensorType:
    """Return `x` with the elements of `y` added at the positions that `gather` would read."""
    _check_indices("scatter_add", x, indices, axis)
    read = _gather_type(x, indices, axis)
    if y.shape != read.shape:
        raise ShapeError(f"scatter_add into {x}: {y} is not what gather would give, {read}")
    common_type("scatter_add", read, y)
    return x


@scatter_add.transpose
def _scatter_add_transpose(
    ct: Value, x: Value | Linear, y: Value | Linear, *indices: Value, axis: int
) -> tuple[Any, ...]:
    return (ct, gather(ct, *indices, axis=axis), *(None for _ in indices))


def _move_axes(x: Value, axis: int, count: int, to: int) -> Value:
    """Move `count` axes, starting at `axis`, to position `to`."""
    moved = list(range(axis, axis + count))
    order = [i for i in range(len(x.shape)) if i not in moved]
    order[to:to] = moved
    return permute(x, axes=tuple(order))


def _batch_index(indices: list[Value]) -> list[Value]:
    """Return batched indices preceded by the index of the sample."""
    sample = iota(shape=indices[0].shape, axis=0, dtype=INT64)
    return [sample, *(cast(i, dtype=INT64) for i in indices)]


def _places_read(
    rank: int, count: int, index_rank: int, axis: int, first: int
) -> tuple[Place, ...]:
    """Places along the axes of an array, of which `count` from `axis` on are looked up.

    The axes of the indices stand for these in what is read; operand `first` is the first index.
    """
    inside = tuple(range(axis, axis + index_rank))
    found: list[Place] = [*axes_at(range(axis))]
    found += [Lookup(first + n, inside) for n in range(count)]
    found += axes_at(a - count + index_rank for a in range(axis + count, rank))
    return tuple(found)


@gather.index_map
def _gather_map(k: int, i: int, operands: Types, results: Types, *, axis: int) -> IndexMap:
    (x, *indices), result = operands, results[0]
    rank = indices[0].ndim
    read = axes_at(range(result.ndim))
    if i:
        return IndexMap(result.shape, read, axes_at(range(axis, axis + rank)))
    return IndexMap(result.shape, read, _places_read(x.ndim, len(indices), rank, axis, 1))


@scatter_add.index_map
def _scatter_add_map(k: int, i: int, operands: Types, results: Types, *, axis: int) -> IndexMap:
    x, y, *indices = operands
    if i == 0:
        return identity(x.shape)
    rank = indices[0].ndim
    if i == 1:
        places = _places_read(x.ndim, len(indices), rank, axis, 2)
        return IndexMap(y.shape, places, axes_at(range(y.ndim)))
    # An index may send an element to any place along the axes that it stands for.
    return tied_map(operands[i].shape, x.shape, [None] * rank, exact=False)


gather.declare(MOVES_FORTH, True)
for _op in (gather, scatter_add):
    for _kind in (RAISES, MOVES_BACK):
        _op.declare(_kind, True)


@gather.batch
def _gather_batch(batched: tuple[bool, ...], x: Value, *indices: Value, axis: int) -> Value:
    count = len(indices)
    if not any(batched[1:]):
        return gather(x, *indices, axis=axis + 1)
    if not batched[0]:
        # An `x` without the batch axis is not repeated: the indices get one more axis.
        found = gather(x, *with_batch_axis(batched[1:], indices), axis=axis)
        return _move_axes(found, axis, 1, 0)
    each = with_batch_axis(batched, (x, *indices))
    rank = len(each[1].shape) - 1
    front = _move_axes(each[0], axis + 1, count, 1)
    result = gather(front, *_batch_index(each[1:]), axis=0)
    # The index axes come first; move the axes that preceded them back in front.
    return _move_axes(result, 1 + rank, axis, 1)


@scatter_add.batch
def _scatter_add_batch(
    batched: tuple[bool, ...], x: Value, y: Value, *indices: Value, axis: int
) -> Value:
    count = len(indices)
    if not any(batched[2:]):
        whole, part = with_batch_axis(batched[:2], (x, y))
        return scatter_add(whole, part, *indices, axis=axis + 1)
    each = with_batch_axis(batched, (x, y, *indices))
    rank = len(each[2].shape) - 1
    front = _move_axes(each[0], axis + 1, count, 1)
    part = _move_axes(each[1], axis + 1, rank, 1)
    result = scatter_add(front, part, *_batch_index(each[2:]), axis=0)
    return _move_axes(result, 1, count, axis + 1)


# Arrays with few nonzero elements, at positions known when the graph is built.


def places_in(shape: Shape, start: int, strides: Shape) -> Any:
    """Return the flat position of each element of such an array, by `start` and `strides`."""
    found: Any = np.full(shape, start, np.int64)
    for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        along = np.arange(extent, dtype=np.int64) * stride
        found += along.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return found


def _place_parts(*xs: Any, shape: Shape, starts: Shape, strides: tuple[Shape, ...]) -> Any:
    lead = xs[0].ndim - len(strides[0])
    result = np.zeros((*shape[:lead], prod(shape[lead:])), xs[0].dtype)
    for x, start, steps in zip(xs, starts, strides, strict=True):
        result[..., places_in(x.shape[lead:], start, steps)] = x
    return result.reshape(shape)


@primitive(impl=_place_parts, linear=True, moves=True, flops=0)
def placed(*xs: TensorType, shape: Shape, starts: Shape, strides: tuple[Shape, ...]) -> TensorType:
    """Return zeros of `shape` with the elements of each operand written at their own positions.

    Positions count in row-major order: element `i` of operand `k` is at `starts[k]` plus the dot
    product of `strides[k]` with `i`, and no two elements share one. Leading axes of the operands
    without strides are leading axes of the result.
    """
    if not xs or not len(xs) == len(starts) == len(strides):
        raise ShapeError(f"placed takes a start and strides for each operand, not for {len(xs)}")
    lead = xs[0].ndim - len(strides[0])
    size = prod(shape[lead:]) if lead >= 0 else 0
    for x, start, steps in zip(xs, starts, strides, strict=True):
        common_type("placed", xs[0], x.with_shape(xs[0].shape))
        if x.ndim - len(steps) != lead or lead < 0 or x.shape[:lead] != shape[:lead]:
            raise ShapeError(f"placed puts {x} by strides {steps} into shape {shape}")
        ends = [step * (n - 1) for step, n in zip(steps, x.shape[lead:], strict=True)]
        first, last = (start + sum(f(e, 0) for e in ends) for f in (min, max))
        if prod(x.shape[lead:]) and not 0 <= first <= last < size:
            raise ShapeError(f"placed puts {x} from {first} to {last} among {size} elements")
    return xs[0].with_shape(shape)


@placed.index_map
def _placed_map(
    k: int,
    i: int,
    operands: Types,
    results: Types,
    *,
    shape: Shape,
    starts: Shape,
    strides: tuple[Shape, ...],
) -> IndexMap:
    """Strides count in row-major order, across axes: only the leading axes are tied."""
    x, lead = operands[i], operands[i].ndim - len(strides[i])
    return tied_map(x.shape, shape, [*range(lead), *[None] * len(strides[i])], exact=False)


@placed.transpose
def _placed_transpose(
    ct: Value, *xs: Linear, shape: Shape, starts: Shape, strides: tuple[Shape, ...]
) -> tuple[Value, ...]:
    lead = len(xs[0].shape) - len(strides[0])
    flat = reshape(ct, shape=(*shape[:lead], prod(shape[lead:])))
    return tuple(
        [
            _read_back(flat, x.shape, lead, start, steps)
            for x, start, steps in zip(xs, starts, strides, strict=True)
        ]
    )


def _read_back(flat: Value, shape: Shape, lead: int, start: int, strides: Shape) -> Value:
    """Return the elements along the last axis of `flat` at the positions of one operand."""
    if len(strides) == 1 and strides[0]:
        return slice_(
            flat,
            starts=(*(0,) * lead, start),
            sizes=shape,
            steps=(*(1,) * lead, *strides),
        )
    op, params = constant_op(places_in(shape[lead:], start, strides))
    return gather(flat, op(**params), axis=lead)


@placed.batch
def _placed_batch(
    batched: tuple[bool, ...],
    *xs: Value,
    shape: Shape,
    starts: Shape,
    strides: tuple[Shape, ...],
) -> Value:
    each = with_batch_axis(batched, xs)
    return placed(*each, shape=(each[0].shape[0], *shape), starts=starts, strides=strides)
