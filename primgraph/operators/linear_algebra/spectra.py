"""Eigenvalues, singular values, QR and least squares, as in numpy.linalg.

All support stacks of matrices, of float64, float32, complex128 and complex64; integers count as
float64. Vectors of repeated eigenvalues and singular values are not unique, nor are the phases of
complex vectors; docs/conventions.md defines their derivatives.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.types import larger, real_dtype
from primgraph.operators.call import namespace_operator
from primgraph.operators.elementwise.arithmetic import square
from primgraph.operators.elementwise.logic import greater, not_equal
from primgraph.operators.handle import ArrayLike
from primgraph.operators.linear_algebra.products import matmul
from primgraph.operators.linear_algebra.systems import (
    adjoint,
    lapack_dtype,
    matrices,
    square_matrices,
    symmetric,
)
from primgraph.operators.promotion import convert_dtype, lift, require_number
from primgraph.operators.reduce.reductions import any, max, sum
from primgraph.operators.shape.creation import zeros
from primgraph.operators.shape.joining import slice_axis
from primgraph.operators.shape.shaping import expand_dims, reshape_to
from primgraph.operators.variable import Variable, emit, emit_all
from primgraph.primitives.linear_algebra import spectra
from primgraph.primitives.parts import imag, real


class EighResult(NamedTuple):
    """Eigenvalues in ascending order, and eigenvectors as columns.

    >>> pg.linalg.eigh([[2.0, 0.0], [0.0, 1.0]]).eigenvalues
    tensor([1., 2.])
    """

    eigenvalues: Variable
    eigenvectors: Variable


class SVDResult(NamedTuple):
    """Factors of `U * S @ Vh`, with singular values in descending order.

    >>> pg.linalg.svd([[3.0, 0.0], [0.0, 4.0]]).S
    tensor([4., 3.])
    """

    U: Variable
    S: Variable
    Vh: Variable


class QRResult(NamedTuple):
    """Orthogonal columns and an upper triangle.

    >>> pg.linalg.qr(np.ones((4, 2))).R.shape
    (2, 2)
    """

    Q: Variable
    R: Variable


class LstsqResult(NamedTuple):
    """Solution, sums of squared residuals, rank and singular values.

    >>> solution = pg.linalg.lstsq(np.eye(2), np.ones(2))
    >>> solution._fields
    ('x', 'residuals', 'rank', 'singular_values')
    """

    x: Variable
    residuals: Variable
    rank: Variable
    singular_values: Variable


def _symmetric(name: str, a: ArrayLike, triangle: str) -> Variable:
    """Return the operand for a function that reads the lower triangle, for NumPy's choice of
    one."""
    if triangle not in ("L", "U", "l", "u"):
        raise ArgumentError(f"{name} takes UPLO 'L' or 'U', not {triangle!r:.40}")
    value = symmetric(square_matrices(name, a))
    return value if triangle in "Ll" else adjoint(value)


@namespace_operator
def _eigh(a: ArrayLike, triangle: str) -> tuple[Variable, ...]:
    return emit_all(spectra.eigh, _symmetric("eigh", a, triangle))


def eigh(a: ArrayLike, UPLO: str = "L") -> EighResult:
    """Return eigenvalues in ascending order, and eigenvectors as columns, of symmetric matrices.

    Complex matrices are Hermitian, and their eigenvalues are real. As in NumPy one triangle is
    read; the gradient is symmetric, or Hermitian. Eigenvectors of repeated eigenvalues are not
    rotated into each other by derivatives. Raises `ShapeError` for matrices that are not square; no
    convergence is a `LinAlgError` of the run.

    >>> pg.linalg.eigh([[2.0, 0.0], [0.0, 3.0]]).eigenvalues
    tensor([2., 3.])
    """
    return EighResult(*_eigh(a, UPLO))


@namespace_operator
def eigvalsh(a: ArrayLike, UPLO: str = "L") -> Variable:
    """Return the eigenvalues of symmetric matrices, in ascending order; see `eigh`.

    >>> pg.linalg.eigvalsh([[2.0, 0.0], [0.0, 3.0]])
    tensor([2., 3.])
    """
    return emit_all(spectra.eigh, _symmetric("eigvalsh", a, UPLO))[0]


@namespace_operator
def _svd(a: ArrayLike, full: bool) -> tuple[Variable, ...]:
    value = matrices("svd", a)
    return emit_all(spectra.svd, value, full=full and value.shape[-1] != value.shape[-2])


def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> SVDResult | Variable:
    """Compute `U * S @ Vh` with orthogonal columns of `U` and rows of `Vh`, for each matrix.

    Singular values are in descending order. `U` and `Vh` are square, or have as many columns and
    rows as there are singular values if not `full_matrices`. Without `compute_uv` only the singular
    values are returned. Vectors of repeated singular values are not rotated into each other by
    derivatives. `hermitian` has no effect. Raises `ShapeError` for less than two axes.

    >>> [a.shape for a in pg.linalg.svd(np.ones((3, 2)), full_matrices=False)]
    [(3, 2), (2,), (2, 2)]
    """
    if not compute_uv:
        return svdvals(a)
    return SVDResult(*_svd(a, bool(full_matrices)))


@namespace_operator
def svdvals(x: ArrayLike) -> Variable:
    """Return the singular values of each matrix, in descending order.

    >>> pg.linalg.svdvals([[3.0, 0.0], [0.0, 4.0]]).numpy().round(6)
    array([4., 3.])
    """
    return emit_all(spectra.svd, matrices("svdvals", x), full=False)[1]


@namespace_operator
def _qr(a: ArrayLike, complete: bool) -> tuple[Variable, ...]:
    value = matrices("qr", a)
    return emit_all(spectra.qr, value, complete=complete)


def qr(a: ArrayLike, mode: str = "reduced") -> QRResult | Variable:
    """Compute `Q @ R` with orthogonal columns of `Q` and an upper triangle `R`, for each matrix.

    For an m by n matrix, `Q` has min(m, n) columns, or m in mode "complete". Mode "r" returns only
    `R`. Derivatives require independent first columns: a singular triangle is a `LinAlgError` of
    the run. Raises `ArgumentError` for other modes, including "raw", `ShapeError` for less than two
    axes.

    >>> [a.shape for a in pg.linalg.qr(np.ones((3, 2)))]
    [(3, 2), (2, 2)]
    """
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"qr takes mode 'reduced', 'complete' or 'r', not {mode!r:.40}")
    result = QRResult(*_qr(a, mode == "complete"))
    return result.R if mode == "r" else result


def _tolerance(name: str, a: Variable, given: Any) -> float:
    """Return the tolerance of singular values, relative to the largest one."""
    if given is not None:
        return require_number(name, given)
    return float(np.finfo(a.dtype).eps) * larger(a.shape[-1], a.shape[-2])


@namespace_operator
def pinv(
    a: ArrayLike,
    rcond: float | None = None,
    hermitian: bool = False,
    *,
    rtol: float | None = None,
) -> Variable:
    """Return the pseudo-inverse of each matrix of a stack.

    Singular values up to `rcond` (or `rtol`) times the largest one count as zero; it is a number,
    by default 1e-15. The derivative is that for constant rank (Golub and Pereyra). `hermitian` has
    no effect. Raises `ShapeError` for less than two axes.

    >>> pg.linalg.pinv([[2.0, 0.0], [0.0, 0.0]]).numpy().round(6)
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    given = rcond if rtol is None else rtol
    limit = 1e-15 if given is None else require_number("pinv", given)
    return emit(spectra.pinv, matrices("pinv", a), rcond=float(limit))


@namespace_operator
def _lstsq(a: ArrayLike, b: ArrayLike, rcond: float | None) -> tuple[Variable, ...]:
    dtype = lapack_dtype("lstsq", a, b)
    value, right = lift(a, dtype), lift(b, dtype)
    if value.ndim != 2 or right.ndim not in (1, 2):
        raise ShapeError(f"lstsq takes a matrix and a vector or matrix, not {value.type} and "
                         f"{right.type}")  # fmt: skip
    if value.shape[0] != right.shape[0]:
        raise ShapeError(f"lstsq of {value.type} and {right.type}: the numbers of rows differ")
    limit = _tolerance("lstsq", value, rcond)
    columns = right if right.ndim == 2 else expand_dims(right, 1)
    x = matmul(emit(spectra.pinv, value, rcond=limit), columns)
    s = emit(spectra.svdvals, value)
    residuals = zeros((0,), real_dtype(dtype))
    if value.shape[0] > value.shape[1]:
        residuals = sum(_squared_size(columns - matmul(value, x)), 0)
    solution = x if right.ndim == 2 else reshape_to(x, x.shape[:1])
    return solution, residuals, _count_above(s, limit), s


def _squared_size(x: Variable) -> Variable:
    if not x.type.is_complex:
        return square(x)
    return square(emit(real, x)) + square(emit(imag, x))


def lstsq(a: ArrayLike, b: ArrayLike, rcond: float | None = None) -> LstsqResult:
    """Return the shortest `x` that minimizes the sum of squares of `a @ x - b`, for a matrix `a`.

    Further results are the sums of squares of the columns of `b`, the rank of `a`, and its singular
    values, of which those up to `rcond` times the largest one count as zero. As shapes are static,
    sums of squares are returned for all matrices with more rows than columns, and only these.
    Raises `ShapeError` for shapes that do not match.

    >>> pg.linalg.lstsq([[1.0], [1.0]], [1.0, 3.0])[0].numpy().round(6)
    array([2.])
    """
    return LstsqResult(*_lstsq(a, b, rcond))


def _count_above(s: Variable, limit: float) -> Variable:
    """Return the number of singular values larger than `limit` times the largest one."""
    if s.shape[-1] == 0:
        return sum(zeros(s.shape, np.int64), -1)
    return sum(
        convert_dtype(greater(s, slice_axis(s, s.ndim - 1, 0, 1) * limit), np.dtype(np.int64)), -1
    )


@namespace_operator
def matrix_rank(
    A: ArrayLike,
    tol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rtol: ArrayLike | None = None,
) -> Variable:
    """Return how many singular values of each matrix are larger than `tol`, as int64.

    By default, `tol` is `rtol` times the largest one, and `rtol` the machine epsilon times the
    larger dimension; both may be arrays, with a number for each matrix. A vector has rank 1 unless
    it is zero. Raises `ArgumentError` if both are given.

    >>> pg.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]])
    tensor(1, dtype=int64)
    """
    if tol is not None and rtol is not None:
        raise ArgumentError("matrix_rank takes tol or rtol, not both")
    value = lift(A)
    if value.ndim < 2:
        return convert_dtype(any(not_equal(value, 0)), np.dtype(np.int64))
    value = matrices("matrix_rank", value)
    s = emit(spectra.svdvals, value)
    if tol is None:
        if rtol is None or np.ndim(rtol) == 0:
            return _count_above(s, _tolerance("matrix_rank", value, rtol))
        tol = lift(rtol, s.dtype) * max(s, -1)
    return sum(
        convert_dtype(greater(s, expand_dims(lift(tol, s.dtype), -1)), np.dtype(np.int64)), -1
    )
