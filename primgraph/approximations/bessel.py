"""Derivatives of Bessel functions by their order, by integrals along paths of steepest descent.

Derivatives by the order bring powers of the variable under the integral. Paths hold where the
integrand is smallest, so that there is no cancellation. Where the argument is small beside the
order, power series are used. As in `gamma`, texts of functions are copied into standalone sources.
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
from primgraph.approximations.quadrature import NODES, WEIGHTS

# Four panels of Gauss's rule for the interval from 0 to 1, shorter towards 0, and equal ones.
FINER_NODES = np.concatenate([
    NODES / 64.0, (1.0 + 3.0 * NODES) / 64.0, (1.0 + 3.0 * NODES) / 16.0, (1.0 + 3.0 * NODES) / 4.0
])  # fmt: skip
FINER_WEIGHTS = np.concatenate([
    WEIGHTS / 64.0, 3.0 * WEIGHTS / 64.0, 3.0 * WEIGHTS / 16.0, 3.0 * WEIGHTS / 4.0
])  # fmt: skip
EQUAL_NODES = np.concatenate([0.25 * (k + NODES) for k in range(4)])
EQUAL_WEIGHTS = np.concatenate([0.25 * WEIGHTS for k in range(4)])


def phase_of_order(v: Any) -> Any:
    """exp(i pi v), exact for multiples of one half."""
    whole = np.round(v)
    part = v - whole
    sine, cosine = np.sin(np.pi * part), np.sin(np.pi * (0.5 - np.abs(part)))
    return (1.0 - 2.0 * (whole % 2.0)) * (cosine + 1j * sine)


def turned_derivative(v: Any, parts: Any) -> Any:
    """Derivative n by v of exp(i pi v) f(v), where parts are the n + 1 derivatives of f."""
    n = len(parts) - 1
    total, choose = 0.0, 1.0
    for m in range(n + 1):
        total = total + choose * (1j * np.pi) ** m * parts[n - m]
        choose = choose * (n - m) / (m + 1.0)
    return phase_of_order(v) * total


def end_of_fall(fall: Any, low: Any, high: Any) -> Any:
    """The number at which a function that rises from low on reaches 45, or else high."""
    a, b = low, high
    for _ in range(24):
        middle = 0.5 * (a + b)
        is_short = fall(middle) < 45.0
        a, b = np.where(is_short, middle, a), np.where(is_short, b, middle)
    return b


def sum_of_powers(x: Any, v: Any, n: int, sign: float, k: Any, step: Any) -> Any:
    """Derivative n by v of the sum over k of (sign x**2 / 4)**k (x / 2)**v / (k! (v + k)!).

    DLMF 10.2.2 and 10.25.2; of modified functions it is times exp(-x).
    """
    half, order = np.log(0.5 * x)[:, None], v[:, None]
    total = order + k + 1.0
    flat = total.reshape(-1)
    logarithms = [half - digamma_chunk(flat).reshape(total.shape)]
    for m in range(1, n):
        logarithms.append(-polygamma_chunk(flat, m).reshape(total.shape))
    moments = [np.ones_like(total)]
    for m in range(1, n + 1):
        found, choose = 0.0, 1.0
        for i in range(m):
            found = found + choose * logarithms[i] * moments[m - 1 - i]
            choose = choose * (m - 1.0 - i) / (i + 1.0)
        moments.append(found)
    exponent = (2.0 * k + order) * half - gammaln_chunk(flat).reshape(total.shape)
    exponent = exponent - gammaln_chunk((k + 1.0).reshape(-1)).reshape(k.shape)
    if sign > 0.0:
        exponent = exponent - x[:, None]
    signs = 1.0 if sign > 0.0 else 1.0 - 2.0 * (k % 2.0)
    return np.sum(step * signs * np.exp(exponent) * moments[n], axis=1)


def second_modified(x: Any, v: Any, n: int) -> Any:
    """Derivative n by v of exp(x) K(v, x), for x > 0. DLMF 10.32.9."""
    order = np.abs(v)
    slope = 45.0 + np.sqrt(45.0 * x)
    end = np.arcsinh((order + slope) / x) + 45.0 / slope
    places = np.linspace(0.0, 1.0, 201)
    t = end[:, None] * places
    weights = np.where(places == 0.0, 0.5, 1.0) / 200.0
    order = order[:, None]
    both = 1.0 + np.exp(-2.0 * order * t) if n % 2 == 0 else -np.expm1(-2.0 * order * t)
    exponent = order * t - 2.0 * x[:, None] * np.sinh(0.5 * t) ** 2
    found = 0.5 * end * np.sum(weights * t**n * both * np.exp(exponent), axis=1)
    return np.where((v < 0.0) & (n % 2 == 1), -found, found)


def first_modified_near(x: Any, v: Any, n: int) -> Any:
    """Derivative n by v of exp(-x) I(v, x), for 0 <= v, v**2 < 4 x and x >= 1. DLMF 10.32.4."""
    order = v[:, None]
    reach = np.where(
        x > 22.0, 2.0 * np.arcsin(np.sqrt(22.0 / np.maximum(x, 22.0))), np.pi
    )
    angle = reach[:, None] * EQUAL_NODES
    weight = np.exp(-2.0 * x[:, None] * np.sin(0.5 * angle) ** 2)
    wave = np.sin(order * angle) if n % 2 else np.cos(order * angle)
    if n % 4 in (1, 2):
        wave = -wave
    first = reach * np.sum(EQUAL_WEIGHTS * weight * angle**n * wave, axis=1)
    end = np.arccosh(1.0 + 45.0 / x)
    t = end[:, None] * EQUAL_NODES
    fall = np.exp(-x[:, None] * (np.cosh(t) - 1.0) - order * t)
    parts = [
        end * np.sum(EQUAL_WEIGHTS * fall * (-t) ** m, axis=1) for m in range(n + 1)
    ]
    second = np.imag(turned_derivative(v, parts)) * np.exp(-2.0 * x)
    return (first - second) / np.pi


def first_modified(x: Any, v: Any, n: int) -> Any:
    """Derivative n by v of exp(-x) I(v, x), for x > 0."""
    order = np.abs(v)
    result = np.empty_like(x)
    near = (x >= 1.0) & (order * order < 4.0 * x)
    result[near] = first_modified_near(x[near], order[near], n)
    y, u = x[~near], order[~near]
    # A window around the largest term. Where it is wide, steps are wider: a sum of a smooth bell
    # is its integral to all digits.
    largest = 0.5 * y * y / (u + np.sqrt(u * u + y * y))
    step = np.maximum(1.0, np.sqrt(largest) / 12.0)
    start = np.where(step > 1.0, largest, np.floor(largest))
    k = start[:, None] + np.arange(-120.0, 121.0) * step[:, None]
    is_in = k >= 0.0
    k, width = np.where(is_in, k, 0.0), np.where(is_in, step[:, None], 0.0)
    result[~near] = sum_of_powers(y, u, n, 1.0, k, width)
    # DLMF 10.27.2.
    below = v < 0.0
    if below.any():
        y, u = x[below], order[below]
        parts = [second_modified(y, u, m) * np.exp(-2.0 * y) for m in range(n + 1)]
        found = result[below] + 2.0 / np.pi * np.imag(turned_derivative(u, parts))
        result[below] = found * (-1.0) ** n
    return result


def loss_along_axis(x: Any, v: Any, top: Any, t: Any) -> Any:
    """The difference of v t - x sinh(t) and its value at top."""
    return v * (top - t) + x * (np.sinh(t) - np.sinh(top))


def integral_along_axis(x: Any, v: Any, n: int, low: Any) -> Any:
    """The integral of t**n exp(v t - x sinh(t)) from low on, which is 0 or a minimum below it."""
    top = np.arccosh(np.maximum(v / x, 1.0))
    reach = top + np.arcsinh(100.0 / x + 2.0 * v / x) + 1.0
    end = end_of_fall(lambda t: loss_along_axis(x, v, top, t), top, reach)
    start = top - end_of_fall(
        lambda d: loss_along_axis(x, v, top, top - d), np.zeros_like(top), top - low
    )
    total = 0.0
    for a, b in ((start, top), (top, end)):
        t = a[:, None] + (b - a)[:, None] * EQUAL_NODES
        values = np.exp(v[:, None] * t - x[:, None] * np.sinh(t))
        total = total + (b - a) * np.sum(EQUAL_WEIGHTS * t**n * values, axis=1)
    return total


def less_sine(d: Any) -> Any:
    """(d - sin(d)) / d**2, without cancellation near zero."""
    small = np.clip(d, -0.7, 0.7)
    square, term, series = small * small, small / 6.0, 0.0
    for k in range(2, 10):
        series = series + term
        term = term * (-square / ((2.0 * k) * (2.0 * k + 1.0)))
    return np.where(
        small == d, series, (d - np.sin(d)) / np.where(d == 0.0, 1.0, d * d)
    )


def steepest_path(sine: Any, cosine: Any, angle: Any, d: Any) -> Any:
    """Real parts, and their slopes, of the path through i * beta at the imaginary part beta + d.

    There sinh(t) - t cos(beta) has the imaginary part that it has at the start; angle is beta + d.
    """
    over = np.sin(angle)
    ratio = (sine * 2.0 * (np.sin(0.5 * d) / d) ** 2 + cosine * less_sine(d)) / over
    excess = ratio * d * d
    slope = (
        sine * np.sin(d) + cosine * 2.0 * np.sin(0.5 * d) ** 2 - excess * np.cos(angle)
    )
    rise = d * np.sqrt(ratio * (excess + 2.0))
    return 2.0 * np.arcsinh(d * np.sqrt(0.5 * ratio)), slope / over / rise


def path_above(beta: Any, sine: Any, cosine: Any, d: Any) -> Any:
    """The path from i * beta to infinity at i * pi, and its slope, beta + d above the axis."""
    real, slope = steepest_path(sine, cosine, beta + d, d)
    return real, beta + d, slope + 1j


def path_below(beta: Any, sine: Any, cosine: Any, s: Any) -> Any:
    """The path from minus infinity to i * beta, at the imaginary part beta * exp(-s)."""
    angle = beta * np.exp(-s)
    real, slope = steepest_path(sine, cosine, angle, beta * np.expm1(-s))
    return real, angle, (slope + 1j) * angle


def path_from_axis(top: Any, bottom: Any, d: Any) -> Any:
    """The path from arccosh(top) = arcsinh(bottom) to infinity at i * pi, d above the axis."""
    over = np.sin(d)
    excess = top * d * d * less_sine(d) / over
    rise = np.sqrt(bottom * bottom + excess * (2.0 * top + excess))
    return np.arcsinh(rise), d, top * (over - d * np.cos(d)) / (over * over) / rise + 1j


def loss_along(x: Any, v: Any, start: Any, point: Any) -> Any:
    """The difference of start and the real part of x sinh(t) - v t, at a point of a path."""
    real, imaginary, _ = point
    return start + v * real - x * np.sinh(real) * np.cos(imaginary)


def hankel_part(x: Any, v: Any, n: int, ends: Any, path: Any) -> Any:
    """The integral of (-t)**n exp(x sinh(t) - v t) along a path, from parameter 0 to ends."""
    real, imaginary, slope = path(ends[:, None] * FINER_NODES)
    t = real + 1j * imaginary
    values = np.exp(x[:, None] * np.sinh(t) - v[:, None] * t) * (-t) ** n
    return ends * np.sum(FINER_WEIGHTS * values * slope, axis=1)


def hankel_beyond(x: Any, v: Any, n: int) -> Any:
    """Derivative n by v of Hankel's function, where x is above v by x**(1/3) / 2. Watson 8.31."""
    root = np.sqrt((x - v) * (x + v))
    place = np.arctan2(root, v), root / x, v / x
    wide = place[0][:, None], place[1][:, None], place[2][:, None]
    zero = np.zeros_like(x)
    above = end_of_fall(
        lambda d: loss_along(x, v, 0.0, path_above(*place, d)), zero, np.pi - place[0]
    )
    below = end_of_fall(
        lambda s: loss_along(x, v, 0.0, path_below(*place, s)), zero, zero + 60.0
    )
    total = hankel_part(x, v, n, above, lambda d: path_above(*wide, d))
    total = total + hankel_part(x, v, n, below, lambda s: path_below(*wide, s))
    return total / (1j * np.pi)


def hankel_at_turn(x: Any, v: Any, n: int) -> Any:
    """Derivative n by v of Hankel's function, where x and v are close."""
    zero = np.zeros_like(x)
    end = end_of_fall(
        lambda d: loss_along(x, v, 0.0, path_above(0.0, 0.0, 1.0, d)),
        zero,
        zero + np.pi,
    )
    total = hankel_part(x, v, n, end, lambda d: path_above(0.0, 0.0, 1.0, d))
    return (total + integral_along_axis(x, v, n, zero)) / (1j * np.pi)


def hankel_before(x: Any, v: Any, n: int) -> Any:
    """Derivative n by v of Hankel's function, where x is below v by x**(1/3) / 2. Watson 8.31."""
    bottom, zero = np.sqrt((v - x) * (v + x)) / x, np.zeros_like(x)
    start, top = np.arcsinh(bottom), v / x
    height = x * bottom - v * start
    end = end_of_fall(
        lambda d: loss_along(x, v, height, path_from_axis(top, bottom, d)),
        zero,
        zero + np.pi,
    )
    real, angle, slope = path_from_axis(
        top[:, None], bottom[:, None], end[:, None] * FINER_NODES
    )
    exponent = x[:, None] * np.sinh(real) * np.cos(angle) - v[:, None] * real
    values = np.exp(exponent) * (-(real + 1j * angle)) ** n * slope
    total = end * np.sum(FINER_WEIGHTS * values, axis=1)
    # Its imaginary part may be smaller than the other one by more than all digits.
    other = np.real(total) + integral_along_axis(x, v, n, -start)
    return (np.imag(total) - 1j * other) / np.pi


def hankel_of_small(x: Any, v: Any, n: int) -> Any:
    """Derivative n by v of Hankel's function, for x**2 < 8 (v + 1). DLMF 10.2.2 and 10.9.7."""
    first = sum_of_powers(x, v, n, -1.0, np.arange(60.0)[None, :], 1.0)
    angle = np.pi * EQUAL_NODES
    wave = np.sin(x[:, None] * np.sin(angle) - v[:, None] * angle - 0.5 * np.pi * n)
    total = np.pi * np.sum(EQUAL_WEIGHTS * angle**n * wave, axis=1)
    end = end_of_fall(
        lambda t: x * np.sinh(t) + v * t, np.zeros_like(x), np.arcsinh(50.0 / x)
    )
    t = end[:, None] * EQUAL_NODES
    falling = np.exp(-x[:, None] * np.sinh(t) - v[:, None] * t)
    parts = [
        end * np.sum(EQUAL_WEIGHTS * falling * (-t) ** m, axis=1) for m in range(n + 1)
    ]
    total = total - np.real(turned_derivative(v, parts))
    total = total - integral_along_axis(x, v, n, np.zeros_like(x))
    return first + 1j * (total / np.pi)


def hankel(x: Any, v: Any, n: int) -> Any:
    """Derivative n by v of Hankel's function J(v, x) + i Y(v, x), for x > 0."""
    order = np.abs(v)
    small = x * x < 8.0 * (order + 1.0)
    away = 0.5 * np.cbrt(x)
    beyond, before = ~small & (x - order > away), ~small & (order - x > away)
    result = np.empty(x.shape, complex)
    for which, rule in (
        (small, hankel_of_small), (beyond, hankel_beyond), (before, hankel_before),
        (~small & ~beyond & ~before, hankel_at_turn),
    ):  # fmt: skip
        if which.any():
            result[which] = rule(x[which], order[which], n)
    return result


def bessel_pair(x: Any, v: Any, n: int) -> Any:
    """Derivative n by v of J(v, x) and of Y(v, x). DLMF 10.4.6."""
    result = hankel(x, v, n)
    below = v < 0.0
    if below.any():
        y, u = x[below], -v[below]
        parts = [hankel(y, u, m) for m in range(n)] + [result[below]]
        result[below] = turned_derivative(u, parts) * (-1.0) ** n
    return np.real(result), np.imag(result)


def bessel_chunk(v: Any, x: Any, name: str, n: int) -> Any:
    """Derivative n >= 1 by the order v of a Bessel function of scipy.special, for x > 0."""
    result = np.full_like(x, np.nan)
    good = (x > 0.0) & (x < np.inf) & np.isfinite(v)
    y, u = x[good], v[good]
    if name in ("jv", "yv"):
        result[good] = bessel_pair(y, u, n)[name == "yv"]
    elif name in ("kv", "kve"):
        result[good] = second_modified(y, u, n) * (np.exp(-y) if name == "kv" else 1.0)
    else:
        result[good] = first_modified(y, u, n) * (np.exp(y) if name == "iv" else 1.0)
    if name in ("jv", "iv", "ive"):
        result[(x == 0.0) & (v > 0.0) & (v < np.inf)] = 0.0
    return result


def bessel_by_order(v: Any, x: Any, n: int, name: str, out: Any = None) -> Any:
    """Derivative n >= 1 by the order v of the Bessel function of that name."""
    return in_chunks(lambda p, q: bessel_chunk(p, q, name, n), (v, x), out, 256)
