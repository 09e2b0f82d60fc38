"""Random numbers of NumPy's generator Philox, and divisors, by arithmetic of integers.

J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011: Philox 4x64-10.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import primgraph.numpy as pnp
from primgraph.control.loops import scan, while_loop
from primgraph.interop.compositions.table import composition
from primgraph.primitives import bits, constants

_FACTORS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
_STEPS = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B
_ROUNDS = 10


def _high_product(x: Any, y: int) -> Any:
    """Return the upper 64 bits of the products of unsigned numbers of 64 bits."""
    half, low = np.uint64(32), np.uint64(2**32 - 1)
    x0, x1, y0, y1 = x & low, x >> half, np.uint64(y % 2**32), np.uint64(y >> 32)
    middle = x1 * y0 + (x0 * y0 >> half)
    return x1 * y1 + (middle >> half) + ((x0 * y1 + (middle & low)) >> half)


def _draws(key: Any, shape: Any) -> Any:
    """Return numbers in [0, 1) for each key, as NumPy's generators draw them."""
    count: Any = 1
    for extent in shape:
        count = count * extent
    blocks = (pnp.arange((count + 3) // 4) + 1).astype(np.uint64)
    first = pnp.broadcast_to(blocks, (*key.shape, blocks.shape[0]))
    zeros = pnp.zeros(first.shape, np.uint64)

    def mix(state: Any, keys: Any) -> tuple[Any, None]:
        (a, b, c, d), (own, other) = state, keys
        return (
            _high_product(c, _FACTORS[1]) ^ b ^ own,
            c * np.uint64(_FACTORS[1]),
            _high_product(a, _FACTORS[0]) ^ d ^ other,
            a * np.uint64(_FACTORS[0]),
        ), None

    own, other = [np.arange(_ROUNDS, dtype=np.uint64) * np.uint64(n) for n in _STEPS]
    whole = key.astype(np.uint64)[..., None]
    keys = whole + own.reshape((_ROUNDS, *[1] * (key.ndim + 1)))
    a, b, c, d = scan(mix, (first, zeros, zeros, zeros), (keys, other))[0]
    words = pnp.stack([a, b, c, d], -1).reshape((*key.shape, -1))[..., :count]
    numbers = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return numbers.reshape((*key.shape, *shape))


@composition(constants.random_uniform)
def _random_uniform(key: Any, *, shape: Any, dtype: Any, low: float, high: float) -> Any:
    draws = (_draws(key, shape) * (high - low) + low).astype(dtype)
    return pnp.minimum(draws, np.nextafter(dtype.type(high), dtype.type(low)))


@composition(constants.random_bernoulli)
def _random_bernoulli(key: Any, *, shape: Any, p: float) -> Any:
    return _draws(key, shape) < p


@composition(bits.gcd)
def _gcd(x: Any, y: Any) -> Any:
    """Divide by the last remainder, by Euclid's algorithm, until all are zero."""

    def divide(state: tuple[Any, Any]) -> tuple[Any, Any]:
        a, b = state
        rest = pnp.where(b == 0, 0, a % pnp.where(b == 0, 1, b)).astype(a.dtype)
        return pnp.where(b == 0, a, b), rest

    return while_loop(lambda s: pnp.any(s[1] != 0), divide, (pnp.abs(x), pnp.abs(y)))[0]
