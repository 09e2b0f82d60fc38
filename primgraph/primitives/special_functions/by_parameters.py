"""Derivatives of special functions by parameters: orders of Bessel functions, and others.

The functions themselves, which SciPy computes, are in `scipy_calls`. Derivatives of these by
parameters are closed under differentiation by all operands. In rules `z` is the result and `d` the
tangent of an operand. Formulas are from DLMF, chapters 10, 13, 15 and 25.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

from primgraph.approximations import bessel, hypergeometric
from primgraph.ir.graph import Value
from primgraph.ir.primitive import Primitive
from primgraph.primitives.constants import filled_constant, zeros_like
from primgraph.primitives.elementwise import abs_, integer_pow, sign
from primgraph.primitives.logic import equal, less, logical_and, logical_not, select
from primgraph.primitives.special_functions.gamma import declare_with_orders

# Floating-point operations for each element, of quadratures and of series.
_QUADRATURE, _SERIES = 20000, 5000

# Weights of the functions of orders v - 1 and v + 1 in the derivative of each Bessel function.
NEIGHBOURS = {
    "iv": (0.5, 0.5),
    "ive": (0.5, 0.5),
    "jv": (0.5, -0.5),
    "kv": (-0.5, -0.5),
    "kve": (-0.5, -0.5),
    "yv": (0.5, -0.5),
}

bessel_by_order: Primitive[Value] = declare_with_orders(
    "bessel_by_order",
    lambda v, x, *, name, n: bessel.bessel_by_order(v, x, n, name),
    2,
    ("name", "n"),
    _QUADRATURE,
    NEIGHBOURS,
)


def by_neighbours(name: str, z: Value, v: Value, x: Value, function: Callable[..., Value]) -> Value:
    """Return the derivative by `x` of `z = function(name, v, x)`, a Bessel function of order `v`.

    Names that end with e are scaled, by exp(-abs(x)) or exp(x).
    """
    below, above = NEIGHBOURS[name]
    found = below * function(name, v - 1.0, x) + above * function(name, v + 1.0, x)
    if name.endswith("e"):
        found = found - sign(x) * z if above > 0.0 else found + z
    return found


@bessel_by_order.jvp(0)
def _by_order(z: Value, v: Value, x: Value, d: Value, *, name: str, n: int) -> Value:
    return d * bessel_by_order(v, x, name=name, n=n + 1)


@bessel_by_order.jvp(1)
def _by_argument(z: Value, v: Value, x: Value, d: Value, *, name: str, n: int) -> Value:
    def function(name: str, v: Value, x: Value) -> Value:
        return bessel_by_order(v, x, name=name, n=n)

    return d * by_neighbours(name, z, v, x, function)


def _weights_of_neighbours(name: str, count: int) -> dict[int, list[float]]:
    """Return the derivative of order `count` by the argument, as a sum of neighbours.

    For each difference of orders it has the factors of the powers 0 to 2 of the argument's sign.
    """
    below, above = NEIGHBOURS[name]
    found = {0: [1.0, 0.0, 0.0]}
    for _ in range(count):
        before, found = found, {}
        for shift, (plain, odd, even) in before.items():
            parts = {-1: (below, plain, odd, even), 1: (above, plain, odd, even)}
            if name.endswith("e"):
                own = (-1.0, 0.0, plain + even, odd) if above > 0.0 else (1.0, plain, odd, even)
                parts[0] = own
            for step, (weight, *powers) in parts.items():
                total = found.setdefault(shift + step, [0.0, 0.0, 0.0])
                found[shift + step] = [t + weight * p for t, p in zip(total, powers, strict=True)]
    return found


def bessel_coefficient(
    jets: Any, k: int, v: Any, x: Any, name: str, function: Callable[..., Value]
) -> Value | None:
    """Return coefficient `k` of the series of a Bessel function, by the order and the argument.

    `function(v, x, n)` is its derivative of order `n` by `v`.
    """
    order, argument = v.first(), x.first()
    turn = sign(argument)

    def derivative(n: int, j: int) -> Value:
        total: Value | None = None
        for shift, weights in _weights_of_neighbours(name, j).items():
            term = function(order + float(shift) if shift else order, argument, n)
            factor: Any = weights[0]
            for weight, power in zip(weights[1:], (turn, turn * turn), strict=True):
                factor = factor + weight * power if weight else factor
            term = factor * term
            total = term if total is None else total + term
        assert total is not None
        return total

    found: Value | None = jets.chain(k, (v, x), derivative)
    return found


@bessel_by_order.taylor
def _bessel_taylor(jets: Any, k: int, z: Any, v: Any, x: Any, *, name: str, n: int) -> Value | None:
    def function(v: Value, x: Value, more: int) -> Value:
        return bessel_by_order(v, x, name=name, n=n + more)

    return bessel_coefficient(jets, k, v, x, name, function)


def unless_ended(factor: Value, value: Value) -> Value:
    """Return `factor * value`, and 0 where the factor is 0, even where the value diverges."""
    diverges = logical_not(less(abs_(value), filled_constant(math.inf, value.type)))
    is_lost = logical_and(equal(factor, zeros_like(factor)), diverges)
    return factor * select(is_lost, zeros_like(value), value)


kummer_by_parameters: Primitive[Value] = declare_with_orders(
    "kummer_by_parameters",
    lambda a, b, x, *, i, j: hypergeometric.kummer_by_parameters(a, b, x, i, j),
    3,
    ("i", "j"),
    _SERIES,
)
gauss_by_parameters: Primitive[Value] = declare_with_orders(
    "gauss_by_parameters",
    lambda a, b, c, x, *, i, j, k: hypergeometric.gauss_by_parameters(a, b, c, x, i, j, k),
    4,
    ("i", "j", "k"),
    _SERIES,
)


def _declare_hypergeometric(op: Primitive[Value], names: str) -> None:
    """Declare the rules of a hypergeometric function, differentiated by its parameters."""

    def declare(position: int) -> None:
        @op.jvp(position)
        def by_parameter(z: Value, *operands: Any, **orders: int) -> Value:
            *own, d = operands
            name = names[position]
            result: Value = d * op(*own, **{**orders, name: orders[name] + 1})
            return result

    for position in range(len(names)):
        declare(position)

    @op.jvp(len(names))
    def by_argument(z: Value, *operands: Any, **orders: int) -> Value:
        """Return the tangent by `x`, of `a b / c` times the function of parameters plus one.

        Derivatives of that product are by Leibniz's rule.
        """
        *above, below, x, d = operands
        raised = [p + 1.0 for p in (*above, below)]
        *counts, last = [orders[name] for name in names]
        total: Value | None = None
        for lost in product(*[range(min(n, 1) + 1) for n in counts], range(last + 1)):
            *drops, k = lost
            weight = float(math.comb(last, k) * math.factorial(k) * (-1) ** k)
            factor = weight / (integer_pow(below, n=k + 1) if k else below)
            for parameter, n, drop in zip(above, counts, drops, strict=True):
                factor = float(n) * factor if drop else factor * parameter
            rest = {name: orders[name] - m for name, m in zip(names, lost, strict=True)}
            term = unless_ended(factor, op(*raised, x, **rest))
            total = term if total is None else total + term
        result: Value = d * total
        return result


_declare_hypergeometric(kummer_by_parameters, "ij")
_declare_hypergeometric(gauss_by_parameters, "ijk")

zeta_by_exponent: Primitive[Value] = declare_with_orders(
    "zeta_by_exponent",
    lambda s, x, *, n: hypergeometric.zeta_by_exponent(s, x, n),
    2,
    ("n",),
    _SERIES,
)


@zeta_by_exponent.jvp(0)
def _zeta_by_exponent(z: Value, s: Value, x: Value, d: Value, *, n: int) -> Value:
    return d * zeta_by_exponent(s, x, n=n + 1)


@zeta_by_exponent.jvp(1)
def _zeta_by_argument(z: Value, s: Value, x: Value, d: Value, *, n: int) -> Value:
    """Return the tangent by `x`: the derivative -s zeta(s + 1, x), differentiated by s."""
    slope = s * zeta_by_exponent(s + 1.0, x, n=n)
    if n:
        slope = slope + float(n) * zeta_by_exponent(s + 1.0, x, n=n - 1)
    return -(d * slope)
