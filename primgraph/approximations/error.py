"""The error function's inverses, scaled forms and logarithms, in NumPy alone.

As in `gamma`, texts of functions are copied into sources that stand alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.approximations.gamma import in_chunks, polynomial
from primgraph.approximations.quadrature import NODES, WEIGHTS


def erfcx_above_zero(x: Any) -> Any:
    """exp(x*x) erfc(x) for x >= 0."""
    near = np.minimum(x, 1e8)
    # (1 + 2 x) erfcx(x), as a function of what lies between -1 and 1.
    scaled = polynomial(
        (near - 3.0) / (near + 3.0),
        1.2530080582697296,
        -0.1356211061245812,
        -0.04756229435344912,
        0.12964515870276316,
        -0.11927366341538978,
        0.06830802734389313,
        -0.023770514917107986,
        0.0025293918173706497,
        0.0018886903443894542,
        -0.0007798322831260387,
        -0.00010515971612176149,
        0.00012509940933306624,
        4.949184182276066e-06,
        -2.010075903780886e-05,
        -7.307985940695724e-07,
        3.4728430145951554e-06,
        3.5571413343395913e-07,
        -6.172971639709339e-07,
        -1.4042772727671948e-07,
        1.0252159854733823e-07,
        4.1031674722876435e-08,
        -1.3744637271614611e-08,
        -8.205287217548862e-09,
        1.1435382719942424e-09,
        8.373239801913565e-10,
        -2.5208846559132343e-11,
    )
    return np.where(x > 1e8, 0.5641895835477563 / x, scaled / (1.0 + 2.0 * near))


def erfcx_chunk(x: Any, n: int) -> Any:
    """Derivative `n` of exp(x*x) erfc(x), without its sign if that is negative.

    It is 2 / sqrt(pi) times the integral of (2 t)**n exp(-t*t - 2 x t) over t > 0.
    """
    if n == 0:
        result = erfcx_above_zero(np.abs(x))
        below = x < 0.0
        if below.any():
            part = x[below]
            # The head has so few bits that its square is exact.
            head = part.astype(np.float32).astype(np.float64)
            square = np.exp(head * head) * np.exp((part - head) * (part + head))
            result[below] = np.where(part < -27.0, np.inf, 2.0 * square - result[below])
        return result
    room = 42.0 + 5.0 * n
    right = np.maximum(x, 0.0)
    shift = np.minimum(x, 0.0)
    start = np.maximum(shift, -np.sqrt(room))
    end = np.where(x > 0.0, room / (right + np.sqrt(right * right + room)), np.sqrt(room))
    length = end - start
    v = start[:, None] + length[:, None] * NODES
    integrand = np.exp(-v * (v + 2.0 * right[:, None])) * (2.0 * (v - shift[:, None])) ** n
    factor = 1.1283791670955126 * np.exp(shift * shift)
    found = length * (factor * np.sum(WEIGHTS * integrand, axis=1))
    return np.where(x == np.inf, 0.0, found)


def erfinv_near_zero(x: Any) -> Any:
    """The inverse of erf for |x| <= 1/2."""
    ratio = polynomial(
        x * x,
        0.886226925452758,
        0.23201366653465907,
        0.1275561753044084,
        0.08655212936268364,
        0.06495961132717862,
        0.05173148498700455,
        0.04283257848216029,
        0.036522988083142235,
        0.031145242581392795,
        0.03159332043387681,
        0.008446011583790524,
        0.0734502053961959,
        -0.07607360776461179,
        0.11314166859237805,
    )
    return x * ratio


def erfcinv_tail(p: Any) -> Any:
    """The inverse of erfc for 0 <= p <= 1/2: a first guess, and one step of Halley's method."""
    logarithm = np.log(p)
    root = np.sqrt(-logarithm)
    y = root * polynomial(
        1.0 / (1.0 + root),
        1.0001602072667735,
        -0.019698263327909596,
        -1.7640967289938658,
        3.6271255211978706,
        -18.03215028939699,
        55.201796537872745,
        -115.35501710955468,
        158.42740450314705,
        -121.88515033133058,
        39.328678932566916,
    )
    scaled = erfcx_above_zero(y)
    # Of this the derivative is `slope`, and the second one slope (slope - 2 y).
    excess = y * y - np.log(scaled) + logarithm
    slope = 1.1283791670955126 / scaled
    found = y - 2.0 * excess / (2.0 * slope - excess * (slope - 2.0 * y))
    return np.where(p == 0.0, np.inf, found)


def erfinv_chunk(x: Any) -> Any:
    """The inverse of erf, from -1 to 1."""
    result = erfinv_near_zero(np.clip(x, -0.5, 0.5))
    far = np.abs(x) > 0.5
    part = x[far]
    result[far] = np.copysign(erfcinv_tail(1.0 - np.abs(part)), part)
    result[np.abs(x) > 1.0] = np.nan
    return result


def erfcinv_chunk(x: Any) -> Any:
    """The inverse of erfc, from 0 to 2."""
    result = erfinv_near_zero(np.clip(1.0 - x, -0.5, 0.5))
    far = np.abs(1.0 - x) > 0.5
    part = x[far]
    result[far] = np.copysign(erfcinv_tail(np.minimum(part, 2.0 - part)), 1.0 - part)
    result[(x < 0.0) | (x > 2.0)] = np.nan
    return result


def log_ndtr_chunk(x: Any) -> Any:
    """The logarithm of the normal distribution function, with all its digits in both tails."""
    y = np.abs(x) * 0.7071067811865476
    scaled = 0.5 * erfcx_above_zero(y)
    small = scaled * np.exp(-0.5 * x * x)
    above = np.log1p(-np.where(x < 0.0, 1.0 - small, small))
    return np.where(x < -1.0, np.log(scaled) - 0.5 * x * x, above)


def erfcx(x: Any, n: int, out: Any = None) -> Any:
    """Derivative `n` of exp(x*x) erfc(x), without its sign."""
    size = 8192 if n == 0 else 256
    return in_chunks(lambda part: erfcx_chunk(part, n), (x,), out, size)


def erfinv(x: Any, out: Any = None) -> Any:
    """The inverse of the error function."""
    return in_chunks(erfinv_chunk, (x,), out)


def erfcinv(x: Any, out: Any = None) -> Any:
    """The inverse of the complementary error function."""
    return in_chunks(erfcinv_chunk, (x,), out)


def log_ndtr(x: Any, out: Any = None) -> Any:
    """The logarithm of the normal distribution function."""
    return in_chunks(log_ndtr_chunk, (x,), out)


def xlogy(x: Any, y: Any, out: Any = None) -> Any:
    """x log(y), and 0 where x is 0 and y a number."""
    return np.multiply(x, np.log(np.where((x == 0) & (y == y), np.ones_like(y), y)), out)


def xlog1py(x: Any, y: Any, out: Any = None) -> Any:
    """x log(1 + y), and 0 where x is 0 and y a number."""
    return np.multiply(x, np.log1p(np.where((x == 0) & (y == y), np.zeros_like(y), y)), out)


def logit_chunk(x: Any) -> Any:
    """log(x / (1 - x)), with all its digits near 1/2, too."""
    twice = 2.0 * x - 1.0
    rest = 1.0 - x
    near = np.abs(twice) < 0.5
    return np.where(near, np.log1p(np.where(near, twice, 0.0) / rest), np.log(x / rest))


def logit(x: Any, out: Any = None) -> Any:
    """The inverse of the logistic function."""
    return in_chunks(logit_chunk, (x,), out)
