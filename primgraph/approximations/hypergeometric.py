"""Hypergeometric functions and zeta functions, with their derivatives by parameters.

A parameter is a truncated power series: an array whose first axes are powers of the displacements
of the parameters. So sums of a series give all derivatives at once, with the errors of values. As
in `gamma`, texts of functions are copied into standalone sources.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.approximations.gamma import (
    digamma_chunk,
    gammaln_chunk,
    in_chunks,
    polygamma_chunk,
)


def times_linear(series: Any, value: Any, slopes: Any) -> Any:
    """The product of a truncated series and `value` plus displacements times `slopes`."""
    result = series * value
    for axis, slope in enumerate(slopes):
        if slope and series.shape[axis] > 1:
            before, after = np.moveaxis(series, axis, 0), np.moveaxis(result, axis, 0)
            after[1:] += slope * before[:-1]
    return result


def over_linear(series: Any, value: Any, axis: int) -> Any:
    """The quotient of a truncated series and `value` plus the displacement of `axis`."""
    result = series / value
    moved = np.moveaxis(result, axis, 0)
    for k in range(1, moved.shape[0]):
        moved[k] -= moved[k - 1] / value
    return result


def times_series(series: Any, factors: Any, axis: int) -> Any:
    """The product of a truncated series and one of the displacement of `axis` alone."""
    moved = np.moveaxis(series, axis, 0)
    result = np.zeros_like(moved)
    for k in range(len(moved)):
        for m in range(k + 1):
            result[k] += factors[m] * moved[k - m]
    return np.moveaxis(result, 0, axis)


def exponential_series(rate: Any, count: int) -> Any:
    """The series of exp(rate * displacement)."""
    result = [np.ones_like(rate)]
    for k in range(1, count):
        result.append(result[-1] * rate / k)
    return result


def reciprocal_gamma_series(x: Any, count: int) -> Any:
    """The series of 1 / gamma(x + displacement), also at the poles."""
    shift = np.maximum(np.ceil(1.0 - x), 0.0)
    y = x + shift
    # Of the logarithm of gamma(y + displacement) the coefficients, times k.
    slopes = [digamma_chunk(y)]
    for k in range(1, count):
        slopes.append(polygamma_chunk(y, k) / factorial_of(k))
    front = [np.exp(-gammaln_chunk(y))]
    for k in range(1, count):
        total = np.zeros_like(x)
        for m in range(1, k + 1):
            total = total - slopes[m - 1] * front[k - m]
        front.append(total / k)
    result = np.stack(front)
    done = 0.0
    while (done < shift).any():
        risen = times_linear(result, x + done, (1,))
        result, done = np.where(done < shift, risen, result), done + 1.0
    return result


def is_settled(term: Any, total: Any) -> Any:
    """Whether no term is more than a rounding error of its sum."""
    return not (np.abs(term) > 1e-17 * np.abs(total) + 1e-300).any()


def gauss_start(forms: Any, shape: Any, y: Any) -> Any:
    """The series of Gauss's function, and of its derivative, for 0 <= y <= 1/2. DLMF 15.2.1."""
    (a, of_a), (b, of_b), (c, _) = forms
    term = np.zeros((*shape, y.size))
    term[0, 0, 0] = 1.0
    total, slope = term.copy(), np.zeros_like(term)
    for k in range(4000):
        term = times_linear(times_linear(term, a + k, of_a), b + k, of_b)
        # A series that has ended may go on past a pole.
        term = over_linear(term, np.where(c + k == 0.0, 1.0, c + k), 2) / (k + 1.0)
        slope += (k + 1.0) * term
        term = term * y
        total += term
        if k % 8 == 7 and is_settled(term, total) and is_settled(k * term, slope):
            break
    return total, slope


def gauss_step(forms: Any, total: Any, slope: Any, rest: Any, step: Any) -> Any:
    """The series of Gauss's function and its derivative at 1 - rest + step, by Taylor series.

    Coefficients are from the differential equation, DLMF 15.10.1.
    """
    (a, of_a), (b, of_b), (c, of_c) = forms
    y = 1.0 - rest
    middle = np.zeros_like(total)
    before, now = total, slope
    power, value, change = step, total + slope * step, slope.copy()
    for k in range(400):
        middle = times_linear(
            now, k * (1.0 - 2.0 * y) + c - (a + b + 1.0) * y, (0, 0, 0)
        )
        for axis in range(3):
            weight = of_c[axis] - (of_a[axis] + of_b[axis]) * y
            if now.shape[axis] > 1:
                moved, result = np.moveaxis(now, axis, 0), np.moveaxis(middle, axis, 0)
                result[1:] += weight * moved[:-1]
        own = times_linear(times_linear(before, a + k, of_a), b + k, of_b)
        following = (own - (k + 1.0) * middle) / ((k + 2.0) * (k + 1.0) * y * rest)
        change += (k + 2.0) * following * power
        power = power * step
        value += following * power
        before, now = now, following
        if k % 8 == 7 and is_settled(following * power, value):
            break
    return value, change


def gauss_series(forms: Any, shape: Any, y: Any, rest: Any) -> Any:
    """The series of Gauss's function for 0 <= y < 1, where rest = 1 - y.

    Beyond 1/2 it is continued in steps, each of half the distance from the singular point 1.
    """
    total, slope = gauss_start(forms, shape, np.minimum(y, 0.5))
    left = np.full_like(rest, 0.5)
    for _ in range(1100):
        is_far = rest < left
        if not is_far.any():
            break
        part = [(p[is_far], of) for p, of in forms]
        step = np.minimum(0.5 * left, left - rest)[is_far]
        moved = gauss_step(
            part, total[..., is_far], slope[..., is_far], left[is_far], step
        )
        total[..., is_far], slope[..., is_far] = moved
        left = np.maximum(0.5 * left, rest)
    return total


def factorial_of(n: int) -> Any:
    """The factorial of a small number."""
    result = 1.0
    for k in range(2, n + 1):
        result *= k
    return result


def gauss_chunk(a: Any, b: Any, c: Any, z: Any, orders: Any) -> Any:
    """The derivative of Gauss's function by its parameters, of these orders, for z < 1."""
    i, j, k = orders
    shape = (i + 1, j + 1, k + 1)
    result = np.full_like(z, np.nan)
    good = (
        np.isfinite(a)
        & np.isfinite(b)
        & np.isfinite(c)
        & ((c > 0.0) | (c != np.floor(c)))
    )
    right = good & (z >= 0.0) & (z < 1.0)
    # A polynomial in z, of coefficients that are finite also at a pole by c.
    ends = [
        (n == 0) & (p <= 0.0) & (p == np.floor(p)) & (p > c)
        for p, n in ((a, i), (b, j))
    ]
    ended = ~good & (ends[0] | ends[1]) & np.isfinite(a + b + c + z)
    scale = factorial_of(i) * factorial_of(j) * factorial_of(k)
    if right.any():
        forms = ((a[right], (1, 0, 0)), (b[right], (0, 1, 0)), (c[right], (0, 0, 1)))
        found = gauss_series(forms, shape, z[right], 1.0 - z[right])
        result[right] = scale * found[i, j, k]
    if ended.any():
        forms = ((a[ended], (1, 0, 0)), (b[ended], (0, 1, 0)), (c[ended], (0, 0, 1)))
        result[ended] = scale * gauss_start(forms, shape, z[ended])[0][i, j, k]
    # The linear transformation DLMF 15.8.1, by the larger one of the first two parameters.
    for is_swapped in (False, True):
        left = good & (z < 0.0) & (z > -np.inf) & ((a > b) == is_swapped)
        if not left.any():
            continue
        p, q, r, x = a[left], b[left], c[left], z[left]
        if is_swapped:
            forms = ((r - p, (-1, 0, 1)), (q, (0, 1, 0)), (r, (0, 0, 1)))
            first, axis = q, 1
        else:
            forms = ((p, (1, 0, 0)), (r - q, (0, -1, 1)), (r, (0, 0, 1)))
            first, axis = p, 0
        found = gauss_series(forms, shape, x / (x - 1.0), 1.0 / (1.0 - x))
        logarithm = np.log1p(-x)
        factors = exponential_series(-logarithm, shape[axis])
        found = times_series(found, factors, axis)[i, j, k]
        result[left] = scale * np.exp(-first * logarithm) * found
    return result


def kummer_series(forms: Any, shape: Any, z: Any, scale: Any) -> Any:
    """The series of Kummer's function times `scale`, for z >= 0. DLMF 13.2.2."""
    (a, of_a), (b, _) = forms
    term = np.zeros((*shape, z.size))
    term[0, 0] = scale
    total = term.copy()
    for k in range(4000):
        # A series that has ended may go on past a pole.
        divisor = np.where(b + k == 0.0, 1.0, b + k)
        term = over_linear(times_linear(term, a + k, of_a), divisor, 1) * (
            z / (k + 1.0)
        )
        total += term
        if k % 8 == 7 and is_settled(term, total):
            break
    return total


def kummer_far(a: Any, b: Any, z: Any, shape: Any) -> Any:
    """The series of Kummer's function for large negative z. DLMF 13.7.2."""
    term = np.zeros((*shape, z.size))
    term[0, 0] = 1.0
    total, size = term.copy(), np.full_like(z, np.inf)
    for k in range(100):
        term = times_linear(
            times_linear(term, a + k, (1, 0)), a - b + (k + 1.0), (1, -1)
        )
        term = term / (-z * (k + 1.0))
        own = np.max(np.abs(term), axis=(0, 1))
        term = np.where(own < size, term, 0.0)
        size = np.where(own < size, own, 0.0)
        total += term
        if is_settled(term, total):
            break
    count = shape[0] + shape[1] - 1
    # 1 / gamma(b - a): a series of the difference of the displacements.
    below = reciprocal_gamma_series(b - a, count)
    mixed, power = np.zeros_like(total), total
    for k in range(count):
        mixed = mixed + below[k] * power
        power = times_linear(power, np.zeros_like(z), (-1, 1))
    total = times_series(mixed, exponential_series(-np.log(-z), shape[0]), 0)
    divisor = reciprocal_gamma_series(b, shape[1])
    moved = np.moveaxis(total, 1, 0)
    result = np.zeros_like(moved)
    for k in range(shape[1]):
        result[k] = moved[k]
        for m in range(1, k + 1):
            result[k] -= divisor[m] * result[k - m]
        result[k] /= divisor[0]
    return np.moveaxis(result, 0, 1) * np.exp(-a * np.log(-z))


def kummer_chunk(a: Any, b: Any, z: Any, orders: Any) -> Any:
    """The derivative of Kummer's function by its parameters, of these orders."""
    i, j = orders
    shape, scale = (i + 1, j + 1), factorial_of(i) * factorial_of(j)
    result = np.full_like(z, np.nan)
    good = np.isfinite(a) & np.isfinite(b) & ((b > 0.0) | (b != np.floor(b)))
    # A polynomial in z, of coefficients that are finite also at a pole by b.
    ended = (
        ~good & (i == 0) & (a <= 0.0) & (a == np.floor(a)) & (a > b) & np.isfinite(z)
    )
    if ended.any():
        forms = ((a[ended], (0, 0)), (b[ended], (0, 1)))
        result[ended] = scale * kummer_series(forms, shape, z[ended], 1.0)[i, j]
    far = (
        good
        & (z < -60.0 - 2.0 * (np.abs(a) + 1.0) * (np.abs(a - b) + 1.0))
        & (z > -np.inf)
    )
    if far.any():
        result[far] = scale * kummer_far(a[far], b[far], z[far], shape)[i, j]
    right, left = (
        good & (z >= 0.0) & (z < np.inf),
        good & ~far & (z < 0.0) & (z > -700.0),
    )
    if right.any():
        forms = ((a[right], (1, 0)), (b[right], (0, 1)))
        result[right] = scale * kummer_series(forms, shape, z[right], 1.0)[i, j]
    if left.any():
        # Kummer's transformation, DLMF 13.2.39.
        forms, x = ((b[left] - a[left], (-1, 1)), (b[left], (0, 1))), z[left]
        result[left] = scale * kummer_series(forms, shape, -x, np.exp(x))[i, j]
    return result


# Bernoulli numbers by factorials: B(2 k) / (2 k)!
BERNOULLI = np.array([
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
    1 / 74724249600, -3617 / 10670622842880000,
])  # fmt: skip


def zeta_chunk(s: Any, q: Any, n: int) -> Any:
    """Derivative `n` of Hurwitz's zeta function by the exponent, for q > 0. DLMF 25.11.5."""
    result = np.full_like(s, np.nan)
    good = (s > 1.0) & (s < np.inf) & (q > 0.0) & (q < np.inf)
    x, e = q[good], s[good]
    total = np.zeros_like(x)
    for k in range(16 + n):
        total += (-np.log(x + k)) ** n * (x + k) ** -e
    end = x + (16.0 + n)
    power = np.zeros((n + 1, x.size))
    power[0] = 1.0
    ending = over_linear(power, e - 1.0, 0) * end + 0.5 * power
    rising = times_linear(power, e, (1,)) / end
    for k, number in enumerate(BERNOULLI):
        ending += number * rising
        for m in (2.0 * k + 1.0, 2.0 * k + 2.0):
            rising = times_linear(rising, e + m, (1,)) / end
    ending = times_series(ending, exponential_series(-np.log(end), n + 1), 0)
    result[good] = total + factorial_of(n) * ending[n] * end**-e
    return result


def gauss_by_parameters(
    a: Any, b: Any, c: Any, z: Any, i: int, j: int, k: int, out: Any = None
) -> Any:
    """The derivative of orders i, j and k by parameters of Gauss's hypergeometric function."""
    return in_chunks(
        lambda p, q, r, x: gauss_chunk(p, q, r, x, (i, j, k)), (a, b, c, z), out, 512
    )


def kummer_by_parameters(
    a: Any, b: Any, z: Any, i: int, j: int, out: Any = None
) -> Any:
    """The derivative of orders i and j by parameters of Kummer's hypergeometric function."""
    return in_chunks(lambda p, q, x: kummer_chunk(p, q, x, (i, j)), (a, b, z), out, 512)


def zeta_by_exponent(s: Any, q: Any, n: int, out: Any = None) -> Any:
    """Derivative n by the exponent of Hurwitz's zeta function."""
    return in_chunks(lambda p, x: zeta_chunk(p, x, n), (s, q), out)
