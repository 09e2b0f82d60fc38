"""Shapes and axes of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod as product
from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.torch.functions.reductions import Dims
from primgraph.compat.torch.functions.results import array_like, define_functions
from primgraph.eager.inplace.views import View
from primgraph.errors import ShapeError
from primgraph.ir.types import as_axis, as_dtype, broadcast_shapes

_ROWS = """
broadcast_to(input, size): broadcast_to(input, size)
Return `input` repeated to the shape `size`.
>>> torch.broadcast_to(torch.arange(2), (2, 2))
tensor([[0, 1],
        [0, 1]])

diag(input, diagonal=0): diag(input, diagonal)
Return the diagonal of a matrix, or the matrix with a diagonal.
>>> torch.diag(torch.tensor([1.0, 2.0]))
tensor([[1., 0.],
        [0., 2.]])

diagflat(input, offset=0): diagflat(input, offset)
Return the matrix with all elements on a diagonal.
>>> torch.diagflat(torch.tensor([1.0, 2.0]))
tensor([[1., 0.],
        [0., 2.]])

diagonal(input, offset=0, dim1=0, dim2=1): diagonal(input, offset, dim1, dim2)
Return the diagonal of two axes, as the last axis.
>>> torch.diagonal(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
tensor([1., 4.])

fliplr(input): fliplr(input)
Reverse the second axis.
>>> torch.fliplr(torch.tensor([[1, 2], [3, 4]]))
tensor([[2, 1],
        [4, 3]])

flipud(input): flipud(input)
Reverse the first axis.
>>> torch.flipud(torch.tensor([[1, 2], [3, 4]]))
tensor([[3, 4],
        [1, 2]])

kron(input, other): kron(input, other)
Compute Kronecker products.
>>> torch.kron(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
tensor([1., 1., 2., 2.])

movedim|moveaxis(input, source, destination): moveaxis(input, source, destination)
Move axes to other places.
>>> torch.movedim(torch.ones(2, 3, 4), 0, 2).shape
torch.Size([3, 4, 2])

roll(input, shifts, dims=None): roll(input, shifts, dims)
Shift elements in a circle along `dims`.
>>> torch.roll(torch.arange(4), 1)
tensor([3, 0, 1, 2])

rot90(input, k=1, dims=(0, 1)): rot90(input, k, dims)
Rotate the plane of two axes by `k` right angles.
>>> torch.rot90(torch.tensor([[1, 2], [3, 4]]))
tensor([[2, 4],
        [1, 3]])

trace(input): handles.trace(input)
Compute the sum of the diagonal.
>>> torch.trace(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
tensor(5.)

transpose|swapaxes|swapdims(input, dim0, dim1): swapaxes(input, dim0, dim1)
Exchange two axes.
>>> torch.transpose(torch.ones(2, 3), 0, 1).shape
torch.Size([3, 2])

unsqueeze(input, dim): expand_dims(input, dim)
Insert a new axis of size one at `dim`.
>>> torch.unsqueeze(torch.ones(2, 3), 1).shape
torch.Size([2, 1, 3])
"""

__all__ = [
    *define_functions(globals(), _ROWS),
    "adjoint",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_shapes",
    "broadcast_tensors",
    "expand",
    "expand_as",
    "flatten",
    "flip",
    "permute",
    "repeat",
    "repeat_interleave",
    "reshape",
    "reshape_as",
    "squeeze",
    "t",
    "tile",
    "tril",
    "triu",
    "unflatten",
    "view",
    "view_as",
    "view_copy",
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


def view(input: Any, *sizes: Any, size: Any = None) -> Any:
    """Return the same elements in another shape, or their bytes in another dtype.

    Raises `ShapeError` if the elements would have to be copied.

    >>> torch.view_copy(torch.arange(6), (2, -1)).shape
    torch.Size([2, 3])
    """
    shape = collect_varargs(sizes, size)
    if len(sizes) == 1 and not isinstance(sizes[0], int | list | tuple):
        return array_like(input, np.asarray(input).view(as_dtype(sizes[0])))
    alias = getattr(input, "_alias", None)
    layout = alias.layout() if isinstance(alias, View) else None
    if layout is not None and layout.size and not layout.flags.c_contiguous:
        wanted = layout.reshape([int(n) for n in shape])
        if not np.may_share_memory(wanted, layout):
            raise ShapeError(
                "view size is not compatible with input tensor's size and stride (at least one "
                "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
            )
    return pg.reshape(input, shape)


view_copy = view


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Merge the axes from `start_dim` to `end_dim` into one.

    >>> torch.flatten(torch.ones(2, 3, 4), start_dim=1).shape
    torch.Size([2, 12])
    """
    shape = input.shape
    if not shape:
        return pg.reshape(input, (1,))
    first, last = as_axis(start_dim, len(shape)), as_axis(end_dim, len(shape))
    if first > last:
        raise ShapeError("flatten() has invalid args: start_dim cannot come after end_dim")
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


def t(input: Any) -> Any:
    """Transpose a matrix; a vector stays as it is. Raises `ShapeError` for more axes.

    >>> torch.t(torch.ones(2, 3)).shape
    torch.Size([3, 2])
    """
    if input.ndim > 2:
        raise ShapeError(f"t takes a matrix, not an array of {input.ndim} axes")
    return pg.matrix_transpose(input) if input.ndim == 2 else pg.assign(input)


def permute(input: Any, *order: Any, dims: Any = None) -> Any:
    """Permute the axes: axis `i` of the result is axis `dims[i]` of `input`.

    >>> torch.permute(torch.ones(2, 3, 4), (2, 0, 1)).shape
    torch.Size([4, 2, 3])
    """
    return pg.transpose(input, collect_varargs(order, dims))


def expand(input: Any, *sizes: Any, size: Any = None) -> Any:
    """Repeat along axes of size one; -1 keeps a size.

    >>> torch.expand(torch.ones(2, 1), -1, 3).shape
    torch.Size([2, 3])
    """
    wanted = list(collect_varargs(sizes, size))
    if len(wanted) < input.ndim:
        raise ShapeError(
            f"expand: the number of sizes provided ({len(wanted)}) must be greater or equal to the "
            f"number of dimensions in the tensor ({input.ndim})"
        )
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


def adjoint(input: Any) -> Any:
    """Return conjugate transposes of matrices.

    >>> torch.adjoint(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[1., 3.],
            [2., 4.]])
    """
    return pg.conj(pg.swapaxes(input, -1, -2))


def _apply_to_each(function: Any, tensors: tuple[Any, ...]) -> Any:
    given = collect_varargs(tensors)
    if len(tensors) == 1 and given is tensors:
        return function(*tensors)
    return tuple(function(x) for x in given)


def atleast_1d(*tensors: Any) -> Any:
    """Return tensors with one axis at least.

    >>> torch.atleast_1d(torch.tensor(1.0))
    tensor([1.])
    """
    return _apply_to_each(lambda x: x if x.ndim else pg.reshape(x, (1,)), tensors)


def atleast_2d(*tensors: Any) -> Any:
    """Return tensors with two axes at least.

    >>> torch.atleast_2d(torch.tensor(1.0))
    tensor([[1.]])
    """
    return _apply_to_each(lambda x: _with_axes(x, 2), tensors)


def atleast_3d(*tensors: Any) -> Any:
    """Return tensors with three axes at least.

    >>> torch.atleast_3d(torch.tensor(1.0))
    tensor([[[1.]]])
    """
    return _apply_to_each(lambda x: _with_axes(x, 3), tensors)


def _with_axes(x: Any, count: int) -> Any:
    """Return a view with at least `count` axes: of a vector one axis goes before it first."""
    if x.ndim >= count:
        return x
    shape = tuple(x.shape)
    if x.ndim == 1:
        return pg.reshape(x, (1, *shape, *(1,) * (count - 2)))
    return pg.reshape(x, (*shape, *(1,) * (count - x.ndim)))


def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """Repeat tensors to their common shape.

    >>> [x.shape for x in torch.broadcast_tensors(torch.ones(2, 1), torch.ones(3))]
    [torch.Size([2, 3]), torch.Size([2, 3])]
    """
    given = collect_varargs(tensors)
    shape = broadcast_shapes(*(x.type.shape for x in given))
    return tuple(x if x.type.shape == shape else pg.broadcast_to(x, shape) for x in given)


def repeat_interleave(
    input: Any, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Any:
    """Repeat each element along `dim`; given counts alone, repeat their positions.

    >>> torch.repeat_interleave(torch.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    if repeats is None:
        return array_like(input, np.repeat(np.arange(len(input)), np.asarray(input)))
    counts = repeats if isinstance(repeats, int) else np.asarray(repeats).tolist()
    return pg.repeat(input, counts, dim)


def reshape_as(input: Any, other: Any) -> Any:
    """Return the same elements in the shape of `other`.

    >>> torch.arange(4).reshape_as(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return pg.reshape(input, other.shape)


def unflatten(input: Any, dim: int, sizes: Sequence[int]) -> Any:
    """Split an axis into several of these sizes, one of which may be -1.

    >>> torch.unflatten(torch.arange(6), 0, (2, -1)).shape
    torch.Size([2, 3])
    """
    axis = as_axis(dim, input.ndim)
    shape = tuple(input.shape)
    known = product(n for n in sizes if n != -1)
    parts = [shape[axis] // known if n == -1 else n for n in sizes]
    if product(parts) != shape[axis]:
        raise ShapeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} "
            f"({shape[axis]}) in the input tensor"
        )
    return pg.reshape(input, (*shape[:axis], *parts, *shape[axis + 1 :]))


def view_as(input: Any, other: Any) -> Any:
    """Return the same elements in the shape of `other`; see `view`.

    >>> torch.arange(4).view_as(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    return view(input, other.shape)
