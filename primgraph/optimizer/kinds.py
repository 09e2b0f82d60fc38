"""Types and ranges of the arguments of optimizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from primgraph.errors import ArgumentError
from primgraph.operators.variable import Variable

Schedule: TypeAlias = Callable[[Variable], Variable]
"""Maps the number of the step, a 0-d float64 variable that counts from 0, to a factor."""

Clip: TypeAlias = Callable[[list[Variable]], list[Variable]]
"""Maps all gradients to the ones that are used."""

Pairs: TypeAlias = list[tuple[Variable, Variable]]


def rate_from(value: Any) -> float:
    """`value`, if it is a learning rate."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
        raise ArgumentError(
            f"a learning rate is a number, not {value!r:.80}",
            hint="give a schedule as `schedule=`",
        )
    return from_zero("a learning rate", float(value))


def from_zero(role: str, value: float) -> float:
    """`value`, if it is finite and not negative: steps go downhill, and weights shrink."""
    if not 0.0 <= value < np.inf:
        raise ArgumentError(f"{role} is a finite number from 0 on, not {value!r:.60}")
    return value


def require_below_one(name: str, value: float) -> float:
    """`value`, if it is a part that is kept from step to step: from 0 on and below 1."""
    if not 0.0 <= value < 1.0:
        raise ArgumentError(f"{name} is from 0 on and below 1, not {value!r:.60}")
    return value


def positive(role: str, value: float) -> None:
    """Refuse what would divide by zero or turn a step around."""
    if not value > 0:
        raise ArgumentError(f"{role} is positive, not {value!r:.80}")


def times(scalar: Variable, x: Variable) -> Variable:
    """`scalar * x` in the dtype of `x`."""
    return scalar.astype(x.dtype) * x
