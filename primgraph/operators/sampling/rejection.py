"""Random arrays of gamma and related distributions, of counts, and by inverse transforms.

They are differentiable by parameters. Derivatives of gamma numbers are implicit: they keep the
value of the distribution function. Others are composed of these or of uniform numbers.
"""

from __future__ import annotations

import math
from typing import Any

from primgraph.errors import ArgumentError
from primgraph.ir.types import FLOAT64, INT64, as_shape, broadcast_shapes
from primgraph.operators.call import namespace_operator
from primgraph.operators.elementwise.arithmetic import floor
from primgraph.operators.elementwise.elementary import exp, log, log1p, sigmoid, sqrt, tan
from primgraph.operators.elementwise.logic import where
from primgraph.operators.handle import ArrayLike
from primgraph.operators.networks.activations import softmax
from primgraph.operators.promotion import (
    broadcast_to_shape,
    convert_dtype,
    fractional,
    lift,
    promote_operands,
    require_integer,
)
from primgraph.operators.sampling.random_arrays import (
    bernoulli,
    float_dtype,
    integer_key,
    normal,
    refuse_shape,
    uniform,
)
from primgraph.operators.shape.creation import ones_like
from primgraph.operators.shape.joining import stack
from primgraph.operators.variable import Variable, emit
from primgraph.primitives.special_functions.special import as_gamma_of, random_variate

# Lower bound of the uniform numbers, so that their logarithm is finite.
_LEAST = 2.0**-53


def open_uniform(key: ArrayLike, shape: Any) -> Variable:
    """Return uniform numbers strictly between 0 and 1."""
    drawn = uniform(key, shape, dtype=FLOAT64)
    return drawn * (1.0 - 2.0 * _LEAST) + _LEAST


def _broadcast_params(key: Variable, shape: Any, *params: Variable) -> list[Variable]:
    """Broadcast parameters to one element for each number drawn by each key."""
    wanted = () if shape is None else as_shape(shape)
    extents = broadcast_shapes(wanted, *(p.shape for p in params))
    return [broadcast_to_shape(p, (*key.shape, *extents)) for p in params]


@namespace_operator
def split(key: ArrayLike, num: int = 2) -> Variable:
    """Return `num` keys made of one, for arrays that are to be independent, along a new last axis.

    Raises `ArgumentError` for a number that is not positive.

    >>> pg.random.split(7, 3).shape
    (3,)
    """
    count = require_integer("num", num)
    if count < 1:
        raise ArgumentError(f"split makes at least one key, not {num}")
    return convert_dtype(floor(uniform(key, (count,), dtype=FLOAT64) * 2.0**53), INT64)


@namespace_operator
def randint(key: ArrayLike, shape: Any, minval: ArrayLike, maxval: ArrayLike) -> Variable:
    """Return integers from `minval` up to but without `maxval`, which are broadcast to `shape`.

    They are int64; in ranges beyond 2**53 not every integer can be drawn.

    >>> pg.random.randint(7, (100,), 0, 6).shape
    (100,)
    """
    seed, low, high = integer_key("randint", key), lift(minval, INT64), lift(maxval, INT64)
    low, high = _broadcast_params(seed, shape, low, high)
    drawn = uniform(seed, low.shape[seed.ndim :], dtype=FLOAT64)
    return low + convert_dtype(floor(drawn * convert_dtype(high - low, FLOAT64)), INT64)


@namespace_operator
def rademacher(key: ArrayLike, shape: Any = ()) -> Variable:
    """Return 1 and -1, as int64, each with probability 1/2.

    >>> pg.abs(pg.random.rademacher(7, (3,)))
    tensor([1, 1, 1], dtype=int64)
    """
    return 2 * convert_dtype(bernoulli(key, shape), INT64) - 1


@namespace_operator
def exponential(key: ArrayLike, shape: Any = (), dtype: Any = None) -> Variable:
    """Return numbers of the exponential distribution with mean 1, by the inverse of its function.

    >>> pg.random.exponential(7, (100,)).shape
    (100,)
    """
    return convert_dtype(-log(open_uniform(key, shape)), float_dtype("exponential", dtype))


@namespace_operator
def laplace(key: ArrayLike, shape: Any = (), dtype: Any = None) -> Variable:
    """Return numbers of the Laplace distribution with mean 0 and scale 1, by the inverse.

    >>> pg.random.laplace(7, (100,)).shape
    (100,)
    """
    part = 2.0 * open_uniform(key, shape) - 1.0
    drawn = where(part < 0.0, log1p(part), -log1p(-part))
    return convert_dtype(drawn, float_dtype("laplace", dtype))


@namespace_operator
def gumbel(key: ArrayLike, shape: Any = (), dtype: Any = None) -> Variable:
    """Return numbers of the standard Gumbel distribution of maxima, by the inverse.

    >>> pg.random.gumbel(7, (100,)).shape
    (100,)
    """
    return convert_dtype(-log(-log(open_uniform(key, shape))), float_dtype("gumbel", dtype))


@namespace_operator
def logistic(key: ArrayLike, shape: Any = (), dtype: Any = None) -> Variable:
    """Return numbers of the logistic distribution with mean 0 and scale 1, by the inverse.

    >>> pg.random.logistic(7, (100,)).shape
    (100,)
    """
    part = open_uniform(key, shape)
    return convert_dtype(log(part) - log1p(-part), float_dtype("logistic", dtype))


@namespace_operator
def cauchy(key: ArrayLike, shape: Any = (), dtype: Any = None) -> Variable:
    """Return numbers of the standard Cauchy distribution, by the inverse.

    >>> pg.random.cauchy(7, (100,)).shape
    (100,)
    """
    drawn = tan(math.pi * (open_uniform(key, shape) - 0.5))
    return convert_dtype(drawn, float_dtype("cauchy", dtype))


@namespace_operator
def lognormal(key: ArrayLike, sigma: ArrayLike = 1.0, shape: Any = None) -> Variable:
    """Return the exponential of `sigma` times normal numbers; derivatives go to `sigma`.

    >>> pg.random.lognormal(7, 0.5, (100,)).shape
    (100,)
    """
    seed = integer_key("lognormal", key)
    (width,) = _broadcast_params(seed, shape, lift(sigma, fractional(sigma)))
    return exp(width * normal(seed, width.shape[seed.ndim :], width.dtype))


def _gamma(key: Variable, a: Variable) -> Variable:
    """Return gamma numbers, with derivatives by their shapes."""
    return emit(as_gamma_of, emit(random_variate, key, a, name="standard_gamma"), a)


def _log_gammas(key: Variable, *shapes: Variable) -> list[Variable]:
    """Return logarithms of gamma numbers, which do not underflow.

    One of shape `a + 1` times a uniform number to the power of `1 / a` is one of shape `a` (G.
    Marsaglia and W. W. Tsang, A simple method for generating gamma variables, 2000).
    """
    raised = [a + 1.0 for a in shapes]
    joined = stack([*raised, *map(ones_like, shapes)], key.ndim)
    drawn = emit(random_variate, key, joined, name="standard_gamma")
    lead, count = (slice(None),) * key.ndim, len(shapes)
    first = [emit(as_gamma_of, drawn[(*lead, i)], a) for i, a in enumerate(raised)]
    return [log(z) - drawn[(*lead, count + i)] / shapes[i] for i, z in enumerate(first)]


@namespace_operator
def gamma(key: ArrayLike, a: ArrayLike, shape: Any = None) -> Variable:
    """Return numbers of the gamma distribution of shape `a` and scale 1, by NumPy's generator.

    `a` is broadcast to `shape`, and has the dtype of the result, which is NaN where `a` is negative
    or infinite. Derivatives by `a` are implicit (M. Figurnov, S. Mohamed and A. Mnih, Implicit
    reparameterization gradients, 2018), to any order.

    >>> pg.random.gamma(7, 2.0, (100,)).shape
    (100,)
    """
    refuse_shape("gamma", "a", a)
    seed = integer_key("gamma", key)
    return _gamma(seed, *_broadcast_params(seed, shape, lift(a, fractional(a))))


@namespace_operator
def loggamma(key: ArrayLike, a: ArrayLike, shape: Any = None) -> Variable:
    """Return logarithms of gamma numbers, also of such a small `a` that the numbers would be 0.

    >>> pg.random.loggamma(7, 2.0, (100,)).shape
    (100,)
    """
    refuse_shape("loggamma", "a", a)
    seed = integer_key("loggamma", key)
    return _log_gammas(seed, *_broadcast_params(seed, shape, lift(a, fractional(a))))[0]


@namespace_operator
def beta(key: ArrayLike, a: ArrayLike, b: ArrayLike, shape: Any = None) -> Variable:
    """Return numbers of the beta distribution, as gamma numbers over their sum.

    Parameters are broadcast to `shape`; derivatives go to both, through those of gamma numbers.

    >>> pg.random.beta(7, 2.0, 3.0, (100,)).shape
    (100,)
    """
    refuse_shape("beta", "b", b)
    seed = integer_key("beta", key)
    pair = promote_operands(a, b, dtype=fractional(a, b), name="beta")
    first, second = _log_gammas(seed, *_broadcast_params(seed, shape, *pair))
    return sigmoid(first - second)


@namespace_operator
def dirichlet(key: ArrayLike, alpha: ArrayLike, shape: Any = None) -> Variable:
    """Return vectors of the Dirichlet distribution along the last axis, by gamma numbers.

    `shape` is that of the other axes, to which those of `alpha` are broadcast. `alpha` has
    derivatives.

    >>> pg.random.dirichlet(7, np.ones(3), (100,)).shape
    (100, 3)
    """
    seed, weights = integer_key("dirichlet", key), lift(alpha, fractional(alpha))
    if weights.ndim == 0:
        raise ArgumentError("dirichlet: alpha has an axis of weights")
    lead = () if shape is None else as_shape(shape)
    (spread,) = _broadcast_params(seed, (*lead, weights.shape[-1]), weights)
    return softmax(_log_gammas(seed, spread)[0], -1)


@namespace_operator
def chisquare(key: ArrayLike, df: ArrayLike, shape: Any = None) -> Variable:
    """Return numbers of the chi-square distribution, with derivatives by `df`: of gamma numbers.

    >>> pg.random.chisquare(7, 3.0, (100,)).shape
    (100,)
    """
    refuse_shape("chisquare", "df", df)
    return 2.0 * gamma(key, 0.5 * lift(df, fractional(df)), shape)


@namespace_operator
def t(key: ArrayLike, df: ArrayLike, shape: Any = None) -> Variable:
    """Return numbers of Student's t distribution: normal ones over roots of chi-square ones.

    `df` is broadcast to `shape`, and derivatives go to it.

    >>> pg.random.t(7, 3.0, (100,)).shape
    (100,)
    """
    refuse_shape("t", "df", df)
    seed = integer_key("t", key)
    (freedom,) = _broadcast_params(seed, shape, lift(df, fractional(df)))
    first, second = (split(seed, 2)[..., i] for i in range(2))
    drawn = normal(first, freedom.shape[seed.ndim :], freedom.dtype)
    (scale,) = _log_gammas(second, 0.5 * freedom)
    return drawn * sqrt(0.5 * freedom) * exp(-0.5 * scale)


@namespace_operator
def poisson(key: ArrayLike, lam: ArrayLike, shape: Any = None) -> Variable:
    """Return numbers of the Poisson distribution with mean `lam`, as int64, by NumPy's generator.

    `lam` is broadcast to `shape`. Integers have no derivatives. A mean that is negative or NaN is
    an error of the run.

    >>> pg.random.poisson(7, 3.0, (100,)).shape
    (100,)
    """
    refuse_shape("poisson", "lam", lam)
    seed = integer_key("poisson", key)
    (mean,) = _broadcast_params(seed, shape, lift(lam, fractional(lam)))
    return emit(random_variate, seed, mean, name="poisson")


@namespace_operator
def binomial(key: ArrayLike, n: ArrayLike, p: ArrayLike, shape: Any = None) -> Variable:
    """Draw the number of successes in `n` trials of probability `p`: int64, by NumPy's generator.

    `n`, of integers, and `p` are broadcast to `shape`. Integers have no derivatives. A `p` outside
    0 to 1, or a negative `n`, is an error of the run.

    >>> pg.random.binomial(7, 10, 0.5, (100,)).shape
    (100,)
    """
    refuse_shape("binomial", "p", p)
    seed = integer_key("binomial", key)
    trials, chance = _broadcast_params(seed, shape, lift(n, INT64), lift(p, fractional(p)))
    return emit(random_variate, seed, trials, chance, name="binomial")
