"""Elements: selection by positions and masks, and comparisons of whole tensors."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.torch.functions.results import as_fixed_view, in_family
from primgraph.errors import ArgumentError, BoundsError, DTypeError, ShapeError
from primgraph.ir.types import as_axis

__all__ = [
    "allclose",
    "argwhere",
    "as_strided",
    "equal",
    "gather",
    "index_select",
    "masked_select",
    "narrow",
    "nonzero",
    "select",
    "take",
    "take_along_dim",
    "unfold",
]


def index_select(input: Any, dim: int, index: Any) -> Any:
    """Take the slices at positions `index` along `dim`.

    >>> torch.index_select(torch.tensor([5.0, 6.0, 7.0]), 0, torch.tensor([2, 0]))
    tensor([7., 5.])
    """
    if index.ndim > 1:
        raise BoundsError(f"index_select(): Index is supposed to be a vector, not {index.type}")
    return pg.take(input, index, dim)


def gather(input: Any, dim: int, index: Any) -> Any:
    """Take one element along `dim` for each of `index`.

    Other sizes of `index` are at most those of `input`, whose remaining elements are left out.
    Raises `ShapeError` for larger ones.

    >>> x = torch.tensor([[1, 2], [3, 4]])
    >>> torch.gather(x, 1, torch.tensor([[1], [0]]))
    tensor([[2],
            [3]])
    """
    axis = as_axis(dim, input.ndim)
    wanted = np.shape(index) if isinstance(index, list) else index.shape
    parts = [builtins.slice(n) for n in wanted]
    fits = len(parts) == input.ndim and builtins.all(
        i == axis or n <= extent
        for i, (n, extent) in enumerate(zip(wanted, input.shape, strict=True))
    )
    if not fits:
        raise ShapeError(
            f"gather along axis {dim} of an array of shape {tuple(input.shape)} takes no index of "
            f"shape {tuple(wanted)}",
            hint="take_along_dim broadcasts",
        )
    parts[axis] = builtins.slice(None)
    return pg.take_along_axis(input[tuple(parts)], index, dim)


def take_along_dim(input: Any, indices: Any, dim: int | None = None) -> Any:
    """Take one element along `dim` for each of `indices`, or of all elements.

    >>> x = torch.tensor([[1, 2], [3, 4]])
    >>> torch.take_along_dim(x, torch.tensor([[1], [0]]), dim=1)
    tensor([[2],
            [3]])
    """
    flat = dim is None
    return pg.take_along_axis(pg.flatten(input) if flat else input, indices, 0 if flat else dim)


def allclose(
    input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Return whether all elements agree to `atol + rtol * abs(other)`.

    >>> torch.allclose(torch.ones(2), torch.ones(2) + 1e-6)
    True
    """
    return np.allclose(np.asarray(input), np.asarray(other), rtol, atol, equal_nan)


def equal(input: Any, other: Any) -> bool:
    """Return whether shapes and all elements are the same.

    >>> torch.equal(torch.ones(2), torch.ones(2))
    True
    """
    return np.array_equal(np.asarray(input), np.asarray(other))


def take(input: Any, index: Any) -> Any:
    """Take elements at positions among all of them, in the shape of `index`.

    >>> torch.take(torch.tensor([[5.0, 6.0], [7.0, 8.0]]), torch.tensor([0, 3]))
    tensor([5., 8.])
    """
    return pg.take(pg.flatten(input), index)


def masked_select(input: Any, mask: Any) -> Any:
    """Return the elements where the mask is true, as a vector.

    >>> torch.masked_select(torch.tensor([1.0, 2.0]), torch.tensor([False, True]))
    tensor([2.])
    """
    if mask.dtype.kind != "b":
        raise DTypeError(f"masked_select: expected BoolTensor for mask, not {mask.type}")
    x, chosen = pg.broadcast_arrays(input, mask)
    return x[chosen]


def nonzero(input: Any, *, as_tuple: builtins.bool = False) -> Any:
    """Return positions of nonzero elements, as rows of a matrix, or along each axis.

    >>> torch.nonzero(torch.tensor([0, 3, 4]))
    tensor([[1],
            [2]])
    """
    return in_family(input, pg.nonzero(input) if as_tuple else pg.argwhere(input))


def argwhere(input: Any) -> Any:
    """Return positions of nonzero elements, as rows of a matrix.

    >>> torch.argwhere(torch.tensor([0, 3, 4]))
    tensor([[1],
            [2]])
    """
    return in_family(input, pg.argwhere(input))


def as_strided(input: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """Return the elements at `storage_offset + sum(i * stride)` of a contiguous tensor.

    Nothing can be written to it. Raises `ArgumentError` for a tensor whose elements are in another
    order.

    >>> torch.as_strided(torch.arange(5), (3, 2), (1, 1))
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    if not input.is_contiguous():
        raise ArgumentError("as_strided takes a contiguous tensor", hint="x.contiguous() is one")
    places = np.asarray(storage_offset or 0)
    for count, step in zip(size, stride, strict=True):
        places = places[..., None] + np.arange(count) * step

    def take(x: Any) -> Any:
        return pg.take(pg.flatten(x), places)

    return as_fixed_view(take(input), input, take)


def narrow(input: Any, dim: int, start: int, length: int) -> Any:
    """Return `length` slices from position `start` along `dim`.

    Raises `BoundsError` for slices outside the array.

    >>> torch.narrow(torch.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    axis = as_axis(dim, input.ndim)
    extent = input.shape[axis]
    start = int(start)
    start += extent if start < 0 else 0
    if not 0 <= start <= start + length <= extent:
        raise BoundsError(
            f"narrow: {length} slices from {start} on are not among {extent} along axis {dim}"
        )
    return input[(*[slice(None)] * axis, slice(start, start + length))]


def select(input: Any, dim: int, index: int) -> Any:
    """Return the slice at one position along `dim`, without that axis.

    >>> torch.select(torch.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """
    return input[(*[slice(None)] * as_axis(dim, input.ndim), index)]


def unfold(input: Any, dimension: int, size: int, step: int) -> Any:
    """Return windows of `size` elements along an axis, `step` apart, along a new last axis.

    >>> torch.arange(4).unfold(0, 2, 1)
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    axis = as_axis(dimension, input.ndim)
    extent = input.shape[axis]
    if size > extent:
        raise ShapeError(
            f"maximum size for tensor at dimension {dimension} is {extent} but size is {size}"
        )
    starts = np.arange(0, extent - size + 1, step)

    def take(x: Any) -> Any:
        return pg.moveaxis(pg.take(x, starts[:, None] + np.arange(size), axis), axis + 1, -1)

    return as_fixed_view(take(input), input, take)
