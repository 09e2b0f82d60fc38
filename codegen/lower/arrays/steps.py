"""Planning of steps outside loops, and of results."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, final

from primgraph.base.records import dataclass
from primgraph.codegen.ir.card import Facts
from primgraph.codegen.ir.places import (
    Argument,
    Buffer,
    Held,
    Life,
    Place,
    Result,
    View,
    is_repeated,
)
from primgraph.codegen.ir.schedule import Step, stored_shape
from primgraph.codegen.ir.statements import Call, Compute, Copy, Make, Put, Return
from primgraph.codegen.ir.views import part_shape
from primgraph.codegen.lower.arrays.lowering_state import LoweringState
from primgraph.ir.dims import is_open
from primgraph.ir.types import FLOAT32, FLOAT64, DType, broadcast_shapes
from primgraph.ir.views import Reshape, Rows, Slice


def plan_step(draft: LoweringState, i: int, step: Step) -> None:
    """Add the instructions of step `i`, which is in no loop."""
    card = draft.cards.get(step.form.op)
    if i in draft.landing.puts:
        _plan_put(draft, i, step, draft.schedule.steps[i + 1])
    elif i - 1 in draft.landing.puts:
        # Done by the previous step.
        draft.places[step.outputs[0]] = draft.landing.results[step.outputs[0]]
    elif card is None or (step.form.op.multiple and not step.form.seen):
        _call(draft, i, step)
    elif step.form.op.literal:
        _constant(draft, step)
    elif step.form.seen and draft.schedule.is_view(step.outputs[0]):
        draft.view(i, step, draft.places[step.inputs[0]])
    else:
        _compute(draft, i, step, card)


def _constant(draft: LoweringState, step: Step) -> None:
    store, number = draft.store, step.eqn.number
    place: Place
    if number is not None:
        place = store.number(number, step.results[0].dtype)
    else:
        place = store.constant(step, stored_shape(step))
    draft.places[step.outputs[0]] = place


def _compute(draft: LoweringState, i: int, step: Step, card: Facts) -> None:
    value, places = step.outputs[0], [draft.places[v] for v in step.inputs]
    operands = draft.operands(step, places)
    taken, new, landing = None, False, draft.landing
    donated = _donated_input(draft, i, step, card, places) if draft.left_in else None
    result = draft.results.get(value)
    if donated is not None:
        out: Place = donated
    elif value in landing.results:
        out = landing.results[value]
        taken = 0 if places[0] is out else None
        new = taken is None
    elif result is not None:
        out, new = result, not result.given
        if new and card.itself and _shapes_itself(draft, step, places):
            draft.places[value] = out
            draft.body.append(Compute(i, step, operands, result, new=True, itself=True))
            return
    else:
        taken = draft.reusable_operand(i, step, card, places)
        if taken is None:
            out = draft.buffers[value] = draft.store.buffer(step.form.results[0])
        else:
            out = draft.take_over(step, taken)
    draft.places[value] = out
    made = Compute(i, step, operands, out, taken, (), new, i in landing.replaced)
    add_compute(draft, made, places[0] if places else None)


def _plan_put(draft: LoweringState, i: int, step: Step, after: Step) -> None:
    """Plan a step whose result is written directly to where step `after` assigns it."""
    operands = draft.operands(step, [draft.places[v] for v in step.inputs])
    value = after.outputs[0]
    out = draft.landing.results[value]
    before, base = after.inputs[0], draft.places[after.inputs[0]]
    if base is not out:
        draft.body.append(Make(i, out))
        if i + 1 not in draft.landing.replaced:
            draft.body.append(Copy(i, before, base, out))
    needs = draft.cards[after.op].needs
    assert needs is not None
    (part,) = needs(PlanSite(draft, after, (base,), out))
    draft.body.append(Put(i, step, operands, out, part, draft.schedule.root[value]))


def _donated_input(
    draft: LoweringState, i: int, step: Step, card: Facts, places: Sequence[Place]
) -> Argument | None:
    """Return the donated input array to which the result may be written, or None.

    After this step the input must be dead, and this step may not read a view of it. No later step
    may fail, so that a failing run leaves its inputs unchanged.
    """
    schedule, value = draft.schedule, step.outputs[0]
    j = draft.left_in.get(value)
    if j is None or not card.itself or schedule.last[j] > i or i < draft.settled:
        return None
    alone = all(
        schedule.root[v] != j or draft.is_plain(v, p)
        for v, p in zip(step.inputs, places, strict=True)
    )
    return draft.arguments[j] if alone and not schedule.is_view(value) else None


def _shapes_itself(draft: LoweringState, step: Step, places: Sequence[Place]) -> bool:
    """Return whether an operation allocates the whole result, contiguous."""
    shape = step.results[0].shape
    plain = all(map(draft.is_plain, step.inputs, places))
    return bool(shape) and plain and broadcast_shapes(*(p.shape for p in places)) == shape


def _call(draft: LoweringState, i: int, step: Step) -> None:
    pairs = zip(step.inputs, step.operands, strict=True)
    operands = tuple([draft.full(draft.places[v], t) for v, t in pairs])
    outs: list[Place] = []
    for value, type in zip(step.outputs, step.results, strict=True):
        place: Place | None = draft.results.get(value)
        if place is None and is_open(type.shape):
            place = draft.store.stack(type)
        elif place is None:
            place = draft.buffers[value] = draft.store.buffer(type)
        draft.places[value] = place
        outs.append(place)
    draft.body.append(Call(i, step, operands, tuple(outs)))


def plan_results(draft: LoweringState) -> None:
    """Leave each result in an array of its own.

    Results in donated inputs are written last, as the others may read these inputs.
    """
    donated = dict(draft.options.donated)
    held = _copies_held(draft, donated)
    for k, value in sorted(enumerate(draft.schedule.outputs), key=lambda pair: pair[0] in donated):
        _result(draft, k, value, donated.get(k), held)


def _copies_held(draft: LoweringState, donated: dict[int, int]) -> dict[int, Held]:
    """Copy results that alias one donated input and are to be left in another, by value.

    Both inputs are overwritten, and neither order would be right for all such results.
    """
    schedule, held, count = draft.schedule, dict[int, Held](), 0
    for k, j in donated.items():
        value = schedule.outputs[k]
        if schedule.root[value] != j and schedule.root[value] in donated.values():
            copy = held[value] = Held(count, schedule.types[value])
            count += 1
            draft.body.append(Copy(len(schedule.steps) - 1, value, draft.places[value], copy, True))
    return held


def _result(draft: LoweringState, k: int, value: int, j: int | None, held: dict[int, Held]) -> None:
    """Leave result `k` in an array of its own, copied unless it was computed there."""
    place, last = draft.places[value], len(draft.schedule.steps) - 1
    if j is not None:
        out: Place = draft.arguments[j]
        source = held.get(value, place)
        if source is not out:
            draft.body.append(Copy(last, value, source, out))
    else:
        result = out = draft.made[k]
        if place is not out or not draft.is_plain(value, place):
            new = place.shape == draft.schedule.types[value].shape and not result.given
            if not new:
                draft.body.append(Make(last, result))
            draft.body.append(Copy(last, value, place, out, new))
    draft.body.append(Return(last, k, out))


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
