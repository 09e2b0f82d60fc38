"""How close to zero the numbers of a value can be without being zero."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from primgraph.ir.graph import Equation, Value
from primgraph.ir.primitive import Op, Primitive
from primgraph.primitives import elementwise as e
from primgraph.primitives.constants import full
from primgraph.primitives.logic import select

Definition: TypeAlias = Callable[[Value], Equation | None]
_Kind: TypeAlias = Any

# How many equations are looked through one behind the other.
_DEPTH = 8
# No float64 is closer to a zero of the cosine, nor float32: 4.7e-19 and 1.6e-9 are the least
# (J.-M. Muller, Elementary Functions, 3rd edition, 2016, chapter 11).
_COSINE = 1e-20


def has_reciprocals(value: Value, definition: Definition) -> bool:
    """Whether every element that is not zero is known to have a finite reciprocal, with room."""
    kind = np.finfo(value.dtype)
    return least(value, definition) > 16.0 / float(kind.max)


def least(value: Value, definition: Definition, depth: int = _DEPTH) -> float:
    """No element of `value` is closer to zero than this, up to rounding, but for zeros and NaN."""
    kind = np.finfo(value.dtype)
    eqn = definition(value)
    if eqn is None or depth == 0 or not isinstance(eqn.op, Primitive):
        return float(kind.smallest_subnormal)
    if eqn.op is full:
        number = abs(eqn.kwargs["value"])
        return number if number > 0 else math.inf
    if eqn.op in (e.add, e.sub):
        return max(_beside_constants(eqn, definition, kind), float(kind.smallest_subnormal))

    def of(place: int) -> float:
        return least(eqn.inputs[place], definition, depth - 1)

    known = _RULES.get(eqn.op)
    if known is not None:
        return max(known(of), float(kind.smallest_subnormal))
    return of(0) if eqn.op.is_view else float(kind.smallest_subnormal)


def _beside_constants(eqn: Equation, definition: Definition, kind: _Kind) -> float:
    """A sum with a constant is zero, or no closer to it than what rounds the constant.

    Where a product is added without being rounded, that is by a square of the precision.
    """
    made = [definition(v) for v in eqn.inputs]
    sizes = [abs(d.kwargs["value"]) for d in made if d is not None and d.op is full]
    return max(sizes, default=0.0) * float(kind.eps) ** 2 / 4.0


_Of: TypeAlias = Callable[[int], float]

_RULES: dict[Op, Callable[[_Of], float]] = {
    e.neg: lambda of: of(0),
    e.abs_: lambda of: of(0),
    e.mul: lambda of: of(0) * of(1),
    e.sqrt: lambda of: math.sqrt(of(0)),
    e.cos: lambda of: _COSINE,
    e.cosh: lambda of: 1.0,
    e.maximum: lambda of: min(of(0), of(1)),
    e.minimum: lambda of: min(of(0), of(1)),
    select: lambda of: min(of(1), of(2)),
}
