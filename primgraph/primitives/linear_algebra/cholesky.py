"""Cholesky factors of stacks of matrices, their tangents and their slopes.

Derivatives are found by differentiating the defining equation `l @ l.T = a`: I. Murray,
Differentiation of the Cholesky decomposition, arXiv:1602.07527. For complex matrices read Hermitian
for symmetric and, in formulas of factors, the conjugate transpose for `.T`. Transposes of linear
maps are not conjugated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primgraph.errors import ShapeError
from primgraph.ir.facts.choices import RAISES
from primgraph.ir.facts.matrices import ALWAYS, Structure
from primgraph.ir.facts.passes import STRUCTURED
from primgraph.ir.graph import Value
from primgraph.ir.primitive import Linear, primitive
from primgraph.ir.types import TensorType
from primgraph.primitives.linear_algebra.products import declare_matrixwise, matmul
from primgraph.primitives.linear_algebra.systems import triangular_solve
from primgraph.primitives.linear_algebra.triangles import (
    adjoint,
    conjugate,
    from_lower,
    half_lower,
    lower_triangle,
    require_square,
    symmetric_part,
)
from primgraph.primitives.shapes import with_batch_axis


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
    facts={ALWAYS: {0: Structure.LOWER}, RAISES: True, STRUCTURED: True},
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


def factor_tangent(factor: Any, d: Any, adjoint: Callable[[Any], Any] = _adjoint_of) -> Any:
    """Compute `cholesky_tangent`; with transposes for adjoints it is analytic.

    >>> factor_tangent(np.array([[2.0]]), np.array([[1.0]]))
    array([[0.25]])
    """
    part = np.tril(factor)
    inverse = np.linalg.inv(part)
    both = inverse @ (d + adjoint(d)) @ adjoint(inverse)
    half = np.tril(both) - np.eye(d.shape[-1]) * both / 2
    return (part @ half / 2).astype(factor.dtype)


def _tangent_flops(factor: TensorType, d: TensorType) -> int:
    """Return the operation count of two triangular solves and a product."""
    return 4 * factor.size * factor.shape[-1]


@primitive(impl=factor_tangent, linear=(1,), singular=True, flops=_tangent_flops,
           facts={RAISES: True})  # fmt: skip
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
        found: Value | None = jets.expand_function(_tangent_by_parts, factor, d)[k]
        return found
    part, turned = jets.expand_function(lower_triangle, factor), jets.expand_function(adjoint, z)
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


def factor_slope(factor: Any, ct: Any, adjoint: Callable[[Any], Any] = _adjoint_of) -> Any:
    """Compute `cholesky_slope`; with transposes for adjoints it is analytic.

    >>> factor_slope(np.array([[2.0]]), np.array([[1.0]]))
    array([[0.25]])
    """
    part = np.tril(factor)
    product = np.tril(adjoint(part) @ np.tril(ct))
    inverse = np.linalg.inv(part)
    half = product - np.eye(ct.shape[-1]) * product / 2
    both = adjoint(inverse) @ half @ inverse
    return ((both + adjoint(both)) / 2).astype(ct.dtype)


def _slope_flops(factor: TensorType, ct: TensorType) -> int:
    """Return the operations of products of row blocks with the preceding ones."""
    return 2 * factor.size * factor.shape[-1] // 3


@primitive(
    impl=factor_slope,
    linear=(1,),
    singular=True,
    flops=_slope_flops,
    facts={ALWAYS: {0: Structure.SYMMETRIC}, RAISES: True, STRUCTURED: True},
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
    part = jets.expand_function(lower_triangle, factor)
    product = jets.apply(matmul, z, part)
    less = jets.convolution(matmul, jets.expand_function(adjoint, part), product, k, k, 1)
    inner = jets.difference(jets.expand_function(_half_product, part, ct)[k], less)
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
    known = jets.convolution(matmul, z, jets.expand_function(adjoint, z), k, k - 1, 1)
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


# Each result depends on the elements of the same matrix only.
declare_matrixwise(as_symmetric, cholesky, cholesky_tangent, cholesky_slope, as_cholesky_of)
