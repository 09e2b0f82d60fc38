"""Derivatives of eigenvalues and singular values, and second derivatives of functions of these.

The gradient of `f(w)` by `a = u @ diag(w) @ v*` is `u @ diag(g) @ v*`, with `g` the gradient by
`w`; eigenvalues of a Hermitian matrix are the case that `u` is `v`. Its derivative along `d` is

    u @ (minus * (b + b*) / 2 + plus * (b - b*) / 2 + diag(dg)) @ v*

with `b = u* @ d @ v` and, off the diagonal of `minus`,

    minus[i, j] = (g[j] - g[i]) / (w[j] - w[i])    plus[i, j] = (g[j] + g[i]) / (w[j] + w[i])

(A. S. Lewis and H. S. Sendov, Twice differentiable spectral functions, SIAM J. Matrix Anal. Appl.
23 (2001), 368, and Nonsmooth analysis of singular values, Set-Valued Analysis 13 (2005), 213). If
there are more rows than columns, `(d @ v - u @ b) @ diag(g / w) @ v*` is added, and likewise if
there are more columns. Hermitian matrices have `b = b*`. `ties` has the limits of the quotients.

The formal primitives here carry this derivative beside a value that is computed without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from primgraph.errors import ShapeError
from primgraph.ir.facts.passes import PUSHFORWARD_AROUND
from primgraph.ir.graph import Equation, Value
from primgraph.ir.index_maps import IndexMap, tied_map
from primgraph.ir.primitive import Linear, Types, primitive
from primgraph.ir.types import TensorType, smaller
from primgraph.primitives.constants import zeros_like
from primgraph.primitives.linear_algebra.products import matmul, swap_last
from primgraph.primitives.linear_algebra.ties import (
    FORWARD,
    Probe,
    any_in_columns,
    column_sums,
    difference_quotients,
    gaps,
    if_distinct,
    in_columns,
    in_rows,
    pairs_of,
    quotients,
    reciprocal,
    sizes_of,
    slopes_at_zero,
    smooth_quotients,
    sum_quotients,
    ties_of,
    tolerance,
    unless_any,
    zeros_of,
)
from primgraph.primitives.linear_algebra.triangles import (
    adjoint,
    cast_like,
    conjugate,
    from_lower,
    real_part,
    real_type,
    require_matrices,
    require_square,
)
from primgraph.primitives.logic import greater, logical_and, logical_or
from primgraph.primitives.shapes import with_batch_axis


class Spectrum(NamedTuple):
    """A decomposition `a = u @ diag(w) @ v*` by eigenvalues or singular values.

    Eigenvalues are those of Hermitian matrices, with `u` equal to `v`. `u` and `v` have one column
    per value.
    """

    a: Value
    w: Value
    u: Value
    v: Value
    hermitian: bool

    @property
    def is_tall(self) -> bool:
        """Tell whether there are more rows than values."""
        return self.a.shape[-2] != self.w.shape[-1]

    @property
    def is_wide(self) -> bool:
        """Tell whether there are more columns than values."""
        return self.a.shape[-1] != self.w.shape[-1]

    @property
    def turns_at_zero(self) -> bool:
        """Tell whether the derivative has quotients by single values, which may be 0."""
        return self.is_tall or self.is_wide or (self.a.type.is_complex and not self.hermitian)

    def direction(self, d: Value) -> Value:
        """Return the tangent matrix of `d`; of a Hermitian one only the lower triangle counts."""
        return from_lower(d) if self.hermitian else d

    def distinct(self, *, zeros: bool) -> Spectrum:
        """Return a copy that refuses vector derivatives at equal values, or at 0 if `zeros`."""
        bad = any_in_columns(ties_of(self.w), self.w)
        if zeros and self.turns_at_zero:
            bad = logical_or(bad, zeros_of(self.w))
        u = if_distinct(self.u, self.u, in_columns(bad, self.u.shape[-2]))
        if self.hermitian:
            return self._replace(u=u, v=u)
        return self._replace(u=u, v=if_distinct(self.v, self.v, in_columns(bad, self.v.shape[-2])))


def turned_vectors(p: Spectrum, d: Value, *, parting: bool = True) -> tuple[Value, Value]:
    """Return the tangents of `u` and `v` along `d`, from sum and difference of both rotations.

    The difference has quotients only by sums of singular values, so it is right for equal values:
    there the polar factor `u @ v*` has its derivative. If not `parting`, the sum is left out, which
    is enough for sums over the values.
    """
    _, w, u, v, _ = p
    left = matmul(d, v)
    within = matmul(adjoint(u), left)
    if p.hermitian:
        turn = matmul(v, within * cast_like(reciprocal(gaps(w), w), v))
        return turn, turn
    mirrored, count = adjoint(within), w.shape[-1]
    sums = in_columns(w, count) + in_rows(w, count)
    apart = (within - mirrored) * cast_like(reciprocal(sums, w), u)
    both = (within + mirrored) * cast_like(reciprocal(gaps(w), w), u) if parting else None
    du = matmul(u, (apart if both is None else both + apart) * 0.5)
    dv = matmul(v, (-apart if both is None else both - apart) * 0.5)
    inverse = cast_like(reciprocal(w, w), u)
    if p.is_tall:
        du = du + (left - matmul(u, within)) * in_columns(inverse, u.shape[-2])
    if p.is_wide:
        right = matmul(adjoint(d), u)
        dv = dv + (right - matmul(v, mirrored)) * in_columns(inverse, v.shape[-2])
    return du, dv


def _diagonal(u: Value, v: Value, d: Value) -> Value:
    """Return the real diagonal of `u* @ d @ v`."""
    return column_sums(real_part(conjugate(u) * matmul(d, v)))


def _with_values(u: Value, v: Value, g: Value) -> Value:
    """Return the transpose of `_diagonal`: the conjugate of `u @ diag(g) @ v*`."""
    return matmul(conjugate(u) * cast_like(in_columns(g, u.shape[-2]), u), swap_last(v))


def _require_spectrum(
    name: str, a: TensorType, w: TensorType, u: TensorType, v: TensorType, hermitian: bool
) -> None:
    (require_square if hermitian else require_matrices)(name, a)
    *lead, m, n = a.shape
    k = smaller(m, n)
    if real_type(a.with_shape((*lead, k))) != w:
        raise ShapeError(f"{name} of {a} takes its values, not {w}")
    if u != a.with_shape((*lead, m, k)) or v != a.with_shape((*lead, n, k)):
        raise ShapeError(f"{name} of {a} takes vectors as columns, not {u} and {v}")


# Tangents of eigenvalues and singular values.


@primitive(
    impl=lambda z, a, w, u, v, d, *, hermitian: np.array(z),
    linear=(0, 5),
    formal=True,
    own_slope=True,
    singular=True,
    flops=0,
)
def as_spectral_tangent(
    z: TensorType,
    a: TensorType,
    w: TensorType,
    u: TensorType,
    v: TensorType,
    d: TensorType,
    *,
    hermitian: bool,
) -> TensorType:
    """Return `z`, the diagonal of `u* @ d @ v`: the tangent of the values `w` of `a` along `d`.

    The values are eigenvalues if `hermitian`, else singular values.
    """
    _require_spectrum("as_spectral_tangent", a, w, u, v, hermitian)
    if d != a or z != w:
        raise ShapeError(f"as_spectral_tangent of {a} takes {w} and {a}, not {z} and {d}")
    return z


def spectral_tangent(p: Spectrum, d: Value) -> Value:
    """Return the tangent of the values along `d`, which is Hermitian if the matrix is."""
    _, _, u, v, hermitian = p
    return as_spectral_tangent(_diagonal(u, v, d), *p[:4], d, hermitian=hermitian)


class Around(Protocol):
    """Questions about the graph around an equation."""

    def is_summed(self, value: Value) -> bool:
        """Return whether only sums over the last axis read `value`."""

    def is_even(self, value: Value) -> bool:
        """Return whether all elements of `value` along the last axis are equal."""

    def probe(self, values: Value, gradient: Value) -> Probe | None:
        """Return how a gradient by `values` varies with them, if that is known."""


@as_spectral_tangent.declares(PUSHFORWARD_AROUND)
def _as_spectral_tangent_around(
    eqn: Equation, x: Sequence[Value], dx: Mapping[int, Value], around: Around
) -> list[Value | None]:
    return tangents_of_tangent(x, dx, summed=around.is_summed(eqn.output), **eqn.kwargs)


@as_spectral_tangent.pushforward
def _as_spectral_tangent_pushforward(
    x: Sequence[Value], dx: Mapping[int, Value], turned: bool, *, hermitian: bool
) -> list[Value | None]:
    return tangents_of_tangent(x, dx, hermitian=hermitian)


def tangents_of_tangent(
    x: Sequence[Value], dx: Mapping[int, Value], *, hermitian: bool, summed: bool = False
) -> list[Value | None]:
    """Return the tangent of `as_spectral_tangent(*x)`.

    With `summed` only sums over the values are read. The sum of eigenvalue tangents is the trace of
    the direction; that of singular values does not depend on how equal values separate.
    """
    _, a, w, u, v, d = x
    p = Spectrum(a, w, u, v, hermitian)
    found = spectral_tangent(p, dx[5]) if 5 in dx else None
    if 1 not in dx or (hermitian and summed):
        return [found]
    p = p.distinct(zeros=not summed)
    du, dv = turned_vectors(p, p.direction(dx[1]), parting=not summed)
    moved = column_sums(real_part(conjugate(du) * matmul(d, p.v) + conjugate(p.u) * matmul(d, dv)))
    if not summed:
        moved = unless_any(moved, _separated_values(p, d), message=FORWARD)
    return [moved if found is None else found + moved]


def _separated_values(p: Spectrum, d: Value) -> Value:
    """Return which values equal others or are 0, and are separated to first order along `d`."""
    _, w, u, v, _ = p
    left = matmul(d, v)
    within = matmul(adjoint(u), left)
    mirrored = adjoint(within)
    parts = [(ties_of(w), sizes_of(within + mirrored))]
    if not p.hermitian:
        zero = zeros_of(w)
        parts.append((pairs_of(zero), sizes_of(within - mirrored)))
        if p.is_tall:
            rest = sizes_of(left - matmul(u, within))
            parts.append((in_columns(zero, u.shape[-2]), rest))
        if p.is_wide:
            rest = sizes_of(matmul(adjoint(d), u) - matmul(v, mirrored))
            parts.append((in_columns(zero, v.shape[-2]), rest))
    total = column_sums(sizes_of(within))
    for _, size in parts:
        total = total + column_sums(size)
    # A value stands for all elements of its columns, so a bad value marks the whole matrix.
    found = [
        any_in_columns(logical_and(where, greater(size, tolerance(size, total))), w)
        for where, size in parts
    ]
    bad = found[0]
    for other in found[1:]:
        bad = logical_or(bad, other)
    return bad


@as_spectral_tangent.transpose
def _as_spectral_tangent_transpose(
    ct: Value, z: Value, a: Value, w: Value, u: Value, v: Value, d: Linear, *, hermitian: bool
) -> tuple[Value | None, ...]:
    found = spectral_gradient(Spectrum(a, w, u, v, hermitian), ct)
    return None, None, None, None, None, found


@as_spectral_tangent.batch
def _as_spectral_tangent_batch(batched: tuple[bool, ...], *inputs: Value, hermitian: bool) -> Value:
    result: Value = as_spectral_tangent(*with_batch_axis(batched, inputs), hermitian=hermitian)
    return result


# Gradients by matrices, from gradients by eigenvalues and singular values.


@primitive(
    impl=lambda z, a, w, u, v, g, *, hermitian: np.array(z),
    linear=(0, 5),
    formal=True,
    own_slope=True,
    singular=True,
    flops=0,
)
def as_spectral_gradient(
    z: TensorType,
    a: TensorType,
    w: TensorType,
    u: TensorType,
    v: TensorType,
    g: TensorType,
    *,
    hermitian: bool,
) -> TensorType:
    """Return `z`, the conjugate of `u @ diag(g) @ v*`: the gradient by `a`, from that by `w`.

    The values are eigenvalues if `hermitian`, else singular values.
    """
    _require_spectrum("as_spectral_gradient", a, w, u, v, hermitian)
    if z != a or g != w:
        raise ShapeError(f"as_spectral_gradient of {a} takes {a} and {w}, not {z} and {g}")
    return z


def spectral_gradient(p: Spectrum, g: Value) -> Value:
    """Return the gradient by the matrix, from the gradient `g` by its values."""
    _, _, u, v, hermitian = p
    return as_spectral_gradient(_with_values(u, v, g), *p[:4], g, hermitian=hermitian)


@as_spectral_gradient.pushforward
def _as_spectral_gradient_pushforward(
    x: Sequence[Value], dx: Mapping[int, Value], turned: bool, *, hermitian: bool
) -> list[Value | None]:
    return tangents_of_gradient(x, dx, hermitian=hermitian)


@as_spectral_gradient.declares(PUSHFORWARD_AROUND)
def _as_spectral_gradient_around(
    eqn: Equation, x: Sequence[Value], dx: Mapping[int, Value], around: Around
) -> list[Value | None]:
    """Return the tangent: where values are equal, it depends on how the gradient varies."""
    g = eqn.inputs[5]
    even, probe = around.is_even(g), around.probe(eqn.inputs[2], g)
    return tangents_of_gradient(x, dx, even=even, probe=probe, **eqn.kwargs)


def tangents_of_gradient(
    x: Sequence[Value],
    dx: Mapping[int, Value],
    *,
    hermitian: bool,
    even: bool = False,
    probe: Probe | None = None,
) -> list[Value | None]:
    """Return the tangent of `as_spectral_gradient(*x)`.

    With `even` all elements of `g` are equal, as for functions of the sum of the values.
    """
    _, a, w, u, v, g = x
    p = Spectrum(a, w, u, v, hermitian)
    found = spectral_gradient(p, dx[5]) if 5 in dx else None
    if 1 not in dx or (hermitian and even):
        return [found]
    change = _change_of_gradient(p, g, p.direction(dx[1]), even, probe)
    return [change if found is None else found + change]


def _change_of_gradient(p: Spectrum, g: Value, d: Value, even: bool, probe: Probe | None) -> Value:
    """Return the tangent of the gradient along `d` with `g` constant."""
    w, minus = p.w, None if even else difference_quotients(p.w, g, probe)
    limits = zeros_like(g)
    if minus is not None and not p.hermitian:
        limits = slopes_at_zero(w, g, probe, alone=p.turns_at_zero)
        minus = smooth_quotients(w, minus, limits)
    _, _, u, v, _ = p = p.distinct(zeros=not even)
    left = matmul(d, v)
    within = matmul(adjoint(u), left)
    if p.hermitian and minus is not None:
        return conjugate(matmul(matmul(v, within * cast_like(minus, v)), adjoint(v)))
    mirrored = adjoint(within)
    turn = (within - mirrored) * cast_like(sum_quotients(w, g, limits), u)
    if minus is not None:
        turn = turn + (within + mirrored) * cast_like(minus, u)
    change = matmul(u, turn * 0.5)
    single = cast_like(quotients(w, g, limits), u)
    if p.is_tall:
        change = change + (left - matmul(u, within)) * in_columns(single, u.shape[-2])
    change = matmul(change, adjoint(v))
    if p.is_wide:
        rest = matmul(adjoint(u), d) - matmul(within, adjoint(v))
        change = change + matmul(u * in_columns(single, u.shape[-2]), rest)
    return conjugate(change)


@as_spectral_gradient.transpose
def _as_spectral_gradient_transpose(
    ct: Value, z: Value, a: Value, w: Value, u: Value, v: Value, g: Linear, *, hermitian: bool
) -> tuple[Value | None, ...]:
    found = spectral_tangent(Spectrum(a, w, u, v, hermitian), ct)
    return None, None, None, None, None, found


@as_spectral_gradient.batch
def _as_spectral_gradient_batch(
    batched: tuple[bool, ...], *inputs: Value, hermitian: bool
) -> Value:
    result: Value = as_spectral_gradient(*with_batch_axis(batched, inputs), hermitian=hermitian)
    return result


def _matrices_apart(k: int, i: int, operands: Types, results: Types, **params: Any) -> IndexMap:
    """Return the batch axes of each operand; its last axes, one or two, belong to a matrix."""
    lead, shape = max(t.ndim for t in operands) - 2, operands[i].shape
    ties = [*range(lead), *[None] * (len(shape) - lead)]
    return tied_map(shape, results[k].shape, ties, exact=False)


for _op in (as_spectral_tangent, as_spectral_gradient):
    _op.index_map(_matrices_apart)
