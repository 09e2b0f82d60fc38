"""Elements: selection along axes, counts and comparisons."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.errors import BoundsError, ShapeError
from primgraph.ir.types import as_axis
from primgraph.operators.handle import Handle

__all__ = [
    "allclose",
    "equal",
    "gather",
    "index_select",
    "is_complex",
    "is_tensor",
    "narrow",
    "numel",
    "select",
    "take_along_dim",
]


def index_select(input: Any, dim: int, index: Any) -> Any:
    """Take the slices at positions `index` along `dim`.

    >>> torch.index_select(torch.tensor([5.0, 6.0, 7.0]), 0, torch.tensor([2, 0]))
    tensor([7., 5.])
    """
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


def take_along_dim(input: Any, indices: Any, dim: int) -> Any:
    """Take one element along `dim` for each of `indices`.

    >>> x = torch.tensor([[1, 2], [3, 4]])
    >>> torch.take_along_dim(x, torch.tensor([[1], [0]]), dim=1)
    tensor([[2],
            [3]])
    """
    return pg.take_along_axis(input, indices, dim)


def select(input: Any, dim: int, index: int) -> Any:
    """Return the slice at one position along `dim`, without that axis.

    >>> torch.select(torch.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """
    return input[(*[builtins.slice(None)] * as_axis(dim, input.ndim), index)]


def narrow(input: Any, dim: int, start: int, length: int) -> Any:
    """Return `length` slices from position `start` along `dim`.

    Raises `BoundsError` for slices outside the array.

    >>> torch.narrow(torch.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    axis = as_axis(dim, input.ndim)
    extent = input.shape[axis]
    start += extent if start < 0 else 0
    if not 0 <= start <= start + length <= extent:
        raise BoundsError(
            f"narrow: {length} slices from {start} on are not among {extent} along axis {dim}"
        )
    lead = [builtins.slice(None)] * axis
    return input[(*lead, builtins.slice(start, start + length))]


def is_complex(input: Any) -> builtins.bool:
    """Return whether the elements are complex.

    >>> torch.is_complex(torch.ones(2))
    False
    """
    return builtins.bool(input.dtype.kind == "c")


def numel(input: Any) -> int:
    """Return the number of elements.

    >>> torch.numel(torch.ones(2, 3))
    6
    """
    return int(input.type.size)


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


def is_tensor(obj: Any) -> bool:
    """Return whether `obj` is a tensor.

    >>> torch.is_tensor(torch.ones(2))
    True
    """
    return isinstance(obj, Handle)
