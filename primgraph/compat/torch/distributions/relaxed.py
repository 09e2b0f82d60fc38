"""Relaxed distributions of categories, as in torch.

C. J. Maddison, A. Mnih, Y. W. Teh, The concrete distribution, 2017.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from primgraph import operators as pg
from primgraph.compat.torch.distributions import constraints
from primgraph.compat.torch.distributions.categorical import Categorical
from primgraph.compat.torch.distributions.composite import TransformedDistribution
from primgraph.compat.torch.distributions.constraints import Constraints
from primgraph.compat.torch.distributions.discrete import Bernoulli
from primgraph.compat.torch.distributions.distribution import Distribution, clamp_probs
from primgraph.compat.torch.distributions.transforms import ExpTransform, SigmoidTransform


class LogitRelaxedBernoulli(Distribution):
    """Logits of relaxed Bernoulli numbers."""

    arg_constraints: ClassVar[Constraints] = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._bernoulli = Bernoulli(probs, logits, validate_args)
        super().__init__(self._bernoulli._batch_shape, (), validate_args)

    @property
    def probs(self) -> Any:
        """Probabilities of 1."""
        return self._bernoulli.probs

    @property
    def logits(self) -> Any:
        """Logits of the probabilities."""
        return self._bernoulli.logits

    def rsample(self, sample_shape: Any = ()) -> Any:
        logits = self.logits
        drawn = clamp_probs(self._uniform(self._extended_shape(sample_shape), logits))
        return (pg.log(drawn) - pg.log1p(-drawn) + logits) / self.temperature

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        diff = self.logits - value * self.temperature
        return pg.log(self.temperature) + diff - 2.0 * pg.softplus(diff)


class ExpRelaxedCategorical(Distribution):
    """Logarithms of relaxed unit vectors."""

    arg_constraints: ClassVar[Constraints] = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._categorical = Categorical(probs, logits, validate_args)
        shape = self._categorical._batch_shape
        super().__init__(shape, (self._categorical._num_events,), validate_args)

    @property
    def probs(self) -> Any:
        """Probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        """Normalized logits."""
        return self._categorical.logits

    def rsample(self, sample_shape: Any = ()) -> Any:
        logits = self.logits
        drawn = clamp_probs(self._uniform(self._extended_shape(sample_shape), logits))
        scores = (logits - pg.log(-pg.log(drawn))) / self.temperature
        return scores - pg.logsumexp(scores, -1, True)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        count = self._event_shape[0]
        score = self.logits - value * self.temperature
        score = pg.sum(score - pg.logsumexp(score, -1, True), -1)
        return score + math.lgamma(count) + (count - 1) * pg.log(self.temperature)


class _Relaxed(TransformedDistribution):
    """Transform of a relaxed distribution of logits or logarithms."""

    _base: type[Any]
    _step: type[Any]

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = self._base(temperature, probs, logits, validate_args)
        super().__init__(base, self._step(), validate_args)

    @property
    def temperature(self) -> Any:
        """Temperature, of which small ones give values near 0 and 1."""
        return self.base_dist.temperature

    @property
    def probs(self) -> Any:
        """Probabilities."""
        return self.base_dist.probs

    @property
    def logits(self) -> Any:
        """Logits of the probabilities."""
        return self.base_dist.logits


class RelaxedBernoulli(_Relaxed):
    """Relaxed Bernoulli distribution, on the unit interval.

    >>> d = torch.distributions.RelaxedBernoulli(torch.tensor(2.0), torch.tensor([0.5]))
    >>> d.rsample().shape
    torch.Size([1])
    """

    arg_constraints: ClassVar[Constraints] = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.unit_interval
    _base = LogitRelaxedBernoulli
    _step = SigmoidTransform


class RelaxedOneHotCategorical(_Relaxed):
    """Relaxed distribution of unit vectors, on the simplex.

    >>> d = torch.distributions.RelaxedOneHotCategorical(torch.tensor(2.0), torch.ones(3))
    >>> d.rsample().shape
    torch.Size([3])
    """

    arg_constraints: ClassVar[Constraints] = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    support = constraints.simplex
    _base = ExpRelaxedCategorical
    _step = ExpTransform
