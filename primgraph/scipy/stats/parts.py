"""Parts of distributions: factors of densities, and functions that several distributions use."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, final

from primgraph.operators.elementwise.arithmetic import add, power, subtract
from primgraph.operators.elementwise.elementary import exp, expm1, log, log1p
from primgraph.operators.elementwise.logic import equal, greater, isinf, less, logical_and, where
from primgraph.operators.elementwise.special_functions import xlog1py, xlogy
from primgraph.operators.promotion import lift
from primgraph.operators.reduce.statistics import logsumexp
from primgraph.operators.shape.creation import stop_gradient
from primgraph.operators.variable import Variable

Rule = Callable[..., Variable]
"""A function of a number on the standard scale, and of the parameters of shape."""


class Law(Protocol):
    """A distribution, as quadratures and searches for quantiles need it."""

    @property
    def middle(self) -> Callable[..., Any]:
        """The function that has a number in the middle of the support for parameters of shape."""

    @property
    def support(self) -> Callable[..., tuple[Any, Any]]:
        """The function that has the ends of the support for parameters of shape."""

    def point_inside(self, *shapes: Variable) -> Any:
        """Return a number within the support, where all functions are finite."""

    def rule(self, name: str) -> Rule:
        """Return the rule of a method on the standard scale."""


HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)
EVERYWHERE = (-math.inf, math.inf)
POSITIVE = (0.0, math.inf)


@final
@dataclass(frozen=True, slots=True)
class Power:
    """A factor `base**exponent` of a density, or `(1 + base)**exponent` if `plus_one`.

    The logarithm of the density has an infinite slope where the factor is zero. The density does
    not: there it is computed by the power itself.
    """

    exponent: Variable
    base: Variable
    plus_one: bool = False

    def logarithm(self, base: Variable | None = None) -> Variable:
        """Return the logarithm of the factor, or of that of another base."""
        product = xlog1py if self.plus_one else xlogy
        return product(self.exponent, self.base if base is None else base)

    def split(self, unscaled: Variable, scale: Variable | None) -> tuple[Variable, ...]:
        """Return where the factor is zero, that zero, else 1, and the logarithm of the rest.

        The zero is a power of the base times `scale`, which has a slope by the scale that is 0 and
        not a product of 0 and infinity; the rest divides by it.
        """
        base = self.base + 1.0 if self.plus_one else self.base
        vanishes = logical_and(equal(base, 0.0), greater(self.exponent, 0.0))
        rest = self.logarithm(where(vanishes, 0.0 if self.plus_one else 1.0, self.base))
        # An infinite exponent times the logarithm of one is NaN.
        rest = where(vanishes, 0.0, rest)
        if scale is not None:
            rest = subtract(rest, where(vanishes, self.exponent, 0.0) * log(scale))
        if self.plus_one:
            unscaled = add(unscaled, 1.0 if scale is None else scale)
        return vanishes, power(where(vanishes, unscaled, 1.0), self.exponent), rest


def are_positive(*shapes: Variable) -> Variable:
    """Return where all parameters of shape are positive."""
    found = greater(shapes[0], 0.0)
    for other in shapes[1:]:
        found = logical_and(found, greater(other, 0.0))
    return found


def is_infinite(bound: Any) -> bool:
    """Return whether a bound of a support is infinite for all parameters."""
    return isinstance(bound, float) and math.isinf(bound)


def number_between(first: Any, last: Any, is_whole: bool) -> Any:
    """Return a number between two bounds, of which some may be infinite, without derivatives."""
    if is_whole:
        return 0.0 if is_infinite(first) else first
    finite = [b for b in (first, last) if not is_infinite(b)]
    if not finite:
        return 0.5
    if len(finite) == 1:
        step = -0.5 if is_infinite(first) else 0.5
        if not isinstance(finite[0], Variable):
            return finite[0] + step
        return stop_gradient(where(isinf(finite[0]), 0.5, finite[0] + step))
    if not isinstance(first, Variable) and not isinstance(last, Variable):
        return 0.5 * (first + last)
    first, last = (stop_gradient(lift(b)) for b in finite)
    middle = where(isinf(last), first + 0.5, 0.5 * (first + last))
    return where(isinf(first), where(isinf(last), 0.5, last - 0.5), middle)


def limit_of_power(exponent: Variable, constant: Any) -> Variable:
    """Return the limit at 0 of `constant + exponent * log(x)`."""
    infinite = where(greater(exponent, 0.0), -math.inf, lift(math.inf, exponent.dtype))
    return where(equal(exponent, 0.0), constant, infinite)


def vanishes_at_start(*shapes: Variable) -> tuple[Any, Any]:
    """Return the limits of the logarithm of a density that is 0 at the lower end."""
    return -math.inf, None


def with_limits(
    rule: Rule,
    support: Callable[..., tuple[Any, Any]],
    limits: Callable[..., tuple[Any, Any]] | None,
) -> Rule:
    """Return `rule` with its limits at the ends of the support, where they are not None."""
    if limits is None:
        return rule

    def limited(x: Variable, *shapes: Variable) -> Variable:
        ends = support(*shapes)
        inside = number_between(*ends, False)
        given = [(equal(x, end), limit) for end, limit in zip(ends, limits(*shapes), strict=True)
                 if limit is not None]  # fmt: skip
        inner = x
        for is_end, _ in given:
            inner = where(is_end, inside, inner)
        found = rule(inner, *shapes)
        for is_end, limit in given:
            found = where(is_end, limit, found)
        return found

    return limited


def log_sum(exponents: Variable) -> Variable:
    """Return the logarithm of the sum of exponentials along the last axis."""
    found: Variable = logsumexp(exponents, -1)
    return found


def log_of(part: Variable, other: Variable) -> Variable:
    """Return the logarithm of a part of one, by the other part if that is the smaller one."""
    is_small = less(part, other)
    return where(is_small, log(where(is_small, part, 1.0)), log1p(-where(is_small, 0.0, other)))


def log1mexp(y: Variable) -> Variable:
    """`log(1 - exp(-y))` of positive numbers, exact for small and large ones (Maechler, 2012)."""
    is_small = less(y, math.log(2.0))
    small = log(-expm1(-where(is_small, y, 0.5)))
    return where(is_small, small, log1p(-exp(-where(is_small, 1.0, y))))


def log1p_ratio(t: Variable) -> Variable:
    """Return `log(1 + t) / t`, by its series near 0, where it is 1."""
    is_near = less(t * t, 1e-3)
    small, large = where(is_near, t, 0.0), where(is_near, 1.0, t)
    series: Any = 0.0
    for k in range(14, -1, -1):
        series = 1.0 / (k + 1) - small * series
    return where(is_near, series, log1p(large) / large)
