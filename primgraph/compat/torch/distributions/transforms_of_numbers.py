"""Transforms of random variables, with logarithms of their Jacobian determinants, as in torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from primgraph import operators as pg
from primgraph.compat.torch.distributions import constraints
from primgraph.compat.torch.distributions.distribution import sum_last
from primgraph.errors import ArgumentError, MissingMethodError
from primgraph.ir.types import as_dtype
from primgraph.operators.handle import Handle


class Transform:
    """Transform `x -> y`, and its inverse `inv`.

    A subclass defines `_call`, `_inverse` and `log_abs_det_jacobian`.

    >>> torch.distributions.ExpTransform().inv(torch.tensor(1.0))
    tensor(0.)
    """

    bijective = False
    domain: Any = constraints.real
    codomain: Any = constraints.real
    _sign: ClassVar[int | None] = None

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ArgumentError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._last: tuple[Any, Any] = (None, None)
        self._inv: Transform | None = None

    @property
    def event_dim(self) -> int:
        """Number of axes of an event."""
        return max(self.domain.event_dim, self.codomain.event_dim)

    @property
    def inv(self) -> Transform:
        """The inverse transform."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self) -> Any:
        """1 for an increasing transform, and -1 for a decreasing one."""
        if self._sign is None:
            raise MissingMethodError(f"{type(self).__name__} has no sign")
        return self._sign

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return itself: values are cached by the caller."""
        return self

    def __call__(self, x: Any) -> Any:
        if self._cache_size == 0:
            return self._call(x)
        if self._last[0] is not x:
            self._last = x, self._call(x)
        return self._last[1]

    def _inv_call(self, y: Any) -> Any:
        if self._cache_size == 0:
            return self._inverse(y)
        if self._last[1] is not y:
            self._last = self._inverse(y), y
        return self._last[0]

    def _call(self, x: Any) -> Any:
        raise MissingMethodError(f"{type(self).__name__} does not define _call")

    def _inverse(self, y: Any) -> Any:
        raise MissingMethodError(f"{type(self).__name__} does not define _inverse")

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return the logarithm of the absolute value of the Jacobian determinant."""
        raise MissingMethodError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of the results."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """Return the shape of the arguments."""
        return shape

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and self._is_equal(other))

    __hash__ = object.__hash__

    def _is_equal(self, other: Any) -> bool:
        """Return whether a transform of the same class is equal."""
        return type(self).__init__ is Transform.__init__

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """The inverse of a transform."""

    def __init__(self, transform: Transform) -> None:
        super().__init__()
        self._inv: Transform = transform

    @property
    def domain(self) -> Any:  # type: ignore[override]
        return self._inv.codomain

    @property
    def codomain(self) -> Any:  # type: ignore[override]
        return self._inv.domain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self._inv.bijective

    @property
    def sign(self) -> Any:
        return self._inv.sign

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = object.__hash__

    def __call__(self, x: Any) -> Any:
        return self._inv._inv_call(x)

    def _inv_call(self, y: Any) -> Any:
        return self._inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"


class ComposeTransform(Transform):
    """Transforms one after another, the first one first.

    >>> T = torch.distributions.transforms
    >>> T.ComposeTransform([T.ExpTransform(), T.AffineTransform(1.0, 2.0)])(torch.tensor(0.0))
    tensor(3.)
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = list(parts)

    @property
    def domain(self) -> Any:  # type: ignore[override]
        if not self.parts:
            return constraints.real
        found = self.parts[0].domain
        event = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event += part.domain.event_dim - part.codomain.event_dim
            event = max(event, part.domain.event_dim)
        extra = event - found.event_dim
        return constraints.independent(found, extra) if extra > 0 else found

    @property
    def codomain(self) -> Any:  # type: ignore[override]
        if not self.parts:
            return constraints.real
        found = self.parts[-1].codomain
        event = self.parts[0].domain.event_dim
        for part in self.parts:
            event += part.codomain.event_dim - part.domain.event_dim
            event = max(event, part.codomain.event_dim)
        extra = event - found.event_dim
        return constraints.independent(found, extra) if extra > 0 else found

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(p.bijective for p in self.parts)

    @property
    def sign(self) -> Any:
        sign: Any = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self) -> Transform:
        if self._inv is None:
            self._inv = ComposeTransform([p.inv for p in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def _inv_call(self, y: Any) -> Any:
        for part in reversed(self.parts):
            y = part._inv_call(y)
        return y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if not self.parts:
            return pg.zeros_like(x)
        event, found = self.domain.event_dim, []
        for part in self.parts:
            after = part(x)
            log_det = part.log_abs_det_jacobian(x, after)
            found.append(sum_last(log_det, event - part.domain.event_dim))
            event += part.codomain.event_dim - part.domain.event_dim
            x = after
        total = found[0]
        for term in found[1:]:
            total = total + term
        return total

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def _is_equal(self, other: Any) -> bool:
        return bool(self.parts == other.parts)

    def __repr__(self) -> str:
        parts = ",\n    ".join(map(repr, self.parts))
        return f"{type(self).__name__}(\n    {parts}\n)"


identity_transform = ComposeTransform([])


class ExpTransform(Transform):
    """Exponential.

    >>> torch.distributions.transforms.ExpTransform()(torch.tensor(0.0))
    tensor(1.)
    """

    codomain = constraints.positive
    bijective = True
    _sign = 1

    def _call(self, x: Any) -> Any:
        return pg.exp(x)

    def _inverse(self, y: Any) -> Any:
        return pg.log(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class PowerTransform(Transform):
    """Power of positive numbers.

    >>> torch.distributions.transforms.PowerTransform(torch.tensor(2.0))(torch.tensor(3.0))
    tensor(9.)
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent

    @property
    def sign(self) -> Any:
        return pg.sign(self.exponent)

    def _call(self, x: Any) -> Any:
        return x**self.exponent

    def _inverse(self, y: Any) -> Any:
        return y ** (1.0 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return pg.log(pg.abs(self.exponent * y / x))

    def _is_equal(self, other: Any) -> bool:
        return bool(np.all(np.asarray(self.exponent) == np.asarray(other.exponent)))


class SigmoidTransform(Transform):
    """Logistic function.

    >>> torch.distributions.transforms.SigmoidTransform().inv(torch.tensor(0.5))
    tensor(0.)
    """

    codomain = constraints.unit_interval
    bijective = True
    _sign = 1

    def _call(self, x: Any) -> Any:
        info = np.finfo(as_dtype(x.dtype))
        return pg.clip(pg.sigmoid(x), float(info.tiny), 1.0 - float(info.eps))

    def _inverse(self, y: Any) -> Any:
        info = np.finfo(as_dtype(y.dtype))
        y = pg.clip(y, float(info.tiny), 1.0 - float(info.eps))
        return pg.log(y) - pg.log1p(-y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -pg.softplus(-x) - pg.softplus(x)


class SoftplusTransform(Transform):
    """Softplus, `log(1 + exp(x))`.

    >>> torch.distributions.transforms.SoftplusTransform()(torch.tensor(0.0))
    tensor(0.6931)
    """

    codomain = constraints.positive
    bijective = True
    _sign = 1

    def _call(self, x: Any) -> Any:
        return pg.softplus(x)

    def _inverse(self, y: Any) -> Any:
        return pg.log(-pg.expm1(-y)) + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -pg.softplus(-x)


class TanhTransform(Transform):
    """Hyperbolic tangent.

    >>> torch.distributions.transforms.TanhTransform()(torch.tensor(0.0))
    tensor(0.)
    """

    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    _sign = 1

    def _call(self, x: Any) -> Any:
        return pg.tanh(x)

    def _inverse(self, y: Any) -> Any:
        return pg.arctanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return 2.0 * (math.log(2.0) - x - pg.softplus(-2.0 * x))


class AbsTransform(Transform):
    """Absolute value, which has no unique inverse.

    >>> torch.distributions.transforms.AbsTransform()(torch.tensor(-1.0))
    tensor(1.)
    """

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return pg.abs(x)

    def _inverse(self, y: Any) -> Any:
        return y


class AffineTransform(Transform):
    """Transform `loc + scale * x`.

    >>> torch.distributions.transforms.AffineTransform(1.0, 2.0)(torch.tensor(3.0))
    tensor(7.)
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim
        if event_dim:
            self.domain = self.codomain = constraints.independent(constraints.real, event_dim)

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Handle):
            return pg.sign(self.scale)
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if isinstance(self.scale, Handle):
            found = pg.broadcast_to(pg.log(pg.abs(self.scale)), tuple(x.shape))
        else:
            found = pg.full_like(x, math.log(abs(self.scale)))
        return sum_last(found, self.event_dim)

    def forward_shape(self, shape: Any) -> Any:
        return np.broadcast_shapes(tuple(shape), np.shape(self.loc), np.shape(self.scale))

    inverse_shape = forward_shape

    def _is_equal(self, other: Any) -> bool:
        pairs = ((self.loc, other.loc), (self.scale, other.scale))
        return all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in pairs)
