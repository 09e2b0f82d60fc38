"""Distributions of vectors, as in torch."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from primgraph import linalg, random
from primgraph import operators as pg
from primgraph import special as sp
from primgraph.compat.torch.distributions import constraints
from primgraph.compat.torch.distributions.constraints import Constraints
from primgraph.compat.torch.distributions.continuous import Beta, Chi2
from primgraph.compat.torch.distributions.distribution import (
    LOG_2PI,
    Distribution,
    ExponentialFamily,
    known_elements,
)
from primgraph.eager.derivatives.recording import no_grad
from primgraph.errors import ArgumentError, CheckError
from primgraph.ir.types import as_dtype


class Dirichlet(ExponentialFamily):
    """Dirichlet distribution; samples have implicit derivatives.

    >>> torch.distributions.Dirichlet(torch.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints: ClassVar[Constraints] = {
        "concentration": constraints.independent(constraints.positive, 1)
    }
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ArgumentError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = tuple(concentration.shape)
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / pg.sum(self.concentration, -1, True)

    @property
    def mode(self) -> Any:
        less = pg.maximum(self.concentration - 1.0, 0.0)
        corner = np.arange(self._event_shape[0]) == 0
        is_convex = pg.all(self.concentration < 1.0, -1, True)
        edge = pg.where(corner, 1.0, pg.zeros_like(less))
        return pg.where(is_convex, edge, less / pg.sum(less, -1, True))

    @property
    def variance(self) -> Any:
        total = pg.sum(self.concentration, -1, True)
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1.0))

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = (*sample_shape, *self._batch_shape)
        return random.dirichlet(self._key(), self.concentration, shape)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        a = self.concentration
        powers = pg.sum(sp.xlogy(a - 1.0, value), -1)
        return powers + sp.gammaln(pg.sum(a, -1)) - pg.sum(sp.gammaln(a), -1)

    def entropy(self) -> Any:
        a, k = self.concentration, self._event_shape[0]
        total = pg.sum(a, -1)
        log_beta = pg.sum(sp.gammaln(a), -1) - sp.gammaln(total)
        weighted = pg.sum((a - 1.0) * sp.digamma(a), -1)
        return log_beta - (k - total) * sp.digamma(total) - weighted


def _turned(x: Any) -> Any:
    return pg.swapaxes(x, -1, -2)


def _outer(x: Any) -> Any:
    return pg.matmul(x, _turned(x))


def half_log_det(factor: Any) -> Any:
    """Return half the logarithm of the determinant of a matrix, by its Cholesky factor."""
    return pg.sum(pg.log(pg.diagonal(factor, 0, -2, -1)), -1)


def solve_lower(factor: Any, value: Any) -> Any:
    """Solve systems with lower triangular matrices, which are broadcast."""
    lead = np.broadcast_shapes(factor.type.shape[:-2], value.type.shape[:-2])
    matrices = pg.broadcast_to(factor, (*lead, *factor.type.shape[-2:]))
    sides = pg.broadcast_to(value, (*lead, *value.type.shape[-2:]))
    return linalg.solve_triangular(matrices, sides, lower=True)


def mahalanobis(factor: Any, x: Any) -> Any:
    """Return the squared norms of vectors `x` after solving with a Cholesky factor."""
    solved = solve_lower(factor, pg.expand_dims(x, -1))[..., 0]
    return pg.sum(solved * solved, -1)


def _given_matrix(
    error: type[Exception], covariance_matrix: Any, precision_matrix: Any, scale_tril: Any
) -> tuple[str, Any]:
    """Return the name and the value of the one that is given. Raises `error` unless it is one."""
    given = {
        "scale_tril": scale_tril,
        "covariance_matrix": covariance_matrix,
        "precision_matrix": precision_matrix,
    }
    known = {name: x for name, x in given.items() if x is not None}
    if len(known) != 1:
        raise error(
            "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
        )
    ((name, matrix),) = known.items()
    if matrix.ndim < 2:
        raise ArgumentError(
            f"{name} must be at least two-dimensional, with optional leading batch dimensions"
        )
    return name, matrix


class _WithMatrix(Distribution):
    """Distribution by a covariance, a precision or a lower Cholesky factor."""

    _factor: Any

    def _factorize(self, name: str) -> None:
        """Compute the factor of the matrix that is set by that name."""
        matrix = self.__dict__[name]
        if name == "covariance_matrix":
            matrix = linalg.cholesky(matrix)
        elif name == "precision_matrix":
            matrix = linalg.cholesky(linalg.inv(matrix))
        self._factor = matrix

    def __getattr__(self, name: str) -> Any:
        factor = self.__dict__.get("_factor")
        if factor is not None:
            if name == "scale_tril":
                return factor
            if name == "covariance_matrix":
                return _outer(factor)
            if name == "precision_matrix":
                return linalg.inv(_outer(factor))
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        found = super().expand(batch_shape)
        event = self._event_shape[-1]
        found._factor = pg.broadcast_to(self._factor, (*found._batch_shape, event, event))
        return found


class MultivariateNormal(_WithMatrix):
    """Normal distribution of vectors, by covariance, precision or lower Cholesky factor.

    >>> d = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
    >>> d.log_prob(torch.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints: ClassVar[Constraints] = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.ndim < 1:
            raise ArgumentError("loc must be at least one-dimensional.")
        name, matrix = _given_matrix(ArgumentError, covariance_matrix, precision_matrix, scale_tril)
        shape, event = tuple(loc.shape), tuple(loc.shape)[-1:]
        batch = np.broadcast_shapes(tuple(matrix.shape)[:-2], shape[:-1])
        self.loc = pg.broadcast_to(loc, (*batch, *event))
        self.__dict__[name] = pg.broadcast_to(matrix, (*batch, *event, *event))
        super().__init__(batch, event, validate_args)
        self._factorize(name)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return pg.sum(self._factor * self._factor, -1)

    def rsample(self, sample_shape: Any = ()) -> Any:
        noise = self._normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + pg.matmul(self._factor, pg.expand_dims(noise, -1))[..., 0]

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        squares = mahalanobis(self._factor, value - self.loc)
        constant = self._event_shape[0] * LOG_2PI
        return -0.5 * (constant + squares) - half_log_det(self._factor)

    def entropy(self) -> Any:
        return 0.5 * self._event_shape[0] * (1.0 + LOG_2PI) + half_log_det(self._factor)


class LowRankMultivariateNormal(Distribution):
    """Normal distribution whose covariance is `W @ W.T` of a narrow matrix, plus a diagonal.

    >>> d = torch.distributions.LowRankMultivariateNormal(
    ...     torch.zeros(2), torch.zeros(2, 1), torch.ones(2)
    ... )
    >>> d.log_prob(torch.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints: ClassVar[Constraints] = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None
    ) -> None:
        event = tuple(loc.shape)[-1:]
        if not event or tuple(cov_factor.shape)[-2:-1] != event:
            raise ArgumentError("cov_factor must be a batch of matrices with shape event x rank")
        if tuple(cov_diag.shape)[-1:] != event:
            raise ArgumentError("cov_diag must be a batch of vectors with shape event")
        batch = np.broadcast_shapes(
            tuple(loc.shape)[:-1], tuple(cov_factor.shape)[:-2], tuple(cov_diag.shape)[:-1]
        )
        rank = tuple(cov_factor.shape)[-1:]
        self.loc = pg.broadcast_to(loc, (*batch, *event))
        self.cov_factor = pg.broadcast_to(cov_factor, (*batch, *event, *rank))
        self.cov_diag = pg.broadcast_to(cov_diag, (*batch, *event))
        super().__init__(batch, event, validate_args)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return pg.sum(self.cov_factor * self.cov_factor, -1) + self.cov_diag

    @property
    def covariance_matrix(self) -> Any:
        """Covariance."""
        n = self._event_shape[0]
        diagonal = pg.expand_dims(self.cov_diag, -2) * np.eye(n, dtype=self.loc.type.dtype)
        return _outer(self.cov_factor) + diagonal

    @property
    def scale_tril(self) -> Any:
        """Lower Cholesky factor of the covariance."""
        return linalg.cholesky(self.covariance_matrix)

    @property
    def precision_matrix(self) -> Any:
        """Inverse of the covariance."""
        return linalg.inv(self.covariance_matrix)

    def _capacitance(self) -> tuple[Any, Any]:
        """Return `W.T / D`, and the Cholesky factor of `I + W.T @ W / D`."""
        scaled = _turned(self.cov_factor) / pg.expand_dims(self.cov_diag, -2)
        rank = self.cov_factor.type.shape[-1]
        unit = np.eye(rank, dtype=self.loc.type.dtype)
        return scaled, linalg.cholesky(pg.matmul(scaled, self.cov_factor) + unit)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        narrow = self._normal((*shape[:-1], self.cov_factor.type.shape[-1]), self.loc)
        wide = self._normal(shape, self.loc)
        moved = pg.matmul(self.cov_factor, pg.expand_dims(narrow, -1))[..., 0]
        return self.loc + moved + pg.sqrt(self.cov_diag) * wide

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        x = value - self.loc
        scaled, factor = self._capacitance()
        part = mahalanobis(factor, pg.matmul(scaled, pg.expand_dims(x, -1))[..., 0])
        squares = pg.sum(x * x / self.cov_diag, -1) - part
        constant = self._event_shape[0] * LOG_2PI
        return -0.5 * (constant + squares + self.log_det(factor))

    def log_det(self, factor: Any = None) -> Any:
        """Return the logarithm of the determinant of the covariance."""
        factor = self._capacitance()[1] if factor is None else factor
        return 2.0 * half_log_det(factor) + pg.sum(pg.log(self.cov_diag), -1)

    def entropy(self) -> Any:
        return 0.5 * (self._event_shape[0] * (1.0 + LOG_2PI) + self.log_det())


class Wishart(_WithMatrix, ExponentialFamily):
    """Wishart distribution of matrices, by covariance, precision or lower Cholesky factor.

    >>> d = torch.distributions.Wishart(torch.tensor(3.0), torch.eye(2))
    >>> d.mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    arg_constraints: ClassVar[Constraints] = {
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
        "df": constraints.positive,
    }
    support = constraints.positive_definite
    has_rsample = True

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = _given_matrix(CheckError, covariance_matrix, precision_matrix, scale_tril)
        size = matrix.type.shape[-1]
        self.df, _ = self._broadcast(df, pg.zeros_like(matrix[..., 0, 0]))
        degrees, batch = known_elements(self.df), self.df.type.shape
        if degrees is not None and np.any(degrees <= size - 1):
            raise ArgumentError(
                f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}."
            )
        self.__dict__[name] = pg.broadcast_to(matrix, (*batch, size, size))
        super().__init__(batch, (size, size), validate_args)
        self._factorize(name)
        less = np.arange(size).astype(as_dtype(self.df.dtype))
        self._chi2 = Chi2(pg.expand_dims(self.df, -1) - less)

    def _degrees(self, less: float = 0.0) -> Any:
        return pg.reshape(self.df - less, (*self._batch_shape, 1, 1))

    @property
    def mean(self) -> Any:
        return self._degrees() * self.covariance_matrix

    @property
    def mode(self) -> Any:
        factor = self._degrees(self._event_shape[-1] + 1.0)
        return pg.where(factor > 0, factor, np.nan) * self.covariance_matrix

    @property
    def variance(self) -> Any:
        matrix = self.covariance_matrix
        diagonal = pg.diagonal(matrix, 0, -2, -1)
        products = pg.expand_dims(diagonal, -1) * pg.expand_dims(diagonal, -2)
        return self._degrees() * (matrix**2 + products)

    def rsample(self, sample_shape: Any = (), max_try_correction: Any = None) -> Any:
        """Return samples by Bartlett's decomposition."""
        size = self._event_shape[-1]
        shape = (*self._chi2._extended_shape(sample_shape), size)
        below = pg.tril(self._normal(shape, self.df), -1)
        roots = pg.sqrt(self._chi2.rsample(sample_shape))
        eye = np.eye(size, dtype=as_dtype(self.df.dtype))
        factor = below + pg.expand_dims(roots, -1) * eye
        return _outer(pg.matmul(self.scale_tril, factor))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        nu, p, factor = self.df, self._event_shape[-1], self.scale_tril
        half = solve_lower(factor, value)
        trace = pg.sum(pg.diagonal(solve_lower(factor, _turned(half)), 0, -2, -1), -1)
        return (
            -nu * (p * _LOG_2 / 2 + half_log_det(factor))
            - sp.multigammaln(nu / 2, p)
            + (nu - p - 1) / 2 * linalg.slogdet(value)[1]
            - trace / 2
        )

    def entropy(self) -> Any:
        nu, p = self.df, self._event_shape[-1]
        digammas = sum(sp.digamma((nu - k) / 2) for k in range(p))
        spread = (p + 1) * (p * _LOG_2 / 2 + half_log_det(self.scale_tril))
        gamma = sp.multigammaln(nu / 2, p)
        return spread + gamma - (nu - p - 1) / 2 * digammas + nu * p / 2


_LOG_2 = float(np.log(2.0))


class LKJCholesky(Distribution):
    """Distribution of Cholesky factors of correlation matrices; uniform at concentration 1.

    Samples are drawn by the onion method. (D. Lewandowski, D. Kurowicka, H. Joe, Generating random
    correlation matrices based on vines and extended onion method, 2009.)

    >>> d = torch.distributions.LKJCholesky(2, 1.0)
    >>> d.log_prob(torch.eye(2))
    tensor(-0.6931)
    """

    arg_constraints: ClassVar[Constraints] = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ArgumentError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = self._broadcast(concentration)
        super().__init__(self.concentration.type.shape, (dim, dim), validate_args)

    def sample(self, sample_shape: Any = ()) -> Any:
        offset = np.maximum(np.arange(self.dim) - 1.0, 0.0)
        dtype = as_dtype(self.concentration.dtype)
        offset = offset.astype(dtype)
        marginal = pg.expand_dims(self.concentration + 0.5 * (self.dim - 2), -1)
        with no_grad():
            ones = pg.zeros_like(marginal) + (offset + dtype.type(0.5))
            y = Beta(ones, marginal - dtype.type(0.5) * offset).sample(sample_shape)
            below = pg.tril(self._normal(self._extended_shape(sample_shape), y), -1)
            length = pg.sqrt(pg.sum(below * below, -1, True))
            unit = below / pg.where(length > 0, length, 1.0)
            w = pg.expand_dims(pg.sqrt(y), -1) * unit
            least = float(np.finfo(dtype).tiny)
            diagonal = pg.sqrt(pg.maximum(1.0 - pg.sum(w * w, -1, True), least))
            return w + diagonal * np.eye(self.dim, dtype=dtype)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        diagonal = pg.diagonal(value, 0, -2, -1)[..., 1:]
        less = np.arange(2, self.dim + 1).astype(as_dtype(self.concentration.dtype))
        order = pg.expand_dims(2.0 * (self.concentration - 1.0), -1) + (self.dim - less)
        found = pg.sum(order * pg.log(diagonal), -1)
        last = self.dim - 1
        alpha = self.concentration + 0.5 * last
        norm = 0.5 * last * float(np.log(np.pi)) + sp.multigammaln(alpha - 0.5, last)
        return found - norm + sp.gammaln(alpha) * last
