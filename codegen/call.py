"""What a step is written for, and how the code is going to be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, final

from primgraph.codegen.schedule import Step
from primgraph.ir.types import FLOAT32, FLOAT64, DType

if TYPE_CHECKING:
    from primgraph.codegen.planned import Planner

# Longer rows are added up by NumPy, which is more accurate.
LONGEST_PRODUCT = 4096


@dataclass(frozen=True, slots=True)
class Options:
    """How the code is used: `donated` pairs outputs with inputs in whose arrays they are left.

    `alone` has the only result returned itself, not in a list. `given` are the outputs that are
    written into arrays of the caller's. The last `kept` inputs are arrays of the kernel's own.
    `poisoned` fills memory with ones, which are NaNs, when nothing is to be read from it: a fault
    then shows.
    """

    donated: tuple[tuple[int, int], ...] = ()
    given: tuple[int, ...] = ()
    alone: bool = False
    kept: int = 0
    poisoned: bool = False


@final
@dataclass(slots=True)
class Call:
    """One step to write, as spellings see it."""

    planner: Planner
    step: Step
    args: list[str]
    out: str
    taken: int | None = None
    plain: bool = False

    def np(self, name: str) -> str:
        return self.planner.np(name)

    def helper(self, name: str) -> str:
        return name

    def scalar(self, value: Any, dtype: DType) -> str:
        return self.planner.scalar(value, dtype)

    def part(self, template: str) -> str:
        return self.planner.view(self.out, template)

    def operand_part(self, position: int, template: str) -> str:
        return self.planner.view(self.args[position], template)

    def scratch(self) -> str:
        return self.planner.looping.scratch(self.step)

    def is_repeated(self, position: int) -> bool:
        value = self.step.inputs[position]
        place, types = self.planner.places[value], self.planner.schedule.types
        whole = place.shape in (self.step.operands[position].shape, types[value].shape)
        return not whole or 0 in (place.strides or ())

    def number(self, position: int) -> bool | int | float | None:
        number: bool | int | float | None = self.planner.places[self.step.inputs[position]].scalar
        return number

    def summed(self, axes: Sequence[int]) -> str:
        """A statement that sums over `axes` as a product with ones; empty where there is none.

        It is for operands in row-major order and axes that come first or last, so that they are
        matrices. BLAS adds in an order of its own, the same in every run. NumPy adds pairs of
        halves, which is more accurate along long rows; down the rows it adds one by one.
        """
        type, count = self.step.operands[0], len(axes)
        if not self.plain or type.dtype not in (FLOAT32, FLOAT64) or type.size <= 1 or not count:
            return ""
        number = prod(type.shape[a] for a in axes)
        first = tuple(axes) == tuple(range(count))
        last = tuple(axes) == tuple(range(type.ndim - count, type.ndim))
        looped = self.planner.looping.rows_in(axes)
        if (last and number > LONGEST_PRODUCT) or not (first or last) or (looped and count > 1):
            return ""
        ones = self.planner.ones(number, type.dtype, looped)
        out = self.part("{}.reshape(-1)") if len(self.step.results[0].shape) > 1 else self.out
        if last:
            row = "{0}.shape[-1]" if looped else str(number)
            rows = "-1" if count == type.ndim else f"-1, {row}"
            shaped = type.ndim == 1 + (count < type.ndim)
            x = self.args[0] if shaped else self.operand_part(0, f"{{0}}.reshape({rows})")
            return f"{self.np('dot')}({x}, {ones}, {out})"
        rows = "{0}.shape[0]" if looped else str(number)
        shaped = type.ndim == 2 and count == 1
        x = self.args[0] if shaped else self.operand_part(0, f"{{0}}.reshape({rows}, -1)")
        return f"{self.np('dot')}({ones}, {x}, {out})"
