"""Distributions of positive numbers and of extremes: exponential of a function of the number.

The upper part is `exp(-into(x))`, or the lower one if `into` is decreasing.
"""

from __future__ import annotations

import math
from typing import Any

from primgraph.operators.elementwise.arithmetic import minimum, square
from primgraph.operators.elementwise.elementary import exp, expm1, log, log1p, sqrt
from primgraph.operators.elementwise.logic import (
    equal,
    greater,
    isfinite,
    less,
    logical_and,
    where,
)
from primgraph.operators.elementwise.special_compositions import exprel
from primgraph.operators.elementwise.special_functions import log_expit, log_ndtr, ndtri
from primgraph.operators.networks.activations import softplus
from primgraph.operators.variable import Variable
from primgraph.scipy.stats.continuous import expon
from primgraph.scipy.stats.forms import symmetric, transformed
from primgraph.scipy.stats.parts import (
    EVERYWHERE,
    HALF_LOG_TAU,
    POSITIVE,
    limit_of_power,
    log1mexp,
    log1p_ratio,
    vanishes_at_start,
)


def _positive(*shapes: Variable) -> Any:
    return POSITIVE


def _all(*shapes: Variable) -> Any:
    return EVERYWHERE


def _are_finite(*shapes: Variable) -> Variable:
    found = isfinite(shapes[0])
    for other in shapes[1:]:
        found = logical_and(found, isfinite(other))
    return found


weibull_min = transformed(
    "weibull_min", expon, "c", support=_positive,
    into=lambda x, c: x**c,
    log_slope=lambda x, c: log(c) + (c - 1.0) * log(x),
    back=lambda y, c: y ** (1.0 / c),
)  # fmt: skip
"""Weibull's distribution of minima: `x**c` has an exponential distribution."""

dweibull = symmetric("dweibull", weibull_min, "c")
"""Weibull's distribution with a random sign."""

rayleigh = transformed(
    "rayleigh", expon, "", support=_positive,
    into=lambda x: 0.5 * square(x),
    log_slope=log,
    back=lambda y: sqrt(2.0 * y),
)  # fmt: skip
"""The length of two normal numbers."""

pareto = transformed(
    "pareto", expon, "b", support=lambda b: (1.0, math.inf),
    into=lambda x, b: b * log(x),
    log_slope=lambda x, b: log(b) - log(x),
    back=lambda y, b: exp(y / b),
)  # fmt: skip
"""A power law from 1 on: the upper part is `x**-b`."""

lomax = transformed(
    "lomax", expon, "c", support=_positive,
    into=lambda x, c: c * log1p(x),
    log_slope=lambda x, c: log(c) - log1p(x),
    back=lambda y, c: expm1(y / c),
)  # fmt: skip
"""Pareto's distribution, from 0 on."""


def _end(c: Variable, sign: float) -> Variable:
    """Return `1 / c` where that has this sign, else an infinity of this sign."""
    is_end = greater(sign * c, 0.0)
    return where(is_end, 1.0 / where(is_end, c, 1.0), sign * math.inf)


genpareto = transformed(
    "genpareto", expon, "c", valid=_are_finite,
    support=lambda c: (0.0, -_end(c, -1.0)),
    into=lambda x, c: x * log1p_ratio(c * x),
    log_slope=lambda x, c: -log1p(c * x),
    back=lambda y, c: y * exprel(c * y),
)  # fmt: skip
"""The generalized Pareto distribution; exponential for `c` 0."""

gompertz = transformed(
    "gompertz", expon, "c", support=_positive,
    into=lambda x, c: c * expm1(x),
    log_slope=lambda x, c: log(c) + x,
    back=lambda y, c: log1p(y / c),
)  # fmt: skip
"""Gompertz's law of mortality."""

exponpow = transformed(
    "exponpow", expon, "b", support=_positive,
    into=lambda x, b: expm1(x**b),
    log_slope=lambda x, b: log(b) + (b - 1.0) * log(x) + x**b,
    back=lambda y, b: log1p(y) ** (1.0 / b),
)  # fmt: skip
"""The exponential power distribution of lifetimes."""

burr12 = transformed(
    "burr12", expon, "c d", support=_positive,
    into=lambda x, c, d: d * log1p(x**c),
    log_slope=lambda x, c, d: log(c) + log(d) + (c - 1.0) * log(x) - log1p(x**c),
    back=lambda y, c, d: expm1(y / d) ** (1.0 / c),
)  # fmt: skip
"""Burr's distribution of type XII."""


def _log_of_sum(y: Variable, factor: float) -> Variable:
    """Return `log(1 + factor * (exp(y) - 1))` of positive numbers, without overflow."""
    rest = greater(y, 30.0) * (y - 30.0)
    return rest + log1p(factor * expm1(minimum(y, 30.0)))


halflogistic = transformed(
    "halflogistic", expon, "", support=_positive,
    into=lambda x: _log_of_sum(x, 0.5),
    log_slope=log_expit,
    back=lambda y: _log_of_sum(y, 2.0),
)  # fmt: skip
"""The magnitude of a logistic number."""

genhalflogistic = transformed(
    "genhalflogistic", halflogistic, "c", support=lambda c: (0.0, 1.0 / c),
    limits=lambda c: (None, limit_of_power(1.0 - c, math.log(2.0))),
    into=lambda x, c: x * log1p_ratio(-c * x),
    log_slope=lambda x, c: -log1p(-c * x),
    back=lambda y, c: y * exprel(-c * y),
)  # fmt: skip
"""The generalized half-logistic distribution."""

genexpon = transformed(
    "genexpon", expon, "a b c", support=_positive,
    into=lambda x, a, b, c: (a + b) * x + b * expm1(-c * x) / c,
    log_slope=lambda x, a, b, c: log(a - b * expm1(-c * x)),
)  # fmt: skip
"""The generalized exponential distribution, of rate `a + b * (1 - exp(-c * x))`."""


def _normal_back(y: Variable, c: Variable) -> Variable:
    part = y / c
    is_left = less(part, math.log(2.0))
    left = ndtri(-expm1(-where(is_left, part, 0.5)))
    return where(is_left, left, -ndtri(exp(-where(is_left, 1.0, part))))


powernorm = transformed(
    "powernorm", expon, "c", support=_all,
    into=lambda x, c: -c * log_ndtr(-x),
    log_slope=lambda x, c: log(c) - 0.5 * square(x) - HALF_LOG_TAU - log_ndtr(-x),
    back=_normal_back,
)  # fmt: skip
"""The least of `c` normal numbers."""

powerlognorm = transformed(
    "powerlognorm", powernorm, "c s", support=_positive, limits=vanishes_at_start,
    given=lambda c, s: (c,),
    into=lambda x, c, s: log(x) / s,
    log_slope=lambda x, c, s: -log(x) - log(s),
    back=lambda y, c, s: exp(s * y),
)  # fmt: skip
"""The least of `c` lognormal numbers."""

# Here the lower part is exp(-into(x)).

gumbel_r = transformed(
    "gumbel_r", expon, "", support=_all, decreasing=True,
    into=lambda x: exp(-x),
    log_slope=lambda x: -x,
    back=lambda y: -log(y),
)  # fmt: skip
"""Gumbel's distribution of maxima."""

gumbel_l = transformed(
    "gumbel_l", expon, "", support=_all,
    into=exp,
    log_slope=lambda x: x,
    back=log,
)  # fmt: skip
"""Gumbel's distribution of minima."""

genextreme = transformed(
    "genextreme", gumbel_r, "c", valid=_are_finite,
    support=lambda c: (_end(c, -1.0), _end(c, 1.0)),
    limits=lambda c: (-math.inf, limit_of_power(1.0 - c, 0.0)),
    into=lambda x, c: x * log1p_ratio(-c * x),
    log_slope=lambda x, c: -log1p(-c * x),
    back=lambda y, c: y * exprel(-c * y),
)  # fmt: skip
"""The distribution of extremes: Gumbel's for `c` 0, with SciPy's sign of `c`."""

invweibull = transformed(
    "invweibull", expon, "c", support=_positive, limits=vanishes_at_start, decreasing=True,
    into=lambda x, c: x**-c,
    log_slope=lambda x, c: log(c) - (c + 1.0) * log(x),
    back=lambda y, c: y ** (-1.0 / c),
)  # fmt: skip
"""Frechet's distribution of maxima."""

weibull_max = transformed(
    "weibull_max", expon, "c", support=lambda c: (-math.inf, 0.0), decreasing=True,
    into=lambda x, c: (-x) ** c,
    log_slope=lambda x, c: log(c) + (c - 1.0) * log(-x),
    back=lambda y, c: -(y ** (1.0 / c)),
)  # fmt: skip
"""Weibull's distribution of maxima, of negative numbers."""

powerlaw = transformed(
    "powerlaw", expon, "a", support=lambda a: (0.0, 1.0), decreasing=True,
    limits=lambda a: (where(equal(a, 1.0), 0.0 * a, -math.inf), None),
    into=lambda x, a: -a * log(x),
    log_slope=lambda x, a: log(a) - log(x),
    back=lambda y, a: exp(-y / a),
)  # fmt: skip
"""Powers of a uniform number: the lower part is `x**a`. If `a < 1`, 0 is outside, as in SciPy."""


def _burr_into(x: Variable, c: Variable, d: Variable) -> Variable:
    return d * softplus(-c * log(x))


def _burr_log_slope(x: Variable, c: Variable, d: Variable) -> Variable:
    return log(c) + log(d) - log(x) + log_expit(-c * log(x))


def _burr_back(y: Variable, c: Variable, d: Variable) -> Variable:
    return expm1(y / d) ** (-1.0 / c)


burr = transformed(
    "burr", expon, "c d", support=_positive, decreasing=True,
    limits=lambda c, d: (limit_of_power(c * d - 1.0, 0.0), None),
    into=_burr_into, log_slope=_burr_log_slope, back=_burr_back,
)  # fmt: skip
"""Burr's distribution of type III."""

mielke = transformed(
    "mielke", expon, "k s", support=_positive, decreasing=True,
    limits=lambda k, s: (limit_of_power(k - 1.0, 0.0), None),
    into=lambda x, k, s: _burr_into(x, s, k / s),
    log_slope=lambda x, k, s: _burr_log_slope(x, s, k / s),
    back=lambda y, k, s: _burr_back(y, s, k / s),
)  # fmt: skip
"""Mielke's beta-kappa distribution."""

genlogistic = transformed(
    "genlogistic", expon, "c", support=_all, decreasing=True,
    into=lambda x, c: c * softplus(-x),
    log_slope=lambda x, c: log(c) + log_expit(-x),
    back=lambda y, c: -log(expm1(y / c)),
)  # fmt: skip
"""The greatest of `c` logistic numbers."""

exponweib = transformed(
    "exponweib", expon, "a c", support=_positive, decreasing=True,
    limits=lambda a, c: (limit_of_power(a * c - 1.0, 0.0), None),
    into=lambda x, a, c: -a * log1mexp(x**c),
    log_slope=lambda x, a, c: log(a) + log(c) + (c - 1.0) * log(x) - x**c - log1mexp(x**c),
    back=lambda y, a, c: (-log1mexp(y / a)) ** (1.0 / c),
)  # fmt: skip
"""The greatest of `a` numbers of Weibull's distribution."""

kappa3 = transformed(
    "kappa3", expon, "a", support=_positive, decreasing=True,
    limits=lambda a: (-log(a) / a, None),
    into=lambda x, a: softplus(log(a) - a * log(x)) / a,
    log_slope=lambda x, a: log_expit(log(a) - a * log(x)) - log(x),
    back=lambda y, a: (expm1(a * y) / a) ** (-1.0 / a),
)  # fmt: skip
"""Mielke's distribution of three parameters, with loc and scale."""


def _kappa_reduced(x: Variable, h: Variable, k: Variable) -> Variable:
    return x * log1p_ratio(-k * x)


def _kappa_into(x: Variable, h: Variable, k: Variable) -> Variable:
    t = exp(-_kappa_reduced(x, h, k))
    return t * log1p_ratio(-h * t)


def _kappa_log_slope(x: Variable, h: Variable, k: Variable) -> Variable:
    u = _kappa_reduced(x, h, k)
    return -u - log1p(-h * exp(-u)) - log1p(-k * x)


def _kappa_back(y: Variable, h: Variable, k: Variable) -> Variable:
    u = -log(y * exprel(-h * y))
    return u * exprel(-k * u)


def _kappa_support(h: Variable, k: Variable) -> tuple[Variable, Variable]:
    is_cut = greater(h, 0.0)
    u = log(where(is_cut, h, 1.0))
    return where(is_cut, u * exprel(-k * u), _end(k, -1.0)), _end(k, 1.0)


def _kappa_limits(h: Variable, k: Variable) -> tuple[Variable, Variable]:
    is_negative = less(h, 0.0)
    below = where(is_negative, h, -1.0)
    endless = limit_of_power(k - 1.0 / below, (1.0 / below - 1.0) * log(-below))
    cut = where(equal(h, 0.0), -math.inf, limit_of_power(1.0 - h, 0.0))
    return where(is_negative, endless, cut), limit_of_power(1.0 - k, 0.0)


kappa4 = transformed(
    "kappa4", expon, "h k", support=_kappa_support, limits=_kappa_limits, valid=_are_finite,
    decreasing=True, into=_kappa_into, log_slope=_kappa_log_slope, back=_kappa_back,
)  # fmt: skip
"""The kappa distribution of four parameters, with loc and scale."""
