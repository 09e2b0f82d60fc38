"""Distributions of real numbers, by SciPy's names and parameters."""

from __future__ import annotations

import math

from primgraph.operators.elementwise.arithmetic import abs, maximum, square
from primgraph.operators.elementwise.elementary import exp, expm1, log, log1p, sqrt
from primgraph.operators.elementwise.logic import equal, isinf, less, where
from primgraph.operators.elementwise.special_functions import (
    betainc,
    betaincc,
    betaln,
    gammainc,
    gammaincc,
    gammaln,
    log_ndtr,
    ndtr,
    ndtri,
)
from primgraph.operators.variable import Variable
from primgraph.scipy.stats.distribution import Distribution
from primgraph.scipy.stats.parts import EVERYWHERE, HALF_LOG_TAU, POSITIVE, Power, Rule, log1mexp

norm = Distribution(
    "norm",
    logdensity=lambda y: -0.5 * square(y) - HALF_LOG_TAU,
    below=ndtr,
    above=lambda y: ndtr(-y),
    log_below=log_ndtr,
    log_above=lambda y: log_ndtr(-y),
    quantile=ndtri,
    upper_quantile=lambda q: -ndtri(q),
    support=lambda: EVERYWHERE,
)
"""The normal distribution: `loc` is the mean and `scale` the standard deviation."""

uniform = Distribution(
    "uniform",
    logdensity=lambda y: 0.0 * y,
    below=lambda y: y,
    above=lambda y: 1.0 - y,
    log_below=log,
    log_above=lambda y: log1p(-y),
    quantile=lambda q: q,
    upper_quantile=lambda q: 1.0 - q,
    support=lambda: (0.0, 1.0),
)
"""Equal density from `loc` to `loc + scale`."""

expon = Distribution(
    "expon",
    logdensity=lambda y: -y,
    below=lambda y: -expm1(-y),
    above=lambda y: exp(-y),
    log_below=log1mexp,
    log_above=lambda y: -y,
    quantile=lambda q: -log1p(-q),
    upper_quantile=lambda q: -log(q),
    support=lambda: POSITIVE,
)
"""Waiting times of mean `scale`, from `loc` on."""


def _laplace_below(y: Variable) -> Variable:
    """Two exponentials. At 0, where they meet smoothly, the line that both touch."""
    tail = 0.5 * exp(-abs(y))
    return where(y < 0.0, tail, where(equal(y, 0.0), 0.5 + 0.5 * y, 1.0 - tail))


def _log_laplace_below(y: Variable) -> Variable:
    is_left = y < 0.0
    return where(is_left, y - math.log(2.0), log1p(-0.5 * exp(-where(is_left, 1.0, y))))


laplace = Distribution(
    "laplace",
    logdensity=lambda y: -abs(y) - math.log(2.0),
    below=_laplace_below,
    above=lambda y: _laplace_below(-y),
    quantile=lambda q: where(q < 0.5, log(2.0 * q), -log(2.0 * (1.0 - q))),
    upper_quantile=lambda q: where(q < 0.5, -log(2.0 * q), log(2.0 * (1.0 - q))),
    log_below=_log_laplace_below,
    log_above=lambda y: _log_laplace_below(-y),
    support=lambda: EVERYWHERE,
)
"""Two exponential distributions, back to back at `loc`."""


def _log_of_lognorm(y: Variable, s: Variable) -> Variable:
    is_zero = y <= 0.0
    logarithm = log(where(is_zero, 1.0, y))
    found = -0.5 * square(logarithm / s) - logarithm - log(s) - HALF_LOG_TAU
    return where(is_zero, -math.inf, found)


def _logarithm_rule(rule: Rule, sign: float, at_zero: float) -> Rule:
    """Return `rule(sign * log(y) / s)`, and its limit at 0, where all its slopes are 0."""

    def log_rule(y: Variable, s: Variable) -> Variable:
        is_zero = y <= 0.0
        return where(is_zero, at_zero, rule(sign * log(where(is_zero, 1.0, y)) / s))

    return log_rule


def _lognorm_quantile(q: Variable, s: Variable) -> Variable:
    """`exp(s * ndtri(q))`, whose slope by q is infinite at 0, and by s is 0."""
    is_zero = equal(q, 0.0)
    found = exp(s * ndtri(where(is_zero, 0.5, q)))
    return where(is_zero, sqrt(where(is_zero, q, 1.0)), found)


lognorm = Distribution(
    "lognorm",
    logdensity=_log_of_lognorm,
    below=_logarithm_rule(ndtr, 1.0, 0.0),
    above=_logarithm_rule(ndtr, -1.0, 1.0),
    log_below=_logarithm_rule(log_ndtr, 1.0, -math.inf),
    log_above=_logarithm_rule(log_ndtr, -1.0, 0.0),
    quantile=_lognorm_quantile,
    support=lambda s: POSITIVE,
)
"""`scale` times the exponential of a normal number of standard deviation `s`."""

gamma = Distribution(
    "gamma",
    logdensity=lambda y, a: -y - gammaln(a),
    powers=lambda y, a: [Power(a - 1.0, y)],
    below=lambda y, a: gammainc(a, y),
    above=lambda y, a: gammaincc(a, y),
    support=lambda a: POSITIVE,
)
"""Waiting times for `a` events, of mean `a * scale`."""

chi2 = Distribution(
    "chi2",
    logdensity=lambda y, df: -0.5 * y - gammaln(0.5 * df) - 0.5 * math.log(2.0) * df,
    powers=lambda y, df: [Power(0.5 * df - 1.0, y)],
    below=lambda y, df: gammainc(0.5 * df, 0.5 * y),
    above=lambda y, df: gammaincc(0.5 * df, 0.5 * y),
    support=lambda df: POSITIVE,
)
"""The sum of `df` squares of normal numbers."""

beta = Distribution(
    "beta",
    logdensity=lambda y, a, b: -betaln(a, b) + 0.0 * y,
    powers=lambda y, a, b: [Power(a - 1.0, y), Power(b - 1.0, -y, plus_one=True)],
    below=lambda y, a, b: betainc(a, b, y),
    above=lambda y, a, b: betaincc(a, b, y),
    support=lambda a, b: (0.0, 1.0),
)
"""Numbers from 0 to 1, of density `y**(a - 1) * (1 - y)**(b - 1)`."""

# Up to here the series of Student's distribution at zero is exact.
_NEAR = 1e-3


def _finite(df: Variable) -> tuple[Variable, Variable]:
    """Whether there are infinitely many degrees of freedom, and how many where there are not."""
    is_normal = isinf(df)
    return is_normal, where(is_normal, 1.0, df)


def _log_t(y: Variable, df: Variable) -> Variable:
    is_normal, n = _finite(df)
    found = -betaln(0.5 * n, 0.5) - 0.5 * log(n) - 0.5 * (n + 1.0) * log1p(square(y) / n)
    return where(is_normal, -0.5 * square(y) - HALF_LOG_TAU, found)


def _t_below(y: Variable, df: Variable) -> Variable:
    """By the incomplete beta function, whose slope is infinite at zero: there by its series.

    Of the two arguments that add up to one it is asked by the smaller, which is the exact one.
    """
    is_normal, n = _finite(df)
    u = y / sqrt(n)
    is_near = maximum(abs(u), abs(y)) < _NEAR
    squared = square(where(is_near, 1.0, u))
    is_wide = squared > 1.0
    wide = betainc(0.5 * n, 0.5, 1.0 / (1.0 + squared))
    narrow = where(is_wide, 0.5, squared)
    tail = 0.5 * where(is_wide, wide, betaincc(0.5, 0.5 * n, narrow / (1.0 + narrow)))
    far = where(less(y, 0.0), tail, 1.0 - tail)
    small = square(where(is_near, u, 0.0))
    odd = 1.0 - (n + 1.0) / 6.0 * small * (1.0 - 0.15 * (n + 3.0) * small)
    near = 0.5 + exp(-betaln(0.5 * n, 0.5)) * where(is_near, u, 0.0) * odd
    return where(is_normal, ndtr(y), where(is_near, near, far))


t = Distribution(
    "t",
    logdensity=_log_t,
    below=_t_below,
    above=lambda y, df: _t_below(-y, df),
    support=lambda df: EVERYWHERE,
)
"""Student's distribution of `df` degrees of freedom; the normal one of infinitely many."""
