"""Distributions of vectors, by SciPy's names and parameters."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar, final

import numpy as np

from primgraph.errors import ArgumentError, ShapeError, unknown_name
from primgraph.operators.call import namespace_operator
from primgraph.operators.elementwise.arithmetic import abs, square
from primgraph.operators.elementwise.elementary import exp, log
from primgraph.operators.elementwise.logic import greater, where
from primgraph.operators.elementwise.special_functions import gammaln
from primgraph.operators.linear_algebra.matrices import diagonal
from primgraph.operators.linear_algebra.products import matmul
from primgraph.operators.linear_algebra.spectra import eigh
from primgraph.operators.linear_algebra.systems import cholesky, solve_triangular
from primgraph.operators.promotion import fractional, lift
from primgraph.operators.reduce.reductions import any, max, prod, sum
from primgraph.operators.shape.creation import eye
from primgraph.operators.shape.matrix_building import diag
from primgraph.operators.shape.shaping import expand_dims
from primgraph.operators.variable import Variable
from primgraph.scipy.stats.distribution import Frozen, call_method, original
from primgraph.scipy.stats.parts import Power

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


multivariate_normal = MultivariateNormal()
dirichlet = Dirichlet()
