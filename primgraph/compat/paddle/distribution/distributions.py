"""Distributions of Paddle: torch's, with arguments of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph import random
from primgraph.compat.paddle.distribution.base import Distribution, ExponentialFamily
from primgraph.compat.paddle.dynamic import as_tensor
from primgraph.compat.torch.distributions import (
    categorical,
    composite,
    continuous,
    discrete,
    transformed,
)
from primgraph.compat.torch.distributions import multivariate as many
from primgraph.compat.torch.distributions.kl import register_kl
from primgraph.eager.derivatives.recording import no_grad


class Normal(Distribution, continuous.Normal):
    """Normal distribution.

    >>> float(paddle.distribution.Normal(0.0, 1.0).mean)
    0.0
    """

    def __init__(self, loc: Any, scale: Any, name: str | None = None) -> None:
        super().__init__(loc, scale)
        self.name = name or "Normal"

    def sample(self, shape: Any = (), seed: int = 0) -> Any:
        """Return samples, with derivatives by the parameters, as in Paddle."""
        return self.rsample(shape)

    def probs(self, value: Any) -> Any:
        """Return the density at a value."""
        return self.prob(value)


class Uniform(Distribution, continuous.Uniform):
    """Uniform distribution on an interval.

    >>> float(paddle.distribution.Uniform(0.0, 2.0).mean)
    1.0
    """

    def __init__(self, low: Any, high: Any, name: str | None = None) -> None:
        super().__init__(low, high)
        self.name = name or "Uniform"

    def sample(self, shape: Any = (), seed: int = 0) -> Any:
        """Return samples, with derivatives by the parameters, as in Paddle."""
        return self.rsample(shape)

    def probs(self, value: Any) -> Any:
        """Return the density at a value."""
        return self.prob(value)


class Laplace(Distribution, continuous.Laplace):
    """Laplace distribution.

    >>> float(paddle.distribution.Laplace(1.0, 2.0).mean)
    1.0
    """

    def __init__(self, loc: Any, scale: Any) -> None:
        super().__init__(loc, scale)


class Cauchy(Distribution, continuous.Cauchy):
    """Cauchy distribution.

    >>> float(paddle.distribution.Cauchy(0.0, 1.0).cdf(paddle.to_tensor(0.0)))
    0.5
    """

    def __init__(self, loc: Any, scale: Any, name: str | None = None) -> None:
        super().__init__(loc, scale)
        self.name = name or "Cauchy"


class StudentT(Distribution, continuous.StudentT):
    """Student's t distribution.

    >>> float(paddle.distribution.StudentT(3.0, 1.0, 1.0).mean)
    1.0
    """

    def __init__(self, df: Any, loc: Any, scale: Any, name: str | None = None) -> None:
        super().__init__(df, loc, scale)
        self.name = name or "StudentT"

    def sample(self, shape: Any = ()) -> Any:
        """Return samples, with derivatives by the parameters, as in Paddle."""
        return self.rsample(shape)


class Exponential(ExponentialFamily, continuous.Exponential):
    """Exponential distribution of a rate.

    >>> float(paddle.distribution.Exponential(2.0).mean)
    0.5
    """

    def __init__(self, rate: Any) -> None:
        super().__init__(rate)


class Gamma(ExponentialFamily, continuous.Gamma):
    """Gamma distribution of a shape and a rate.

    >>> float(paddle.distribution.Gamma(2.0, 4.0).mean)
    0.5
    """

    def __init__(self, concentration: Any, rate: Any) -> None:
        super().__init__(concentration, rate)


class Chi2(Gamma):
    """Chi-square distribution.

    >>> float(paddle.distribution.Chi2(3.0).mean)
    3.0
    """

    def __init__(self, df: Any) -> None:
        (self.df,) = self._broadcast(df)
        super().__init__(0.5 * self.df, 0.5)


class Beta(ExponentialFamily, continuous.Beta):
    """Beta distribution.

    >>> float(paddle.distribution.Beta(1.0, 3.0).mean)
    0.25
    """

    def __init__(self, alpha: Any, beta: Any) -> None:
        super().__init__(alpha, beta)
        self.alpha, self.beta = self.concentration1, self.concentration0


class Dirichlet(ExponentialFamily, many.Dirichlet):
    """Dirichlet distribution.

    >>> paddle.distribution.Dirichlet(paddle.to_tensor([1.0, 3.0])).mean.tolist()
    [0.25, 0.75]
    """

    def __init__(self, concentration: Any) -> None:
        super().__init__(concentration)


class MultivariateNormal(Distribution, many.MultivariateNormal):
    """Normal distribution of vectors, by covariance, precision or lower Cholesky factor.

    >>> paddle.distribution.MultivariateNormal(paddle.zeros([2]), paddle.eye(2)).sample().shape
    paddle.Size([2])
    """

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
    ) -> None:
        super().__init__(loc, covariance_matrix, precision_matrix, scale_tril)


class LogNormal(Distribution, transformed.LogNormal):
    """Exponentials of normal numbers.

    >>> float(paddle.distribution.LogNormal(0.0, 1.0).entropy()) > 1.0
    True
    """

    def __init__(self, loc: Any, scale: Any) -> None:
        super().__init__(loc, scale)
        # In programs its samples are new at each run.
        self.base_dist = Normal(self.loc, self.scale)

    def probs(self, value: Any) -> Any:
        """Return the density at a value."""
        return self.prob(value)

    def sample(self, shape: Any = ()) -> Any:
        """Return samples, with derivatives by the parameters, as in Paddle."""
        return self.rsample(shape)


class Gumbel(Distribution, transformed.Gumbel):
    """Gumbel distribution of maxima.

    >>> float(paddle.distribution.Gumbel(0.0, 1.0).log_prob(paddle.to_tensor(0.0)))
    -1.0
    """

    def __init__(self, loc: Any, scale: Any) -> None:
        super().__init__(loc, scale)
        # In programs its samples are new at each run.
        self.base_dist = Uniform(self.base_dist.low, self.base_dist.high)


class Bernoulli(ExponentialFamily, discrete.Bernoulli):
    """Distribution of 1, with a probability, and 0.

    >>> float(paddle.distribution.Bernoulli(0.5).variance)
    0.25
    """

    def __init__(self, probs: Any, name: str | None = None) -> None:
        super().__init__(probs)
        self.name = name or "Bernoulli"

    def rsample(self, shape: Any = (), temperature: float = 1.0) -> Any:
        """Return numbers of the relaxed distribution of a temperature, with derivatives."""
        drawn = self._uniform(self._extended_shape(shape), self.probs)
        noise = pg.log(drawn) - pg.log1p(-drawn)
        return pg.sigmoid((noise + self.logits) / temperature)

    def cdf(self, value: Any) -> Any:
        """Return the cumulative distribution function at a value."""
        inside = pg.where(value < 1.0, 1.0 - self.probs, 1.0)
        return pg.where(value < 0.0, 0.0, inside)


class Geometric(Distribution, discrete.Geometric):
    """Number of failures before the first success.

    >>> float(paddle.distribution.Geometric(0.5).pmf(paddle.to_tensor(1.0)))
    0.25
    """

    def __init__(self, probs: Any) -> None:
        super().__init__(probs)

    def rsample(self, shape: Any = ()) -> Any:
        """Return samples; integers have no derivatives."""
        return self.sample(shape)

    def pmf(self, k: Any) -> Any:
        """Return the probability of `k` failures."""
        return self.prob(k)

    def log_pmf(self, k: Any) -> Any:
        """Return the logarithm of the probability of `k` failures."""
        return self.log_prob(k)

    def cdf(self, k: Any) -> Any:
        """Return the probability of at most `k` failures."""
        return 1.0 - (1.0 - self.probs) ** (k + 1)


class Binomial(Distribution, discrete.Binomial):
    """Number of successes in a number of trials.

    >>> float(paddle.distribution.Binomial(4, 0.5).mean)
    2.0
    """

    def __init__(self, total_count: Any, probs: Any) -> None:
        super().__init__(total_count, probs)


class Poisson(ExponentialFamily, discrete.Poisson):
    """Poisson distribution of a rate.

    >>> float(paddle.distribution.Poisson(2.0).log_prob(paddle.to_tensor(0.0)))
    -2.0
    """

    def __init__(self, rate: Any) -> None:
        super().__init__(rate)

    def entropy(self) -> Any:
        """Return the entropy, summed over the values up to 30 deviations above the mean."""
        largest = float(pg.max(self.rate + 30.0 * pg.sqrt(self.rate)))
        counts = np.arange(int(largest) + 2, dtype=self.rate.type.dtype)
        parts = self.log_prob(as_tensor(counts.reshape(-1, *[1] * self.rate.ndim)))
        return -pg.sum(pg.exp(parts) * parts, 0)


class Multinomial(Distribution, categorical.Multinomial):
    """Numbers of events of each category among a total number.

    >>> paddle.distribution.Multinomial(4, paddle.to_tensor([0.25, 0.75])).mean.tolist()
    [1.0, 3.0]
    """

    def __init__(self, total_count: int, probs: Any) -> None:
        super().__init__(total_count, probs)
        # In programs its samples are new at each run.
        self._draws = Categorical(self.probs)

    def sample(self, shape: Any = ()) -> Any:
        """Return numbers of events without derivatives."""
        with no_grad():
            drawn = self._draws.sample((self.total_count, *shape))
            events = pg.one_hot(drawn, self.probs.type.shape[-1])
            return pg.astype(pg.sum(pg.astype(events, "float64"), 0), self.probs.type.dtype)


class Categorical(Distribution):
    """Distribution of integers from 0 on.

    As in Paddle, samples and probabilities are in proportion to `logits`, and the entropy and
    divergence are those of `softmax(logits)`.

    >>> d = paddle.distribution.Categorical(paddle.to_tensor([1.0, 3.0]))
    >>> float(d.probs(paddle.to_tensor([1]))[0])
    0.75
    """

    def __init__(self, logits: Any, name: str | None = None) -> None:
        (self.logits,) = self._broadcast(logits)
        self.name = name or "Categorical"
        self._softmax = categorical.Categorical(logits=self.logits, validate_args=False)
        super().__init__(self.logits.type.shape[:-1])

    def sample(self, shape: Any = ()) -> Any:
        """Return integers without derivatives."""
        with no_grad():
            return random.categorical(self._key(), pg.log(self.logits), tuple(shape))

    def entropy(self) -> Any:
        """Return the entropy."""
        return self._softmax.entropy()

    def probs(self, value: Any) -> Any:
        """Return the probabilities of integers, along the last axis where there is a batch."""
        shares = self.logits / pg.sum(self.logits, -1, True)
        if shares.ndim == 1:
            return pg.take(shares, pg.reshape(value, (-1,)), 0).reshape(tuple(value.shape))
        if value.ndim == 1:
            return pg.take(shares, value, -1)
        return pg.take_along_axis(shares, pg.astype(value, "int64"), -1)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithms of the probabilities of integers."""
        return pg.log(self.probs(value))

    def prob(self, value: Any) -> Any:
        """Return the probabilities of integers."""
        return self.probs(value)


@register_kl(Categorical, Categorical)
def _kl_categorical(p: Any, q: Any) -> Any:
    logits = pg.log_softmax(p.logits, -1), pg.log_softmax(q.logits, -1)
    return pg.sum(pg.exp(logits[0]) * (logits[0] - logits[1]), -1, True)


class Independent(Distribution, composite.Independent):
    """Distribution whose last batch axes count as axes of events.

    >>> D = paddle.distribution
    >>> D.Independent(D.Normal(paddle.zeros([3]), paddle.ones([3])), 1).event_shape
    (3,)
    """

    def __init__(self, base: Any, reinterpreted_batch_rank: int) -> None:
        super().__init__(base, reinterpreted_batch_rank)


class TransformedDistribution(Distribution, composite.TransformedDistribution):
    """Distribution of `transforms` applied to the values of a base distribution.

    >>> D = paddle.distribution
    >>> D.TransformedDistribution(D.Normal(0.0, 1.0), [D.ExpTransform()]).sample([2]).shape
    paddle.Size([2])
    """

    def __init__(self, base: Any, transforms: Sequence[Any]) -> None:
        super().__init__(base, transforms)

    def sample(self, shape: Any = ()) -> Any:
        """Return samples, with derivatives if those of the base have them, as in Paddle."""
        return self._transform(self.base_dist.sample(shape))
