"""Structural primitives: they move elements without arithmetic. All are linear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np

from primgraph.errors import ShapeError
from primgraph.ir.assumptions import assume_at_least, equal, is_at_least
from primgraph.ir.dims import Dim
from primgraph.ir.facts.choices import CHOICE, JOINS, MOVES_BACK, MOVES_FORTH, Choice
from primgraph.ir.facts.matrices import POSITIVE, STRUCTURE
from primgraph.ir.facts.ranges import RANGE, join_operands
from primgraph.ir.graph import Value
from primgraph.ir.index_maps import IndexMap, Strided, embedding_map, identity
from primgraph.ir.primitive import Fact, Linear, Types, primitive
from primgraph.ir.types import Shape, TensorType, as_shape, check_axis, common_type, drop_axes
from primgraph.ir.views import Expand, Permute, Reshape, Slice, flip_view, part_of, slice_view
from primgraph.primitives.constants import zeros_like

Slices = tuple[int, ...]


def with_batch_axis(batched: Sequence[bool], inputs: Sequence[Value]) -> list[Value]:
    """Return `inputs` with a leading batch axis each; those without one are repeated along it.

    `batched` tells which inputs have the axis, as for a batching rule.

    >>> from primgraph.extend import Builder, TensorType, with_batch_axis
    >>> builder, f64 = Builder("f"), np.dtype("float64")
    >>> x = builder.input(TensorType((4, 3), f64), "x")
    >>> y = builder.input(TensorType((3,), f64), "y")
    >>> with builder:
    ...     [str(v.type) for v in with_batch_axis((True, False), (x, y))]
    ['f64[4,3]', 'f64[4,3]']
    """
    size = next(v.shape[0] for v, has in zip(inputs, batched, strict=True) if has)
    return [
        v if has else broadcast(v, shape=(size, *v.shape), new_axes=(0,))
        for v, has in zip(inputs, batched, strict=True)
    ]


def _shift_axes(axes: Sequence[int]) -> tuple[int, ...]:
    """Return `axes` shifted by one, behind a new leading axis."""
    return tuple(a + 1 for a in axes)


@primitive(impl=lambda x, *, shape: np.reshape(x, shape), linear=True, flops=0)
def reshape(x: TensorType, *, shape: Shape) -> TensorType:
    """Return the same elements, in row-major order, in another shape of the same size."""
    result = x.with_shape(as_shape(shape))
    if not equal(result.size, x.size):
        raise ShapeError(f"reshape cannot turn {x} into shape {shape}: the sizes differ")
    return result


@reshape.transpose
def _reshape_transpose(ct: Value, x: Linear, *, shape: Shape) -> tuple[Value]:
    return (reshape(ct, shape=x.shape),)


@reshape.view
def _reshape_view(k: int, x: TensorType, *, shape: Shape) -> Reshape | None:
    return None if shape == x.shape else Reshape(shape)


@reshape.batch
def _reshape_batch(batched: tuple[bool, ...], x: Value, *, shape: Shape) -> Value:
    return reshape(x, shape=(x.shape[0], *shape))


@primitive(impl=lambda x, *, axes: np.transpose(x, axes), linear=True, flops=0)
def permute(x: TensorType, *, axes: tuple[int, ...]) -> TensorType:
    """Return `x` transposed: axis `i` of the result is axis `axes[i]` of `x`."""
    if sorted(axes) != list(range(x.ndim)):
        raise ShapeError(f"{axes} is not a permutation of the axes of {x}")
    return x.with_shape(tuple(x.shape[a] for a in axes))


@permute.transpose
def _permute_transpose(ct: Value, x: Linear, *, axes: tuple[int, ...]) -> tuple[Value]:
    inverse = tuple(axes.index(i) for i in range(len(axes)))
    return (permute(ct, axes=inverse),)


@permute.view
def _permute_view(k: int, x: TensorType, *, axes: tuple[int, ...]) -> Permute | None:
    return None if axes == tuple(range(len(axes))) else Permute(axes)


@permute.batch
def _permute_batch(batched: tuple[bool, ...], x: Value, *, axes: tuple[int, ...]) -> Value:
    return permute(x, axes=(0, *_shift_axes(axes)))


@primitive(
    impl=lambda x, *, shape, new_axes: np.array(
        np.broadcast_to(np.expand_dims(x, new_axes), shape)
    ),
    linear=True,
    flops=0,
)
def broadcast(x: TensorType, *, shape: Shape, new_axes: tuple[int, ...]) -> TensorType:
    """Return `x` repeated along `new_axes` of `shape`; the other axes are those of `x`."""
    result = x.with_shape(as_shape(shape))
    for axis in new_axes:
        check_axis("broadcast", axis, result)
    if drop_axes(shape, new_axes) != x.shape or list(new_axes) != sorted(set(new_axes)):
        raise ShapeError(f"broadcast of {x} along {new_axes} does not give shape {shape}")
    return result


@broadcast.view
def _broadcast_view(
    k: int, x: TensorType, *, shape: Shape, new_axes: tuple[int, ...]
) -> Expand | None:
    """Return the view that inserts axes of size one that broadcasting does not, or None."""
    new = set(new_axes)
    marks = [a in new for a in range(len(shape))]
    while marks and marks[0]:
        marks.pop(0)
    while marks and not marks[-1]:
        marks.pop()
    return Expand(tuple(marks)) if marks else None


@broadcast.batch
def _broadcast_batch(
    batched: tuple[bool, ...], x: Value, *, shape: Shape, new_axes: tuple[int, ...]
) -> Value:
    return broadcast(x, shape=(x.shape[0], *shape), new_axes=_shift_axes(new_axes))


@primitive(impl=lambda x, *, axes: np.array(np.flip(x, axes)), linear=True, flops=0)
def reverse(x: TensorType, *, axes: tuple[int, ...]) -> TensorType:
    """Return `x` with the order of elements along `axes` reversed."""
    for axis in axes:
        check_axis("reverse", axis, x)
    if len(set(axes)) != len(axes):
        raise ShapeError(f"reverse of {x} names an axis twice in {axes}")
    return x


@reverse.transpose
def _reverse_transpose(ct: Value, x: Linear, *, axes: tuple[int, ...]) -> tuple[Value]:
    return (reverse(ct, axes=axes),)


@reverse.view
def _reverse_view(k: int, x: TensorType, *, axes: tuple[int, ...]) -> Slice | None:
    return flip_view(axes)


@reverse.batch
def _reverse_batch(batched: tuple[bool, ...], x: Value, *, axes: tuple[int, ...]) -> Value:
    return reverse(x, axes=_shift_axes(axes))


def _pad(x: Any, *, low: Slices, high: Slices) -> Any:
    widths = list(zip(low, high, strict=True))
    return np.pad(x, widths) if widths else np.array(x)


@primitive(impl=_pad, linear=True, moves=True, flops=0)
def pad(x: TensorType, *, low: Slices, high: Slices) -> TensorType:
    """Return `x` with `low[i]` zeros before and `high[i]` zeros after it along each axis `i`."""
    fits = len(low) == len(high) == x.ndim
    if not fits or not all(assume_at_least(n, 0) for n in (*low, *high)):
        raise ShapeError(f"pad widths {low} and {high} do not fit {x}")
    return x.with_shape(tuple(a + n + b for a, n, b in zip(low, x.shape, high, strict=True)))


@pad.index_map
def _pad_map(
    k: int, i: int, operands: Types, results: Types, *, low: Slices, high: Slices
) -> IndexMap:
    return embedding_map(operands[0].shape, low)


@pad.transpose
def _pad_transpose(ct: Value, x: Linear, *, low: Slices, high: Slices) -> tuple[Value]:
    return (slice_(ct, starts=low, sizes=x.shape, steps=(1,) * len(low)),)


@pad.batch
def _pad_batch(batched: tuple[bool, ...], x: Value, *, low: Slices, high: Slices) -> Value:
    return pad(x, low=(0, *low), high=(0, *high))


def strided_slices(
    starts: Slices, sizes: Slices, steps: Slices, shape: Shape | None = None
) -> tuple[slice, ...]:
    """Return NumPy slices that take `sizes[i]` elements from `starts[i]` on, with step `steps[i]`.

    `shape` is the shape of the sliced array; it is needed only for symbolic sizes.
    """
    result = []
    for i, (start, size, step) in enumerate(zip(starts, sizes, steps, strict=True)):
        stop = start + size * step
        if type(size) is int and not size:
            result.append(slice(0, 0))
        elif step < 0 and Dim in (type(start), type(stop)) and shape is not None:
            last = None if is_at_least(-1, stop) else _reversed_slice_end(stop, shape[i])
            result.append(slice(_reversed_slice_end(start, shape[i]), last, step))
        else:
            # A stop before the first element is None, as -1 would mean the last element.
            result.append(slice(start, stop if step > 0 or stop >= 0 else None, step))
    return tuple(result)


def _reversed_slice_end(end: int, extent: int) -> int:
    """Return the end of a slice with negative step; -1 is shifted by the size of the axis.

    Counted from the end of the axis, the shifted end is before the first element, too.
    """
    return end if is_at_least(end, 0) else end - extent


def _check_strided(name: str, x: TensorType, starts: Slices, sizes: Slices, steps: Slices) -> None:
    if not len(starts) == len(sizes) == len(steps) == x.ndim:
        raise ShapeError(f"{name} needs a start, size and step for each axis of {x}")
    for start, size, step, n in zip(starts, sizes, steps, x.shape, strict=True):
        if not _is_within(start, size, step, n):
            raise ShapeError(f"{name} from {start}, {size} elements {step} apart, leaves {x}")


def _is_within(start: int, size: int, step: int, extent: int) -> bool:
    """Tell whether a slice lies within an axis; assumed where that depends on symbolic sizes."""
    if step == 0 or not assume_at_least(size, 0):
        return False
    last = start + (size - 1) * step
    if type(size) is not Dim and (size == 0 or type(last) is type(extent) is int):
        return size == 0 or (0 <= start < extent and 0 <= last < extent)
    # An empty slice may begin one step past the end.
    low, high = (start, last) if step > 0 else (last, start)
    return assume_at_least(low, 0) and assume_at_least(extent, high + 1)


@primitive(
    name="slice",
    impl=lambda x, *, starts, sizes, steps: x[strided_slices(starts, sizes, steps)],
    linear=True,
    flops=0,
)
def slice_(x: TensorType, *, starts: Slices, sizes: Slices, steps: Slices) -> TensorType:
    """Return `sizes[i]` elements from `starts[i]` on, with step `steps[i]`, maybe negative."""
    _check_strided("slice", x, starts, sizes, steps)
    return x.with_shape(sizes)


@slice_.transpose
def _slice_transpose(
    ct: Value, x: Linear, *, starts: Slices, sizes: Slices, steps: Slices
) -> tuple[Value]:
    return (slice_assign(zeros_like(x), ct, starts=starts, steps=steps),)


@slice_.view
def _slice_view(
    k: int, x: TensorType, *, starts: Slices, sizes: Slices, steps: Slices
) -> Slice | None:
    return slice_view(strided_slices(starts, sizes, steps, x.shape), x.shape)


@slice_.batch
def _slice_batch(
    batched: tuple[bool, ...], x: Value, *, starts: Slices, sizes: Slices, steps: Slices
) -> Value:
    return slice_(x, starts=(0, *starts), sizes=(x.shape[0], *sizes), steps=(1, *steps))


def _slice_assign(x: Any, y: Any, *, starts: Slices, steps: Slices) -> Any:
    result = np.array(x)
    result[strided_slices(starts, np.shape(y), steps)] = y
    return result


@primitive(impl=_slice_assign, linear=(0, 1), moves=True, flops=0)
def slice_assign(x: TensorType, y: TensorType, *, starts: Slices, steps: Slices) -> TensorType:
    """Return `x` with `y` written to the slice that begins at `starts` and has the shape of `y`."""
    _check_strided("slice_assign", x, starts, y.shape, steps)
    common_type("slice_assign", x, y.with_shape(x.shape))
    return x


@slice_assign.index_map
def _slice_assign_map(
    k: int, i: int, operands: Types, results: Types, *, starts: Slices, steps: Slices
) -> IndexMap:
    x, y = operands
    if i:
        return embedding_map(y.shape, starts, steps)
    return replace(identity(x.shape), hole=Strided(starts, y.shape, steps))


@slice_assign.transpose
def _slice_assign_transpose(
    ct: Value, x: Value | Linear, y: Value | Linear, *, starts: Slices, steps: Slices
) -> tuple[Value, Value]:
    to_x = slice_assign(ct, zeros_like(y), starts=starts, steps=steps)
    return to_x, slice_(ct, starts=starts, sizes=y.shape, steps=steps)


@slice_assign.batch
def _slice_assign_batch(
    batched: tuple[bool, ...], x: Value, y: Value, *, starts: Slices, steps: Slices
) -> Value:
    whole, part = with_batch_axis(batched, (x, y))
    return slice_assign(whole, part, starts=(0, *starts), steps=(1, *steps))


@primitive(impl=lambda *xs, axis: np.concatenate(xs, axis), linear=True, moves=True, flops=0)
def concat(*xs: TensorType, axis: int) -> TensorType:
    """Return the operands concatenated along `axis`; all other sizes are equal."""
    if not xs:
        raise ShapeError("concat takes at least one operand")
    first = xs[0]
    check_axis("concat", axis, first)
    for x in xs[1:]:
        if x.ndim != first.ndim or drop_axes(x.shape, (axis,)) != drop_axes(first.shape, (axis,)):
            raise ShapeError(f"concat along axis {axis} cannot join {first} and {x}")
        common_type("concat", first, x.with_shape(first.shape))
    total = sum(x.shape[axis] for x in xs)
    return first.with_shape((*first.shape[:axis], total, *first.shape[axis + 1 :]))


concat.declare(RANGE, join_operands)
slice_assign.declare(RANGE, join_operands)
slice_assign.declare(STRUCTURE, lambda eqn, definition, x, y: x & y & POSITIVE)
# The axis along which the operands stand one behind the other; "" for other ops.
JOINED: Fact[str] = Fact("joined", "")
concat.declare(JOINED, "axis")


@concat.index_map
def _concat_map(k: int, i: int, operands: Types, results: Types, *, axis: int) -> IndexMap:
    start = sum(x.shape[axis] for x in operands[:i])
    return embedding_map(
        operands[i].shape, tuple(start if a == axis else 0 for a in range(operands[i].ndim))
    )


@concat.transpose
def _concat_transpose(ct: Value, *xs: Value | Linear, axis: int) -> tuple[Any, ...]:
    ends = accumulate((x.shape[axis] for x in xs), initial=0)
    steps = (1,) * len(ct.shape)
    return tuple(
        slice_(
            ct,
            starts=tuple(start if i == axis else 0 for i in range(len(x.shape))),
            sizes=x.shape,
            steps=steps,
        )
        if isinstance(x, Linear)
        else None
        for x, start in zip(xs, ends, strict=False)
    )


@concat.batch
def _concat_batch(batched: tuple[bool, ...], *xs: Value, axis: int) -> Value:
    return concat(*with_batch_axis(batched, xs), axis=axis + 1)


def _split_array(x: Any, *, sizes: Slices, axis: int) -> Any:
    return np.split(x, list(accumulate(sizes))[:-1], axis)


@primitive(impl=_split_array, linear=True, multiple=True, flops=0)
def split(x: TensorType, *, sizes: Slices, axis: int) -> tuple[TensorType, ...]:
    """Return consecutive parts of `x` along `axis`, of the given `sizes`, which sum to its size."""
    check_axis("split", axis, x)
    apart = sizes and all(assume_at_least(n, 0) for n in sizes)
    if not apart or not equal(sum(sizes), x.shape[axis]):
        raise ShapeError(f"split of {x} along axis {axis}: sizes {sizes} do not add up")
    return tuple(x.with_shape((*x.shape[:axis], n, *x.shape[axis + 1 :])) for n in sizes)


@split.transpose
def _split_transpose(cts: Sequence[Value], x: Linear, *, sizes: Slices, axis: int) -> tuple[Value]:
    return (concat(*cts, axis=axis),)


@split.view
def _split_view(k: int, x: TensorType, *, sizes: Slices, axis: int) -> Slice | None:
    start = sum(sizes[:k])
    return part_of(x.shape, axis, start, start + sizes[k])


@split.batch
def _split_batch(
    batched: tuple[bool, ...], x: Value, *, sizes: Slices, axis: int
) -> tuple[Value, ...]:
    return split(x, sizes=sizes, axis=axis + 1)


for _op in (slice_, slice_assign, split):
    _op.declare(CHOICE, Choice())
for _op in (pad, slice_assign, concat):
    for _kind in (JOINS, MOVES_BACK, MOVES_FORTH):
        _op.declare(_kind, True)
