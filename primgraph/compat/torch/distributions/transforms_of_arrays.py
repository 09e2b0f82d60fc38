"""Transforms of vectors, matrices and sequences of random variables, as in torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph import special as sp
from primgraph.compat.torch.distributions import constraints
from primgraph.compat.torch.distributions.distribution import sum_last
from primgraph.compat.torch.distributions.transforms_of_numbers import Transform
from primgraph.errors import MissingMethodError, ShapeError
from primgraph.ir.types import as_dtype


class IndependentTransform(Transform):
    """Transform whose last batch axes count as axes of events.

    >>> T = torch.distributions.transforms
    >>> T.IndependentTransform(T.ExpTransform(), 1).event_dim
    1
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.bijective = base_transform.bijective

    @property
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Any) -> Any:
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        found = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_last(found, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Reshape of events.

    >>> t = torch.distributions.transforms.ReshapeTransform((4,), (2, 2))
    >>> t(torch.zeros(3, 4)).shape
    torch.Size([3, 2, 2])
    """

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ShapeError("in_shape, out_shape have different numbers of elements")
        self.domain = constraints.independent(constraints.real, len(self.in_shape))
        self.codomain = constraints.independent(constraints.real, len(self.out_shape))

    def _lead(self, x: Any, event: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(x.shape)[: x.ndim - len(event)]

    def _call(self, x: Any) -> Any:
        return pg.reshape(x, (*self._lead(x, self.in_shape), *self.out_shape))

    def _inverse(self, y: Any) -> Any:
        return pg.reshape(y, (*self._lead(y, self.out_shape), *self.in_shape))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return sum_last(pg.zeros_like(x), len(self.in_shape))

    def forward_shape(self, shape: Any) -> Any:
        return (*shape[: len(shape) - len(self.in_shape)], *self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return (*shape[: len(shape) - len(self.out_shape)], *self.in_shape)


class SoftmaxTransform(Transform):
    """Softmax along the last axis, which is not bijective.

    >>> torch.distributions.transforms.SoftmaxTransform()(torch.zeros(2))
    tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Any) -> Any:
        return pg.softmax(x, -1)

    def _inverse(self, y: Any) -> Any:
        return pg.log(y)


class StickBreakingTransform(Transform):
    """Transform of vectors to the simplex with one more element, by breaking a stick.

    >>> torch.distributions.transforms.StickBreakingTransform()(torch.zeros(1))
    tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _offsets(self, x: Any) -> Any:
        n = x.type.shape[-1]
        return np.log(np.arange(n, 0, -1)).astype(as_dtype(x.dtype))

    def _call(self, x: Any) -> Any:
        z = pg.sigmoid(x - self._offsets(x))
        rest = pg.cumprod(1.0 - z, -1)
        ones = pg.ones_like(x[..., :1])
        return pg.concatenate([z, ones], -1) * pg.concatenate([ones, rest], -1)

    def _inverse(self, y: Any) -> Any:
        head = y[..., :-1]
        rest = pg.clip(1.0 - pg.cumsum(head, -1), float(np.finfo(as_dtype(y.dtype)).tiny), None)
        return pg.log(head) - pg.log(rest) + self._offsets(head)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        shifted = x - self._offsets(x)
        return pg.sum(-shifted + sp.log_expit(shifted) + pg.log(y[..., :-1]), -1)

    def forward_shape(self, shape: Any) -> Any:
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Any) -> Any:
        return (*shape[:-1], shape[-1] - 1)


class LowerCholeskyTransform(Transform):
    """Lower triangle with a positive diagonal, by exponentials.

    >>> torch.distributions.transforms.LowerCholeskyTransform()(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Any) -> Any:
        return pg.tril(x, -1) + pg.exp(_diagonal(x)) * np.eye(x.type.shape[-1], dtype=x.dtype)

    def _inverse(self, y: Any) -> Any:
        return pg.tril(y, -1) + pg.log(_diagonal(y)) * np.eye(y.type.shape[-1], dtype=y.dtype)


def _diagonal(x: Any) -> Any:
    """Return the diagonal as a matrix of one row."""
    return pg.expand_dims(pg.diagonal(x, 0, -2, -1), -2)


class PositiveDefiniteTransform(Transform):
    """Positive definite matrices of arbitrary ones, by their Cholesky factors.

    >>> torch.distributions.transforms.PositiveDefiniteTransform()(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return pg.matmul(factor, pg.swapaxes(factor, -1, -2))


class _SequenceTransform(Transform):
    """Transforms of slices along an axis."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = list(tseq), dim
        self.bijective = all(t.bijective for t in tseq)

    def _split(self, x: Any) -> list[Any]:
        raise MissingMethodError(f"{type(self).__name__} does not define _split")

    def _join(self, parts: list[Any]) -> Any:
        return pg.concatenate(parts, self.dim)

    def _call(self, x: Any) -> Any:
        pairs = zip(self.transforms, self._split(x), strict=True)
        return self._join([t(part) for t, part in pairs])

    def _inverse(self, y: Any) -> Any:
        pairs = zip(self.transforms, self._split(y), strict=True)
        return self._join([t.inv(part) for t, part in pairs])

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        triples = zip(self.transforms, self._split(x), self._split(y), strict=True)
        return self._join([t.log_abs_det_jacobian(a, b) for t, a, b in triples])


class CatTransform(_SequenceTransform):
    """Transforms of consecutive slices of some lengths along an axis.

    >>> T = torch.distributions.transforms
    >>> T.CatTransform([T.ExpTransform(), T.AbsTransform()])(torch.tensor([0.0, -2.0]))
    tensor([1., 2.])
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        self.domain = constraints.cat([t.domain for t in tseq], dim, self.lengths)
        self.codomain = constraints.cat([t.codomain for t in tseq], dim, self.lengths)

    def _split(self, x: Any) -> list[Any]:
        ends = np.cumsum(self.lengths)[:-1].tolist()
        return list(pg.split(x, ends, self.dim))


class StackTransform(_SequenceTransform):
    """Transforms of single slices along an axis.

    >>> T = torch.distributions.transforms
    >>> T.StackTransform([T.ExpTransform(), T.AbsTransform()], 0)(torch.tensor([0.0, -2.0]))
    tensor([1., 2.])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)
        self.domain = constraints.stack([t.domain for t in tseq], dim)
        self.codomain = constraints.stack([t.codomain for t in tseq], dim)

    def _split(self, x: Any) -> list[Any]:
        return [pg.take(x, i, self.dim) for i in range(len(self.transforms))]

    def _join(self, parts: list[Any]) -> Any:
        return pg.stack(parts, self.dim)


class CumulativeDistributionTransform(Transform):
    """Cumulative distribution function of a distribution of numbers.

    >>> D = torch.distributions
    >>> D.CumulativeDistributionTransform(D.Uniform(0.0, 2.0))(torch.tensor(1.0))
    tensor(0.5000)
    """

    bijective = True
    codomain = constraints.unit_interval
    _sign = 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        return self.distribution.support

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)


class CorrCholeskyTransform(Transform):
    """Map of vectors of length `n (n - 1) / 2` to Cholesky factors of correlation matrices.

    >>> t = torch.distributions.transforms.CorrCholeskyTransform()
    >>> t(torch.zeros(1))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Any) -> Any:
        eps = float(np.finfo(as_dtype(x.dtype)).eps)
        r = _below_diagonal(pg.clip(pg.tanh(x), eps - 1.0, 1.0 - eps))
        left = pg.cumprod(pg.sqrt(1.0 - r * r), -1)
        identity = np.eye(r.type.shape[-1], dtype=as_dtype(x.dtype))
        return (r + identity) * _shifted(left)

    def _inverse(self, y: Any) -> Any:
        left = _shifted(1.0 - pg.cumsum(y * y, -1))
        rows, columns = np.tril_indices(y.type.shape[-1], -1)
        t = y[..., rows, columns] / pg.sqrt(left[..., rows, columns])
        return pg.arctanh(t)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        left = 1.0 - pg.cumsum(y * y, -1)
        rows, columns = np.tril_indices(y.type.shape[-1], -2)
        sticks = 0.5 * pg.sum(pg.log(left[..., rows, columns]), -1)
        tanh = -2.0 * pg.sum(x + pg.softplus(-2.0 * x) - math.log(2.0), -1)
        return sticks + tanh

    def forward_shape(self, shape: Any) -> tuple[int, ...]:
        """Return the shape of matrices for a shape of vectors."""
        return (*shape[:-1], *(_size_of_matrix(shape[-1]),) * 2)

    def inverse_shape(self, shape: Any) -> tuple[int, ...]:
        """Return the shape of vectors for a shape of matrices."""
        if len(shape) < 2 or shape[-2] != shape[-1]:
            raise ShapeError("Input is not square")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


def _size_of_matrix(count: int) -> int:
    """Return the size of a square matrix with that many elements below the diagonal."""
    size = (math.isqrt(8 * count + 1) + 1) // 2
    if size * (size - 1) // 2 != count:
        raise ShapeError("Input is not a flattend lower-diagonal number")
    return size


def _below_diagonal(x: Any) -> Any:
    """Return square matrices with the elements of vectors below the diagonal, row by row."""
    size = _size_of_matrix(x.type.shape[-1])
    rows, columns = np.tril_indices(size, -1)
    places = np.zeros((size, size), np.int64)
    places[rows, columns] = np.arange(len(rows))
    below = np.tri(size, k=-1, dtype=bool)
    taken = pg.reshape(pg.take(x, places.reshape(-1), -1), (*x.type.shape[:-1], size, size))
    return pg.where(below, taken, 0)


def _shifted(x: Any) -> Any:
    """Return the columns of matrices moved to the right, after a column of ones."""
    return pg.concatenate([pg.ones_like(x[..., :1]), x[..., :-1]], -1)
