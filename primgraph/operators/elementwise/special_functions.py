"""Special functions, named as in scipy.special, with derivatives by all operands to any order.

Operands are broadcast and promoted; integers count as float64. Generated code for them needs NumPy
only; the reference documents their accuracy. Values at poles and outside of the domain are those of
SciPy, infinity or NaN.
"""

from __future__ import annotations

import math

from primgraph.errors import ArgumentError
from primgraph.operators.call import namespace_operator
from primgraph.operators.elementwise.arithmetic import negative, subtract
from primgraph.operators.elementwise.elementary import erfc, sigmoid
from primgraph.operators.elementwise.logic import (
    greater,
    less,
    less_equal,
    logical_and,
    logical_or,
    where,
)
from primgraph.operators.handle import ArrayLike
from primgraph.operators.networks.activations import softplus
from primgraph.operators.promotion import fractional, lift, promote_operands, require_integer
from primgraph.operators.variable import Variable, emit
from primgraph.primitives.special_functions import gamma as gammas
from primgraph.primitives.special_functions import special
from primgraph.primitives.special_functions.scipy_calls import by_scipy


def _floats(name: str, *operands: ArrayLike) -> list[Variable]:
    return promote_operands(*operands, dtype=fractional(*operands), name=name)


def _one(x: ArrayLike) -> Variable:
    return lift(x, fractional(x))


# The gamma and beta functions.


@namespace_operator
def gammaln(x: ArrayLike) -> Variable:
    """Compute `log(abs(gamma(x)))`; inf at the poles. Its derivative is `digamma`.

    >>> print(f"{pg.special.gammaln(5.0):.4f}")
    3.1781
    """
    return emit(gammas.gammaln, _one(x))


@namespace_operator
def gamma(x: ArrayLike) -> Variable:
    """Return the gamma function, `factorial(x - 1)` of whole numbers; NaN at its poles below zero.

    >>> print(f"{pg.special.gamma(5.0):.4f}")
    24.0000
    """
    return emit(gammas.gamma_function, _one(x))


@namespace_operator
def digamma(x: ArrayLike) -> Variable:
    """Return the derivative of `gammaln`; NaN at its poles below zero.

    >>> print(f"{pg.special.digamma(1.0):.4f}")
    -0.5772
    """
    return emit(gammas.polygamma, _one(x), n=0)


@namespace_operator
def polygamma(n: int, x: ArrayLike) -> Variable:
    """Compute the derivative `n` of `digamma`, where `n` is fixed when the program is built.

    Raises `ArgumentError` unless `n` is an integer >= 0.

    >>> print(f"{pg.special.polygamma(1, 1.0):.4f}")
    1.6449
    """
    order = require_integer("polygamma", n)
    if order < 0:
        raise ArgumentError(f"polygamma has orders from 0 on, not {order}")
    return emit(gammas.polygamma, _one(x), n=order)


@namespace_operator
def multigammaln(a: ArrayLike, d: int) -> Variable:
    """Return the logarithm of the gamma function of `d` dimensions, for `a` above `(d - 1) / 2`.

    Raises `ArgumentError` unless `d` is an integer >= 1.

    >>> print(f"{pg.special.multigammaln(3.0, 2):.4f}")
    1.5502
    """
    dimensions = require_integer("multigammaln", d)
    if dimensions < 1:
        raise ArgumentError(f"multigammaln has dimensions from 1 on, not {dimensions}")
    value = _one(a)
    total = emit(gammas.gammaln, value) + dimensions * (dimensions - 1) / 4 * math.log(math.pi)
    for j in range(1, dimensions):
        total = total + emit(gammas.gammaln, value - j / 2)
    return total


@namespace_operator
def betaln(a: ArrayLike, b: ArrayLike) -> Variable:
    """Compute `gammaln(a) + gammaln(b) - gammaln(a + b)`, without cancellation of large numbers.

    >>> print(f"{pg.special.betaln(2.0, 3.0):.4f}")
    -2.4849
    """
    return emit(gammas.betaln, *_floats("betaln", a, b))


@namespace_operator
def beta(a: ArrayLike, b: ArrayLike) -> Variable:
    """Compute `gamma(a) * gamma(b) / gamma(a + b)`, without overflow on the way.

    >>> print(f"{pg.special.beta(2.0, 3.0):.4f}")
    0.0833
    """
    return emit(gammas.beta, *_floats("beta", a, b))


# Incomplete functions, which are distribution functions.


@namespace_operator
def gammainc(a: ArrayLike, x: ArrayLike) -> Variable:
    """Return the integral of `t**(a - 1) * exp(-t) / gamma(a)` from 0 to `x`; NaN below zero.

    >>> print(f"{pg.special.gammainc(2.0, 1.0):.4f}")
    0.2642
    """
    return emit(special.gammainc, *_floats("gammainc", a, x), k=0, upper=False)


@namespace_operator
def gammaincc(a: ArrayLike, x: ArrayLike) -> Variable:
    """Compute `1 - gammainc(a, x)`, with all digits where it is small.

    >>> print(f"{pg.special.gammaincc(2.0, 1.0):.4f}")
    0.7358
    """
    return emit(special.gammainc, *_floats("gammaincc", a, x), k=0, upper=True)


@namespace_operator
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Variable:
    """Return the integral of `t**(a - 1) * (1 - t)**(b - 1) / beta(a, b)` from 0 to `x`.

    NaN for parameters that are not positive, and for `x` outside 0 to 1.

    >>> print(f"{pg.special.betainc(1.0, 1.0, 0.25):.4f}")
    0.2500
    """
    return emit(special.betainc, *_floats("betainc", a, b, x), j=0, k=0, upper=False)


@namespace_operator
def betaincc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Variable:
    """Compute `1 - betainc(a, b, x)`, with all digits where it is small.

    >>> print(f"{pg.special.betaincc(1.0, 1.0, 0.25):.4f}")
    0.7500
    """
    return emit(special.betainc, *_floats("betaincc", a, b, x), j=0, k=0, upper=True)


# The error function's inverses, and the normal distribution.


@namespace_operator
def erfinv(y: ArrayLike) -> Variable:
    """Return the inverse of `erf`; infinite at -1 and 1, NaN beyond.

    >>> print(f"{pg.special.erfinv(0.5):.4f}")
    0.4769
    """
    return emit(special.erfinv, _one(y))


@namespace_operator
def erfcinv(y: ArrayLike) -> Variable:
    """Return the inverse of `erfc`, with all digits of small numbers; NaN outside 0 to 2.

    >>> print(f"{pg.special.erfcinv(0.5):.4f}")
    0.4769
    """
    return emit(special.erfcinv, _one(y))


@namespace_operator
def erfcx(x: ArrayLike) -> Variable:
    """Compute `exp(x*x) * erfc(x)`, which is close to `1 / (sqrt(pi) * x)` for large `x`.

    >>> print(f"{pg.special.erfcx(1.0):.4f}")
    0.4276
    """
    value = _one(x)
    if value.dtype.kind == "c":
        return emit(by_scipy, value, name="erfcx", part=0)
    return emit(special.erfcx, value, n=0)


@namespace_operator
def ndtr(x: ArrayLike) -> Variable:
    """Return the distribution function of the normal distribution, exact in the left tail.

    >>> print(f"{pg.special.ndtr(1.0):.4f}")
    0.8413
    """
    return 0.5 * erfc(_one(x) * -math.sqrt(0.5))


@namespace_operator
def ndtri(y: ArrayLike) -> Variable:
    """Return the inverse of `ndtr`; infinite at 0 and 1, NaN beyond.

    >>> print(f"{pg.special.ndtri(0.975):.4f}")
    1.9600
    """
    return -math.sqrt(2.0) * emit(special.erfcinv, 2.0 * _one(y))


@namespace_operator
def log_ndtr(x: ArrayLike) -> Variable:
    """Return the logarithm of `ndtr`, exact in both tails, where `ndtr` is 0 or 1 as well.

    >>> print(f"{pg.special.log_ndtr(0.0):.4f}")
    -0.6931
    """
    return emit(special.log_ndtr, _one(x))


# The logistic function.


@namespace_operator
def expit(x: ArrayLike) -> Variable:
    """Compute `1 / (1 + exp(-x))`, element by element, as `pg.sigmoid` does.

    >>> print(f"{pg.special.expit(1.0):.4f}")
    0.7311
    """
    return sigmoid(_one(x))


@namespace_operator
def log_expit(x: ArrayLike) -> Variable:
    """Return the logarithm of `expit`, without overflow.

    >>> print(f"{pg.special.log_expit(0.0):.4f}")
    -0.6931
    """
    return -softplus(-_one(x))


@namespace_operator
def logit(p: ArrayLike) -> Variable:
    """Compute `log(p / (1 - p))`, the inverse of `expit`, exact near 1/2; NaN outside 0 to 1.

    >>> print(f"{pg.special.logit(0.75):.4f}")
    1.0986
    """
    return emit(special.logit, _one(p))


# Products with logarithms, and entropies.


@namespace_operator
def xlogy(x: ArrayLike, y: ArrayLike) -> Variable:
    """Compute `x * log(y)`, and 0 where `x` is 0. Its derivative by `y` is 0 where both are 0.

    >>> print(f"{pg.special.xlogy(2.0, 3.0):.4f}")
    2.1972
    """
    return emit(special.xlogy, *_floats("xlogy", x, y))


@namespace_operator
def xlog1py(x: ArrayLike, y: ArrayLike) -> Variable:
    """Compute `x * log(1 + y)`, and 0 where `x` is 0.

    >>> print(f"{pg.special.xlog1py(2.0, 1.0):.4f}")
    1.3863
    """
    return emit(special.xlog1py, *_floats("xlog1py", x, y))


@namespace_operator
def entr(x: ArrayLike) -> Variable:
    """Compute `-x * log(x)`, 0 at 0, and -inf below.

    >>> print(f"{pg.special.entr(0.5):.4f}")
    0.3466
    """
    value = _one(x)
    return where(less(value, 0.0), -math.inf, negative(emit(special.xlogy, value, value)))


def _entropy(name: str, x: ArrayLike, y: ArrayLike, rest: bool) -> Variable:
    left, right = _floats(name, x, y)
    positive = where(less_equal(right, 0.0), 1.0, right)
    found = emit(special.xlogy, left, left / positive)
    if rest:
        found = found + subtract(right, left)
    outside = logical_or(less(left, 0.0), less(right, 0.0))
    outside = logical_or(outside, logical_and(greater(left, 0.0), less_equal(right, 0.0)))
    return where(outside, math.inf, found)


@namespace_operator
def rel_entr(x: ArrayLike, y: ArrayLike) -> Variable:
    """Compute `x * log(x / y)`, 0 where `x` is 0 and `y` is not below, else inf.

    >>> print(f"{pg.special.rel_entr(1.0, 2.0):.4f}")
    -0.6931
    """
    return _entropy("rel_entr", x, y, rest=False)


@namespace_operator
def kl_div(x: ArrayLike, y: ArrayLike) -> Variable:
    """Compute `x * log(x / y) - x + y`, `y` where `x` is 0 and `y` is not below, else inf.

    >>> print(f"{pg.special.kl_div(1.0, 2.0):.4f}")
    0.3069
    """
    return _entropy("kl_div", x, y, rest=True)
