"""The base of distributions: shapes, validation, expansion and texts."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from primgraph import operators as pg
from primgraph.compat.randomness import draw_normal, draw_uniform
from primgraph.compat.torch import framework
from primgraph.compat.torch.creation import create
from primgraph.compat.torch.distributions.constraints import (
    Constraints,
    dependent,
    is_dependent,
)
from primgraph.compat.torch.methods import Sizes
from primgraph.eager.derivatives.recording import no_grad
from primgraph.eager.node import array_node
from primgraph.eager.seeds import seeded
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.errors import ArgumentError, MissingMethodError
from primgraph.ir.types import DType, as_dtype
from primgraph.operators.handle import Handle

_validates: list[bool] = [True]


class Distribution:
    """Base of distributions: a subclass defines `sample`, `log_prob` and other methods.

    >>> d = torch.distributions.Normal(torch.zeros(2), 1.0)
    >>> d, d.batch_shape
    (Normal(loc: torch.Size([2]), scale: torch.Size([2])), torch.Size([2]))
    """

    has_rsample = False
    has_enumerate_support = False
    arg_constraints: ClassVar[Constraints] = {}
    support: Any = dependent
    _is_checked: ClassVar[bool] = True
    _validate_args: bool

    def __init__(
        self,
        batch_shape: Sequence[int] = (),
        event_shape: Sequence[int] = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape, self._event_shape = tuple(batch_shape), tuple(event_shape)
        is_checked = self._is_checked and _validates[0]
        self._validate_args = is_checked if validate_args is None else validate_args
        if self._validate_args:
            self._validate_parameters()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Say whether distributions check parameters and values; they do at the start."""
        if not isinstance(value, bool):
            raise ArgumentError(f"validate_args is True or False, not {value!r:.60}")
        _validates[0] = value

    @classmethod
    def _number(cls, x: Any, dtype: DType | None) -> Any:
        """Return a number as a tensor of a dtype, by default of the default one."""
        return create.as_tensor(x, dtype=dtype or framework.get_default_dtype())

    @staticmethod
    def _size(shape: Sequence[int]) -> Any:
        return Sizes(shape)

    @staticmethod
    def _key() -> Any:
        """Return a key for random operators."""
        return seeded.key_tensor()

    def _uniform(self, shape: Sequence[int], like: Any) -> Any:
        """Return uniform numbers of a shape, as tensors like `like`."""
        return as_family(draw_uniform(seeded, tuple(shape), as_dtype(like.dtype)), like)

    def _normal(self, shape: Sequence[int], like: Any) -> Any:
        """Return normal numbers of a shape, as tensors like `like`."""
        return as_family(draw_normal(seeded, tuple(shape), as_dtype(like.dtype)), like)

    # Parameters.

    @classmethod
    def _broadcast(cls, *values: Any) -> list[Any]:
        """Return numbers and tensors as tensors of one shape."""
        dtype = next((as_dtype(v.dtype) for v in values if isinstance(v, Handle)), None)
        found = [v if isinstance(v, Handle) else cls._number(v, dtype) for v in values]
        shape = np.broadcast_shapes(*(v.type.shape for v in found))
        return [v if v.type.shape == shape else pg.broadcast_to(v, shape) for v in found]

    def _validate_parameters(self) -> None:
        for name, constraint in self.arg_constraints.items():
            if is_dependent(constraint) or name not in self.__dict__:
                continue
            value = known_elements(getattr(self, name))
            if value is not None and not np.all(constraint.check(value)):
                raise ArgumentError(
                    f"Expected parameter {name} (Tensor of shape {value.shape}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:"
                    f"\n{value}"
                )

    def _validate_sample(self, value: Any) -> None:
        """Raise `ArgumentError`, a ValueError, for a value that is known and not in the support."""
        if not self._validate_args:
            return
        if not isinstance(value, Handle):
            raise ArgumentError("The value argument to log_prob must be a Tensor")
        event = len(self._event_shape)
        shape = tuple(value.shape)
        if shape[len(shape) - event :] != self._event_shape:
            raise ArgumentError(
                f"The right-most size of value must match event_shape: {shape} vs "
                f"{self._event_shape}."
            )
        for i, j in zip(shape[: len(shape) - event][::-1], self._batch_shape[::-1], strict=False):
            if i != 1 and j != 1 and i != j:
                raise ArgumentError(
                    f"Value is not broadcastable with batch_shape+event_shape: {shape} vs "
                    f"{self._batch_shape + self._event_shape}."
                )
        known, support = known_elements(value), self.support
        if known is None or is_dependent(support):
            return
        bounds = [getattr(support, n, None) for n in ("lower_bound", "upper_bound")]
        if any(isinstance(b, Handle) and known_elements(b) is None for b in bounds):
            return
        if not np.all(np.asarray(support.check(known))):
            raise ArgumentError(
                f"Expected value argument (Tensor of shape {shape}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{known}"
            )

    def _extended_shape(self, sample_shape: Any = ()) -> tuple[int, ...]:
        """Return the shape of samples."""
        return (*map(int, sample_shape), *self._batch_shape, *self._event_shape)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        """Return the distribution with its parameters broadcast to a batch shape."""
        found = copy.copy(self)
        found._batch_shape = tuple(map(int, batch_shape))
        for name, constraint in self.arg_constraints.items():
            value = self.__dict__.get(name)
            if isinstance(value, Handle):
                event = value.type.shape[value.ndim - constraint.event_dim :]
                shape = (*found._batch_shape, *event)
                found.__dict__[name] = pg.broadcast_to(value, shape)
        for name, value in self.__dict__.items():
            if isinstance(value, Distribution):
                found.__dict__[name] = value.expand((*found._batch_shape, *self._inner(value)))
        return found

    def _inner(self, part: Distribution) -> tuple[int, ...]:
        """Return the batch axes that a distribution within has beside those of this one."""
        return part._batch_shape[len(self._batch_shape) :]

    # Attributes.

    @property
    def batch_shape(self) -> Any:
        """Shape of the parameters of single events."""
        return self._size(self._batch_shape)

    @property
    def event_shape(self) -> Any:
        """Shape of an event."""
        return self._size(self._event_shape)

    @property
    def mean(self) -> Any:
        """Mean."""
        raise self._lacks("mean")

    @property
    def mode(self) -> Any:
        """Value of the largest density."""
        raise self._lacks("mode")

    @property
    def variance(self) -> Any:
        """Variance."""
        raise self._lacks("variance")

    @property
    def stddev(self) -> Any:
        """Standard deviation."""
        return pg.sqrt(self.variance)

    # Samples and densities.

    def sample(self, sample_shape: Any = ()) -> Any:
        """Return samples without derivatives."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Return samples with derivatives by the parameters."""
        raise self._lacks("rsample")

    def sample_n(self, n: int) -> Any:
        """Return `n` samples."""
        return self.sample((n,))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at a value."""
        raise self._lacks("log_prob")

    def cdf(self, value: Any) -> Any:
        """Return the cumulative distribution function at a value."""
        raise self._lacks("cdf")

    def icdf(self, value: Any) -> Any:
        """Return the inverse of the cumulative distribution function."""
        raise self._lacks("icdf")

    def enumerate_support(self, expand: bool = True) -> Any:
        """Return all values of a discrete distribution."""
        raise self._lacks("enumerate_support")

    def entropy(self) -> Any:
        """Return the entropy."""
        raise self._lacks("entropy")

    def perplexity(self) -> Any:
        """Return the exponential of the entropy."""
        return pg.exp(self.entropy())

    def _lacks(self, name: str) -> MissingMethodError:
        return MissingMethodError(f"{type(self).__name__} has no {name}")

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        shown = ", ".join(f"{name}: {_shown(self.__dict__[name])}" for name in names)
        return f"{type(self).__name__}({shown})"


class ExponentialFamily(Distribution):
    """Base of distributions of exponential families.

    >>> isinstance(torch.distributions.Normal(0.0, 1.0), torch.distributions.ExponentialFamily)
    True
    """


def _shown(x: Any) -> Any:
    if not isinstance(x, Handle):
        return x
    if x.type.size != 1:
        return x.shape
    return x.item() if x.ndim == 0 and isinstance(x, _Tensor) else x


def known_elements(x: Any) -> Any:
    """Return the elements as an array; None for a variable of a trace or program."""
    if isinstance(x, _Tensor):
        return np.asarray(x.detach())
    return None if isinstance(x, Handle) else np.asarray(x)


def as_family(drawn: Any, like: Any) -> Any:
    """Return drawn numbers as a tensor of the class of `like`."""
    if isinstance(drawn, np.ndarray) and isinstance(like, _Tensor):
        return type(like).family(array_node(drawn))
    return drawn


def sum_last(x: Any, count: int) -> Any:
    """Sum over the last `count` axes."""
    return pg.sum(x, tuple(range(-count, 0))) if count else x


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Return probabilities of logits."""
    return pg.sigmoid(logits) if is_binary else pg.softmax(logits, -1)


def clamp_probs(probs: Any) -> Any:
    """Limit probabilities so that they and their complements have logarithms."""
    eps = float(np.finfo(as_dtype(probs.dtype)).eps)
    return pg.clip(probs, eps, 1.0 - eps)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Return logits of probabilities."""
    clamped = clamp_probs(probs)
    return pg.log(clamped) - pg.log1p(-clamped) if is_binary else pg.log(clamped)


LOG_2PI = math.log(2.0 * math.pi)
