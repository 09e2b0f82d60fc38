"""Matrix functions, LU factors and eigenvalues of general matrices.

The derivative of an analytic matrix function along `e` is the upper right block of the function of
`[[a, e], [0, a]]`, and Taylor coefficients are blocks of its value at a block Toeplitz matrix: R.
Mathias, A chain rule for matrix functions and applications, SIAM J. Matrix Anal. Appl. 17 (1996),
610. Derivatives of triangular factors follow S. Walter and L. Lehmann,
Algorithmic differentiation of linear algebra functions, 2010.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from primgraph.approximations.matrices import turn_off_axis
from primgraph.errors import LinAlgError, ShapeError
from primgraph.ir.facts.choices import RAISES
from primgraph.ir.graph import Value
from primgraph.ir.primitive import Linear, Primitive, lookup, primitive
from primgraph.ir.types import INT64, TensorType, smaller
from primgraph.primitives.constants import filled_constant, iota, zeros_like
from primgraph.primitives.elementwise import cast
from primgraph.primitives.linear_algebra.products import declare_matrixwise, matmul, swap_last
from primgraph.primitives.linear_algebra.spectra import eigenvalue_coefficients
from primgraph.primitives.linear_algebra.systems import inv, triangular_solve
from primgraph.primitives.linear_algebra.ties import column_sums, diagonal_of, gaps, in_columns
from primgraph.primitives.linear_algebra.triangles import (
    conjugate,
    lower_triangle,
    require_matrices,
    require_square,
    upper_triangle,
)
from primgraph.primitives.logic import equal, select
from primgraph.primitives.shapes import broadcast, concat, slice_, with_batch_axis

# Operations per element and row (Higham, Functions of matrices, 2008).
_FUNCTION, _LU, _EIG = 20, 1, 25


def _block(x: Value, row: int, column: int, rows: Any, columns: Any) -> Value:
    """Return a block of rows and columns of each matrix."""
    lead = len(x.shape) - 2
    return slice_(
        x,
        starts=(*(0,) * lead, row, column),
        sizes=(*x.shape[:-2], rows, columns),
        steps=(1,) * (lead + 2),
    )


def _blocks(a: Value, b: Value, c: Value, d: Value) -> Value:
    last = len(a.shape) - 1
    above, below = concat(a, b, axis=last), concat(c, d, axis=last)
    return concat(above, below, axis=last - 1)


def _series_matrix(terms: Sequence[Value]) -> Value:
    """Return the upper triangular block Toeplitz matrix with `terms` as its first row of blocks.

    Sums and products of such matrices are those of series with these coefficients.
    """
    last, n, count = len(terms[0].shape) - 1, terms[0].shape[-1], len(terms)
    row = concat(*[zeros_like(terms[0])] * (count - 1), *terms, axis=last)
    rows = [_block(row, 0, i * n, n, count * n) for i in reversed(range(count))]
    return concat(*rows, axis=last - 1)


def _expand_by_blocks(op: Primitive[Value]) -> None:
    """Declare the Taylor coefficients of a matrix function, or of its derivative."""

    @op.expansion
    def expand_by_blocks(
        expand: object,
        inputs: Sequence[Value],
        moving: Mapping[int, Mapping[int, Value]],
        order: int,
    ) -> dict[int, dict[int, Value]]:
        n, series = inputs[0].shape[-1], []
        for i, x in enumerate(inputs):
            known = moving.get(i, {})
            rest = [known.get(k, zeros_like(x)) for k in range(1, order + 1)]
            series.append(_series_matrix([x, *rest]))
        found = op(*series)
        return {0: {k: _block(found, 0, k * n, n, n) for k in range(1, order + 1)}}


def _block_derivative(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the derivative of a matrix function, computed from a block matrix."""

    def slope(a: Any, d: Any) -> Any:
        n = a.shape[-1]
        whole = np.concatenate(
            [np.concatenate([a, d], -1), np.concatenate([np.zeros_like(a), a], -1)], -2
        )
        return function(whole)[..., :n, n:]

    return slope


def _declare_matrix_function(name: str, function: Callable[[Any], Any]) -> Primitive[Value]:
    """Declare a function of square matrices, and its derivative, linear in the tangent."""

    def cost(a: TensorType) -> int:
        return _FUNCTION * a.size * a.shape[-1]

    @primitive(name=name, impl=function, singular=True, flops=cost)
    def value(a: TensorType) -> TensorType:
        require_square(name, a)
        return a

    @primitive(
        name=f"{name}_slope",
        impl=_block_derivative(function),
        linear=(1,),
        singular=True,
        flops=lambda a, d: 8 * cost(a),
    )
    def slope(a: TensorType, d: TensorType) -> TensorType:
        require_square(f"{name}_slope", a)
        if a != d:
            raise ShapeError(f"{name}_slope of {a} takes a change of that type, not {d}")
        return a

    @value.jvp()
    def value_jvp(z: Value, a: Value, d: Value) -> Value:
        return slope(a, d)

    @value.batch
    def value_batch(batched: tuple[bool, ...], a: Value) -> Value:
        return value(a)

    @slope.jvp(0)
    def slope_jvp(z: Value, a: Value, d: Value, moved: Value) -> Value:
        n, zeros = a.shape[-1], zeros_like(a)
        found = slope(_blocks(a, d, zeros, a), _blocks(moved, zeros, zeros, moved))
        return _block(found, 0, n, n, n)

    @slope.transpose
    def slope_transpose(ct: Value, a: Value, d: Linear) -> tuple[None, Value]:
        return None, slope(swap_last(a), ct)

    @slope.batch
    def slope_batch(batched: tuple[bool, ...], a: Value, d: Value) -> Value:
        return slope(*with_batch_axis(batched, (a, d)))

    _expand_by_blocks(value)
    _expand_by_blocks(slope)
    return value


# Implementations of the interpreter: slow, and in the widest float dtype of the platform.
_WIDE = np.longdouble


def _widen_dtype(a: Any) -> Any:
    return a.astype(np.result_type(a.dtype, _WIDE))


def _inverse(a: Any) -> Any:
    """Return the inverse by LAPACK, refined by two steps of Newton's method."""
    double = np.complex128 if a.dtype.kind == "c" else np.float64
    found = _widen_dtype(np.linalg.inv(a.astype(double)))
    for _ in range(2):
        found = found @ (2 * np.eye(a.shape[-1]) - a @ found)
    return found


def _taylor(a: Any) -> Any:
    """Return the exponential by its Taylor series, with scaling and squaring."""
    size = float(np.max(np.sum(np.abs(a), -2), initial=0.0))
    halvings = max(0, int(np.ceil(np.log2(size))) + 2) if 0 < size < np.inf else 0
    small = _widen_dtype(a) / 2**halvings
    term = total = np.zeros_like(small) + np.eye(a.shape[-1])
    for k in range(1, 24):
        term = term @ small / k
        total = total + term
    for _ in range(halvings):
        total = total @ total
    with np.errstate(over="ignore"):
        return total.astype(a.dtype)


def _wide_root(a: Any) -> Any:
    """Return the principal square root by Newton's method in the form of Denman and Beavers."""
    y, z = a, np.zeros_like(a) + np.eye(a.shape[-1])
    for _ in range(100):
        before, inverse = y, _inverse(y)
        y, z = (y + _inverse(z)) / 2, (z + inverse) / 2
        if np.max(np.abs(y - before), initial=0.0) <= 1e-18 * np.max(np.abs(y), initial=0.0):
            break
    error = np.max(np.abs(y @ y - a), initial=0.0)
    if not error <= 1e-8 * np.max(np.abs(a), initial=0.0):
        if a.dtype.kind == "c":
            raise LinAlgError("a matrix has no principal square root")
        raise LinAlgError(
            "a matrix has no real principal square root: a.astype(complex) may have one"
        )
    return y


def _newton_root(a: Any) -> Any:
    return _principal_root(_widen_dtype(a)).astype(a.dtype)


def _principal_root(a: Any) -> Any:
    """Return the principal square root, of complex matrices also with negative eigenvalues."""
    if a.dtype.kind != "c" or not np.all(np.isfinite(a)):
        return _wide_root(a)
    turn = turn_off_axis(a.astype(np.complex128)).astype(_WIDE)
    return _wide_root(a * np.exp(-1j * turn)) * np.exp(0.5j * turn)


def _log_by_roots(a: Any) -> Any:
    """Return the logarithm by the series of a repeated square root close to the identity."""
    x, identity, roots = _widen_dtype(a), np.eye(a.shape[-1]), 0
    while np.max(np.abs(x - identity), initial=0.0) > 0.25 and roots < 60:
        x, roots = _principal_root(x), roots + 1
    ratio = _inverse(x + identity) @ (x - identity)
    square, power, total = ratio @ ratio, ratio, np.zeros_like(x)
    for k in range(1, 40, 2):
        total = total + power / k
        power = power @ square
    return (total * 2 ** (roots + 1)).astype(a.dtype)


expm = _declare_matrix_function("expm", _taylor)
sqrtm = _declare_matrix_function("sqrtm", _newton_root)
logm = _declare_matrix_function("logm", _log_by_roots)
SLOPES = expm_slope, sqrtm_slope, logm_slope = [
    lookup(f"{name}_slope") for name in ("expm", "sqrtm", "logm")
]


# LU factors.


def _lu_shapes(a: TensorType) -> tuple[TensorType, ...]:
    *lead, m, n = a.shape
    k = smaller(m, n)
    order = TensorType((*lead, m), INT64)
    return order, a.with_shape((*lead, m, k)), a.with_shape((*lead, k, n))


def _lu(a: Any) -> tuple[Any, Any, Any]:
    """Return order and LU factors of each matrix, by elimination with partial pivoting."""
    m, n = a.shape[-2:]
    flat = a.reshape((-1, m, n)) if a.size else np.zeros((0, m, n), a.dtype)
    count, k = int(np.prod(a.shape[:-2])), min(m, n)
    orders = np.zeros((count, m), np.int64) + np.arange(m)
    left, right = np.zeros((count, m, k), a.dtype), np.zeros((count, k, n), a.dtype)
    for i, matrix in enumerate(flat):
        rest, order = matrix.copy(), orders[i]
        for j in range(k):
            sizes = np.abs(rest[j:, j].real) + np.abs(rest[j:, j].imag)
            top = j + int(np.argmax(sizes))
            rest[[j, top]], order[[j, top]] = rest[[top, j]], order[[top, j]]
            if rest[j, j] != 0:
                rest[j + 1 :, j] /= rest[j, j]
                rest[j + 1 :, j + 1 :] -= np.outer(rest[j + 1 :, j], rest[j, j + 1 :])
        left[i] = np.tril(rest, -1)[:, :k] + np.eye(m, k, dtype=a.dtype)
        right[i] = np.triu(rest)[:k]
    if not a.size:
        left[...] = np.eye(m, k)
    lead = a.shape[:-2]
    return orders.reshape((*lead, m)), left.reshape((*lead, m, k)), right.reshape((*lead, k, n))


@primitive(
    impl=_lu,
    multiple=True,
    singular=True,
    flops=lambda a: _LU * a.size * smaller(*a.shape[-2:]),
)
def lu(a: TensorType) -> tuple[TensorType, ...]:
    """Return `order, l, u` with `a[order] = l @ u`, unit lower and upper triangular.

    The pivot is the largest element of its column in absolute value; for complex numbers in
    `abs(real) + abs(imag)`, as in LAPACK. The order has no derivative.
    """
    require_matrices("lu", a)
    return _lu_shapes(a)


def in_order(order: Value, like: Value) -> Value:
    """Return the permutation matrix that sorts rows into `order`."""
    m = order.shape[-1]
    shape = (*order.shape, m)
    rank = len(shape)
    column = iota(shape=shape, axis=rank - 1, dtype=INT64)
    chosen = equal(broadcast(order, shape=shape, new_axes=(rank - 1,)), column)
    return cast(chosen, dtype=like.dtype)


@lu.jvp()
def _lu_jvp(z: tuple[Value, Value, Value], a: Value, d: Value) -> tuple[None, Value, Value]:
    """Return `dl` and `du`: of the first k rows and columns from `inv(l) @ da @ inv(u)`."""
    order, left, right = z
    (m, n), k = a.shape[-2:], left.shape[-1]
    change = matmul(in_order(order, a), d)
    square_l, square_u = _block(left, 0, 0, k, k), _block(right, 0, 0, k, k)
    scaled = _from_right(square_u, _block(change, 0, 0, m, k))
    within = triangular_solve(
        square_l, _block(scaled, 0, 0, k, k), lower=True, transposed=False, unit=True
    )
    dl, du = matmul(square_l, lower_triangle(within, -1)), matmul(upper_triangle(within), square_u)
    axis = len(a.shape) - 2
    if m != k:
        below = _block(scaled, k, 0, m - k, k)
        rest = below - matmul(_block(left, k, 0, m - k, k), upper_triangle(within))
        dl = concat(dl, rest, axis=axis)
    if n != k:
        beside = _block(change, 0, k, k, n - k) - matmul(dl, _block(right, 0, k, k, n - k))
        rest = triangular_solve(square_l, beside, lower=True, transposed=False, unit=True)
        du = concat(du, rest, axis=axis + 1)
    return None, dl, du


def _from_right(u: Value, x: Value) -> Value:
    """Return `x @ inv(u)` for an upper triangular `u`."""
    return swap_last(triangular_solve(u, swap_last(x), lower=False, transposed=True, unit=False))


@lu.batch
def _lu_batch(batched: tuple[bool, ...], a: Value) -> tuple[Value, ...]:
    return lu(a)


# Eigenvalues of general matrices.


def _eig(a: Any) -> tuple[Any, Any]:
    w, v = np.linalg.eig(a)
    if w.dtype.kind != a.dtype.kind:
        raise LinAlgError("a real matrix has complex eigenvalues: those of a.astype(complex) are")
    return w, v


@primitive(
    impl=_eig,
    multiple=True,
    singular=True,
    flops=lambda a: _EIG * a.size * a.shape[-1],
)
def eig(a: TensorType) -> tuple[TensorType, TensorType]:
    """Return the eigenvalues, and the eigenvectors as columns of norm 1.

    The eigenvalues of a real matrix must be real.
    """
    require_square("eig", a)
    return a.with_shape(a.shape[:-1]), a


@eig.jvp()
def _eig_jvp(z: tuple[Value, Value], a: Value, d: Value) -> tuple[Value, Value]:
    """Return `dw = diag(inv(v) @ da @ v)` and the tangent of `v`, which keeps the norms (Giles).

    The phase of complex eigenvectors is kept.
    """
    w, v = z
    within = matmul(inv(v), matmul(d, v))
    moved = matmul(v, within * _gap_quotients(w))
    along = column_sums(conjugate(v) * moved)
    return diagonal_of(within), moved - v * in_columns(along, v.shape[-2])


def _gap_quotients(w: Value) -> Value:
    """Return `1 / (w[j] - w[i])`, and 0 for equal values."""
    apart = gaps(w)
    none = equal(apart, zeros_like(apart))
    one = filled_constant(1, apart.type)
    return select(none, zeros_like(apart), one / select(none, one, apart))


@eig.taylor
def _eig_taylor(jets: Any, k: int, z: tuple[Any, Any], a: Any) -> Any:
    return eigenvalue_coefficients(jets, k, z, a, lambda w, v: (inv(v), _gap_quotients(w)))


@eig.batch
def _eig_batch(batched: tuple[bool, ...], a: Value) -> tuple[Value, ...]:
    return eig(a)


declare_matrixwise(expm, sqrtm, logm, lu, eig, *SLOPES)
_RAISING: list[Any] = [expm, sqrtm, logm, eig, *SLOPES]
for _op in _RAISING:
    _op.declare(RAISES, True)
