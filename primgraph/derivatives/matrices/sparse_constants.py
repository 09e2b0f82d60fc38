"""Sparse matrices of known structure, with any values."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.derivatives.matrices.sparse_matrix import FORMATS, SparseMatrix
from primgraph.errors import ArgumentError
from primgraph.ir.frontend.signature import check_arguments
from primgraph.operators.handle import Handle
from primgraph.operators.index.indexing import take
from primgraph.operators.index.scatter import scatter_add
from primgraph.sparsity.coloring import Coloring
from primgraph.sparsity.pattern import Indices, Pattern, is_scipy_sparse


@check_arguments
def sparse_matrix(structure: Any, data: Any = None) -> SparseMatrix:
    """Return the sparse matrix with the structure of a sparse matrix of SciPy, or of a pattern.

    `data` has its values, in the order of `structure.tocoo().data`, of a pattern row by row: an
    array, or a variable or tensor, by which products with the matrix can be differentiated. The
    default are those of the matrix, and ones for a pattern. Values at one position add up.

    Raises `ArgumentError` for another object and for another number of values.

    >>> pattern = pg.Pattern.from_coo([0, 1], [2, 0], (2, 3))
    >>> pg.sparse_matrix(pattern, pg.tensor([1.0, 2.0])) @ np.array([1.0, 2.0, 3.0])
    tensor([3., 2.])
    """
    if isinstance(structure, Pattern):
        values = np.ones(structure.nnz) if data is None else data
        return _with_values("csr", structure, values)
    if not is_scipy_sparse(structure) or structure.ndim != 2:
        raise ArgumentError(
            f"the structure of a matrix is a pattern or a sparse matrix, not {structure!r:.60}",
            hint="pg.Pattern.from_coo(rows, columns, shape) is a pattern",
        )
    found = structure.tocoo()
    rows, columns, extents = found.row.astype(np.int64), found.col.astype(np.int64), found.shape
    format = structure.format if structure.format in FORMATS else "csr"
    if format == "csc":
        rows, columns, extents = columns, rows, extents[::-1]
    pattern = Pattern.from_coo(rows, columns, extents)
    values = _in_order(found.data if data is None else data, rows * extents[1] + columns)
    return _with_values(format, pattern.T if format == "csc" else pattern, values)


def _with_values(format: str, pattern: Pattern, data: Any) -> SparseMatrix:
    values = data if isinstance(data, Handle) else np.asarray(data)
    if values.shape != (pattern.nnz,):
        raise ArgumentError(f"a matrix of {pattern.nnz} elements has no values {values.shape}")
    # No products have computed the values, so that there are no colours.
    return SparseMatrix(values, format, pattern, Coloring(pattern, None, None, pattern.cols))


def _in_order(data: Any, keys: Indices) -> Any:
    """Return values in ascending order of the keys; those of equal keys are added."""
    values = data if isinstance(data, Handle) else np.asarray(data)
    if values.shape != keys.shape:
        raise ArgumentError(f"a matrix of {keys.size} elements has no values {values.shape}")
    order = np.argsort(keys, kind="stable")
    if np.any(order[1:] < order[:-1]):
        values = take(values, order) if isinstance(values, Handle) else values[order]
    is_new = np.diff(keys[order], prepend=-1) != 0
    if is_new.all():
        return values
    if isinstance(values, Handle):
        zeros = np.zeros(int(is_new.sum()), values.dtype)
        return scatter_add(zeros, np.cumsum(is_new) - 1, values)
    return np.add.reduceat(values, np.flatnonzero(is_new))
