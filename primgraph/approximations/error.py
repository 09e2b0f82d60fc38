"""Inverses, scaled forms and logarithms of the error function, in NumPy alone.

As in `gamma`, function texts are copied into standalone sources.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.approximations.gamma import (
    by_pieces,
    in_chunks,
    polynomial,
    unchanged,
)
from primgraph.approximations.quadrature import NODES, WEIGHTS


def erf_near_zero(x: Any) -> Any:
    """erf(x) / x - 1 for |x| < 0.84375."""
    square = x * x
    above = polynomial(
        square,
        1.28379167095512558561e-01,
        -3.25042107247001499370e-01,
        -2.84817495755985104766e-02,
        -5.77027029648944159157e-03,
        -2.37630166566501626084e-05,
    )
    below = polynomial(
        square,
        1.0,
        3.97917223959155352819e-01,
        6.50222499887672944485e-02,
        5.08130628187576562776e-03,
        1.32494738004321644526e-04,
        -3.96022827877536812320e-06,
    )
    return above / below


def erf_near_one(x: Any) -> Any:
    """erf(x) - 0.845062911510467529297 for 0.84375 <= x < 1.25."""
    shifted = x - 1.0
    above = polynomial(
        shifted,
        -2.36211856075265944077e-03,
        4.14856118683748331666e-01,
        -3.72207876035701323847e-01,
        3.18346619901161753674e-01,
        -1.10894694282396677476e-01,
        3.54783043256182359371e-02,
        -2.16637559486879084300e-03,
    )
    below = polynomial(
        shifted,
        1.0,
        1.06420880400844228286e-01,
        5.40397917702171048937e-01,
        7.18286544141962662868e-02,
        1.26171219808761642112e-01,
        1.36370839120290507362e-02,
        1.19844998467991074170e-02,
    )
    return above / below


def split_square(x: Any) -> Any:
    """Two terms whose sum is x*x; the first is exact, as the head of x has few bits."""
    head = x.astype(np.float32).astype(np.float64)
    return head * head, (x - head) * (x + head)


def erfc_tail(x: Any) -> Any:
    """erfc(x) for x >= 1.25, with its relative accuracy down to the smallest numbers."""
    inverse = 1.0 / (x * x)
    ratio = by_pieces(x < 1 / 0.35, erfc_ratio_left, erfc_ratio_right, inverse)
    square, rest = split_square(x)
    return np.exp(-square - 0.5625) * np.exp(ratio - rest) / x


def erfc_ratio_left(s: Any) -> Any:
    """log(x erfc(x)) + x^2 + 0.5625 for 1.25 <= x < 1 / 0.35, where s = 1 / x^2."""
    above = polynomial(
        s,
        -9.86494403484714822705e-03,
        -6.93858572707181764372e-01,
        -1.05586262253232909814e01,
        -6.23753324503260060396e01,
        -1.62396669462573470355e02,
        -1.84605092906711035994e02,
        -8.12874355063065934246e01,
        -9.81432934416914548592e00,
    )
    below = polynomial(
        s,
        1.0,
        1.96512716674392571292e01,
        1.37657754143519042600e02,
        4.34565877475229228821e02,
        6.45387271733267880336e02,
        4.29008140027567833386e02,
        1.08635005541779435134e02,
        6.57024977031928170135e00,
        -6.04244152148580987438e-02,
    )
    return above / below


def erfc_ratio_right(s: Any) -> Any:
    """log(x erfc(x)) + x^2 + 0.5625 for x >= 1 / 0.35, where s = 1 / x^2."""
    above = polynomial(
        s,
        -9.86494292470009928597e-03,
        -7.99283237680523006574e-01,
        -1.77579549177547519889e01,
        -1.60636384855821916062e02,
        -6.37566443368389627722e02,
        -1.02509513161107724954e03,
        -4.83519191608651397019e02,
    )
    below = polynomial(
        s,
        1.0,
        3.03380607434824582924e01,
        3.25792512996573918826e02,
        1.53672958608443695994e03,
        3.19985821950859553908e03,
        2.55305040643316442583e03,
        4.74528541206955367215e02,
        -2.24409524465858183362e01,
    )
    return above / below


def rational_erf(wide: Any) -> Any:
    """The error function, slowly, by the rational approximations of FDLIBM's s_erf.c.

    Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved. Developed at SunPro, a Sun
    Microsystems, Inc. business. Permission to use, copy, modify, and distribute this software is
    freely granted, provided that this notice is preserved.
    """
    size = np.abs(wide)
    result = np.copysign(1.0, wide)
    near = size < 0.84375
    part = wide[near]
    result[near] = part + part * erf_near_zero(part)
    middle = (size >= 0.84375) & (size < 1.25)
    part = size[middle]
    result[middle] *= 8.45062911510467529297e-01 + erf_near_one(part)
    far = (size >= 1.25) & (size < 6.0)
    result[far] *= 1.0 - erfc_tail(size[far])
    return result


def rational_erfc(wide: Any) -> Any:
    """1 - erf(x) without cancellation, slowly, by the rational approximations of FDLIBM's s_erf.c.

    Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved. Developed at SunPro, a Sun
    Microsystems, Inc. business. Permission to use, copy, modify, and distribute this software is
    freely granted, provided that this notice is preserved.
    """
    size = np.abs(wide)
    result = np.where(wide < 0, 2.0, 0.0)
    near = size < 0.84375
    part = wide[near]
    rest = part * erf_near_zero(part)
    small = part < 0.25
    result[near] = np.where(small, 1.0 - (part + rest), 0.5 - (rest + (part - 0.5)))
    middle = (size >= 0.84375) & (size < 1.25)
    rest = erf_near_one(size[middle])
    result[middle] = np.where(
        wide[middle] < 0,
        1.0 + (8.45062911510467529297e-01 + rest),
        1.0 - 8.45062911510467529297e-01 - rest,
    )
    far = (size >= 1.25) & (size < 28.0)
    rest = erfc_tail(size[far])
    result[far] = np.where(wide[far] < 0, 2.0 - rest, rest)
    return result


# The error functions and their slope at steps of 1/256, from -6 to 6; -0.0 is among these.
PLACES = -np.arange(1536.0, -1537.0, -1.0) / 256.0
SLOPES = 1.1283791670955126 * np.exp(-PLACES * PLACES)
ERF_VALUES = rational_erf(PLACES)
ERFC_VALUES = rational_erfc(PLACES)


def beside_places(x: Any, values: Any, slopes: Any) -> Any:
    """An error function of float64, clipped to -6 and 6, from that at the nearest place.

    Between a place p and p + h the slope is the one at p times exp(-2 p t - t*t). With y for
    -p h - h*h/2 its integral is h exp(y) (1 + v/6 + (v*v + h**4)/120) to the last digit, where v
    is y*y + h*h.
    """
    h = np.clip(x, -6.0, 6.0)
    place = h * 256.0
    np.rint(place, place)
    place += 1536.0
    with np.errstate(invalid="ignore"):
        index = place.astype(np.intp)
    # A difference of equal numbers is 0.0: less that, a zero keeps its sign.
    place -= 1536.0
    place *= 1 / 256
    h -= place
    y = place
    y *= h
    square = h * h
    y += 0.5 * square
    grown = np.exp(-y)
    y *= y
    y += square
    square *= square
    square *= 1 / 120
    total = y * (1 / 120)
    total += 1 / 6
    total *= y
    total += square
    total += 1.0
    total *= grown
    total *= h
    total *= slopes.take(index, mode="clip")
    total += values.take(index, mode="clip")
    return total


def beside_places_in_single(x: Any, values: Any, slopes: Any) -> Any:
    """The same of float32, by a polynomial of second degree; the sum is of float64."""
    h = np.clip(x, np.float32(-6.0), np.float32(6.0))
    place = h * np.float32(256.0)
    np.rint(place, place)
    place += np.float32(1536.0)
    with np.errstate(invalid="ignore"):
        index = place.astype(np.intp)
    place -= np.float32(1536.0)
    place *= np.float32(1 / 256)
    h -= place
    y = place
    y *= h
    bend = y * np.float32(2 / 3)
    bend -= np.float32(1.0)
    bend *= y
    np.multiply(h, h, y)
    y *= np.float32(1 / 3)
    bend -= y
    bend *= h
    total = h.astype(np.float64)
    total += bend
    total *= slopes.take(index, mode="clip")
    total += values.take(index, mode="clip")
    return total


def erf_chunk(x: Any) -> Any:
    """The error function of float64 or float32."""
    near = beside_places if x.dtype == np.float64 else beside_places_in_single
    return near(x, ERF_VALUES, SLOPES)


def erfc_chunk(x: Any) -> Any:
    """1 - erf(x) of float64 or float32, with its relative accuracy down to the smallest numbers."""
    near = beside_places if x.dtype == np.float64 else beside_places_in_single
    result = near(x, ERFC_VALUES, -SLOPES)
    far = x > 6.0
    if far.any():
        part = x[far].astype(np.float64)
        tail = erfc_tail(np.minimum(part, 28.0))
        result[far] = np.where(part < 28.0, tail, 0.0)
    return result


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


def erfcx_reflected(x: Any, result: Any) -> Any:
    """exp(x*x) erfc(x) for x < 0 from that of -x."""
    square, rest = split_square(x)
    found = 2.0 * (np.exp(square) * np.exp(rest)) - result
    return np.where(x < -27.0, np.inf, found)


def erfcx_value(x: Any) -> Any:
    """exp(x*x) erfc(x)."""
    result = erfcx_above_zero(np.abs(x))
    return by_pieces(x < 0.0, erfcx_reflected, unchanged, x, result)


def erfcx_chunk(x: Any, n: int) -> Any:
    """Derivative `n` of exp(x*x) erfc(x), without its sign if that is negative."""
    return erfcx_derivative(x, n) if n else erfcx_value(x)


def erfcx_derivative(x: Any, n: int) -> Any:
    """Derivative `n` of exp(x*x) erfc(x), without its sign if that is negative.

    It is 2 / sqrt(pi) times the integral of (2 t)**n exp(-t*t - 2 x t) over t > 0.
    """
    room = 42.0 + 5.0 * n
    right, shift = np.maximum(x, 0.0), np.minimum(x, 0.0)
    start = np.maximum(shift, -np.sqrt(room))
    end = np.where(
        x > 0.0, room / (right + np.sqrt(right * right + room)), np.sqrt(room)
    )
    length = end - start
    v = start[:, None] + length[:, None] * NODES
    integrand = (
        np.exp(-v * (v + 2.0 * right[:, None])) * (2.0 * (v - shift[:, None])) ** n
    )
    found = length * (np.exp(shift * shift) * np.sum(WEIGHTS * integrand, axis=1))
    return np.where(x == np.inf, 0.0, 1.1283791670955126 * found)


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


def erfinv_far(x: Any) -> Any:
    """The inverse of erf for |x| > 1/2."""
    tail = erfcinv_tail(1.0 - np.abs(x))
    return np.where(x < 0.0, -tail, tail)


def erfinv_chunk(x: Any) -> Any:
    """The inverse of erf, from -1 to 1."""
    return by_pieces(np.abs(x) > 0.5, erfinv_far, erfinv_near_zero, x)


def erfcinv_near_one(x: Any) -> Any:
    """The inverse of erfc for 1/2 <= x <= 3/2."""
    return erfinv_near_zero(1.0 - x)


def erfcinv_far(x: Any) -> Any:
    """The inverse of erfc for x < 1/2 and x > 3/2."""
    tail = erfcinv_tail(np.minimum(x, 2.0 - x))
    return np.where(x > 1.0, -tail, tail)


def erfcinv_chunk(x: Any) -> Any:
    """The inverse of erfc, from 0 to 2."""
    return by_pieces(np.abs(1.0 - x) > 0.5, erfcinv_far, erfcinv_near_one, x)


def log_ndtr_left(x: Any) -> Any:
    """The logarithm of the normal distribution function for x < -1."""
    scaled = 0.5 * erfcx_above_zero(x * -0.7071067811865476)
    return np.log(scaled) - 0.5 * x * x


def log_ndtr_right(x: Any) -> Any:
    """The logarithm of the normal distribution function for x >= -1."""
    scaled = 0.5 * erfcx_above_zero(np.abs(x) * 0.7071067811865476)
    square, rest = split_square(np.minimum(x, 40.0))
    small = scaled * (np.exp(-0.5 * square) * np.exp(-0.5 * rest))
    return np.log1p(-np.where(x < 0.0, 1.0 - small, small))


def log_ndtr_chunk(x: Any) -> Any:
    """The logarithm of the normal distribution function, with all its digits in both tails."""
    return by_pieces(x < -1.0, log_ndtr_left, log_ndtr_right, x)


def erfcx(x: Any, n: int, out: Any = None) -> Any:
    """Derivative `n` of exp(x*x) erfc(x), without its sign."""
    return in_chunks(lambda part: erfcx_chunk(part, n), (x,), out, 256 if n else 0)


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
    return np.multiply(x, np.log(np.where((x == 0) & (y == y), 1, y)), out)


def xlog1py(x: Any, y: Any, out: Any = None) -> Any:
    """x log(1 + y), and 0 where x is 0 and y a number."""
    return np.multiply(x, np.log1p(np.where((x == 0) & (y == y), 0, y)), out)


def logit_near_half(x: Any) -> Any:
    """log(x / (1 - x)) for 1/4 < x < 3/4, with all its digits near 1/2, too."""
    return np.log1p((2.0 * x - 1.0) / (1.0 - x))


def logit_far(x: Any) -> Any:
    """log(x / (1 - x)) elsewhere."""
    return np.log(x / (1.0 - x))


def logit_chunk(x: Any) -> Any:
    """log(x / (1 - x)), the inverse of the logistic function."""
    near = np.abs(2.0 * x - 1.0) < 0.5
    return by_pieces(near, logit_near_half, logit_far, x)


def logit(x: Any, out: Any = None) -> Any:
    """The inverse of the logistic function."""
    return in_chunks(logit_chunk, (x,), out)


def erf(x: Any, out: Any = None) -> Any:
    """The error function."""
    return in_chunks(erf_chunk, (x,), out, wide=False)


def erfc(x: Any, out: Any = None) -> Any:
    """1 - erf(x) without cancellation."""
    return in_chunks(erfc_chunk, (x,), out, wide=False)
