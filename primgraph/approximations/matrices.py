"""Matrix functions and triangular factors that NumPy lacks.

As in `gamma`, function texts are copied into standalone sources.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# Coefficients of the numerator of Pade's approximant of order 13 of the exponential.
PADE = np.array([
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
    10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
]) / 64764752532480000  # fmt: skip


def expm(a: Any) -> Any:
    """The exponential of each matrix: Pade's approximant of order 13 of a part, and its squares.

    N. J. Higham, The scaling and squaring method for the matrix exponential revisited, SIAM J.
    Matrix Anal. Appl. 26 (2005), 1179.
    """
    size = np.max(np.sum(np.abs(a), -2), initial=0.0)
    times = (
        np.int64(max(0.0, np.ceil(np.log2(size / 5.3)))) if 0.0 < size < np.inf else 0
    )
    x, identity = a * a.dtype.type(0.5**times), np.eye(a.shape[-1], dtype=a.dtype)
    b = PADE.astype(a.dtype)
    # Coefficients of higher powers are small: those are of parts of the norm 5.3.
    two = x @ x
    four = two @ two
    six = four @ two
    odd = six @ (b[13] * six + b[11] * four + b[9] * two)
    odd = x @ (odd + b[7] * six + b[5] * four + b[3] * two + b[1] * identity)
    even = six @ (b[12] * six + b[10] * four + b[8] * two)
    even = even + b[6] * six + b[4] * four + b[2] * two + b[0] * identity
    found = np.linalg.solve(even - odd, even + odd)
    for _ in range(times):
        found = found @ found
    return found


def turn_off_axis(a: Any) -> Any:
    """Small angles, by which complex matrices are turned back so that no eigenvalue is negative.

    Other eigenvalues stay on their side of the negative axis. Of blocks `[[b, d], [0, b]]`, whose
    eigenvalues are not known to all digits, those of `b` count.
    """
    half = a.shape[-1] // 2
    while half and a.shape[-1] == 2 * half:
        first, last = a[..., :half, :half], a[..., half:, half:]
        if not np.array_equal(first, last) or np.any(a[..., half:, :half]):
            break
        a, half = first, half // 2
    angles = np.angle(np.linalg.eigvals(a))
    angles = np.where(angles < 1e-10 - np.pi, np.pi, angles)
    room = np.min(np.where(angles < 0.0, angles, 0.0), -1, initial=0.0) + np.pi
    is_on_axis = np.max(angles, -1, initial=0.0) > np.pi - 1e-3
    return np.where(is_on_axis, 0.5 * room, 0.0)[..., None, None]


def sqrtm(a: Any) -> Any:
    """The principal square root of each matrix; of complex ones also with negative eigenvalues."""
    if a.dtype.kind != "c" or not np.all(np.isfinite(a)):
        return newton_root(a)
    turn = turn_off_axis(a)
    root = newton_root(in_double(a) * np.exp(-1j * turn)) * np.exp(0.5j * turn)
    return root.astype(a.dtype)


def newton_root(a: Any) -> Any:
    """The principal square root of each matrix, by Newton's method of Denman and Beavers.

    As N. J. Higham, Stable iterations for the matrix square root, Numer. Algorithms 15 (1997), 227,
    has it, with a scale by the determinants.
    """
    n, scaled = a.shape[-1], True
    m = x = wide = in_double(a)
    identity = np.eye(n)
    bound = 4 * n * np.finfo(np.float64).eps
    for _ in range(60):
        if not a.size:
            return np.array(a)
        inverse = np.linalg.inv(m)
        if scaled:
            size = np.linalg.slogdet(m)[1]
            factor = np.exp(size / (-2.0 * n))[..., None, None]
        else:
            factor = 1.0
        square = factor * factor
        x = 0.5 * factor * x @ (identity + inverse / square)
        m = 0.5 * (identity + 0.5 * (square * m + inverse / square))
        away = np.max(np.abs(m - identity))
        scaled = away > 0.01
        if away <= bound:
            break
    close = np.max(np.abs(x @ x - wide)) <= 1e3 * bound * np.max(np.abs(x)) ** 2
    if np.all(np.isfinite(a)) and not close:
        if a.dtype.kind == "c":
            raise np.linalg.LinAlgError("a matrix has no principal square root")
        raise np.linalg.LinAlgError(
            "a matrix has no real principal square root: a.astype(complex) may have one"
        )
    return x.astype(a.dtype)


def in_double(a: Any) -> Any:
    """Numbers in double precision."""
    return a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)


def logm(a: Any) -> Any:
    """The principal logarithm of each matrix: that of a root near the identity, by a series."""
    identity = np.eye(a.shape[-1])
    x, times = in_double(a), 0
    while np.max(np.abs(x - identity), initial=0.0) > 0.1 and times < 60:
        x, times = sqrtm(x), times + 1
    ratio = np.linalg.solve(x + identity, x - identity)
    square = ratio @ ratio
    total = identity / 15
    for k in (13, 11, 9, 7, 5, 3, 1):
        total = total @ square + identity / k
    return (ratio @ total * 2.0 ** (times + 1)).astype(a.dtype)


def expm_slope(a: Any, d: Any) -> Any:
    """The derivative of the exponential of matrices along `d`."""
    size = size_of_elements(d)
    return size * upper_right_block(a, expm(block_with_slope(a, d / size)))


def sqrtm_slope(a: Any, d: Any) -> Any:
    """The derivative of the square root of matrices along `d`."""
    size = size_of_elements(d)
    return size * upper_right_block(a, sqrtm(block_with_slope(a, d / size)))


def logm_slope(a: Any, d: Any) -> Any:
    """The derivative of the logarithm of matrices along `d`."""
    size = size_of_elements(d)
    return size * upper_right_block(a, logm(block_with_slope(a, d / size)))


def size_of_elements(d: Any) -> Any:
    """The largest size of the elements; 1 of zeros."""
    size = np.max(np.abs(d), initial=0.0)
    return size if size > 0 else d.dtype.type(1)


def block_with_slope(a: Any, d: Any) -> Any:
    """The blocks `[[a, d], [0, a]]`."""
    rows = np.concatenate([a, d], -1), np.concatenate([np.zeros_like(a), a], -1)
    return np.concatenate(rows, -2)


def upper_right_block(a: Any, whole: Any) -> Any:
    """The upper right block."""
    return whole[..., : a.shape[-1], a.shape[-1] :]


def lu(a: Any) -> Any:
    """Order of rows, unit lower and upper triangle of each matrix, with pivots in columns."""
    *lead, m, n = a.shape
    k = min(m, n)
    rest = np.array(a)
    order = np.zeros((*lead, m), np.int64) + np.arange(m)
    for j in range(0, k if a.size else 0, 1):
        sizes = np.abs(rest[..., j:, j].real) + np.abs(rest[..., j:, j].imag)
        top = j + np.argmax(sizes, -1)[..., None]
        for values, at in ((order, top), (rest, top[..., None])):
            axis = values.ndim - 1 if values is order else values.ndim - 2
            row = (
                values[..., j : j + 1] if values is order else values[..., j : j + 1, :]
            )
            other = np.take_along_axis(values, at, axis)
            first = np.array(row)
            np.put_along_axis(values, at, first, axis)
            row[...] = other
        pivot = rest[..., j : j + 1, j : j + 1]
        below = rest[..., j + 1 :, j : j + 1]
        np.divide(below, pivot, out=below, where=pivot != 0)
        rest[..., j + 1 :, j + 1 :] -= below * rest[..., j : j + 1, j + 1 :]
    left = np.tril(rest, -1)[..., :k] + np.eye(m, k, dtype=a.dtype)
    return order, left, np.triu(rest)[..., :k, :]


def eig(a: Any) -> Any:
    """Eigenvalues and eigenvectors, of a real matrix such as has real ones."""
    w, v = np.linalg.eig(a)
    if w.dtype.kind != a.dtype.kind:
        raise np.linalg.LinAlgError(
            "a real matrix has complex eigenvalues: those of a.astype(complex) are"
        )
    return w, v
