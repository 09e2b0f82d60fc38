"""Distributions of functions of numbers of gamma distributions."""

from __future__ import annotations

import math
from typing import Any

from primgraph.operators.elementwise.arithmetic import abs, square
from primgraph.operators.elementwise.elementary import exp, log, sqrt
from primgraph.operators.elementwise.logic import (
    equal,
    greater,
    isfinite,
    less,
    logical_and,
    logical_not,
    where,
)
from primgraph.operators.elementwise.special_functions import (
    gammainc,
    gammaincc,
    gammaln,
    ndtr,
)
from primgraph.operators.variable import Variable
from primgraph.scipy.stats.continuous import gamma
from primgraph.scipy.stats.distribution import Distribution
from primgraph.scipy.stats.forms import symmetric, transformed
from primgraph.scipy.stats.parts import (
    EVERYWHERE,
    HALF_LOG_TAU,
    POSITIVE,
    Power,
    limit_of_power,
    vanishes_at_start,
)


def _positive(*shapes: Variable) -> Any:
    return POSITIVE


erlang = Distribution(
    "erlang",
    logdensity=lambda y, a: -y - gammaln(a),
    powers=lambda y, a: [Power(a - 1.0, y)],
    below=lambda y, a: gammainc(a, y),
    above=lambda y, a: gammaincc(a, y),
    support=_positive,
)
"""`gamma`, for whole numbers `a`, which is not checked."""

chi = transformed(
    "chi", gamma, "df", support=_positive, given=lambda df: (0.5 * df,),
    into=lambda x, df: 0.5 * square(x),
    log_slope=lambda x, df: log(x),
    back=lambda y, df: sqrt(2.0 * y),
)  # fmt: skip
"""The length of a vector of `df` normal numbers."""

maxwell = transformed(
    "maxwell", gamma, "", support=_positive, given=lambda: (1.5,),
    into=lambda x: 0.5 * square(x),
    log_slope=log,
    back=lambda y: sqrt(2.0 * y),
)  # fmt: skip
"""The length of a vector of three normal numbers."""

nakagami = transformed(
    "nakagami", gamma, "nu", support=_positive, given=lambda nu: (nu,),
    into=lambda x, nu: nu * square(x),
    log_slope=lambda x, nu: log(2.0 * nu * x),
    back=lambda y, nu: sqrt(y / nu),
)  # fmt: skip
"""The square root of a gamma number of mean 1."""

invgamma = transformed(
    "invgamma", gamma, "a", support=_positive, given=lambda a: (a,), decreasing=True,
    limits=vanishes_at_start,
    into=lambda x, a: 1.0 / x,
    log_slope=lambda x, a: -2.0 * log(x),
    back=lambda y, a: 1.0 / y,
)  # fmt: skip
"""The inverse of a gamma number."""

loggamma = transformed(
    "loggamma", gamma, "c", support=lambda c: EVERYWHERE, given=lambda c: (c,),
    into=lambda x, c: exp(x),
    log_slope=lambda x, c: x,
    back=lambda y, c: log(y),
)  # fmt: skip
"""The logarithm of a gamma number."""

gengamma = transformed(
    "gengamma", gamma, "a c", support=_positive, given=lambda a, c: (a,),
    limits=lambda a, c: (
        limit_of_power(where(c < 0.0, 1.0, a * c - 1.0), log(abs(c)) - gammaln(a)), None
    ),
    decreasing=lambda a, c: less(c, 0.0),
    valid=lambda a, c: logical_and(greater(a, 0.0), logical_not(equal(c, 0.0))),
    into=lambda x, a, c: x**c,
    log_slope=lambda x, a, c: log(abs(c)) + (c - 1.0) * log(x),
    back=lambda y, a, c: y ** (1.0 / c),
)  # fmt: skip
"""A power, of any sign, of a gamma number."""

halfgennorm = transformed(
    "halfgennorm", gamma, "beta", support=_positive, given=lambda beta: (1.0 / beta,),
    limits=lambda beta: (log(beta) - gammaln(1.0 / beta), None),
    into=lambda x, beta: x**beta,
    log_slope=lambda x, beta: log(beta) + (beta - 1.0) * log(x),
    back=lambda y, beta: y ** (1.0 / beta),
)  # fmt: skip
"""The positive half of `gennorm`."""


def _gennorm_log(x: Variable, beta: Variable) -> Variable:
    return log(0.5 * beta) - gammaln(1.0 / beta) - abs(x) ** beta


gennorm = symmetric("gennorm", halfgennorm, "beta", density=_gennorm_log)
"""The generalized normal distribution, of density `exp(-abs(x)**beta)`."""

dgamma = symmetric("dgamma", gamma, "a")
"""A gamma number with a random sign."""

_NORMAL = 1.6e-5


def _gamma_of(skew: Variable) -> tuple[Variable, Variable]:
    """Return whether SciPy takes the normal distribution, and a skewness other than zero."""
    is_normal = less(abs(skew), _NORMAL)
    return is_normal, where(is_normal, 1.0, skew)


def _pearson_into(x: Variable, skew: Variable) -> Variable:
    _, s = _gamma_of(skew)
    return (x + 2.0 / s) * (2.0 / s)


_gamma_part = transformed(
    "pearson3", gamma, "skew", given=lambda skew: (4.0 / square(_gamma_of(skew)[1]),),
    decreasing=lambda skew: less(skew, 0.0), support=lambda skew: EVERYWHERE,
    into=_pearson_into,
    log_slope=lambda x, skew: log(2.0 / abs(_gamma_of(skew)[1])),
)  # fmt: skip


def _pearson_support(skew: Variable) -> tuple[Variable, Variable]:
    is_normal, s = _gamma_of(skew)
    end = -2.0 / s
    is_right = greater(skew, 0.0)
    first = where(is_normal, -math.inf, where(is_right, end, -math.inf))
    return first, where(is_normal, math.inf, where(is_right, math.inf, end))


def _pearson_rule(method: str, normal: Any) -> Any:
    rule = _gamma_part.rule(method)

    def of_skew(x: Variable, skew: Variable) -> Variable:
        return where(_gamma_of(skew)[0], normal(x), rule(x, skew))

    return of_skew


pearson3 = Distribution(
    "pearson3",
    shapes="skew",
    logdensity=_pearson_rule("density", lambda x: -0.5 * square(x) - HALF_LOG_TAU),
    below=_pearson_rule("cdf", ndtr),
    above=_pearson_rule("sf", lambda x: ndtr(-x)),
    support=_pearson_support,
    valid=isfinite,
)
"""Pearson's distribution of type III: a gamma number of mean 0, variance 1, and this skewness."""
