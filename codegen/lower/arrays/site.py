"""A step during planning, from which a back end requests further places."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, final

from primgraph.base.records import dataclass
from primgraph.codegen.ir.places import Buffer, Life, Place, Result, View, is_repeated
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ir.statements import Compute
from primgraph.codegen.ir.views import part_shape
from primgraph.codegen.lower.arrays.lowering_state import LoweringState
from primgraph.ir.types import FLOAT32, FLOAT64, DType
from primgraph.ir.views import Reshape, Rows, Slice

# Longer rows are summed by NumPy, which is more accurate.
LONGEST_PRODUCT = 4096


@final
@dataclass(slots=True)
class PlanSite:
    """A `Site` in a plan under construction; `rows` is the axis of rows of operand 0."""

    draft: LoweringState
    step: Step
    operands: Sequence[Place]
    out: Place
    taken: int | None = None
    plain: bool = False
    rows: int | None = None

    def number(self, value: Any, dtype: DType) -> Place:
        return self.draft.store.number(value, dtype)

    def part(self, *hows: Reshape | Slice | None) -> Place:
        place = self.out
        for how in hows:
            place = self._view_place(place, how)
        return place

    def operand_part(self, position: int, how: Reshape | Slice | None) -> Place:
        return self._view_place(self.operands[position], how)

    @property
    def is_lasting(self) -> bool:
        """Return whether views of `out` are made once, or for all iterations of a loop."""
        out, trip = self.out, self.draft.options.trip
        row = isinstance(out, Result) and trip is not None and out.number >= trip[1]
        return row or out.life is Life.KEPT

    def _view_place(self, place: Place, how: Reshape | Slice | None) -> Place:
        if how is None:
            return place
        return self.draft.store.view(place, how, part_shape(how, place.shape))

    def scratch(self) -> Buffer:
        store, loop = self.draft.store, self.draft.loop
        number = -1 if loop is None else loop.number
        made = store.buffer(self.step.results[0], number, self.rows)
        # No other allocation happens before this step is done.
        store.release(made)
        return made

    def is_repeated(self, position: int) -> bool:
        place = self.operands[position]
        return place.shape != self.step.operands[position].shape or is_repeated(place)

    def sum_operands(self, axes: Sequence[int]) -> list[Place]:
        """Return ones, result and operand 0, whose product sums over `axes`; empty if impossible.

        This requires contiguous operands, and axes that come first or last, so that the operand is
        a matrix. BLAS sums in its own order, the same in every run. NumPy sums pairwise, which is
        more accurate along long rows; down the rows it sums one by one.
        """
        type, count = self.step.operands[0], len(axes)
        if not self.plain or type.dtype not in (FLOAT32, FLOAT64) or type.size <= 1 or not count:
            return []
        number = prod(type.shape[a] for a in axes)
        first = tuple(axes) == tuple(range(count))
        last = tuple(axes) == tuple(range(type.ndim - count, type.ndim))
        looped = self.draft.loop is not None and self.rows in axes
        if (last and number > LONGEST_PRODUCT) or not (first or last) or (looped and count > 1):
            return []
        loop = self.draft.loop.number if self.draft.loop is not None and looped else -1
        ones = self.draft.store.ones(number, type.dtype, loop)
        flat = len(self.step.results[0].shape) > 1
        out = self.part(Reshape((-1,)) if flat else None)
        if last:
            row = Rows(-1) if looped else number
            shaped = type.ndim == 1 + (count < type.ndim)
            matrix = Reshape((-1,) if count == type.ndim else (-1, row))
        else:
            shaped = type.ndim == 2 and count == 1
            matrix = Reshape((Rows(0) if looped else number, -1))
        return [ones, out, self.operand_part(0, None if shaped else matrix)]


def add_compute(
    draft: LoweringState,
    x: Compute,
    first: Place | None,
    rows: int | None = None,
) -> None:
    """Add a statement, with the places that the back end requests besides operands and result.

    `first` is the place of operand 0 before it is broadcast, `rows` its axis of rows.
    """
    needs, step = draft.cards[x.step.op].needs, x.step
    if needs is not None:
        whole = first is not None and first.shape == step.operands[0].shape
        plain = whole and not isinstance(first, View)
        site = PlanSite(draft, step, x.operands, x.out, x.taken, plain, rows)
        x = x._replace(parts=tuple(needs(site)))
    draft.body.append(x)
