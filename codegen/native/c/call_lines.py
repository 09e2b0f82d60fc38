"""What a call of a function of C is written from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from primgraph.codegen.native.c.spellings import c_type
from primgraph.codegen.plan.schedule import Step


class Call(NamedTuple):
    """A call that is to be written: its step, and where the operands and the results are.

    `room` gives memory of so many bytes, for this call alone. `numpy` tells that NumPy is there as
    well, and does all again where a function has returned anything but 0.
    """

    step: Step
    operands: Sequence[str]
    results: Sequence[str]
    room: Callable[[int], str]
    numpy: bool = False

    def operand(self, k: int) -> str:
        """A pointer to the elements of operand `k`."""
        return f"(const {c_type(self.step.operands[k].dtype)} *){self.operands[k]}"

    def result(self, k: int = 0) -> str:
        return f"({c_type(self.step.results[k].dtype)} *){self.results[k]}"

    def tried(self, call: str) -> str:
        """A call of a function that returns 0; 1 where there is no result; or 2 where not all is
        finite, of which NumPy alone knows which elements are."""
        return f"if ({call}) return 1;" if self.numpy else f"if ({call} == 1) return 1;"


Lines: TypeAlias = Callable[[Call], Iterable[str]]
