"""Distributions of categories, as in torch."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from primgraph import operators as pg
from primgraph import random
from primgraph import special as sp
from primgraph.compat.torch.distributions import constraints
from primgraph.compat.torch.distributions.constraints import Constraints
from primgraph.compat.torch.distributions.discrete import (
    Binomial,
    ProbabilityArguments,
    support_values,
)
from primgraph.eager.derivatives.recording import no_grad
from primgraph.errors import ArgumentError, MissingMethodError
from primgraph.ir.types import as_dtype


class Categorical(ProbabilityArguments):
    """Distribution of integers from 0 on, by probabilities or logits along the last axis.

    Both are normalized.

    >>> d = torch.distributions.Categorical(probs=torch.tensor([1.0, 3.0]))
    >>> d.probs, d.log_prob(torch.tensor(1))
    (tensor([0.2500, 0.7500]), tensor(-0.2877))
    """

    arg_constraints: ClassVar[Constraints] = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    has_enumerate_support = True
    _is_binary = False

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take(probs, logits)
        given = self._parameter
        if given.ndim < 1:
            name = "logits" if probs is None else "probs"
            raise ArgumentError(f"`{name}` parameter must be at least one-dimensional.")
        self._num_events = int(given.type.shape[-1])
        if probs is None:
            self.logits = given - pg.logsumexp(given, -1, True)
        else:
            self.probs = given / pg.sum(given, -1, True)
        super().__init__(given.type.shape[:-1], (), validate_args)

    @property
    def support(self) -> Any:
        """Interval of the values."""
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Any:
        return self._filled(math.nan)

    @property
    def mode(self) -> Any:
        return pg.argmax(self.probs, -1)

    @property
    def variance(self) -> Any:
        return self._filled(math.nan)

    def _filled(self, value: float) -> Any:
        return pg.full_like(self._parameter[..., 0], value)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            shape = tuple(map(int, sample_shape))
            return random.categorical(self._key(), self.logits, shape)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        index = pg.expand_dims(pg.astype(value, "int64"), -1)
        logits = self.logits
        shape = np.broadcast_shapes(index.type.shape[:-1], logits.type.shape[:-1])
        spread = pg.broadcast_to(logits, (*shape, self._num_events))
        places = pg.broadcast_to(index, (*shape, 1))
        return pg.take_along_axis(spread, places, -1)[..., 0]

    def entropy(self) -> Any:
        least = float(np.finfo(as_dtype(self._parameter.dtype)).min)
        return -pg.sum(pg.maximum(self.logits, least) * self.probs, -1)

    def enumerate_support(self, expand: bool = True) -> Any:
        return pg.astype(support_values(self, self._num_events, expand), "int64")


class _OfCategories(ProbabilityArguments):
    """Distribution on vectors with an element for each category."""

    arg_constraints: ClassVar[Constraints] = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    _categorical: Categorical

    def __getattr__(self, name: str) -> Any:
        if name in ("probs", "logits", "_parameter"):
            return getattr(self.__dict__["_categorical"], name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def param_shape(self) -> Any:
        """Shape of the parameter."""
        return self._categorical.param_shape


class OneHotCategorical(_OfCategories):
    """Distribution of unit vectors.

    >>> torch.distributions.OneHotCategorical(torch.tensor([0.25, 0.75])).mean
    tensor([0.2500, 0.7500])
    """

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        shape = self._categorical._batch_shape
        super().__init__(shape, (self._categorical._num_events,), validate_args)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        return self._one_hot(self._categorical.mode)

    @property
    def variance(self) -> Any:
        return self.probs * (1.0 - self.probs)

    def _one_hot(self, index: Any) -> Any:
        found = pg.one_hot(index, self._event_shape[0])
        return pg.astype(found, self.probs.dtype)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return self._categorical.log_prob(pg.argmax(value, -1))

    def entropy(self) -> Any:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        return self._one_hot(self._categorical.enumerate_support(expand))


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """Distribution of unit vectors, whose samples have the derivatives of the probabilities.

    >>> d = torch.distributions.OneHotCategoricalStraightThrough(torch.tensor([0.0, 1.0]))
    >>> d.rsample()
    tensor([0., 1.])
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.sample(sample_shape) + (self.probs - pg.stop_gradient(self.probs))


class Multinomial(_OfCategories):
    """Numbers of events of each category among a total number.

    >>> d = torch.distributions.Multinomial(3, torch.tensor([0.5, 0.5]))
    >>> d.log_prob(torch.tensor([1.0, 2.0]))
    tensor(-0.9808)
    """

    total_count: int

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise MissingMethodError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs, logits, validate_args)
        shape = self._categorical._batch_shape
        super().__init__(shape, (self._categorical._num_events,), validate_args)

    @property
    def support(self) -> Any:
        """Region of the values."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Any:
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1.0 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            drawn = self._categorical.sample((self.total_count, *sample_shape))
            counts = pg.sum(pg.astype(pg.one_hot(drawn, self._event_shape[0]), "float64"), 0)
            return pg.astype(counts, self.probs.dtype)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        logits = pg.where((value == 0.0) & (self.logits == -math.inf), 0.0, self.logits)
        choices = sp.gammaln(pg.sum(value, -1) + 1.0) - pg.sum(sp.gammaln(value + 1.0), -1)
        return choices + pg.sum(logits * value, -1)

    def entropy(self) -> Any:
        n = self.total_count
        counts = Binomial(n, probs=self.probs).enumerate_support(False)[1:]
        weights = pg.exp(Binomial(n, probs=self.probs).log_prob(counts))
        falling = pg.sum(weights * sp.gammaln(counts + 1.0), (0, -1))
        return n * self._categorical.entropy() - math.lgamma(n + 1) + falling
