"""A graph, or the body of a branch or loop, while its items are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import final

from primgraph.codegen.emit.identifiers import called
from primgraph.codegen.export.needed import needed
from primgraph.codegen.export.places import Place, Room, number
from primgraph.codegen.native.items import Item, Nests


@final
@dataclass(slots=True)
class Scope:
    """The items of a graph, or of a body, and where their values are.

    `names` are what the user calls values, `read` those in memory that are read, and `given` the
    memory that is free again behind an item; `at` is the current one.
    """

    plan: Nests
    names: Mapping[int, str]
    places: dict[int, Place]
    items: Sequence[Item | None]
    read: Set[int]
    given: dict[int, list[Room]] = field(default_factory=dict)
    at: int = 0

    def same(self, value: int) -> str:
        """The number that all elements of a constant are; empty for anything else."""
        array = self.plan.constants.get(value)
        if array is None or array.size == 0:
            return ""
        first = array.reshape(-1)[:1]
        is_same = array.tobytes() == first.tobytes() * array.size
        return number(first[0], array.dtype) if is_same else ""


def scope_of(plan: Nests, places: Mapping[int, Place]) -> Scope:
    """The scope of a plan, before anything of it is written."""
    return Scope(plan, hints_of(plan), dict(places), *needed(plan))


def hints_of(plan: Nests) -> dict[int, str]:
    """What the user calls values."""
    steps = plan.schedule
    return called(steps, (), ("",) * len(steps.outputs))
