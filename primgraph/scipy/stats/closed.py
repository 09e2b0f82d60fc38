"""Distributions whose functions are elementary, beside those by hazards."""

from __future__ import annotations

import math
from typing import Any

from primgraph.operators.elementwise.arithmetic import (
    abs,
    arctan2,
    square,
)
from primgraph.operators.elementwise.elementary import (
    arcsin,
    arctan,
    cos,
    exp,
    expm1,
    log,
    log1p,
    sin,
    sqrt,
    tan,
)
from primgraph.operators.elementwise.logic import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    where,
)
from primgraph.operators.elementwise.special_functions import (
    expit,
    gammainc,
    log_expit,
    logit,
)
from primgraph.operators.variable import Variable
from primgraph.scipy.stats.continuous import laplace, uniform
from primgraph.scipy.stats.distribution import Distribution
from primgraph.scipy.stats.forms import at_ends, transformed
from primgraph.scipy.stats.parts import EVERYWHERE, HALF_LOG_TAU, POSITIVE, limit_of_power, log1mexp

_LOG_PI = math.log(math.pi)


def _positive(*shapes: Variable) -> Any:
    return POSITIVE


def _all(*shapes: Variable) -> Any:
    return EVERYWHERE


def _unit(*shapes: Variable) -> Any:
    return 0.0, 1.0


logistic = Distribution(
    "logistic",
    logdensity=lambda x: log_expit(x) + log_expit(-x),
    below=expit,
    above=lambda x: expit(-x),
    log_below=log_expit,
    log_above=lambda x: log_expit(-x),
    quantile=logit,
    upper_quantile=lambda q: -logit(q),
    support=_all,
)
"""The distribution whose lower part is the logistic function."""

fisk = transformed(
    "fisk", logistic, "c", support=_positive,
    limits=lambda c: (limit_of_power(c - 1.0, 0.0), None),
    into=lambda x, c: c * log(x),
    log_slope=lambda x, c: log(c) - log(x),
    back=lambda y, c: exp(y / c),
)  # fmt: skip
"""The log-logistic distribution."""

loglaplace = transformed(
    "loglaplace", laplace, "c", support=_positive,
    limits=lambda c: (limit_of_power(c - 1.0, -math.log(2.0)), None),
    into=lambda x, c: c * log(x),
    log_slope=lambda x, c: log(c) - log(x),
    back=lambda y, c: exp(y / c),
)  # fmt: skip
"""The exponential of a Laplace number."""


def _hypsecant_below(x: Variable) -> Variable:
    return 2.0 / math.pi * arctan(exp(x))


hypsecant = Distribution(
    "hypsecant",
    logdensity=lambda x: -abs(x) - log1p(exp(-2.0 * abs(x))) + math.log(2.0) - _LOG_PI,
    below=_hypsecant_below,
    above=lambda x: _hypsecant_below(-x),
    quantile=at_ends(lambda q: log(tan(0.5 * math.pi * q)), _all, 0.0),
    upper_quantile=at_ends(lambda q: -log(tan(0.5 * math.pi * q)), _all, 1.0),
    support=_all,
)
"""The hyperbolic secant distribution."""


# Cauchy's distribution: the angle at which a number is seen.


def _angle(x: Variable) -> Variable:
    return arctan2(1.0, -x) / math.pi


cauchy = Distribution(
    "cauchy",
    logdensity=lambda x: -_LOG_PI - log1p(square(x)),
    below=_angle,
    above=lambda x: _angle(-x),
    quantile=at_ends(lambda q: -1.0 / tan(math.pi * q), _all, 0.0),
    upper_quantile=at_ends(lambda q: 1.0 / tan(math.pi * q), _all, 1.0),
    support=_all,
)
"""Cauchy's distribution: Student's of one degree of freedom."""

halfcauchy = Distribution(
    "halfcauchy",
    logdensity=lambda x: math.log(2.0) - _LOG_PI - log1p(square(x)),
    below=lambda x: 2.0 / math.pi * arctan(x),
    above=lambda x: 2.0 / math.pi * arctan2(1.0, x),
    quantile=at_ends(lambda q: tan(0.5 * math.pi * q), _positive, 0.0),
    upper_quantile=at_ends(lambda q: 1.0 / tan(0.5 * math.pi * q), _positive, 1.0),
    support=_positive,
)
"""The magnitude of a Cauchy number."""


def _foldcauchy_log(x: Variable, c: Variable) -> Variable:
    return log(1.0 / (1.0 + square(x - c)) + 1.0 / (1.0 + square(x + c))) - _LOG_PI


foldcauchy = Distribution(
    "foldcauchy",
    logdensity=_foldcauchy_log,
    below=lambda x, c: arctan2(2.0 * x, 1.0 + square(c) - square(x)) / math.pi,
    above=lambda x, c: _angle(c - x) + _angle(-c - x),
    support=_positive,
    valid=lambda c: greater_equal(c, 0.0),
)
"""The magnitude of a Cauchy number around `c`."""


def _skewcauchy_scale(x: Variable, a: Variable) -> Variable:
    return where(less(x, 0.0), 1.0 - a, 1.0 + a)


def _skewcauchy_below(x: Variable, a: Variable) -> Variable:
    scale = _skewcauchy_scale(x, a)
    is_left = less(x, 0.0)
    left = scale * arctan2(1.0, -where(is_left, x, 0.0) / scale)
    right = 0.5 * math.pi * (1.0 - a) + scale * arctan(x / scale)
    return where(is_left, left, right) / math.pi


def _skewcauchy_quantile(q: Variable, a: Variable) -> Variable:
    is_left = less(q, 0.5 * (1.0 - a))
    left = -(1.0 - a) / tan(math.pi * where(is_left, q, 0.25) / (1.0 - a))
    rest = math.pi * (1.0 - where(is_left, 0.75, q)) / (1.0 + a)
    return where(is_left, left, (1.0 + a) / tan(rest))


skewcauchy = Distribution(
    "skewcauchy",
    logdensity=lambda x, a: -_LOG_PI - log1p(square(x / _skewcauchy_scale(x, a))),
    below=_skewcauchy_below,
    above=lambda x, a: _skewcauchy_below(-x, -a),
    quantile=_skewcauchy_quantile,
    upper_quantile=lambda q, a: -_skewcauchy_quantile(q, -a),
    support=_all,
    valid=lambda a: less(abs(a), 1.0),
)
"""Two halves of Cauchy distributions, of scales `1 - a` and `1 + a`."""


# Bounded ones.

bradford = transformed(
    "bradford", uniform, "c", support=_unit,
    into=lambda x, c: log1p(c * x) / log1p(c),
    log_slope=lambda x, c: log(c) - log1p(c * x) - log(log1p(c)),
    back=lambda y, c: expm1(y * log1p(c)) / c,
)  # fmt: skip
"""The density `1 / (1 + c * x)` from 0 to 1."""


def _are_increasing(a: Variable, b: Variable) -> Variable:
    return logical_and(greater(a, 0.0), less(a, b))


def _reciprocal(name: str) -> Distribution:
    return transformed(
        name, uniform, "a b", support=lambda a, b: (a, b), valid=_are_increasing,
        into=lambda x, a, b: log(x / a) / log(b / a),
        log_slope=lambda x, a, b: -log(x) - log(log(b / a)),
        back=lambda y, a, b: exp(log(a) + y * log(b / a)),
    )  # fmt: skip


loguniform, reciprocal = _reciprocal("loguniform"), _reciprocal("reciprocal")
"""The density `1 / x` from `a` to `b`."""

anglit = Distribution(
    "anglit",
    logdensity=lambda x: log(cos(2.0 * x)),
    below=lambda x: square(sin(x + 0.25 * math.pi)),
    above=lambda x: square(sin(0.25 * math.pi - x)),
    quantile=lambda q: arcsin(sqrt(q)) - 0.25 * math.pi,
    upper_quantile=lambda q: 0.25 * math.pi - arcsin(sqrt(q)),
    support=lambda: (-0.25 * math.pi, 0.25 * math.pi),
)
"""The density `cos(2 * x)`, around 0."""


def _sine_excess(t: Variable) -> Variable:
    """Return `t - sin(t)` of positive numbers, by its series near 0."""
    is_near = less(t, 0.7)
    small = where(is_near, t, 0.0)
    series: Any = 1.0
    for k in range(18, 2, -2):
        series = 1.0 - square(small) / (k * (k + 1)) * series
    return where(is_near, small**3 / 6.0 * series, t - sin(t))


def _cosine_below(x: Variable) -> Variable:
    return _sine_excess(x + math.pi) / (2.0 * math.pi)


cosine = Distribution(
    "cosine",
    logdensity=lambda x: 2.0 * log(abs(cos(0.5 * x))) - _LOG_PI,
    below=_cosine_below,
    above=lambda x: _cosine_below(-x),
    support=lambda: (-math.pi, math.pi),
)
"""The density `(1 + cos(x)) / (2 * pi)`, around 0."""


def _semicircular_below(x: Variable) -> Variable:
    """Return the circle's segment below `x`, by the angle at which it is seen."""
    return _sine_excess(4.0 * arcsin(sqrt(0.5 * (1.0 + x)))) / (2.0 * math.pi)


semicircular = Distribution(
    "semicircular",
    logdensity=lambda x: 0.5 * (log1p(-x) + log1p(x)) + math.log(2.0) - _LOG_PI,
    below=_semicircular_below,
    above=lambda x: _semicircular_below(-x),
    support=lambda: (-1.0, 1.0),
)
"""The density of a half circle."""

truncexpon = Distribution(
    "truncexpon",
    logdensity=lambda x, b: -x - log1mexp(b),
    below=lambda x, b: expm1(-x) / expm1(-b),
    above=lambda x, b: exp(-x) * expm1(x - b) / expm1(-b),
    quantile=lambda q, b: -log1p(q * expm1(-b)),
    support=lambda b: (0.0, b),
)
"""An exponential number below `b`."""


def _power_between(x: Any, y: Any, b: Variable) -> Variable:
    """Return `x**-b - y**-b` by `-b`: positive for increasing numbers, whatever the sign of `b`."""
    found: Variable = x**-b * expm1(b * log(x / y)) / -b
    return found


truncpareto = Distribution(
    "truncpareto",
    logdensity=lambda x, b, c: -(b + 1.0) * log(x) - log(_power_between(1.0, c, b)),
    below=lambda x, b, c: _power_between(1.0, x, b) / _power_between(1.0, c, b),
    above=lambda x, b, c: _power_between(x, c, b) / _power_between(1.0, c, b),
    quantile=lambda q, b, c: exp(-log1p(q * expm1(-b * log(c))) / b),
    support=lambda b, c: (1.0, c),
    valid=lambda b, c: logical_and(logical_not(equal(b, 0.0)), greater(c, 1.0)),
)
"""Pareto's distribution, cut off at `c`; `b` may be negative."""


def _weibull_between(x: Variable, y: Variable, c: Variable) -> Variable:
    """Return `exp(-x**c) - exp(-y**c)`."""
    return -exp(-(x**c)) * expm1(x**c - y**c)


truncweibull_min = Distribution(
    "truncweibull_min",
    logdensity=lambda x, c, a, b: (
        log(c) + (c - 1.0) * log(x) - x**c - log(_weibull_between(a, b, c))
    ),
    below=lambda x, c, a, b: _weibull_between(a, x, c) / _weibull_between(a, b, c),
    above=lambda x, c, a, b: _weibull_between(x, b, c) / _weibull_between(a, b, c),
    support=lambda c, a, b: (a, b),
    valid=lambda c, a, b: logical_and(
        greater(c, 0.0), logical_and(greater_equal(a, 0.0), greater(b, a))
    ),
)
"""Weibull's distribution between `a` and `b`."""


def _trapezoid_density(x: Variable, c: Variable, d: Variable) -> Variable:
    """Return the density: the least of two slopes and of the plateau, without division by 0."""
    height = 2.0 / (d - c + 1.0)
    left = where(less(x, c), x / where(less(x, c), c, 1.0), 1.0)
    right = where(greater(x, d), (1.0 - x) / (1.0 - where(greater(x, d), d, 0.0)), 1.0)
    return height * left * right


def _trapezoid_below(x: Variable, c: Variable, d: Variable) -> Variable:
    height = 2.0 / (d - c + 1.0)
    start = less(x, c)
    rising = 0.5 * square(x) / where(start, c, 1.0)
    end = greater(x, d)
    falling = 0.5 * square(1.0 - x) / (1.0 - where(end, d, 0.0))
    middle = where(end, 1.0 - height * falling, height * (x - 0.5 * c))
    return where(start, height * rising, middle)


trapezoid = Distribution(
    "trapezoid",
    logdensity=lambda x, c, d: log(_trapezoid_density(x, c, d)),
    below=_trapezoid_below,
    above=lambda x, c, d: _trapezoid_below(1.0 - x, 1.0 - d, 1.0 - c),
    support=_unit,
    valid=lambda c, d: logical_and(
        logical_and(greater_equal(c, 0.0), less_equal(d, 1.0)), greater_equal(d, c)
    ),
)
"""A density that rises to `c`, is level to `d`, and falls to 1."""

triang = transformed(
    "triang", trapezoid, "c", support=_unit, given=lambda c: (c, c),
    valid=lambda c: logical_and(greater_equal(c, 0.0), less_equal(c, 1.0)),
    into=lambda x, c: x, log_slope=lambda x, c: 0.0 * x, back=lambda y, c: y,
)  # fmt: skip
"""A density that rises to `c` and falls to 1."""


def _argus_part(t: Variable) -> Variable:
    return gammainc(1.5, 0.5 * square(t))


def _argus_log(x: Variable, chi: Variable) -> Variable:
    rest = (1.0 - x) * (1.0 + x)
    front = 3.0 * log(chi) - HALF_LOG_TAU - log(0.5 * _argus_part(chi))
    return front + log(x) + 0.5 * log(rest) - 0.5 * square(chi) * rest


argus = Distribution(
    "argus",
    logdensity=_argus_log,
    above=lambda x, chi: _argus_part(chi * sqrt((1.0 - x) * (1.0 + x))) / _argus_part(chi),
    support=_unit,
)
"""The distribution of masses in the background of decays, named after the ARGUS experiment."""


def _asymmetric_parts(x: Variable, kappa: Variable) -> tuple[Variable, Variable, Variable]:
    is_left = less(x, 0.0)
    return is_left, exp(x / kappa * is_left), exp(-x * kappa * logical_not(is_left))


def _asymmetric_below(x: Variable, kappa: Variable) -> Variable:
    is_left, left, right = _asymmetric_parts(x, kappa)
    total = kappa + 1.0 / kappa
    return where(is_left, kappa * left / total, 1.0 - right / (kappa * total))


laplace_asymmetric = Distribution(
    "laplace_asymmetric",
    logdensity=lambda x, kappa: (
        -log(kappa + 1.0 / kappa) + x * where(less(x, 0.0), 1.0 / kappa, -kappa)
    ),
    below=_asymmetric_below,
    above=lambda x, kappa: _asymmetric_below(-x, 1.0 / kappa),
    support=_all,
)
"""Laplace's distribution with rates `1 / kappa` to the left and `kappa` to the right."""


# On the circle.


def _wrapped_angle(x: Variable, c: Variable) -> Variable:
    """Return half of the angle, whose tangent is scaled, for angles from 0 to pi."""
    return arctan2((1.0 + c) * sin(0.5 * x), (1.0 - c) * cos(0.5 * x)) / math.pi


def _wrapcauchy_quantile(q: Variable, c: Variable) -> Variable:
    turned = math.pi * q
    return 2.0 * arctan2((1.0 - c) * sin(turned), (1.0 + c) * cos(turned))


wrapcauchy = Distribution(
    "wrapcauchy",
    logdensity=lambda x, c: (
        log1p(-square(c)) - math.log(2.0 * math.pi) - log1p(square(c) - 2.0 * c * cos(x))
    ),
    below=_wrapped_angle,
    above=lambda x, c: _wrapped_angle(2.0 * math.pi - x, c),
    quantile=_wrapcauchy_quantile,
    upper_quantile=lambda q, c: 2.0 * math.pi - _wrapcauchy_quantile(q, c),
    support=lambda c: (0.0, 2.0 * math.pi),
    valid=lambda c: logical_and(greater(c, 0.0), less(c, 1.0)),
)
"""Cauchy's distribution, wrapped around a circle."""
