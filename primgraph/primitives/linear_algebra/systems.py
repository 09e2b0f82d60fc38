"""Linear systems: solutions, inverses, Cholesky factors and determinants of stacks of matrices.

Derivatives are found by differentiating the defining equation, `a @ x = b` or `l @ l.T = a`, and
are written in terms of the factor or solution already computed: M. B. Giles, Collected matrix
derivative results for forward and reverse mode algorithmic differentiation, 2008; for Cholesky
factors I. Murray, Differentiation of the Cholesky decomposition, arXiv:1602.07527.

For complex matrices read Hermitian for symmetric and, in formulas of factors, the conjugate
transpose for `.T`. Transposes of linear maps are not conjugated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.errors import DTypeError, ShapeError
from primgraph.ir.facts.matrices import ALWAYS, DEFINITE, DIAGONAL, STRUCTURE, Structure
from primgraph.ir.graph import Equation, Value
from primgraph.ir.index_maps import IndexMap, tied
from primgraph.ir.primitive import Fact, Linear, Rule, Types, primitive
from primgraph.ir.types import FLOAT16, INT64, TensorType, real_dtype
from primgraph.primitives.constants import filled, iota, zeros_like
from primgraph.primitives.elementwise import cast
from primgraph.primitives.linear_algebra.products import keeps_matrices_apart, matmul, swap_last
from primgraph.primitives.logic import greater_equal, select
from primgraph.primitives.parts import complex_, conj, imag, real
from primgraph.primitives.reductions import reduce_sum
from primgraph.primitives.shapes import broadcast, permute, reshape, with_batch_axis


def require_matrices(name: str, a: TensorType) -> None:
    """Refuse values that are not stacks of matrices of a dtype that LAPACK takes."""
    if a.ndim < 2:
        raise ShapeError(f"{name} takes matrices, not {a}")
    if not a.is_inexact or a.dtype == FLOAT16:
        raise DTypeError(
            f"{name} takes matrices of float64, float32, complex128 or complex64, not {a}"
        )


def require_square(name: str, a: TensorType) -> None:
    """Refuse values that are not stacks of square matrices."""
    require_matrices(name, a)
    if a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{name} takes square matrices, not {a}")


def _solution_type(name: str, a: TensorType, b: TensorType) -> TensorType:
    require_square(name, a)
    if a.ndim != b.ndim or a.shape[:-1] != b.shape[:-1]:
        raise ShapeError(f"{name} takes right-hand sides with as many rows, not {a} and {b}")
    if a.dtype != b.dtype:
        raise DTypeError(f"{name} takes equal dtypes, not {a} and {b}")
    return b


# Parts of matrices: conjugates, adjoints, triangles.


def conjugate(x: Value) -> Value:
    """Return the conjugates of complex numbers; real ones unchanged."""
    return conj(x) if x.type.is_complex else x


def adjoint(x: Value) -> Value:
    """Return each matrix transposed, and conjugated if it is complex."""
    return conjugate(swap_last(x))


def real_part(x: Value) -> Value:
    """Return the real parts of complex numbers; real ones unchanged."""
    return real(x) if x.type.is_complex else x


def of_kind(x: Value, like: Value) -> Value:
    """Return `x`, cast to the complex dtype of `like` if that is complex."""
    return cast(x, dtype=like.dtype) if like.type.is_complex else x


def real_type(a: TensorType) -> TensorType:
    """Return the type of the absolute values of `a`: its shape with the real dtype."""
    return a.with_dtype(real_dtype(a.dtype)) if a.is_complex else a


def _triangle_mask(type: TensorType, k: int) -> Value:
    """Return the mask of elements at most `k` columns to the right of the diagonal."""
    shape = type.shape[-2:]
    row, column = (iota(shape=shape, axis=i, dtype=INT64) for i in (0, 1))
    if k:
        row = row + filled(k, row.type)
    mask = greater_equal(row, column)
    lead = tuple(range(type.ndim - 2))
    return broadcast(mask, shape=type.shape, new_axes=lead) if lead else mask


def lower_triangle(x: Value, k: int = 0) -> Value:
    """Return `x` with zeros above diagonal `k`."""
    return select(_triangle_mask(x.type, k), x, zeros_like(x))


def upper_triangle(x: Value, k: int = 0) -> Value:
    """Return `x` with zeros below diagonal `k`."""
    return select(_triangle_mask(x.type, k - 1), zeros_like(x), x)


def from_lower(x: Value) -> Value:
    """Return the symmetric matrix with the lower triangle of `x`.

    A complex result is Hermitian; imaginary parts on the diagonal are ignored.
    """
    if not x.type.is_complex:
        return select(_triangle_mask(x.type, 0), x, swap_last(x))
    below = lower_triangle(x, -1)
    diagonal = select(_triangle_mask(x.type, -1), zeros_like(x), lower_triangle(x))
    return below + adjoint(below) + cast(real(diagonal), dtype=x.dtype)


def symmetric_part(x: Value) -> Value:
    """Return the mean of `x` and its adjoint."""
    return (x + adjoint(x)) * 0.5


def half_lower(x: Value) -> Value:
    """Return the lower triangle of `x` with its diagonal halved: Murray's function Φ."""
    halves = select(_triangle_mask(x.type, -1), filled(1.0, x.type), filled(0.5, x.type))
    return x * lower_triangle(halves)


# Solutions.


def _fold_batch_axis(x: Value, lead: int) -> Value:
    """Return right-hand sides with the batch axis folded into the columns."""
    last = lead + 2
    turned = permute(x, axes=(*range(1, last), 0, last))
    size, columns = x.shape[0], x.shape[-1]
    return reshape(turned, shape=(*turned.shape[:-2], size * columns))


def _batched_solution(
    op: Any, batched: tuple[bool, ...], a: Value, b: Value, **params: Any
) -> Value:
    """Solve a batch: a matrix without batch axis is factored once, for all right-hand sides."""
    if batched == (False, True):
        lead = len(a.shape) - 2
        size, columns = b.shape[0], b.shape[-1]
        found = op(a, _fold_batch_axis(b, lead), **params)
        parted = reshape(found, shape=(*a.shape[:-1], size, columns))
        return permute(parted, axes=(lead + 1, *range(lead + 1), lead + 2))
    a, b = with_batch_axis(batched, (a, b))
    result: Value = op(a, b, **params)
    return result


def _solve_flops(a: TensorType, b: TensorType) -> int:
    """Return the operation count: 2/3 n**3 for the elimination, 2 n**2 per right-hand side."""
    n = a.shape[-1]
    return 2 * a.size * n // 3 + 2 * b.size * n


@primitive(impl=lambda a, b: np.linalg.solve(a, b), linear=(1,), singular=True, flops=_solve_flops)
def solve(a: TensorType, b: TensorType) -> TensorType:
    """Return `x` with `a @ x = b`, for the matrices in the last two axes."""
    return _solution_type("solve", a, b)


@solve.jvp(0)
def _solve_jvp(x: Value, a: Value, b: Value, d: Value) -> Value:
    """Return `dx` from `d @ x + a @ dx = 0`; its transpose is the solve that `b` needs, too."""
    return solve(a, -matmul(d, x))


@solve.taylor
def _solve_taylor(jets: Any, k: int, x: Any, a: Any, b: Any) -> Value | None:
    """Return `x_k` from `a_0 @ x_k = b_k - sum(a_i @ x_{k-i})`."""
    rest = jets.difference(b[k], jets.convolution(matmul, a, x, k, k, 1))
    return None if rest is None else solve(a.first(), rest)


@solve.transpose
def _solve_transpose(ct: Value, a: Value, b: Linear) -> tuple[None, Value]:
    return None, solve(swap_last(a), ct)


@solve.batch
def _solve_batch(batched: tuple[bool, ...], a: Value, b: Value) -> Value:
    return _batched_solution(solve, batched, a, b)


def _triangle(a: Any, lower: bool, unit: bool) -> Any:
    """Return the triangle of an array that a triangular solve reads."""
    part = np.tril(a) if lower else np.triu(a)
    return part - part * np.eye(a.shape[-1]) + np.eye(a.shape[-1]) if unit else part


def _triangular_solve(a: Any, b: Any, *, lower: bool, transposed: bool, unit: bool) -> Any:
    part = _triangle(a, lower, unit).astype(a.dtype)
    return np.linalg.solve(np.swapaxes(part, -1, -2) if transposed else part, b)


def _triangular_flops(
    a: TensorType, b: TensorType, *, lower: bool, transposed: bool, unit: bool
) -> int:
    """Return the operations: a product and a difference per element and right-hand side."""
    return b.size * a.shape[-1]


@primitive(impl=_triangular_solve, linear=(1,), singular=True, flops=_triangular_flops)
def triangular_solve(
    a: TensorType, b: TensorType, *, lower: bool, transposed: bool, unit: bool
) -> TensorType:
    """Return `x` with `t @ x = b`, where `t` is the lower or upper triangle of `a`.

    `t` is transposed if `transposed`, and has a unit diagonal if `unit`. Elements of `a` outside
    the triangle are not read.
    """
    return _solution_type("triangular_solve", a, b)


def _change(d: Value, *, lower: bool, transposed: bool, unit: bool) -> Value:
    """Return the tangent of the triangle: the part of `d` that the solve reads."""
    part = lower_triangle(d, -int(unit)) if lower else upper_triangle(d, int(unit))
    return swap_last(part) if transposed else part


@triangular_solve.jvp(0)
def _triangular_solve_jvp(x: Value, a: Value, b: Value, d: Value, **params: bool) -> Value:
    """Return `dx` from `dt @ x + t @ dx = 0`."""
    return triangular_solve(a, -matmul(_change(d, **params), x), **params)


@triangular_solve.taylor
def _triangular_solve_taylor(
    jets: Any, k: int, x: Any, a: Any, b: Any, **params: bool
) -> Value | None:
    """Return `x_k` from `t_0 @ x_k = b_k - sum(t_i @ x_{k-i})`."""
    change = jets.through(_change, a, **params)
    rest = jets.difference(b[k], jets.convolution(matmul, change, x, k, k, 1))
    return None if rest is None else triangular_solve(a.first(), rest, **params)


@triangular_solve.transpose
def _triangular_solve_transpose(
    ct: Value, a: Value, b: Linear, *, lower: bool, transposed: bool, unit: bool
) -> tuple[None, Value]:
    turned = not transposed
    return None, triangular_solve(a, ct, lower=lower, transposed=turned, unit=unit)


@triangular_solve.batch
def _triangular_solve_batch(batched: tuple[bool, ...], a: Value, b: Value, **params: bool) -> Value:
    return _batched_solution(triangular_solve, batched, a, b, **params)


# Inverses.


@primitive(impl=lambda a: np.linalg.inv(a), singular=True, flops=lambda a: 2 * a.size * a.shape[-1])
def inv(a: TensorType) -> TensorType:
    """Return the inverse of each matrix in the last two axes."""
    require_square("inv", a)
    return a


@inv.declares(STRUCTURE)
def _inv_structure(eqn: Equation, definition: Rule, a: Structure) -> Structure:
    return a & (DIAGONAL | DEFINITE)


# Whether the result solves a system with the matrix operand 0: for operand 1, or the identity.
SOLVES: Fact[bool] = Fact("solves", False)
for _op in (solve, inv):
    _op.declare(SOLVES, True)


@inv.jvp()
def _inv_jvp(z: Value, a: Value, d: Value) -> Value:
    """Return `dz` from `d @ z + a @ dz = 0`."""
    return -matmul(z, matmul(d, z))


@inv.taylor
def _inv_taylor(jets: Any, k: int, z: Any, a: Any) -> Value | None:
    """Return `z_k` from `a_0 @ z_k = -sum(a_i @ z_{k-i})`."""
    rest = jets.convolution(matmul, a, z, k, k, 1)
    return None if rest is None else -matmul(z.first(), rest)


@inv.batch
def _inv_batch(batched: tuple[bool, ...], a: Value) -> Value:
    return inv(a)


# Cholesky factors.


@primitive(impl=lambda z, a: np.array(z), formal=True, own_slope=True, flops=0)
def as_symmetric(z: TensorType, a: TensorType) -> TensorType:
    """Return `z`, equal to `a` and held constant, with the derivative of its symmetric part.

    A function that reads one triangle of a symmetric matrix has a gradient in that triangle only.
    Behind this primitive the gradient by `a` is symmetric, as if all elements were read.
    """
    require_square("as_symmetric", a)
    if z != a:
        raise ShapeError(f"as_symmetric of {a} takes values of that type, not {z}")
    return z


as_symmetric.flat(0)


@as_symmetric.jvp(1)
def _as_symmetric_jvp(s: Value, z: Value, a: Value, d: Value) -> Value:
    return symmetric_part(d)


@as_symmetric.batch
def _as_symmetric_batch(batched: tuple[bool, ...], z: Value, a: Value) -> Value:
    result: Value = as_symmetric(*with_batch_axis(batched, (z, a)))
    return result


@primitive(
    impl=lambda a: np.linalg.cholesky(a),
    singular=True,
    flops=lambda a: a.size * a.shape[-1] // 3,
    facts={ALWAYS: {0: Structure.LOWER}},
)
def cholesky(a: TensorType) -> TensorType:
    """Return the lower triangular `l` with positive diagonal and `l @ l.T = a`.

    `a` is symmetric or Hermitian, and only its lower triangle is read. A matrix that is not
    positive definite raises an error at run time.
    """
    require_square("cholesky", a)
    return a


def _solve_both_sides(factor: Value, x: Value) -> Value:
    """Return `inv(l) @ x @ inv(l).T` for a symmetric `x`."""
    left = triangular_solve(factor, x, lower=True, transposed=False, unit=False)
    return triangular_solve(factor, adjoint(left), lower=True, transposed=False, unit=False)


def _solve_adjoint(factor: Value, x: Value) -> Value:
    """Return `inv(l).T @ x`."""
    return triangular_solve(conjugate(factor), x, lower=True, transposed=True, unit=False)


def _solve_adjoint_both_sides(factor: Value, x: Value) -> Value:
    """Return the symmetric part of `inv(l).T @ x @ inv(l)`."""
    return symmetric_part(_solve_adjoint(factor, adjoint(_solve_adjoint(factor, x))))


def _factor_and_change(name: str, factor: TensorType, d: TensorType) -> TensorType:
    require_square(name, factor)
    if factor != d:
        raise ShapeError(f"{name} of a factor {factor} takes a change of that type, not {d}")
    return factor


def _adjoint_of(x: Any) -> Any:
    turned = np.swapaxes(x, -1, -2)
    return np.conj(turned) if x.dtype.kind == "c" else turned


def _cholesky_tangent(factor: Any, d: Any) -> Any:
    part = np.tril(factor)
    inverse = np.linalg.inv(part)
    both = inverse @ (d + _adjoint_of(d)) @ _adjoint_of(inverse)
    half = np.tril(both) - np.eye(d.shape[-1]) * both / 2
    return (part @ half / 2).astype(factor.dtype)


def _tangent_flops(factor: TensorType, d: TensorType) -> int:
    """Return the operation count of two triangular solves and a product."""
    return 4 * factor.size * factor.shape[-1]


@primitive(impl=_cholesky_tangent, linear=(1,), singular=True, flops=_tangent_flops)
def cholesky_tangent(factor: TensorType, d: TensorType) -> TensorType:
    """Return the tangent of the Cholesky factor along the symmetric part of `d`.

    It is `l @ Φ(inv(l) @ d @ inv(l).T)` for the lower triangle `l`, where Φ takes the lower
    triangle with half of the diagonal (Murray).
    """
    return _factor_and_change("cholesky_tangent", factor, d)


@cholesky_tangent.jvp(0)
def _cholesky_tangent_jvp(z: Value, factor: Value, d: Value, moved: Value) -> Value:
    """Return `dl @ Φ(x) - l @ Φ(y @ x + x @ y.T)`, with `y = inv(l) @ dl`, Φ's argument `x`."""
    moved = lower_triangle(moved)
    between = _solve_both_sides(factor, symmetric_part(d))
    turn = triangular_solve(factor, moved, lower=True, transposed=False, unit=False)
    change = matmul(turn, between)
    less = half_lower(change + adjoint(change))
    return matmul(moved, half_lower(between)) - matmul(lower_triangle(factor), less)


def _tangent_by_parts(factor: Value, d: Value) -> Value:
    return matmul(lower_triangle(factor), half_lower(_solve_both_sides(factor, symmetric_part(d))))


@cholesky_tangent.taylor
def _cholesky_tangent_taylor(jets: Any, k: int, z: Any, factor: Any, d: Any) -> Value | None:
    """Return `z_k` from the symmetric part of `d_k - 2 sum(l_i z_{k-i}*)`.

    That part equals `z_k l_0* + l_0 z_k*`. For complex numbers the equation does not fix the
    diagonal where a factor's diagonal is not real.
    """
    if factor.type.is_complex:
        found: Value | None = jets.through(_tangent_by_parts, factor, d)[k]
        return found
    part, turned = jets.through(lower_triangle, factor), jets.through(adjoint, z)
    less = jets.convolution(matmul, part, turned, k, k, 1)
    rest = jets.difference(d[k], None if less is None else less * 2.0)
    return None if rest is None else cholesky_tangent(factor.first(), rest)


@cholesky_tangent.transpose
def _cholesky_tangent_transpose(ct: Value, factor: Value, d: Linear) -> tuple[None, Value]:
    return None, conjugate(cholesky_slope(factor, conjugate(ct)))


@cholesky_tangent.batch
def _cholesky_tangent_batch(batched: tuple[bool, ...], factor: Value, d: Value) -> Value:
    factor, d = with_batch_axis(batched, (factor, d))
    return cholesky_tangent(factor, d)


def _cholesky_slope(factor: Any, ct: Any) -> Any:
    part = np.tril(factor)
    product = np.tril(_adjoint_of(part) @ np.tril(ct))
    inverse = np.linalg.inv(part)
    half = product - np.eye(ct.shape[-1]) * product / 2
    both = _adjoint_of(inverse) @ half @ inverse
    return ((both + _adjoint_of(both)) / 2).astype(ct.dtype)


def _slope_flops(factor: TensorType, ct: TensorType) -> int:
    """Return the operations of products of row blocks with the preceding ones."""
    return 2 * factor.size * factor.shape[-1] // 3


@primitive(
    impl=_cholesky_slope,
    linear=(1,),
    singular=True,
    flops=_slope_flops,
    facts={ALWAYS: {0: Structure.SYMMETRIC}},
)
def cholesky_slope(factor: TensorType, ct: TensorType) -> TensorType:
    """Return the gradient by a symmetric matrix, from the gradient `ct` by its Cholesky factor.

    It is the symmetric part of `inv(l).T @ Φ(l.T @ ct) @ inv(l)`, where Φ takes the lower triangle
    with half of the diagonal. Only the lower triangles of factor and `ct` are read. For complex
    numbers the pairing is `Re(sum(conj(ct) * dl))`, for which the formulas hold unchanged; the
    transpose rule conjugates before and after.
    """
    return _factor_and_change("cholesky_slope", factor, ct)


@cholesky_slope.jvp(0)
def _cholesky_slope_jvp(z: Value, factor: Value, ct: Value, moved: Value) -> Value:
    """Return the tangent of `inv(l).T @ s @ inv(l)` with `2 s = Φ(l.T @ ct) + Φ(l.T @ ct).T`."""
    moved = lower_triangle(moved)
    inner = half_lower(matmul(adjoint(moved), lower_triangle(ct)))
    outer = _solve_adjoint(factor, matmul(adjoint(moved), z))
    return _solve_adjoint_both_sides(factor, inner) - outer - adjoint(outer)


def _half_product(part: Value, ct: Value) -> Value:
    """Return `Φ(l.T @ ct)`, whose symmetric part is the middle factor of the gradient."""
    return half_lower(matmul(adjoint(part), lower_triangle(ct)))


@cholesky_slope.taylor
def _cholesky_slope_taylor(jets: Any, k: int, z: Any, factor: Any, ct: Any) -> Value | None:
    """Return `z_k` from the coefficients of `q = l* z l`.

    The equation is `l_0* z_k l_0 = q_k - sum(l_i* (z l)_{k-i}) - l_0* sum(z_{k-i} l_i)`.
    """
    part = jets.through(lower_triangle, factor)
    product = jets.apply(matmul, z, part)
    less = jets.convolution(matmul, jets.through(adjoint, part), product, k, k, 1)
    inner = jets.difference(jets.through(_half_product, part, ct)[k], less)
    half = None if inner is None else _solve_adjoint(factor.first(), inner)
    half = jets.difference(half, jets.convolution(matmul, z, part, k, k))
    return None if half is None else symmetric_part(_solve_adjoint(factor.first(), adjoint(half)))


@cholesky_slope.transpose
def _cholesky_slope_transpose(ct: Value, factor: Value, d: Linear) -> tuple[None, Value]:
    return None, conjugate(cholesky_tangent(factor, conjugate(ct)))


@cholesky_slope.batch
def _cholesky_slope_batch(batched: tuple[bool, ...], factor: Value, ct: Value) -> Value:
    factor, ct = with_batch_axis(batched, (factor, ct))
    return cholesky_slope(factor, ct)


@cholesky.jvp()
def _cholesky_jvp(z: Value, a: Value, d: Value) -> Value:
    return cholesky_tangent(z, from_lower(d))


def _factor_taylor(jets: Any, k: int, z: Any, term: Value | None) -> Value | None:
    """Return `z_k` from `z_k z_0* + z_0 z_k* = a_k - sum(z_i z_{k-i}*)`, without terms in z_k."""
    known = jets.convolution(matmul, z, jets.through(adjoint, z), k, k - 1, 1)
    rest = jets.difference(term, known)
    return None if rest is None else cholesky_tangent(z.first(), rest)


@cholesky.taylor
def _cholesky_taylor(jets: Any, k: int, z: Any, a: Any) -> Value | None:
    return _factor_taylor(jets, k, z, None if a[k] is None else from_lower(a[k]))


@cholesky.batch
def _cholesky_batch(batched: tuple[bool, ...], a: Value) -> Value:
    return cholesky(a)


@primitive(impl=lambda z, a: np.array(z), formal=True, own_slope=True, singular=True, flops=0)
def as_cholesky_of(z: TensorType, a: TensorType) -> TensorType:
    """Return `z`, the Cholesky factor of `a`, with the derivative by the symmetric part of `a`.

    So the gradient is symmetric, although only one triangle was read.
    """
    require_square("as_cholesky_of", a)
    if z != a:
        raise ShapeError(f"as_cholesky_of {a} takes values of that type, not {z}")
    return z


as_cholesky_of.flat(0)


@as_cholesky_of.jvp(1)
def _as_cholesky_of_jvp(s: Value, z: Value, a: Value, d: Value) -> Value:
    return cholesky_tangent(s, d)


@as_cholesky_of.taylor
def _as_cholesky_of_taylor(jets: Any, k: int, s: Any, z: Any, a: Any) -> Value | None:
    return _factor_taylor(jets, k, s, a[k])


@as_cholesky_of.batch
def _as_cholesky_of_batch(batched: tuple[bool, ...], z: Value, a: Value) -> Value:
    result: Value = as_cholesky_of(*with_batch_axis(batched, (z, a)))
    return result


# Determinants.


def _elimination_flops(a: TensorType) -> int:
    return 2 * a.size * a.shape[-1] // 3


def _broadcast_per_matrix(x: Value, like: Value) -> Value:
    """Return one number per matrix, broadcast over its elements."""
    last = len(like.shape) - 2
    return broadcast(x, shape=like.shape, new_axes=(last, last + 1))


def _trace_of_product(x: Value, y: Value) -> Value:
    """Return the sum of elementwise products for each matrix."""
    last = len(x.shape) - 2
    return reduce_sum(x * y, axes=(last, last + 1))


@primitive(impl=lambda a: np.linalg.slogdet(a), multiple=True, singular=True,
           flops=_elimination_flops)  # fmt: skip
def slogdet(a: TensorType) -> tuple[TensorType, TensorType]:
    """Return the sign and the logarithm of the absolute value of the determinant of each matrix.

    The sign of a complex determinant is a number of modulus 1.
    """
    require_square("slogdet", a)
    result = a.with_shape(a.shape[:-2])
    return result, real_type(result)


@slogdet.jvp()
def _slogdet_jvp(z: tuple[Value, Value], a: Value, d: Value) -> tuple[Value | None, Value]:
    """Return the tangents by Jacobi's formula, the trace of `inv(a) @ d`."""
    change = _trace_of_product(swap_last(inv(a)), d)
    if not a.type.is_complex:
        return None, change
    turn = imag(change)
    return z[0] * complex_(zeros_like(turn), turn), real(change)


@slogdet.batch
def _slogdet_batch(batched: tuple[bool, ...], a: Value) -> tuple[Value, ...]:
    return slogdet(a)


@primitive(impl=lambda a: np.linalg.det(a), flops=_elimination_flops)
def det(a: TensorType) -> TensorType:
    """Return the determinant of each matrix."""
    require_square("det", a)
    return a.with_shape(a.shape[:-2])


@det.jvp()
def _det_jvp(z: Value, a: Value, d: Value) -> Value:
    """Return the tangent by Jacobi's formula with cofactors, also for singular matrices."""
    return _trace_of_product(cofactors(a), d)


@det.batch
def _det_batch(batched: tuple[bool, ...], a: Value) -> Value:
    return det(a)


def _cofactors(a: Any) -> Any:
    """Return `det(a) inv(a).T` from singular values, by the products of all values but one."""
    u, s, vt = np.linalg.svd(a)
    n = s.shape[-1]
    others = [np.prod(np.delete(s, i, -1), -1) for i in range(n)]
    turn = np.linalg.det(u) * np.linalg.det(vt)
    sign = turn / np.abs(turn)
    rest = np.stack(others, -1) if n else s
    return (np.conj((u * rest[..., None, :]) @ vt) * sign[..., None, None]).astype(a.dtype)


@primitive(impl=_cofactors, singular=True, flops=lambda a: 2 * a.size * a.shape[-1])
def cofactors(a: TensorType) -> TensorType:
    """Return the derivative of the determinant, `det(a) * inv(a).T` for regular matrices."""
    require_square("cofactors", a)
    return a


@cofactors.jvp()
def _cofactors_jvp(z: Value, a: Value, d: Value) -> Value:
    """Return the tangent of `det(a) inv(a).T`; it uses the inverse, so matrices must be regular."""
    turned = swap_last(inv(a))
    trace = _trace_of_product(turned, d)
    return z * _broadcast_per_matrix(trace, z) - matmul(turned, matmul(swap_last(d), z))


@cofactors.batch
def _cofactors_batch(batched: tuple[bool, ...], a: Value) -> Value:
    return cofactors(a)


# Sparsity: which elements of results depend on which elements of operands.

keeps_matrices_apart(inv, cholesky, cholesky_tangent, cholesky_slope, as_cholesky_of)
keeps_matrices_apart(slogdet, det, cofactors, as_symmetric)


def _columns_apart(k: int, i: int, operands: Types, results: Types, **params: bool) -> IndexMap:
    """Return the result axes: each column of the solution belongs to one right-hand side."""
    shape, result = operands[i].shape, results[k].shape
    last = len(shape) - 1
    return tied(shape, result, [*range(last - 1), None, last if i else None], exact=False)


for _op in (solve, triangular_solve):
    _op.index_map(_columns_apart)
