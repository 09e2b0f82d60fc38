"""Distributions of functions of normal numbers, and mixtures of these."""

from __future__ import annotations

import math
from typing import Any

from primgraph.operators.elementwise.arithmetic import logaddexp, square
from primgraph.operators.elementwise.elementary import (
    arcsinh,
    erf,
    exp,
    log,
    log1p,
    sigmoid,
    sinh,
    sqrt,
)
from primgraph.operators.elementwise.logic import greater, isfinite, less, logical_and, where
from primgraph.operators.elementwise.special_functions import (
    erfcx,
    erfinv,
    log_ndtr,
    logit,
    ndtr,
    ndtri,
)
from primgraph.operators.variable import Variable
from primgraph.scipy.stats.continuous import lognorm, norm
from primgraph.scipy.stats.distribution import Distribution
from primgraph.scipy.stats.forms import at_ends, transformed
from primgraph.scipy.stats.parts import (
    EVERYWHERE,
    HALF_LOG_TAU,
    POSITIVE,
    log1mexp,
    vanishes_at_start,
)

_LOG_TWO = math.log(2.0)


def _positive(*shapes: Variable) -> Any:
    return POSITIVE


def _all(*shapes: Variable) -> Any:
    return EVERYWHERE


def _log_normal(x: Variable) -> Variable:
    return -0.5 * square(x) - HALF_LOG_TAU


def _twice_beyond(x: Variable) -> Variable:
    return 2.0 * ndtr(-x)


def log_sub(larger: Variable, smaller: Variable) -> Variable:
    """Return `log(exp(larger) - exp(smaller))`."""
    return larger + log1mexp(larger - smaller)


halfnorm = Distribution(
    "halfnorm",
    logdensity=lambda x: _log_normal(x) + _LOG_TWO,
    below=lambda x: erf(x * math.sqrt(0.5)),
    above=_twice_beyond,
    log_above=lambda x: log_ndtr(-x) + _LOG_TWO,
    quantile=lambda q: math.sqrt(2.0) * erfinv(q),
    upper_quantile=lambda q: -ndtri(0.5 * q),
    support=_positive,
)
"""The magnitude of a normal number."""

gibrat = transformed(
    "gibrat", lognorm, "", support=_positive, given=lambda: (1.0,),
    into=lambda x: x, log_slope=lambda x: 0.0 * x, back=lambda y: y,
)  # fmt: skip
"""`lognorm` of `s` 1."""

levy = transformed(
    "levy", halfnorm, "", support=_positive, limits=vanishes_at_start, decreasing=True,
    into=lambda x: x**-0.5,
    log_slope=lambda x: -1.5 * log(x) - _LOG_TWO,
    back=lambda y: 1.0 / square(y),
)  # fmt: skip
"""The inverse of the square of a normal number."""

levy_l = transformed(
    "levy_l", halfnorm, "", support=lambda: (-math.inf, 0.0), limits=lambda: (None, -math.inf),
    into=lambda x: (-x) ** -0.5,
    log_slope=lambda x: -1.5 * log(-x) - _LOG_TWO,
    back=lambda y: -1.0 / square(y),
)  # fmt: skip
"""`levy`, of negative numbers."""

moyal = transformed(
    "moyal", halfnorm, "", support=_all, decreasing=True,
    into=lambda x: exp(-0.5 * x),
    log_slope=lambda x: -0.5 * x - _LOG_TWO,
    back=lambda y: -2.0 * log(y),
)  # fmt: skip
"""Moyal's approximation of Landau's distribution."""

johnsonsu = transformed(
    "johnsonsu", norm, "a b", support=_all,
    valid=lambda a, b: logical_and(isfinite(a), greater(b, 0.0)),
    into=lambda x, a, b: a + b * arcsinh(x),
    log_slope=lambda x, a, b: log(b) - 0.5 * log1p(square(x)),
    back=lambda y, a, b: sinh((y - a) / b),
)  # fmt: skip
"""Johnson's unbounded distribution."""

johnsonsb = transformed(
    "johnsonsb", norm, "a b", support=lambda a, b: (0.0, 1.0),
    limits=lambda a, b: (-math.inf, -math.inf),
    valid=lambda a, b: logical_and(isfinite(a), greater(b, 0.0)),
    into=lambda x, a, b: a + b * logit(x),
    log_slope=lambda x, a, b: log(b) - log(x) - log1p(-x),
    back=lambda y, a, b: sigmoid((y - a) / b),
)  # fmt: skip
"""Johnson's bounded distribution."""

fatiguelife = transformed(
    "fatiguelife", norm, "c", support=_positive, limits=vanishes_at_start,
    into=lambda x, c: (x - 1.0) / (c * sqrt(x)),
    log_slope=lambda x, c: log1p(x) - 1.5 * log(x) - log(2.0 * c),
    back=lambda y, c: exp(2.0 * arcsinh(0.5 * c * y)),
)  # fmt: skip
"""The distribution of Birnbaum and Saunders."""

alpha = Distribution(
    "alpha",
    logdensity=lambda x, a: _log_normal(a - 1.0 / x) - 2.0 * log(x) - log_ndtr(a),
    log_below=lambda x, a: log_ndtr(a - 1.0 / x) - log_ndtr(a),
    below=lambda x, a: ndtr(a - 1.0 / x) / ndtr(a),
    quantile=at_ends(lambda q, a: 1.0 / (a - ndtri(q * ndtr(a))), _positive, 0.0),
    support=_positive,
    limits=vanishes_at_start,
)
"""The inverse of a normal number of mean `a`, cut off at 0."""


# Sums and differences of normal parts.

foldnorm = Distribution(
    "foldnorm",
    logdensity=lambda x, c: logaddexp(_log_normal(x - c), _log_normal(x + c)),
    below=lambda x, c: ndtr(x - c) - ndtr(-x - c),
    above=lambda x, c: ndtr(c - x) + ndtr(-x - c),
    support=_positive,
    valid=lambda c: c >= 0.0,
)
"""The magnitude of a normal number of mean `c`."""


def _exponnorm_log(x: Variable, k: Variable) -> Variable:
    rate = 1.0 / k
    return rate * (0.5 * rate - x) + log_ndtr(x - rate) - log(k)


def _exponnorm_above(x: Variable, k: Variable) -> Variable:
    rate = 1.0 / k
    return ndtr(-x) + exp(rate * (0.5 * rate - x) + log_ndtr(x - rate))


def _exponnorm_log_below(x: Variable, k: Variable) -> Variable:
    rate = 1.0 / k
    return log_sub(log_ndtr(x), rate * (0.5 * rate - x) + log_ndtr(x - rate))


exponnorm = Distribution(
    "exponnorm",
    shapes="K",
    logdensity=_exponnorm_log,
    log_below=_exponnorm_log_below,
    above=_exponnorm_above,
    support=_all,
)
"""The sum of a normal number and an exponential one of mean `K`."""


def _invgauss_log(x: Variable, mu: Variable) -> Variable:
    return -HALF_LOG_TAU - 1.5 * log(x) - square((x - mu) / mu) / (2.0 * x)


def _invgauss_logs(x: Variable, mu: Variable) -> tuple[Variable, Variable]:
    root = 1.0 / sqrt(x)
    left, right = root * (x / mu - 1.0), -root * (x / mu + 1.0)
    return left, 2.0 / mu + log_ndtr(right)


def _invgauss_log_below(x: Variable, mu: Variable) -> Variable:
    left, other = _invgauss_logs(x, mu)
    return logaddexp(log_ndtr(left), other)


def _invgauss_log_above(x: Variable, mu: Variable) -> Variable:
    """Return it by Mills' ratios in the upper tail: both parts have the same density there."""
    left, _ = _invgauss_logs(x, mu)
    is_tail = greater(left, 0.0)
    near = where(is_tail, left, 1.0)
    apart = mills(near) - mills(near + 2.0 / sqrt(where(is_tail, x, 1.0)))
    below = _invgauss_log_below(where(is_tail, 0.5 * mu, x), mu)
    return where(is_tail, _log_normal(near) + log(apart), log1mexp(-below))


def mills(z: Variable) -> Variable:
    """Return Mills' ratio: the upper part of the normal distribution by its density."""
    return math.sqrt(0.5 * math.pi) * erfcx(z * math.sqrt(0.5))


invgauss = Distribution(
    "invgauss",
    shapes="mu",
    logdensity=_invgauss_log,
    log_below=_invgauss_log_below,
    log_above=_invgauss_log_above,
    support=_positive,
    limits=vanishes_at_start,
)
"""The inverse Gaussian distribution of mean `mu`."""

wald = transformed(
    "wald", invgauss, "", support=_positive, limits=vanishes_at_start, given=lambda: (1.0,),
    into=lambda x: x, log_slope=lambda x: 0.0 * x, back=lambda y: y,
)  # fmt: skip
"""`invgauss` of `mu` 1."""

recipinvgauss = transformed(
    "recipinvgauss", invgauss, "mu", support=_positive, limits=vanishes_at_start,
    given=lambda mu: (mu,), decreasing=True,
    into=lambda x, mu: 1.0 / x,
    log_slope=lambda x, mu: -2.0 * log(x),
    back=lambda y, mu: 1.0 / y,
)  # fmt: skip
"""The inverse of a number of `invgauss`."""


def _log_between(a: Variable, b: Variable) -> Variable:
    """Return the logarithm of the normal probability from `a` to `b`, by the nearer tail."""
    is_left = less(a + b, 0.0)
    low, high = where(is_left, a, -b), where(is_left, b, -a)
    return log_sub(log_ndtr(high), log_ndtr(low))


truncnorm = Distribution(
    "truncnorm",
    logdensity=lambda x, a, b: _log_normal(x) - _log_between(a, b),
    log_below=lambda x, a, b: _log_between(a, x) - _log_between(a, b),
    log_above=lambda x, a, b: _log_between(x, b) - _log_between(a, b),
    support=lambda a, b: (a, b),
    valid=less,
)
"""A normal number between `a` and `b`."""


def _crystalball_parts(x: Variable, beta: Variable, m: Variable) -> tuple[Variable, ...]:
    """Return the logarithms of the tail's integral up to its end, and of the whole of it."""
    front = -0.5 * square(beta)
    is_tail = less(x, -beta)
    reach = log1p(beta / m * (where(is_tail, -x, beta) - beta))
    total = log(m / (beta * (m - 1.0))) + front
    whole = logaddexp(total, HALF_LOG_TAU + log_ndtr(beta))
    return is_tail, reach, total, whole


def _crystalball_log(x: Variable, beta: Variable, m: Variable) -> Variable:
    is_tail, reach, _, whole = _crystalball_parts(x, beta, m)
    found = where(is_tail, -0.5 * square(beta) - m * reach, -0.5 * square(x))
    return found - whole


def _crystalball_below(x: Variable, beta: Variable, m: Variable) -> Variable:
    is_tail, reach, total, whole = _crystalball_parts(x, beta, m)
    middle = exp(HALF_LOG_TAU - whole) * (ndtr(where(is_tail, 0.0, x)) - ndtr(-beta))
    return exp(total - whole - (m - 1.0) * reach) + where(is_tail, 0.0, middle)


def _crystalball_above(x: Variable, beta: Variable, m: Variable) -> Variable:
    is_tail, _, _, whole = _crystalball_parts(x, beta, m)
    right = exp(HALF_LOG_TAU - whole) * ndtr(-where(is_tail, 0.0, x))
    return where(is_tail, 1.0 - _crystalball_below(x, beta, m), right)


crystalball = Distribution(
    "crystalball",
    shapes="beta m",
    logdensity=_crystalball_log,
    below=_crystalball_below,
    above=_crystalball_above,
    support=_all,
    valid=lambda beta, m: logical_and(greater(beta, 0.0), greater(m, 1.0)),
)
"""A normal density with a power law below `-beta`."""


def _log_mills(z: Variable) -> Variable:
    return log_ndtr(-z) - _log_normal(z)


def _pareto_lognorm_logs(y: Variable, u: Any, s: Any, a: Any, b: Any) -> tuple[Any, Any, Any]:
    z = (y - u) / s
    return z, _log_mills(a * s - z), _log_mills(b * s + z)


def _pareto_lognorm_log(x: Variable, u: Any, s: Any, a: Any, b: Any) -> Variable:
    y = log(x)
    z, left, right = _pareto_lognorm_logs(y, u, s, a, b)
    return log(a) + log(b) - log(a + b) - y + _log_normal(z) + logaddexp(left, right)


def _pareto_lognorm_below(x: Variable, u: Any, s: Any, a: Any, b: Any) -> Any:
    z, left, right = _pareto_lognorm_logs(log(x), u, s, a, b)
    height = _log_normal(z)
    other = (b * exp(height + left) - a * exp(height + right)) / (a + b)
    return ndtr(z) - other


dpareto_lognorm = Distribution(
    "dpareto_lognorm",
    shapes="u s a b",
    logdensity=_pareto_lognorm_log,
    below=_pareto_lognorm_below,
    above=lambda x, u, s, a, b: _pareto_lognorm_below(1.0 / x, -u, s, b, a),
    support=_positive,
    limits=vanishes_at_start,
    valid=lambda u, s, a, b: logical_and(
        isfinite(u), logical_and(greater(s, 0.0), logical_and(greater(a, 0.0), greater(b, 0.0)))
    ),
)
"""The product of a lognormal number and one of a double power law; 0 is outside, as in SciPy."""
