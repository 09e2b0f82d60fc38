"""Ranges of elements: interval arithmetic, and the facts by which primitives declare ranges.

Real numbers are bounded as if nothing were rounded. Polynomials are assumed not to overflow;
exponentials are not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from primgraph.base.records import dataclass
from primgraph.ir.graph import Equation
from primgraph.ir.primitive import Fact
from primgraph.ir.value import Value

INF = math.inf


@dataclass(frozen=True, slots=True)
class Range:
    """Interval [`low`, `high`] of all elements, with flags for infinities and NaN.

    `below` and `above` allow -inf and inf, `nan` allows NaN. An infinite bound alone means that it
    is unknown. With `peak`, the maximum over these axes is exactly `high`.

    >>> from primgraph.extend import RANGE, Range, lookup
    >>> lookup("tanh").fact(RANGE)(Range(0.0, 9.0))
    Range(low=-1.0, high=1.0, below=False, above=False, nan=False, peak=None)
    """

    low: float = -INF
    high: float = INF
    below: bool = False
    above: bool = False
    nan: bool = False
    peak: tuple[int, ...] | None = None

    @property
    def finite(self) -> bool:
        return not (self.below or self.above or self.nan)

    @property
    def is_number(self) -> bool:
        """Return whether all elements are one known number."""
        return self.finite and self.low == self.high

    @property
    def excludes_zero(self) -> bool:
        return not self.nan and (self.low > 0 or self.high < 0)

    def within(self, low: float, high: float) -> bool:
        """Return whether all elements are finite and strictly between `low` and `high`."""
        return self.finite and self.low > low and self.high < high


REAL = Range()
ANYTHING = Range(below=True, above=True, nan=True)
ZERO = Range(0.0, 0.0)
NOT_NEGATIVE = Range(0.0, above=True, nan=True)
_Rule: TypeAlias = Callable[..., Range]


class Around(Protocol):
    """Values around an equation: ranges so far, defining equations, arrays of constants."""

    @property
    def known(self) -> Mapping[Value, Range]: ...

    def definition(self, value: Value) -> Equation | None: ...

    def array(self, value: Value) -> np.ndarray[Any, Any] | None: ...


# The rule `rule(*ranges, **params)` for the range of the results, by those of the operands. Without
# a rule, results of finite operands are finite unless the primitive is singular.
RANGE: Fact[_Rule | None] = Fact("range", None)
# The rule `rule(eqn, around, *ranges)`, where types or the definitions of operands matter too.
RANGE_AT: Fact[_Rule | None] = Fact("range in its graph", None)
# The rule `rule(*ranges, **params)` for the domain of a singular primitive: whether finite operands
# have a finite value and derivative.
DOMAIN: Fact[Callable[..., bool] | None] = Fact("domain", None)
# The rule `rule(eqn, position, *ranges)`: whether the derivative along an operand is finite.
# Without a rule it is if the operands that occur in it are finite, and in the domain.
FINITE_SLOPE: Fact[Callable[..., bool] | None] = Fact("finite slope", None)
# Whether finite complex operands have a finite result and derivative: polynomials do. It need not
# be declared of primitives that are linear, or that move elements. Functions that are bounded on
# the real line have poles in the complex plane, or grow exponentially.
POLYNOMIAL: Fact[bool] = Fact("polynomial", False)
# Whether elements of the result are those of the only operand, maybe of another dtype.
SAME: Fact[bool] = Fact("same elements", False)
# Whether the derivative is linear over the complex numbers where operand and result are complex.
HOLOMORPHIC: Fact[bool] = Fact("holomorphic", True)


class Sizes(Protocol):
    """Lower bounds of the nonzero magnitudes of operands; the precision `eps` of the result."""

    eps: float

    def __call__(self, place: int) -> float: ...

    def number(self, place: int) -> float:
        """Return the magnitude of an operand that is one number, else 0."""
        ...


# The rule `rule(sizes)` for a lower bound of the magnitude of nonzero elements of the result.
LEAST: Fact[Callable[[Sizes], float] | None] = Fact("least magnitude", None)


def is_polynomial(x: Range, y: Range) -> bool:
    """Return whether `x ** y` does not grow exponentially, for nonnegative `x`."""
    return (y.high < INF or x.high <= 1) and (y.low > -INF or x.low >= 1)


# Ranges of results.


def hull(given: Sequence[Range]) -> Range:
    """Return the smallest range that contains all of `given`."""
    return Range(
        min(x.low for x in given),
        max(x.high for x in given),
        any(x.below for x in given),
        any(x.above for x in given),
        any(x.nan for x in given),
    )


def add_ranges(x: Range, y: Range) -> Range:
    opposite = (x.below and y.above) or (x.above and y.below)
    return Range(
        _sum(x.low, y.low, -INF), _sum(x.high, y.high, INF),
        x.below or y.below, x.above or y.above, x.nan or y.nan or opposite,
    )  # fmt: skip


def _sum(x: float, y: float, unknown: float) -> float:
    return unknown if unknown in (x, y) else x + y


def negate_range(x: Range) -> Range:
    return Range(-x.high, -x.low, x.above, x.below, x.nan)


def multiply_ranges(x: Range, y: Range) -> Range:
    if not (x.finite and y.finite):
        return ANYTHING
    corners = [times(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
    return Range(min(corners), max(corners))


def times(x: float, y: float) -> float:
    return 0.0 if 0 in (x, y) else x * y


def absolute(x: Range) -> Range:
    low = 0.0 if x.low <= 0 <= x.high else min(abs(x.low), abs(x.high))
    return Range(low, max(abs(x.low), abs(x.high)), False, x.below or x.above, x.nan)


def quotient(x: Range, y: Range) -> Range:
    if not (x.finite and y.finite and y.excludes_zero):
        return ANYTHING
    return multiply_ranges(x, Range(1 / y.high, 1 / y.low))


def bound_rule(low: float, high: float) -> _Rule:
    """Return the rule of a bounded function that has limits at infinity."""
    return lambda x: Range(low, high, nan=x.nan)


def increasing_rule(function: Callable[[float], float], domain: Callable[..., bool]) -> _Rule:
    """Return the rule of an increasing function that is finite on its domain."""

    def rule(x: Range) -> Range:
        if not (x.finite and domain(x)):
            return ANYTHING
        return Range(function(x.low), function(x.high) if x.high < INF else INF)

    return rule


def root(x: Range) -> Range:
    if not x.finite or x.low < 0:
        return ANYTHING
    return Range(math.sqrt(x.low), math.sqrt(x.high) if x.high < INF else INF)


def reciprocal_root(x: Range) -> Range:
    return Range(0.0, 1 / math.sqrt(x.low)) if x.finite and x.low > 0 else ANYTHING


def larger(x: Range, y: Range) -> Range:
    # A -inf operand never determines the maximum.
    lows = [v.low for v in (x, y) if not v.below]
    low = max(lows) if lows else min(x.low, y.low)
    return Range(low, max(x.high, y.high), x.below and y.below, x.above or y.above, x.nan or y.nan)


def smaller(x: Range, y: Range) -> Range:
    return negate_range(larger(negate_range(x), negate_range(y)))


def power_of(x: Range, y: Range) -> Range:
    tame = (x.low > 0 or (x.low >= 0 and y.low >= 0)) and is_polynomial(x, y)
    return Range(0.0) if x.finite and y.finite and tame else ANYTHING


def integer_quotient(x: Range, y: Range) -> Range:
    """Return the range of an integer quotient or a remainder."""
    return REAL if x.finite and y.finite and y.excludes_zero else ANYTHING


def angle(y: Range, x: Range) -> Range:
    return Range(-math.pi, math.pi, nan=x.nan or y.nan)


def wave(x: Range) -> Range:
    return Range(-1.0, 1.0, nan=not x.finite)


def log_of_sum(x: Range, y: Range) -> Range:
    return Range(max(x.low, y.low)) if x.finite and y.finite else ANYTHING


def join_operands(*given: Range, **params: Any) -> Range:
    """Return the range of results that consist of elements of all operands."""
    return hull(given)


def join_with_zeros(*given: Range, **params: Any) -> Range:
    """Return the range of results that consist of elements of all operands, and of zeros."""
    return hull([*given, ZERO])


def array_range(array: np.ndarray[Any, Any]) -> Range:
    """Return the range of the elements of an array; complex numbers have no bounds."""
    if array.dtype.kind == "c":
        return REAL if bool(np.isfinite(array).all()) else ANYTHING
    real = array[np.isfinite(array)]
    low, high = (float(real.min()), float(real.max())) if real.size else (0.0, 0.0)
    below, above, nan = (bool(f(array).any()) for f in (np.isneginf, np.isposinf, np.isnan))
    return Range(low, high, below, above, nan)


def square(x: Range) -> Range:
    size = absolute(x)
    return multiply_ranges(size, size) if x.finite else NOT_NEGATIVE


def products(*given: Range, **params: Any) -> Range:
    """Return the range of a sum of products, or a product: nonnegative if all factors are."""
    if not all(x.finite for x in given):
        return ANYTHING
    return Range(0.0) if all(x.low >= 0 for x in given) else REAL


# Derivatives.


def is_finite_unless_nan(eqn: Equation, position: int, *given: Range) -> bool:
    """Return whether a derivative is finite that is NaN only beside a NaN, also at infinities."""
    return not any(x.nan for x in given)


def exp_is_finite(eqn: Equation, position: int, x: Range) -> bool:
    """Return whether an exponential, or its derivative, does not overflow."""
    largest = math.log(float(np.finfo(eqn.outputs[0].dtype).max)) - 1
    return not (x.nan or x.above) and x.high <= largest
