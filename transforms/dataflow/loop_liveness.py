"""Where what a loop carries on matters behind a trip: at the end of the loop, or to later trips.

What is carried on matters to rows of stacks as well as to what the loop ends with. Where rows
differ, so do trips: behind each of them it matters where the end or a later row asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import final

from primgraph.ir.graph import Value
from primgraph.ir.types import BOOL, INT64, Shape
from primgraph.primitives.constants import full
from primgraph.primitives.elementwise import cast
from primgraph.primitives.logic import not_equal
from primgraph.primitives.reductions import cumsum
from primgraph.primitives.shapes import broadcast
from primgraph.transforms.dataflow.masks.conditions import Conditions, any_along
from primgraph.transforms.dataflow.masks.repeated_conditions import apart, of_row, spread


@final
@dataclass(frozen=True, slots=True)
class Ahead:
    """Where it matters what is carried on: `behind` each trip, maybe as a stack, and `first`,
    before all trips.

    Before each trip that is where it matters behind it, or where all conditions in one of
    `reasons` hold, which are stacks.
    """

    behind: Value
    first: Value
    reasons: list[list[Value]]


def ahead(
    conditions: Conditions,
    ends: Sequence[Sequence[Value]],
    rows: Sequence[Sequence[Value]],
    stack: Shape,
    *,
    reverse: bool,
) -> Ahead | None:
    """Where it matters what is carried on: at the end where all conditions in one of `ends` hold,
    in each trip where all of those in one of `rows` do, which may be stacks, of the shape `stack`.

    With `reverse` the last trip comes first. None if it matters everywhere.
    """
    shape = stack[1:]
    end = _any_of(conditions, ends, shape)
    if all(c.shape == shape for row in rows for c in row):
        behind = first = conditions.either(end, _any_of(conditions, rows, shape))
    else:
        row = _any_of(conditions, [[spread(conditions, c, stack) for c in r] for r in rows], stack)
        later = _later(conditions, row, reverse=reverse)
        behind = of_row(conditions, conditions.either(later, spread(conditions, end, stack)))
        first = conditions.either(end, any_along(conditions, row, (0,)))
    if conditions.always(behind):
        return None
    return Ahead(behind, first, [[spread(conditions, c, stack) for c in row] for row in rows])


def _any_of(conditions: Conditions, found: Iterable[Sequence[Value]], shape: Shape) -> Value:
    """Where all conditions in one of `found` hold."""
    nowhere = conditions.record(full, value=False, shape=shape, dtype=BOOL)
    return reduce(conditions.either, [reduce(conditions.both, row) for row in found], nowhere)


def _later(conditions: Conditions, row: Value, *, reverse: bool) -> Value:
    """Where `row` holds in some later row; `reverse` if these stand in front."""
    eqn = conditions.definition(row)
    if eqn is not None and eqn.op is broadcast and 0 not in eqn.kwargs["new_axes"]:
        found = _later(conditions, eqn.inputs[0], reverse=reverse)
        return conditions.record(broadcast, found, **eqn.kwargs)
    differing, alike = apart(conditions, row, (0,))
    if alike and differing:
        found = _later(conditions, reduce(conditions.both, differing), reverse=reverse)
        return reduce(conditions.both, [spread(conditions, c, row.shape) for c in alike], found)
    here = conditions.record(cast, row, dtype=INT64)
    ahead = conditions.record(cumsum, here, axis=0, reverse=not reverse)
    return conditions.record(not_equal, ahead, here)
