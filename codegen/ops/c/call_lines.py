"""Interface of the generators of calls of C functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.c.spellings import c_type


class Call(NamedTuple):
    """A call to be generated: its step, and pointers to operands and results.

    `room` allocates workspace in bytes, for this call alone. With `numpy`, NumPy recomputes the
    whole if the function returns anything but 0. `fail` is called for each statement that returns.
    """

    step: Step
    operands: Sequence[str]
    results: Sequence[str]
    room: Callable[[int], str]
    numpy: bool = False
    fail: Callable[[], None] = lambda: None

    def operand(self, k: int) -> str:
        """Return a typed pointer to the elements of operand `k`."""
        return f"(const {c_type(self.step.operands[k].dtype)} *){self.operands[k]}"

    def result(self, k: int = 0) -> str:
        return f"({c_type(self.step.results[k].dtype)} *){self.results[k]}"

    def checked_call(self, call: str) -> str:
        """Return a checked call of a function with a status.

        The status is 0 for success, 1 without a result, and 2 if not all elements are finite; NumPy
        alone knows which ones.
        """
        self.fail()
        return f"if ({call}) return 1;" if self.numpy else f"if ({call} == 1) return 1;"


Lines: TypeAlias = Callable[[Call], Iterable[str]]
