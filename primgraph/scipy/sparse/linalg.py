"""Linear algebra of sparse matrices by SciPy's names: SciPy's own, and triangular systems."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from primgraph.derivatives.matrices.sparse_constants import sparse_matrix
from primgraph.derivatives.matrices.sparse_matrix import SparseMatrix, entries_of
from primgraph.errors import ArgumentError, NotSquareError, ShapeError, unknown_name
from primgraph.operators.handle import Handle
from primgraph.operators.linear_algebra.sparse_products import solve_entries

__all__ = ["spsolve_triangular"]


def spsolve_triangular(
    A: Any,
    b: Any,
    lower: bool = True,
    overwrite_A: bool = False,
    overwrite_b: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """Return `x` with `A @ x = b` for a sparse triangular matrix, of SciPy or of `sparse_matrix`.

    Variables and tensors may be `b`, of shape (n,) or (n, m), and the values of `A`: derivatives of
    any order are by both. With `unit_diagonal` the diagonal counts as ones, and is not read. Arrays
    are solved for by SciPy if it is installed; `overwrite_A` and `overwrite_b` are for it alone.

    Raises `ArgumentError` for elements outside of the triangle and for a diagonal that is not
    stored. A zero on the diagonal is a `LinAlgError` of the run.

    >>> lower = pg.Pattern.from_coo([0, 1, 1], [0, 0, 1], (2, 2))
    >>> values = pg.tensor([2.0, 1.0, 4.0])
    >>> pg.scipy.sparse.linalg.spsolve_triangular(pg.sparse_matrix(lower, values), [2.0, 9.0])
    tensor([1., 2.])
    """
    matrix = A if isinstance(A, SparseMatrix) else sparse_matrix(A)
    rows, columns, data = _triangle(matrix, lower, unit_diagonal)
    shape = b.shape if isinstance(b, Handle) else np.shape(b)
    if len(shape) not in (1, 2) or shape[0] != matrix.shape[0]:
        raise ShapeError(f"a system of shape {matrix.shape} has no right-hand side of {shape}")
    if isinstance(data, Handle) or isinstance(b, Handle):
        return solve_entries(rows, columns, data, b, is_lower=lower)
    return _find("spsolve_triangular")(
        A.to_scipy() if isinstance(A, SparseMatrix) else A, b, lower, overwrite_A, overwrite_b,
        unit_diagonal,
    )  # fmt: skip


def _triangle(matrix: SparseMatrix, lower: bool, unit: bool) -> tuple[Any, Any, Any]:
    """Return rows, columns and values of the elements that a solve reads, row by row."""
    rows, columns, data = entries_of(matrix)
    n, wide = matrix.shape
    if n != wide:
        raise NotSquareError(f"spsolve_triangular takes square matrices, not {matrix.shape}")
    outside = np.flatnonzero(rows < columns if lower else rows > columns)
    if outside.size:
        kind, first = "lower" if lower else "upper", outside[0]
        place = f"({rows[first]}, {columns[first]})"
        raise ArgumentError(
            f"the matrix is not {kind} triangular: it stores an element at {place}",
            hint="scipy.sparse.tril and triu return triangles",
        )
    order = np.lexsort((columns, rows))
    kept = order[rows[order] != columns[order]] if unit else order
    if not unit and np.unique(rows[rows == columns]).size < n:
        raise ArgumentError(
            "the matrix is singular: it does not store all of its diagonal",
            hint="unit_diagonal=True is for a diagonal of ones",
        )
    if not np.array_equal(kept, np.arange(rows.size)):
        rows, columns, data = rows[kept], columns[kept], data[kept]
    return rows, columns, data


def _find(name: str) -> Any:
    try:
        return getattr(importlib.import_module("scipy.sparse.linalg"), name)
    except (ImportError, AttributeError):
        raise unknown_name("primgraph.scipy.sparse.linalg", name, __all__) from None


# A definition tells type checkers that a module has other names, too.
def __getattr__(name: str) -> Any:
    return _find(name)
