"""How long a step takes, roughly, as far as shapes and dtypes tell.

The numbers on the cards are nanoseconds of NumPy 2.4.6 on one core of an AMD EPYC (Zen 5), the
shortest of 60 calls on arrays of 16,384 elements, which are in the second-level cache. They decide
whether threads pay, for which their order of magnitude matters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from primgraph.codegen.plan.schedule import Step

Time: TypeAlias = Callable[[Step], float]

# What an element of float16 costs beyond one of float32: it is computed with as such.
_HALF = 4.0


def per_element(wide: float, narrow: float) -> Time:
    """The time on one core of a step that takes so long for an element of float64, of float32."""

    def nanoseconds(step: Step) -> float:
        moved = (*step.operands, *step.results)
        elements = max((t.size for t in moved), default=0)
        dtype = next((t.dtype for t in moved if t.is_inexact), moved[0].dtype)
        if dtype.kind == "c":
            return 2 * elements * (wide if dtype.itemsize == 16 else narrow)
        if dtype.itemsize == 2 and dtype.kind == "f":
            return elements * (narrow + _HALF)
        return elements * (wide if dtype.itemsize == 8 else narrow)

    return nanoseconds


# What moving an element takes, which is all that the simplest operations do.
MOVED = per_element(0.14, 0.08)
