"""Distribution functions by quadrature of the density, where there is no closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from primgraph.operators.elementwise.arithmetic import maximum, minimum
from primgraph.operators.elementwise.elementary import exp
from primgraph.operators.elementwise.logic import (
    equal,
    greater,
    greater_equal,
    isinf,
    less,
    less_equal,
    logical_and,
    logical_xor,
    where,
)
from primgraph.operators.reduce.reductions import sum as sum_of
from primgraph.operators.shape.creation import stop_gradient
from primgraph.operators.shape.shaping import expand_dims
from primgraph.operators.variable import Variable
from primgraph.scipy.stats.parts import Law, is_infinite


def double_exponential(count: int, reach: float, is_finite: bool) -> tuple[Any, Any]:
    """Return nodes and weights of Takahasi's and Mori's rules (1974), for 0 to 1 or to infinity."""
    t = np.linspace(-reach, reach, count)
    u, slope = 0.5 * np.pi * np.sinh(t), 0.5 * np.pi * np.cosh(t)
    step = t[1] - t[0]
    if not is_finite:
        return np.exp(u), step * slope * np.exp(u)
    nodes = 1.0 / (1.0 + np.exp(-2.0 * u))
    return nodes, 2.0 * step * slope * nodes / (1.0 + np.exp(2.0 * u))


_COUNT = 201
_FINITE, _INFINITE = double_exponential(_COUNT, 3.4, True), double_exponential(_COUNT, 4.0, False)


# Of the rule for 0 to infinity: nodes, and the logarithms of weights.
POSITIVE_NODES, LOG_WEIGHTS = _INFINITE[0], np.log(_INFINITE[1])


def total(density: Callable[[Any, Any], Any]) -> Variable:
    """Return the integral from 0 to 1 of `density(t, 1 - t)`, where arrays have one more axis."""
    nodes, weights = _FINITE
    return sum_of(density(nodes, nodes[::-1]) * weights, -1)


def integral(law: Law, is_upper: bool, x: Variable, *shapes: Variable) -> Variable:
    """Return the integral of the density below `x`, or above it if `is_upper`.

    The part on that side of the middle of the distribution is integrated by 201 nodes of a double
    exponential rule, and the other one is its rest of one: its relative error is about 1e-13
    where the density falls from `x` on.
    """
    middle = stop_gradient(law.middle(*shapes))
    is_left = less(x, middle)
    place, *wide = [expand_dims(v, -1) for v in (x, *shapes)]
    first, last = law.support(*wide)
    to_left, to_right = _places(place, first, -1.0), _places(place, last, 1.0)
    side = expand_dims(is_left, -1)
    at, weight = (where(side, *pair) for pair in zip(to_left, to_right, strict=True))
    part = sum_of(exp(law.rule("density")(at, *wide)) * weight, -1)
    is_part = logical_xor(is_left, is_upper)
    return where(is_part, part, 1.0 - part)


def _places(place: Variable, end: Any, sign: float) -> tuple[Any, Any]:
    """Return the places from one to an end of the support, and their weights."""
    endless = place + sign * _INFINITE[0], _INFINITE[1]
    if is_infinite(end):
        return endless
    is_endless = isinf(end) if isinstance(end, Variable) else None
    way = end - place if is_endless is None else where(is_endless, 0.0, end - place)
    # By the distance from the end, so that places close to it have all digits.
    at, weight = end - way * _FINITE[0][::-1], sign * way * _FINITE[1]
    is_lost = equal(at, end)
    at, weight = where(is_lost, place, at), where(is_lost, 0.0, weight)
    if is_endless is None:
        return at, weight
    return where(is_endless, endless[0], at), where(is_endless, endless[1], weight)


PLACES = np.arange(1024.0)


def sum_of_tail(law: Law, is_upper: bool, k: Variable, *shapes: Variable) -> Variable:
    """Return the sum of the probabilities up to `k`, or above it if `is_upper`.

    The part on that side of the middle of the distribution is summed, and the other one is its rest
    of one. It is NaN where 1,024 terms are not enough. If there is no last number, the rest above
    is an integral, by Euler's and Maclaurin's formula.
    """
    middle = stop_gradient(law.middle(*shapes))
    is_left = less(k, middle)
    place, *wide = [expand_dims(v, -1) for v in (k, *shapes)]
    first, last = law.support(*wide)
    side = expand_dims(is_left, -1)
    density = law.rule("density")
    at = where(side, place - PLACES, place + 1.0 + PLACES)
    is_in = logical_and(greater_equal(at, first), less_equal(at, last))
    inside = where(is_in, at, maximum(first, minimum(last, place)))
    terms = where(is_in, exp(density(inside, *wide)), 0.0)
    part, end = sum_of(terms, -1), terms[..., -1]
    is_cut = greater(end, 1e-17 * part)
    if is_infinite(last):
        start = where(side, 0.0, place) + (PLACES.size + 0.5)
        beyond = sum_of(exp(density(start + POSITIVE_NODES, *wide)) * _INFINITE[1], -1)
        following = exp(density(start + 0.5, *wide))[..., 0]
        part = part + where(is_left, 0.0, beyond + (following - end) / 24.0)
        is_cut = logical_and(is_cut, is_left)
    part = where(is_cut, math.nan, part)
    return where(logical_xor(is_left, is_upper), part, 1.0 - part)
