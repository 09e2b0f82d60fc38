"""Transforms of real numbers to the region of a constraint, as in torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from primgraph.compat.torch.distributions import constraints as c
from primgraph.compat.torch.distributions import transforms as t
from primgraph.errors import ArgumentError, MissingMethodError

Factory = Callable[[Any], t.Transform]


@final
class ConstraintRegistry:
    """Table of transforms by classes of constraints.

    >>> D = torch.distributions
    >>> D.transform_to(D.constraints.positive)(torch.tensor(0.0))
    tensor(1.)
    """

    def __init__(self) -> None:
        self._factories: dict[type, Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Add a factory for a class of constraints; without one, return a decorator."""
        kind = constraint if isinstance(constraint, type) else type(constraint)
        if not issubclass(kind, c.Constraint):
            raise ArgumentError(f"register takes a constraint, not {constraint!r:.60}")
        if factory is None:
            return lambda found: self.register(kind, found)
        self._factories[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> t.Transform:
        factory = self._factories.get(type(constraint))
        if factory is None:
            raise MissingMethodError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _interval(constraint: Any) -> t.Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if (low, high) == (0.0, 1.0):
        return t.SigmoidTransform()
    return t.ComposeTransform([t.SigmoidTransform(), t.AffineTransform(low, high - low)])


def _above(constraint: Any) -> t.Transform:
    moved = t.AffineTransform(constraint.lower_bound, 1)
    return t.ComposeTransform([t.ExpTransform(), moved])


def _below(constraint: Any) -> t.Transform:
    moved = t.AffineTransform(constraint.upper_bound, -1)
    return t.ComposeTransform([t.ExpTransform(), moved])


def _independent(registry: ConstraintRegistry) -> Factory:
    def make(constraint: Any) -> t.Transform:
        base = registry(constraint.base_constraint)
        return t.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    return make


for _registry in (biject_to, transform_to):
    _registry.register(c.real, lambda _: t.identity_transform)
    _registry.register(c.independent, _independent(_registry))
    _registry.register(
        c.greater_than, lambda x: t.ExpTransform() if x.lower_bound == 0.0 else _above(x)
    )
    _registry.register(
        c.greater_than_eq, lambda x: t.ExpTransform() if x.lower_bound == 0.0 else _above(x)
    )
    _registry.register(c.less_than, _below)
    _registry.register(c.interval, _interval)
    _registry.register(c.half_open_interval, _interval)
    _registry.register(c.lower_cholesky, lambda _: t.LowerCholeskyTransform())
    _registry.register(c.positive_definite, lambda _: t.PositiveDefiniteTransform())
biject_to.register(c.simplex, lambda _: t.StickBreakingTransform())
transform_to.register(c.simplex, lambda _: t.SoftmaxTransform())
