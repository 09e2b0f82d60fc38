"""Orthogonal factorisations of stacks of matrices: eigenvalues, singular values, QR.

Derivatives follow M. B. Giles, An extended collection of matrix derivative results, 2008; those of
singular vectors J. Townsend, Differentiating the singular value decomposition, 2016; those of Q and
R S. Walter and L. Lehmann, Algorithmic differentiation of linear algebra functions, 2010.

Eigenvectors of repeated eigenvalues are not unique, and jump when the eigenvalues separate. Here
the tangent has no component between them: quotients by a difference of equal values are 0.

Vectors of complex matrices are unique up to a phase. Tangents of eigenvectors have no phase
component; singular vectors share one phase, and its tangent is split evenly between both. Results
that do not depend on the phase have the right derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primgraph.ir.facts.choices import RAISES
from primgraph.ir.facts.matrices import ALWAYS, Structure
from primgraph.ir.facts.passes import SPECTRUM
from primgraph.ir.graph import Value
from primgraph.ir.primitive import Primitive, primitive
from primgraph.ir.types import Shape, TensorType, smaller
from primgraph.primitives.constants import filled_constant
from primgraph.primitives.elementwise import mul
from primgraph.primitives.linear_algebra.products import declare_matrixwise, matmul, swap_last
from primgraph.primitives.linear_algebra.spectral_derivatives import (
    Spectrum,
    spectral_tangent,
    turned_vectors,
)
from primgraph.primitives.linear_algebra.systems import triangular_solve
from primgraph.primitives.linear_algebra.ties import (
    THIRD,
    any_in_columns,
    column_sums,
    diagonal_of,
    gaps,
    in_columns,
    reciprocal,
    ties_of,
    unless_any,
)
from primgraph.primitives.linear_algebra.triangles import (
    adjoint,
    cast_like,
    conjugate,
    from_lower,
    half_lower,
    lower_triangle,
    real_part,
    real_type,
    require_matrices,
    require_square,
)
from primgraph.primitives.shapes import concat, slice_

# Operations per element and row of LAPACK's usual methods (Golub and Van Loan, 2013).
_EIGH, _EIGVALSH, _SVD, _SVDVALS, _QR = 9, 2, 14, 4, 4


# Blocks of matrices.


def _part(x: Value, axis: int, start: int, size: int) -> Value:
    """Return a range of rows (axis -2) or columns (axis -1)."""
    rank = len(x.shape)
    starts, sizes = [0] * rank, list(x.shape)
    starts[axis], sizes[axis] = start, size
    return slice_(x, starts=tuple(starts), sizes=tuple(sizes), steps=(1,) * rank)


def _complete_tangent(all: Value, tangent: Value, count: int) -> Value:
    """Return the tangent of an orthogonal matrix, from the tangent of its first `count` columns.

    The tangents of the other columns are the smallest that keep them orthogonal to the first.
    """
    if count == all.shape[-1]:
        return tangent
    first = _part(all, -1, 0, count)
    rest = _part(all, -1, count, all.shape[-1] - count)
    turned = matmul(first, matmul(adjoint(tangent), rest))
    return concat(tangent, -turned, axis=len(all.shape) - 1)


# Taylor coefficients of eigenvalues.


def eigenvalue_coefficients(
    jets: Any, k: int, z: tuple[Any, Any], a: Any, basis: Callable[[Value, Value], Sequence[Value]]
) -> tuple[Value | None, Value | None]:
    """Return coefficient `k` of eigenvalues and eigenvectors, from `a @ v = v @ diag(w)`.

    The rate of each eigenvector is orthogonal to the vector, which fixes its part along `v_0`.
    `basis` returns, for `w_0` and `v_0`, the inverse of `v_0`, and `1 / (w[j] - w[i])` in row `i`
    and column `j`, with a zero for equal values.
    """
    w, v = z
    columns = jets.expand_function(_columns_like, w, v)
    rest = jets.difference(
        jets.convolution(matmul, a, v, k, k, 1), jets.convolution(mul, v, columns, k, k - 1, 1)
    )
    if rest is None:
        return None, None
    start = v.first()
    inverse, quotients = basis(w.first(), start)
    within = matmul(inverse, rest)
    moved = matmul(start, within * quotients)
    along = jets.total([conjugate(start) * moved, _known_part(jets, k, v)])
    value = diagonal_of(within)
    value = value if w.type.is_complex else real_part(value)
    return value, moved - start * in_columns(column_sums(along), start.shape[-2])


def _columns_like(w: Value, v: Value) -> Value:
    return cast_like(in_columns(w, v.shape[-2]), v)


def _known_part(jets: Any, k: int, v: Any) -> Value | None:
    """Return `sum(i * conj(v_{k-i}) * v_i) / k`, for i from 1 to k - 1."""
    if not v.type.is_complex:
        squares: Value | None = jets.square(mul, v, k, 1)
        return None if squares is None else squares * 0.5
    pairs = [(v[k - i], v[i], i / k) for i in range(1, k)]
    terms = [conjugate(x) * y * part for x, y, part in pairs if x is not None and y is not None]
    total: Value | None = jets.total(terms)
    return total


# Eigenvalues of symmetric matrices.


@primitive(
    impl=lambda a: np.linalg.eigh(a),
    multiple=True,
    singular=True,
    flops=lambda a: _EIGH * a.size * a.shape[-1],
)
def eigh(a: TensorType) -> tuple[TensorType, TensorType]:
    """Return ascending eigenvalues, and eigenvectors as columns, of symmetric matrices.

    Complex matrices are Hermitian, with real eigenvalues. Only the lower triangle is read.
    """
    require_square("eigh", a)
    return real_type(a.with_shape(a.shape[:-1])), a


@eigh.jvp()
def _eigh_jvp(z: tuple[Value, Value], a: Value, d: Value) -> tuple[Value, Value]:
    """Return `dw = diag(v.T @ da @ v)`, and `dv = v @ (v.T @ da @ v / (w_j - w_i))`."""
    w, v = z
    spectrum, change = Spectrum(a, w, v, v, True), from_lower(d)
    return spectral_tangent(spectrum, change), turned_vectors(spectrum, change)[0]


@eigh.taylor
def _eigh_taylor(jets: Any, k: int, z: tuple[Any, Any], a: Any) -> Any:
    """Up to order 2, JVP rules are used: they know what equal eigenvalues mean."""
    if k <= 2:
        return NotImplemented
    whole = jets.expand_function(from_lower, a)
    return eigenvalue_coefficients(jets, k, z, whole, _orthogonal_basis)


def _orthogonal_basis(w: Value, v: Value) -> tuple[Value, Value]:
    """Return the inverse of eigenvectors, and the quotients by distances, if all are distinct."""
    bad = in_columns(any_in_columns(ties_of(w), w), v.shape[-2])
    quotients = unless_any(reciprocal(gaps(w), w), bad, message=THIRD)
    return adjoint(v), cast_like(quotients, v)


@eigh.batch
def _eigh_batch(batched: tuple[bool, ...], a: Value) -> tuple[Value, ...]:
    return eigh(a)


@primitive(
    impl=lambda a: np.linalg.eigvalsh(a),
    singular=True,
    flops=lambda a: _EIGVALSH * a.size * a.shape[-1],
)
def eigvalsh(a: TensorType) -> TensorType:
    """Return the eigenvalues of symmetric matrices (lower triangles), in ascending order."""
    require_square("eigvalsh", a)
    return real_type(a.with_shape(a.shape[:-1]))


@eigvalsh.jvp()
def _eigvalsh_jvp(z: Value, a: Value, d: Value) -> Value:
    _, v = eigh(a)
    return spectral_tangent(Spectrum(a, z, v, v, True), from_lower(d))


@eigvalsh.taylor
def _eigvalsh_taylor(jets: Any, k: int, z: Any, a: Any) -> Value | None:
    values: Value | None = jets.apply_all(eigh, (a,), (), jets.order)[0][k]
    return values


@eigvalsh.batch
def _eigvalsh_batch(batched: tuple[bool, ...], a: Value) -> Value:
    return eigvalsh(a)


# Singular values.


def _shapes_of_svd(a: TensorType, full: bool) -> tuple[Shape, Shape, Shape]:
    *lead, m, n = a.shape
    k = smaller(m, n)
    return (*lead, m, m if full else k), (*lead, k), (*lead, n if full else k, n)


def _svd_flops(a: TensorType, **params: bool) -> int:
    return _SVD * a.size * smaller(*a.shape[-2:])


@primitive(
    impl=lambda a, *, full: np.linalg.svd(a, full_matrices=full),
    multiple=True,
    singular=True,
    flops=_svd_flops,
)
def svd(a: TensorType, *, full: bool) -> tuple[TensorType, ...]:
    """Return `u, s, vt` with `a = u * s @ vt`, orthonormal columns of `u` and rows of `vt`.

    Singular values are in descending order. An m by n matrix has k = min(m, n) of them; `u` and
    `vt` are square if `full`, else they have k columns and rows.
    """
    require_matrices("svd", a)
    u, s, vt = _shapes_of_svd(a, full)
    return a.with_shape(u), real_type(a.with_shape(s)), a.with_shape(vt)


@svd.jvp()
def _svd_jvp(z: tuple[Value, Value, Value], a: Value, d: Value, *, full: bool) -> tuple[Value, ...]:
    """Return the tangents by Townsend's formulas; those of the vectors are in `turned_vectors`."""
    all_u, s, all_vt = z
    count = s.shape[-1]
    u, v = _part(all_u, -1, 0, count), adjoint(_part(all_vt, -2, 0, count))
    spectrum = Spectrum(a, s, u, v, False)
    du, dv = turned_vectors(spectrum, d)
    if full:
        du, dv = _complete_tangent(all_u, du, count), _complete_tangent(adjoint(all_vt), dv, count)
    return du, spectral_tangent(spectrum, d), adjoint(dv)


@svd.batch
def _svd_batch(batched: tuple[bool, ...], a: Value, *, full: bool) -> tuple[Value, ...]:
    return svd(a, full=full)


@primitive(
    impl=lambda a: np.linalg.svd(a, compute_uv=False),
    singular=True,
    flops=lambda a: _SVDVALS * a.size * smaller(*a.shape[-2:]),
)
def svdvals(a: TensorType) -> TensorType:
    """Return the singular values of each matrix in descending order."""
    require_matrices("svdvals", a)
    return real_type(a.with_shape((*a.shape[:-2], smaller(*a.shape[-2:]))))


@svdvals.jvp()
def _svdvals_jvp(z: Value, a: Value, d: Value) -> Value:
    u, _, vt = svd(a, full=False)
    return spectral_tangent(Spectrum(a, z, u, adjoint(vt), False), d)


@svdvals.batch
def _svdvals_batch(batched: tuple[bool, ...], a: Value) -> Value:
    return svdvals(a)


for _op, _place, _alone in ((eigh, 0, eigvalsh), (svd, 1, svdvals)):
    _op.declare(SPECTRUM, (_place, _alone))
    _alone.declare(SPECTRUM, (0, _alone))


def _pinv(a: Any, *, rcond: float) -> Any:
    return np.linalg.pinv(a, rcond)


@primitive(impl=_pinv, singular=True, flops=lambda a, **params: _svd_flops(a))
def pinv(a: TensorType, *, rcond: float) -> TensorType:
    """Return the pseudo-inverse of each matrix.

    Singular values up to `rcond` times the largest count as zero.
    """
    require_matrices("pinv", a)
    return a.with_shape((*a.shape[:-2], a.shape[-1], a.shape[-2]))


@pinv.jvp()
def _pinv_jvp(z: Value, a: Value, d: Value, *, rcond: float) -> Value:
    """Return the tangent of the pseudo-inverse, for matrices of constant rank.

    G. H. Golub and V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares
    problems whose variables separate, SIAM J. Numer. Anal. 10 (1973), 413.
    """
    turned, zt = adjoint(d), adjoint(z)
    onto = matmul(matmul(z, zt), turned)
    out_of = matmul(turned, matmul(zt, z))
    change = -matmul(z, matmul(d, z))
    change = change + onto - matmul(matmul(onto, a), z)
    return change + out_of - matmul(z, matmul(a, out_of))


@pinv.batch
def _pinv_batch(batched: tuple[bool, ...], a: Value, *, rcond: float) -> Value:
    return pinv(a, rcond=rcond)


# Orthogonal and triangular factors.


def _qr(a: Any, *, complete: bool) -> Any:
    return np.linalg.qr(a, "complete" if complete else "reduced")


@primitive(
    impl=_qr,
    multiple=True,
    singular=True,
    flops=lambda a, **params: _QR * a.size * smaller(*a.shape[-2:]),
    facts={ALWAYS: {1: Structure.UPPER}},
)
def qr(a: TensorType, *, complete: bool) -> tuple[TensorType, TensorType]:
    """Return `q, r` with `a = q @ r`, orthonormal columns of `q` and an upper triangular `r`.

    For an m by n matrix `q` has m columns if `complete`, else k = min(m, n).
    """
    require_matrices("qr", a)
    *lead, m, n = a.shape
    count = m if complete else smaller(m, n)
    return a.with_shape((*lead, m, count)), a.with_shape((*lead, count, n))


@qr.jvp()
def _qr_jvp(z: tuple[Value, Value], a: Value, d: Value, *, complete: bool) -> tuple[Value, Value]:
    """Return the tangents of `q` and `r`; the first k columns of `a` must be independent."""
    all_q, all_r = z
    m, n = a.shape[-2:]
    k = smaller(m, n)
    q, r = _part(all_q, -1, 0, k), _part(all_r, -2, 0, k)
    square, change = _part(r, -1, 0, k), _part(d, -1, 0, k)
    solved = triangular_solve(square, swap_last(change), lower=False, transposed=True, unit=False)
    scaled = swap_last(solved)
    within = matmul(adjoint(q), scaled)
    # LAPACK's triangle has a real diagonal, which fixes the phase of complex columns.
    below = half_lower(within) if a.type.is_complex else lower_triangle(within, -1)
    turn = below - adjoint(below)
    dq = matmul(q, turn - within) + scaled
    dr = matmul(adjoint(q), d) - matmul(turn, r)
    if complete and k != m:
        dq = _complete_tangent(all_q, dq, k)
        rest = filled_constant(0, d.type.with_shape((*d.shape[:-2], m - k, n)))
        dr = concat(dr, rest, axis=len(d.shape) - 2)
    return dq, dr


@qr.batch
def _qr_batch(batched: tuple[bool, ...], a: Value, *, complete: bool) -> tuple[Value, ...]:
    return qr(a, complete=complete)


declare_matrixwise(eigh, eigvalsh, svd, svdvals, pinv, qr)
_RAISING: tuple[Primitive[Any], ...] = (eigh, eigvalsh, svd, svdvals, pinv)
for _op in _RAISING:
    _op.declare(RAISES, True)
