"""Ranges of values, and what elementwise functions make of them.

Real numbers are bounded as if nothing was rounded; polynomials are taken not to overflow,
exponentials are not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from primgraph.ir.primitive import Op
from primgraph.primitives import elementwise as e
from primgraph.primitives import reductions as r
from primgraph.primitives import shapes as s
from primgraph.primitives.indexing import gather
from primgraph.primitives.logic import unless_nan

INF = math.inf


@dataclass(frozen=True, slots=True)
class Range:
    """All elements lie between `low` and `high`, but for those that the flags allow.

    `below` and `above` tell whether -inf and inf may occur, `nan` whether NaN may. An infinite
    bound alone says that nothing is known. Of a value with `peak` the largest element over these
    axes is `high` exactly.
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
        """Whether all elements are one known number."""
        return self.finite and self.low == self.high

    @property
    def excludes_zero(self) -> bool:
        return not self.nan and (self.low > 0 or self.high < 0)

    def within(self, low: float, high: float) -> bool:
        """Whether all elements lie strictly between `low` and `high`; infinite ones do not."""
        return self.finite and self.low > low and self.high < high


REAL = Range()
ANYTHING = Range(below=True, above=True, nan=True)
_Rule: TypeAlias = Callable[..., Range]


# Where functions of finite operands have a finite value and slope.
SMOOTH: dict[Op, Callable[..., bool]] = {
    e.log: lambda x: x.low > 0,
    e.log1p: lambda x: x.low > -1,
    e.sqrt: lambda x: x.low > 0,
    e.rsqrt: lambda x: x.low > 0,
    e.div: lambda x, y: y.excludes_zero,
    e.remainder: lambda x, y: y.excludes_zero,
    e.power: lambda x, y: x.low > 0 and _is_polynomial(x, y),
    e.sinh: lambda x: x.within(-80, 80),
    e.cosh: lambda x: x.within(-80, 80),
    e.tan: lambda x: True,
    e.logaddexp: lambda x, y: True,
    e.arcsin: lambda x: x.within(-1, 1),
    e.arccos: lambda x: x.within(-1, 1),
    e.arctanh: lambda x: x.within(-1, 1),
    e.arccosh: lambda x: x.low > 1,
    e.arctan2: lambda y, x: y.excludes_zero or x.excludes_zero,
    r.reduce_prod: lambda x: True,
}


def _is_polynomial(x: Range, y: Range) -> bool:
    """Whether powers do not grow like an exponential, for `x` that are not negative."""
    return (y.high < INF or x.high <= 1) and (y.low > -INF or x.low >= 1)


# Ranges of results.


def hull(given: Sequence[Range]) -> Range:
    """What holds the elements of all of `given`."""
    return Range(
        min(x.low for x in given),
        max(x.high for x in given),
        any(x.below for x in given),
        any(x.above for x in given),
        any(x.nan for x in given),
    )


def added(x: Range, y: Range) -> Range:
    opposite = (x.below and y.above) or (x.above and y.below)
    return Range(
        _sum(x.low, y.low, -INF), _sum(x.high, y.high, INF),
        x.below or y.below, x.above or y.above, x.nan or y.nan or opposite,
    )  # fmt: skip


def _sum(x: float, y: float, unknown: float) -> float:
    return unknown if unknown in (x, y) else x + y


def negated(x: Range) -> Range:
    return Range(-x.high, -x.low, x.above, x.below, x.nan)


def multiplied(x: Range, y: Range) -> Range:
    if not (x.finite and y.finite):
        return ANYTHING
    corners = [times(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
    return Range(min(corners), max(corners))


def times(x: float, y: float) -> float:
    return 0.0 if 0 in (x, y) else x * y


def absolute(x: Range) -> Range:
    low = 0.0 if x.low <= 0 <= x.high else min(abs(x.low), abs(x.high))
    return Range(low, max(abs(x.low), abs(x.high)), False, x.below or x.above, x.nan)


def _div(x: Range, y: Range) -> Range:
    if not (x.finite and y.finite and y.excludes_zero):
        return ANYTHING
    return multiplied(x, Range(1 / y.high, 1 / y.low))


def _between(low: float, high: float) -> _Rule:
    """The rule of a bounded function that has limits at infinity."""
    return lambda x: Range(low, high, nan=x.nan)


def _monotone(function: Callable[[float], float], op: Op) -> _Rule:
    """The rule of an increasing function, finite where `SMOOTH` says so of its slope."""

    def rule(x: Range) -> Range:
        if not (x.finite and SMOOTH[op](x)):
            return ANYTHING
        return Range(function(x.low), function(x.high) if x.high < INF else INF)

    return rule


def _sqrt(x: Range) -> Range:
    if not x.finite or x.low < 0:
        return ANYTHING
    return Range(math.sqrt(x.low), math.sqrt(x.high) if x.high < INF else INF)


def _rsqrt(x: Range) -> Range:
    return Range(0.0, 1 / math.sqrt(x.low)) if x.finite and x.low > 0 else ANYTHING


def _maximum(x: Range, y: Range) -> Range:
    # Where one is -inf there is only the other.
    lows = [v.low for v in (x, y) if not v.below]
    low = max(lows) if lows else min(x.low, y.low)
    return Range(low, max(x.high, y.high), x.below and y.below, x.above or y.above, x.nan or y.nan)


def _minimum(x: Range, y: Range) -> Range:
    return negated(_maximum(negated(x), negated(y)))


def _power(x: Range, y: Range) -> Range:
    tame = (x.low > 0 or (x.low >= 0 and y.low >= 0)) and _is_polynomial(x, y)
    return Range(0.0) if x.finite and y.finite and tame else ANYTHING


def _quotient(x: Range, y: Range) -> Range:
    """The range of whole quotients and of what they leave."""
    return REAL if x.finite and y.finite and y.excludes_zero else ANYTHING


def _arctan2(y: Range, x: Range) -> Range:
    return Range(-math.pi, math.pi, nan=x.nan or y.nan)


def _wave(x: Range) -> Range:
    return Range(-1.0, 1.0, nan=not x.finite)


def _logaddexp(x: Range, y: Range) -> Range:
    return Range(max(x.low, y.low)) if x.finite and y.finite else ANYTHING


MOVES: frozenset[Op] = frozenset(
    {s.reverse, s.concat, s.split, s.slice_, s.slice_assign, e.steady, e.stop_gradient, e.cast,
     r.reduce_max, r.reduce_min}
)  # fmt: skip

BY_RANGE: dict[Op, _Rule] = {
    e.add: added,
    e.sub: lambda x, y: added(x, negated(y)),
    e.neg: negated,
    e.div: _div,
    e.abs_: absolute,
    e.power: _power,
    e.sqrt: _sqrt,
    e.rsqrt: _rsqrt,
    e.log: _monotone(math.log, e.log),
    e.log1p: _monotone(math.log1p, e.log1p),
    e.tanh: _between(-1.0, 1.0),
    e.erf: _between(-1.0, 1.0),
    e.erfc: _between(0.0, 2.0),
    e.sigmoid: _between(0.0, 1.0),
    e.sign: _between(-1.0, 1.0),
    e.arctan: _between(-2.0, 2.0),
    e.arctan2: _arctan2,
    e.sin: _wave,
    e.cos: _wave,
    e.maximum: _maximum,
    e.minimum: _minimum,
    e.remainder: _quotient,
    e.floor_divide: _quotient,
    e.logaddexp: _logaddexp,
    unless_nan: lambda x, y: replace(x, nan=x.nan or y.nan),
    s.pad: lambda x: hull([x, Range(0.0, 0.0)]),
    gather: lambda x, *indices: hull([x]),
}
