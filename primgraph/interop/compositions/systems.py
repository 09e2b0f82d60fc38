"""Triangular factors of matrices, and linear equations, as loops over rows or columns.

For matrices with error messages in NumPy, such as singular ones, results are infinite or NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import primgraph.numpy as pnp
from primgraph.control.loops import scan
from primgraph.interop.compositions.table import composition
from primgraph.ir.types import smaller
from primgraph.primitives.linear_algebra import cholesky, matrix_functions, spectra, systems, ties


def swap(x: Any) -> Any:
    """Return the transpose of each matrix."""
    return pnp.swapaxes(x, -1, -2)


def adjoint(x: Any) -> Any:
    """Return the conjugate transpose of each matrix."""
    return pnp.conj(swap(x)) if x.dtype.kind == "c" else swap(x)


def outer(x: Any, y: Any) -> Any:
    """Return the product of each column with each row."""
    return x[..., :, None] * y[..., None, :]


def identity(n: Any, like: Any) -> Any:
    """Return the identity of n rows, in the dtype of `like`."""
    place = pnp.arange(n)
    return (place[:, None] == place).astype(like.dtype)


def diagonal_of(x: Any) -> Any:
    """Return the diagonal of each matrix."""
    n = smaller(*x.shape[-2:])
    place = pnp.arange(n)
    own = pnp.where(place[:, None] == place, x[..., :n, :n], 0)
    return pnp.sum(own, -1).astype(x.dtype)


def _sizes(x: Any) -> Any:
    return pnp.abs(x.real) + pnp.abs(x.imag) if x.dtype.kind == "c" else pnp.abs(x)


@composition(cholesky.cholesky)
def _cholesky(a: Any) -> Any:
    """Subtract, column by column, the product of the column with itself."""
    place = pnp.arange(a.shape[-1])

    def eliminate(rest: Any, j: Any) -> tuple[Any, Any]:
        column = pnp.take(rest, j, -1)
        pivot = pnp.sqrt(pnp.take(column, j, -1).real)[..., None].astype(a.dtype)
        column = pnp.where(place >= j, column / pivot, 0).astype(a.dtype)
        return rest - column[..., :, None] * adjoint(column[..., :, None]), column

    lower = place[:, None] >= place
    whole = pnp.where(lower, a, adjoint(a))
    factor = pnp.moveaxis(scan(eliminate, whole, place)[1], 0, -1)
    is_definite = pnp.all(diagonal_of(factor).real > 0, -1)[..., None, None]
    return pnp.where(is_definite, factor, np.nan).astype(a.dtype)


@composition(cholesky.cholesky_tangent)
def _cholesky_tangent(factor: Any, d: Any) -> Any:
    part = (d + adjoint(d)) * 0.5
    for _ in range(2):
        part = adjoint(_solve_triangle(factor, part, lower=True, transposed=False, unit=False))
    return (pnp.tril(factor) @ _halved(part)).astype(d.dtype)


@composition(cholesky.cholesky_slope)
def _cholesky_slope(factor: Any, ct: Any) -> Any:
    part = _halved(adjoint(pnp.tril(factor)) @ pnp.tril(ct))
    part = (part + adjoint(part)) * 0.5
    conjugate = pnp.conj(factor) if factor.dtype.kind == "c" else factor
    for _ in range(2):
        part = adjoint(_solve_triangle(conjugate, part, lower=True, transposed=True, unit=False))
    return part.astype(ct.dtype)


def _halved(x: Any) -> Any:
    """Return the lower triangle with half of its diagonal."""
    return pnp.tril(x) - 0.5 * x * identity(x.shape[-1], x)


@composition(matrix_functions.lu)
def _lu(a: Any) -> tuple[Any, Any, Any]:
    """Eliminate column by column, with the largest element of each as pivot."""
    m, n = a.shape[-2:]
    k, rows, columns = smaller(m, n), pnp.arange(m), pnp.arange(n)

    def eliminate(state: tuple[Any, Any], j: Any) -> tuple[Any, None]:
        rest, order = state
        sizes = pnp.where(rows >= j, _sizes(pnp.take(rest, j, -1)), -1)
        top = pnp.argmax(sizes, -1)[..., None]
        index = pnp.where(rows == j, top, pnp.where(rows == top, j, rows))
        rest = pnp.take_along_axis(rest, index[..., None], -2)
        row, column = pnp.take(rest, j, -2), pnp.take(rest, j, -1)
        pivot = pnp.take(row, j, -1)[..., None]
        column = pnp.where(rows > j, column / pnp.where(pivot == 0, 1, pivot), 0)
        column = column.astype(a.dtype)
        rest = rest - outer(column, pnp.where(columns > j, row, 0).astype(a.dtype))
        is_below = (rows > j)[:, None] & (columns == j)
        rest = pnp.where(is_below, column[..., None], rest)
        return (rest, pnp.take_along_axis(order, index, -1)), None

    order = pnp.broadcast_to(rows, (*a.shape[:-2], m))
    rest, order = scan(eliminate, (a, order), pnp.arange(k))[0]
    left = pnp.tril(rest, -1)[..., :k] + (rows[:, None] == pnp.arange(k)).astype(a.dtype)
    return order, left, pnp.triu(rest)[..., :k, :]


@composition(systems.triangular_solve)
def _solve_triangle(a: Any, b: Any, *, lower: bool, transposed: bool, unit: bool) -> Any:
    """Find one row of the solution after the other."""
    place = pnp.arange(a.shape[-1])
    triangle = swap(a) if transposed else a
    is_lower = lower != transposed
    inner = place[:, None] > place if is_lower else place[:, None] < place
    off = pnp.where(inner, triangle, 0).astype(a.dtype)
    ends = pnp.ones(diagonal_of(a).shape, a.dtype) if unit else diagonal_of(a)

    def substitute(x: Any, row: tuple[Any, ...]) -> tuple[Any, None]:
        i, before, wanted, end = row
        found = (wanted - (before[..., None, :] @ x)[..., 0, :]) / end[..., None]
        return pnp.where((place == i)[:, None], found[..., None, :], x), None

    rows = [pnp.moveaxis(x, axis, 0) for x, axis in ((off, -2), (b, -2), (ends, -1))]
    start = pnp.zeros(b.shape, b.dtype)
    return scan(substitute, start, (place, *rows), reverse=not is_lower)[0]


@composition(systems.sparse_triangular_solve)
def _solve_entries(data: Any, b: Any, rows: Any, columns: Any, *, reverse: bool) -> Any:
    """Divide or subtract from one row of the solution for each element of the matrix."""
    place = pnp.arange(b.shape[-2])

    def substitute(x: Any, entry: tuple[Any, ...]) -> tuple[Any, None]:
        a, i, j = entry[0][..., None], *entry[1:]
        row, ends = pnp.take(x, i, -2), i == j
        found = pnp.where(ends, row / pnp.where(ends, a, 1), row - a * pnp.take(x, j, -2))
        return pnp.where((place == i)[:, None], found[..., None, :], x).astype(b.dtype), None

    return scan(substitute, b, (pnp.moveaxis(data, -1, 0), rows, columns), reverse=reverse)[0]


@composition(systems.solve)
def _solve(a: Any, b: Any) -> Any:
    order, left, right = _lu(a)
    turned = pnp.take_along_axis(b, order[..., None], -2)
    inner = _solve_triangle(left, turned, lower=True, transposed=False, unit=True)
    return _solve_triangle(right, inner, lower=False, transposed=False, unit=False)


@composition(systems.inv)
def _inv(a: Any) -> Any:
    return _solve(a, pnp.broadcast_to(identity(a.shape[-1], a), a.shape))


@composition(systems.slogdet)
def _slogdet(a: Any) -> tuple[Any, Any]:
    order, _, right = _lu(a)
    ends = diagonal_of(right)
    sizes = pnp.abs(ends)
    signs = ends / pnp.where(sizes == 0, 1, sizes).astype(a.dtype)
    return _parity(order).astype(a.dtype) * pnp.prod(signs, -1), pnp.sum(pnp.log(sizes), -1)


def _parity(order: Any) -> Any:
    """Return the sign of a permutation, from the number of its pairs in descending order."""
    place = pnp.arange(order.shape[-1])
    is_turned = (place[:, None] < place) & (order[..., :, None] > order[..., None, :])
    return 1 - 2 * (pnp.sum(is_turned, (-2, -1)) % 2)


@composition(systems.det)
def _det(a: Any) -> Any:
    order, _, right = _lu(a)
    return _parity(order).astype(a.dtype) * pnp.prod(diagonal_of(right), -1)


@composition(spectra.qr)
def _qr(a: Any, *, complete: bool) -> tuple[Any, Any]:
    """Reflect column by column, as LAPACK: the diagonal of the triangle has the other sign."""
    m, n = a.shape[-2:]
    k, rows = smaller(m, n), pnp.arange(m)

    def reflect(state: tuple[Any, Any], j: Any) -> tuple[Any, None]:
        q, rest = state
        column = pnp.take(rest, j, -1)
        first = pnp.take(column, j, -1)
        below = pnp.where(rows > j, column, 0).astype(a.dtype)
        largest = pnp.max(_sizes(pnp.where(rows >= j, column, 0)), -1)
        unit = pnp.where(largest == 0, 1, largest)
        parts = [pnp.abs(x) / unit[..., None] for x in (first[..., None], below)]
        length = unit * pnp.sqrt(sum(pnp.sum(x * x, -1) for x in parts))
        end = pnp.where(first.real < 0, length, -length).astype(a.dtype)
        is_done = pnp.all(below == 0, -1) & (first.imag == 0)
        vector = below / pnp.where(is_done, 1, first - end)[..., None]
        vector = pnp.where(rows == j, 1, vector).astype(a.dtype)[..., None]
        scale = pnp.where(is_done, 0, (end - first) / pnp.where(is_done, 1, end))
        scale = scale.astype(a.dtype)[..., None, None]
        turned = pnp.conj(scale) if a.dtype.kind == "c" else scale
        rest = rest - turned * vector * (adjoint(vector) @ rest)
        return (q - scale * (q @ vector) * adjoint(vector), rest), None

    start = pnp.broadcast_to(identity(m, a), (*a.shape[:-2], m, m))
    q, rest = scan(reflect, (start, a), pnp.arange(k))[0]
    size = m if complete else k
    return q[..., :size], pnp.triu(rest)[..., :size, :]


@composition(ties.unless_any)
def _unless_any(x: Any, bad: Any, *, message: str) -> Any:
    """NaN where an error would be raised."""
    return pnp.where(pnp.any(bad), np.nan, x).astype(x.dtype)
