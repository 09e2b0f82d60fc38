"""Guards: where a value matters, as something else is chosen elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from primgraph.ir.graph import Value
from primgraph.transforms.dataflow.masks.slope_risks import ALWAYS, AT_NAN


@dataclass(frozen=True, slots=True)
class Guard:
    """A value matters only where `condition` is `side`.

    `strict` if inputs may be infinite or NaN elsewhere. `risky` if a factor on the way to what
    chooses may be.
    """

    condition: Value
    side: bool
    strict: bool = False
    risky: bool = False

    @property
    def least(self) -> int:
        """The risk from which on slopes count."""
        return AT_NAN if self.strict else ALWAYS


Guards: TypeAlias = tuple[Guard, ...]


def common(uses: Sequence[Guards]) -> Guards:
    """The guards of the first use that all others have."""
    shared = set(sides(uses[0])).intersection(*map(sides, uses[1:]))
    return tuple(g for g in uses[0] if (g.condition, g.side) in shared)


def sides(guards: Guards) -> tuple[tuple[Value, bool], ...]:
    return tuple((g.condition, g.side) for g in guards)
