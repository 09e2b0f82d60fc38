"""Interface of the generators of calls of C functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TypeAlias

from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.c.spellings import c_type


class Call(ABC):
    """A call to be generated: its step, and what a back end calls the things in its lines.

    With `is_checked`, NumPy recomputes the whole if the function returns anything but 0.
    """

    is_checked = False
    # The variable of a loop over calls.
    index = "q"

    def __init__(self, step: Step) -> None:
        self.step = step

    @abstractmethod
    def array(self, k: int, kind: str, *, const: bool = False) -> str:
        """Return a pointer to the elements of operand `k`, or of a result, which follow these."""

    @abstractmethod
    def room(self, kind: str, count: int) -> str:
        """Allocate workspace for `count` elements of a C type, for this call alone."""

    @abstractmethod
    def size(self, n: int) -> str:
        """Return a size as an operand."""

    @abstractmethod
    def use(self, function: str) -> str:
        """Return the name of a function that the lines call."""

    @abstractmethod
    def fail(self) -> None:
        """Take notice of a statement that returns."""

    def operand(self, k: int) -> str:
        """Return a typed pointer to the elements of operand `k`."""
        return self.array(k, c_type(self.step.operands[k].dtype) or "", const=True)

    def result(self, k: int = 0) -> str:
        """Return a typed pointer to the elements of result `k`."""
        kind = c_type(self.step.results[k].dtype) or ""
        return self.array(len(self.step.operands) + k, kind)

    def checked_call(self, call: str) -> str:
        """Return a checked call of a function with a status.

        The status is 0 for success, 1 without a result, and 2 if not all elements are finite; NumPy
        alone knows which ones.
        """
        self.fail()
        return f"if ({call}) return 1;" if self.is_checked else f"if ({call} == 1) return 1;"


Lines: TypeAlias = Callable[[Call], Iterable[str]]
