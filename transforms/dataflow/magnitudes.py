"""Lower bounds of the magnitude of nonzero elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, final

import numpy as np

from primgraph.ir.facts.ranges import LEAST
from primgraph.ir.graph import Equation, Value

Definition: TypeAlias = Callable[[Value], Equation | None]

# Maximum depth of the equations that are visited.
_DEPTH = 8


def has_reciprocals(value: Value, definition: Definition) -> bool:
    """Return whether every nonzero element is known to have a finite reciprocal, with margin."""
    kind = np.finfo(value.dtype)
    return least(value, definition) > 16.0 / float(kind.max)


def least(value: Value, definition: Definition, depth: int = _DEPTH) -> float:
    """Return a lower bound, up to rounding, of the magnitude of elements that are not 0 or NaN."""
    smallest = float(np.finfo(value.dtype).smallest_subnormal)
    eqn = definition(value)
    if eqn is None or depth == 0:
        return smallest
    number = eqn.number
    if number is not None:
        return abs(number) or np.inf
    sizes = _Sizes(eqn, definition, depth - 1)
    rule = eqn.op.fact(LEAST)
    if rule is not None:
        return max(rule(sizes), smallest)
    return sizes(0) if eqn.op.is_view else smallest


@final
class _Sizes:
    """Magnitudes of the operands of an equation, for the rule of its primitive."""

    def __init__(self, eqn: Equation, definition: Definition, depth: int) -> None:
        self.eps = float(np.finfo(eqn.outputs[0].dtype).eps)
        self._eqn = eqn
        self._definition = definition
        self._depth = depth

    def __call__(self, place: int) -> float:
        return least(self._eqn.inputs[place], self._definition, self._depth)

    def number(self, place: int) -> float:
        eqn = self._definition(self._eqn.inputs[place])
        number = eqn and eqn.number
        return 0.0 if number is None else abs(number)
