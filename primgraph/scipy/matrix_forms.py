"""Matrices of a certain form, of variables and tensors, with SciPy's names and arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, ShapeError
from primgraph.operators.call import namespace_operator
from primgraph.operators.elementwise.logic import where
from primgraph.operators.index.indexing import take
from primgraph.operators.promotion import convert_dtype, lift
from primgraph.operators.shape.creation import zeros
from primgraph.operators.shape.joining import concatenate
from primgraph.operators.shape.shaping import expand_dims, reshape_to
from primgraph.operators.variable import Variable


def _vector(name: str, given: Any, least: int = 1) -> Variable:
    value = lift(given)
    if value.ndim != 1 or value.shape[0] < least:
        raise ShapeError(f"{name} takes a vector of {least} elements or more, not {value.type}")
    return value


@namespace_operator
def circulant(c: Any) -> Variable:
    """The matrix with the first column `c`, whose columns go round; of each vector of a stack."""
    value = lift(c)
    if value.ndim < 1:
        raise ShapeError(f"circulant takes vectors, not {value.type}")
    i, j = np.indices((value.shape[-1],) * 2)
    return take(value, (i - j) % max(value.shape[-1], 1), value.ndim - 1)


@namespace_operator
def hankel(c: Any, r: Any = None) -> Variable:
    """The matrix with the first column `c`, the last row `r`, and equal elements across diagonals.

    The first element of `r`, which is zeros unless given, does not count.
    """
    column = _vector("hankel", c)
    row = zeros(column.shape, column.dtype) if r is None else _vector("hankel", r)
    values = concatenate([column, row[1:]])
    i, j = np.indices((column.shape[0], row.shape[0]))
    return take(values, i + j, 0)


@namespace_operator
def companion(a: Any) -> Variable:
    """The matrix whose eigenvalues are the roots of the polynomial with coefficients `a`."""
    value = _vector("companion", a, 2)
    first = -value[1:] / value[0]
    n = first.shape[0]
    below = np.eye(n - 1, n, dtype=first.dtype)
    return concatenate([expand_dims(first, 0), lift(below)], 0)


@namespace_operator
def convolution_matrix(a: Any, n: int, mode: str = "full") -> Variable:
    """The matrix whose product with a vector of `n` elements is its convolution with `a`."""
    value = _vector("convolution_matrix", a)
    m = value.shape[0]
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"mode is 'full', 'same' or 'valid', not {mode!r:.40}")
    if n < 1:
        raise ArgumentError(f"convolution_matrix takes a positive n, not {n}")
    rows = np.arange(n + m - 1)
    if mode == "same":
        size = max(m, n)
        start = (min(m, n) - 1) // 2
        rows = rows[start : start + size]
    elif mode == "valid":
        rows = rows[min(m, n) - 1 : max(m, n)]
    place = rows[:, None] - np.arange(n)
    within = (place >= 0) & (place < m)
    return where(
        within, take(value, np.where(within, place, 0), 0), convert_dtype(lift(0), value.dtype)
    )


@namespace_operator
def diagsvd(s: Any, M: int, N: int) -> Variable:
    """The `M` by `N` matrix with the vector `s` on its diagonal."""
    value = _vector("diagsvd", s)
    if value.shape[0] not in (M, N):
        raise ShapeError(f"diagsvd to {M} by {N}: {value.type} is as long as neither")
    count = value.shape[0]
    i, j = np.indices((M, N))
    on = (i == j) & (i < count)
    return where(on, take(value, np.where(on, i, 0), 0), convert_dtype(lift(0), value.dtype))


@namespace_operator
def fiedler(a: Any) -> Variable:
    """The symmetric matrix of the distances of the elements of a vector."""
    value = _vector("fiedler", a)
    return abs(expand_dims(value, 1) - expand_dims(value, 0))


@namespace_operator
def leslie(f: Any, s: Any) -> Variable:
    """The matrix with fertilities `f` in its first row, and `s` below the diagonal."""
    first, below = _vector("leslie", f, 2), _vector("leslie", s)
    n = first.shape[0]
    if below.shape[0] != n - 1:
        raise ShapeError(f"leslie of {first.type} and {below.type}: s has one element less than f")
    i, j = np.indices((n - 1, n))
    rest = where(i == j, expand_dims(below, 1), convert_dtype(lift(0), below.dtype))
    return concatenate([expand_dims(first, 0), rest], 0)


@namespace_operator
def khatri_rao(a: Any, b: Any) -> Variable:
    """The products of each column of `a` with that of `b`, as `kron` has them."""
    x, y = lift(a), lift(b)
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
        raise ShapeError(f"khatri_rao of {x.type} and {y.type}: not as many columns")
    both = expand_dims(x, 1) * expand_dims(y, 0)
    return reshape_to(both, (x.shape[0] * y.shape[0], x.shape[1]))
