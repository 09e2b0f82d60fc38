"""Cost model: the approximate run time of a step, by shapes and dtypes.

The numbers on the cards are nanoseconds of NumPy 2.4.6 on one core of an AMD EPYC (Zen 5). They are
the shortest of 60 calls on arrays of 16,384 elements, which are in the second-level cache. They
decide whether threads pay, for which their order of magnitude matters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from primgraph.codegen.ir.schedule import Step

Time: TypeAlias = Callable[[Step], float]

# Additional cost of an element of float16, which is computed in float32.
_HALF = 4.0


def per_element(wide: float, narrow: float) -> Time:
    """Return the cost function with these nanoseconds per element of float64 and of float32."""

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


# The cost of moving an element, which is that of the simplest operations.
MOVED = per_element(0.14, 0.08)
