"""Transforms of the real numbers to regions, by constraint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primgraph.compat.torch.distributions import constraints, transforms
from primgraph.compat.torch.distributions.constraints import Constraint
from primgraph.errors import ArgumentError, MissingMethodError

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Any], Any]


class ConstraintRegistry:
    """Table of functions from constraints to transforms, by the class of the constraint.

    >>> D = torch.distributions
    >>> D.transform_to(D.constraints.positive)(torch.zeros(1))
    tensor([1.])
    >>> D.biject_to(D.constraints.unit_interval)(torch.zeros(1))
    tensor([0.5000])
    """

    def __init__(self) -> None:
        self._registry: dict[type[Constraint], Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Add a function for a constraint or its class; without one, return a decorator."""
        if factory is None:
            return lambda function: self.register(constraint, function)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, Constraint)):
            raise ArgumentError(
                "Expected constraint to be either a Constraint subclass or instance, but got "
                f"{constraint!r:.60}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Any:
        """Return a transform from unconstrained numbers to the region."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise MissingMethodError(
                f"Cannot transform {type(constraint).__name__} constraints",
                hint="register(constraint, function) adds a transform",
            )
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _to_above(constraint: Any) -> Any:
    parts = [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    return transforms.ComposeTransform(parts)


def _to_below(constraint: Any) -> Any:
    parts = [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    return transforms.ComposeTransform(parts)


def _to_interval(constraint: Any) -> Any:
    lower, upper = constraint.lower_bound, constraint.upper_bound
    if isinstance(lower, int | float) and (lower, upper) == (0, 1):
        return transforms.SigmoidTransform()
    parts = [transforms.SigmoidTransform(), transforms.AffineTransform(lower, upper - lower)]
    return transforms.ComposeTransform(parts)


def _by_class(example: Any) -> type[Constraint]:
    return example if isinstance(example, type) else type(example)


def _register_composites(registry: ConstraintRegistry) -> None:
    """Add transforms of constraints that are made of others."""

    def to_parts(constraint: Any) -> list[Any]:
        return [registry(part) for part in constraint.cseq]

    def to_independent(c: Any) -> Any:
        inner = registry(c.base_constraint)
        return transforms.IndependentTransform(inner, c.reinterpreted_batch_ndims)

    def to_cat(c: Any) -> Any:
        return transforms.CatTransform(to_parts(c), c.dim, c.lengths)

    def to_stack(c: Any) -> Any:
        return transforms.StackTransform(to_parts(c), c.dim)

    registry.register(constraints.independent, to_independent)
    registry.register(constraints.cat, to_cat)
    registry.register(constraints.stack, to_stack)


def _fill() -> None:
    both: list[tuple[Any, Factory]] = [
        (constraints.real, lambda c: transforms.identity_transform),
        (constraints.positive, _to_above),
        (constraints.nonnegative, _to_above),
        (constraints.less_than, _to_below),
        (constraints.interval, _to_interval),
        (constraints.half_open_interval, _to_interval),
        (constraints.corr_cholesky, lambda c: transforms.CorrCholeskyTransform()),
        (constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform()),
        (constraints.positive_definite, lambda c: transforms.PositiveDefiniteTransform()),
    ]
    for registry in (biject_to, transform_to):
        for example, factory in both:
            registry.register(_by_class(example), factory)
        _register_composites(registry)
    biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
    transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())


_fill()
