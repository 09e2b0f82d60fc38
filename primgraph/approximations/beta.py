"""Quotients of gamma functions, in NumPy alone; see `gamma`."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.approximations.gamma import (
    gamma_chunk,
    gammaln_above_zero,
    gammaln_chunk,
    in_chunks,
    less_logarithm,
    stirling,
)


def poles_cancel(small: Any, large: Any) -> Any:
    """Where gamma(small) and gamma(small + large) have poles, and gamma(large) has none."""
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
    far = (large >= 8.5) & (small > 0.0)
    if far.any():
        p, q = small[far], large[far]
        total = p + q
        rest = stirling(q) - stirling(total) + 0.5 * np.log1p(p / q)
        both = np.maximum(p, 8.5)
        even = (
            -both * np.log1p(q / both)
            - q * np.log1p(both / q)
            + (0.9189385332046727 - 0.5 * np.log(both) + stirling(both))
        )
        uneven = gammaln_above_zero(p) + q * less_logarithm(p / q) - p * np.log(total)
        found = rest + np.where(p < 8.5, uneven, even)
        result[far] = np.where(total == np.inf, -np.inf, found)
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
    result = np.where(
        far & (first >= 0.0), np.exp(betaln_chunk(first, second)), product
    )
    whole = first == np.rint(first)
    result[(total <= 0.0) & (total == np.rint(total)) & ~whole] = 0.0
    # At a pole of the numerator alone it is infinite; where two poles meet their ratio counts.
    result[(first < 0.0) & whole & ~np.isnan(second)] = np.inf
    both = poles_cancel(first, second)
    if both.any():
        even = np.where(second[both] % 2.0 == 0.0, 1.0, -1.0)
        result[both] = even * np.exp(betaln_chunk(1.0 - total[both], second[both]))
    return result


def gamma_sign(x: Any) -> Any:
    """The sign of the gamma function; NaN at its poles below zero."""
    whole = np.floor(x)
    below = np.where(whole == x, np.nan, 1.0 - 2.0 * (whole % 2.0))
    return np.where(x < 0.0, below, 1.0)


def poch_chunk(z: Any, m: Any) -> Any:
    """gamma(z + m) / gamma(z), by logarithms; at poles 0, infinite, or their ratio."""
    end = z + m
    result = np.exp(gammaln_chunk(end) - gammaln_chunk(z))
    result *= gamma_sign(end) * gamma_sign(z)
    below, above = ((x <= 0.0) & (x > -np.inf) & (x == np.floor(x)) for x in (z, end))
    if below.any() or above.any():
        result[below & ~above & (np.abs(m) < np.inf)] = 0.0
        result[above & ~below & (np.abs(z) < np.inf)] = np.inf
        both = below & above
        odd = np.where(m[both] % 2.0 == 0.0, 1.0, -1.0)
        logarithm = gammaln_chunk(1.0 - z[both]) - gammaln_chunk(1.0 - end[both])
        result[both] = odd * np.exp(logarithm)
    return result


def betaln(a: Any, b: Any, out: Any = None) -> Any:
    """The logarithm of the absolute value of the beta function."""
    return in_chunks(betaln_chunk, (a, b), out)


def beta(a: Any, b: Any, out: Any = None) -> Any:
    """The beta function."""
    return in_chunks(beta_chunk, (a, b), out)


def poch(z: Any, m: Any, out: Any = None) -> Any:
    """Pochhammer's symbol."""
    return in_chunks(poch_chunk, (z, m), out)
