"""The scope of a graph or a body while its items are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import final

from primgraph.codegen.ir.statements import Item, Nests
from primgraph.codegen.targets.export.needed import needed_items
from primgraph.codegen.targets.export.places import Place, Room, number
from primgraph.codegen.targets.text.identifiers import name_values


@final
@dataclass(slots=True)
class Scope:
    """The items of a graph or a body, and the places of their values.

    `names` are the user's names of values, `read` the values in memory that are read. `given` has
    the memory that is freed after an item; `at` is the current item.
    """

    plan: Nests
    names: Mapping[int, str]
    places: dict[int, Place]
    items: Sequence[Item | None]
    read: Set[int]
    given: dict[int, list[Room]] = field(default_factory=dict)
    at: int = 0

    def same(self, value: int) -> str:
        """Return the number that all elements of a constant equal; empty if there is none."""
        array = self.plan.constants.get(value)
        if array is None or array.size == 0:
            return ""
        first = array.reshape(-1)[:1]
        is_same = array.tobytes() == first.tobytes() * array.size
        return number(first[0], array.dtype) if is_same else ""


def scope_of(plan: Nests, places: Mapping[int, Place]) -> Scope:
    """Return the initial scope of a plan."""
    return Scope(plan, hints_of(plan), dict(places), *needed_items(plan))


def hints_of(plan: Nests) -> dict[int, str]:
    """Return the user's names of values."""
    steps = plan.schedule
    return name_values(steps, (), ("",) * len(steps.outputs))
