"""One walk over branches and loops: the order of what is written, for the words of a target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, final

from primgraph.codegen.ir.schedule import Step
from primgraph.ir.graph import Graph
from primgraph.ir.types import BOOL, TensorType
from primgraph.primitives.control import Flow, split_operands

V = TypeVar("V")


@final
@dataclass(frozen=True, slots=True)
class Loop(Generic[V]):
    """A loop: its operands and results by their roles.

    `fixed` are constants of the body, `state` the first carries, and `scanned` stacks of which each
    iteration reads a row. `count` is the operand that bounds the number of iterations. The results
    are the last carries `ends`, the `number` of iterations, and `stacks` of their rows.
    """

    step: Step
    fixed: list[V]
    state: list[V]
    scanned: list[V]
    count: V | None
    ends: Sequence[V]
    number: V | None
    stacks: Sequence[V]

    @property
    def params(self) -> dict[str, Any]:
        return self.step.params

    @property
    def kinds(self) -> Sequence[TensorType]:
        """Types of carries."""
        return self.step.results[: len(self.ends)]

    @property
    def stacked_kinds(self) -> Sequence[TensorType]:
        """Types of the stacks of results."""
        return self.step.results[len(self.step.results) - len(self.stacks) :]

    @property
    def scanned_kinds(self) -> Sequence[TensorType]:
        """Types of the stacks that are read."""
        return self.step.operands[len(self.step.operands) - len(self.scanned) :]

    @property
    def body(self) -> Graph:
        body: Graph = self.params["body"]
        return body


def is_flag(step: Step) -> bool:
    """Return whether a branch is chosen by a truth value."""
    return step.operands[0].dtype == BOOL and len(step.params["branches"]) == 2


def loop_of(step: Step, operands: Sequence[V], results: Sequence[V]) -> Loop[V]:
    """Return the loop of a step with these operands and results."""
    regions = step.regions
    assert regions is not None
    lead, carries = regions.lead, regions.carries
    begin = carries + regions.counts
    return Loop(
        step,
        *split_operands(operands[lead:], regions.consts, carries),
        operands[0] if lead else None,
        results[:carries],
        results[carries] if regions.counts else None,
        results[begin:],
    )


class Words(Protocol[V]):
    """Words of a target for branches and loops; values are what it calls arrays."""

    def choose(self, index: V) -> Sequence[int]:
        """Begin a choice; return the branches in the order in which they are written."""

    def case(self, at: int) -> None:
        """Open the block of the branch at that place in the order; it ends the one before."""

    def body(self, k: int, given: Sequence[V], made: Sequence[V]) -> None:
        """Write body `k`, of the values `given`, whose results are those `made`."""

    def close(self) -> None:
        """Close the innermost block."""

    def begin(self, loop: Loop[V]) -> Sequence[V]:
        """Write what precedes a loop; return the carries in it."""

    def repeat(self, loop: Loop[V]) -> Sequence[V]:
        """Open the block of an iteration; return the rows that it reads."""

    def test(self, loop: Loop[V], given: Sequence[V]) -> None:
        """Write the test of an iteration, which may end the loop."""

    def trip(self, loop: Loop[V], given: Sequence[V]) -> None:
        """Write an iteration: the body, the rows that it makes, and the next carries."""

    def end(self, loop: Loop[V]) -> None:
        """Write what follows a loop."""


def write_flow(words: Words[V], step: Step, operands: Sequence[V], results: Sequence[V]) -> None:
    """Write a branch, a loop or a checkpoint."""
    flow = step.flow
    if flow is Flow.ONCE:
        words.body(0, operands, results)
    elif flow is Flow.CHOICE:
        index, *given = operands
        for at, k in enumerate(words.choose(index)):
            words.case(at)
            words.body(k, given, results)
        words.close()
    else:
        loop = loop_of(step, operands, results)
        carried = [*loop.fixed, *words.begin(loop)]
        rows = words.repeat(loop)
        if flow is Flow.TEST:
            words.test(loop, carried)
        words.trip(loop, [*carried, *rows])
        words.close()
        words.end(loop)
