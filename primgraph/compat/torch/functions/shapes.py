"""Shapes and axes, parts and joins of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod as product
from typing import Any

from primgraph import operators as pg
from primgraph.compat.torch.functions.reductions import Dims
from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.types import as_axis

__all__ = [
    "broadcast_to",
    "cat",
    "chunk",
    "concat",
    "concatenate",
    "diagonal",
    "expand",
    "expand_as",
    "flatten",
    "flip",
    "movedim",
    "permute",
    "repeat",
    "reshape",
    "roll",
    "split",
    "squeeze",
    "stack",
    "swapaxes",
    "t",
    "tile",
    "trace",
    "transpose",
    "tril",
    "triu",
    "unbind",
    "unsqueeze",
    "view",
]


def collect_varargs(sizes: Sequence[Any], named: Any = None) -> Any:
    """Return sizes that are given one by one, as one sequence, or by name."""
    if named is not None:
        return named
    return sizes[0] if len(sizes) == 1 and isinstance(sizes[0], list | tuple) else sizes


def reshape(input: Any, *sizes: Any, shape: Any = None) -> Any:
    """Return the same elements in another shape, given as integers or as a sequence.

    >>> torch.reshape(torch.arange(6), (2, -1))
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    return pg.reshape(input, collect_varargs(sizes, shape))


view = reshape


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Merge the axes from `start_dim` to `end_dim` into one.

    >>> torch.flatten(torch.ones(2, 3, 4), start_dim=1).shape
    torch.Size([2, 12])
    """
    shape = input.shape
    if not shape:
        return pg.reshape(input, (1,))
    first, last = as_axis(start_dim, len(shape)), as_axis(end_dim, len(shape))
    middle = product(shape[first : last + 1])
    return pg.reshape(input, (*shape[:first], middle, *shape[last + 1 :]))


def squeeze(input: Any, dim: Dims = None) -> Any:
    """Remove axes of size one: all, or those in `dim` that have it.

    >>> torch.squeeze(torch.ones(2, 1, 3)).shape
    torch.Size([2, 3])
    """
    if dim is None:
        return pg.squeeze(input)
    listed = [dim] if isinstance(dim, int) else dim
    axes = [as_axis(d, input.ndim) for d in listed]
    return pg.squeeze(input, tuple(a for a in axes if input.shape[a] == 1))


def unsqueeze(input: Any, dim: int) -> Any:
    """Insert a new axis of size one at `dim`.

    >>> torch.unsqueeze(torch.ones(2, 3), 1).shape
    torch.Size([2, 1, 3])
    """
    return pg.expand_dims(input, dim)


def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """Exchange two axes.

    >>> torch.transpose(torch.ones(2, 3), 0, 1).shape
    torch.Size([3, 2])
    """
    return pg.swapaxes(input, dim0, dim1)


swapaxes = transpose


def t(input: Any) -> Any:
    """Transpose a matrix; a vector stays as it is. Raises `ShapeError` for more axes.

    >>> torch.t(torch.ones(2, 3)).shape
    torch.Size([3, 2])
    """
    if input.ndim > 2:
        raise ShapeError(f"t takes a matrix, not an array of {input.ndim} axes")
    return pg.transpose(input)


def permute(input: Any, *order: Any, dims: Any = None) -> Any:
    """Permute the axes: axis `i` of the result is axis `dims[i]` of `input`.

    >>> torch.permute(torch.ones(2, 3, 4), (2, 0, 1)).shape
    torch.Size([4, 2, 3])
    """
    return pg.transpose(input, collect_varargs(order, dims))


def movedim(input: Any, source: Any, destination: Any) -> Any:
    """Move axes to other positions.

    >>> torch.movedim(torch.ones(2, 3, 4), 0, -1).shape
    torch.Size([3, 4, 2])
    """
    return pg.moveaxis(input, source, destination)


def broadcast_to(input: Any, size: Any) -> Any:
    """Repeat along new leading axes and along axes of size one.

    >>> torch.broadcast_to(torch.arange(2), (2, 2))
    tensor([[0, 1],
            [0, 1]])
    """
    return pg.broadcast_to(input, size)


def expand(input: Any, *sizes: Any, size: Any = None) -> Any:
    """Repeat along axes of size one; -1 keeps a size.

    >>> torch.expand(torch.ones(2, 1), -1, 3).shape
    torch.Size([2, 3])
    """
    wanted = list(collect_varargs(sizes, size))
    kept = (1,) * (len(wanted) - input.ndim) + tuple(input.shape)
    return pg.broadcast_to(input, [k if n == -1 else n for n, k in zip(wanted, kept, strict=True)])


def expand_as(input: Any, other: Any) -> Any:
    """Repeat to the shape of `other`.

    >>> torch.expand_as(torch.arange(2), torch.ones(2, 2))
    tensor([[0, 1],
            [0, 1]])
    """
    return pg.broadcast_to(input, other.shape)


def repeat(input: Any, *sizes: Any) -> Any:
    """Repeat the array as a whole along each axis, with a count for each.

    Raises `ShapeError` for fewer counts than axes.

    >>> torch.repeat(torch.arange(2), 2)
    tensor([0, 1, 0, 1])
    """
    counts = tuple(collect_varargs(sizes))
    if len(counts) < input.ndim:
        raise ShapeError(
            f"repeat wants a number for each of {input.ndim} axes, not {counts}",
            hint="tile takes those of the last axes alone",
        )
    return pg.tile(input, counts)


def tile(input: Any, *sizes: Any, dims: Any = None) -> Any:
    """Repeat the array as a whole along the last axes.

    >>> torch.tile(torch.arange(2), (2,))
    tensor([0, 1, 0, 1])
    """
    return pg.tile(input, tuple(collect_varargs(sizes, dims)))


def flip(input: Any, *axes: Any, dims: Any = None) -> Any:
    """Reverse the order of elements along `dims`.

    >>> torch.flip(torch.arange(3), (0,))
    tensor([2, 1, 0])
    """
    return pg.flip(input, tuple(collect_varargs(axes, dims)))


def roll(input: Any, shifts: Any, dims: Dims = None) -> Any:
    """Shift elements in a circle along `dims`.

    >>> torch.roll(torch.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
    return pg.roll(input, shifts, dims)


def _require_matrix(name: str, input: Any) -> None:
    if input.ndim < 2:
        raise ShapeError(f"{name} takes an array of two axes or more, not {input.ndim}")


def tril(input: Any, diagonal: int = 0) -> Any:
    """Return zeros above a diagonal. Raises `ShapeError` for a vector.

    >>> torch.tril(torch.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
    _require_matrix("tril", input)
    return pg.tril(input, diagonal)


def triu(input: Any, diagonal: int = 0) -> Any:
    """Return zeros below a diagonal. Raises `ShapeError` for a vector.

    >>> torch.triu(torch.ones(2, 2))
    tensor([[1., 1.],
            [0., 1.]])
    """
    _require_matrix("triu", input)
    return pg.triu(input, diagonal)


def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Return the diagonal of two axes, as the last axis.

    >>> torch.diagonal(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([1., 4.])
    """
    return pg.diagonal(input, offset, dim1, dim2)


def trace(input: Any) -> Any:
    """Compute the sum of the diagonal.

    >>> torch.trace(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(5.)
    """
    return pg.sum(pg.diagonal(input))


def cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Join arrays along `dim`.

    >>> torch.cat([torch.zeros(1), torch.ones(2)])
    tensor([0., 1., 1.])
    """
    return pg.concatenate(tensors, dim)


concat = concatenate = cat


def stack(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Stack arrays of one shape along a new axis.

    >>> torch.stack([torch.zeros(2), torch.ones(2)])
    tensor([[0., 0.],
            [1., 1.]])
    """
    return pg.stack(tensors, dim)


def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
    """Split along `dim` into parts of one size, the last one of the rest, or of these sizes.

    Raises `ShapeError` for sizes that do not add up to the whole.

    >>> [part.tolist() for part in torch.split(torch.arange(5), 2)]
    [[0, 1], [2, 3], [4]]
    """
    extent = tensor.shape[as_axis(dim, tensor.ndim)]
    if isinstance(split_size_or_sections, int):
        ends = list(range(split_size_or_sections, extent, split_size_or_sections))
    else:
        ends = list(accumulate(split_size_or_sections))
        if not ends or ends.pop() != extent:
            raise ShapeError(
                f"parts of sizes {list(split_size_or_sections)} do not add up to the extent "
                f"{extent} of axis {dim}"
            )
    return tuple(pg.split(tensor, ends, dim))


def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """Split along `dim` into at most `chunks` parts of one size, the last one of the rest.

    >>> [part.tolist() for part in torch.chunk(torch.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    if chunks < 1:
        raise ArgumentError(f"chunk makes one part or more, not {chunks}")
    return split(input, -(-input.shape[as_axis(dim, input.ndim)] // chunks), dim)


def unbind(input: Any, dim: int = 0) -> tuple[Any, ...]:
    """Return the slices along `dim`.

    >>> [part.tolist() for part in torch.unbind(torch.tensor([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    return tuple(pg.moveaxis(input, dim, 0))
