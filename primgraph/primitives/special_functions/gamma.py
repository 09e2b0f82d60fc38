"""The gamma function, its logarithm and derivatives, and quotients of gamma functions.

They are closed under differentiation: every derivative, of any order, is expressed by functions of
this file. A quotient such as `gamma(a) * gamma(b) / gamma(a + b)` is smooth at a pole of its
denominator, where it is 0, and where poles of numerator and denominator cancel. There derivatives
use the reflection formula. In rules `z` is the result and `d` the tangent of the operand that the
rule differentiates. Formulas are from DLMF, chapter 5.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from primgraph.approximations import beta as betas
from primgraph.approximations import gamma as gammas
from primgraph.errors import ArgumentError, ShapeError, UnsupportedDTypeError
from primgraph.ir.graph import Value
from primgraph.ir.primitive import Primitive, Rule
from primgraph.ir.types import TensorType, common_type
from primgraph.primitives.constants import filled_constant, zeros_like
from primgraph.primitives.elementwise import cos, elementwise, exp, floor, round_, sin
from primgraph.primitives.logic import (
    equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    select,
)
from primgraph.primitives.shapes import with_batch_axis

# Cost per element, as in `elementwise`, of a function that evaluates one or two polynomials.
POLYNOMIAL = 50


def declare_with_orders(
    name: str,
    impl: Rule,
    operands: int,
    params: tuple[str, ...],
    flops: int,
    functions: Collection[str] = (),
) -> Primitive[Value]:
    """Declare a primitive on equal floats, with derivative orders as parameters.

    A parameter `upper` is a side, and `name` is one of `functions`.
    """
    orders = [param for param in params if param not in ("name", "upper")]

    def type_rule(*types: TensorType, **given: Any) -> TensorType:
        if len(types) != operands:
            raise ShapeError(f"{name} takes {operands} operands, not {len(types)}")
        if set(given) != set(params):
            raise ArgumentError(f"{name} takes {' and '.join(params)}")
        if given.get("name", "") not in ("", *functions):
            raise ArgumentError(f"{name} knows no function {given['name']!r:.40}")
        first = common_type(name, *types)
        if first.dtype.kind != "f":
            raise UnsupportedDTypeError(f"{name} does not take {first}")
        for order in orders:
            if given[order] < 0:
                raise ArgumentError(f"{name} has no order {given[order]}")
        return first

    op: Primitive[Value] = Primitive(
        name, type_rule, impl, elementwise=True, singular=True, flops=flops
    )

    @op.batch
    def batch_rule(batched: tuple[bool, ...], *inputs: Value, **params: Any) -> Value:
        return op(*with_batch_axis(batched, inputs), **params)

    return op


# The gamma function, its logarithm, and the derivatives of the logarithm.

gammaln: Primitive[Value] = elementwise(
    "gammaln", gammas.gammaln, singular=True, flops=POLYNOMIAL,
    jvp=lambda z, x, d: d * polygamma(x, n=0),
)  # fmt: skip
gamma_function: Primitive[Value] = elementwise(
    "gamma_function", gammas.gamma_function, singular=True, flops=POLYNOMIAL,
    jvp=lambda z, x, d: d * (z * polygamma(x, n=0)),
)  # fmt: skip
polygamma: Primitive[Value] = declare_with_orders(
    "polygamma", lambda x, *, n: gammas.polygamma(x, n), 1, ("n",), 2 * POLYNOMIAL
)


@polygamma.jvp()
def _polygamma_jvp(z: Value, x: Value, d: Value, *, n: int) -> Value:
    return d * polygamma(x, n=n + 1)


# Quotients of gamma functions. 1 / gamma(y) is sin(pi y) gamma(1 - y) / pi. DLMF 5.5.3.


def _is_pole(x: Value) -> Value:
    """Return where `gamma(x)` has a pole: at the integers up to 0."""
    return logical_and(less_equal(x, zeros_like(x)), equal(floor(x), x))


def _parity(whole: Value) -> Value:
    """Return 1 for even integers and -1 for odd ones."""
    return 1.0 - 2.0 * (whole - 2.0 * floor(0.5 * whole))


def _sin_pi(x: Value) -> Value:
    """Return `sin(pi * x)`, exactly 0 at integers."""
    whole = round_(x)
    return _parity(whole) * sin(math.pi * (x - whole))


def _cos_pi(x: Value) -> Value:
    whole = round_(x)
    return _parity(whole) * cos(math.pi * (x - whole))


def _reflect_where(x: Value, where: Value) -> Value:
    return select(where, 1.0 - x, x)


def _digamma_difference(x: Value, y: Value, poles: Value, left: Value) -> Value:
    """Return the derivative of `log(gamma(x) / gamma(y))` along x, with `x - y` constant.

    Where `poles` marks poles of both, the cotangents of the reflection formula cancel. Where `left`
    is true, the derivative of `log(sin(pi * y))` is left out.
    """
    return polygamma(_reflect_where(x, poles), n=0) - polygamma(_reflect_where(y, left), n=0)


def _betaln_slope(a: Value, b: Value) -> Value:
    """Return the derivative of `betaln(a, b)` by `a`."""
    total = a + b
    poles = logical_and(_is_pole(a), _is_pole(total))
    return _digamma_difference(a, total, poles, poles)


betaln: Primitive[Value] = elementwise(
    "betaln", betas.betaln, operands=2, commutative=True, singular=True, flops=3 * POLYNOMIAL,
    jvp=(lambda z, a, b, d: d * _betaln_slope(a, b), lambda z, a, b, d: d * _betaln_slope(b, a)),
)  # fmt: skip


def _beta_slope(z: Value, a: Value, b: Value) -> Value:
    """Return the derivative of `beta(a, b)` by `a`.

    With `s = a + b` below 1/2, `z` is `gamma(a) gamma(b) gamma(1 - s) sin(pi s) / pi`, where only
    the sine vanishes as `s` approaches a pole of `gamma`.
    """
    total = a + b
    left, pole = less(total, filled_constant(0.5, a.type)), _is_pole(a)
    slope = z * _digamma_difference(a, total, logical_and(pole, _is_pole(total)), left)
    crossing = logical_and(left, logical_not(pole))
    one = filled_constant(1, a.type)
    first, second, third = (gamma_function(select(crossing, x, one)) for x in (a, b, 1.0 - total))
    return slope + select(crossing, first * second * third * _cos_pi(total), zeros_like(slope))


beta: Primitive[Value] = elementwise(
    "beta", betas.beta, operands=2, commutative=True, singular=True, flops=5 * POLYNOMIAL,
    jvp=(
        lambda z, a, b, d: d * _beta_slope(z, a, b),
        lambda z, a, b, d: d * _beta_slope(z, b, a),
    ),
)  # fmt: skip


def _poch_slope(p: Value, z: Value, m: Value, d: Value) -> Value:
    """Return the derivative of `gamma(z + m) / gamma(z)` by `z`.

    For `z` below 1/2 the function is `gamma(z + m) gamma(1 - z) sin(pi z) / pi`.
    """
    end = z + m
    half = filled_constant(0.5, z.type)
    left, pole = less(z, half), _is_pole(end)
    slope = p * _digamma_difference(end, z, logical_and(pole, _is_pole(z)), left)
    crossing = logical_and(left, logical_not(pole))
    # Add logarithms: the product of the factors may overflow where the result does not.
    start, end = (select(crossing, x, half) for x in (z, end))
    below = less(end, half)
    size = gammaln(_reflect_where(end, below))
    size = exp(select(below, -size, size) + gammaln(1.0 - start))
    sine = select(below, _sin_pi(end), filled_constant(math.pi, z.type))
    factor = size * (math.pi / sine) * _cos_pi(start)
    return d * (slope + select(crossing, factor, zeros_like(slope)))


poch: Primitive[Value] = elementwise(
    "poch", betas.poch, operands=2, singular=True, flops=3 * POLYNOMIAL,
    jvp=(_poch_slope, lambda p, z, m, d: d * (p * polygamma(z + m, n=0))),
)  # fmt: skip
