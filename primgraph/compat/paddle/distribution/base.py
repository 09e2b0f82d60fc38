"""The base of distributions of Paddle: torch's, with names of methods and arguments of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from primgraph import operators as pg
from primgraph.compat.paddle.dynamic import as_tensor
from primgraph.compat.paddle.framework import builds_program, new_key
from primgraph.compat.torch.distributions import distribution as core
from primgraph.compat.torch.distributions.kl import kl_divergence
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.ir.types import DType


class Distribution(core.Distribution):
    """Base of distributions: a subclass defines `sample`, `log_prob` and other methods.

    >>> paddle.distribution.Normal(0.0, paddle.ones([2])).batch_shape
    (2,)
    """

    _is_checked: ClassVar[bool] = False

    @classmethod
    def _number(cls, x: Any, dtype: DType | None) -> Any:
        return as_tensor(x, dtype or "float32")

    @staticmethod
    def _size(shape: Sequence[int]) -> Any:
        return tuple(shape)

    @staticmethod
    def _key() -> Any:
        return new_key()

    def _uniform(self, shape: Sequence[int], like: Any) -> Any:
        if builds_program() or not isinstance(like, _Tensor):
            return pg.uniform(new_key(), tuple(shape), 0.0, 1.0, like.dtype)
        return super()._uniform(shape, like)

    def _normal(self, shape: Sequence[int], like: Any) -> Any:
        if builds_program() or not isinstance(like, _Tensor):
            return pg.normal(new_key(), tuple(shape), like.dtype)
        return super()._normal(shape, like)

    def sample(self, shape: Any = ()) -> Any:  # type: ignore[override]
        """Return samples without derivatives."""
        return super().sample(shape)

    def rsample(self, shape: Any = ()) -> Any:  # type: ignore[override]
        """Return samples with derivatives by the parameters."""
        return super().rsample(shape)

    def prob(self, value: Any) -> Any:
        """Return the density at a value."""
        return pg.exp(self.log_prob(value))

    def kl_divergence(self, other: Any) -> Any:
        """Return the Kullback-Leibler divergence from another distribution."""
        return kl_divergence(self, other)

    def __repr__(self) -> str:
        return f"<paddle.distribution.{type(self).__name__} object>"


class ExponentialFamily(Distribution):
    """Base of distributions of exponential families.

    >>> isinstance(paddle.distribution.Gamma(1.0, 1.0), paddle.distribution.ExponentialFamily)
    True
    """
