"""Distributions made of others: of independent batches, mixtures and transforms, as in torch."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from primgraph import operators as pg
from primgraph.compat.torch.distributions import constraints
from primgraph.compat.torch.distributions.categorical import Categorical
from primgraph.compat.torch.distributions.distribution import Distribution, sum_last
from primgraph.compat.torch.distributions.transforms import ComposeTransform, Transform
from primgraph.eager.derivatives.recording import no_grad
from primgraph.errors import ArgumentError, MissingMethodError


class Independent(Distribution):
    """Distribution whose last batch axes count as axes of events.

    >>> D = torch.distributions
    >>> D.Independent(D.Normal(torch.zeros(2, 3), 1.0), 1)
    Independent(Normal(loc: torch.Size([2, 3]), scale: torch.Size([2, 3])), 1)
    """

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        self.base_dist, count = base_distribution, reinterpreted_batch_ndims
        self.reinterpreted_batch_ndims = count
        batch = base_distribution._batch_shape
        if count > len(batch):
            raise ArgumentError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{count} vs {len(batch)}"
            )
        cut = len(batch) - count
        event = (*batch[cut:], *base_distribution._event_shape)
        super().__init__(batch[:cut], event, validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_enumerate_support and not self.reinterpreted_batch_ndims

    @property
    def support(self) -> Any:
        """Region of the values."""
        found = self.base_dist.support
        count = self.reinterpreted_batch_ndims
        return constraints.independent(found, count) if count else found

    @property
    def mean(self) -> Any:
        return self.base_dist.mean

    @property
    def mode(self) -> Any:
        return self.base_dist.mode

    @property
    def variance(self) -> Any:
        return self.base_dist.variance

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        count = self.reinterpreted_batch_ndims
        inner = self._event_shape[:count]
        base = self.base_dist.expand((*batch_shape, *inner))
        return type(self)(base, count, self._validate_args)

    def sample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        return sum_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Any:
        return sum_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Any:
        if self.reinterpreted_batch_ndims:
            raise MissingMethodError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamily(Distribution):
    """Mixture of the distributions along the last batch axis of a component.

    >>> D = torch.distributions
    >>> weights = D.Categorical(torch.tensor([0.25, 0.75]))
    >>> D.MixtureSameFamily(weights, D.Normal(torch.tensor([0.0, 4.0]), 1.0)).mean
    tensor(3.)
    """

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        self._mixture, self._component = mixture_distribution, component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ArgumentError(
                " The Mixture distribution needs to be an instance of distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ArgumentError(
                "The Component distribution needs to be an instance of Distribution"
            )
        batch = component_distribution._batch_shape
        count = mixture_distribution._num_events
        if not batch or batch[-1] != count:
            raise ArgumentError(
                f"`mixture_distribution component` ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({batch[-1:]})"
            )
        super().__init__(batch[:-1], component_distribution._event_shape, validate_args)

    @property
    def mixture_distribution(self) -> Categorical:
        """Distribution of the components."""
        return self._mixture

    @property
    def component_distribution(self) -> Distribution:
        """Distributions of the values."""
        return self._component

    @property
    def support(self) -> Any:
        """Region of the values."""
        return constraints.MixtureSameFamilyConstraint(self._component.support)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        count = self._mixture._num_events
        component = self._component.expand((*batch_shape, count))
        return type(self)(self._mixture.expand(batch_shape), component, self._validate_args)

    def _spread(self, x: Any) -> Any:
        """Return numbers of components with axes for events."""
        event = len(self._event_shape)
        return pg.reshape(x, (*x.type.shape, *[1] * event))

    def _average(self, x: Any) -> Any:
        weights = self._spread(self._mixture.probs)
        return pg.sum(weights * x, -1 - len(self._event_shape))

    @property
    def mean(self) -> Any:
        return self._average(self._component.mean)

    @property
    def variance(self) -> Any:
        means, axis = self._component.mean, -1 - len(self._event_shape)
        center = pg.expand_dims(self.mean, axis)
        return self._average(self._component.variance) + self._average((means - center) ** 2)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            component = self._component.sample(sample_shape)
            index = self._spread(pg.expand_dims(self._mixture.sample(sample_shape), -1))
            axis = component.ndim - 1 - len(self._event_shape)
            shape = (*component.type.shape[:axis], 1, *component.type.shape[axis + 1 :])
            places = pg.broadcast_to(index, shape)
            return pg.squeeze(pg.take_along_axis(component, places, axis), axis)

    def _pad(self, x: Any) -> Any:
        return pg.expand_dims(x, x.ndim - len(self._event_shape))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        parts = self._component.log_prob(self._pad(value))
        return pg.logsumexp(parts + self._mixture.logits, -1)

    def cdf(self, value: Any) -> Any:
        parts = self._component.cdf(self._pad(value))
        return pg.sum(parts * self._mixture.probs, -1)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture!r},\n  {self._component!r})"


class TransformedDistribution(Distribution):
    """Distribution of `transforms` applied to the values of a base distribution.

    >>> D = torch.distributions
    >>> d = D.TransformedDistribution(D.Normal(0.0, 1.0), [D.transforms.ExpTransform()])
    >>> d.log_prob(torch.tensor(1.0))
    tensor(-0.9189)
    """

    base_dist: Any

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ArgumentError(
                f"transforms must be a Transform or a list of Transforms, not {transforms!r:.60}"
            )
        batch, event = base_distribution._batch_shape, base_distribution._event_shape
        chain = ComposeTransform(self.transforms)
        domain, codomain = chain.domain.event_dim, chain.codomain.event_dim
        if len((*batch, *event)) < domain:
            raise ArgumentError(
                f"base_distribution needs to have shape with size at least {domain}, but got "
                f"{(*batch, *event)}."
            )
        forward = chain.forward_shape((*batch, *event))
        expanded = chain.inverse_shape(forward)
        if tuple(expanded) != (*batch, *event):
            inner = expanded[: len(expanded) - len(event)]
            base_distribution = base_distribution.expand(inner)
        missing = domain - len(event)
        if missing > 0:
            base_distribution = Independent(base_distribution, missing)
        self.base_dist = base_distribution
        count = codomain + max(len(event) - domain, 0)
        cut = len(forward) - count
        super().__init__(forward[:cut], forward[cut:], validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return bool(self.base_dist.has_rsample)

    @property
    def support(self) -> Any:
        """Region of the values."""
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        extra = len(self._event_shape) - found.event_dim
        return constraints.independent(found, extra) if extra > 0 else found

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        found = copy.copy(self)
        found._batch_shape = tuple(map(int, batch_shape))
        chain = ComposeTransform(self.transforms)
        base = chain.inverse_shape((*found._batch_shape, *self._event_shape))
        count = len(self.base_dist._event_shape)
        found.base_dist = self.base_dist.expand(base[: len(base) - count])
        return found

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return self._transform(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._transform(self.base_dist.rsample(sample_shape))

    def _transform(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        event, found, y = len(self._event_shape), None, value
        for transform in reversed(self.transforms):
            x = transform._inv_call(y)
            event += transform.domain.event_dim - transform.codomain.event_dim
            term = transform.log_abs_det_jacobian(x, y)
            term = sum_last(term, event - transform.domain.event_dim)
            found = -term if found is None else found - term
            y = x
        base = self.base_dist.log_prob(y)
        base = sum_last(base, event - len(self.base_dist._event_shape))
        return base if found is None else base + found

    def _increasing(self, value: Any) -> Any:
        """Return a probability, or its complement for a decreasing transform."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int):
            return value if sign == 1 else 1.0 - value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        for transform in reversed(self.transforms):
            value = transform._inv_call(value)
        return self._increasing(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Any:
        return self._transform(self.base_dist.icdf(self._increasing(value)))
