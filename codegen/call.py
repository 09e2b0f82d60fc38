"""What a step is written for, and how the code is going to be used."""

from __future__ import annotations

from dataclasses import dataclass
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

    `into` has the results written into arrays that the caller gives. `poisoned` fills memory
    with ones, which are NaNs, when nothing is to be read from it: a fault then shows.
    """

    donated: tuple[tuple[int, int], ...] = ()
    into: bool = False
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

    def ones(self, axis: int) -> str:
        """Ones for sums of matrices and short vectors in row-major order, by BLAS.

        It adds up in an order of its own, the same in every run. NumPy adds pairs of halves,
        which is more accurate where a row is long; down the rows it adds one after the other.
        """
        type = self.step.operands[0]
        count = type.shape[axis]
        matrix = type.ndim == 2 and (axis == 0 or count <= LONGEST_PRODUCT)
        vector = type.ndim == 1 and count <= LONGEST_PRODUCT
        fits = type.dtype in (FLOAT32, FLOAT64) and type.size > 1
        if not (self.plain and fits and (matrix or vector)):
            return ""
        return self.planner.ones(count, type.dtype, axis)
