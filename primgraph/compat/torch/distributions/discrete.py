"""Discrete distributions, as in torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from primgraph import operators as pg
from primgraph import random
from primgraph import special as sp
from primgraph.compat.torch.distributions import constraints
from primgraph.compat.torch.distributions.constraints import Constraints
from primgraph.compat.torch.distributions.distribution import (
    Distribution,
    ExponentialFamily,
    as_family,
    known_elements,
    logits_to_probs,
    probs_to_logits,
)
from primgraph.eager.derivatives.recording import enable_grad, no_grad
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.errors import ArgumentError, MissingMethodError
from primgraph.ir.types import as_dtype
from primgraph.operators.handle import Handle


class ProbabilityArguments(Distribution):
    """Distribution of probabilities or of their logits, of which one is given."""

    arg_constraints: ClassVar[Constraints] = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    _is_binary = True
    # Name of the parameter that was given.
    _given: str

    def _take(self, probs: Any, logits: Any, *others: Any) -> list[Any]:
        """Set `probs` or `logits`; return all arguments broadcast to one shape."""
        if (probs is None) == (logits is None):
            raise ArgumentError("Either `probs` or `logits` must be specified, but not both.")
        found = self._broadcast(*others, logits if probs is None else probs)
        name = "logits" if probs is None else "probs"
        self._given, self.__dict__[name] = name, found[-1]
        return found

    @property
    def _parameter(self) -> Any:
        """The parameter that was given."""
        return self.__dict__[self._given]

    @property
    def param_shape(self) -> Any:
        """Shape of the parameter."""
        return self._size(self._parameter.type.shape)

    def __getattr__(self, name: str) -> Any:
        if name in ("probs", "logits"):
            other = self.__dict__.get("logits" if name == "probs" else "probs")
            if other is not None:
                change: Callable[..., Any] = logits_to_probs if name == "probs" else probs_to_logits
                with enable_grad():
                    found = change(other, self._is_binary)
                if isinstance(found, _Tensor):
                    # Kept, as in torch; a variable belongs to the function that is traced.
                    self.__dict__[name] = found
                return found
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class Bernoulli(ProbabilityArguments, ExponentialFamily):
    """Distribution of 1, with a probability, and 0.

    >>> torch.distributions.Bernoulli(probs=torch.tensor(0.3)).log_prob(torch.tensor(1.0))
    tensor(-1.2040)
    """

    support = constraints.boolean
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take(probs, logits)
        super().__init__(self._parameter.type.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        found = pg.astype(self.probs >= 0.5, self.probs.dtype)
        return pg.where(self.probs == 0.5, math.nan, found)

    @property
    def variance(self) -> Any:
        return self.probs * (1.0 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            probs = self.probs
            drawn = self._uniform(self._extended_shape(sample_shape), probs)
            return pg.astype(drawn < probs, probs.dtype)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return self.logits * value - pg.softplus(self.logits)

    def entropy(self) -> Any:
        return pg.softplus(self.logits) - self.logits * self.probs

    def enumerate_support(self, expand: bool = True) -> Any:
        return support_values(self, 2, expand)


class Geometric(ProbabilityArguments):
    """Number of failures before the first success.

    >>> torch.distributions.Geometric(torch.tensor(0.5)).mean
    tensor(1.)
    """

    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take(probs, logits)
        super().__init__(self._parameter.type.shape, (), validate_args)
        known = known_elements(self._parameter) if probs is not None else None
        if self._validate_args and known is not None and not np.all(known > 0):
            raise ArgumentError(
                f"Expected parameter probs of distribution {self!r} to be positive but found "
                f"invalid values:\n{known}"
            )

    @property
    def mean(self) -> Any:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Any:
        return pg.zeros_like(self.probs)

    @property
    def variance(self) -> Any:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            drawn = self._uniform(self._extended_shape(sample_shape), self.probs)
            return pg.floor(pg.log1p(-drawn) / pg.log1p(-self.probs))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        probs = pg.where((self.probs == 1.0) & (value == 0.0), 0.0, self.probs)
        return value * pg.log1p(-probs) + pg.log(self.probs)

    def entropy(self) -> Any:
        return (pg.softplus(self.logits) - self.logits * self.probs) / self.probs


class Binomial(ProbabilityArguments):
    """Number of successes in a number of trials.

    >>> torch.distributions.Binomial(5, torch.tensor(0.5)).mean
    tensor(2.5000)
    """

    arg_constraints: ClassVar[Constraints] = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        count, parameter = self._take(probs, logits, total_count)
        self.total_count = pg.astype(count, parameter.dtype)
        super().__init__(parameter.type.shape, (), validate_args)

    @property
    def support(self) -> Any:
        """Interval of the values."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        return pg.minimum(pg.floor((self.total_count + 1.0) * self.probs), self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1.0 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            count, shape = pg.astype(self.total_count, "int64"), self._extended_shape(sample_shape)
            drawn = random.binomial(self._key(), count, self.probs, shape)
            return pg.astype(drawn, self.probs.dtype)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        n = self.total_count
        choices = sp.gammaln(n + 1.0) - sp.gammaln(value + 1.0) - sp.gammaln(n - value + 1.0)
        return choices + value * self.logits - n * pg.softplus(self.logits)

    def entropy(self) -> Any:
        total = np.unique(np.asarray(self.total_count))
        if total.size != 1:
            raise MissingMethodError("entropy of Binomial distributions of different total_count")
        return _sum_entropy(self.log_prob(self.enumerate_support(False)))

    def enumerate_support(self, expand: bool = True) -> Any:
        counts = np.unique(np.asarray(self.total_count))
        if counts.size != 1:
            raise MissingMethodError(
                "Inhomogeneous total count not supported by `enumerate_support`."
            )
        return support_values(self, int(counts[0]) + 1, expand)


class NegativeBinomial(ProbabilityArguments):
    """Number of successes before a number of failures.

    >>> torch.distributions.NegativeBinomial(2.0, torch.tensor(0.5)).mean
    tensor(2.)
    """

    arg_constraints: ClassVar[Constraints] = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        count, parameter = self._take(probs, logits, total_count)
        self.total_count = pg.astype(count, parameter.dtype)
        super().__init__(parameter.type.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        return self.total_count * pg.exp(self.logits)

    @property
    def mode(self) -> Any:
        return pg.maximum(pg.floor((self.total_count - 1.0) * pg.exp(self.logits)), 0.0)

    @property
    def variance(self) -> Any:
        return self.mean / pg.sigmoid(-self.logits)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            shape = self._extended_shape(sample_shape)
            rate = random.gamma(self._key(), self.total_count, shape) * pg.exp(self.logits)
            return pg.astype(random.poisson(self._key(), rate), self.total_count.dtype)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        n = self.total_count
        powers = n * sp.log_expit(-self.logits) + value * sp.log_expit(self.logits)
        choices = sp.gammaln(n + value) - sp.gammaln(value + 1.0) - sp.gammaln(n)
        return powers + pg.where(n + value == 0.0, 0.0, choices)


class Poisson(ExponentialFamily):
    """Poisson distribution of a rate.

    >>> torch.distributions.Poisson(2.0).log_prob(torch.tensor(0.0))
    tensor(-2.)
    """

    arg_constraints: ClassVar[Constraints] = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = self._broadcast(rate)
        super().__init__(self.rate.type.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        return self.rate

    @property
    def mode(self) -> Any:
        return pg.floor(self.rate)

    @property
    def variance(self) -> Any:
        return self.rate

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            drawn = random.poisson(self._key(), self.rate, self._extended_shape(sample_shape))
            return pg.astype(drawn, self.rate.dtype)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return sp.xlogy(value, self.rate) - self.rate - sp.gammaln(value + 1.0)


def support_values(d: Any, count: int, expand: bool) -> Any:
    """Return the integers below `count` along a new first axis, as tensors of parameters."""
    like = d._parameter
    shape = (count, *[1] * len(d._batch_shape))
    values = np.arange(count).astype(as_dtype(like.dtype)).reshape(shape)
    found = as_family(values, like)
    found = pg.asarray(found) if not isinstance(found, Handle) else found
    return pg.broadcast_to(found, (count, *d._batch_shape)) if expand else found


def _sum_entropy(log_prob: Any) -> Any:
    """Return the entropy of log probabilities of all values along the first axis."""
    return -pg.sum(pg.exp(log_prob) * log_prob, 0)
