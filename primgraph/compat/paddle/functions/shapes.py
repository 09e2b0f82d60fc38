"""Shapes, joining and repetition, with Paddle's names for functions and arguments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.paddle.core.methods import is_array
from primgraph.compat.paddle.functions.rows import define_functions
from primgraph.eager.derivatives.differentiable import Differentiable as Differentiable
from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.types import as_axis
from primgraph.operators.handle import Handle

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


_ROWS = """
view(x, shape_or_dtype) = reshaped(x, shape_or_dtype)
Return the elements in another shape, or of another dtype. | [[1, 2], [3, 4]], (4,) -> [1, 2, 3, 4]
reshape(x, shape) = reshaped(x, shape)
Return the elements in another shape: 0 keeps an extent, and one -1 stands for the rest. \
| [[1, 2], [3, 4]], (0, -1) -> [[1, 2], [3, 4]]
view_as(x, other) = pg.reshape(x, tuple(other.shape))
Return the elements in the shape of another tensor. \
| [1, 2, 3, 4], [[0, 0], [0, 0]] -> [[1, 2], [3, 4]]
flatten(x, start_axis=0, stop_axis=-1) = flattened(x, start_axis, stop_axis)
Return the elements with the axes from `start_axis` to `stop_axis` as one. \
| [[1, 2], [3, 4]] -> [1, 2, 3, 4]
ravel(input) = pg.reshape(input, (-1,))
Return all elements along one axis. | [[1, 2], [3, 4]] -> [1, 2, 3, 4]
unflatten(x, axis, shape) = unflattened(x, axis, shape)
Divide one axis into several; one -1 stands for the rest. \
| [1, 2, 3, 4], 0, (2, -1) -> [[1, 2], [3, 4]]
squeeze(x, axis=None) = squeezed(x, axis)
Return the elements without axes of extent one: all, or those in `axis` that have it. \
| [[[1, 2]]], axis=0 -> [[1, 2]]
unsqueeze(x, axis) = pg.expand_dims(x, whole(axis))
Insert axes of extent one. | [1, 2], 0 -> [[1, 2]]
permute(input, dims) = pg.transpose(input, permuted(input, dims))
Permute the axes. | [[1, 2], [3, 4]], (1, 0) -> [[1, 3], [2, 4]]
transpose(x, perm) = pg.transpose(x, permuted(x, perm))
Permute the axes: axis `i` of the result is axis `perm[i]` of `x`. \
| [[1, 2], [3, 4]], (1, 0) -> [[1, 3], [2, 4]]
t(input) = matrix_turned(input)
Transpose a matrix; return a vector as it is. | [[1, 2], [3, 4]] -> [[1, 3], [2, 4]]
matrix_transpose(x): matrix_transpose
Transpose each matrix in a stack. | [[1, 2], [3, 4]] -> [[1, 3], [2, 4]]
moveaxis(x, source, destination): moveaxis(x, whole(source), whole(destination))
Move axes to other places. | [[1, 2], [3, 4]], 0, 1 -> [[1, 3], [2, 4]]
swapaxes|swapdims(x, axis0, axis1): swapaxes(x, axis0, axis1)
Exchange two axes. | [[1, 2], [3, 4]], 0, 1 -> [[1, 3], [2, 4]]
flip|reverse(x, axis): flip(x, whole(axis))
Reverse the order along axes. | [1, 2, 3], 0 -> [3, 2, 1]
roll(x, shifts, axis=None): roll(x, whole(shifts), whole(axis))
Shift elements along axes, those at the end to the beginning. | [1, 2, 3], 1 -> [3, 1, 2]
rot90(x, k=1, axes=(0, 1)): rot90(x, k, tuple(axes))
Turn by 90 degrees in a plane, `k` times. | [[1, 2], [3, 4]] -> [[2, 4], [1, 3]]
expand(x, shape) = expanded(x, shape)
Repeat along new leading axes and axes of extent one; -1 keeps an extent. \
| [[1], [2]], (-1, 2) -> [[1, 1], [2, 2]]
broadcast_to(x, shape) = expanded(x, shape)
Repeat along new leading axes and axes of extent one. | [1, 2], (2, 2) -> [[1, 2], [1, 2]]
expand_as(x, y) = pg.broadcast_to(x, tuple(y.shape))
Repeat to the shape of another tensor. | [1, 2], [[0, 0], [0, 0]] -> [[1, 2], [1, 2]]
broadcast_tensors(input) = list(pg.broadcast_arrays(*input))
Repeat tensors to a common shape. | ([1, 2], [[3], [4]]) => [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
tile(x, repeat_times): tile(x, whole(repeat_times))
Repeat along all axes. | [1, 2], (2,) -> [1, 2, 1, 2]
repeat_interleave(x, repeats, axis=None, *, output_size=None): repeat(x, counts(repeats), axis)
Repeat each element. | [1, 2], 2 -> [1, 1, 2, 2]
concat|concatenate|cat(x, axis=0): concatenate(alike(x), whole(axis))
Join tensors along an axis. | ([1, 2], [3]) -> [1, 2, 3]
stack(x, axis=0): stack(alike(x), axis)
Stack tensors along a new axis. | ([1, 2], [3, 4]) -> [[1, 2], [3, 4]]
hstack(x): hstack(x)
Stack tensors horizontally. | ([1, 2], [3, 4]) -> [1, 2, 3, 4]
vstack|row_stack(x): vstack(x)
Stack tensors vertically. | ([1, 2], [3, 4]) -> [[1, 2], [3, 4]]
dstack(x): dstack(x)
Stack tensors along the third axis. | ([1, 2], [3, 4]) -> [[[1, 3], [2, 4]]]
column_stack(x): column_stack(x)
Stack vectors as columns. | ([1, 2], [3, 4]) -> [[1, 3], [2, 4]]
split(x, num_or_sections, axis=0) = parted(x, num_or_sections, axis)
Split into equal parts, or into parts of these sizes; one -1 is the rest. \
| [1, 2, 3], (1, -1) => [[1], [2, 3]]
chunk(x, chunks, axis=0) = parted(x, chunks, axis)
Split into equal parts. | [1, 2, 3, 4], 2 => [[1, 2], [3, 4]]
tensor_split(x, num_or_indices, axis=0): array_split(x, counts(num_or_indices), axis)
Split at these indices, or into parts that are almost equal. | [1, 2, 3], 2 => [[1, 2], [3]]
hsplit(x, num_or_indices) = parts_at(x, num_or_indices, min(1, len(x.shape) - 1))
Split horizontally. | [1, 2, 3, 4], 2 => [[1, 2], [3, 4]]
vsplit(x, num_or_indices) = parts_at(x, num_or_indices, 0)
Split vertically. | [[1, 2], [3, 4]], 2 => [[[1, 2]], [[3, 4]]]
dsplit(x, num_or_indices) = parts_at(x, num_or_indices, 2)
Split along the third axis. | [[[1, 2]]], 2 => [[[[1]]], [[[2]]]]
unbind(input, axis=0) = list(pg.unstack(input, axis=axis))
Return the slices along an axis. | [[1, 2], [3, 4]] => [[1, 2], [3, 4]]
unstack(x, axis=0, num=None) = list(pg.unstack(x, axis=axis))
Return the slices along an axis. | [[1, 2], [3, 4]], axis=1 => [[1, 3], [2, 4]]
slice(input, axes, starts, ends) = pg.strided_slice(input, whole(axes), whole(starts), whole(ends))
Take the slices `starts[i]:ends[i]` along `axes[i]`. | [1, 2, 3], (0,), (1,), (3,) -> [2, 3]
strided_slice(x, axes, starts, ends, strides) = \
pg.strided_slice(x, whole(axes), whole(starts), whole(ends), whole(strides))
Take the slices `starts[i]:ends[i]:strides[i]` along `axes[i]`. \
| [1, 2, 3], (0,), (0,), (3,), (2,) -> [1, 3]
crop(x, shape=None, offsets=None) = cropped(x, shape, offsets)
Take a block of some shape that begins at `offsets`. | [1, 2, 3], (2,), (1,) -> [2, 3]
diag(x, offset=0, padding_value=0) = diagonal_matrix(x, offset, padding_value)
Return a matrix with this diagonal, or the diagonal of a matrix. | [1, 2] -> [[1, 0], [0, 2]]
diagflat(x, offset=0): diagflat(x, offset)
Return a matrix with all elements on the diagonal. | [[1, 2]] -> [[1, 0], [0, 2]]
diagonal(x, offset=0, axis1=0, axis2=1): diagonal
Return the diagonal of two axes. | [[1, 2], [3, 4]] -> [1, 4]
diag_embed(input, offset=0, dim1=-2, dim2=-1) = embedded(input, offset, dim1, dim2)
Return matrices with the vectors along the last axis as diagonals. | [1, 2] -> [[1, 0], [0, 2]]
tril(x, diagonal=0): tril(x, diagonal)
Return the lower triangles, and zeros elsewhere. | [[1, 2], [3, 4]] -> [[1, 0], [3, 4]]
triu(x, diagonal=0): triu(x, diagonal)
Return the upper triangles, and zeros elsewhere. | [[1, 2], [3, 4]] -> [[1, 2], [0, 4]]
meshgrid(*args) = list(pg.meshgrid(*listed(args), indexing="ij"))
Return the coordinates of a grid. | [1, 2], [3, 4] => [[[1, 1], [2, 2]], [[3, 4], [3, 4]]]
vander(x, n=None, increasing=False) = pg.astype(pg.vander(x, n, increasing), x.dtype)
Return the matrix of powers of a vector. | [1, 2], 3 -> [[1, 1, 1], [4, 2, 1]]
atleast_1d(*inputs) = single(pg.atleast_1d(*inputs))
Give tensors at least one axis. | [1, 2] -> [1, 2]
atleast_2d(*inputs) = single(pg.atleast_2d(*inputs))
Give tensors at least two axes. | [1, 2] -> [[1, 2]]
atleast_3d(*inputs) = single(pg.atleast_3d(*inputs))
Give tensors at least three axes. | [1, 2] -> [[[1], [2]]]
as_strided(x, shape, stride, offset=0) = strided(x, shape, stride, offset)
Return elements at regular distances in memory. | [1, 2, 3], (2, 2), (1, 1) -> [[1, 2], [2, 3]]
unfold(x, axis, size, step) = windows(x, axis, size, step)
Return windows of `size` along an axis, `step` apart, along a new last axis. \
| [1, 2, 3], 0, 2, 1 -> [[1, 2], [2, 3]]
numel(x) = pg.asarray(math.prod(x.shape), "int64")
Return the number of elements. | [[1, 2], [3, 4]] -> 4
rank(input) = pg.asarray(len(input.shape), "int32")
Return the number of axes. | [[1, 2], [3, 4]] -> 2
shape(input) = pg.asarray(np.array(input.shape), "int64")
Return the shape as a tensor. | [[1, 2], [3, 4]] -> [2, 2]
reduce_as(x, target) = reduced_to(x, target)
Sum over axes, so that the result has the shape of another tensor. \
| [[1, 2], [3, 4]], [0, 0] -> [4, 6]
narrow(input, dim, start, length) = cut(input, dim, start, length)
Take `length` slices from `start` on. | [1, 2, 3], 0, 1, 2 -> [2, 3]
block_diag(inputs) = blocks(inputs)
Return a matrix with these matrices along its diagonal. \
| ([[1]], [[2, 3]]) -> [[1, 0, 0], [0, 2, 3]]
clone(x) = x.clone() if isinstance(x, Differentiable) else pg.assign(x)
Return a copy, through which derivatives go. | [1, 2] -> [1, 2]
"""


def whole(values: Any) -> Any:
    """Return integers of tensors, lists and numbers as Python's."""
    if is_array(values):
        return values.tolist() if values.shape else int(values)
    if isinstance(values, list | tuple):
        return tuple(int(v) if is_array(v) else v for v in values)
    return values


def counts(values: Any) -> Any:
    """Return a number, or a list of numbers, in which `pg` takes it."""
    found = whole(values)
    return list(found) if isinstance(found, tuple) else found


def alike(x: Any) -> Any:
    """Return tensors in a list, which have one dtype."""
    kinds = {str(t.dtype) for t in x if isinstance(t, Handle)}
    if len(kinds) > 1:
        raise ArgumentError(f"tensors of different dtypes are not joined: {', '.join(kinds)}")
    return list(x)


def reshaped(x: Any, shape: Any) -> Any:
    """Return the elements in a shape where 0 keeps an extent, or of another dtype."""
    if not isinstance(shape, list | tuple | Handle):
        return pg.astype(x, shape)
    known, given = tuple(x.shape), list(whole(shape))
    if any(n == 0 and i >= len(known) for i, n in enumerate(given)):
        raise ShapeError(f"reshape of {list(known)} to {given}: 0 stands for an extent of it")
    return pg.reshape(x, tuple(known[i] if n == 0 else n for i, n in enumerate(given)))


def flattened(x: Any, start: int, stop: int) -> Any:
    """Return the elements with several axes as one."""
    shape = tuple(x.shape)
    if not shape:
        return pg.reshape(x, (1,))
    first, last = as_axis(start, len(shape)), as_axis(stop, len(shape))
    if first > last:
        raise ShapeError(f"flatten from axis {start} to {stop}: there are {len(shape)} axes")
    return pg.reshape(x, (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]))


def unflattened(x: Any, axis: int, shape: Any) -> Any:
    """Return the elements with one axis as several."""
    known, place, given = tuple(x.shape), as_axis(axis, len(x.shape)), list(whole(shape))
    if -1 in given:
        given[given.index(-1)] = known[place] // -math.prod(given)
    return pg.reshape(x, (*known[:place], *given, *known[place + 1 :]))


def squeezed(x: Any, axis: Any) -> Any:
    """Return the elements without axes of extent one."""
    if axis is None:
        return pg.squeeze(x)
    given = whole(axis)
    axes = [as_axis(a, len(x.shape)) for a in ([given] if isinstance(given, int) else given)]
    return pg.squeeze(x, tuple(a for a in axes if x.shape[a] == 1))


def permuted(x: Any, perm: Any) -> Any:
    """Return a permutation, if it is one of the axes."""
    order = tuple(whole(perm))
    if len(order) != len(x.shape):
        raise ShapeError(f"transpose of {len(x.shape)} axes takes a permutation, not {order}")
    return order


def matrix_turned(x: Any) -> Any:
    """Return the transpose of a matrix."""
    if len(x.shape) > 2:
        raise ShapeError(f"t is for tensors of at most two axes, not {len(x.shape)}")
    return pg.transpose(x)


def expanded(x: Any, shape: Any) -> Any:
    """Repeat to a shape in which -1 keeps an extent."""
    known, given = tuple(x.shape), list(whole(shape))
    lead = len(given) - len(known)
    return pg.broadcast_to(
        x, tuple(known[i - lead] if n == -1 and i >= lead else n for i, n in enumerate(given))
    )


def parted(x: Any, parts: Any, axis: Any) -> Any:
    """Split into equal parts, or parts of these sizes."""
    given, place = whole(parts), as_axis(whole(axis), len(x.shape))
    extent = x.shape[place]
    if not isinstance(given, Sequence):
        if extent % given:
            raise ShapeError(f"split of {list(x.shape)}: axis {axis} has no {given} equal parts")
        return list(pg.split(x, given, place))
    sizes = list(given)
    if -1 in sizes:
        sizes[sizes.index(-1)] += extent - sum(sizes)
    if sum(sizes) != extent or min(sizes) < 0:
        raise ShapeError(f"split of {list(x.shape)}: axis {axis} has no parts {parts}")
    return list(pg.split(x, list(accumulate(sizes))[:-1], place))


def parts_at(x: Any, parts: Any, axis: int) -> Any:
    """Split into equal parts, or at these indices."""
    if len(x.shape) <= axis:
        raise ShapeError(f"a tensor of {len(x.shape)} axes cannot be split along axis {axis}")
    return list(pg.split(x, counts(parts), axis))


def cropped(x: Any, shape: Any, offsets: Any) -> Any:
    """Take a block; -1 is all that is left."""
    known = tuple(x.shape)
    first = tuple(whole(offsets)) if offsets is not None else (0,) * len(known)
    sizes = tuple(whole(shape)) if shape is not None else known
    ends = [n - 0 if s == -1 else o + s for n, o, s in zip(known, first, sizes, strict=True)]
    return pg.strided_slice(x, tuple(range(len(known))), first, tuple(ends))


def diagonal_matrix(x: Any, offset: int, padding: float) -> Any:
    """Return a matrix with a diagonal, or the diagonal of a matrix."""
    found = pg.diag(x, offset)
    if padding == 0 or len(x.shape) == 2:
        return found
    rows, columns = found.shape
    is_diagonal = np.eye(rows, columns, offset, dtype=bool)
    return pg.where(is_diagonal, found, pg.full_like(found, padding))


def embedded(x: Any, offset: int, first: int, second: int) -> Any:
    """Return matrices with these diagonals in two axes."""
    size = x.shape[-1] + abs(offset)
    rows, columns = np.nonzero(np.eye(size, k=offset))
    base = pg.zeros((*tuple(x.shape)[:-1], size, size), x.dtype)
    found = pg.set_slice(base, (..., rows, columns), x)
    return pg.moveaxis(found, (-2, -1), (first, second))


def listed(args: Any) -> Any:
    """Return arguments that are given one by one or in one list."""
    return args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else args


def single(found: Any) -> Any:
    """Return the tensor of a list of one."""
    return list(found) if isinstance(found, list | tuple) else found


def strided(x: Any, shape: Any, stride: Any, offset: int) -> Any:
    """Return elements at distances in memory."""
    places = np.full(tuple(shape), offset)
    for axis, (n, step) in enumerate(zip(shape, stride, strict=True)):
        places += (np.arange(n) * step).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return pg.take(pg.reshape(x, (-1,)), places, 0)


def windows(x: Any, axis: int, size: int, step: int) -> Any:
    """Return windows along an axis."""
    place = as_axis(axis, len(x.shape))
    starts = np.arange(0, x.shape[place] - size + 1, step)
    found = pg.take(x, starts[:, None] + np.arange(size), place)
    return pg.moveaxis(found, place + 1, -1)


def cut(x: Any, axis: int, start: Any, length: int) -> Any:
    """Return slices from `start` on."""
    place, first = as_axis(axis, len(x.shape)), whole(start)
    first += x.shape[place] if first < 0 else 0
    if not 0 <= first <= first + length <= x.shape[place]:
        raise ArgumentError(f"narrow: {length} slices from {first} on are not along axis {axis}")
    return pg.strided_slice(x, (place,), (first,), (first + length,))


def reduced_to(x: Any, target: Any) -> Any:
    """Sum over the axes along which `target` would be repeated."""
    lead = len(x.shape) - len(target.shape)
    summed = [lead + i for i, n in enumerate(target.shape) if n == 1 != x.shape[lead + i]]
    found = pg.sum(x, (*range(lead), *summed)) if lead or summed else x
    return pg.reshape(found, tuple(target.shape))


def blocks(inputs: Any) -> Any:
    """Return matrices along a diagonal."""
    matrices = [pg.atleast_2d(x) for x in inputs]
    width = sum(m.shape[1] for m in matrices)
    rows, start = [], 0
    for m in matrices:
        left, right = start, width - start - m.shape[1]
        rows.append(pg.pad(m, ((0, 0), (left, right))))
        start += m.shape[1]
    return pg.concatenate(rows, 0)


__all__ = define_functions(globals(), _ROWS)
