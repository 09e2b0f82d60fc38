"""Table of the compositions of primitives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primgraph.ir.graph import Equation
from primgraph.ir.primitive import Op

# A function of arrays that computes a primitive from its operands and parameters.
Composition = Callable[..., Any]

# Compositions, each with the predicate of equations that it is for.
COMPOSITIONS: dict[Op, tuple[Composition, Callable[[Equation], bool]]] = {}


def is_complex(eqn: Equation) -> bool:
    """Return whether an operand or a result of an equation is complex."""
    return any(v.type.is_complex for v in (*eqn.inputs, *eqn.outputs))


def is_real_of_known_size(eqn: Equation) -> bool:
    """Return whether an equation has real matrices, whose sizes are numbers."""
    sizes = [n for v in eqn.inputs for n in v.type.shape[-2:]]
    return not is_complex(eqn) and all(type(n) is int for n in sizes)


def composition(
    *ops: Op, fits: Callable[[Equation], bool] = lambda eqn: True
) -> Callable[[Composition], Composition]:
    """Declare a function of arrays, in operators of primgraph, as a composition of primitives.

    It is for equations that `fits` accepts.
    """

    def declare(function: Composition) -> Composition:
        for op in ops:
            COMPOSITIONS[op] = function, fits
        return function

    return declare


def has_composition(eqn: Equation) -> bool:
    """Return whether the table has a composition for the types of an equation."""
    found = COMPOSITIONS.get(eqn.op)
    return found is not None and found[1](eqn)
