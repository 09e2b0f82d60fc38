"""Plans: statements on typed places, or on values in memory, for back ends to print."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, final

from primgraph.base.providers import late
from primgraph.base.records import dataclass
from primgraph.codegen.ir.card import Cards
from primgraph.codegen.ir.limits import Options
from primgraph.codegen.ir.places import Argument, Buffer, Fixed, Ones, Stack, View
from primgraph.codegen.ir.schedule import Schedule
from primgraph.codegen.ir.statements import Control, HostCall, Instruction, Loop, Nests, Region
from primgraph.ir.dims import is_open

if TYPE_CHECKING:
    from primgraph.codegen.ir import text as plan_text
else:
    plan_text = late("primgraph.codegen.ir.text")


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """Instructions of a kernel; it prints as a listing.

    `constants` and kept `arrays` are in the order of first use, `buffers` in the order of
    allocation. `arena` is the size of the workspace in bytes; `least` is the peak of live bytes, a
    lower bound of it. `space` is the size of a second arena for buffers of blocks, one per thread.
    `cards` are the back end's. For a native kernel, `native` lists what C and what NumPy computes.
    `choice` says which of both runs, if that is chosen by measured times.
    """

    schedule: Schedule
    options: Options
    arguments: tuple[Argument, ...]
    constants: tuple[Fixed, ...]
    arrays: tuple[Buffer | Stack | View | Ones, ...]
    buffers: tuple[Buffer, ...]
    body: tuple[Instruction, ...]
    loops: tuple[Loop, ...]
    arena: int
    least: int
    space: int
    cards: Cards
    bodies: tuple[Plan, ...] = ()
    native: tuple[str, ...] = ()
    choice: str = ""

    @property
    def regions(self) -> tuple[Region, ...]:
        """Return the regions that run in blocks."""
        return tuple(loop.region for loop in self.loops)

    def flat(self) -> Iterator[Instruction]:
        """Yield all instructions in order, with those of loops in place of the loops."""
        for instruction in self.body:
            if isinstance(instruction, Loop):
                yield from instruction.body
                yield from instruction.totals
            else:
                yield instruction

    def __str__(self) -> str:
        return plan_text.listing(self)


def stays_inside(plan: Nests) -> bool:
    """Return whether all growing stacks are only passed between loops in C; true without any."""
    if not any(is_open(type.shape) for type in plan.schedule.types):
        return True
    for item in plan.items:
        loops = isinstance(item, Control) and item.is_loop
        if isinstance(item, HostCall):
            return False
        steps = [item.step] if isinstance(item, Control) else []
        types = [t for step in steps for t in (*step.operands, *step.results)]
        if not loops and any(is_open(t.shape) for t in types):
            return False
    return True
