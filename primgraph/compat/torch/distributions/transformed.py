"""Distributions that are transforms of others, as in torch."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from primgraph import operators as pg
from primgraph import special as sp
from primgraph.compat.torch.distributions import constraints
from primgraph.compat.torch.distributions.composite import TransformedDistribution
from primgraph.compat.torch.distributions.constraints import Constraints
from primgraph.compat.torch.distributions.continuous import (
    Cauchy,
    Exponential,
    Gamma,
    Normal,
    Uniform,
)
from primgraph.compat.torch.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    ExpTransform,
    PowerTransform,
    StickBreakingTransform,
)
from primgraph.ir.types import as_dtype

_EULER = 0.57721566490153286060


class LogNormal(TransformedDistribution):
    """Exponentials of normal numbers.

    >>> torch.distributions.LogNormal(0.0, 1.0).log_prob(torch.tensor(1.0))
    tensor(-0.9189)
    """

    arg_constraints: ClassVar[Constraints] = {
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.positive

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        loc, scale = self._broadcast(loc, scale)
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Any:
        """Mean of the logarithms."""
        return self.base_dist.loc

    @property
    def scale(self) -> Any:
        """Standard deviation of the logarithms."""
        return self.base_dist.scale

    @property
    def mean(self) -> Any:
        return pg.exp(self.loc + 0.5 * self.scale**2)

    @property
    def mode(self) -> Any:
        return pg.exp(self.loc - self.scale**2)

    @property
    def variance(self) -> Any:
        squares = self.scale**2
        return pg.expm1(squares) * pg.exp(2.0 * self.loc + squares)

    def entropy(self) -> Any:
        return self.base_dist.entropy() + self.loc


class LogisticNormal(TransformedDistribution):
    """Vectors of the simplex whose logarithms of ratios are normal.

    >>> torch.distributions.LogisticNormal(torch.zeros(2), torch.ones(2)).sample().shape
    torch.Size([3])
    """

    arg_constraints: ClassVar[Constraints] = {
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.simplex

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        if not base._batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args)

    @property
    def loc(self) -> Any:
        """Mean of the normal numbers."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Any:
        """Standard deviation of the normal numbers."""
        return self.base_dist.base_dist.scale


class Gumbel(TransformedDistribution):
    """Gumbel distribution of maxima.

    >>> torch.distributions.Gumbel(0.0, 1.0).log_prob(torch.tensor(0.0))
    tensor(-1.)
    """

    arg_constraints: ClassVar[Constraints] = {
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = self._broadcast(loc, scale)
        info = np.finfo(as_dtype(self.loc.dtype))
        low = pg.full_like(self.loc, float(info.tiny))
        base = Uniform(low, pg.full_like(self.loc, 1.0 - float(info.eps)), validate_args)
        inner = ExpTransform().inv
        turn = AffineTransform(0.0, -pg.ones_like(self.scale))
        outer = AffineTransform(self.loc, -self.scale)
        super().__init__(base, [inner, turn, inner, outer], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        loc, scale = (pg.broadcast_to(x, tuple(batch_shape)) for x in (self.loc, self.scale))
        return type(self)(loc, scale, self._validate_args)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return y - pg.exp(y) - pg.log(self.scale)

    @property
    def mean(self) -> Any:
        return self.loc + self.scale * _EULER

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def stddev(self) -> Any:
        return math.pi / math.sqrt(6.0) * self.scale

    @property
    def variance(self) -> Any:
        return self.stddev**2

    def entropy(self) -> Any:
        return pg.log(self.scale) + (1.0 + _EULER)


class _Half(TransformedDistribution):
    """Absolute values of a distribution that is symmetric about 0."""

    arg_constraints: ClassVar[Constraints] = {"scale": constraints.positive}
    support = constraints.nonnegative
    _base: type[Any]

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = self._base(0.0, scale, validate_args)
        super().__init__(base, AbsTransform(), validate_args)

    @property
    def scale(self) -> Any:
        """Scale of the symmetric distribution."""
        return self.base_dist.scale

    @property
    def mode(self) -> Any:
        return pg.zeros_like(self.scale)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        found = self.base_dist.log_prob(value) + math.log(2.0)
        return pg.where(value >= 0.0, found, -math.inf)

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return 2.0 * self.base_dist.cdf(value) - 1.0

    def icdf(self, value: Any) -> Any:
        return self.base_dist.icdf((value + 1.0) / 2.0)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - math.log(2.0)


class HalfNormal(_Half):
    """Absolute values of normal numbers of mean 0.

    >>> torch.distributions.HalfNormal(1.0).log_prob(torch.tensor(0.0))
    tensor(-0.2258)
    """

    _base = Normal

    @property
    def mean(self) -> Any:
        return self.scale * math.sqrt(2.0 / math.pi)

    @property
    def variance(self) -> Any:
        return self.scale**2 * (1.0 - 2.0 / math.pi)


class HalfCauchy(_Half):
    """Absolute values of Cauchy numbers about 0.

    >>> torch.distributions.HalfCauchy(1.0).log_prob(torch.tensor(0.0))
    tensor(-0.4516)
    """

    _base = Cauchy

    @property
    def mean(self) -> Any:
        return pg.full_like(self.scale, math.inf)

    @property
    def variance(self) -> Any:
        return self.base_dist.variance


class Pareto(TransformedDistribution):
    """Pareto distribution of type 1.

    >>> torch.distributions.Pareto(1.0, 2.0).mean
    tensor(2.)
    """

    arg_constraints: ClassVar[Constraints] = {
        "alpha": constraints.positive,
        "scale": constraints.positive,
    }

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = self._broadcast(scale, alpha)
        base = Exponential(self.alpha, validate_args)
        steps = [ExpTransform(), AffineTransform(0.0, self.scale)]
        super().__init__(base, steps, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        scale, alpha = (pg.broadcast_to(x, tuple(batch_shape)) for x in (self.scale, self.alpha))
        return type(self)(scale, alpha, self._validate_args)

    @property
    def support(self) -> Any:
        """Region of the values."""
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Any:
        a = self.alpha
        found = a * self.scale / pg.where(a > 1.0, a - 1.0, 1.0)
        return pg.where(a > 1.0, found, math.inf)

    @property
    def mode(self) -> Any:
        return self.scale

    @property
    def variance(self) -> Any:
        a = self.alpha
        b = pg.where(a > 2.0, a, 3.0)
        return pg.where(a > 2.0, self.scale**2 * b / ((b - 1.0) ** 2 * (b - 2.0)), math.inf)

    def entropy(self) -> Any:
        return pg.log(self.scale / self.alpha) + 1.0 + 1.0 / self.alpha


class Weibull(TransformedDistribution):
    """Weibull distribution.

    >>> torch.distributions.Weibull(1.0, 1.0).mean
    tensor(1.)
    """

    arg_constraints: ClassVar[Constraints] = {
        "scale": constraints.positive,
        "concentration": constraints.positive,
    }
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = self._broadcast(scale, concentration)
        base = Exponential(pg.ones_like(self.scale), validate_args)
        power = PowerTransform(1.0 / self.concentration)
        super().__init__(base, [power, AffineTransform(0.0, self.scale)], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        both = (self.scale, self.concentration)
        scale, shape = (pg.broadcast_to(x, tuple(batch_shape)) for x in both)
        return type(self)(scale, shape, self._validate_args)

    def _moment(self, order: float) -> Any:
        return pg.exp(sp.gammaln(1.0 + order / self.concentration))

    @property
    def mean(self) -> Any:
        return self.scale * self._moment(1.0)

    @property
    def mode(self) -> Any:
        k = self.concentration
        return self.scale * ((k - 1.0) / k) ** (1.0 / k)

    @property
    def variance(self) -> Any:
        return self.scale**2 * (self._moment(2.0) - self._moment(1.0) ** 2)

    def entropy(self) -> Any:
        k = self.concentration
        return _EULER * (1.0 - 1.0 / k) + pg.log(self.scale / k) + 1.0


class Kumaraswamy(TransformedDistribution):
    """Kumaraswamy distribution on the unit interval.

    >>> torch.distributions.Kumaraswamy(1.0, 1.0).mean
    tensor(0.5000)
    """

    arg_constraints: ClassVar[Constraints] = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        both = self._broadcast(concentration1, concentration0)
        self.concentration1, self.concentration0 = both
        ones = pg.ones_like(self.concentration0)
        steps = [
            PowerTransform(1.0 / self.concentration0),
            AffineTransform(1.0, -ones),
            PowerTransform(1.0 / self.concentration1),
        ]
        base = Uniform(pg.zeros_like(ones), ones, validate_args)
        super().__init__(base, steps, validate_args)

    def _moment(self, order: float) -> Any:
        a, b = 1.0 + order / self.concentration1, self.concentration0
        return b * pg.exp(sp.gammaln(a) + sp.gammaln(b) - sp.gammaln(a + b))

    @property
    def mean(self) -> Any:
        return self._moment(1.0)

    @property
    def mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        found = ((a - 1.0) / (a * b - 1.0)) ** (1.0 / a)
        return pg.where((a < 1.0) | (b < 1.0), math.nan, found)

    @property
    def variance(self) -> Any:
        return self._moment(2.0) - self._moment(1.0) ** 2

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        harmonic = sp.digamma(b + 1.0) + _EULER
        return (1.0 - 1.0 / b) + (1.0 - 1.0 / a) * harmonic - pg.log(a) - pg.log(b)


class InverseGamma(TransformedDistribution):
    """Inverses of gamma numbers.

    >>> torch.distributions.InverseGamma(2.0, 3.0).mean
    tensor(3.)
    """

    arg_constraints: ClassVar[Constraints] = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.positive

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args)
        power = PowerTransform(-pg.ones_like(base.rate))
        super().__init__(base, power, validate_args)

    @property
    def concentration(self) -> Any:
        """Shape of the gamma numbers."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Any:
        """Rate of the gamma numbers."""
        return self.base_dist.rate

    @property
    def mean(self) -> Any:
        a = self.concentration
        return pg.where(a > 1.0, self.rate / (a - 1.0), math.inf)

    @property
    def mode(self) -> Any:
        return self.rate / (self.concentration + 1.0)

    @property
    def variance(self) -> Any:
        a = self.concentration
        return pg.where(a > 2.0, self.rate**2 / ((a - 1.0) ** 2 * (a - 2.0)), math.inf)

    def entropy(self) -> Any:
        a = self.concentration
        return a + pg.log(self.rate) + sp.gammaln(a) - (1.0 + a) * sp.digamma(a)
