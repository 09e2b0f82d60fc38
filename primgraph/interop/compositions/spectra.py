"""Eigenvalues, singular values and functions of matrices, by rotations, products and systems.

Rotations are those of Jacobi's methods: G. H. Golub and C. F. Van Loan, Matrix computations, 4th
edition, 8.5 and 8.6.3. Each step turns disjoint pairs of columns, and each sweep has all pairs.
The signs of vectors, which are free, may differ from LAPACK's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import primgraph.numpy as pnp
from primgraph.approximations.matrices import PADE
from primgraph.control.loops import scan, while_loop
from primgraph.interop.compositions.systems import (
    diagonal_of,
    identity,
    swap,
)
from primgraph.interop.compositions.table import composition, is_real_of_known_size
from primgraph.primitives.linear_algebra import matrix_functions, spectra, systems

# Sweeps after which rotations end; about eight are needed.
_SWEEPS = 40


def _pairs(n: int) -> Any:
    """Return the partner of each of `n` columns in each step of a tournament; itself if alone.

    >>> _pairs(3).tolist()
    [[0, 2, 1], [1, 0, 2], [2, 1, 0]]
    """
    count = n + n % 2
    found = np.zeros((count - 1, count), np.int64)
    for step in range(count - 1):
        circle = [(step + k) % (count - 1) for k in range(count - 1)]
        couples = [(circle[k], circle[-k]) for k in range(1, count // 2)]
        for i, j in [(circle[0], count - 1), *couples]:
            found[step, i], found[step, j] = j, i
    return np.where(found[:, :n] < n, found[:, :n], np.arange(n))


def _rotation(own: Any, other: Any, product: Any, is_first: Any) -> tuple[Any, Any]:
    """Return cosines, and signed sines, of rotations that make products of pairs zero."""
    none = product == 0
    ratio = (other - own) / pnp.where(none, 1, 2 * product)
    is_up = pnp.where(is_first, ratio >= 0, ratio > 0)
    length = pnp.abs(ratio) + pnp.sqrt(1 + ratio * ratio)
    tangent = pnp.where(none, 0, 1 / pnp.where(is_up, length, -length)).astype(own.dtype)
    cosine = 1 / pnp.sqrt(1 + tangent * tangent)
    return cosine, -tangent * cosine


def _turned(x: Any, partner: Any, cosine: Any, sine: Any) -> Any:
    """Return the columns after rotations with their partners."""
    return x * cosine[..., None, :] + pnp.take(x, partner, -1) * sine[..., None, :]


Step = Callable[[Any, Any], tuple[Any, Any]]


def _sweep(step: Step, state: Any, n: int, dtype: Any) -> Any:
    """Apply a step to all pairs until none of them turns by more than rounding."""
    bound = np.finfo(dtype).eps

    def goes_on(carry: Any) -> Any:
        return (carry[1] > bound) & (carry[2] < _SWEEPS)

    def sweep(carry: Any) -> Any:
        state, turns = scan(step, carry[0], _pairs(n))
        return state, pnp.max(turns), carry[2] + 1

    start = (state, pnp.asarray(1.0, dtype), pnp.asarray(0))
    return while_loop(goes_on, sweep, start)[0]


@composition(spectra.eigh, fits=is_real_of_known_size)
def _eigh(a: Any) -> tuple[Any, Any]:
    n = a.shape[-1]
    place = pnp.arange(n)

    def step(state: Any, partner: Any) -> tuple[Any, Any]:
        rest, vectors = state
        ends = diagonal_of(rest)
        other = pnp.take(ends, partner, -1)
        chosen = pnp.where(partner[:, None] == place, rest, 0).astype(a.dtype)
        product = pnp.where(partner == place, 0, pnp.sum(chosen, -1)).astype(a.dtype)
        cosine, sine = _rotation(ends, other, product, place < partner)
        rest = _turned(rest, partner, cosine, sine)
        rest = swap(_turned(swap(rest), partner, cosine, sine))
        size = pnp.max(pnp.abs(ends), -1)[..., None]
        turn = pnp.max(pnp.abs(product) / pnp.where(size == 0, 1, size))
        return (rest, _turned(vectors, partner, cosine, sine)), turn

    whole = pnp.where(place[:, None] >= place, a, swap(a))
    start = pnp.broadcast_to(identity(n, a), a.shape)
    rest, vectors = _sweep(step, (whole, start), n, a.dtype) if n > 1 else (whole, start)
    values = diagonal_of(rest)
    order = pnp.argsort(values, -1)
    vectors = pnp.take_along_axis(vectors, order[..., None, :], -1)
    return pnp.take_along_axis(values, order, -1), vectors


@composition(spectra.eigvalsh, fits=is_real_of_known_size)
def _eigvalsh(a: Any) -> Any:
    return _eigh(a)[0]


def _tall_svd(a: Any) -> tuple[Any, Any, Any]:
    """Return `u`, singular values and `v` of matrices with no more columns than rows."""
    n = a.shape[-1]
    place = pnp.arange(n)

    def step(state: Any, partner: Any) -> tuple[Any, Any]:
        u, v = state
        squares = pnp.sum(u * u, -2)
        other = pnp.take(squares, partner, -1)
        product = pnp.sum(u * pnp.take(u, partner, -1), -2)
        product = pnp.where(partner == place, 0, product).astype(a.dtype)
        cosine, sine = _rotation(squares, other, product, place < partner)
        bound = pnp.sqrt(squares) * pnp.sqrt(other)
        turn = pnp.max(pnp.abs(product) / pnp.where(bound == 0, 1, bound))
        return (_turned(u, partner, cosine, sine), _turned(v, partner, cosine, sine)), turn

    largest = pnp.max(pnp.abs(a), (-2, -1))[..., None, None]
    unit = pnp.where(largest == 0, 1, largest).astype(a.dtype)
    start = a / unit, pnp.broadcast_to(identity(n, a), (*a.shape[:-2], n, n))
    u, v = _sweep(step, start, n, a.dtype) if n > 1 else start
    values = pnp.sqrt(pnp.sum(u * u, -2))
    order = pnp.argsort(-values, -1)
    values = pnp.take_along_axis(values, order, -1)
    u, v = (pnp.take_along_axis(x, order[..., None, :], -1) for x in (u, v))
    u = u / pnp.where(values == 0, 1, values)[..., None, :]
    return u, values * unit[..., 0], v


@composition(spectra.svd, fits=is_real_of_known_size)
def _svd(a: Any, *, full: bool) -> tuple[Any, Any, Any]:
    if a.shape[-2] < a.shape[-1]:
        u, values, vt = _svd(swap(a), full=full)
        return swap(vt), values, swap(u)
    u, values, v = _tall_svd(a)
    # Columns beside the others, and those of zeros, are orthonormal to them.
    q, r = pnp.linalg.qr(u, mode="complete" if full else "reduced")
    sign = pnp.where(diagonal_of(r) < 0, -1, 1).astype(a.dtype)
    count = q.shape[-1] - sign.shape[-1]
    more = pnp.ones((*sign.shape[:-1], count), a.dtype)
    return q * pnp.concatenate([sign, more], -1)[..., None, :], values, swap(v)


@composition(spectra.svdvals, fits=is_real_of_known_size)
def _svdvals(a: Any) -> Any:
    return _tall_svd(swap(a) if a.shape[-2] < a.shape[-1] else a)[1]


@composition(spectra.pinv, fits=is_real_of_known_size)
def _pinv(a: Any, *, rcond: float) -> Any:
    if a.shape[-2] < a.shape[-1]:
        return swap(_pinv(swap(a), rcond=rcond))
    u, values, v = _tall_svd(a)
    is_large = values > rcond * pnp.max(values, -1)[..., None]
    inverse = pnp.where(is_large, 1 / pnp.where(is_large, values, 1), 0).astype(a.dtype)
    return (v * inverse[..., None, :]) @ swap(u)


@composition(systems.cofactors, fits=is_real_of_known_size)
def _cofactors(a: Any) -> Any:
    """The products of all singular values but one, between the singular vectors."""
    u, values, vt = pnp.linalg.svd(a)
    own = identity(a.shape[-1], a) > 0
    others = pnp.prod(pnp.where(own, 1, values[..., None, :]), -1).astype(a.dtype)
    turn = pnp.linalg.det(u) * pnp.linalg.det(vt)
    return (u * others[..., None, :]) @ vt * pnp.sign(turn)[..., None, None]


@composition(matrix_functions.expm)
def _expm(a: Any) -> Any:
    """Pade's approximant of order 13 of a part, and its squares, as in `approximations`."""
    size = pnp.max(pnp.sum(pnp.abs(a), -2))
    # The power of two that makes the size at most 5.3; NaN and infinity need none.
    is_large = (size > 5.3) & pnp.isfinite(size)
    times = pnp.where(is_large, pnp.ceil(pnp.log2(pnp.where(is_large, size, 5.3) / 5.3)), 0)
    x, b = a * (0.5**times).astype(a.dtype), [a.dtype.type(n) for n in PADE]
    one, two = identity(a.shape[-1], a), x @ x
    four = two @ two
    six = four @ two
    odd = six @ (b[13] * six + b[11] * four + b[9] * two)
    odd = x @ (odd + b[7] * six + b[5] * four + b[3] * two + b[1] * one)
    even = six @ (b[12] * six + b[10] * four + b[8] * two)
    even = even + b[6] * six + b[4] * four + b[2] * two + b[0] * one
    found = pnp.linalg.solve(even - odd, even + odd)
    return while_loop(lambda s: s[1] > 0, lambda s: (s[0] @ s[0], s[1] - 1), (found, times))[0]


@composition(matrix_functions.expm_slope)
def _expm_slope(a: Any, d: Any) -> Any:
    """The upper right block of the exponential of a block matrix."""
    n = a.shape[-1]
    size = pnp.max(pnp.abs(d))
    size = pnp.where(size > 0, size, 1).astype(a.dtype)
    above = pnp.concatenate([a, d / size], -1)
    below = pnp.concatenate([pnp.zeros(a.shape, a.dtype), a], -1)
    return _expm(pnp.concatenate([above, below], -2))[..., :n, n:] * size
