"""Special functions: incomplete gamma and beta functions, the error function and related ones.

They are closed under differentiation, by their parameters as well: every derivative, of any order,
is expressed by functions of this file and of `gamma`. In rules `x, y, a, b` are operands, `z` is
the result and `d` the tangent of the operand that the rule differentiates. Formulas are from DLMF,
chapters 6 to 8.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primgraph.approximations import error as errors
from primgraph.approximations import quadrature as quadratures
from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.graph import Value
from primgraph.ir.index_maps import IndexMap, tied_map
from primgraph.ir.primitive import Primitive, Types, primitive
from primgraph.ir.types import INT64, TensorType
from primgraph.primitives.constants import filled_constant, zeros_like
from primgraph.primitives.elementwise import elementwise, exp, integer_pow, log, log1p, power
from primgraph.primitives.logic import equal, greater, logical_and, select
from primgraph.primitives.shapes import with_batch_axis
from primgraph.primitives.special_functions.gamma import (
    POLYNOMIAL,
    betaln,
    declare_with_orders,
    gammaln,
    polygamma,
)

# Cost per element, as in `elementwise`, of a function that evaluates a quadrature.
QUADRATURE = 2000


def _integer_power(x: Value, n: int) -> Value:
    return x if n == 1 else integer_pow(x, n=n)


def _vanishing_powers(x: Value, e: Value) -> tuple[Value, Value]:
    """Return where `x**e` vanishes (x is 0 and e positive), and the power there, else 1.

    At these places the product of `exp(e * log(x))` with a derivative is `0 * inf`; the power
    itself has the right derivatives.
    """
    # Compare exponents only where x is 0, so that e = 0 adds a kink nowhere else.
    raised = select(equal(x, zeros_like(x)), e, zeros_like(e) - 1.0)
    vanishes = greater(raised, zeros_like(e))
    return vanishes, power(select(vanishes, x, filled_constant(1, x.type)), e)


def _gamma_density(a: Value, x: Value) -> tuple[Value, Value]:
    """Return the density `x**(a-1) * exp(-x) / gamma(a)`, and `x`, or 1 where it vanishes."""
    vanishes, front = _vanishing_powers(x, a - 1.0)
    inner = select(vanishes, filled_constant(1, x.type), x)
    return front * exp(xlogy(a - 1.0, inner) - x - gammaln(a)), inner


# Incomplete gamma and beta functions: integrals of the density below x, or above it if `upper`. The
# parameter `k` is the power, under the integral, of log(t) less its mean.

gammainc: Primitive[Value] = declare_with_orders(
    "gammainc",
    lambda a, x, *, k, upper: quadratures.gammainc(a, x, k, upper),
    2,
    ("k", "upper"),
    QUADRATURE,
)


@gammainc.jvp(0)
def _gammainc_jvp_of_shape(z: Value, a: Value, x: Value, d: Value, *, k: int, upper: bool) -> Value:
    """Return the tangent by `a`; the log-density has the derivative log(t) - digamma(a)."""
    slope = gammainc(a, x, k=k + 1, upper=upper)
    if k:
        mean = float(k) * polygamma(a, n=1)
        slope = slope - mean * gammainc(a, x, k=k - 1, upper=upper)
    return d * slope


@gammainc.jvp(1)
def _gammainc_jvp(z: Value, a: Value, x: Value, d: Value, *, k: int, upper: bool) -> Value:
    """Return the tangent by x: the density at x times the power of the logarithm."""
    density, inner = _gamma_density(a, x)
    if k:
        density = density * _integer_power(log(inner) - polygamma(a, n=0), k)
    return -(d * density) if upper else d * density


betainc: Primitive[Value] = declare_with_orders(
    "betainc",
    lambda a, b, x, *, j, k, upper: quadratures.betainc(a, b, x, j, k, upper),
    3,
    ("j", "k", "upper"),
    3 * QUADRATURE,
)


def _betainc_slope(
    a: Value, b: Value, x: Value, j: int, k: int, upper: bool, by_first: bool
) -> Value:
    """Return the derivative by `a` if `by_first`, else by `b`.

    `j` is the power of log(t) and `k` that of log(1 - t), each less its mean.
    """
    up = (1, 0) if by_first else (0, 1)
    slope = betainc(a, b, x, j=j + up[0], k=k + up[1], upper=upper)
    if j:
        mean = -polygamma(a + b, n=1)
        mean = polygamma(a, n=1) + mean if by_first else mean
        slope = slope - float(j) * mean * betainc(a, b, x, j=j - 1, k=k, upper=upper)
    if k:
        mean = -polygamma(a + b, n=1)
        mean = mean if by_first else polygamma(b, n=1) + mean
        slope = slope - float(k) * mean * betainc(a, b, x, j=j, k=k - 1, upper=upper)
    return slope


@betainc.jvp(0)
def _betainc_jvp_of_first(
    z: Value, a: Value, b: Value, x: Value, d: Value, *, j: int, k: int, upper: bool
) -> Value:
    return d * _betainc_slope(a, b, x, j, k, upper, by_first=True)


@betainc.jvp(1)
def _betainc_jvp_of_second(
    z: Value, a: Value, b: Value, x: Value, d: Value, *, j: int, k: int, upper: bool
) -> Value:
    return d * _betainc_slope(a, b, x, j, k, upper, by_first=False)


@betainc.jvp(2)
def _betainc_jvp(
    z: Value, a: Value, b: Value, x: Value, d: Value, *, j: int, k: int, upper: bool
) -> Value:
    """Return the tangent by x: the density at x times the powers of the logarithms."""
    at_zero, front = _vanishing_powers(x, a - 1.0)
    at_one, back = _vanishing_powers(1.0 - x, b - 1.0)
    inner = select(at_zero, filled_constant(1, x.type), x)
    rest = select(at_one, zeros_like(x), -x)
    density = exp(xlogy(a - 1.0, inner) + xlog1py(b - 1.0, rest) - betaln(a, b)) * (front * back)
    mean = polygamma(a + b, n=0)
    if j:
        density = density * _integer_power(log(inner) - polygamma(a, n=0) + mean, j)
    if k:
        density = density * _integer_power(log1p(rest) - polygamma(b, n=0) + mean, k)
    return -(d * density) if upper else d * density


# Random numbers of the distributions of these functions, each determined by a key and parameters.

# The number of parameters of each distribution, and whether its numbers are integers.
VARIATES: dict[str, tuple[int, bool]] = {
    "standard_gamma": (1, False),
    "poisson": (1, True),
    "binomial": (2, True),
}


def _variate(key: Any, *params: Any, name: str) -> np.ndarray[Any, Any]:
    """Return the draws of each key's generator, one per element of its parameters, in order."""
    keys = np.asarray(key)
    shape = keys.shape + np.shape(params[0])[keys.ndim :]
    found = np.empty(shape, np.int64 if VARIATES[name][1] else np.result_type(params[0]))
    for place in np.ndindex(keys.shape):
        rng = np.random.Generator(np.random.Philox(key=int(keys[place]) % 2**64))
        given = [np.asarray(p[place]) for p in params]
        if name == "standard_gamma":
            (a,) = given
            good = (a >= 0) & (a < np.inf)
            drawn = rng.standard_gamma(np.where(good, a, 1).astype(np.float64))
            found[place] = np.where(good, drawn, np.nan)
        else:
            found[place] = getattr(rng, name)(*given)
    return found


@primitive(impl=_variate, random=True, constant=True, singular=True, flops=2 * POLYNOMIAL)
def random_variate(key: TensorType, *params: TensorType, name: str) -> TensorType:
    """Return random numbers of the distribution `name` of NumPy's generators (Philox counter).

    There is one per element of the parameters, whose shapes begin with that of `key`; each key has
    a stream of its own. Parameters outside the domain give NaN for "standard_gamma", else an error.
    """
    if name not in VARIATES:
        raise ArgumentError(f"random_variate knows no distribution {name!r:.40}")
    count, whole = VARIATES[name]
    if len(params) != count:
        raise ShapeError(f"random_variate of {name} takes {count} parameters, not {len(params)}")
    if key.dtype.kind not in "iu" or any(p.dtype.kind not in "iuf" for p in params):
        raise DTypeError(f"random_variate takes an integer key and numbers, not {key}, {params}")
    first = params[0]
    if not whole and not first.is_float:
        raise DTypeError(f"random_variate of {name} takes floats, not {first}")
    if any(p.shape != first.shape for p in params) or first.shape[: key.ndim] != key.shape:
        raise ShapeError(f"random_variate: the shapes of {params} do not begin with that of {key}")
    return first.with_dtype(INT64) if whole else first


@random_variate.index_map
def _random_variate_map(k: int, i: int, operands: Types, results: Types, *, name: str) -> IndexMap:
    """How many random bits a number takes depends on those that the same key drew before."""
    lead, shape = operands[0].ndim, operands[i].shape
    return tied_map(
        shape, results[0].shape, [*range(lead), *[None] * (len(shape) - lead)], exact=False
    )


@random_variate.batch
def _random_variate_batch(batched: tuple[bool, ...], *inputs: Value, name: str) -> Value:
    """Return draws for a batch; a key without batch axis gives each sample the same numbers."""
    return random_variate(*with_batch_axis(batched, inputs), name=name)


@primitive(
    impl=lambda z, a: np.array(z),
    formal=True,
    own_slope=True,
    elementwise=True,
    singular=True,
    flops=0,
)
def as_gamma_of(z: TensorType, a: TensorType) -> TensorType:
    """Return `z`, held constant, as a gamma variate with the implicit derivative by its shape `a`.

    The derivative keeps the value of the distribution function at the variate fixed (M. Figurnov,
    S. Mohamed and A. Mnih, Implicit reparameterization gradients, 2018).
    """
    if not a.is_float:
        raise DTypeError(f"as_gamma_of does not take {a}")
    if z != a:
        raise ShapeError(f"as_gamma_of {a} takes values of that type, not {z}")
    return z


as_gamma_of.flat(0)


@as_gamma_of.jvp(1)
def _as_gamma_of_jvp(y: Value, z: Value, a: Value, d: Value) -> Value:
    """Return the tangent dy from `d/da P(a, y) + density(y) dy = 0`."""
    density, _ = _gamma_density(a, y)
    return -d * (gammainc(a, y, k=1, upper=False) / density)


@as_gamma_of.batch
def _as_gamma_of_batch(batched: tuple[bool, ...], z: Value, a: Value) -> Value:
    result: Value = as_gamma_of(*with_batch_axis(batched, (z, a)))
    return result


# The error function's inverses, scaled forms and logarithm.

_ROOT = math.sqrt(math.pi) / 2

erfinv: Primitive[Value] = elementwise(
    "erfinv", errors.erfinv, singular=True, flops=POLYNOMIAL,
    jvp=lambda z, x, d: d * (_ROOT * exp(z * z)),
)  # fmt: skip
erfcinv: Primitive[Value] = elementwise(
    "erfcinv", errors.erfcinv, singular=True, flops=POLYNOMIAL,
    jvp=lambda z, x, d: d * (-_ROOT * exp(z * z)),
)  # fmt: skip
erfcx: Primitive[Value] = declare_with_orders(
    "erfcx", lambda x, *, n: errors.erfcx(x, n), 1, ("n",), POLYNOMIAL
)


@erfcx.jvp()
def _erfcx_jvp(z: Value, x: Value, d: Value, *, n: int) -> Value:
    """Return the tangent; the primitive holds derivatives without their alternating signs."""
    return -(d * erfcx(x, n=n + 1))


def _log_ndtr_jvp(z: Value, x: Value, d: Value) -> Value:
    """Return the density over the distribution function; in the left tail by the scaled `erfcx`."""
    right = greater(x, zeros_like(x))
    tail = select(right, zeros_like(x), x)
    by_tail = math.sqrt(2 / math.pi) / erfcx(tail * -math.sqrt(0.5), n=0)
    by_density = math.sqrt(0.5 / math.pi) * exp(-0.5 * (x * x) - z)
    return d * select(right, by_density, by_tail)


log_ndtr: Primitive[Value] = elementwise(
    "log_ndtr", errors.log_ndtr, flops=POLYNOMIAL, jvp=_log_ndtr_jvp
)  # fmt: skip

# Products with logarithms that are 0 where the first factor is 0, and the inverse of the logistic
# function.


def _ratio(x: Value, y: Value) -> Value:
    """Return `x / y`, or 0 where both are 0."""
    none = logical_and(equal(x, zeros_like(x)), equal(y, zeros_like(y)))
    return x / select(none, filled_constant(1, y.type), y)


xlogy: Primitive[Value] = elementwise(
    "xlogy", errors.xlogy, operands=2, singular=True,
    jvp=(lambda z, x, y, d: d * log(y), lambda z, x, y, d: d * _ratio(x, y)),
)  # fmt: skip
xlog1py: Primitive[Value] = elementwise(
    "xlog1py", errors.xlog1py, operands=2, singular=True,
    jvp=(lambda z, x, y, d: d * log1p(y), lambda z, x, y, d: d * _ratio(x, 1.0 + y)),
)  # fmt: skip
logit: Primitive[Value] = elementwise(
    "logit", errors.logit, singular=True, jvp=lambda z, x, d: d / (x * (1.0 - x))
)
