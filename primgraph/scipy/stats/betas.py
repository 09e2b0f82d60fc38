"""Distributions of functions of numbers of beta distributions."""

from __future__ import annotations

import math

from primgraph.operators.elementwise.arithmetic import square
from primgraph.operators.elementwise.elementary import arcsin, log, log1p, sin, sqrt
from primgraph.operators.elementwise.logic import greater, less, where
from primgraph.operators.elementwise.special_functions import betainc, betaincc, betaln
from primgraph.operators.variable import Variable
from primgraph.scipy.stats.continuous import beta
from primgraph.scipy.stats.distribution import Distribution
from primgraph.scipy.stats.forms import transformed
from primgraph.scipy.stats.parts import EVERYWHERE, POSITIVE


def _log_odds_density(x: Variable, a: Variable, b: Variable) -> Variable:
    return (a - 1.0) * log(x) - (a + b) * log1p(x) - betaln(a, b)


def _odds_part(x: Variable, a: Variable, b: Variable) -> Variable:
    """Return the lower part, by the smaller one of the two arguments that add up to one."""
    is_small = less(x, 1.0)
    small, large = where(is_small, x, 1.0), where(is_small, 1.0, x)
    return where(
        is_small, betainc(a, b, small / (1.0 + small)), betaincc(b, a, 1.0 / (1.0 + large))
    )


betaprime = Distribution(
    "betaprime",
    logdensity=_log_odds_density,
    below=_odds_part,
    above=lambda x, a, b: _odds_part(1.0 / x, b, a),
    support=lambda a, b: POSITIVE,
)
"""The odds of a beta number."""

f = transformed(
    "f", betaprime, "dfn dfd", support=lambda n, d: POSITIVE, given=lambda n, d: (0.5 * n, 0.5 * d),
    into=lambda x, n, d: x * (n / d),
    log_slope=lambda x, n, d: log(n / d) + 0.0 * x,
    back=lambda y, n, d: y * (d / n),
)  # fmt: skip
"""Fisher's distribution: the ratio of two numbers of `chi2`, each by its degrees of freedom."""

arcsine = Distribution(
    "arcsine",
    logdensity=lambda x: -math.log(math.pi) - 0.5 * log(x) - 0.5 * log1p(-x),
    below=lambda x: 2.0 / math.pi * arcsin(sqrt(x)),
    above=lambda x: 2.0 / math.pi * arcsin(sqrt(1.0 - x)),
    quantile=lambda q: square(sin(0.5 * math.pi * q)),
    upper_quantile=lambda q: square(sin(0.5 * math.pi * (1.0 - q))),
    support=lambda: (0.0, 1.0),
)
"""The beta distribution of parameters one half."""

rdist = transformed(
    "rdist", beta, "c", support=lambda c: (-1.0, 1.0), given=lambda c: (0.5 * c, 0.5 * c),
    into=lambda x, c: 0.5 * (x + 1.0),
    log_slope=lambda x, c: 0.0 * x - math.log(2.0),
    back=lambda y, c: 2.0 * y - 1.0,
)  # fmt: skip
"""The symmetric beta distribution from -1 to 1."""


def _skew_part(x: Variable, a: Variable, b: Variable) -> Variable:
    """Return `(1 + x / sqrt(a + b + x**2)) / 2` without cancellation."""
    length = sqrt(a + b + square(x))
    is_right = greater(x, 0.0)
    right = 0.5 * (1.0 + x / length)
    return where(is_right, right, 0.5 * (a + b) / (length * (length - where(is_right, 0.0, x))))


def _log_skew_density(x: Variable, a: Variable, b: Variable) -> Variable:
    total = a + b
    right, left = 2.0 * _skew_part(x, a, b), 2.0 * _skew_part(-x, b, a)
    constant = (total - 1.0) * math.log(2.0) + betaln(a, b) + 0.5 * log(total)
    return (a + 0.5) * log(right) + (b + 0.5) * log(left) - constant


jf_skew_t = Distribution(
    "jf_skew_t",
    logdensity=_log_skew_density,
    below=lambda x, a, b: betainc(a, b, _skew_part(x, a, b)),
    above=lambda x, a, b: betainc(b, a, _skew_part(-x, b, a)),
    support=lambda a, b: EVERYWHERE,
)
"""Jones's and Faddy's skewed distribution of Student's kind (2003)."""
