"""Functions that code for JAX calls where JAX has no single function; their text is copied.

In generated code `np` is `jax.numpy`. Arrays do not change, and no value decides a branch.
"""

from __future__ import annotations

from typing import Any

from primgraph.approximations.beta import poles_cancel
from primgraph.approximations.gamma import gammaln_drop, parity, stirling
from primgraph.approximations.matrices import block_with_slope, upper_right_block

# Generated code imports these.
jax: Any = None
np: Any = None


def scaled_root_of_squares(hold: Any, x: Any, squares: Any, axis: Any, divisor: Any) -> Any:
    """Return the root of the sum of squares of `x`, divided by `divisor`, without overflow.

    The derivative is that by `x`, zero where all are zero: `hold` gives constants.
    """
    info = np.finfo(squares.dtype)
    safe = (squares >= info.tiny / info.eps) & (squares <= info.max)
    if 0 in x.shape:
        return np.sqrt(squares / divisor)
    largest = hold(np.max(np.abs(x), axis=axis, keepdims=True))
    scaled = ~safe.reshape(largest.shape) & (largest > 0) & np.isfinite(largest)
    scale = np.where(scaled, largest, 1).astype(squares.dtype)
    total = np.sum(np.square(x / scale), axis=axis)
    root = np.sqrt(np.where(total == 0, 1, total / divisor)) * scale.reshape(total.shape)
    return np.where(total == 0, 0, root)


def derivative_of_determinant(a: Any) -> Any:
    """Return the derivative of the determinant by each element, of singular matrices too."""
    u, s, vt = np.linalg.svd(a)
    others = np.prod(np.where(np.eye(s.shape[-1], dtype=np.bool_), 1, s[..., None, :]), -1)
    made = (u * others[..., None, :]) @ vt
    return np.conj(made) * (np.linalg.det(u) * np.linalg.det(vt))[..., None, None]


def conjugate_transpose(x: Any) -> Any:
    """Return the conjugate transpose of each matrix."""
    return np.conj(np.swapaxes(x, -1, -2))


def halved_triangle(x: Any) -> Any:
    """Return the lower triangle with half of its diagonal."""
    return np.tril(x) - 0.5 * x * np.eye(x.shape[-1], dtype=x.dtype)


def tangent_of_cholesky(solve: Any, factor: Any, d: Any) -> Any:
    """Return the tangent of a Cholesky factor along a symmetric `d`."""
    part = (d + conjugate_transpose(d)) * 0.5
    for _ in range(2):
        part = conjugate_transpose(solve(factor, part, left_side=True, lower=True))
    return np.tril(factor) @ halved_triangle(part)


def slope_of_cholesky(factor: Any, ct: Any) -> Any:
    """Return the gradient by a symmetric matrix from that by its Cholesky factor."""
    inverse = np.tril(np.linalg.inv(factor))
    made = (
        conjugate_transpose(inverse)
        @ halved_triangle(conjugate_transpose(factor) @ np.tril(ct))
        @ inverse
    )
    return (made + conjugate_transpose(made)) * 0.5


def slope_of_exponential(exponential: Any, a: Any, d: Any) -> Any:
    """Return the derivative of the exponential of matrices along `d`."""
    size = np.max(np.abs(d), initial=0.0)
    size = np.where(size > 0, size, 1)
    return size * upper_right_block(a, exponential(block_with_slope(a, d / size)))


def eig_or_nan(eig: Any, a: Any) -> Any:
    """Return eigenvalues and eigenvectors; NaN for real matrices whose eigenvalues are complex."""
    w, v = eig(a)
    if np.iscomplexobj(a):
        return w, v
    is_real = np.all(np.imag(w) == 0, axis=-1, keepdims=True)
    return np.where(is_real, np.real(w), np.nan), np.where(is_real[..., None], np.real(v), np.nan)


def polygamma_of_all(polygamma: Any, n: int, x: Any) -> Any:
    """Return derivative `n` of the digamma function, at poles, at infinity and below zero too.

    Below zero it is by reflection (DLMF 5.15.6): derivatives of the cotangent are polynomials of
    it, `p(c)' = -(1 + c*c) p'(c)`.
    """
    if n == 0:
        return np.where(x == 0, -np.sign(1 / x) * np.inf, polygamma(0, x)).astype(x.dtype)
    powers = [0.0, 1.0]
    for _ in range(n):
        slope = [k * p for k, p in enumerate(powers)][1:]
        powers = [-(a + b) for a, b in zip([*slope, 0.0, 0.0], [0.0, 0.0, *slope], strict=True)]
    positive = np.where(x < 0, 1 - x, np.where(x == np.inf, 1, x))
    above = np.where(x == np.inf, 0, polygamma(n, positive))
    tangent = np.tan(np.pi * (x - np.rint(x)))
    derivative = 0.0
    for p in reversed(powers):
        derivative = derivative / tangent + p
    below = (-1) ** n * above - np.pi ** (n + 1) * derivative
    below = np.where(tangent == 0, (-1) ** (n + 1) * np.inf, below)
    return np.where(x <= 0, below, above).astype(x.dtype)


def gammainc_of_all(function: Any, a: Any, x: Any, k: int, upper: bool) -> Any:
    """Return an incomplete gamma function, or its derivative by `a`, at the ends of `a` too."""
    at_zero, at_end = a == 0, a == np.inf
    if k:
        nearly = np.finfo(x.dtype).eps / 16
        found = jax.lax.igamma_grad_a(np.where(at_end, 1, np.where(at_zero, nearly, a)), x)
        found, last = -found if upper else found, 0
    else:
        found = function(np.where(at_end, 1, a), x)
        found = np.where(at_zero & (x > 0), 0 if upper else 1, found)
        last = np.where(x < np.inf, 1 if upper else 0, np.nan)
    return np.where(at_end & (x >= 0), last, found).astype(x.dtype)


def ratio_of_gammas(gamma: Any, gammaln: Any, z: Any, m: Any) -> Any:
    """Return `gamma(z + m) / gamma(z)`, without overflow, and its limit at poles of both."""
    end = z + m
    pole, end_pole = (z <= 0) & (z == np.floor(z)), (end <= 0) & (end == np.floor(end))
    # By reflection a ratio of two poles is one of positive numbers.
    both = pole & end_pole & (m == np.rint(m))
    over, under = np.where(both, 1 - z, end), np.where(both, 1 - end, z)
    is_large = (np.minimum(over, under) >= 8.5) & (np.maximum(over, under) < np.inf)
    start, step = np.where(is_large, under, 9), np.where(is_large, m, 0)
    ratio = np.where(is_large, np.exp(-gammaln_drop(start, step)), gamma(over) / gamma(under))
    ratio = np.where(both & (m % 2 == 1), -ratio, ratio)
    ratio = np.where(pole & ~both & np.isfinite(m), 0, ratio)
    ratio = np.where(end_pole & ~pole & np.isfinite(z), np.inf, ratio)
    return np.where((m == 0) & np.isfinite(z), 1, ratio).astype(z.dtype)


def solution_by_entries(
    fori_loop: Any, data: Any, b: Any, rows: Any, columns: Any, reverse: bool
) -> Any:
    """Solve with triangular matrices, in the order of their elements or in reverse order."""

    def substitute(p: Any, x: Any) -> Any:
        p = rows.size - 1 - p if reverse else p
        i, j, entry = rows[p], columns[p], data[..., p, None]
        row = x[..., i, :]
        return x.at[..., i, :].set(np.where(i == j, row / entry, row - entry * x[..., j, :]))

    return fori_loop(0, rows.size, substitute, b) if rows.size else b


def beta_logarithm(gammaln: Any, a: Any, b: Any) -> Any:
    """Return the logarithm of the absolute value of the beta function, for all signs.

    Where the larger one is large, by Stirling's series: that of JAX has seven digits.
    """
    small, large = np.minimum(a, b), np.maximum(a, b)
    # The ratio of gamma functions by reflection. DLMF 5.5.3.
    both = poles_cancel(small, large)
    other = np.where(both, 1 - (small + large), small)
    small, large = np.minimum(other, large), np.maximum(other, large)
    far = (large >= 8.5) & (small + large >= 8.5)
    p, q = np.where(far, small, 1), np.where(far, large, 9)
    total, many = p + q, np.maximum(p, 8.5)
    even = -many * np.log1p(q / many) - q * np.log1p(many / q)
    even = even + (0.9189385332046727 - 0.5 * np.log(many) + stirling(many))
    even = even + (stirling(q) - stirling(total) + 0.5 * np.log1p(p / q))
    series = np.where(p < 8.5, gammaln(p) + gammaln_drop(q, p), even)
    series = np.where((total == np.inf) & (p > 0), -np.inf, series)
    found = gammaln(small) + (gammaln(large) - gammaln(small + large))
    found = np.where((small == 0) & (large < np.inf), np.inf, np.where(far, series, found))
    return found.astype(a.dtype)


def beta_by_logarithm(gammaln: Any, sign: Any, a: Any, b: Any) -> Any:
    """Return the beta function, with its zeros, its poles, and limits where two poles meet.

    `sign` is that of the gamma function.
    """
    first, second = np.minimum(a, b), np.maximum(a, b)
    total, whole = first + second, first == np.rint(first)
    size = np.exp(beta_logarithm(gammaln, first, second))
    found = np.where(first >= 0, size, size * sign(first) * sign(second) * sign(total))
    found = np.where((total <= 0) & (total == np.rint(total)) & ~whole, 0, found)
    found = np.where((first < 0) & whole & ~np.isnan(second), np.inf, found)
    return np.where(poles_cancel(first, second), parity(second) * size, found).astype(a.dtype)


def lu_in_order(factorize: Any, a: Any) -> Any:
    """Return the order of rows, and the unit lower and the upper triangle of each matrix."""
    m, n = a.shape[-2:]
    k = min(m, n)
    both, _, order = factorize(a)
    left = np.tril(both, -1)[..., :k] + np.eye(m, k, dtype=a.dtype)
    return order.astype(np.int64), left, np.triu(both)[..., :k, :]


def high_product(x: Any, y: int) -> Any:
    """Return the upper 64 bits of the products of unsigned numbers of 64 bits, held as signed."""
    low = 2**32 - 1
    x0, x1, y0, y1 = x & low, (x >> 32) & low, y & low, (y >> 32) & low
    middle = x1 * y0 + ((x0 * y0 >> 32) & low)
    return x1 * y1 + ((middle >> 32) & low) + (((x0 * y1 + (middle & low)) >> 32) & low)


def philox_uniform(key: Any, shape: Any) -> Any:
    """Return numbers in [0, 1) for each key, as NumPy's generators draw them from Philox.

    J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011: Philox 4x64-10. Signed
    numbers have the bits of unsigned ones, which torch lacks.
    """
    count = 1
    for extent in shape:
        count *= extent
    k0 = key.astype(np.int64)[..., None]
    k1 = k0 * 0
    a = k1 + np.arange(1, (count + 3) // 4 + 1, dtype=np.int64)
    b = c = d = a * 0
    m0, m1 = 0xD2E7470EE14C6C93 - 2**64, 0xCA5A826395121157 - 2**64
    for _ in range(10):
        a, b, c, d = (
            high_product(c, m1) ^ b ^ k0,
            c * m1,
            high_product(a, m0) ^ d ^ k1,
            a * m0,
        )
        k0, k1 = k0 + (0x9E3779B97F4A7C15 - 2**64), k1 + (0xBB67AE8584CAA73B - 2**64)
    words = np.stack([a, b, c, d], -1).reshape((*key.shape, -1))[..., :count]
    numbers = ((words >> 11) & (2**53 - 1)).astype(np.float64) * 2.0**-53
    return numbers.reshape((*key.shape, *shape))


def philox_uniform_between(
    key: Any, shape: Any, dtype: Any, low: float, high: float, last: float
) -> Any:
    """Return uniform numbers in [low, high), which depend on `key` alone, up to `last`."""
    draws = (philox_uniform(key, shape) * (high - low) + low).astype(dtype)
    return np.clip(draws, None, last)


def placed_at(parts: Any, shape: Any, lead: Any, starts: Any, strides: Any) -> Any:
    """Return zeros with the elements of parts at strided positions, in row-major order."""
    size = 1
    for extent in shape[lead:]:
        size *= extent
    flat = np.zeros((*shape[:lead], size), parts[0].dtype)
    for part, start, steps in zip(parts, starts, strides, strict=True):
        # A part of one element may be a number.
        part = part.reshape(part.shape or (1,) * len(steps))
        places = np.array(start)
        for extent, step in zip(part.shape[lead:], steps, strict=True):
            places = places[..., None] + np.arange(extent) * step
        flat = flat.at[..., places].set(part)
    return flat.reshape(shape)


def windows_of(x: Any, axis: Any, sizes: Any, counts: Any, steps: Any, dilations: Any) -> Any:
    """Return elements of windows over axes from `axis` on, followed by axes of the windows."""
    number = len(sizes)
    for k in range(number):
        inside = np.arange(sizes[k])[:, None] * dilations[k]
        x = np.take(x, inside + np.arange(counts[k]) * steps[k], axis=axis + 2 * k)
    pairs = tuple(range(axis, axis + 2 * number))
    rest = tuple(range(axis + 2 * number, x.ndim))
    return x.transpose((*range(axis), *pairs[::2], *pairs[1::2], *rest))


def sums_of_windows(x: Any, axis: Any, extents: Any, steps: Any, dilations: Any) -> Any:
    """Return sums of the elements of windows over axes of `extents`, from `axis` on."""
    first, last = axis + len(extents), axis + 2 * len(extents)
    sizes, counts = x.shape[axis:first], x.shape[first:last]
    total = np.zeros((*x.shape[:axis], *extents, *x.shape[last:]), x.dtype)
    before, number = (slice(None),) * axis, 1
    for n in sizes:
        number *= n
    for k in range(number):
        rest, target, source = k, before, before
        for n, most, s, d in reversed(tuple(zip(sizes, counts, steps, dilations, strict=True))):
            rest, at = divmod(rest, n)
            first = at * d
            target = (*before, slice(first, first + (most - 1) * s + 1, s), *target[axis:])
            source = (*before, at, *source[axis:])
        total = total.at[target].add(x[source])
    return total
