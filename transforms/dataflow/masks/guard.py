"""Guards: conditions under which a value matters, because another value is selected elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from primgraph.base.records import dataclass
from primgraph.ir.graph import Value
from primgraph.transforms.dataflow.masks.slope_risks import ALWAYS, AT_NAN


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition under which a value matters: `condition` is `side`.

    `strict` if inputs may be infinite or NaN elsewhere. `risky` if a factor between the value and
    the selection may be infinite or NaN.
    """

    condition: Value
    side: bool
    strict: bool = False
    risky: bool = False

    @property
    def least(self) -> int:
        """Return the lowest risk at which a derivative needs this guard."""
        return AT_NAN if self.strict else ALWAYS


Guards: TypeAlias = tuple[Guard, ...]


def common(uses: Sequence[Guards]) -> Guards:
    """Return the guards of the first use that all other uses share."""
    shared = set(sides(uses[0])).intersection(*map(sides, uses[1:]))
    return tuple(g for g in uses[0] if (g.condition, g.side) in shared)


def sides(guards: Guards) -> tuple[tuple[Value, bool], ...]:
    return tuple((g.condition, g.side) for g in guards)
