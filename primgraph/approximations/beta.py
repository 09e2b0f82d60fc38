"""The beta function and ratios of gamma functions, in NumPy alone; as `gamma` has it."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.approximations.gamma import (
    gamma_chunk,
    gammaln_chunk,
    gammaln_drop,
    in_chunks,
    parity,
    stirling,
)


def poles_cancel(small: Any, large: Any) -> Any:
    """Whether gamma(small) and gamma(small + large) have poles, and gamma(large) has none."""
    whole = (small == np.rint(small)) & (large == np.rint(large))
    return whole & (small < 0.0) & (large > 0.0) & (small + large <= 0.0)


def betaln_chunk(a: Any, b: Any) -> Any:
    """log(abs(beta(a, b))); where the larger one is large, by Stirling's series."""
    small, large = np.minimum(a, b), np.maximum(a, b)
    both = poles_cancel(small, large)
    if both.any():
        # The ratio of gamma functions by reflection. DLMF 5.5.3.
        other = np.where(both, 1.0 - (small + large), small)
        small, large = np.minimum(other, large), np.maximum(other, large)
    result = gammaln_chunk(small) + (
        gammaln_chunk(large) - gammaln_chunk(small + large)
    )
    far = (large >= 8.5) & (small + large >= 8.5)
    if far.any():
        p, q = small[far], large[far]
        total = p + q
        both = np.maximum(p, 8.5)
        even = (
            (stirling(q) - stirling(total) + 0.5 * np.log1p(p / q))
            - (both * np.log1p(q / both) + q * np.log1p(both / q))
            + (0.9189385332046727 - 0.5 * np.log(both) + stirling(both))
        )
        found = np.where(p < 8.5, gammaln_chunk(p) + gammaln_drop(q, p), even)
        result[far] = np.where((total == np.inf) & (p > 0.0), -np.inf, found)
    result[(small == 0.0) & (large < np.inf)] = np.inf
    return result


def beta_chunk(a: Any, b: Any) -> Any:
    """gamma(a) gamma(b) / gamma(a + b), by the logarithm where these would overflow."""
    first, second = np.minimum(a, b), np.maximum(a, b)
    total = first + second
    # What the sum has lost to rounding, times the slope of the logarithm at large numbers.
    lost = (first - (total - second)) * (np.log(np.maximum(total, 1.0)))
    product = (
        gamma_chunk(second) / gamma_chunk(total) * gamma_chunk(first) * (1.0 - lost)
    )
    far = (np.abs(a) > 85.0) | (np.abs(b) > 85.0) | (np.abs(total) > 170.0)
    far |= (first == 0.0) | (second == 0.0)
    # Below zero the product has more digits, unless a factor of it overflows.
    lost = (product == 0.0) | ~np.isfinite(product)
    far &= (first >= 0.0) | (lost & (second != 0.0))
    if far.any():
        p, q = first[far], second[far]
        sign = gamma_sign(p) * gamma_sign(q) * gamma_sign(p + q)
        product[far] = sign * np.exp(betaln_chunk(p, q))
    result = product
    whole = first == np.rint(first)
    result[(total <= 0.0) & (total == np.rint(total)) & ~whole] = 0.0
    # At a pole of the numerator alone it is infinite; where two poles meet their ratio counts.
    result[(first < 0.0) & whole & ~np.isnan(second)] = np.inf
    both = poles_cancel(first, second)
    if both.any():
        result[both] = parity(second[both]) * np.exp(
            betaln_chunk(1.0 - total[both], second[both])
        )
    return result


def gamma_sign(x: Any) -> Any:
    """The sign of the gamma function; NaN at its poles below zero."""
    whole = np.floor(x)
    below = np.where(whole == x, np.nan, parity(whole))
    return np.where(x < 0.0, below, 1.0)


def is_pole(x: Any) -> Any:
    """Whether the gamma function has a pole at x."""
    return (x <= 0.0) & (x > -np.inf) & (x == np.floor(x))


def poch_chunk(z: Any, m: Any) -> Any:
    """gamma(z + m) / gamma(z), by logarithms; at poles 0, infinite, or their ratio."""
    end = z + m
    below, above = is_pole(z), is_pole(end)
    whole = m == np.rint(m)
    both = below & above & whole
    # The ratio of two poles by reflection.
    one, other = np.where(both, 1.0 - z, end), np.where(both, 1.0 - end, z)
    sign = np.where(both, parity(m), gamma_sign(end) * gamma_sign(z))
    far = (np.minimum(one, other) >= 8.5) & (np.maximum(one, other) < np.inf)
    drop = gammaln_drop(np.where(far, other, 9.0), np.where(far, m, 0.0))
    near = gammaln_chunk(one) - gammaln_chunk(other)
    result = sign * np.exp(np.where(far, -drop, near))
    result = np.where(below & ~both & (np.abs(m) < np.inf), 0.0, result)
    return np.where(above & ~below & (np.abs(z) < np.inf), np.inf, result)


def betaln(a: Any, b: Any, out: Any = None) -> Any:
    """The logarithm of the absolute value of the beta function."""
    return in_chunks(betaln_chunk, (a, b), out)


def beta(a: Any, b: Any, out: Any = None) -> Any:
    """The beta function."""
    return in_chunks(beta_chunk, (a, b), out)


def poch(z: Any, m: Any, out: Any = None) -> Any:
    """Pochhammer's symbol."""
    return in_chunks(poch_chunk, (z, m), out)
