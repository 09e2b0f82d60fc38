"""Factors of matrices, of variables and tensors, with SciPy's arguments where NumPy's differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph import linalg
from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.types import complex_dtype
from primgraph.operators.call import namespace_operator
from primgraph.operators.elementwise.arithmetic import clip, square
from primgraph.operators.elementwise.elementary import arccos, arcsin
from primgraph.operators.elementwise.logic import where
from primgraph.operators.linear_algebra.matrices import assume
from primgraph.operators.linear_algebra.systems import (
    adjoint,
    lapack_dtype,
    matrices,
    square_matrices,
    symmetric,
)
from primgraph.operators.promotion import convert_dtype, lift
from primgraph.operators.reduce.reductions import sum
from primgraph.operators.shape.matrix_building import diag
from primgraph.operators.shape.shaping import expand_dims, reshape_to, triu
from primgraph.operators.variable import Variable

# Eigenvalues.


@namespace_operator
def _generalized_eigh(a: Any, b: Any, kind: int, lower: bool) -> tuple[Variable, Variable]:
    """By the factor of `b`, to an ordinary problem and back (LAPACK Users' Guide, 2.3.7)."""
    dtype = lapack_dtype("eigh", a, b)
    value, other = (square_matrices("eigh", lift(x, dtype)) for x in (a, b))
    factor = linalg.cholesky(other) if lower else adjoint(linalg.cholesky(other, upper=True))
    whole = _from_lower(symmetric(value if lower else adjoint(value)))
    if kind == 1:
        left = linalg.solve_triangular(factor, whole, lower=True)
        middle = adjoint(linalg.solve_triangular(factor, adjoint(left), lower=True))
    else:
        middle = adjoint(factor) @ whole @ factor
    w, y = linalg.eigh(middle)
    if kind == 3:
        return w, factor @ y
    return w, linalg.solve_triangular(factor, y, trans=2, lower=True)


def _from_lower(a: Variable) -> Variable:
    n = a.shape[-1]
    i, j = np.indices((n, n))
    return where(i >= j, a, adjoint(a))


def eigh(
    a: Any,
    b: Any = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    type: int = 1,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: Any = None,
) -> Any:
    """Eigenvalues and eigenvectors of a symmetric or Hermitian matrix, for `b` of the pair.

    With `b`, which is positive definite, the problem is `a @ v = w * b @ v`, `a @ b @ v = w * v`,
    or `b @ a @ v = w * v` for `type` 1, 2 and 3. `subset_by_index` are the first and the last index
    of those that are wanted; a subset by values would have a shape that depends on these.
    """
    if subset_by_value is not None:
        raise ArgumentError("how many eigenvalues lie between two depends on numbers",
                            hint="subset_by_index chooses a number of them")  # fmt: skip
    if type not in (1, 2, 3):
        raise ArgumentError(f"eigh takes type 1, 2 or 3, not {type!r:.40}")
    if b is None:
        triangle = "L" if lower else "U"
        if eigvals_only and subset_by_index is None:
            return linalg.eigvalsh(a, triangle)
        w, v = linalg.eigh(a, triangle)
    else:
        w, v = _generalized_eigh(a, b, type, bool(lower))
    if subset_by_index is not None:
        first, last = subset_by_index
        w, v = w[..., first : last + 1], v[..., first : last + 1]
    return w if eigvals_only else (w, v)


def eigvalsh(a: Any, b: Any = None, *, lower: bool = True, **kwargs: Any) -> Any:
    """The eigenvalues of a symmetric or Hermitian matrix; see `eigh`."""
    return eigh(a, b, lower=lower, eigvals_only=True, **kwargs)


@namespace_operator
def _complex_eig(a: Any, b: Any) -> tuple[Variable, ...]:
    value = square_matrices("eig", lift(a, lapack_dtype("eig", a) if b is None
                                        else lapack_dtype("eig", a, b)))  # fmt: skip
    if b is not None:
        value = linalg.solve(b, value)
    return tuple(linalg.eig(convert_dtype(value, complex_dtype(value.dtype))))


@namespace_operator
def _left_eigenvectors(v: Any) -> Variable:
    """Left eigenvectors of length 1 of right ones: the rows of the inverse, conjugated."""
    rows = adjoint(linalg.inv(v))
    return rows / convert_dtype(linalg.norm(rows, axis=-2, keepdims=True), rows.dtype)


def eig(
    a: Any, b: Any = None, left: bool = False, right: bool = True, homogeneous_eigvals: bool = False
) -> Any:
    """Eigenvalues and eigenvectors, complex ones, of a matrix or of `a @ v = w * b @ v`.

    With `left` there are left ones before the right ones. Vectors have the dtype of eigenvalues,
    where SciPy gives real ones if all are.
    """
    if homogeneous_eigvals:
        raise ArgumentError("eig takes no homogeneous_eigvals with variables")
    w, v = _complex_eig(a, b)
    chosen = [f(v) for f, wanted in ((_left_eigenvectors, left), (lambda x: x, right)) if wanted]
    return (w, *chosen) if chosen else w


def eigvals(a: Any, b: Any = None, *, homogeneous_eigvals: bool = False) -> Any:
    """The eigenvalues, complex ones; see `eig`."""
    return eig(a, b, right=False, homogeneous_eigvals=homogeneous_eigvals)


@namespace_operator
def _tridiagonal(d: Any, e: Any) -> Variable:
    dtype = lapack_dtype("eigh_tridiagonal", d, e)
    along, beside = lift(d, dtype), lift(e, dtype)
    if along.ndim != 1 or beside.shape != (along.shape[0] - 1,):
        raise ShapeError(
            f"eigh_tridiagonal of {along.type} and {beside.type}: e has one element less than d"
        )
    return diag(along) + diag(beside, 1) + diag(beside, -1)


def eigh_tridiagonal(
    d: Any,
    e: Any,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: Any = None,
    tol: float = 0.0,
    lapack_driver: Any = None,
) -> Any:
    """Eigenvalues and eigenvectors of the symmetric matrix with these diagonals, `e` beside `d`.

    `select` is "a", or "i" for those from the first to the last index in `select_range`.
    """  # fmt: skip
    if select not in ("a", "i"):
        raise ArgumentError(f"select is 'a' or 'i' with variables, not {select!r:.40}")
    chosen = tuple(select_range) if select == "i" else None
    return eigh(_tridiagonal(d, e), eigvals_only=eigvals_only, subset_by_index=chosen)


def eigvalsh_tridiagonal(d: Any, e: Any, select: str = "a", select_range: Any = None) -> Any:
    """The eigenvalues of the symmetric matrix with these diagonals; see `eigh_tridiagonal`."""
    return eigh_tridiagonal(d, e, True, select, select_range)


# Orthogonal and triangular factors.


def qr(a: Any, *, mode: str = "full", pivoting: bool = False) -> Any:
    """`Q @ R`, both of full size, or "economic" ones; `(R,)` in mode "r"."""
    if pivoting:
        raise ArgumentError("qr takes no pivoting with variables: that order depends on numbers")
    if mode not in ("full", "economic", "r"):
        raise ArgumentError(f"qr takes mode 'full', 'economic' or 'r', not {mode!r:.40}")
    q, r = linalg.qr(a, "reduced" if mode == "economic" else "complete")
    return (r,) if mode == "r" else (q, r)


@namespace_operator
def _schur(a: Any, output: str) -> tuple[Variable, Variable]:
    value = square_matrices("schur", a)
    if output == "complex":
        value = convert_dtype(value, complex_dtype(value.dtype))
    w, v = linalg.eig(value)
    q, r = linalg.qr(v)
    scaled = adjoint(r * expand_dims(w, -2))
    return triu(adjoint(linalg.solve_triangular(r, scaled, trans=2))), q


def schur(a: Any, output: str = "real", *, sort: Any = None) -> tuple[Any, Any]:
    """`T` and `Z` with `Z @ T @ Z.T = a`: an upper triangle, and orthogonal columns.

    It is made of eigenvectors, which have to be independent, by their factors `Q @ R`; so a column
    of `Z` may differ from SciPy's by a number of length 1. A real matrix with complex eigenvalues,
    which has blocks in SciPy's `T`, is a `LinAlgError` of the run, but with `output="complex"`.
    """
    if sort is not None:
        raise ArgumentError("schur takes no sort with variables")
    if output not in ("real", "complex", "r", "c"):
        raise ArgumentError(f"schur takes output 'real' or 'complex', not {output!r:.40}")
    return _schur(a, "complex" if output.startswith("c") else "real")


@namespace_operator
def polar(a: Any, side: str = "right") -> tuple[Variable, Variable]:
    """`u @ p`, or `p @ u` for the side "left": orthogonal columns and a semidefinite matrix."""
    if side not in ("left", "right"):
        raise ArgumentError(f"polar takes side 'left' or 'right', not {side!r:.40}")
    u, s, vh = linalg.svd(matrices("polar", a), full_matrices=False)
    sizes = expand_dims(convert_dtype(s, u.dtype), -2)
    p = (adjoint(vh) * sizes) @ vh if side == "right" else (u * sizes) @ adjoint(u)
    return u @ vh, p


@namespace_operator
def orthogonal_procrustes(A: Any, B: Any) -> tuple[Variable, Variable]:
    """The orthogonal matrix `r` that brings `A @ r` next to `B`, and the sum of singular values."""
    dtype = lapack_dtype("orthogonal_procrustes", A, B)
    x, y = (matrices("orthogonal_procrustes", lift(v, dtype)) for v in (A, B))
    if x.type != y.type:
        raise ShapeError(f"orthogonal_procrustes of {x.type} and {y.type}: the shapes differ")
    u, s, vh = linalg.svd(adjoint(x) @ y)
    return u @ vh, sum(s, -1)


# Spaces, of which the number of dimensions is told.


def _require_size(name: str, size: int | None) -> int:
    if size is None:
        raise ShapeError(
            f"the number of columns that {name} gives depends on numbers",
            hint=f"tell it: {name}(a, size=2)",
        )
    return size


@namespace_operator
def orth(A: Any, rcond: Any = None, *, size: int | None = None) -> Variable:
    """Orthogonal columns that span those of `A`: the first `size` left singular vectors."""
    count = _require_size("orth", size)
    return linalg.svd(matrices("orth", A), full_matrices=False)[0][..., :count]


@namespace_operator
def null_space(A: Any, rcond: Any = None, *, size: int | None = None) -> Variable:
    """Orthogonal columns that `A` makes zero: the last `size` right singular vectors."""
    count = _require_size("null_space", size)
    vh = linalg.svd(matrices("null_space", A))[2]
    return adjoint(vh[..., vh.shape[-2] - count :, :])


@namespace_operator
def subspace_angles(A: Any, B: Any) -> Variable:
    """The angles between the spaces of the columns, which are independent, the largest first.

    A. V. Knyazev and M. E. Argentati, Principal angles between subspaces in an A-based scalar
    product, SIAM J. Sci. Comput. 23 (2002), 2008.
    """
    x, y = (linalg.qr(matrices("subspace_angles", m))[0] for m in (A, B))
    between = adjoint(x) @ y
    cosines = linalg.svdvals(between)
    rest = y - x @ between if x.shape[1] >= y.shape[1] else x - y @ adjoint(between)
    sines = linalg.svdvals(rest)
    small = square(cosines) >= 0.5
    found = where(small, arcsin(clip(sines[::-1], -1.0, 1.0)), arccos(clip(cosines, -1.0, 1.0)))
    return found[::-1]


# Pseudo-inverses.


def _relative(name: str, a: Variable, atol: Any, rtol: Any) -> float:
    if atol:
        raise ArgumentError(f"{name} takes rtol, and no atol, with variables")
    eps = float(np.finfo(a.dtype).eps)
    return max(a.shape[-2:]) * eps if rtol is None else float(rtol)


@namespace_operator
def _pinv(a: Any, atol: Any, rtol: Any) -> Variable:
    value = matrices("pinv", a)
    return linalg.pinv(value, _relative("pinv", value, atol, rtol))


def pinv(a: Any, *, atol: Any = None, rtol: Any = None, return_rank: bool = False) -> Any:
    """The pseudo-inverse; singular values up to `rtol` times the largest one count as zero.

    That is the rounding unit times the larger extent unless given.
    """
    found = _pinv(a, atol, rtol)
    return (found, linalg.matrix_rank(a, rtol=rtol)) if return_rank else found


@namespace_operator
def _hermitian(a: Any, lower: bool) -> Variable:
    value = square_matrices("pinvh", a)
    return _from_lower(symmetric(value if lower else adjoint(value)))


def pinvh(
    a: Any, atol: Any = None, rtol: Any = None, lower: bool = True, return_rank: bool = False
) -> Any:
    """The pseudo-inverse of a symmetric or Hermitian matrix, of which one triangle is read."""
    return pinv(_hermitian(a, bool(lower)), atol=atol, rtol=rtol, return_rank=return_rank)


@namespace_operator
def _lstsq(a: Any, b: Any, cond: float | None) -> tuple[Variable, ...]:
    dtype = lapack_dtype("lstsq", a, b)
    limit = float(np.finfo(dtype).eps) if cond is None else float(cond)
    x, residuals, rank, s = linalg.lstsq(lift(a, dtype), lift(b, dtype), limit)
    right = lift(b)
    if right.ndim == 1 and residuals.size == 1:
        residuals = reshape_to(residuals, ())
    return x, residuals, rank, s


def lstsq(a: Any, b: Any, cond: float | None = None) -> tuple[Any, ...]:
    """The shortest `x` that makes `a @ x - b` least, sums of squares, rank and singular values.

    Singular values up to `cond` times the largest one count as zero, the rounding unit unless
    given.
    """
    return _lstsq(a, b, cond)


# The words of `assume` for the kinds of matrices that `solve` is told of.
_KINDS = {
    "diagonal": "diagonal",
    "lower triangular": "lower_triangular",
    "pos": "positive_definite",
    "positive definite": "positive_definite",
    "sym": "symmetric",
    "symmetric": "symmetric",
    "upper triangular": "upper_triangular",
}


def solve(a: Any, b: Any, lower: bool = False, assume_a: str = "gen", **kwargs: Any) -> Any:
    """Solve linear systems of a matrix of the kind `assume_a`, which complex ones ignore."""
    is_complex = getattr(getattr(a, "dtype", None), "kind", "f") == "c"
    has_kind = assume_a in _KINDS and not is_complex
    return linalg.solve(assume(a, _KINDS[assume_a]) if has_kind else a, b, **kwargs)


def cholesky(a: Any, lower: bool = False) -> Any:
    """Compute the triangular factors of positive definite matrices, the upper ones by default."""
    return linalg.cholesky(a, upper=not lower)
