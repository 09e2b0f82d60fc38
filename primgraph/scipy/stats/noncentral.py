"""Noncentral distributions, mixtures of central ones; Landau's and that of ranges, integrals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from primgraph.operators.elementwise.arithmetic import floor, maximum, minimum, square
from primgraph.operators.elementwise.elementary import (
    arcsinh,
    cosh,
    exp,
    expm1,
    log,
    log1p,
    sin,
    sinh,
    sqrt,
)
from primgraph.operators.elementwise.logic import (
    greater,
    greater_equal,
    isfinite,
    less,
    less_equal,
    logical_and,
    where,
)
from primgraph.operators.elementwise.rounding import sinc
from primgraph.operators.elementwise.special_functions import (
    betainc,
    betaln,
    gammainc,
    gammaincc,
    gammaln,
    log_ndtr,
    ndtr,
    xlogy,
)
from primgraph.operators.promotion import lift
from primgraph.operators.reduce.reductions import sum as sum_of
from primgraph.operators.shape.creation import stop_gradient
from primgraph.operators.shape.shaping import expand_dims
from primgraph.operators.variable import Variable
from primgraph.scipy.stats.distribution import Distribution
from primgraph.scipy.stats.integrals import double_exponential
from primgraph.scipy.stats.parts import (
    EVERYWHERE,
    HALF_LOG_TAU,
    POSITIVE,
    Rule,
    limit_of_power,
    log_sum,
)

# Terms of a mixture around its largest one. Where they spread over more than 12 numbers, they are
# taken at wider steps: a sum of a smooth bell is its integral to all digits.
_PLACES = np.arange(-120.0, 121.0)


def _window(largest: Variable) -> tuple[Variable, Variable]:
    """Return indices of terms around the largest one, and the logarithm of the step, or -inf."""
    largest = stop_gradient(maximum(largest, 0.0))
    step = maximum(1.0, sqrt(largest) / 12.0)
    index = expand_dims(where(greater(step, 1.0), largest, floor(largest)), -1)
    wide = expand_dims(step, -1)
    index = index + _PLACES * wide
    is_in = greater_equal(index, 0.0)
    return where(is_in, index, 0.0), where(is_in, log(wide), -math.inf)


def _log_poisson(k: Variable, nc: Variable) -> Variable:
    half = 0.5 * expand_dims(nc, -1)
    return xlogy(k, half) - half - gammaln(k + 1.0)


def _mixture(
    largest: Variable, nc: Variable, logarithms: Callable[[Variable], Variable]
) -> Variable:
    """Return the logarithm of the sum of the terms of a Poisson mixture."""
    k, step = _window(largest)
    return log_sum(_log_poisson(k, nc) + step + logarithms(k))


# Noncentral chi-squared.


def _chi_largest(x: Variable, df: Variable, nc: Variable) -> Variable:
    return sqrt(square(0.25 * df) + 0.25 * nc * x) - 0.25 * df


def _log_ncx2(x: Variable, df: Variable, nc: Variable) -> Variable:
    at, count = expand_dims(0.5 * x, -1), expand_dims(0.5 * df, -1)

    def density(k: Variable) -> Variable:
        return (count + k - 1.0) * log(at) - at - gammaln(count + k)

    return _mixture(_chi_largest(x, df, nc), nc, density) - math.log(2.0)


def _chi_part(function: Callable[..., Variable]) -> Callable[..., Variable]:
    def part(x: Variable, df: Variable, nc: Variable) -> Variable:
        at, count = expand_dims(0.5 * x, -1), expand_dims(0.5 * df, -1)
        k, step = _window(_chi_largest(x, df, nc))
        return sum_of(exp(_log_poisson(k, nc) + step) * function(count + k, at + 0.0 * k), -1)

    return part


def _smaller(
    below: Callable[..., Variable],
    above: Callable[..., Variable],
    is_left: Callable[..., Variable],
    is_upper: bool,
) -> Callable[..., Variable]:
    """Return the rule of a part, by the other one where that is the smaller one."""

    def rule(x: Variable, *own: Variable) -> Variable:
        left = is_left(x, *own)
        lower, upper = below(x, *own), above(x, *own)
        if is_upper:
            return where(left, 1.0 - lower, upper)
        return where(left, lower, 1.0 - upper)

    return rule


def _is_left_of_mean(x: Variable, df: Variable, nc: Variable) -> Variable:
    return less(x, df + nc)


_CHI = (_chi_part(gammainc), _chi_part(gammaincc), _is_left_of_mean)

ncx2 = Distribution(
    "ncx2",
    logdensity=_log_ncx2,
    below=_smaller(*_CHI, is_upper=False),
    above=_smaller(*_CHI, is_upper=True),
    support=lambda df, nc: POSITIVE,
    valid=lambda df, nc: logical_and(greater(df, 0.0), greater_equal(nc, 0.0)),
)
"""The sum of squares of `df` normal numbers, whose squared means add up to `nc`."""


# Noncentral F.


def _odds(x: Variable, n: Variable, d: Variable) -> Variable:
    return x * n / d


def _f_largest(x: Variable, n: Variable, d: Variable, nc: Variable) -> Variable:
    odds = _odds(x, n, d)
    part, half = odds / (1.0 + odds), 0.5 * nc
    middle = 0.5 * (half * part - 0.5 * n)
    return middle + sqrt(square(middle) + half * part * 0.5 * (n + d))


def _log_ncf(x: Variable, n: Variable, d: Variable, nc: Variable) -> Variable:
    odds, a, b = (expand_dims(v, -1) for v in (_odds(x, n, d), 0.5 * n, 0.5 * d))

    def density(k: Variable) -> Variable:
        return (a + k - 1.0) * log(odds) - (a + b + k) * log1p(odds) - betaln(a + k, b + 0.0 * k)

    return _mixture(_f_largest(x, n, d, nc), nc, density) + log(n / d)


def _f_part(function: Callable[..., Variable]) -> Callable[..., Variable]:
    def part(x: Variable, n: Variable, d: Variable, nc: Variable) -> Variable:
        odds, a, b = (expand_dims(v, -1) for v in (_odds(x, n, d), 0.5 * n, 0.5 * d))
        k, step = _window(_f_largest(x, n, d, nc))
        found = function(a + k, b + 0.0 * k, odds + 0.0 * k)
        return sum_of(exp(_log_poisson(k, nc) + step) * found, -1)

    return part


def _beta_below(a: Variable, b: Variable, odds: Variable) -> Variable:
    return betainc(a, b, odds / (1.0 + odds))


def _beta_above(a: Variable, b: Variable, odds: Variable) -> Variable:
    return betainc(b, a, 1.0 / (1.0 + odds))


def _is_left_of_middle(x: Variable, n: Variable, d: Variable, nc: Variable) -> Variable:
    return less(x, 1.0 + nc / n)


_F = (_f_part(_beta_below), _f_part(_beta_above), _is_left_of_middle)

ncf = Distribution(
    "ncf",
    shapes="dfn dfd nc",
    logdensity=_log_ncf,
    below=_smaller(*_F, is_upper=False),
    above=_smaller(*_F, is_upper=True),
    support=lambda n, d, nc: POSITIVE,
    valid=lambda n, d, nc: logical_and(
        logical_and(greater(n, 0.0), greater(d, 0.0)), greater_equal(nc, 0.0)
    ),
)
"""The ratio of a number of `ncx2` and one of `chi2`, each by its degrees of freedom."""


# Noncentral t: the normal distribution at x * s - nc, averaged over s = sqrt(chi2 / df).

_STEPS = np.linspace(0.0, 1.0, 241)


def scales(x: Variable, df: Variable, nc: Variable) -> tuple[Variable, Variable]:
    """Return logarithms of `s` around the largest term, and the logarithms of their weights.

    The terms fall at least like exponentials, to the left by the power `df`, and to the right like
    a normal density of the exponential. Places are hyperbolic sines: dense in the middle.
    """
    x, df, nc = stop_gradient(x), stop_gradient(df), stop_gradient(nc)
    total = square(x) + df
    root = sqrt(square(x * nc) + 4.0 * df * total)
    # Without cancellation where x * nc is negative.
    is_down = less(x * nc, 0.0)
    largest = where(is_down, 2.0 * df / (root - x * nc), 0.5 * (x * nc + root) / total)
    spread = 1.0 / sqrt(total * square(largest) + df)
    left = arcsinh(maximum(10.0, 45.0 / (df * spread)))
    way = expand_dims(left + math.asinh(10.0), -1)
    w = way * _STEPS - expand_dims(left, -1)
    spread = expand_dims(spread, -1)
    places = expand_dims(log(largest), -1) + spread * sinh(w)
    return places, log(spread * cosh(w) * (way * _STEPS[1]))


def log_chi(u: Variable, df: Variable) -> Variable:
    """Return the logarithm of the density of `u = log(sqrt(chi2 / df))`."""
    half = 0.5 * df
    return 2.0 * half * u - half * exp(2.0 * u) + half * log(half) - gammaln(half) + math.log(2.0)


def _average(rule: Callable[[Variable, Variable, Variable], Variable]) -> Callable[..., Variable]:
    """Return the logarithm of the mean over `s` of `exp(rule(s, x, nc))`."""

    def average(x: Variable, df: Variable, nc: Variable) -> Variable:
        u, weight = scales(x, df, nc)
        at, count, mean = (expand_dims(v, -1) for v in (x, df, nc))
        return log_sum(rule(exp(u), at, mean) + log_chi(u, count) + weight)

    return average


def _is_left_of_shift(x: Variable, df: Variable, nc: Variable) -> Variable:
    return less(x, nc)


def _t_below(x: Variable, df: Variable, nc: Variable) -> Variable:
    return exp(_average(lambda s, x, nc: log_ndtr(x * s - nc))(x, df, nc))


def _t_above(x: Variable, df: Variable, nc: Variable) -> Variable:
    return exp(_average(lambda s, x, nc: log_ndtr(nc - x * s))(x, df, nc))


_T = (_t_below, _t_above, _is_left_of_shift)

nct = Distribution(
    "nct",
    logdensity=_average(lambda s, x, nc: -0.5 * square(x * s - nc) - HALF_LOG_TAU + log(s)),
    below=_smaller(*_T, is_upper=False),
    above=_smaller(*_T, is_upper=True),
    support=lambda df, nc: EVERYWHERE,
    valid=lambda df, nc: logical_and(greater(df, 0.0), isfinite(nc)),
)
"""The ratio of a normal number of mean `nc` and the root of a `chi2` number by `df`."""


# Landau's law is stable. Along the path of steepest descent from its saddle point the integral has
# positive terms: the logarithm of g falls from infinity, at the angle pi, on (V. Zolotarev, 1986).


def _angles() -> tuple[Any, Any]:
    """Return nodes from 0 to pi: `-angle * cot(angle) + log(angle / sin(angle))`, and weights."""
    t = np.linspace(-3.6, 3.6, 301)
    u = 0.5 * np.pi * np.sinh(t)
    part, rest = 1.0 / (1.0 + np.exp(-2.0 * u)), 1.0 / (1.0 + np.exp(2.0 * u))
    weights = np.pi * np.pi * np.cosh(t) * part * rest * (t[1] - t[0])
    angle, other = np.pi * part, np.pi * rest
    sine = np.where(part < 0.5, np.sin(angle), np.sin(other))
    cosine = np.where(part < 0.5, np.cos(angle), -np.cos(other))
    return -angle * cosine / sine + np.log(angle / sine), weights


_LOGS, _OF_ANGLE = _angles()


_TIMES, _OF_TIME = double_exponential(401, 4.0, is_finite=False)
# From here on the integral over times is exact, and before the one over angles.
_FAR = 3.0


def _classic(x: Variable) -> Variable:
    """Return the number in the units of Landau, where the scale is half of pi."""
    return 0.5 * math.pi * x + math.log(0.5 * math.pi)


def _landau_near(x: Variable, is_density: bool) -> Variable:
    """Return the logarithm of the integral over angles, of numbers that are not far."""
    place = expand_dims(_classic(x), -1)
    log_g = minimum(_LOGS - minimum(place, _FAR), 6.5)
    return log_sum((log_g if is_density else 0.0) - exp(log_g) + np.log(_OF_ANGLE / math.pi))


def _landau_far(x: Variable, is_density: bool) -> Variable:
    """Return the logarithm of the integral over times, of far numbers."""
    place = expand_dims(maximum(_classic(x), _FAR), -1)
    t = _TIMES / stop_gradient(place)
    weight = sin(math.pi * t) if is_density else math.pi * sinc(t)
    found = exp(-t * (log(t) + place)) * weight * _OF_TIME / stop_gradient(place)
    return log(sum_of(found, -1) / math.pi)


def _is_near(x: Variable) -> Variable:
    return less(_classic(x), _FAR)


def _log_landau(x: Variable) -> Variable:
    found = where(_is_near(x), _landau_near(x, True), _landau_far(x, True))
    return found + math.log(0.5 * math.pi)


def _landau_below(x: Variable) -> Variable:
    near = exp(_landau_near(x, False))
    return where(_is_near(x), near, 1.0 - exp(_landau_far(x, False)))


def _landau_above(x: Variable) -> Variable:
    far = exp(_landau_far(x, False))
    return where(_is_near(x), 1.0 - exp(_landau_near(x, False)), far)


landau = Distribution(
    "landau",
    logdensity=_log_landau,
    below=_landau_below,
    above=_landau_above,
    support=lambda: EVERYWHERE,
)
"""Landau's distribution of energy losses."""


# The studentized range: an average over the scale, of an integral over the largest number.

_NUMBERS, _STEP = np.linspace(-9.0, 9.0, 91, retstep=True)


def _log_bell(z: Any) -> Any:
    return -0.5 * square(z) - HALF_LOG_TAU


def _log_between(z: Any, width: Variable) -> Variable:
    """Return the logarithm of the normal distribution's part from `z - width` to `z`.

    A narrow one is a Taylor series about its middle, where the difference would lose digits.
    """
    is_narrow = less(width, 3e-4)
    narrow, wide = where(is_narrow, width, 1e-4), where(is_narrow, 1.0, width)
    is_left = less(z, 0.0)
    up, down = where(is_left, z, wide - z), where(is_left, z - wide, -z)
    middle = z - 0.5 * narrow
    series = log(narrow) + _log_bell(middle) + square(narrow) * (square(middle) - 1.0) / 24.0
    return where(is_narrow, series, log(maximum(ndtr(up) - ndtr(down), 1e-300)))


def _range_density(width: Variable, k: Variable) -> Variable:
    z = _NUMBERS + stop_gradient(0.5 * width)
    front = log(k) + log(k - 1.0) + math.log(_STEP)
    return log_sum(front + _log_bell(z) + _log_bell(z - width) + (k - 2.0) * _log_between(z, width))


def _range_below(width: Variable, k: Variable) -> Variable:
    z = lift(_NUMBERS)
    return log_sum(log(k * _STEP) + _log_bell(z) + (k - 1.0) * _log_between(z, width))


def _range_above(width: Variable, k: Variable) -> Variable:
    z = _NUMBERS + stop_gradient(0.5 * width)
    whole = log_ndtr(z)
    before = minimum(exp(log_ndtr(z - width) - whole), 1.0 - 1e-16)
    lost = -expm1((k - 1.0) * log1p(-before))
    return log_sum(log(k * _STEP) + _log_bell(z) + (k - 1.0) * whole + log(maximum(lost, 1e-300)))


def _over_scales(rule: Rule, is_tail: bool, is_density: bool = False) -> Rule:
    """Return the logarithm of the average of `exp(rule)` over the scale.

    In the tail the integrand is that of Student's distribution at `q / sqrt(2)`.
    """

    def average(q: Variable, k: Variable, df: Variable) -> Variable:
        u, weight = scales(q * (math.sqrt(0.5) if is_tail else 0.0), df, 0.0 * q)
        width = expand_dims(expand_dims(q, -1) * exp(u), -1)
        found = rule(width, expand_dims(expand_dims(k, -1), -1))
        found = found + log_chi(u, expand_dims(df, -1)) + weight
        return log_sum(found + u if is_density else found)

    return average


def _log_range_at_zero(df: Variable) -> Variable:
    """Return the logarithm of the density of the range of two numbers at 0."""
    mean = gammaln(0.5 * (df + 1.0)) - gammaln(0.5 * df) + 0.5 * log(2.0 / df)
    return mean - 0.5 * math.log(math.pi)


studentized_range = Distribution(
    "studentized_range",
    shapes="k df",
    logdensity=_over_scales(_range_density, is_tail=True, is_density=True),
    log_below=_over_scales(_range_below, is_tail=False),
    log_above=_over_scales(_range_above, is_tail=True),
    support=lambda k, df: POSITIVE,
    limits=lambda k, df: (limit_of_power(k - 2.0, _log_range_at_zero(df)), None),
    valid=lambda k, df: logical_and(
        greater(k, 1.0), logical_and(greater(df, 0.0), less_equal(df, 1e5))
    ),
)
"""The range of `k` normal numbers by an estimate of their deviation, for `df` up to 1e5."""
