"""Steps that are functions of C on whole arrays: how each of them is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from primgraph.codegen.plan.schedule import Step
from primgraph.ir.primitive import Op


class Call(NamedTuple):
    """A call that is to be written: its step, and where the operands and the results are.

    `room` gives memory of so many bytes, for this call alone.
    """

    step: Step
    operands: Sequence[str]
    results: Sequence[str]
    room: Callable[[int], str]


Lines: TypeAlias = Callable[[Call], Iterable[str]]

# What writes the calls for a step; None where there is no such function.
ROUTINES: dict[Op, Callable[[Step], Lines | None]] = {}


def routine(step: Step) -> Lines | None:
    """What writes the calls for `step`, if there is a function of C for it."""
    found = ROUTINES.get(step.op)
    return None if found is None else found(step)
