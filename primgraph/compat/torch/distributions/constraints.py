"""Constraints of parameters and of supports of distributions, as in torch.

`check` works on tensors and on arrays of NumPy alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primgraph.errors import MissingMethodError


class Constraint:
    """Region in which values of a parameter or of a distribution lie."""

    is_discrete = False
    event_dim = 0

    def check(self, value: Any) -> Any:
        """Return which elements, or events, are in the region."""
        raise MissingMethodError(f"{type(self).__name__} does not define check")

    def __repr__(self) -> str:
        return f"{type(self).__name__.removeprefix('_')}()"


class _Dependent(Constraint):
    """Placeholder of a support that depends on parameters."""

    def __init__(self, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def check(self, x: Any) -> Any:
        """Raise an error: the region is not known here."""
        raise MissingMethodError("Cannot determine validity of dependent constraint")


# Constraints of parameters by their names.
Constraints = dict[str, Any]


class dependent_property(property):
    """Property for supports that depend on parameters."""

    def __init__(
        self,
        fn: Callable[[Any], Any] | None = None,
        *,
        is_discrete: bool = False,
        event_dim: int = 0,
    ) -> None:
        super().__init__(fn)
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[[Any], Any]) -> dependent_property:
        """Return the property of a function, where options are given first."""
        return dependent_property(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


class _IndependentConstraint(Constraint):
    """Constraint of each element of events with further axes."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        found = self.base_constraint.check(value)
        for _ in range(self.reinterpreted_batch_ndims):
            found = found.all(-1)
        return found

    def __repr__(self) -> str:
        name = type(self).__name__.removeprefix("_")
        return f"{name}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class _Bounded(Constraint):
    """Constraint with bounds, which its text shows."""

    _names: tuple[str, ...] = ()

    def __init__(self, *bounds: Any) -> None:
        for name, bound in zip(self._names, bounds, strict=True):
            setattr(self, name, bound)

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={_short(getattr(self, name))}" for name in self._names)
        return f"{type(self).__name__.removeprefix('_')}({bounds})"


def _short(bound: Any) -> Any:
    return bound.item() if hasattr(bound, "item") and np.ndim(bound) == 0 else bound


class _GreaterThan(_Bounded):
    _names = ("lower_bound",)
    lower_bound: Any

    def check(self, value: Any) -> Any:
        return value > self.lower_bound


class _GreaterThanEq(_GreaterThan):
    def check(self, value: Any) -> Any:
        return value >= self.lower_bound


class _LessThan(_Bounded):
    _names = ("upper_bound",)
    upper_bound: Any

    def check(self, value: Any) -> Any:
        return value < self.upper_bound


class _Interval(_Bounded):
    _names = ("lower_bound", "upper_bound")
    lower_bound: Any
    upper_bound: Any

    def check(self, value: Any) -> Any:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_Interval):
    def check(self, value: Any) -> Any:
        return (value >= self.lower_bound) & (value < self.upper_bound)


class _IntegerInterval(_Interval):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return super().check(value) & (value % 1 == 0)


class _IntegerGreaterThan(_GreaterThan):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


class _Real(Constraint):
    def check(self, value: Any) -> Any:
        return value == value


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & (abs(value.sum(-1) - 1) < 1e-6)


class _Multinomial(Constraint):
    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Any) -> Any:
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


class _Matrix(Constraint):
    """Constraint of matrices, which is checked on arrays."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        return self._check(np.asarray(value))

    def _check(self, value: np.ndarray[Any, Any]) -> Any:
        raise MissingMethodError(f"{type(self).__name__} does not define a check")


class _Square(_Matrix):
    def _check(self, value: np.ndarray[Any, Any]) -> Any:
        return np.full(value.shape[:-2], value.shape[-1] == value.shape[-2])


class _Symmetric(_Square):
    def _check(self, value: np.ndarray[Any, Any]) -> Any:
        is_square = super()._check(value)
        if not is_square.all():
            return is_square
        return np.isclose(value, value.swapaxes(-1, -2), atol=1e-6).all((-1, -2))


class _PositiveSemidefinite(_Symmetric):
    def _check(self, value: np.ndarray[Any, Any]) -> Any:
        is_symmetric = super()._check(value)
        if not is_symmetric.all():
            return is_symmetric
        return (np.linalg.eigvalsh(value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    def _check(self, value: np.ndarray[Any, Any]) -> Any:
        is_symmetric = super()._check(value)
        if not is_symmetric.all():
            return is_symmetric
        return (np.linalg.eigvalsh(value) > 0).all(-1)


class _LowerTriangular(_Matrix):
    def _check(self, value: np.ndarray[Any, Any]) -> Any:
        return (np.tril(value) == value).all((-1, -2))


class _LowerCholesky(_LowerTriangular):
    def _check(self, value: np.ndarray[Any, Any]) -> Any:
        return super()._check(value) & (np.diagonal(value, 0, -2, -1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    def _check(self, value: np.ndarray[Any, Any]) -> Any:
        unit = np.abs((value**2).sum(-1) - 1) <= np.finfo(value.dtype).eps * value.shape[-1] * 10
        return super()._check(value) & unit.all(-1)


class _Sequence(Constraint):
    """Constraints of slices along an axis."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.is_discrete = any(c.is_discrete for c in cseq)
        self.event_dim = max(c.event_dim for c in cseq)


class _Stack(_Sequence):
    def check(self, value: Any) -> Any:
        rows = np.moveaxis(np.asarray(value), self.dim, 0)
        found = [c.check(row) for c, row in zip(self.cseq, rows, strict=True)]
        return np.stack(found, self.dim)


class _Cat(_Sequence):
    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    def check(self, value: Any) -> Any:
        ends = np.cumsum(self.lengths)[:-1]
        parts = np.split(np.asarray(value), ends, self.dim)
        found = [c.check(part) for c, part in zip(self.cseq, parts, strict=True)]
        return np.concatenate(found, self.dim)


class MixtureSameFamilyConstraint(Constraint):
    """Constraint of a component of a mixture, of values without the axis of components."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint
        self.is_discrete, self.event_dim = base_constraint.is_discrete, base_constraint.event_dim

    def check(self, value: Any) -> Any:
        """Return which values are in the region of every component."""
        array = np.asarray(value)
        spread = np.expand_dims(array, array.ndim - self.event_dim)
        return self.base_constraint.check(spread).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


dependent = _Dependent()
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack


def is_dependent(constraint: Any) -> bool:
    """Return whether a region depends on parameters."""
    return isinstance(constraint, _Dependent | dependent_property)
