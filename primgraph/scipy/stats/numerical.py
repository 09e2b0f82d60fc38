"""Distributions whose functions are integrals of the density, series or roots."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primgraph.operators.elementwise.arithmetic import abs, floor, minimum, round, square
from primgraph.operators.elementwise.elementary import (
    arcsinh,
    exp,
    log,
    log1p,
    sqrt,
)
from primgraph.operators.elementwise.logic import (
    equal,
    greater,
    greater_equal,
    isfinite,
    less,
    less_equal,
    logical_and,
    where,
)
from primgraph.operators.elementwise.scipy_calls import i0e
from primgraph.operators.elementwise.special_compositions import binom, boxcox, cosm1
from primgraph.operators.elementwise.special_functions import (
    expit,
    gammaln,
    log_expit,
    log_ndtr,
)
from primgraph.operators.reduce.reductions import max as max_of
from primgraph.operators.reduce.reductions import sum as sum_of
from primgraph.operators.shape.creation import stop_gradient
from primgraph.operators.shape.manipulation import broadcast_arrays
from primgraph.operators.shape.shaping import expand_dims
from primgraph.operators.variable import Variable
from primgraph.scipy.stats.closed import logistic
from primgraph.scipy.stats.distribution import Distribution
from primgraph.scipy.stats.forms import transformed
from primgraph.scipy.stats.integrals import PLACES, total
from primgraph.scipy.stats.parts import (
    EVERYWHERE,
    HALF_LOG_TAU,
    POSITIVE,
    log_sum,
    vanishes_at_start,
)
from primgraph.scipy.stats.quantiles import bracketed_root, with_slopes


def _positive(*shapes: Variable) -> Any:
    return POSITIVE


def _all(*shapes: Variable) -> Any:
    return EVERYWHERE


skewnorm = Distribution(
    "skewnorm",
    logdensity=lambda x, a: math.log(2.0) - HALF_LOG_TAU - 0.5 * square(x) + log_ndtr(a * x),
    support=_all,
    valid=isfinite,
    middle=lambda a: math.sqrt(2.0 / math.pi) * a / sqrt(1.0 + square(a)),
)
"""The normal density, times that part of a normal distribution that is below `a * x`."""


# On the circle.


def _log_vonmises(x: Variable, kappa: Variable) -> Variable:
    return kappa * cosm1(x) - math.log(2.0 * math.pi) - log(i0e(kappa))


vonmises_line = Distribution(
    "vonmises_line",
    logdensity=_log_vonmises,
    support=lambda kappa: (-math.pi, math.pi),
    valid=lambda kappa: greater_equal(kappa, 0.0),
)
"""Von Mises' distribution, from minus pi to pi."""


def _turns(x: Variable) -> tuple[Variable, Variable]:
    turns = stop_gradient(round(x / (2.0 * math.pi)))
    return turns, x - 2.0 * math.pi * turns


def _vonmises_below(x: Variable, kappa: Variable) -> Variable:
    turns, rest = _turns(x)
    return turns + vonmises_line.rule("cdf")(rest, kappa)


vonmises = Distribution(
    "vonmises",
    logdensity=_log_vonmises,
    below=_vonmises_below,
    above=lambda x, kappa: _vonmises_below(-x, kappa),
    quantile=vonmises_line.rule("ppf"),
    upper_quantile=vonmises_line.rule("isf"),
    support=_all,
    valid=lambda kappa: greater_equal(kappa, 0.0),
)
"""Von Mises' distribution of angles; each turn adds one to the lower part, as in SciPy."""


# Tukey's lambda distribution has a closed form of the quantiles.


def _tukey_quantile(y: Variable, lam: Variable) -> Variable:
    """Return the quantile of `expit(y)`."""
    return boxcox(expit(y), lam) - boxcox(expit(-y), lam)


def _tukey_slope(y: Variable, lam: Variable) -> Variable:
    below, above = log_expit(y), log_expit(-y)
    return exp(lam * below + above) + exp(lam * above + below)


def _tukey_into(x: Variable, lam: Variable) -> Variable:
    """Return the `y` whose `expit` is the lower part."""
    x, lam = broadcast_arrays(x, lam)
    at, given = stop_gradient(x), stop_gradient(lam)

    def excess_and_step(y: Any) -> tuple[Any, Any]:
        excess = _tukey_quantile(y, given) - at
        return excess, excess / _tukey_slope(y, given)

    end = 0.0 * at + 740.0
    found = bracketed_root(excess_and_step, -end, end, 0.0 * at)
    solved: Variable = with_slopes(lambda y, x, lam: _tukey_quantile(y, lam) - x, found, [x, lam])
    return solved


def _tukey_support(lam: Variable) -> tuple[Variable, Variable]:
    is_bounded = greater(lam, 0.0)
    end = where(is_bounded, 1.0 / where(is_bounded, lam, 1.0), math.inf)
    return -end, end


tukeylambda = transformed(
    "tukeylambda", logistic, "lam", support=_tukey_support, valid=isfinite,
    into=_tukey_into,
    log_slope=lambda x, lam: -log(_tukey_slope(_tukey_into(x, lam), lam)),
    back=_tukey_quantile,
)  # fmt: skip
"""Tukey's lambda distribution, of quantiles `(q**lam - (1 - q)**lam) / lam`."""


def _breit_log(x: Variable, rho: Variable) -> Variable:
    size = sqrt(1.0 + 1.0 / square(rho))
    constant = log(size) + 0.5 * math.log(2.0) - 0.5 * log1p(size) + math.log(2.0 / math.pi)
    return constant - log1p(square((x - rho) * (x + rho) / rho))


rel_breitwigner = Distribution(
    "rel_breitwigner",
    logdensity=_breit_log,
    support=_positive,
    middle=lambda rho: rho,
)
"""The relativistic distribution of resonances by Breit and Wigner."""


# Sums of uniform numbers, and Kolmogorov's distribution: sums of terms that end or vanish.

_TERMS = np.arange(24.0)
_MOST = 32.0


def _irwinhall_sum(x: Variable, n: Variable, power: Any) -> Variable:
    """Return the sum over `k` of `(-1)**k * binom(n, k) * max(x - k, 0)**power / power!`."""
    place, count = expand_dims(x, -1), expand_dims(n, -1)
    exponent = expand_dims(power, -1)
    rest = place - _TERMS
    is_in = greater(rest, 0.0)
    raised = exp(exponent * log(where(is_in, rest, 1.0)) - gammaln(exponent + 1.0))
    signs = 1.0 - 2.0 * (_TERMS % 2.0)
    return sum_of(where(is_in, signs * binom(count, _TERMS) * raised, 0.0), -1)


def _irwinhall_log(x: Variable, n: Variable) -> Variable:
    return log(_irwinhall_sum(where(less(x, 0.5 * n), x, n - x), n, n - 1.0))


def _irwinhall_below(x: Variable, n: Variable) -> Variable:
    is_left = less(x, 0.5 * n)
    part = _irwinhall_sum(where(is_left, x, n - x), n, 1.0 * n)
    return where(is_left, part, 1.0 - part)


irwinhall = Distribution(
    "irwinhall",
    logdensity=_irwinhall_log,
    below=_irwinhall_below,
    above=lambda x, n: _irwinhall_below(n - x, n),
    support=lambda n: (0.0, n),
    valid=lambda n: logical_and(
        logical_and(greater_equal(n, 1.0), less_equal(n, _MOST)), equal(n, floor(n))
    ),
)
"""The sum of `n` uniform numbers, of up to 32, by an alternating sum; NaN for more."""

_ODD, _WHOLE = 2.0 * np.arange(6.0) + 1.0, np.arange(1.0, 7.0)
_SIGNS = 1.0 - 2.0 * (np.arange(6.0) % 2.0)


def _kolmogorov_near(x: Variable) -> Variable:
    near = expand_dims(where(less(x, 0.9), x, 0.5), -1)
    return sum_of(exp(-square(_ODD * (0.125**0.5 * math.pi) / near)), -1)


def _kolmogorov_far(x: Variable) -> Variable:
    far = expand_dims(where(less(x, 0.9), 1.0, x), -1)
    return 2.0 * sum_of(_SIGNS * exp(-2.0 * square(_WHOLE * far)), -1)


def _kolmogorov_below(x: Variable) -> Variable:
    near = where(less(x, 0.9), x, 0.5)
    small = math.sqrt(2.0 * math.pi) / near * _kolmogorov_near(x)
    return where(less(x, 0.9), small, 1.0 - _kolmogorov_far(x))


def _kolmogorov_log(x: Variable) -> Variable:
    is_near = less(x, 0.9)
    near, far = expand_dims(where(is_near, x, 0.5), -1), expand_dims(where(is_near, 1.0, x), -1)
    powers = square(_ODD * (0.5 * math.pi))
    terms = exp(-0.5 * (powers - powers[0]) / square(near)) * (powers / square(near) - 1.0)
    small = log(sum_of(terms, -1)) + HALF_LOG_TAU - 2.0 * log(near[..., 0])
    small = small - 0.5 * powers[0] / square(near[..., 0])
    rest = _SIGNS * square(_WHOLE) * exp(-2.0 * (square(_WHOLE) - 1.0) * square(far))
    large = log(8.0 * far[..., 0]) + log(sum_of(rest, -1)) - 2.0 * square(far[..., 0])
    return where(is_near, small, large)


def _kolmogorov_above(x: Variable) -> Variable:
    return where(less(x, 0.9), 1.0 - _kolmogorov_below(x), _kolmogorov_far(x))


kstwobign = Distribution(
    "kstwobign",
    logdensity=_kolmogorov_log,
    below=_kolmogorov_below,
    above=_kolmogorov_above,
    support=_positive,
    limits=vanishes_at_start,
)
"""Kolmogorov's limit distribution of the largest difference of two distribution functions."""


# Smirnov's distribution: sums of as many terms as there are numbers (Z. Birnbaum and F. Tingey,
# 1951). The first piece has a closed form.

_MOST_NUMBERS = float(PLACES[-1])


def _smirnov_terms(x: Variable, n: Variable) -> tuple[Variable, Variable]:
    """Return the logarithms of the terms of the upper part, and the slopes of these."""
    place, count = expand_dims(x, -1), expand_dims(n, -1)
    rest = 1.0 - place - PLACES / count
    is_in = greater(rest, 0.0)
    j, rest = where(is_in, PLACES, 0.0), where(is_in, rest, 1.0 - place)
    before = place + j / count
    choose = gammaln(count + 1.0) - gammaln(j + 1.0) - gammaln(count - j + 1.0)
    terms = choose + log(place) + (j - 1.0) * log(before) + (count - j) * log(rest)
    slopes = 1.0 / place + (j - 1.0) / before - (count - j) / rest
    return where(is_in, terms, -math.inf), slopes


def _pieces(x: Variable, n: Variable) -> tuple[Variable, Variable, Variable]:
    """Return where the closed form holds, and the number on both sides."""
    is_first = less(n * x, 1.0)
    return is_first, where(is_first, x, 0.5 / n), where(is_first, 1.0 / n, x)


def _smirnov_above(x: Variable, n: Variable) -> Variable:
    is_first, small, large = _pieces(x, n)
    terms, _ = _smirnov_terms(large, n)
    return where(is_first, 1.0 - small * exp((n - 1.0) * log1p(small)), sum_of(exp(terms), -1))


def _smirnov_below(x: Variable, n: Variable) -> Variable:
    is_first, small, large = _pieces(x, n)
    terms, _ = _smirnov_terms(large, n)
    return where(is_first, small * exp((n - 1.0) * log1p(small)), 1.0 - sum_of(exp(terms), -1))


def _log_smirnov(x: Variable, n: Variable) -> Variable:
    is_first, small, large = _pieces(x, n)
    # Slopes of the terms are infinite at the upper end, where all terms but one are zero.
    terms, slopes = _smirnov_terms(minimum(large, 1.0 - 2.0**-53), n)
    closed = (n - 2.0) * log1p(small) + log1p(n * small)
    # By the largest term, as densities far below one would be zero.
    most = stop_gradient(max_of(terms, -1, keepdims=True))
    series = log(-sum_of(exp(terms - most) * slopes, -1)) + most[..., 0]
    found = where(is_first, closed, series)
    return where(less(x, 1.0), found, where(equal(n, 1.0), 0.0, -math.inf))


ksone = Distribution(
    "ksone",
    logdensity=_log_smirnov,
    below=_smirnov_below,
    above=_smirnov_above,
    support=lambda n: (0.0, 1.0),
    valid=lambda n: logical_and(
        logical_and(greater_equal(n, 1.0), less_equal(n, _MOST_NUMBERS)), equal(n, floor(n))
    ),
)
"""Smirnov's one-sided distribution, of up to 1,023 numbers; NaN for more."""


# Densities with Bessel functions.

_NODES = np.linspace(0.0, 1.0, 201)
_WEIGHTS = np.where((_NODES == 0.0) | (_NODES == 1.0), 0.5, 1.0) / 200.0


def log_kve(v: Variable, x: Variable) -> Variable:
    """Return the logarithm of `kve(v, x)`, by the trapezoidal rule for its integral.

    The integrand is `exp(-x * (cosh(t) - 1)) * cosh(v * t)` (DLMF 10.32.9), entire and even, so
    that 201 nodes give all digits, for `x` from 1e-12 on.
    """
    v, x = broadcast_arrays(v, x)
    order = abs(v)
    slope = 45.0 + sqrt(45.0 * x)
    end = expand_dims(stop_gradient(arcsinh((order + slope) / x) + 45.0 / slope), -1)
    t = end * _NODES
    order, at = expand_dims(order, -1), expand_dims(x, -1)
    exponent = order * t - 2.0 * at * square(0.5 * (exp(0.5 * t) - exp(-0.5 * t)))
    even = log(0.5 * end * _WEIGHTS * (1.0 + exp(-2.0 * order * t)))
    return log_sum(exponent + even)


rice = Distribution(
    "rice",
    logdensity=lambda x, b: log(x) - 0.5 * square(x - b) + log(i0e(x * b)),
    support=_positive,
    valid=lambda b: greater_equal(b, 0.0),
    middle=lambda b: sqrt(1.0 + square(b)),
)
"""The length of a normal vector of two dimensions, of mean `b`."""


def _root(a: Variable, b: Variable) -> Variable:
    return sqrt((a - b) * (a + b))


def _log_norminvgauss(x: Variable, a: Variable, b: Variable) -> Variable:
    length = sqrt(1.0 + square(x))
    front = log(a / math.pi) + b * x - a * length + _root(a, b)
    return front + log_kve(0.0 * x + 1.0, a * length) - log(length)


norminvgauss = Distribution(
    "norminvgauss",
    logdensity=_log_norminvgauss,
    support=_all,
    valid=lambda a, b: logical_and(greater(a, 0.0), less(abs(b), a)),
    middle=lambda a, b: b / _root(a, b),
)
"""The normal-inverse Gaussian distribution."""


def _log_geninvgauss(x: Variable, p: Variable, b: Variable) -> Variable:
    front = (p - 1.0) * log(x) - 0.5 * b * square(x - 1.0) / x
    return front - math.log(2.0) - log_kve(p, b)


geninvgauss = Distribution(
    "geninvgauss",
    logdensity=_log_geninvgauss,
    support=_positive,
    valid=lambda p, b: logical_and(isfinite(p), greater(b, 0.0)),
    middle=lambda p, b: (p - 1.0 + sqrt(square(p - 1.0) + square(b))) / b,
)
"""The generalized inverse Gaussian distribution."""


def _log_genhyperbolic(x: Variable, p: Variable, a: Variable, b: Variable) -> Variable:
    d, length = _root(a, b), sqrt(1.0 + square(x))
    front = p * log(d) - HALF_LOG_TAU + (0.5 - p) * log(a) - log_kve(p, d) + d
    other = log_kve(p - 0.5, a * length) - a * length + b * x
    return front + other + (p - 0.5) * log(length)


genhyperbolic = Distribution(
    "genhyperbolic",
    logdensity=_log_genhyperbolic,
    support=_all,
    valid=lambda p, a, b: logical_and(isfinite(p), less(abs(b), a)),
    middle=lambda p, a, b: (
        b / _root(a, b) * exp(log_kve(p + 1.0, _root(a, b)) - log_kve(p, _root(a, b)))
    ),
)
"""The generalized hyperbolic distribution, for `abs(b) < a`."""


def _log_gausshyper(x: Variable, a: Any, b: Any, c: Any, z: Any) -> Any:
    return (a - 1.0) * log(x) + (b - 1.0) * log1p(-x) - c * log1p(z * x)


def _log_gausshyper_total(a: Any, b: Any, c: Any, z: Any) -> Variable:
    a, b, c, z = (expand_dims(v, -1) for v in (a, b, c, z))

    def density(t: Any, rest: Any) -> Any:
        return exp((a - 1.0) * np.log(t) + (b - 1.0) * np.log(rest) - c * log1p(z * t))

    return log(total(density))


gausshyper = Distribution(
    "gausshyper",
    shapes="a b c z",
    logdensity=lambda x, *own: _log_gausshyper(x, *own) - _log_gausshyper_total(*own),
    support=lambda *own: (0.0, 1.0),
    valid=lambda a, b, c, z: logical_and(
        logical_and(greater(a, 0.0), greater(b, 0.0)), logical_and(isfinite(c), greater(z, -1.0))
    ),
    middle=lambda a, b, c, z: a / (a + b),
)
"""Gauss's hypergeometric distribution: a beta density by `(1 + z * x)**c`."""
