"""Distributions of vectors, and of numbers by vectors of parameters, by SciPy's names."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, final

import numpy as np

from primgraph.control.loops import scan
from primgraph.errors import ArgumentError, ShapeError, unknown_name
from primgraph.operators.call import namespace_operator
from primgraph.operators.elementwise.arithmetic import abs, minimum, square
from primgraph.operators.elementwise.elementary import exp, log
from primgraph.operators.elementwise.logic import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    not_equal,
    where,
)
from primgraph.operators.elementwise.special_functions import gammaln
from primgraph.operators.linear_algebra.matrices import diagonal
from primgraph.operators.linear_algebra.products import matmul
from primgraph.operators.linear_algebra.spectra import eigh
from primgraph.operators.linear_algebra.systems import cholesky, solve_triangular
from primgraph.operators.promotion import fractional, lift
from primgraph.operators.reduce.reductions import all, any, cumsum, max, prod, sum
from primgraph.operators.shape.creation import arange, eye, zeros_like
from primgraph.operators.shape.joining import concatenate, flip
from primgraph.operators.shape.matrix_building import diag
from primgraph.operators.shape.shaping import broadcast_to, expand_dims, moveaxis
from primgraph.operators.variable import Variable
from primgraph.scipy.stats.distribution import Frozen, call_method, original
from primgraph.scipy.stats.parts import Power, log_of

_LOG_TAU = math.log(2.0 * math.pi)


class _OfVectors:
    """Base class of multivariate distributions; missing methods are SciPy's."""

    name: ClassVar[str]
    own: ClassVar[dict[str, Any]]

    def __call__(self, *args: Any, **kwargs: Any) -> Frozen:
        """The distribution with these parameters."""
        return Frozen(self, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in type(self).own:
            return partial(call_method, type(self).name, name, type(self).own[name])
        theirs = None if name.startswith("__") else original(type(self).name)
        found = getattr(theirs, name, None)
        if found is None:
            title = f"primgraph.scipy.stats.{type(self).name}"
            raise unknown_name(title, name, [*type(self).own])
        return found

    def __repr__(self) -> str:
        return f"<primgraph.scipy.stats.{type(self).name}>"


def _covariance(cov: Variable, size: int | None) -> Variable:
    """The matrix that a number, a row of variances, or a matrix means."""
    if cov.ndim == 0:
        return cov * eye(1 if size is None else size, dtype=cov.dtype)
    if cov.ndim == 1:
        return diag(cov)
    if cov.ndim > 2 or cov.shape[0] != cov.shape[1]:
        raise ShapeError(f"multivariate_normal: cov is a square matrix, not {cov.type}")
    return cov


def _parameters(mean: Any, cov: Any, dtype: Any) -> tuple[Variable, Variable]:
    given = lift(1.0 if cov is None else cov, dtype)
    middle = None if mean is None else lift(mean, dtype)
    if middle is not None and middle.ndim == 0:
        middle = expand_dims(middle, 0)
    matrix = _covariance(given, None if middle is None else middle.shape[0])
    if middle is None:
        middle = lift(np.zeros(matrix.shape[0]), dtype)
    if middle.ndim != 1 or middle.shape[0] != matrix.shape[0]:
        raise ShapeError(
            f"multivariate_normal: mean is a vector as long as cov is wide, and they are "
            f"{middle.type} and {matrix.type}"
        )
    return middle, matrix


def _normal_logpdf(
    x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False
) -> Variable:
    dtype = fractional(x, *[v for v in (mean, cov) if v is not None])
    middle, matrix = _parameters(mean, cov, dtype)
    size = matrix.shape[0]
    value = lift(x, dtype)
    if value.ndim == 0:
        value = expand_dims(value, 0)
    if value.ndim == 1 and size == 1 and value.shape[0] != 1:
        value = expand_dims(value, -1)
    apart = value - middle
    if allow_singular:
        squares, logdet, rank = _spectral_terms(matrix, apart)
    else:
        squares, logdet, rank = _cholesky_terms(matrix, apart)
    found: Variable = -0.5 * (rank * _LOG_TAU + logdet + squares)
    return found


def _cholesky_terms(matrix: Variable, apart: Variable) -> tuple[Variable, Variable, Any]:
    """The squared distance of each vector, the logarithm of the determinant, and the rank."""
    factor = cholesky(matrix)
    whitened = solve_triangular(factor, expand_dims(apart, -1), lower=True)
    logdet = 2.0 * sum(log(diagonal(factor)))
    return sum(square(whitened), (-2, -1)), logdet, matrix.shape[0]


def _spectral_terms(matrix: Variable, apart: Variable) -> tuple[Variable, Variable, Any]:
    """The same of what is left of a matrix without eigenvalues that are zero to rounding."""
    values, vectors = eigh(matrix)
    factor = {"f": 1e3, "d": 1e6}[np.dtype(matrix.dtype).char]
    least = factor * float(np.finfo(matrix.dtype).eps) * max(abs(values))
    is_kept = greater(values, least)
    kept = where(is_kept, values, 1.0)
    turned = matmul(apart, vectors)
    squares = sum(where(is_kept, square(turned) / kept, 0.0), -1)
    return squares, sum(log(kept)), sum(where(is_kept, 1.0, 0.0))


def _normal_entropy(mean: Any = None, cov: Any = 1) -> Variable:
    given = [v for v in (mean, cov) if v is not None]
    _, matrix = _parameters(mean, cov, fractional(*given))
    logdet = 2.0 * sum(log(diagonal(cholesky(matrix))))
    entropy: Variable = 0.5 * (matrix.shape[0] * (_LOG_TAU + 1.0) + logdet)
    return entropy


@final
class MultivariateNormal(_OfVectors):
    """The normal distribution of vectors: `logpdf(x, mean, cov, allow_singular=False)`.

    Vectors lie along the last axis of `x`. `cov` is a positive definite matrix, or a row of
    variances, or one of all; with `allow_singular` its eigenvalues that are zero to rounding count
    as none, as in SciPy. The gradient by `cov` is symmetric. A matrix that is not positive definite
    is a `LinAlgError` of the run.

    >>> from primgraph.scipy.stats import multivariate_normal
    >>> print(f"{multivariate_normal.logpdf(pg.tensor([0.0, 0.0]), np.zeros(2), np.eye(2)):.4f}")
    -1.8379
    """

    name = "multivariate_normal"
    own: ClassVar[dict[str, Any]] = {
        "logpdf": namespace_operator(_normal_logpdf),
        "pdf": namespace_operator(lambda *args, **kwargs: exp(_normal_logpdf(*args, **kwargs))),
        "entropy": namespace_operator(_normal_entropy),
    }


def _dirichlet(x: Any, alpha: Any) -> tuple[Variable, Power]:
    """Return the logarithm of the density without its powers, and these."""
    dtype = fractional(x, alpha)
    value, powers = lift(x, dtype), lift(alpha, dtype)
    if powers.ndim != 1:
        raise ShapeError(f"dirichlet: alpha is a vector, not {powers.type}")
    if value.ndim == 0 or value.shape[0] != powers.shape[0]:
        raise ArgumentError(
            f"dirichlet: the first axis of x is as long as alpha, and they are {value.type} and "
            f"{powers.type}"
        )
    constant = gammaln(sum(powers)) - sum(gammaln(powers))
    less_one = powers - 1.0
    for _ in range(value.ndim - 1):
        less_one = expand_dims(less_one, -1)
    return constant, Power(less_one, value)


def _dirichlet_logpdf(x: Any, alpha: Any) -> Variable:
    constant, powers = _dirichlet(x, alpha)
    return constant + sum(powers.logarithm(), 0)


def _dirichlet_pdf(x: Any, alpha: Any) -> Variable:
    constant, powers = _dirichlet(x, alpha)
    vanishes, front, rest = powers.split(powers.base, None)
    density = exp(constant + sum(rest, 0))
    return where(any(vanishes, 0), density * prod(front, 0), density)


@final
class Dirichlet(_OfVectors):
    """Positive numbers that sum to one, along the first axis of `x`: `logpdf(x, alpha)`.

    That they do is not checked where there are variables.

    >>> from primgraph.scipy.stats import dirichlet
    >>> print(f"{dirichlet.logpdf(pg.tensor([0.25, 0.75]), np.array([2.0, 1.0])):.4f}")
    -0.6931
    """

    name = "dirichlet"
    own: ClassVar[dict[str, Any]] = {
        "logpdf": namespace_operator(_dirichlet_logpdf),
        "pdf": namespace_operator(_dirichlet_pdf),
    }


# How many of several trials succeed: probabilities are convolved trial by trial.


def _successes(p: Variable) -> Variable:
    """Return the probabilities of 0 to n successes, along the last axis."""
    n = p.shape[-1]
    none = where(equal(arange(n + 1), 0), 1.0, 0.0)
    start = broadcast_to(lift(none, p.dtype), (*p.shape[:-1], n + 1))

    def add_trial(before: Variable, q: Variable) -> tuple[Variable, None]:
        chance = expand_dims(q, -1)
        one_more = concatenate([zeros_like(before[..., :1]), before[..., :-1]], -1)
        return before * (1.0 - chance) + one_more * chance, None

    found: Variable = scan(add_trial, start, moveaxis(p, -1, 0))[0]
    is_valid = all(logical_and(greater_equal(p, 0.0), less_equal(p, 1.0)), -1, keepdims=True)
    return where(is_valid, found, math.nan)


def _trials(k: Any, p: Any, loc: Any) -> tuple[Variable, Variable, Variable]:
    """Return numbers of successes, with an axis, all such numbers, and their probabilities."""
    dtype = fractional(k, p, loc)
    chances = lift(p, dtype)
    if chances.ndim == 0:
        raise ShapeError("poisson_binom: p has an axis of probabilities")
    numbers = arange(chances.shape[-1] + 1).astype(dtype)
    return expand_dims(lift(k, dtype) - lift(loc, dtype), -1), numbers, _successes(chances)


def _sum_where(
    chosen: Callable[[Variable, Variable], Variable], k: Any, p: Any, loc: Any
) -> Variable:
    at, numbers, chances = _trials(k, p, loc)
    # A sum with zeros is NaN where the number or a probability is.
    found: Variable = sum(where(chosen(numbers, at), chances, 0.0 * at + 0.0 * chances), -1)
    return found


def _pmf(k: Any, p: Any, loc: Any = 0) -> Variable:
    return _sum_where(equal, k, p, loc)


def _cdf(k: Any, p: Any, loc: Any = 0) -> Variable:
    return _sum_where(less_equal, k, p, loc)


def _sf(k: Any, p: Any, loc: Any = 0) -> Variable:
    return _sum_where(greater, k, p, loc)


def _log_or_none(x: Variable) -> Variable:
    is_some = not_equal(x, 0.0)
    return where(is_some, log(where(is_some, x, 1.0)), -math.inf)


def _ppf(q: Any, p: Any, loc: Any = 0) -> Variable:
    return _trial_quantile(q, p, loc, False)


def _isf(q: Any, p: Any, loc: Any = 0) -> Variable:
    return _trial_quantile(q, p, loc, True)


def _trial_quantile(q: Any, p: Any, loc: Any, is_upper: bool) -> Variable:
    at, numbers, chances = _trials(q, p, 0.0)
    below = cumsum(chances, -1)
    rest = flip(cumsum(flip(chances[..., 1:], -1), -1), -1)
    above = concatenate([rest, zeros_like(below[..., :1])], -1)
    beyond = greater(above, at) if is_upper else less(below, at)
    count = minimum(sum(where(beyond, 1.0, 0.0 * chances), -1), numbers[-1])
    at = at[..., 0]
    count = where(equal(at, 1.0 if is_upper else 0.0), -1.0, count)
    is_probability = logical_and(greater_equal(at, 0.0), less_equal(at, 1.0))
    return where(is_probability, count + lift(loc, count.dtype), math.nan)


@final
class PoissonBinomial(_OfVectors):
    """Distribution of the number of successes of trials with probabilities `p`: `pmf(k, p, loc=0)`.

    The probabilities `p` lie along the last axis. Other axes are broadcast against `k`.

    >>> from primgraph.scipy.stats import poisson_binom
    >>> print(f"{poisson_binom.pmf(pg.tensor(1.0), np.array([0.5, 0.2])):.4f}")
    0.5000
    """

    name = "poisson_binom"
    own: ClassVar[dict[str, Any]] = {
        "pmf": namespace_operator(_pmf),
        "cdf": namespace_operator(_cdf),
        "sf": namespace_operator(_sf),
        "logpmf": namespace_operator(lambda *at, **loc: _log_or_none(_pmf(*at, **loc))),
        "logcdf": namespace_operator(lambda *at, **loc: log_of(_cdf(*at, **loc), _sf(*at, **loc))),
        "logsf": namespace_operator(lambda *at, **loc: log_of(_sf(*at, **loc), _cdf(*at, **loc))),
        "ppf": namespace_operator(_ppf),
        "isf": namespace_operator(_isf),
    }


multivariate_normal = MultivariateNormal()
dirichlet = Dirichlet()
poisson_binom = PoissonBinomial()
