"""Positions, factors of LU, and names that torch has for other functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.torch.functions.elements import narrow, nonzero
from primgraph.compat.torch.functions.joining import chunk, split
from primgraph.compat.torch.functions.results import array_like, in_family
from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.types import as_shape

__all__ = [
    "lu_unpack",
    "narrow_copy",
    "nonzero_static",
    "unravel_index",
    "unsafe_chunk",
    "unsafe_split",
]

unsafe_chunk, unsafe_split = chunk, split


def unravel_index(indices: Any, shape: Any) -> tuple[Any, ...]:
    """Return the positions along each axis of elements that are counted in a row.

    >>> torch.unravel_index(torch.tensor([1, 5]), (2, 3))
    (tensor([0, 1]), tensor([1, 2]))
    """
    if indices.dtype.kind not in "iu":
        raise ArgumentError(
            f"unravel_index(): expected 'indices' to be integer dtype, but got {indices.dtype}"
        )
    sizes = as_shape(shape)
    found, rest = [], indices
    for size in reversed(sizes):
        found.append(pg.remainder(rest, size))
        rest = pg.floor_divide(rest, size)
    return tuple(found[::-1])


def narrow_copy(input: Any, dim: int, start: Any, length: int) -> Any:
    """Return `narrow` with elements of its own.

    >>> torch.narrow_copy(torch.arange(5), 0, 1, 2)
    tensor([1, 2])
    """
    return pg.assign(narrow(input, dim, start, length))


def nonzero_static(input: Any, *, size: int, fill_value: int = -1) -> Any:
    """Return the positions of the first `size` elements that differ from zero, one in each row.

    Rows that are left are filled with a number.

    >>> torch.nonzero_static(torch.tensor([0, 3, 4]), size=3)
    tensor([[ 1],
            [ 2],
            [-1]])
    """
    places = nonzero(input)[:size]
    missing = size - places.shape[0]
    if not missing:
        return places
    rest = np.full((missing, input.ndim), fill_value, np.int64)
    return in_family(input, pg.concatenate([places, array_like(input, rest)]))


def lu_unpack(
    LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Any, Any, Any]:
    """Return the permutation and both triangular factors of the result of `linalg.lu_factor`.

    >>> P, L, U = torch.lu_unpack(*torch.linalg.lu_factor(torch.tensor([[0.0, 1.0], [2.0, 3.0]])))
    >>> P @ L @ U
    tensor([[0., 1.],
            [2., 3.]])
    """
    rows, columns = LU_data.shape[-2:]
    inner = min(rows, columns)
    dtype = LU_data.type.dtype
    empty = array_like(LU_data, np.zeros(0, dtype))
    if LU_pivots.shape[-1] != inner:
        raise ShapeError(f"LU_pivots of {inner} exchanges are needed, not {LU_pivots.type}")
    permutation, lower, upper = empty, empty, empty
    if unpack_pivots:
        pivots = LU_pivots._array().reshape(-1, inner)
        found = np.zeros((len(pivots), rows, rows), dtype)
        for matrix, exchanges in zip(found, pivots, strict=True):
            order = np.arange(rows)
            for i, j in enumerate(exchanges - 1):
                order[[i, j]] = order[[j, i]]
            matrix[order, np.arange(rows)] = 1
        permutation = array_like(LU_data, found.reshape((*LU_data.shape[:-2], rows, rows)))
    if unpack_data:
        lower = pg.tril(LU_data[..., :inner], -1) + np.eye(rows, inner, dtype=dtype)
        upper = pg.triu(LU_data[..., :inner, :])
    return permutation, lower, upper
