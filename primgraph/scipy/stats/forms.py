"""Distributions by others: of a function of a number, of a random sign, and by the hazard."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from primgraph.operators.elementwise.elementary import log1p
from primgraph.operators.elementwise.logic import less, where
from primgraph.operators.variable import Variable
from primgraph.scipy.stats.distribution import Distribution
from primgraph.scipy.stats.parts import Rule

_OTHERS = {"density": "density", "cdf": "sf", "sf": "cdf", "logcdf": "logsf", "logsf": "logcdf",
           "ppf": "isf", "isf": "ppf"}  # fmt: skip


def _no_shapes(*shapes: Variable) -> tuple[Any, ...]:
    return ()


def transformed(
    name: str,
    base: Distribution,
    shapes: str,
    *,
    into: Rule,
    log_slope: Rule,
    back: Rule | None = None,
    given: Callable[..., tuple[Any, ...]] | None = None,
    decreasing: bool | Callable[..., Variable] = False,
    support: Callable[..., tuple[Any, Any]],
    limits: Callable[..., tuple[Any, Any]] | None = None,
    valid: Callable[..., Any] | None = None,
) -> Distribution:
    """Return the distribution of the `x` for which `into(x, *shapes)` is distributed as `base`.

    `log_slope` is the logarithm of the magnitude of the slope of `into`, and `back` its inverse.
    `given` returns the parameters of the base. If `into` is decreasing, the lower part is the upper
    one of the base; a function of the parameters says where it is.
    """
    of_base = _no_shapes if given is None else given

    def at(method: str) -> Rule:
        rule = base.rule(method)
        return lambda x, *own: rule(into(x, *own), *of_base(*own))

    def back_from(method: str) -> Rule:
        rule = base.rule(method)
        assert back is not None
        return lambda q, *own: back(rule(q, *of_base(*own)), *own)

    side = partial(_side, decreasing)
    density = at("density")
    has_back = back is not None
    return Distribution(
        name,
        shapes=shapes,
        logdensity=lambda x, *own: density(x, *own) + log_slope(x, *own),
        below=side("cdf", at),
        above=side("sf", at),
        log_below=side("logcdf", at),
        log_above=side("logsf", at),
        support=support,
        limits=limits,
        valid=valid,
        quantile=at_ends(side("ppf", back_from), support, 0.0) if has_back else None,
        upper_quantile=at_ends(side("isf", back_from), support, 1.0) if has_back else None,
    )


def _side(
    decreasing: bool | Callable[..., Variable], method: str, form: Callable[[str], Rule]
) -> Rule:
    """Return a method of the base, or that of the other side where the function is decreasing."""
    same, other = form(method), form(_OTHERS[method])
    if callable(decreasing):
        return lambda x, *own: where(decreasing(*own), other(x, *own), same(x, *own))
    return other if decreasing else same


def at_ends(rule: Rule, support: Callable[..., tuple[Any, Any]], low: float) -> Rule:
    """Return a rule for quantiles, with the ends of the support at 0 and 1."""

    def quantile(q: Variable, *own: Variable) -> Variable:
        first, last = support(*own)
        is_first, is_last = q == low, q == 1.0 - low
        found = rule(where(is_first, 0.5, where(is_last, 0.5, q)), *own)
        return where(is_first, first, where(is_last, last, found))

    return quantile


def symmetric(
    name: str, half: Distribution, shapes: str, density: Rule | None = None
) -> Distribution:
    """Return the distribution of a number of `half`, of positive numbers, with a random sign.

    `density` is the logarithm of its density, if there is a formula that is smooth at 0.
    """
    of_size, below, above = half.rule("density"), half.rule("cdf"), half.rule("sf")
    log_above, upper = half.rule("logsf"), half.rule("isf")

    def size(x: Variable) -> Variable:
        return where(less(x, 0.0), -x, x)

    def lower(x: Variable, *own: Variable) -> Variable:
        tail = 0.5 * above(size(x), *own)
        return where(less(x, 0.0), tail, 0.5 + 0.5 * below(size(x), *own))

    def log_lower(x: Variable, *own: Variable) -> Variable:
        left = log_above(size(x), *own) - math.log(2.0)
        return where(less(x, 0.0), left, log1p(-0.5 * above(size(x), *own)))

    def quantile(q: Variable, *own: Variable) -> Variable:
        is_left = less(q, 0.5)
        found = upper(2.0 * where(is_left, q, 1.0 - q), *own)
        return where(is_left, -found, found)

    return Distribution(
        name,
        shapes=shapes,
        logdensity=density or (lambda x, *own: of_size(size(x), *own) - math.log(2.0)),
        below=lower,
        above=lambda x, *own: lower(-x, *own),
        log_below=log_lower,
        log_above=lambda x, *own: log_lower(-x, *own),
        quantile=quantile,
        upper_quantile=lambda q, *own: -quantile(q, *own),
        support=lambda *own: (-math.inf, math.inf),
    )
