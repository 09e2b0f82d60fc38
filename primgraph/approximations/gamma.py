"""The gamma function and related functions, in NumPy alone, for primitives and generated code.

The text of each function is copied into standalone sources. So it uses only `np`, other functions
and constants of such files, and few Python builtins. C is emitted from the graphs of the scalar
functions (see `primitives.special_functions.formulas`), which are recorded by calling them. These
use ufuncs, `np.where` where both sides are cheap, and `by_pieces` elsewhere: NumPy calls each piece
with its own elements, C calls one of them. Polynomials are Chebyshev interpolants of the functions
named, computed with forty digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# How many elements `in_chunks` works on at a time: these fit a cache.
CHUNK = 8192


def polynomial(x: Any, *coefficients: float) -> Any:
    """The polynomial with these coefficients, constant term first, by Horner's rule."""
    total = coefficients[-1] * x
    total += coefficients[-2]
    for coefficient in coefficients[-3::-1]:
        total *= x
        total += coefficient
    return total


def in_chunks(
    function: Any, xs: Any, out: Any = None, size: int = 0, wide: bool = True
) -> Any:
    """Apply `function` to arrays, `size` elements at a time, or as many as fit a cache.

    It takes float64; without `wide` float32 for float32 and float16. The result is written into
    `out`, which may be one of the arrays itself or larger than they are, or into a new array.
    """
    size = size or CHUNK
    xs = [np.asarray(x) for x in xs]
    shape, dtype = xs[0].shape, xs[0].dtype
    inner = np.float64 if wide or dtype == np.float64 else np.float32
    direct = out is not None and out.shape == shape and out.flags.c_contiguous
    result = out if direct else np.empty(shape, dtype)
    flat, into = [x.reshape(-1) for x in xs], result.reshape(-1)
    for i in range(0, into.size, size):
        parts = [np.asarray(x[i : i + size], inner) for x in flat]
        into[i : i + size] = function(*parts)
    if out is None or direct:
        return result
    out[...] = result
    return out


def by_pieces(first: Any, one: Any, other: Any, *xs: Any) -> Any:
    """one(*xs) where `first` is true, other(*xs) elsewhere, each with its own elements."""
    places = np.flatnonzero(first)
    if places.size == 0 or places.size == first.size:
        return one(*xs) if places.size else other(*xs)
    rest = np.flatnonzero(~first)
    result = np.empty_like(xs[0])
    result[places] = one(*[x[places] for x in xs])
    result[rest] = other(*[x[rest] for x in xs])
    return result


def unchanged(x: Any, result: Any) -> Any:
    """The result, of which `by_pieces` changes other elements."""
    return result


def stirling(x: Any) -> Any:
    """log(gamma(x)) - (x - 1/2) log(x) + x - log(2 pi)/2 for x >= 8.5. DLMF 5.11.1."""
    inverse = 1.0 / x
    series = polynomial(
        inverse * inverse,
        1 / 12,
        -1 / 360,
        1 / 1260,
        -1 / 1680,
        1 / 1188,
        -691 / 360360,
        1 / 156,
        -3617 / 122400,
        43867 / 244188,
    )
    return inverse * series


def parity(whole: Any) -> Any:
    """1 for even numbers, -1 for odd ones."""
    return 1.0 - 2.0 * (whole - 2.0 * np.floor(0.5 * whole))


def distance_to_two(x: Any) -> Any:
    """The distance `t` of 0 <= x < 8.5 to a whole number, `f` and whether gamma falls.

    gamma(x) is f gamma(2 + t), or gamma(2 + t) / f where it is smaller than that.
    """
    whole = np.rint(x)
    factor = np.where(whole == 1.0, x, 1.0)
    factor = np.where(whole == 0.0, x * (x + 1.0), factor)
    for k in range(1, 7):
        factor *= np.where(whole > k + 1, x - k, 1.0)
    return x - whole, factor, whole < 2.0


def gammaln_near_two(x: Any) -> Any:
    """log(gamma(x)) for 0 <= x < 8.5."""
    t, factor, falls = distance_to_two(x)
    logarithm = np.log(factor)
    # log(gamma(2 + t)) / t
    quotient = polynomial(
        t,
        0.42278433509846713,
        0.3224670334241132,
        -0.06735230105319563,
        0.02058080842778338,
        -0.007385551028935545,
        0.002890510330865901,
        -0.0011927539009983087,
        0.0005096695196526673,
        -0.00022315497746292723,
        9.945761692157133e-05,
        -4.4923727564247656e-05,
        2.050601970174762e-05,
        -9.45628851510172e-06,
        4.3828545383846665e-06,
        -1.9743106888421067e-06,
        9.242852225162277e-07,
        -5.811277768921246e-07,
        2.7475390051909663e-07,
    )
    return t * quotient + np.where(falls, -logarithm, logarithm)


def gammaln_far(x: Any) -> Any:
    """log(gamma(x)) for x >= 8.5."""
    return (x - 0.5) * (np.log(x) - 1.0) + (0.4189385332046727 + stirling(x))


def gammaln_above_zero(x: Any) -> Any:
    """log(gamma(x)) for x >= 0."""
    return by_pieces(x < 8.5, gammaln_near_two, gammaln_far, x)


def gammaln_reflected(x: Any, result: Any) -> Any:
    """log(abs(gamma(x))) for x < 0 from that of -x. DLMF 5.5.3."""
    size = -x
    sine = np.abs(np.sin(np.pi * (size - np.rint(size))))
    reflected = 1.1447298858494002 - np.log(size * sine) - result
    return np.where(size == np.inf, -np.inf, reflected)


def gammaln_chunk(x: Any) -> Any:
    """log(abs(gamma(x)))."""
    result = gammaln_above_zero(np.abs(x))
    return by_pieces(x < 0.0, gammaln_reflected, unchanged, x, result)


def gamma_near_two(x: Any) -> Any:
    """gamma(x) for 0 <= x < 8.5."""
    t, factor, falls = distance_to_two(x)
    # gamma(2 + t)
    value = polynomial(
        t,
        1.0,
        0.4227843350984671,
        0.41184033042639173,
        0.08157691924711025,
        0.0742490107586179,
        -0.00026698207129733937,
        0.011154045509310614,
        -0.002852645716731871,
        0.002103937610469369,
        -0.0009195759739844205,
        0.0004903395755189122,
        -0.0002409169950366213,
        0.00012200059419124122,
        -6.095630515446432e-05,
        2.9194145041417985e-05,
        -1.4605147247966914e-05,
        1.0167926427102734e-05,
        -5.085355881064242e-06,
    )
    return np.where(falls, value / factor, value * factor)


def gamma_factors(x: Any) -> Any:
    """Two factors of gamma(x) for x >= 8.5, neither of which overflows below x = 200."""
    large = np.minimum(x, 200.0)
    second = large ** (0.5 * large - 0.25)
    first = second * np.exp(-large) * (2.5066282746310007 * np.exp(stirling(large)))
    return first, second


def gamma_far(x: Any) -> Any:
    """gamma(x) for x >= 8.5."""
    first, second = gamma_factors(x)
    return first * second


def gamma_above_zero(x: Any) -> Any:
    """gamma(x) for x >= 0, with the sign of a zero."""
    return by_pieces(x < 8.5, gamma_near_two, gamma_far, x)


def gamma_quotient(size: Any) -> Any:
    """pi / sin(pi x) / size for x = -size, NaN at poles of gamma. DLMF 5.5.3."""
    whole = np.rint(size)
    sine = -parity(whole) * np.sin(np.pi * (size - whole))
    return np.where(sine == 0.0, np.nan, np.pi / (size * sine))


def gamma_reflected_near(x: Any) -> Any:
    """gamma(x) for -8.5 < x < 0 by reflection."""
    return gamma_quotient(-x) / gamma_near_two(-x)


def gamma_reflected_far(x: Any) -> Any:
    """gamma(x) for x <= -8.5 by reflection."""
    first, second = gamma_factors(-x)
    return gamma_quotient(-x) / first / second


def gamma_below_zero(x: Any) -> Any:
    """gamma(x) for x < 0, NaN at its poles."""
    return by_pieces(x > -8.5, gamma_reflected_near, gamma_reflected_far, x)


def gamma_chunk(x: Any) -> Any:
    """The gamma function."""
    return by_pieces(x < 0.0, gamma_below_zero, gamma_above_zero, x)


def digamma_near(x: Any) -> Any:
    """The derivative of log(gamma(x)) for 0 <= x < 10. DLMF 5.5.2."""
    whole = np.floor(x)
    base = x - (whole - 1.0)
    # digamma(base) / (base - root), where 1 <= base < 2 and the root is the sum of two numbers.
    quotient = polynomial(
        base - 1.5,
        0.951055876031833,
        -0.4236274212814605,
        0.2405424842407742,
        -0.14840492305390884,
        0.09498872445494122,
        -0.061922133273064534,
        0.04076083381242074,
        -0.02697579675613825,
        0.0179072524394512,
        -0.011908218001568644,
        0.007926944646403797,
        -0.005279964873257405,
        0.003519006401502276,
        -0.002345267632540769,
        0.0015566317474486838,
        -0.0010376374098418604,
        0.0007233266279287554,
        -0.0004821990530566789,
        0.0002272331660987376,
        -0.00015148586836773365,
        0.00025968482126430747,
        -0.00017312261802727394,
    )
    steps = np.where(whole == 0.0, -1.0 / x, 0.0)
    for k in range(1, 9):
        steps += np.where(whole > k, 1.0 / (x - k), 0.0)
    return (base - 1.4616321449683622 - 9.549995429965697e-17) * quotient + steps


def digamma_far(x: Any) -> Any:
    """The derivative of log(gamma(x)) for x >= 10. DLMF 5.11.2."""
    inverse = 1.0 / x
    square = inverse * inverse
    series = polynomial(
        square,
        1 / 12,
        -1 / 120,
        1 / 252,
        -1 / 240,
        1 / 132,
        -691 / 32760,
        1 / 12,
        -3617 / 8160,
    )
    return np.log(x) - 0.5 * inverse - square * series


def digamma_above_zero(x: Any) -> Any:
    """The derivative of log(gamma(x)) for x >= 0."""
    return by_pieces(x < 10.0, digamma_near, digamma_far, x)


def digamma_reflected(x: Any, result: Any) -> Any:
    """The derivative of log(gamma(x)) for x < 0 from that of 1 - x, NaN at its poles."""
    tangent = np.tan(np.pi * (x - np.rint(x)))
    return np.where(tangent == 0.0, np.nan, result - np.pi / tangent)


def digamma_chunk(x: Any) -> Any:
    """The derivative of log(gamma(x))."""
    below = x < 0.0
    result = digamma_above_zero(np.where(below, 1.0 - x, x))
    return by_pieces(below, digamma_reflected, unchanged, x, result)


def zeta_above_zero(s: Any, x: Any, steps: int) -> Any:
    """The sum of (x + k)**-s over all k >= 0, for x > 0: `steps` of them, and Euler-Maclaurin."""
    total = np.zeros_like(x)
    for k in range(steps):
        total += (x + k) ** -s
    end = x + float(steps)
    power = end**-s
    total += end ** (1.0 - s) / (s - 1.0) + 0.5 * power
    square = 1.0 / (end * end)
    term = power * (s / end)
    # Bernoulli's numbers over factorials.
    for k, number in enumerate(
        (
            1 / 12,
            -1 / 720,
            1 / 30240,
            -1 / 1209600,
            1 / 47900160,
            -691 / 1307674368000,
            1 / 74724249600,
            -3617 / 10670622842880000,
            43867 / 5109094217170944000,
            -174611 / 802857662698291200000,
        )
    ):
        total += number * term
        term = term * ((s + (2 * k + 1)) * (s + (2 * k + 2)) * square)
    return total


def polygamma_chunk(x: Any, n: int) -> Any:
    """Derivative `n` of the digamma function; below zero by reflection. DLMF 5.15.1 and 5.15.6."""
    if n == 0:
        return digamma_chunk(x)
    factorial = np.prod(np.arange(1.0, n + 1.0))
    sign = -1.0 if n % 2 == 0 else 1.0
    below = x < 0.0
    positive = np.where(below, 1.0 - x, np.abs(x))
    result = sign * factorial * zeta_above_zero(n + 1.0, positive, 10 + n)
    result[x == np.inf] = 0.0
    if below.any():
        # Derivatives of the cotangent are polynomials of it: p(c)' is -(1 + c*c) p'(c).
        powers = np.array([0.0, 1.0])
        for _ in range(n):
            powers = -np.convolve(
                np.polynomial.polynomial.polyder(powers), [1.0, 0.0, 1.0]
            )
        tangent = np.tan(np.pi * (x[below] - np.rint(x[below])))
        derivative = np.pi ** (n + 1.0) * polynomial(1.0 / tangent, *powers)
        reflected = -sign * result[below] - derivative
        result[below] = np.where(tangent == 0.0, sign * np.inf, reflected)
    return result


def less_logarithm(x: Any) -> Any:
    """x - log(1 + x), without cancellation near zero."""
    ratio = x / (2.0 + x)
    square = ratio * ratio
    # log(1 + x) is 2 arctanh(ratio), and x - 2 ratio is x ratio.
    series = polynomial(
        np.where(square < 0.1, square, 0.1), *[2.0 / (2 * k + 3) for k in range(16)]
    )
    return np.where(square < 0.1, ratio * (x - square * series), x - np.log1p(x))


def relative_entropy(off: Any, ratio: Any) -> Any:
    """off - log(ratio), where off is ratio - 1."""
    return np.where(np.abs(off) < 0.5, less_logarithm(off), off - np.log(ratio))


def gammaln(x: Any, out: Any = None) -> Any:
    """The logarithm of the absolute value of the gamma function."""
    return in_chunks(gammaln_chunk, (x,), out)


def gamma_function(x: Any, out: Any = None) -> Any:
    """The gamma function."""
    return in_chunks(gamma_chunk, (x,), out)


def digamma(x: Any, out: Any = None) -> Any:
    """The derivative of the logarithm of the gamma function."""
    return in_chunks(digamma_chunk, (x,), out)


def polygamma(x: Any, n: int, out: Any = None) -> Any:
    """Derivative `n` of the digamma function."""
    return in_chunks(lambda part: polygamma_chunk(part, n), (x,), out)


def poles_cancel(small: Any, large: Any) -> Any:
    """Whether gamma(small) and gamma(small + large) have poles, and gamma(large) has none."""
    whole = (small == np.rint(small)) & (large == np.rint(large))
    return whole & (small < 0.0) & (large > 0.0) & (small + large <= 0.0)


def gammaln_drop(q: Any, p: Any) -> Any:
    """log(gamma(q) / gamma(q + p)) by Stirling's series, for q and q + p above 8.5."""
    total = q + p
    rest = stirling(q) - stirling(total) + 0.5 * np.log(total / q)
    return rest + q * relative_entropy(p / q, total / q) - p * np.log(total)


def betaln_chunk(a: Any, b: Any) -> Any:
    """log(abs(beta(a, b))); where the larger one is large, by Stirling's series."""
    small, large = np.minimum(a, b), np.maximum(a, b)
    # The ratio of gamma functions by reflection. DLMF 5.5.3.
    other = np.where(poles_cancel(small, large), 1.0 - (small + large), small)
    small, large = np.minimum(other, large), np.maximum(other, large)
    less = gammaln_chunk(large) - gammaln_chunk(small + large)
    result = gammaln_chunk(small) + less
    far = (large >= 8.5) & (small + large >= 8.5)
    if far.any():
        p, q = small[far], large[far]
        total = p + q
        both = np.maximum(p, 8.5)
        even = stirling(q) - stirling(total) + 0.5 * np.log1p(p / q)
        even -= both * np.log1p(q / both) + q * np.log1p(both / q)
        even += 0.9189385332046727 - 0.5 * np.log(both) + stirling(both)
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
    product = gamma_chunk(second) / gamma_chunk(total) * gamma_chunk(first)
    product *= 1.0 - lost
    far = (np.abs(a) > 85.0) | (np.abs(b) > 85.0) | (np.abs(total) > 170.0)
    far |= (first == 0.0) | (second == 0.0)
    # Below zero the product has more digits, unless a factor of it overflows.
    lost = (product == 0.0) | ~np.isfinite(product)
    far &= (first >= 0.0) | (lost & (second != 0.0))
    if far.any():
        p, q = first[far], second[far]
        sign = gamma_sign(p) * gamma_sign(q) * gamma_sign(p + q)
        product[far] = sign * np.exp(betaln_chunk(p, q))
    result, whole = product, first == np.rint(first)
    result[(total <= 0.0) & (total == np.rint(total)) & ~whole] = 0.0
    # At a pole of the numerator alone it is infinite; where two poles meet their ratio counts.
    result[(first < 0.0) & whole & ~np.isnan(second)] = np.inf
    both = poles_cancel(first, second)
    rest, large = 1.0 - total[both], second[both]
    result[both] = parity(large) * np.exp(betaln_chunk(rest, large))
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
    both = below & above & (m == np.rint(m))
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
