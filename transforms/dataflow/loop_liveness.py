"""Liveness of loop carries: where a carry matters after an iteration.

A carry matters to the final result and to rows of stacked outputs. Where rows have different
conditions, so have iterations: a carry matters after an iteration if the end or a later row needs
it.
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
from primgraph.transforms.dataflow.locality import repeated_axes
from primgraph.transforms.dataflow.masks.conditions import Conditions, any_along
from primgraph.transforms.dataflow.masks.repeated_conditions import (
    apart,
    of_row,
    repeated,
    spread,
)


@final
@dataclass(frozen=True, slots=True)
class Ahead:
    """Liveness of carries: conditions `behind` each iteration, and `first`, before all iterations.

    `behind` may be a stack with one condition per iteration. Before an iteration a carry matters
    where it matters after it, or where all conditions in one of `reasons` (stacks) hold.
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
    """Return where carries matter, or None if they matter everywhere.

    They matter at the end where all conditions in one of `ends` hold. In each iteration they matter
    where all conditions in one of `rows` hold, which may be stacks of the shape `stack`. With
    `reverse`, the last iteration runs first.
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
    """Record where all conditions in at least one of `found` hold."""
    nowhere = conditions.record(full, value=False, shape=shape, dtype=BOOL)
    return reduce(conditions.either, [reduce(conditions.both, row) for row in found], nowhere)


def _later(conditions: Conditions, row: Value, *, reverse: bool) -> Value:
    """Record where `row` holds in a later row; with `reverse`, later rows come first."""
    eqn = conditions.definition(row)
    axes = repeated_axes(eqn)
    if eqn is not None and axes and 0 not in axes:
        found = _later(conditions, eqn.inputs[0], reverse=reverse)
        return repeated(conditions, found, row.shape, axes)
    differing, alike = apart(conditions, row, (0,))
    if alike and differing:
        found = _later(conditions, reduce(conditions.both, differing), reverse=reverse)
        return reduce(conditions.both, [spread(conditions, c, row.shape) for c in alike], found)
    here = conditions.record(cast, row, dtype=INT64)
    ahead = conditions.record(cumsum, here, axis=0, reverse=not reverse)
    return conditions.record(not_equal, ahead, here)
