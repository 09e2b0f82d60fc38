"""Continuous distributions of numbers, as in torch."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from primgraph import operators as pg
from primgraph import random
from primgraph import special as sp
from primgraph.compat.torch.distributions import constraints
from primgraph.compat.torch.distributions.constraints import Constraints
from primgraph.compat.torch.distributions.distribution import (
    LOG_2PI,
    Distribution,
    ExponentialFamily,
)
from primgraph.ir.types import as_dtype

_SQRT2 = math.sqrt(2.0)


class _LocationScale(Distribution):
    """Distribution of a location and a scale."""

    arg_constraints: ClassVar[Constraints] = {
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = self._broadcast(loc, scale)
        super().__init__(self.loc.type.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    def _standard(self, value: Any) -> Any:
        """Return values of the distribution with location 0 and scale 1, and check them."""
        self._validate_sample(value)
        return (value - self.loc) / self.scale


class Normal(_LocationScale, ExponentialFamily):
    """Normal distribution.

    >>> d = torch.distributions.Normal(torch.tensor(1.0), torch.tensor(2.0))
    >>> d.log_prob(torch.tensor([0.0, 1.0]))
    tensor([-1.7371, -1.6121])
    """

    @property
    def stddev(self) -> Any:
        return self.scale

    @property
    def variance(self) -> Any:
        return self.scale * self.scale

    def rsample(self, sample_shape: Any = ()) -> Any:
        noise = self._normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + noise * self.scale

    def log_prob(self, value: Any) -> Any:
        z = self._standard(value)
        return -0.5 * z * z - pg.log(self.scale) - 0.5 * LOG_2PI

    def cdf(self, value: Any) -> Any:
        return 0.5 * (1.0 + pg.erf(self._standard(value) / _SQRT2))

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * sp.erfinv(2.0 * value - 1.0) * _SQRT2

    def entropy(self) -> Any:
        return 0.5 + 0.5 * LOG_2PI + pg.log(self.scale)


class Laplace(_LocationScale):
    """Laplace distribution.

    >>> torch.distributions.Laplace(0.0, 1.0).log_prob(torch.tensor(0.0))
    tensor(-0.6931)
    """

    @property
    def variance(self) -> Any:
        return 2.0 * self.scale * self.scale

    @property
    def stddev(self) -> Any:
        return _SQRT2 * self.scale

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.icdf(self._open_uniform(sample_shape))

    def _open_uniform(self, sample_shape: Any) -> Any:
        """Return uniform numbers strictly between 0 and 1."""
        drawn = self._uniform(self._extended_shape(sample_shape), self.loc)
        eps = float(np.finfo(as_dtype(drawn.dtype)).tiny)
        return pg.maximum(drawn, eps)

    def log_prob(self, value: Any) -> Any:
        return -pg.log(2.0 * self.scale) - pg.abs(self._standard(value))

    def cdf(self, value: Any) -> Any:
        z = self._standard(value)
        return 0.5 - 0.5 * pg.sign(z) * pg.expm1(-pg.abs(z))

    def icdf(self, value: Any) -> Any:
        term = value - 0.5
        return self.loc - self.scale * pg.sign(term) * pg.log1p(-2.0 * pg.abs(term))

    def entropy(self) -> Any:
        return 1.0 + pg.log(2.0 * self.scale)


class Cauchy(_LocationScale):
    """Cauchy distribution, which has no mean and no variance.

    >>> torch.distributions.Cauchy(0.0, 1.0).cdf(torch.tensor(0.0))
    tensor(0.5000)
    """

    @property
    def mean(self) -> Any:
        return pg.full_like(self.loc, math.nan)

    @property
    def variance(self) -> Any:
        return pg.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.icdf(self._uniform(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Any) -> Any:
        z = self._standard(value)
        return -math.log(math.pi) - pg.log(self.scale) - pg.log1p(z * z)

    def cdf(self, value: Any) -> Any:
        return pg.arctan(self._standard(value)) / math.pi + 0.5

    def icdf(self, value: Any) -> Any:
        return pg.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Any:
        return math.log(4.0 * math.pi) + pg.log(self.scale)


class StudentT(_LocationScale):
    """Student's t distribution.

    >>> torch.distributions.StudentT(3.0).log_prob(torch.tensor(0.0))
    tensor(-1.0009)
    """

    arg_constraints: ClassVar[Constraints] = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, loc, scale = self._broadcast(df, loc, scale)
        super().__init__(loc, scale, validate_args)

    @property
    def mean(self) -> Any:
        return pg.where(self.df > 1.0, self.loc, math.nan)

    @property
    def variance(self) -> Any:
        squares = self.scale * self.scale
        large = squares * self.df / pg.where(self.df > 2.0, self.df - 2.0, 1.0)
        small = pg.where(self.df > 1.0, pg.full_like(self.df, math.inf), math.nan)
        return pg.where(self.df > 2.0, large, small)

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = random.t(self._key(), self.df, self._extended_shape(sample_shape))
        return self.loc + self.scale * drawn

    def log_prob(self, value: Any) -> Any:
        z, df = self._standard(value), self.df
        scale = pg.log(self.scale) + 0.5 * pg.log(df) + 0.5 * math.log(math.pi)
        scale = scale + sp.gammaln(0.5 * df) - sp.gammaln(0.5 * (df + 1.0))
        return -0.5 * (df + 1.0) * pg.log1p(z * z / df) - scale

    def entropy(self) -> Any:
        df, half = self.df, 0.5 * (self.df + 1.0)
        part = sp.digamma(half) - sp.digamma(0.5 * df)
        log_beta = sp.gammaln(0.5 * df) + 0.5 * math.log(math.pi) - sp.gammaln(half)
        return pg.log(self.scale) + half * part + 0.5 * pg.log(df) + log_beta


class Uniform(Distribution):
    """Uniform distribution on an interval.

    >>> torch.distributions.Uniform(0.0, 2.0).log_prob(torch.tensor(0.5))
    tensor(-0.6931)
    """

    arg_constraints: ClassVar[Constraints] = {
        "low": constraints.dependent,
        "high": constraints.dependent,
    }
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = self._broadcast(low, high)
        super().__init__(self.low.type.shape, (), validate_args)

    def _validate_parameters(self) -> None:
        self.arg_constraints = {
            "low": constraints.less_than(self.high),
            "high": constraints.real,
        }
        super()._validate_parameters()

    @property
    def support(self) -> Any:
        """Interval of the values."""
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Any:
        return 0.5 * (self.high + self.low)

    @property
    def mode(self) -> Any:
        return math.nan * self.high

    @property
    def stddev(self) -> Any:
        return (self.high - self.low) / math.sqrt(12.0)

    @property
    def variance(self) -> Any:
        return (self.high - self.low) ** 2 / 12.0

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = self._uniform(self._extended_shape(sample_shape), self.low)
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        is_inside = (value >= self.low) & (value < self.high)
        return pg.where(is_inside, -pg.log(self.high - self.low), -math.inf)

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return pg.clip((value - self.low) / (self.high - self.low), 0.0, 1.0)

    def icdf(self, value: Any) -> Any:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        return pg.log(self.high - self.low)


class Exponential(ExponentialFamily):
    """Exponential distribution of a rate.

    >>> torch.distributions.Exponential(2.0).mean
    tensor(0.5000)
    """

    arg_constraints: ClassVar[Constraints] = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = self._broadcast(rate)
        super().__init__(self.rate.type.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        return 1.0 / self.rate

    @property
    def mode(self) -> Any:
        return pg.zeros_like(self.rate)

    @property
    def stddev(self) -> Any:
        return 1.0 / self.rate

    @property
    def variance(self) -> Any:
        return self.rate**-2.0

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = self._uniform(self._extended_shape(sample_shape), self.rate)
        return -pg.log1p(-drawn) / self.rate

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return pg.log(self.rate) - self.rate * value

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return -pg.expm1(-self.rate * value)

    def icdf(self, value: Any) -> Any:
        return -pg.log1p(-value) / self.rate

    def entropy(self) -> Any:
        return 1.0 - pg.log(self.rate)


class Gamma(ExponentialFamily):
    """Gamma distribution of a shape and a rate; samples have implicit derivatives by the shape.

    >>> torch.distributions.Gamma(2.0, 3.0).mean
    tensor(0.6667)
    """

    arg_constraints: ClassVar[Constraints] = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = self._broadcast(concentration, rate)
        super().__init__(self.concentration.type.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return pg.maximum((self.concentration - 1.0) / self.rate, 0.0)

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate**2

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = random.gamma(self._key(), self.concentration, self._extended_shape(sample_shape))
        least = float(np.finfo(as_dtype(self.rate.dtype)).tiny)
        return pg.maximum(drawn / self.rate, least)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        a = self.concentration
        powers = sp.xlogy(a, self.rate) + sp.xlogy(a - 1.0, value)
        return powers - self.rate * value - sp.gammaln(a)

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return sp.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Any:
        a = self.concentration
        return a - pg.log(self.rate) + sp.gammaln(a) + (1.0 - a) * sp.digamma(a)


class Chi2(Gamma):
    """Chi-square distribution.

    >>> torch.distributions.Chi2(3.0).mean
    tensor(3.)
    """

    arg_constraints: ClassVar[Constraints] = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        (df,) = self._broadcast(df)
        super().__init__(0.5 * df, 0.5, validate_args)

    @property
    def df(self) -> Any:
        """Degrees of freedom."""
        return 2.0 * self.concentration

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return Chi2(pg.broadcast_to(self.df, tuple(batch_shape)), self._validate_args)


class FisherSnedecor(Distribution):
    """Fisher-Snedecor distribution, of quotients of chi-square numbers.

    >>> torch.distributions.FisherSnedecor(2.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints: ClassVar[Constraints] = {
        "df1": constraints.positive,
        "df2": constraints.positive,
    }
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = self._broadcast(df1, df2)
        super().__init__(self.df1.type.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        return pg.where(self.df2 > 2.0, self.df2 / (self.df2 - 2.0), math.nan)

    @property
    def mode(self) -> Any:
        found = (self.df1 - 2.0) / self.df1 * self.df2 / (self.df2 + 2.0)
        return pg.where(self.df1 > 2.0, found, math.nan)

    @property
    def variance(self) -> Any:
        a, b = self.df1, self.df2
        found = 2.0 * b**2 * (a + b - 2.0) / (a * (b - 2.0) ** 2 * (b - 4.0))
        return pg.where(b > 4.0, found, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = tuple(sample_shape)
        first = Gamma(0.5 * self.df1, self.df1).rsample(shape)
        second = Gamma(0.5 * self.df2, self.df2).rsample(shape)
        return first / second

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        a, b = 0.5 * self.df1, 0.5 * self.df2
        ratio = self.df1 / self.df2
        constant = sp.gammaln(a + b) - sp.gammaln(a) - sp.gammaln(b) + a * pg.log(ratio)
        return constant + (a - 1.0) * pg.log(value) - (a + b) * pg.log1p(ratio * value)


class Beta(ExponentialFamily):
    """Beta distribution; samples have implicit derivatives.

    >>> torch.distributions.Beta(2.0, 3.0).mean
    tensor(0.4000)
    """

    arg_constraints: ClassVar[Constraints] = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = self._broadcast(concentration1, concentration0)
        super().__init__(self.concentration1.type.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Any:
        a, b = (pg.maximum(c - 1.0, 0.0) for c in (self.concentration1, self.concentration0))
        is_convex = (self.concentration1 < 1.0) & (self.concentration0 < 1.0)
        return pg.where(is_convex, 1.0, a / (a + b))

    @property
    def variance(self) -> Any:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total**2 * (total + 1.0))

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return random.beta(self._key(), self.concentration1, self.concentration0, shape)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        powers = sp.xlogy(a - 1.0, value) + sp.xlog1py(b - 1.0, -value)
        return powers + sp.gammaln(a + b) - sp.gammaln(a) - sp.gammaln(b)

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        log_beta = sp.gammaln(a) + sp.gammaln(b) - sp.gammaln(a + b)
        found = log_beta - (a - 1.0) * sp.digamma(a) - (b - 1.0) * sp.digamma(b)
        return found + (a + b - 2.0) * sp.digamma(a + b)

    def __repr__(self) -> str:
        # Torch stores the parameters in a Dirichlet distribution.
        return "Beta()"
