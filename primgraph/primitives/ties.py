"""Second derivatives of functions of eigenvalues, where eigenvalues are repeated.

The gradient of `f(w)` by a symmetric matrix `a = v @ diag(w) @ v.T` is `v @ diag(g) @ v.T`, with
`g` the gradient by `w`. Along `d` its derivative is `v @ (k * b + diag(dg)) @ v.T`, with
`b = v.T @ d @ v` and `k[i, j] = (g[j] - g[i]) / (w[j] - w[i])` off the diagonal (A. S. Lewis and
H. S. Sendov, Twice differentiable spectral functions, SIAM J. Matrix Anal. Appl. 23 (2001), 368).
If `w[i] == w[j]`, the quotient is its limit, which the derivative of `g` by `w` along one direction
tells: if `f` is symmetric in the tied values, and `delta` has the sum zero over these, then
`dg = k[i, j] * delta` there. If `f` is not, there is no second derivative, which is an error of the
run.

The formal primitives here carry this derivative beside a value that is computed as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from primgraph.errors import DTypeError, LinAlgError, ShapeError
from primgraph.ir.graph import Value
from primgraph.ir.primitive import Linear, primitive
from primgraph.ir.types import BOOL, TensorType
from primgraph.primitives.constants import filled, iota, zeros_like
from primgraph.primitives.elementwise import abs_, cast
from primgraph.primitives.linalg import matmul
from primgraph.primitives.logic import equal, greater, less_equal, logical_and, logical_or, select
from primgraph.primitives.parts import imag, real
from primgraph.primitives.reductions import reduce_sum
from primgraph.primitives.shapes import broadcast, with_batch_axis
from primgraph.primitives.systems import (
    adjoint,
    conjugate,
    from_lower,
    of_kind,
    real_part,
    real_type,
    require_square,
)

# Values count as equal if they differ by less than so many rounding units of the sum of all.
_UNITS = 8

_HINT = "for a sum over eigenvalues write a trace: pg.trace(a @ a), pg.trace(pg.linalg.expm(a))"
SECOND = f"the second derivative of these eigenvalues does not exist where some are equal; {_HINT}"
FORWARD = (
    "the derivative of the tangents of equal eigenvalues is not known: forward mode alone has no "
    f"second derivative there. Take that of a gradient, as pg.hessian does, or {_HINT}"
)
BODY = (
    "the second derivative of equal eigenvalues is not known within the body of a loop, a branch "
    f"or a checkpoint, nor by Taylor coefficients; {_HINT}"
)
THIRD = f"the third derivative of equal eigenvalues is not known; {_HINT}"


# Parts.


def in_rows(w: Value, columns: int) -> Value:
    """Return the matrices with elements `w[i]` in row `i`."""
    rank = len(w.shape)
    return broadcast(w, shape=(*w.shape, columns), new_axes=(rank,))


def in_columns(w: Value, rows: int) -> Value:
    """Return the matrices with elements `w[j]` in column `j`."""
    rank = len(w.shape)
    return broadcast(w, shape=(*w.shape[:-1], rows, w.shape[-1]), new_axes=(rank - 1,))


def gaps(w: Value) -> Value:
    """Return `w[j] - w[i]` in row `i` and column `j`."""
    n = w.shape[-1]
    return in_columns(w, n) - in_rows(w, n)


def column_sums(x: Value) -> Value:
    """Return the sum of each column."""
    return reduce_sum(x, axes=(len(x.shape) - 2,))


def is_negligible(x: Value, values: Value) -> Value:
    """Tell where `x` is next to nothing beside the sum of all `values` of a matrix."""
    last, eps = len(values.shape) - 1, float(np.finfo(x.dtype).eps)
    size = reduce_sum(abs_(values), axes=(last,)) * (_UNITS * eps)
    new = tuple(range(last, len(x.shape)))
    return less_equal(abs_(x), broadcast(size, shape=x.shape, new_axes=new))


def reciprocal(x: Value, values: Value) -> Value:
    """Return `1 / x`, but 0 where `x` is negligible beside `values`."""
    none = is_negligible(x, values)
    return select(none, zeros_like(x), 1.0 / select(none, filled(1, x.type), x))


def slope_of_eigenvalues(v: Value, change: Value) -> Value:
    """Return the diagonal of `v* @ change @ v`, its real part."""
    return column_sums(real_part(conjugate(v) * matmul(change, v)))


def _with_eigenvalues(v: Value, g: Value) -> Value:
    """Return the transpose of `slope_of_eigenvalues`, the conjugate of `v @ diag(g) @ v*`."""
    scaled = conjugate(v) * of_kind(in_columns(g, v.shape[-2]), v)
    return matmul(scaled, adjoint(conjugate(v)))


def _off_diagonal(type: TensorType) -> Value:
    """Tell which elements of square matrices are off the diagonal."""
    row, column = (iota(shape=type.shape, axis=type.ndim - k, dtype=np.dtype(int)) for k in (2, 1))
    return greater(abs_(row - column), zeros_like(row))


def _ties(w: Value) -> Value:
    """Tell the pairs of different eigenvalues that are equal."""
    apart = gaps(w)
    return logical_and(is_negligible(apart, w), _off_diagonal(apart.type))


# Errors of the run.


def _refused(x: Any, bad: Any, *, message: str) -> Any:
    if np.any(bad):
        raise LinAlgError(message)
    return np.array(x)


@primitive(impl=_refused, linear=(0,), flops=0)
def unless_any(x: TensorType, bad: TensorType, *, message: str) -> TensorType:
    """`x`, and a `LinAlgError` of the run with this message where `bad` is true anywhere."""
    if bad.dtype != BOOL:
        raise DTypeError(f"unless_any takes booleans, not {bad}")
    if x.shape != bad.shape:
        raise ShapeError(f"unless_any takes operands of one shape, not {x} and {bad}")
    return x


@unless_any.transpose
def _unless_any_transpose(
    ct: Value, x: Linear, bad: Value, *, message: str
) -> tuple[Value | None, ...]:
    return unless_any(ct, bad, message=message), None


@unless_any.batch
def _unless_any_batch(batched: tuple[bool, ...], x: Value, bad: Value, *, message: str) -> Value:
    result: Value = unless_any(*with_batch_axis(batched, (x, bad)), message=message)
    return result


def _require_values(name: str, z: TensorType, w: TensorType) -> None:
    require_square(name, z)
    if real_type(z).with_shape(z.shape[:-1]) != w:
        raise ShapeError(f"{name} of matrices {z} takes their eigenvalues, not {w}")


@primitive(impl=lambda z, x, w: np.array(z), formal=True, own_slope=True, singular=True, flops=0)
def if_distinct(z: TensorType, x: TensorType, w: TensorType) -> TensorType:
    """`z`, which is `x`, with its derivative: a `LinAlgError` of the run if some `w` are equal."""
    _require_values("if_distinct", z, w)
    if z != x:
        raise ShapeError(f"if_distinct of {x} takes values of that type, not {z}")
    return z


if_distinct.flat(0, 2)


@if_distinct.jvp(1)
def _if_distinct_jvp(s: Value, z: Value, x: Value, w: Value, d: Value) -> Value:
    return unless_any(d, _ties(w), message=THIRD)


@if_distinct.batch
def _if_distinct_batch(batched: tuple[bool, ...], z: Value, x: Value, w: Value) -> Value:
    result: Value = if_distinct(*with_batch_axis(batched, (z, x, w)))
    return result


# Tangents of eigenvalues, and their transpose.


@primitive(
    impl=lambda z, a, w, v, d: np.array(z),
    linear=(0, 4),
    formal=True,
    own_slope=True,
    singular=True,
    flops=0,
)
def as_eigenvalue_tangent(
    z: TensorType, a: TensorType, w: TensorType, v: TensorType, d: TensorType
) -> TensorType:
    """`z`, the diagonal of `v* @ d @ v`: how eigenvalues `w` of `a` move along `d`."""
    _require_values("as_eigenvalue_tangent", a, w)
    if not (a == v == d and z == w):
        raise ShapeError(f"as_eigenvalue_tangent of {a} takes {w} and matrices, not {z}, {v}, {d}")
    return z


def eigenvalue_tangent(a: Value, w: Value, v: Value, d: Value) -> Value:
    """Return how the eigenvalues `w` of `a` move along the Hermitian `d`."""
    return as_eigenvalue_tangent(slope_of_eigenvalues(v, d), a, w, v, d)


@as_eigenvalue_tangent.pushforward
def _as_eigenvalue_tangent_pushforward(
    x: Sequence[Value], dx: Mapping[int, Value], turned: bool
) -> list[Value | None]:
    _, a, w, v, d = x
    found = eigenvalue_tangent(a, w, v, dx[4]) if 4 in dx else None
    if 1 not in dx:
        return [found]
    v = if_distinct(v, v, w)
    change = matmul(d, v)
    turn = matmul(adjoint(v), matmul(from_lower(dx[1]), v))
    dv = matmul(v, turn * of_kind(if_distinct(*[reciprocal(gaps(w), w)] * 2, w), v))
    moved = column_sums(real_part(conjugate(dv) * change + conjugate(v) * matmul(d, dv)))
    within = matmul(adjoint(v), change)
    off = _sizes(within + adjoint(within))
    bad = logical_and(_ties(w), greater(off, _tolerance(off, column_sums(off))))
    # One element of a row stands for all of it: what is bad is so for the whole run.
    some = greater(column_sums(cast(bad, dtype=w.dtype)), zeros_like(w))
    moved = unless_any(moved, some, message=FORWARD)
    return [moved if found is None else found + moved]


@as_eigenvalue_tangent.transpose
def _as_eigenvalue_tangent_transpose(
    ct: Value, z: Value, a: Value, w: Value, v: Value, d: Linear
) -> tuple[Value | None, ...]:
    return None, None, None, None, spectral_gradient(a, w, v, ct)


@as_eigenvalue_tangent.batch
def _as_eigenvalue_tangent_batch(batched: tuple[bool, ...], *inputs: Value) -> Value:
    result: Value = as_eigenvalue_tangent(*with_batch_axis(batched, inputs))
    return result


@primitive(
    impl=lambda z, a, w, v, g: np.array(z),
    linear=(0, 4),
    formal=True,
    own_slope=True,
    singular=True,
    flops=0,
)
def as_spectral_gradient(
    z: TensorType, a: TensorType, w: TensorType, v: TensorType, g: TensorType
) -> TensorType:
    """`z`, the conjugate of `v @ diag(g) @ v*`: the gradient by `a`, from that by eigenvalues."""
    _require_values("as_spectral_gradient", a, w)
    if not (a == v == z and g == w):
        raise ShapeError(f"as_spectral_gradient of {a} takes {w} and matrices, not {g}, {v}, {z}")
    return z


def spectral_gradient(a: Value, w: Value, v: Value, g: Value) -> Value:
    """Return the gradient by a Hermitian `a`, from the gradient `g` by its eigenvalues `w`."""
    return as_spectral_gradient(_with_eigenvalues(v, g), a, w, v, g)


@as_spectral_gradient.pushforward
def _as_spectral_gradient_pushforward(
    x: Sequence[Value], dx: Mapping[int, Value], turned: bool
) -> list[Value | None]:
    return spectral_tangents(x, dx, None)


def spectral_tangents(
    x: Sequence[Value], dx: Mapping[int, Value], probed: Callable[[Value], Value] | None
) -> list[Value | None]:
    """Return the tangent of `as_spectral_gradient(*x)`.

    `probed` gives the derivative of `g` by `w` along a direction; None if that is not known, which
    is an error of the run at ties.
    """
    _, a, w, v, g = x
    found = spectral_gradient(a, w, v, dx[4]) if 4 in dx else None
    if 1 not in dx:
        return [found]
    k = gaps(g) * reciprocal(gaps(w), w)
    k = _unknown_at_ties(w, k) if probed is None else _with_limits(w, g, k, probed)
    k, v = if_distinct(k, k, w), if_distinct(v, v, w)
    within = matmul(adjoint(v), matmul(from_lower(dx[1]), v))
    turned = conjugate(matmul(v, matmul(within * of_kind(k, v), adjoint(v))))
    return [turned if found is None else found + turned]


def _unknown_at_ties(w: Value, k: Value) -> Value:
    return unless_any(k, _ties(w), message=BODY)


def _with_limits(w: Value, g: Value, k: Value, probed: Callable[[Value], Value]) -> Value:
    """Put the limits of difference quotients where eigenvalues are equal."""
    n, ties = w.shape[-1], _ties(w)
    delta = _direction(w, ties)
    dg = probed(delta)
    limit = gaps(dg) / select(ties, gaps(delta), filled(1, k.type))
    bound = _tolerance(k, reduce_sum(abs_(dg) + abs_(g), axes=(len(g.shape) - 1,)))
    uneven = greater(abs_(in_rows(dg, n) - limit * in_rows(delta, n)), bound)
    unequal = greater(abs_(gaps(g) - limit * gaps(w)), bound)
    bad = logical_and(ties, logical_or(uneven, unequal))
    return unless_any(select(ties, limit, k), bad, message=SECOND)


def _direction(w: Value, ties: Value) -> Value:
    """Return numbers that differ, and have the sum zero, over equal eigenvalues."""
    last = len(w.shape) - 1
    place = iota(shape=w.shape, axis=last, dtype=w.dtype)
    tied = cast(ties, dtype=w.dtype)
    others = column_sums(tied * in_rows(place, w.shape[-1]))
    mean = (others + place) / (column_sums(tied) + 1.0)
    size = reduce_sum(abs_(w), axes=(last,))
    size = select(equal(size, zeros_like(size)), filled(1, size.type), size)
    return (place - mean) * broadcast(size, shape=w.shape, new_axes=(last,))


def _sizes(x: Value) -> Value:
    """Return absolute values, of complex numbers the sums of those of both parts."""
    return abs_(real(x)) + abs_(imag(x)) if x.type.is_complex else abs_(x)


def _tolerance(like: Value, sizes: Value) -> Value:
    """Return the root of the rounding unit, times the sum of `sizes` if these are a vector."""
    new = tuple(range(len(sizes.shape), len(like.shape)))
    if len(sizes.shape) == len(like.shape) - 1:
        sizes = reduce_sum(sizes, axes=(len(sizes.shape) - 1,))
        new = tuple(range(len(sizes.shape), len(like.shape)))
    unit = float(np.sqrt(np.finfo(like.dtype).eps))
    return broadcast(sizes * unit, shape=like.shape, new_axes=new)


@as_spectral_gradient.transpose
def _as_spectral_gradient_transpose(
    ct: Value, z: Value, a: Value, w: Value, v: Value, g: Linear
) -> tuple[Value | None, ...]:
    return None, None, None, None, eigenvalue_tangent(a, w, v, ct)


@as_spectral_gradient.batch
def _as_spectral_gradient_batch(batched: tuple[bool, ...], *inputs: Value) -> Value:
    result: Value = as_spectral_gradient(*with_batch_axis(batched, inputs))
    return result


def _matrices_apart(k: int, i: int, *types: TensorType, **params: Any) -> tuple[int | None, ...]:
    """The first operand is a vector or a matrix, and the last axes of others belong to it."""
    lead = max(t.ndim for t in types) - 2
    return (*range(lead), *(None for _ in range(types[i].ndim - lead)))


for _op in (if_distinct, as_eigenvalue_tangent, as_spectral_gradient):
    _op.sparsity(_matrices_apart)


@unless_any.sparsity
def _unless_any_sparsity(
    k: int, i: int, *types: TensorType, **params: Any
) -> tuple[int | None, ...]:
    return tuple(range(types[i].ndim))
