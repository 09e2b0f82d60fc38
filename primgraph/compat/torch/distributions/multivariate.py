"""Distributions of vectors, as in torch."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from primgraph import linalg, random
from primgraph import operators as pg
from primgraph import special as sp
from primgraph.compat.torch.distributions import constraints
from primgraph.compat.torch.distributions.constraints import Constraints
from primgraph.compat.torch.distributions.distribution import (
    LOG_2PI,
    Distribution,
    ExponentialFamily,
)
from primgraph.errors import ArgumentError


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


class MultivariateNormal(Distribution):
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
        given = {
            "scale_tril": scale_tril,
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
        }
        known = {name: x for name, x in given.items() if x is not None}
        if len(known) != 1:
            raise ArgumentError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        ((name, matrix),) = known.items()
        if matrix.ndim < 2:
            raise ArgumentError(f"{name} must be at least two-dimensional")
        shape, event = tuple(loc.shape), tuple(loc.shape)[-1:]
        batch = np.broadcast_shapes(tuple(matrix.shape)[:-2], shape[:-1])
        self.loc = pg.broadcast_to(loc, (*batch, *event))
        self.__dict__[name] = pg.broadcast_to(matrix, (*batch, *event, *event))
        super().__init__(batch, event, validate_args)
        if name == "covariance_matrix":
            self._factor = linalg.cholesky(self.__dict__[name])
        elif name == "precision_matrix":
            self._factor = linalg.cholesky(linalg.inv(self.__dict__[name]))
        else:
            self._factor = self.__dict__[name]

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
        event = self._event_shape
        found._factor = pg.broadcast_to(self._factor, (*found._batch_shape, *event, *event))
        return found

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
