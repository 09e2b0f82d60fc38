"""Matrices and grids: diagonals, powers, indices."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.dims import names_in
from primgraph.ir.types import INT64, as_dtype, as_shape
from primgraph.operators.call import public
from primgraph.operators.elementwise.arithmetic import multiply
from primgraph.operators.elementwise.logic import greater_equal, where
from primgraph.operators.handle import ArrayLike
from primgraph.operators.index.scatter import set_slice
from primgraph.operators.promotion import (
    broadcast_to_shape,
    convert_dtype,
    lift,
    require_flag,
    require_integer,
    type_of,
)
from primgraph.operators.reduce.reductions import sum
from primgraph.operators.shape.creation import arange, astype, eye, iota, ones_like, zeros
from primgraph.operators.shape.joining import diagonal, stack
from primgraph.operators.shape.shaping import reshape_to
from primgraph.operators.variable import Variable


@public
def diag(x: ArrayLike, k: int = 0) -> Variable:
    """Return the diagonal `k` of a matrix, or a square matrix with a vector as that diagonal.

    Positive `k` lie to the right. Raises `ShapeError` for other than one or two axes.

    >>> pg.diag([1.0, 2.0])
    tensor([[1., 0.],
            [0., 2.]])
    """
    value, number = lift(x), require_integer("diag", k)
    if value.ndim == 2:
        return diagonal(value, number)
    if value.ndim != 1:
        raise ShapeError(f"diag takes a vector or a matrix, not {value.type}")
    count = value.shape[0]
    extent = count + (number if number >= 0 else -number)
    if names_in((extent,)):
        row = where(eye(count, dtype=bool), value, convert_dtype(lift(0), value.dtype))
        return row if number == 0 else _move_diagonal(row, number)
    flat = zeros((extent * extent,), value.dtype)
    start = number if number >= 0 else -number * extent
    if count:
        stop = start + (count - 1) * (extent + 1) + 1
        flat = set_slice(flat, slice(start, stop, extent + 1), value)
    return reshape_to(flat, (extent, extent))


def _move_diagonal(matrix: Variable, number: int) -> Variable:
    """Pad a matrix of symbolic size with zeros so that its diagonal moves to `number`."""
    extent = matrix.shape[0] + (number if number >= 0 else -number)
    rows = slice(0, matrix.shape[0]) if number > 0 else slice(-number, extent)
    columns = slice(number, extent) if number > 0 else slice(0, matrix.shape[0])
    return set_slice(zeros((extent, extent), matrix.dtype), (rows, columns), matrix)


@public
def diagflat(x: ArrayLike, k: int = 0) -> Variable:
    """Return a square matrix of zeros with the elements of `x`, in row-major order, on a diagonal.

    >>> pg.diagflat([1.0, 2.0])
    tensor([[1., 0.],
            [0., 2.]])
    """
    value = lift(x)
    return diag(reshape_to(value, (value.size,)), k)


@public
def trace(
    x: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, *, dtype: Any = None
) -> Variable:
    """Return the sum of a diagonal of two axes; a positive `offset` is to the right.

    Raises `ShapeError` for less than two axes, or one named twice.
    """
    return sum(diagonal(x, offset, axis1, axis2), -1, dtype=dtype)


@public
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Variable:
    """Return ones at and below the diagonal `k` of a matrix of shape `(N, M)`, zeros elsewhere.

    `M` is `N` and the dtype the default one unless given.

    >>> pg.tri(2)
    tensor([[1., 0.],
            [1., 1.]])
    """
    shape = as_shape((N, N if M is None else M))
    below = greater_equal(iota(shape, 0) + require_integer("tri", k), iota(shape, 1))
    return astype(below, zeros((), dtype).dtype)


def _places(matrix: npt.NDArray[Any]) -> tuple[Variable, ...]:
    return tuple([lift(places) for places in np.nonzero(matrix)])


@public
def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Variable, ...]:
    """Return the rows and columns of what `tril` keeps of a matrix of shape `(n, m)`, as constants.

    >>> pg.tril_indices(2)
    (tensor([0, 1, 1], dtype=int64), tensor([0, 0, 1], dtype=int64))
    """
    return _places(_triangle("tril_indices", n, k, m))


@public
def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Variable, ...]:
    """Return the rows and columns of what `triu` keeps of a matrix of shape `(n, m)`, as constants.

    >>> pg.triu_indices(2)
    (tensor([0, 0, 1], dtype=int64), tensor([0, 1, 1], dtype=int64))
    """
    return _places(~_triangle("triu_indices", n, k - 1, m))


@public
def tril_indices_from(x: ArrayLike, k: int = 0) -> tuple[Variable, ...]:
    """Return the rows and columns of what `tril` keeps of the matrix `x`, as constants.

    >>> pg.tril_indices_from(np.ones((2, 2)))
    (tensor([0, 1, 1], dtype=int64), tensor([0, 0, 1], dtype=int64))
    """
    rows, columns = _matrix_shape("tril_indices_from", x)
    return tril_indices(rows, k, columns)


@public
def triu_indices_from(x: ArrayLike, k: int = 0) -> tuple[Variable, ...]:
    """Return the rows and columns of what `triu` keeps of the matrix `x`, as constants.

    >>> pg.triu_indices_from(np.ones((2, 2)))
    (tensor([0, 0, 1], dtype=int64), tensor([0, 1, 1], dtype=int64))
    """
    rows, columns = _matrix_shape("triu_indices_from", x)
    return triu_indices(rows, k, columns)


@public
def diag_indices_from(x: ArrayLike) -> tuple[Variable, ...]:
    """Return the positions of the diagonal of `x`, an array of equal sizes, as constants.

    Raises `ShapeError` for an array of fewer than 2 axes, or of different sizes.

    >>> pg.diag_indices_from(np.ones((2, 2)))
    (tensor([0, 1], dtype=int64), tensor([0, 1], dtype=int64))
    """
    found = type_of(x)
    if found.ndim < 2 or any(n != found.shape[0] for n in found.shape):
        raise ShapeError(f"diag_indices_from takes an array of equal sizes, not {found}")
    return tuple(arange(found.shape[0]) for _ in found.shape)


def _triangle(name: str, n: Any, k: Any, m: Any) -> npt.NDArray[Any]:
    rows, shift = require_integer(name, n), require_integer(name, k)
    return np.tri(rows, rows if m is None else require_integer(name, m), shift, dtype=bool)


def _matrix_shape(name: str, x: ArrayLike) -> tuple[int, int]:
    found = type_of(x)
    if len(found.shape) != 2:
        raise ShapeError(f"{name} takes a matrix, not {found}")
    return found.shape[0], found.shape[1]


@public
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Variable:
    """Return the matrix whose columns are powers of a vector, highest first unless `increasing`.

    There are as many as rows unless `N` is given. Raises `ShapeError` for other than one axis.

    >>> pg.vander([1.0, 2.0], 3)
    tensor([[1., 1., 1.],
            [4., 2., 1.]])
    """
    value, rises = lift(x), require_flag("increasing", increasing)
    if value.ndim != 1:
        raise ShapeError(f"vander takes a vector, not {value.type}")
    count = value.shape[0] if N is None else require_integer("vander", N)
    if count < 0:
        raise ArgumentError(f"vander makes no negative number of columns, such as {count}")
    value = convert_dtype(value, as_dtype(np.promote_types(value.dtype, INT64)))
    if count == 0:
        return zeros((value.shape[0], 0), value.dtype)
    columns = list(accumulate([ones_like(value), *[value] * (count - 1)], multiply))
    return stack(columns if rises else columns[::-1], 1)


@public
def indices(dimensions: Any, dtype: Any = np.int64, sparse: bool = False) -> Any:
    """Return for each axis of an array of these extents the index along it at each place.

    They are stacked along a new first axis; with `sparse` they are a tuple of arrays that
    broadcast.

    >>> pg.indices((2, 2)).shape
    (2, 2, 2)
    """
    shape, wanted = as_shape(dimensions), as_dtype(dtype)
    if require_flag("sparse", sparse):
        ndim = len(shape)
        thin = [tuple(n if i == a else 1 for i in range(ndim)) for a, n in enumerate(shape)]
        return tuple([iota(s, a, wanted) for a, s in enumerate(thin)])
    if not shape:
        return zeros((0,), wanted)
    return stack([iota(shape, a, wanted) for a in range(len(shape))])


@public
def meshgrid(
    *xi: ArrayLike,
    indexing: Literal["xy", "ij"] = "xy",
    sparse: bool = False,
    copy: bool = True,
) -> tuple[Variable, ...]:
    """Return coordinates of the points of a grid: for each vector an array along its axis.

    With "xy" the first vector lies along the second axis, and the second along the first. With
    `sparse` the other axes have size one. `copy` has no effect, as values are immutable.

    >>> [a.shape for a in pg.meshgrid([1.0, 2.0], [3.0, 4.0, 5.0])]
    [(3, 2), (3, 2)]
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: indexing is 'xy' or 'ij', not {indexing!r:.60}")
    vectors = [lift(x) for x in xi]
    vectors = [reshape_to(v, (v.size,)) for v in vectors]
    order = list(range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    ndim = len(vectors)
    shapes = [
        tuple(v.size if i == a else 1 for i in range(ndim))
        for v, a in zip(vectors, order, strict=True)
    ]
    thin = [reshape_to(v, s) for v, s in zip(vectors, shapes, strict=True)]
    if require_flag("sparse", sparse):
        return tuple(thin)
    extents = [0] * ndim
    for v, a in zip(vectors, order, strict=True):
        extents[a] = v.size
    return tuple([broadcast_to_shape(v, tuple(extents)) for v in thin])


@public
def kron(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """Compute Kronecker's product: `x2`, times each element of `x1`, in the place of that element.

    >>> pg.kron([1.0, 2.0], [1.0, 1.0])
    tensor([1., 1., 2., 2.])
    """
    x, y = lift(x1), lift(x2)
    ndim = max(x.ndim, y.ndim)
    x, y = (reshape_to(v, (1,) * (ndim - v.ndim) + v.shape) for v in (x, y))
    shape = tuple(n * m for n, m in zip(x.shape, y.shape, strict=True))
    left = reshape_to(x, tuple(k for n in x.shape for k in (n, 1)))
    right = reshape_to(y, tuple(k for n in y.shape for k in (1, n)))
    return reshape_to(multiply(left, right), shape)
