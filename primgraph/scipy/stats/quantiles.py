"""Quantiles by solving for the distribution function, with derivatives of the solution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from primgraph.api.vmap import vmap
from primgraph.control.loops import while_loop
from primgraph.control.solutions import implicit
from primgraph.operators.elementwise.arithmetic import abs, floor, maximum, minimum
from primgraph.operators.elementwise.elementary import exp, log, sqrt
from primgraph.operators.elementwise.logic import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_xor,
    where,
)
from primgraph.operators.reduce.reductions import any as any_of
from primgraph.operators.shape.creation import stop_gradient
from primgraph.operators.shape.manipulation import broadcast_arrays
from primgraph.operators.shape.shaping import reshape
from primgraph.operators.variable import Variable
from primgraph.scipy.stats.parts import Law

_LARGE = 1e300
_TRIPS = 300
_WHOLE, _NEAR = 2.0**52, 1e-14


def quantile(law: Law, is_upper: bool, q: Variable, *shapes: Variable) -> Variable:
    """Return the `x` with `cdf(x) = q`, or `sf(x) = q`; at 0 and 1 the ends of the support.

    The smaller one of the two parts is solved for, so that quantiles in tails are exact. Newton's
    steps on its logarithm are taken within a bracket, which is halved where they leave it.
    """
    first, last = law.support(*shapes)
    is_inner = logical_and(greater(q, 0.0), less(q, 1.0))
    values = broadcast_arrays(where(is_inner, q, 0.5), *shapes)
    start = _search(law, is_upper, *[stop_gradient(v) for v in values])
    found = with_slopes(partial(_excess, law, is_upper), start, values)
    ends = (last, first) if is_upper else (first, last)
    return where(equal(q, 0.0), ends[0], where(equal(q, 1.0), ends[1], found))


def with_slopes(excess: Callable[..., Any], found: Variable, values: Sequence[Variable]) -> Any:
    """Return the roots `found`, with the derivatives that `excess(x, *values)` implies."""
    flat = [reshape(v, (-1,)) for v in (found, *values)]

    def solve(x: Any, *given: Any) -> Any:
        return implicit(lambda x: excess(x, *given), x)

    return reshape(vmap(solve)(*flat), found.shape)


def _parts(p: Any, is_upper: bool) -> tuple[Any, Any]:
    """Return where the lower part is the smaller one, and that part."""
    is_small = less_equal(p, 0.5)
    is_left = logical_xor(is_small, is_upper)
    return is_left, where(is_small, p, 1.0 - p)


def _excess(law: Law, is_upper: bool, x: Any, p: Any, *shapes: Any) -> Any:
    is_left, part = _parts(p, is_upper)
    below, above = law.rule("cdf")(x, *shapes), law.rule("sf")(x, *shapes)
    return where(is_left, below - part, part - above)


def _search(law: Law, is_upper: bool, q: Variable, *shapes: Variable) -> Variable:
    first, last = law.support(*shapes)
    is_left, part = _parts(q, is_upper)
    target = log(part)

    def excess_and_step(x: Any) -> tuple[Any, Any]:
        logarithm = where(is_left, law.rule("logcdf")(x, *shapes), law.rule("logsf")(x, *shapes))
        excess = where(is_left, logarithm - target, target - logarithm)
        return excess, excess * exp(logarithm - law.rule("density")(x, *shapes))

    zero = 0.0 * q
    low, high = zero + maximum(first, -_LARGE), zero + minimum(last, _LARGE)
    return bracketed_root(excess_and_step, low, high, zero + law.point_inside(*shapes))


def bracketed_root(
    excess_and_step: Callable[[Any], tuple[Any, Any]], low: Any, high: Any, start: Any
) -> Variable:
    """Return the root of an increasing function between `low` and `high`, without derivatives.

    `excess_and_step` returns the value of the function and Newton's step, its value by its slope.
    """
    eps = 4.0 * float(np.finfo(start.dtype).eps)

    def halve(state: Any) -> Any:
        trip, low, high, x, _ = state
        excess, step = excess_and_step(x)
        # What is not a number is beyond the reach of the formula.
        excess = where(equal(excess, excess), excess, x - start)
        low, high = where(less(excess, 0.0), x, low), where(greater(excess, 0.0), x, high)
        newton = x - step
        is_good = logical_and(greater(newton, low), less(newton, high))
        is_good = logical_and(is_good, greater(trip % 4, 0))
        moved = where(is_good, newton, _between(low, high))
        moved = where(equal(excess, 0.0), x, moved)
        is_far = greater(abs(moved - x), eps * abs(moved))
        is_far = logical_and(is_far, greater(high - low, eps * abs(moved)))
        return trip + 1, low, high, moved, is_far

    def goes_on(state: Any) -> Any:
        return logical_and(less(state[0], _TRIPS), any_of(state[4]))

    begin = (0, low, high, start, equal(start, start))
    return stop_gradient(while_loop(goes_on, halve, begin, max_trips=_TRIPS)[3])


def _between(low: Any, high: Any) -> Any:
    """Return a number between: the geometric mean where both have the same sign, else 0.

    Zero counts as a tiny number, so that a bracket shrinks by orders of magnitude.
    """
    tiny = 1e-300
    is_positive, is_negative = greater_equal(low, 0.0), less_equal(high, 0.0)
    positive = sqrt(maximum(low, tiny)) * sqrt(maximum(high, tiny))
    negative = -sqrt(maximum(-low, tiny)) * sqrt(maximum(-high, tiny))
    mean = where(is_positive, positive, where(is_negative, negative, 0.0))
    is_between = logical_and(greater(mean, low), less(mean, high))
    return where(is_between, mean, 0.5 * (low + high))


def quantile_of_whole(law: Law, is_upper: bool, q: Variable, *shapes: Variable) -> Variable:
    """Return the least whole number `k` of the support with `cdf(k) >= q`, or `sf(k) <= q`.

    It is constant between jumps, so that its derivatives are zero.
    """
    first, last = law.support(*shapes)
    q, *given = [stop_gradient(v) for v in broadcast_arrays(q, *shapes)]
    zero = 0.0 * q
    # Below the bracket the distribution function is too small, at its end it is large enough.
    low, high = zero + maximum(first, -_WHOLE) - 1.0, zero + minimum(last, _WHOLE)
    is_left, part = _parts(q, is_upper)

    def halve(state: Any) -> Any:
        trip, low, high = state
        middle = where(high - low > 1.0, floor(_between(low, high)), high)
        middle = minimum(maximum(middle, low + 1.0), high)
        below, above = law.rule("cdf")(middle, *given), law.rule("sf")(middle, *given)
        # SciPy's tolerance for probabilities that are sums: a few units in the last place.
        is_enough = where(is_left, below >= part * (1.0 - _NEAR), above <= part * (1.0 + _NEAR))
        return trip + 1, where(is_enough, low, middle), where(is_enough, middle, high)

    def goes_on(state: Any) -> Any:
        return logical_and(less(state[0], _TRIPS), any_of(greater(state[2] - state[1], 1.0)))

    found = stop_gradient(while_loop(goes_on, halve, (0, low, high), max_trips=_TRIPS)[2])
    ends = (last, first - 1.0) if is_upper else (first - 1.0, last)
    return where(equal(q, 0.0), ends[0], where(equal(q, 1.0), ends[1], found))
