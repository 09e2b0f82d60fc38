"""Functions of scipy.special composed of others: binomials, powers, losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from primgraph.operators.call import namespace_operator
from primgraph.operators.elementwise.arithmetic import abs as absolute
from primgraph.operators.elementwise.arithmetic import divide, floor, power, remainder
from primgraph.operators.elementwise.arithmetic import round as round_
from primgraph.operators.elementwise.elementary import expm1, log, log1p, sin, sqrt
from primgraph.operators.elementwise.logic import (
    equal,
    greater,
    less,
    logical_and,
    logical_not,
    logical_or,
    where,
)
from primgraph.operators.elementwise.special_functions import beta, gamma
from primgraph.operators.handle import ArrayLike
from primgraph.operators.promotion import fractional, lift, promote_operands
from primgraph.operators.variable import Variable, emit
from primgraph.primitives.special_functions import gamma as gammas


def _floats(name: str, *operands: ArrayLike) -> list[Variable]:
    return promote_operands(*operands, dtype=fractional(*operands), name=name)


@namespace_operator
def gammasgn(x: ArrayLike) -> Variable:
    """Return the sign of the gamma function, as a float; NaN at its poles below zero.

    >>> print(f"{pg.special.gammasgn(-0.5):.4f}")
    -1.0000
    """
    value = lift(x, fractional(x))
    whole = floor(value)
    below = where(equal(whole, value), math.nan, 1.0 - 2.0 * remainder(whole, 2.0))
    return where(less(value, 0.0), below, where(equal(value, value), 1.0, value))


@namespace_operator
def poch(z: ArrayLike, m: ArrayLike) -> Variable:
    """Compute `gamma(z + m) / gamma(z)`, Pochhammer's symbol, a polynomial for whole `m` from 0.

    It is 0 at a pole of the denominator only. Where poles cancel, its derivative by `m` is NaN.

    >>> print(f"{pg.special.poch(3.0, 2.0):.4f}")
    12.0000
    """
    return emit(gammas.poch, *_floats("poch", z, m))


def _sine(x: Variable) -> Variable:
    """Return `sin(pi * x)`, exactly 0 at integers."""
    whole = round_(x)
    return (1.0 - 2.0 * remainder(whole, 2.0)) * sin(math.pi * (x - whole))


@namespace_operator
def binom(n: ArrayLike, k: ArrayLike) -> Variable:
    """Compute `gamma(n + 1) / (gamma(k + 1) * gamma(n - k + 1))`, to a few units in the last place.

    It is 0 for integers `k` outside 0 to `n`, and NaN for negative integers `n`.

    >>> print(f"{pg.special.binom(5.0, 2.0):.4f}")
    10.0000
    """
    whole, part = _floats("binom", n, k)
    undefined = logical_and(less(whole, 0.0), equal(floor(whole), whole))
    whole = where(undefined, math.nan * whole, whole)
    rest = whole - part
    # Poles of a gamma function in the denominator: the reflection formula, DLMF 5.5.3, with sines.
    below, above = less(part, -0.5), less(rest, -0.5)
    outside = logical_or(below, above)
    turned = where(below, part, rest)
    value = beta(where(outside, whole + 1.0, rest + 1.0), where(outside, -turned, part + 1.0))
    inside = divide(1.0, where(outside, 1.0, (whole + 1.0) * value))
    return where(outside, _sine(turned) * (value * (-1.0 / math.pi)), inside)


@namespace_operator
def comb(N: ArrayLike, k: ArrayLike) -> Variable:
    """Return how many ways there are to choose `k` of `N`: `binom` of whole numbers, else 0.

    >>> print(f"{pg.special.comb(5, 2):.4f}")
    10.0000
    """
    whole, part = _floats("comb", N, k)
    outside = logical_or(less(part, 0.0), greater(part, whole))
    return where(outside, 0.0, binom(whole, where(outside, 0.0, part)))


@namespace_operator
def factorial(n: ArrayLike) -> Variable:
    """Compute `gamma(n + 1)`, and 0 below zero.

    >>> print(f"{pg.special.factorial(5):.4f}")
    120.0000
    """
    value = lift(n, fractional(n))
    return where(less(value, 0.0), 0.0, gamma(where(less(value, 0.0), 0.0, value) + 1.0))


def _is_near(t: Variable) -> Variable:
    return less(absolute(t), 0.03)


def _series(t: Variable) -> Variable:
    """Return `(exp(t) - 1) / t` near 0, by its series."""
    total: Any = 1.0
    for k in range(9, 1, -1):
        total = 1.0 + t / k * total
    return lift(total)


@namespace_operator
def cosm1(x: ArrayLike) -> Variable:
    """Compute `cos(x) - 1`, exact near zero: `-2 sin(x / 2)**2`.

    >>> print(f"{pg.special.cosm1(1e-6):.4e}")
    -5.0000e-13
    """
    half = sin(lift(x, fractional(x)) * 0.5)
    return -2.0 * (half * half)


@namespace_operator
def exprel(x: ArrayLike) -> Variable:
    """Compute `(exp(x) - 1) / x`, and 1 at 0.

    >>> print(f"{pg.special.exprel(1.0):.4f}")
    1.7183
    """
    value = lift(x, fractional(x))
    near = _is_near(value)
    return where(near, _series(value), expm1(value) / where(near, 1.0, value))


def _powers(
    logarithm: Callable[[Variable], Variable], x: Variable, zero: float, exponent: Variable
) -> Variable:
    """Return `(exp(logarithm(x) * exponent) - 1) / exponent`, or the logarithm for exponent 0.

    At `x = zero` the logarithm is -inf; there the derivatives for a positive exponent are those of
    the power itself.
    """
    edge = logical_and(equal(x, zero), greater(exponent, 0.0))
    power_at_edge = power(where(edge, x - zero, 1.0), exponent)
    inner = logarithm(where(edge, zero + 1.0, x))
    none = equal(exponent, 0.0)
    vanishing = logical_and(none, equal(inner, -math.inf))
    t = where(vanishing, 0.0, inner) * exponent
    near = logical_and(logical_or(_is_near(t), none), logical_not(edge))
    raised = where(edge, power_at_edge - 1.0, expm1(t))
    return where(near, inner * _series(t), raised / where(near, 1.0, exponent))


@namespace_operator
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Variable:
    """Compute `(x**lmbda - 1) / lmbda`, and `log(x)` where `lmbda` is 0.

    >>> print(f"{pg.special.boxcox(4.0, 0.5):.4f}")
    2.0000
    """
    value, exponent = _floats("boxcox", x, lmbda)
    return _powers(log, value, 0.0, exponent)


@namespace_operator
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Variable:
    """Compute `boxcox(1 + x, lmbda)`, exact near 0.

    >>> print(f"{pg.special.boxcox1p(3.0, 0.5):.4f}")
    2.0000
    """
    value, exponent = _floats("boxcox1p", x, lmbda)
    return _powers(log1p, value, -1.0, exponent)


@namespace_operator
def huber(delta: ArrayLike, r: ArrayLike) -> Variable:
    """Compute `r*r / 2` up to `delta`, and a line from there on; inf for a `delta` below zero.

    >>> print(f"{pg.special.huber(1.0, 3.0):.4f}")
    2.5000
    """
    edge, value = _floats("huber", delta, r)
    size = absolute(value)
    line = edge * (size - 0.5 * edge)
    loss = where(less(size, edge), 0.5 * (value * value), line)
    return where(less(edge, 0.0), math.inf, loss)


@namespace_operator
def pseudo_huber(delta: ArrayLike, r: ArrayLike) -> Variable:
    """Compute `delta**2 * (sqrt(1 + (r / delta)**2) - 1)`, a smooth `huber`; 0 where `delta` is 0.

    >>> print(f"{pg.special.pseudo_huber(1.0, 3.0):.4f}")
    2.1623
    """
    edge, value = _floats("pseudo_huber", delta, r)
    none = equal(edge, 0.0)
    ratio = value / where(none, 1.0, edge)
    loss = where(none, 0.0, value * value / (1.0 + sqrt(1.0 + ratio * ratio)))
    return where(less(edge, 0.0), math.inf, loss)
