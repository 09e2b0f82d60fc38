"""Powers, exponentials, circular and hyperbolic functions with their inverses, error functions.

In rules `x, y` are inputs, `z` is the result and `d` the tangent of the operand that the rule
differentiates. Formulas are the usual derivatives, expressed by the result where that is stable.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from primgraph.errors import DTypeError
from primgraph.ir.facts.matrices import (
    ALWAYS,
    NOT_NEGATIVE,
    NOTHING,
    POSITIVE,
    STRUCTURE,
    Structure,
)
from primgraph.ir.facts.ranges import (
    ANYTHING,
    DOMAIN,
    FINITE_SLOPE,
    INF,
    LEAST,
    RANGE,
    RANGE_AT,
    REAL,
    Around,
    Range,
    angle,
    bound_rule,
    exp_is_finite,
    hull,
    increasing_rule,
    is_finite_unless_nan,
    is_polynomial,
    log_of_sum,
    power_of,
    reciprocal_root,
    root,
    wave,
)
from primgraph.ir.graph import Equation, Value
from primgraph.ir.primitive import Primitive, Rule
from primgraph.ir.types import TensorType
from primgraph.primitives.constants import filled_constant, zeros_like
from primgraph.primitives.elementwise.arithmetic import (
    ALGEBRA,
    INEXACT,
    QUOTIENT,
    abs_,
    div,
    elementwise,
    maximum,
    minimum,
    mul,
    stop_gradient,
)
from primgraph.primitives.logic import equal, greater, greater_equal, less, less_equal, select

__all__ = [
    "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "cos", "cosh",
    "erf", "erfc", "exp", "expm1", "integer_pow", "is_finite_test", "log", "log1p", "logaddexp",
    "power", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh",
]  # fmt: skip

# No float64 or float32 is closer to a zero of the cosine: 4.7e-19 and 1.6e-9 are the least
# (J.-M. Muller, Elementary Functions, 3rd edition, 2016, chapter 11).
_LEAST_COSINE = 1e-20


# Domains, for analyses.


def _is_positive(x: Range) -> bool:
    return x.low > 0


def _exceeds(bound: float) -> Callable[[Range], bool]:
    return lambda x: x.low > bound


def _is_within(bound: float) -> Callable[[Range], bool]:
    return lambda x: x.within(-bound, bound)


def _root_structure(eqn: Equation, definition: Rule, x: Structure) -> Structure:
    return x & (Structure.SYMMETRIC | POSITIVE) | NOT_NEGATIVE


# Powers and roots.


# Up to these orders a Taylor coefficient of a power is computed from powers of all bases, which is
# right at zero. The first bound is for varying exponents, the second for fixed ones. All
# coefficients up to k take O(k**3) products with a small factor: up to order 8 no more than by
# logarithms.
_EXACT, _EXACT_OF_BASES = 3, 8


def _power_jvp_base(z: Value, x: Value, y: Value, d: Value) -> Value:
    """Return the tangent `y * x**(y-1) * d`; where x and y are 0 the second factor is kept finite.

    The first factor is unchanged, so that derivatives by y see it. An x without a finite reciprocal
    counts as 0.
    """
    if x.type.is_complex:
        zero = equal(y, zeros_like(y))
        return d * (y * power(x, select(zero, filled_constant(1, y.type), y - 1.0)))
    smallest = filled_constant(np.finfo(x.dtype).tiny, x.type)
    exponent = y - 1.0
    finite = select(less(abs_(x), smallest), filled_constant(1, y.type), exponent)
    return d * (y * power(x, select(equal(y, zeros_like(y)), finite, exponent)))


def _power_jvp_exponent(z: Value, x: Value, y: Value, d: Value) -> Value:
    """Return the tangent `z * log(x) * d`; at x = 0 the logarithm counts as 0."""
    safe = select(equal(x, zeros_like(x)), filled_constant(1, x.type), x)
    return d * (z * log(safe))


def _power(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> Any:
    """Return `x**y` as NumPy computes it for arrays with axes.

    For a scalar exponent of 0.5 NumPy takes square roots, which differ at -inf and -0.0.
    """
    if x.ndim or x.dtype.kind != "f":
        return np.power(x, y)
    return np.power(x.reshape(1), y.reshape(1)).reshape(())


power = elementwise(
    "power", _power, operands=2, singular=True, kinds=ALGEBRA,
    jvp=(_power_jvp_base, _power_jvp_exponent),
    facts={RANGE: power_of, DOMAIN: lambda x, y: x.low > 0 and is_polynomial(x, y)},
)  # fmt: skip


@power.taylor
def _power_taylor(jets: Any, k: int, z: Any, x: Any, y: Any) -> Any:
    """Return `z_k` from `z' = z w'` with `w = y log(x)`, or NotImplemented.

    NotImplemented selects the JVP rules: for low orders, for a fixed x, and for a fixed y with an x
    linear in the series variable. These are right at zero, too, and a fixed x needs one power only.
    """
    exact = _EXACT_OF_BASES if y.fixed else _EXACT
    if k <= exact or x.fixed or (y.fixed and jets.is_line(x, k)):
        return NotImplemented
    if y.fixed:
        rate = jets.apply(mul, y, jets.apply(div, jets.rate(x), x))
    else:
        rate = jets.rate(jets.apply(mul, y, jets.apply(log, x)))
    return jets.integral(jets.apply(mul, z, rate), k)


sqrt = elementwise(
    "sqrt", np.sqrt, flops=QUOTIENT, kinds=INEXACT, singular=True,
    jvp=lambda z, x, d: d * (0.5 / z),
    facts={
        RANGE: root, DOMAIN: _is_positive, LEAST: lambda least: math.sqrt(least(0)),
        STRUCTURE: _root_structure,
    },
)  # fmt: skip


@sqrt.taylor
def _sqrt_taylor(jets: Any, k: int, z: Any, x: Any) -> Any:
    """Return `z_k` from `2 z_0 z_k = x_k - sum(z_i z_{k-i})`, without the terms with z_k."""
    rest = jets.difference(x[k], jets.square(mul, z, k, 1))
    return None if rest is None else jets.quotient(rest, z[0] * 2.0)


rsqrt = elementwise(
    "rsqrt", lambda x: (1 / np.sqrt(x)).astype(x.dtype), kinds=INEXACT, singular=True,
    jvp=lambda z, x, d: d * (-0.5 * (z / x)),
    facts={RANGE: reciprocal_root, DOMAIN: _is_positive},
)  # fmt: skip


def _has_power(x: Range, *, n: int) -> bool:
    return n >= 0 or x.excludes_zero


def _integer_pow_range(x: Range, *, n: int) -> Range:
    if not (x.finite and _has_power(x, n=n)):
        return ANYTHING
    return Range(0.0) if n % 2 == 0 or x.low >= 0 else REAL


def _integer_pow_structure(eqn: Equation, definition: Rule, x: Structure) -> Structure:
    n = eqn.kwargs["n"]
    even = NOT_NEGATIVE if n % 2 == 0 else NOTHING
    return x & (Structure.SYMMETRIC | (POSITIVE if n > 0 else NOTHING)) | even


def _integer_pow_type(x: TensorType, *, n: int) -> TensorType:
    if x.dtype.kind not in ALGEBRA:
        raise DTypeError(f"integer_pow does not take {x}")
    if n < 0 and not x.is_inexact:
        raise DTypeError(f"integers have no negative integer powers: {x} to the power {n}")
    return x


def _integer_pow_flops(x: TensorType, *, n: int) -> int:
    """Return the products of repeated squaring, plus a division for a negative power."""
    m = abs(n)
    products = m.bit_length() + m.bit_count() - 2 if m else 0
    return x.size * (products + QUOTIENT * (n < 0))


integer_pow: Primitive[Value] = Primitive(
    "integer_pow",
    _integer_pow_type,
    lambda x, *, n: x**n,
    elementwise=True,
    singular=True,
    flops=_integer_pow_flops,
    facts={RANGE: _integer_pow_range, DOMAIN: _has_power, STRUCTURE: _integer_pow_structure},
)


@integer_pow.jvp()
def _integer_pow_jvp(z: Value, x: Value, d: Value, *, n: int) -> Value | None:
    """Return the tangent `n * x**(n-1) * d`; powers 0 and 1 are constant and linear everywhere."""
    if n == 0:
        return None
    if n == 1:
        return d
    slope = x if n == 2 else integer_pow(x, n=n - 1)
    return d * (float(n) * slope)


@integer_pow.taylor
def _integer_pow_taylor(jets: Any, k: int, z: Any, x: Any, *, n: int) -> Value | None:
    """Return `z_k` by products of the half power, of the reciprocal if `n` is negative."""
    if n in (0, 1):
        return x[k] if n else None
    if n == -1:
        rest = jets.convolution(mul, z, x, k, k)
        return None if rest is None else -rest / x.first()
    base = x if n > 0 else jets.apply(integer_pow, x, n=-1)
    half = base if abs(n) < 4 else jets.apply(integer_pow, base, n=abs(n) // 2)
    product = jets.apply(mul, half, half)
    found: Value | None = (jets.apply(mul, product, base) if n % 2 else product)[k]
    return found


@integer_pow.batch
def _integer_pow_batch(batched: tuple[bool, ...], x: Value, *, n: int) -> Value:
    return integer_pow(x, n=n)


# Exponentials and logarithms.

exp = elementwise(
    "exp", np.exp, kinds=INEXACT, singular=True, jvp=lambda z, x, d: d * z,
    facts={ALWAYS: {0: POSITIVE}, FINITE_SLOPE: exp_is_finite},
)  # fmt: skip
expm1 = elementwise(
    "expm1", np.expm1, kinds=INEXACT, singular=True, jvp=lambda z, x, d: d * exp(x),
    facts={FINITE_SLOPE: exp_is_finite},
)  # fmt: skip
log = elementwise(
    "log", np.log, kinds=INEXACT, singular=True, jvp=lambda z, x, d: d / x,
    facts={RANGE: increasing_rule(math.log, _is_positive), DOMAIN: _is_positive},
)  # fmt: skip
log1p = elementwise(
    "log1p", np.log1p, kinds=INEXACT, singular=True, jvp=lambda z, x, d: d / (1.0 + x),
    facts={RANGE: increasing_rule(math.log1p, _exceeds(-1)), DOMAIN: _exceeds(-1)},
)  # fmt: skip
sigmoid: Primitive[Value] = elementwise(
    "sigmoid", lambda x: _sigmoid(x), jvp=lambda z, x, d: d * (z * sigmoid(-x)),
    facts={ALWAYS: {0: POSITIVE}, RANGE: bound_rule(0.0, 1.0), FINITE_SLOPE: is_finite_unless_nan},
)  # fmt: skip


@sigmoid.taylor
def _sigmoid_taylor(jets: Any, k: int, z: Any, x: Any) -> Any:
    """Return `z_k` from `z' = s x'`, where `s` is `z (1 - z)`; the first order by the JVP rule.

    Coefficient k of `s` is `(1 - 2 z_0) z_k - sum(z_i z_{k-i})`, without the terms with z_k.
    """
    if k == 1:
        return NotImplemented

    def slope(i: int) -> Any:
        first = x.first()
        if i == 0:
            return z.first() * sigmoid(-first)
        term = None if z[i] is None else tanh(first * -0.5) * z[i]
        return jets.difference(term, jets.square(mul, z, i, 1))

    return jets.integral(jets.apply(mul, jets.defined(z, slope), jets.rate(x)), k)


logaddexp = elementwise(
    "logaddexp", np.logaddexp, operands=2, commutative=True, singular=True,
    jvp=(lambda z, x, y, d: d * sigmoid(x - y), lambda z, x, y, d: d * sigmoid(y - x)),
    facts={RANGE: log_of_sum, DOMAIN: lambda x, y: True},
)  # fmt: skip


@exp.declares(RANGE_AT)
def _exp_range(eqn: Equation, around: Around, x: Range) -> Range:
    if not exp_is_finite(eqn, 0, x):
        return Range(0.0, INF, False, True, x.nan)
    return Range(0.0 if x.below else math.exp(x.low), math.exp(x.high), peak=x.peak)


# Circular and hyperbolic functions and their inverses; angles are in radians.


def _slope_of_arcsin(x: Value) -> Value:
    """Return `1 / sqrt(1 - x*x)`; for complex x by two roots, with the branch cuts of arcsin."""
    if x.type.is_complex:
        return rsqrt(1.0 - x) * rsqrt(1.0 + x)
    return rsqrt((1.0 - x) * (1.0 + x))


sin = elementwise(
    "sin", np.sin, kinds=INEXACT, jvp=lambda z, x, d: d * cos(x),
    facts={RANGE: wave},
)  # fmt: skip
cos: Primitive[Value] = elementwise(
    "cos", np.cos, kinds=INEXACT, jvp=lambda z, x, d: -(d * sin(x)),
    facts={RANGE: wave, LEAST: lambda least: _LEAST_COSINE},
)  # fmt: skip
tan = elementwise(
    "tan", np.tan, kinds=INEXACT, singular=True, jvp=lambda z, x, d: d * (1.0 + z * z),
    facts={DOMAIN: lambda x: True},
)  # fmt: skip
sinh = elementwise(
    "sinh", np.sinh, kinds=INEXACT, singular=True, jvp=lambda z, x, d: d * cosh(x),
    facts={DOMAIN: _is_within(80)},
)  # fmt: skip
cosh: Primitive[Value] = elementwise(
    "cosh", np.cosh, kinds=INEXACT, singular=True, jvp=lambda z, x, d: d * sinh(x),
    facts={ALWAYS: {0: POSITIVE}, DOMAIN: _is_within(80), LEAST: lambda least: 1.0},
)  # fmt: skip
tanh = elementwise(
    "tanh", np.tanh, kinds=INEXACT, jvp=lambda z, x, d: d * (1.0 - z * z),
    facts={RANGE: bound_rule(-1.0, 1.0), FINITE_SLOPE: is_finite_unless_nan},
)  # fmt: skip
arcsin = elementwise(
    "arcsin", np.arcsin, kinds=INEXACT, singular=True,
    jvp=lambda z, x, d: d * _slope_of_arcsin(x),
    facts={DOMAIN: _is_within(1)},
)  # fmt: skip
arccos = elementwise(
    "arccos", np.arccos, kinds=INEXACT, singular=True,
    jvp=lambda z, x, d: -(d * _slope_of_arcsin(x)),
    facts={DOMAIN: _is_within(1)},
)  # fmt: skip
arctan = elementwise(
    "arctan", np.arctan, kinds=INEXACT, jvp=lambda z, x, d: d / (1.0 + x * x),
    facts={RANGE: bound_rule(-2.0, 2.0), FINITE_SLOPE: is_finite_unless_nan},
)  # fmt: skip


def _arcsinh_jvp(z: Value, x: Value, d: Value) -> Value:
    """Return the tangent `d / sqrt(1 + x*x)`, without overflow of the square.

    The result does not depend on the scale, which is held constant. For complex x the root is taken
    of two factors, with the branch cuts of arcsinh.
    """
    if x.type.is_complex:
        turned = x * 1j
        return d * (rsqrt(1.0 + turned) * rsqrt(1.0 - turned))
    scale = stop_gradient(maximum(abs_(x), filled_constant(1, x.type)))
    one, x = 1.0 / scale, x / scale
    return d * (one * rsqrt(one * one + x * x))


arcsinh = elementwise("arcsinh", np.arcsinh, kinds=INEXACT, jvp=_arcsinh_jvp)
arccosh = elementwise(
    "arccosh", np.arccosh, kinds=INEXACT, singular=True,
    jvp=lambda z, x, d: d * (rsqrt(x - 1.0) * rsqrt(x + 1.0)),
    facts={DOMAIN: _exceeds(1)},
)  # fmt: skip
arctanh = elementwise(
    "arctanh", np.arctanh, kinds=INEXACT, singular=True,
    jvp=lambda z, x, d: d / ((1.0 - x) * (1.0 + x)),
    facts={DOMAIN: _is_within(1)},
)  # fmt: skip


def _divide_by_squares(part: Value, x: Value, y: Value) -> Value:
    """Return `part / (x*x + y*y)`, without overflow or underflow of the squares.

    The quotient does not depend on the scale, so the scale is held constant.
    """
    largest = filled_constant(np.finfo(x.dtype).max, x.type)
    scale = stop_gradient(minimum(maximum(abs_(x), abs_(y)), largest))
    x, y = x / scale, y / scale
    return part / scale / (x * x + y * y) / scale


arctan2 = elementwise(
    "arctan2", np.arctan2, operands=2, singular=True,
    jvp=(
        lambda z, x, y, d: d * _divide_by_squares(y, x, y),
        lambda z, x, y, d: -(d * _divide_by_squares(x, x, y)),
    ),
    facts={RANGE: angle, DOMAIN: lambda y, x: y.excludes_zero or x.excludes_zero},
)  # fmt: skip

# The error function, by the C library element by element: slow, and the reference for the
# approximation in generated code. DLMF 7.2.1 and 7.2.2; erf' = 2/sqrt(pi) exp(-x^2).

_SLOPE = 2 / math.sqrt(math.pi)

# Beyond this bound `exp(-x*x)` and all its derivatives are 0 in every dtype.
_FLAT = 40.0


def _bell(x: Value) -> Value:
    """Return `exp(-x*x)`; x is clamped where that is 0, so that no power of x overflows."""
    edge = filled_constant(_FLAT, x.type)
    near = select(greater(abs_(x), edge), edge, x)
    return exp(-(near * near))


erf = elementwise(
    "erf", lambda x: _per_element(math.erf, x), jvp=lambda z, x, d: d * (_SLOPE * _bell(x)),
    facts={RANGE: bound_rule(-1.0, 1.0), FINITE_SLOPE: is_finite_unless_nan},
)  # fmt: skip
erfc = elementwise(
    "erfc", lambda x: _per_element(math.erfc, x), jvp=lambda z, x, d: d * (-_SLOPE * _bell(x)),
    facts={RANGE: bound_rule(0.0, 2.0), FINITE_SLOPE: is_finite_unless_nan},
)  # fmt: skip


# Values.


def _sigmoid(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return 1 / (1 + exp(-x)), without overflow on either side."""
    small = np.exp(-np.abs(x))
    result: np.ndarray[Any, Any] = np.where(x < 0, small, np.ones_like(small)) / (1 + small)
    return result


def _per_element(function: Rule, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    flat = [function(float(v)) for v in np.asarray(x).reshape(-1)]
    return np.array(flat, x.dtype).reshape(np.shape(x))


# Ranges of selections.


@select.declares(RANGE_AT)
def _select_range(eqn: Equation, around: Around, condition: Range, x: Range, y: Range) -> Range:
    """Return the hull of both branches, tightened by a comparison with a number."""
    if is_finite_test(eqn, around):
        return hull([replace(x, below=False, above=False, nan=False), y])
    test = around.definition(eqn.inputs[0])
    if test is not None and test.op is equal:
        z, other = test.inputs
        if z is other and not around.known[z].nan:
            return x
    first, second = eqn.inputs[1:]
    return hull([_where(test, first, True, x, around), _where(test, second, False, y, around)])


def is_finite_test(eqn: Equation, around: Around) -> bool:
    """Return whether a `select` replaces elements that are not finite by a finite number."""
    test = around.definition(eqn.inputs[0])
    if test is None or test.op is not less:
        return False
    size = around.definition(test.inputs[0])
    made = [around.definition(v) for v in (test.inputs[1], eqn.inputs[2])]
    bound, other = (e and e.number for e in made)
    if size is None or bound != INF or other is None or not math.isfinite(other):
        return False
    return size.op is abs_ and size.inputs[0] is eqn.inputs[1]


# Comparisons after which the first operand is bounded below (True) or above (False) by the second.
_AT_LEAST = {greater: True, greater_equal: True, less: False, less_equal: False}


def _where(test: Equation | None, value: Value, side: bool, known: Range, around: Around) -> Range:
    """Return the range of `value` where the comparison `test` equals `side`."""
    if test is None or test.op not in _AT_LEAST or value not in test.inputs:
        return known
    place = test.inputs.index(value)
    made = around.definition(test.inputs[1 - place])
    bound = made and made.number
    if bound is None:
        return known
    if (_AT_LEAST[test.op] == side) == (place == 0):
        return replace(known, low=max(known.low, float(bound)))
    return replace(known, high=min(known.high, float(bound)))
