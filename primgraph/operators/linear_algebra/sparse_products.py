"""Products with sparse matrices, and triangular systems of them.

A product is a gather, a multiplication and a sum over segments.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.errors import ShapeError
from primgraph.ir.types import INT64
from primgraph.operators.call import namespace_operator
from primgraph.operators.elementwise.arithmetic import multiply
from primgraph.operators.index.indexing import take
from primgraph.operators.index.scatter import scatter_add
from primgraph.operators.linear_algebra.systems import lapack_dtype
from primgraph.operators.promotion import lift
from primgraph.operators.shape.creation import zeros
from primgraph.operators.shape.shaping import expand_dims
from primgraph.operators.variable import Variable, emit
from primgraph.primitives.linear_algebra import systems


@namespace_operator
def multiply_entries(
    rows: Any, columns: Any, data: Any, x: Any, count: int, axis: int = 0
) -> Variable:
    """Return the product of the matrix of `count` rows that has `data` at `rows`, `columns` with
    each vector along `axis` of `x`.

    Elements at the same position add up.
    """
    value, factors = lift(x), lift(data)
    for _ in range(axis + 1, value.ndim):
        factors = expand_dims(factors, -1)
    terms = multiply(factors, take(value, columns, axis=axis))
    shape = (*value.shape[:axis], count, *value.shape[axis + 1 :])
    return scatter_add(zeros(shape, terms.dtype), rows, terms, axis=axis)


@namespace_operator
def solve_entries(rows: Any, columns: Any, data: Any, b: Any, *, is_lower: bool) -> Variable:
    """Return `x` with `t @ x = b`: the triangular `t` has `data` at `rows`, `columns`, in order of
    rows and columns.

    Without elements on the diagonal, that is ones.
    """
    dtype = lapack_dtype("solve_triangular", data, b)
    right = lift(b, dtype)
    whole = expand_dims(right, 1) if right.ndim == 1 else right
    found = emit(systems.sparse_triangular_solve, lift(data, dtype), whole,
                 lift(rows, INT64), lift(columns, INT64), reverse=not is_lower)  # fmt: skip
    return found[:, 0] if right.ndim == 1 else found


def multiply_left(matrix: Any, x: Any) -> Any:
    """Return `matrix @ x` for a sparse matrix of SciPy, and a variable or tensor `x`.

    Raises `ShapeError` for different inner sizes.
    """
    rows, found = _rows(matrix)
    axis = max(x.ndim - 2, 0)
    _require_product(x.ndim > 0 and x.shape[axis] == found.shape[1], found, x)
    return multiply_entries(rows, found.indices, found.data, x, found.shape[0], axis)


def multiply_right(x: Any, matrix: Any) -> Any:
    """Return `x @ matrix`; see `multiply_left`."""
    rows, found = _rows(matrix)
    _require_product(x.ndim > 0 and x.shape[-1] == found.shape[0], x, found)
    return multiply_entries(found.indices, rows, found.data, x, found.shape[1], x.ndim - 1)


def _rows(matrix: Any) -> tuple[Any, Any]:
    """Return the row of each element, and the matrix in compressed rows."""
    if matrix.ndim != 2:
        raise ShapeError(f"a sparse matrix has 2 axes, not the shape {matrix.shape}")
    found = matrix.tocsr()
    count = np.arange(found.shape[0], dtype=found.indices.dtype)
    return np.repeat(count, np.diff(found.indptr)), found


def _require_product(fits: bool, x1: Any, x2: Any) -> None:
    if not fits:
        raise ShapeError(f"there is no product of shapes {x1.shape} and {x2.shape}")
