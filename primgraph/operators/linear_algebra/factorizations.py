"""Matrix factors and functions as in scipy.linalg: LU, exponentials, bands, blocks.

All support float64, float32, complex128 and complex64; integers count as float64. Results for real
matrices are real.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.types import INT64, real_dtype
from primgraph.operators.call import namespace_operator
from primgraph.operators.elementwise.logic import where
from primgraph.operators.handle import ArrayLike
from primgraph.operators.index.indexing import take
from primgraph.operators.linear_algebra.products import matmul
from primgraph.operators.linear_algebra.systems import (
    cholesky,
    conjugate_complex,
    lapack_dtype,
    matrices,
    solve,
    solve_triangular,
    square_matrices,
    transpose_matrices,
)
from primgraph.operators.promotion import convert_dtype, lift, require_flag
from primgraph.operators.shape.creation import arange, eye, zeros
from primgraph.operators.shape.joining import concatenate
from primgraph.operators.shape.shaping import expand_dims, reshape_to
from primgraph.operators.variable import Variable, emit, emit_all
from primgraph.primitives.linear_algebra import matrix_functions


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors as columns.

    >>> pg.linalg.eig([[2.0, 0.0], [0.0, 1.0]]).eigenvalues.shape
    (2,)
    """

    eigenvalues: Variable
    eigenvectors: Variable


@namespace_operator
def _eig(a: ArrayLike) -> tuple[Variable, ...]:
    return emit_all(matrix_functions.eig, square_matrices("eig", a))


def eig(a: ArrayLike) -> EigResult:
    """Return eigenvalues, and eigenvectors of length 1 as columns.

    They are in NumPy's order. The dtype of the results is static: those of real matrices are real,
    and complex eigenvalues are a `LinAlgError` of the run; `eig(a.astype("complex128"))` returns
    all of them. Derivatives assume distinct eigenvalues: eigenvectors of equal ones are not rotated
    into each other, and complex eigenvectors have no change of phase. Raises `ShapeError` for
    matrices that are not square.

    >>> pg.linalg.eig([[2.0, 0.0], [0.0, 3.0]]).eigenvalues
    tensor([2., 3.])
    """
    return EigResult(*_eig(a))


@namespace_operator
def eigvals(a: ArrayLike) -> Variable:
    """Return the eigenvalues of matrices, real ones of real matrices; see `eig`.

    >>> pg.linalg.eigvals([[2.0, 0.0], [0.0, 3.0]])
    tensor([2., 3.])
    """
    return emit_all(matrix_functions.eig, square_matrices("eigvals", a))[0]


@namespace_operator
def expm(a: ArrayLike) -> Variable:
    """Return the exponential of each matrix of a stack, by Padé's approximant (Higham, 2005).

    Its derivative uses block matrices (Mathias, 1996), at every order. Raises `ShapeError` for
    matrices that are not square.

    >>> pg.linalg.expm(np.zeros((2, 2)))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return emit(matrix_functions.expm, square_matrices("expm", a))


@namespace_operator
def sqrtm(a: ArrayLike) -> Variable:
    """Compute the principal square root of each matrix: its eigenvalues have positive real parts.

    A real matrix with a negative eigenvalue has no real one, and a matrix with the eigenvalue 0
    none: a `LinAlgError` of the run. Convert it to complex numbers: there roots of negative
    eigenvalues are on the positive imaginary axis, as in SciPy. Raises `ShapeError` for matrices
    that are not square.

    >>> pg.linalg.sqrtm([[4.0, 0.0], [0.0, 9.0]]).numpy().round(6)
    array([[2., 0.],
           [0., 3.]])
    """
    return emit(matrix_functions.sqrtm, square_matrices("sqrtm", a))


@namespace_operator
def logm(a: ArrayLike) -> Variable:
    """Compute the principal logarithm of each matrix of a stack that has a principal root.

    Raises `ShapeError` for matrices that are not square; see `sqrtm`.

    >>> pg.linalg.logm(np.eye(2)).numpy().round(6) + 0.0
    array([[0., 0.],
           [0., 0.]])
    """
    return emit(matrix_functions.logm, square_matrices("logm", a))


# Triangular factors.


@namespace_operator
def lu(a: ArrayLike, permute_l: bool = False, p_indices: bool = False) -> tuple[Variable, ...]:
    """Compute `p, l, u` with `p @ l @ u = a`: a permutation, a unit lower and an upper triangle.

    With `permute_l` these are `p @ l` and `u`; with `p_indices` the first is the order of the rows
    of `a`, with `l[p] @ u = a`. The permutation has no derivative. Raises `ShapeError` for less
    than two axes.

    >>> [a.shape for a in pg.linalg.lu([[2.0, 1.0], [1.0, 3.0]])]
    [(2, 2), (2, 2), (2, 2)]
    """
    value = matrices("lu", a)
    order, left, right = emit_all(matrix_functions.lu, value)
    rows = order.shape[-1]
    place = convert_dtype(_equal_to_columns(order), real_dtype(value.dtype))
    if require_flag("permute_l", permute_l):
        return matmul(convert_dtype(transpose_matrices(place), value.dtype), left), right
    if require_flag("p_indices", p_indices):
        counted = reshape_to(arange(rows), (rows, 1))
        found = matmul(transpose_matrices(convert_dtype(place, INT64)), counted)
        return reshape_to(found, order.shape), left, right
    return transpose_matrices(place), left, right


def _equal_to_columns(order: Variable) -> Variable:
    return expand_dims(order, -1) == arange(order.shape[-1])


@namespace_operator
def lu_factor(a: ArrayLike) -> tuple[Variable, ...]:
    """Compute both triangles of `lu` in one matrix, without the ones, and the order of rows.

    It is for `lu_solve`. The order lists rows of `a`, and not exchanges as in SciPy. Raises
    `ShapeError` for matrices that are not square.

    >>> factor = pg.linalg.lu_factor([[2.0, 0.0], [0.0, 4.0]])
    >>> pg.linalg.lu_solve(factor, [2.0, 4.0])
    tensor([1., 1.])
    """
    value = square_matrices("lu_factor", a)
    order, left, right = emit_all(matrix_functions.lu, value)
    return left - eye(value.shape[-1], dtype=value.dtype) + right, order


@namespace_operator
def lu_solve(lu_and_piv: tuple[ArrayLike, ArrayLike], b: ArrayLike, trans: int = 0) -> Variable:
    """Return `x` with `a @ x = b`, or `a.T @ x = b` if `trans`, by what `lu_factor` gives of `a`.

    With `trans` 2 it is the adjoint instead of `a.T`. Raises `ShapeError` for shapes that do not
    match.

    >>> factor = pg.linalg.lu_factor([[2.0, 0.0], [0.0, 4.0]])
    >>> pg.linalg.lu_solve(factor, [2.0, 4.0])
    tensor([1., 1.])
    """
    both, order = (lift(x) for x in lu_and_piv)
    dtype = lapack_dtype("lu_solve", both, b)
    both, right = lift(both, dtype), lift(b, dtype)
    if trans not in (0, 1, 2):
        raise ArgumentError(f"lu_solve takes trans 0, 1 or 2, not {trans!r:.40}")
    columns = right if right.ndim > 1 else expand_dims(right, -1)
    place = convert_dtype(_equal_to_columns(order), both.dtype)
    if trans:
        first = solve_triangular(both, columns, trans=trans)
        second = solve_triangular(both, first, trans=trans, lower=True, unit_diagonal=True)
        found = matmul(transpose_matrices(place), second)
    else:
        first = solve_triangular(both, matmul(place, columns), lower=True, unit_diagonal=True)
        found = solve_triangular(both, first)
    return found if right.ndim > 1 else reshape_to(found, found.shape[:-1])


@namespace_operator
def _cho_factor(a: ArrayLike, lower: bool) -> Variable:
    value = square_matrices("cho_factor", a)
    return cholesky(value) if lower else cholesky(value, upper=True)


def cho_factor(a: ArrayLike, lower: bool = False) -> tuple[Variable, bool]:
    """Return the Cholesky factor for `cho_solve`: a triangle, and whether it is the lower one.

    The other triangle is zero. Raises `ShapeError` for matrices that are not square; one that is
    not positive definite is a `LinAlgError` of the run.

    >>> pg.linalg.cho_factor([[4.0, 0.0], [0.0, 1.0]])[1]
    False
    """
    return _cho_factor(a, bool(lower)), bool(lower)


@namespace_operator
def cho_solve(c_and_lower: tuple[ArrayLike, bool], b: ArrayLike) -> Variable:
    """Return `x` with `a @ x = b`, by what `cho_factor` gives of `a`.

    Raises `ShapeError` for shapes that do not match.

    >>> factor = pg.linalg.cho_factor([[4.0, 0.0], [0.0, 1.0]])
    >>> pg.linalg.cho_solve(factor, [4.0, 2.0])
    tensor([1., 2.])
    """
    factor, lower = c_and_lower
    first = solve_triangular(factor, b, trans=0 if lower else 2, lower=lower)
    return solve_triangular(factor, first, trans=2 if lower else 0, lower=lower)


# Structured matrices.


@namespace_operator
def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Variable:
    """Return the matrix of first column `c` and first row `r`, with constant diagonals.

    The first element of `r`, by default the conjugate of `c`, is ignored. Raises `ShapeError`
    unless both are vectors.

    >>> pg.linalg.toeplitz([1.0, 2.0], [1.0, 3.0])
    tensor([[1., 3.],
            [2., 1.]])
    """
    column = lift(c)
    row = conjugate_complex(column) if r is None else lift(r)
    if column.ndim != 1 or row.ndim != 1:
        raise ShapeError(f"toeplitz takes vectors, not {column.type} and {row.type}")
    rows, columns = column.shape[0], row.shape[0]
    values = concatenate([column[::-1], row[1:]]) if columns > 1 else column[::-1]
    place = expand_dims(arange(rows)[::-1], 1) + arange(columns)
    return take(values, place, 0)


@namespace_operator
def solve_toeplitz(c_or_cr: Any, b: ArrayLike) -> Variable:
    """Return `x` with `t @ x = b` for `t = toeplitz(c)`, or `toeplitz(c, r)`, by elimination.

    Raises `ShapeError` for shapes that do not match.

    >>> pg.linalg.solve_toeplitz([2.0, 0.0], [2.0, 4.0])
    tensor([1., 2.])
    """
    matrix = toeplitz(*c_or_cr) if isinstance(c_or_cr, tuple) else toeplitz(c_or_cr)
    return solve(matrix, b)


@namespace_operator
def solve_banded(l_and_u: tuple[int, int], ab: ArrayLike, b: ArrayLike) -> Variable:
    """Return `x` with `a @ x = b`, for a matrix with diagonals in the rows of `ab`, from the top.

    `l_and_u` are the numbers of diagonals below and above the main one; `ab[u + i - j, j]` is `a[i,
    j]`. The matrix is solved as a dense one, in cubic time. Raises `ShapeError` unless `ab` has as
    many rows as there are diagonals.

    >>> pg.linalg.solve_banded((0, 0), [[2.0, 4.0]], [2.0, 4.0])
    tensor([1., 1.])
    """
    below, above = l_and_u
    bands = lift(ab, lapack_dtype("solve_banded", ab, b))
    if bands.ndim != 2 or bands.shape[0] != below + above + 1:
        raise ShapeError(
            f"solve_banded takes {below + above + 1} rows of diagonals, not {bands.type}"
        )
    n = bands.shape[1]
    i, j = np.indices((n, n))
    within = (i - j <= below) & (j - i <= above)
    place = np.where(within, (above + i - j) * n + j, 0)
    elements = take(reshape_to(bands, (bands.shape[0] * n,)), place, 0)
    return solve(where(lift(within), elements, convert_dtype(lift(0.0), bands.dtype)), b)


@namespace_operator
def block_diag(*arrays: ArrayLike) -> Variable:
    """Return the matrix with these matrices along its diagonal; vectors count as rows.

    Raises `ShapeError` for more than two axes, `ArgumentError` if there are none.

    >>> pg.linalg.block_diag([[1.0]], [[2.0]])
    tensor([[1., 0.],
            [0., 2.]])
    """
    if not arrays:
        raise ArgumentError("block_diag takes at least one matrix")
    parts = [lift(x) for x in arrays]
    parts = [p if p.ndim == 2 else reshape_to(p, (1, p.size)) if p.ndim < 2 else p for p in parts]
    strange = [p for p in parts if p.ndim != 2]
    if strange:
        raise ShapeError(f"block_diag takes matrices, not {strange[0].type}")
    width, before, rows = sum(p.shape[1] for p in parts), 0, list[Variable]()
    for part in parts:
        left = zeros((part.shape[0], before), part.dtype)
        before += part.shape[1]
        right = zeros((part.shape[0], width - before), part.dtype)
        rows.append(concatenate([left, part, right], 1))
    return concatenate(rows, 0)


@namespace_operator
def solve_sylvester(a: ArrayLike, b: ArrayLike, q: ArrayLike) -> Variable:
    """Return `x` with `a @ x + x @ b = q`, as one system of all elements of `x`.

    The cost is that of elimination with as many unknowns. Raises `ShapeError` for shapes that do
    not match; equations without a unique solution are a `LinAlgError` of the run.

    >>> pg.linalg.solve_sylvester([[1.0]], [[1.0]], [[4.0]]).numpy().round(6)
    array([[2.]])
    """
    dtype = lapack_dtype("solve_sylvester", a, b, q)
    left, right, side = (lift(x, dtype) for x in (a, b, q))
    for x in (left, right):
        if x.ndim != 2 or x.shape[0] != x.shape[1]:
            raise ShapeError(f"solve_sylvester takes square matrices, not {x.type}")
    m, n = left.shape[0], right.shape[0]
    if side.shape != (m, n):
        raise ShapeError(
            f"solve_sylvester takes matrices that fit, not {left.type}, {right.type}, {side.type}"
        )
    # Matrices, for elements in row-major order, of the maps to `a @ x` and to `x @ b`.
    ones_n, ones_m = eye(n, dtype=dtype), eye(m, dtype=dtype)
    rows = reshape_to(left, (m, 1, m, 1)) * reshape_to(ones_n, (1, n, 1, n))
    columns = reshape_to(ones_m, (m, 1, m, 1)) * reshape_to(transpose_matrices(right), (1, n, 1, n))
    whole = reshape_to(rows + columns, (m * n, m * n))
    return reshape_to(solve(whole, reshape_to(side, (m * n,))), (m, n))
