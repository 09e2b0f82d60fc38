"""Distributions of angles, of the unit interval, and of excesses over a threshold, as in torch."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from primgraph import operators as pg
from primgraph import special as sp
from primgraph.compat.torch.distributions import constraints
from primgraph.compat.torch.distributions.constraints import Constraints, dependent_property
from primgraph.compat.torch.distributions.discrete import ProbabilityArguments
from primgraph.compat.torch.distributions.distribution import (
    LOG_2PI,
    Distribution,
    ExponentialFamily,
    as_family,
    clamp_probs,
    known_elements,
)
from primgraph.eager.seeds import reserve_generator
from primgraph.errors import MissingMethodError
from primgraph.ir.types import as_dtype


class VonMises(Distribution):
    """Von Mises distribution of angles, the normal distribution of a circle.

    >>> d = torch.distributions.VonMises(torch.tensor(0.0), torch.tensor(2.0))
    >>> d.log_prob(torch.tensor(0.0))
    tensor(-0.6619)
    """

    arg_constraints: ClassVar[Constraints] = {
        "loc": constraints.real,
        "concentration": constraints.positive,
    }
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = self._broadcast(loc, concentration)
        super().__init__(self.loc.type.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        """Mean direction."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Any:
        """Circular variance, between 0 and 1."""
        return 1.0 - sp.i1e(self.concentration) / sp.i0e(self.concentration)

    def sample(self, sample_shape: Any = ()) -> Any:
        loc, concentration = known_elements(self.loc), known_elements(self.concentration)
        if loc is None or concentration is None:
            raise MissingMethodError("VonMises has no samples in functions that are traced")
        shape = self._extended_shape(sample_shape)
        drawn = reserve_generator()().vonmises(loc, concentration, shape)
        return as_family(np.asarray(drawn, as_dtype(self.loc.dtype)), self.loc)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        k = self.concentration
        # With the scaled Bessel function: log(I0(k)) = k + log(exp(-k) I0(k)).
        return k * (pg.cos(value - self.loc) - 1.0) - LOG_2PI - pg.log(sp.i0e(k))


class ContinuousBernoulli(ProbabilityArguments, ExponentialFamily):
    """Continuous Bernoulli distribution of numbers between 0 and 1.

    Within `lims` around `probs` 1/2 values are Taylor polynomials, as in torch. (G. Loaiza-Ganem,
    J. P. Cunningham, The continuous Bernoulli, 2019.)

    >>> torch.distributions.ContinuousBernoulli(torch.tensor(0.3)).log_prob(torch.tensor(0.5))
    tensor(-0.0297)
    """

    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits)
        super().__init__(self._parameter.type.shape, (), validate_args)
        if probs is not None:
            self.__dict__["probs"] = clamp_probs(self.__dict__["probs"])
        self._lims = lims

    @property
    def _is_skewed(self) -> Any:
        """Whether probabilities are outside of the limits around 1/2."""
        probs = self.probs
        return pg.logical_or(pg.less_equal(probs, self._lims[0]), probs > self._lims[1])

    def _choose(self, of_skewed: Any, polynomial: Any) -> Any:
        """Return `of_skewed(probs)` outside of the limits, and `polynomial(probs - 1/2)` inside."""
        is_skewed, probs = self._is_skewed, self.probs
        safe = pg.where(is_skewed, probs, self._lims[0])
        return pg.where(is_skewed, of_skewed(safe), polynomial(probs - 0.5))

    def _log_normalizer_of_density(self) -> Any:
        def of_skewed(p: Any) -> Any:
            return pg.log(pg.abs(pg.log1p(-p) - pg.log(p))) - pg.log(pg.abs(1.0 - 2.0 * p))

        def polynomial(x: Any) -> Any:
            return math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x * x) * x * x

        return self._choose(of_skewed, polynomial)

    @property
    def mean(self) -> Any:
        def of_skewed(p: Any) -> Any:
            return p / (2.0 * p - 1.0) + 1.0 / (pg.log1p(-p) - pg.log(p))

        return self._choose(of_skewed, lambda x: 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x * x) * x)

    @property
    def variance(self) -> Any:
        def of_skewed(p: Any) -> Any:
            odds = pg.log1p(-p) - pg.log(p)
            return p * (p - 1.0) / (1.0 - 2.0 * p) ** 2 + 1.0 / odds**2

        def polynomial(x: Any) -> Any:
            return 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x * x) * x * x

        return self._choose(of_skewed, polynomial)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.icdf(self._uniform(self._extended_shape(sample_shape), self._parameter))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        logits = self.logits
        return value * logits - pg.softplus(logits) + self._log_normalizer_of_density()

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)

        def of_skewed(p: Any) -> Any:
            return (p**value * (1.0 - p) ** (1.0 - value) + p - 1.0) / (2.0 * p - 1.0)

        inside = self._choose(of_skewed, lambda x: pg.broadcast_arrays(value, x)[0])
        return pg.where(value <= 0.0, 0.0, pg.where(value >= 1.0, 1.0, inside))

    def icdf(self, value: Any) -> Any:
        def of_skewed(p: Any) -> Any:
            above = pg.log1p(-p + value * (2.0 * p - 1.0)) - pg.log1p(-p)
            return above / (pg.log(p) - pg.log1p(-p))

        return self._choose(of_skewed, lambda x: pg.broadcast_arrays(value, x)[0])

    def entropy(self) -> Any:
        log_less, log_more = pg.log1p(-self.probs), pg.log(self.probs)
        rest = self._log_normalizer_of_density()
        return self.mean * (log_less - log_more) - rest - log_less


class GeneralizedPareto(Distribution):
    """Generalized Pareto distribution of excesses over `loc`; with concentration 0 exponential.

    >>> d = torch.distributions.GeneralizedPareto(0.0, 2.0, 0.25)
    >>> d.mean, d.cdf(torch.tensor(1.0))
    (tensor(2.6667), tensor(0.3757))
    """

    arg_constraints: ClassVar[Constraints] = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = self._broadcast(loc, scale, concentration)
        super().__init__(self.loc.type.shape, (), validate_args)

    @dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """Numbers from `loc` on; with a negative concentration up to a bound."""
        concentration = self.concentration
        is_bounded = concentration < 0
        safe = pg.where(is_bounded, concentration, -1.0)
        upper = pg.where(is_bounded, self.loc - self.scale / safe, math.inf)
        return constraints.interval(self.loc, upper)

    def _by_concentration(self, at_zero: Any, otherwise: Any) -> Any:
        """Return `at_zero` where the concentration is 0, elsewhere `otherwise(concentration)`."""
        is_zero = pg.isclose(self.concentration, 0.0)
        return pg.where(is_zero, at_zero, otherwise(pg.where(is_zero, 1.0, self.concentration)))

    def _standard(self, value: Any) -> Any:
        return (value - self.loc) / self.scale

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.icdf(self._uniform(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        z = self._standard(value)
        # At concentration -1 the density is constant, and the logarithm may be infinite.
        return -pg.log(self.scale) - self._by_concentration(
            z, lambda c: sp.xlog1py(1.0 + 1.0 / c, c * z)
        )

    def log_survival_function(self, value: Any) -> Any:
        """Return the logarithm of the probability of larger values."""
        self._validate_sample(value)
        z = self._standard(value)
        return self._by_concentration(-z, lambda c: -pg.log1p(c * z) / c)

    def log_cdf(self, value: Any) -> Any:
        """Return the logarithm of `cdf`."""
        return pg.log1p(-pg.exp(self.log_survival_function(value)))

    def cdf(self, value: Any) -> Any:
        return pg.exp(self.log_cdf(value))

    def icdf(self, value: Any) -> Any:
        log = pg.log1p(-value)
        return self.loc + self.scale * self._by_concentration(
            -log, lambda c: pg.expm1(-c * log) / c
        )

    @property
    def mean(self) -> Any:
        is_finite = self.concentration < 1
        safe = pg.where(is_finite, self.concentration, 0.5)
        return pg.where(is_finite, self.loc + self.scale / (1.0 - safe), math.nan)

    @property
    def variance(self) -> Any:
        is_finite = self.concentration < 0.5
        safe = pg.where(is_finite, self.concentration, 0.25)
        found = self.scale**2 / ((1.0 - safe) ** 2 * (1.0 - 2.0 * safe))
        return pg.where(is_finite, found, math.nan)

    @property
    def mode(self) -> Any:
        """The threshold."""
        return self.loc

    def entropy(self) -> Any:
        return pg.log(self.scale) + self.concentration + 1.0
