"""Planning: lower a schedule and its regions to a program of instructions."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from primgraph.codegen.ir.arena import AnyArena, Arena, worthwhile_packing
from primgraph.codegen.ir.axis_semantics import Role, restrict_rows
from primgraph.codegen.ir.card import Cards
from primgraph.codegen.ir.limits import Options
from primgraph.codegen.ir.places import Argument, Place
from primgraph.codegen.ir.program import Plan
from primgraph.codegen.ir.schedule import Schedule, Step, assigns
from primgraph.codegen.ir.statements import (
    Combine,
    Compute,
    Copy,
    Fill,
    Instruction,
    Loop,
    Make,
    Region,
)
from primgraph.codegen.ir.views import Cut
from primgraph.codegen.lower.arrays.lowering_state import LoopDraft, LoweringState
from primgraph.codegen.lower.arrays.steps import add_compute, plan_results, plan_step
from primgraph.ir.types import DType, Shape


def plan_region(draft: LoweringState, region: Region, number: int) -> Loop:
    """Add and return the loop of a region, with the instructions before and after it."""
    loop, outer = _begin_loop(draft, region, number), draft.body
    body: list[Instruction] = []
    draft.loop, draft.body = loop, body
    for i in range(region.start, region.stop):
        step = draft.schedule.steps[i]
        _plan_step(draft, loop, i, step)
        draft.release(i, (*step.inputs, *step.outputs))
    last, totals = region.stop - 1, list[Instruction]()
    for total in loop.totals:
        totals.append(total)
        draft.free(last, total.part, totals)
    draft.loop, draft.body = None, outer
    made = Loop(region.start, number, region, tuple(body), tuple(totals))
    draft.body.append(made)
    draft.places.update(loop.sums)
    draft.places.update(loop.whole)
    for i in region.views:
        step = draft.schedule.steps[i]
        draft.view(last, step, draft.places[step.inputs[0]])
    draft.release(last, loop.touched)
    return made


def _begin_loop(draft: LoweringState, region: Region, number: int) -> LoopDraft:
    """Return the loop, with the arrays that it fills and the totals that it accumulates."""
    loop, start = LoopDraft(region, number), region.start
    for value, combine in region.totals.items():
        place = loop.sums[value] = draft.whole(start, value)
        dtype = draft.schedule.types[value].dtype
        draft.body.append(Fill(start, place, _neutral(combine, dtype), dtype))
    for value in region.kept:
        given = _donated_input(draft, value, region)
        if given is None:
            loop.whole[value] = draft.whole(start, value)
        else:
            loop.whole[value] = given
            draft.body.append(Make(start, given))
    return loop


def _donated_input(draft: LoweringState, value: int, region: Region) -> Argument | None:
    """Return the donated input array into which the rows of `value` may be written, or None.

    No step may read the input after the step that computes `value`. Before, only the rows of the
    block may be read, and that step may not read a view of it. No step of the loop may fail.
    """
    schedule = draft.schedule
    j = draft.left_in.get(value)
    if j is None or schedule.last[j] >= region.stop or region.start < draft.settled:
        return None
    for k, role in enumerate(region.roles):
        step = schedule.steps[region.start + k]
        for operand, axis in zip(step.inputs, role.operands, strict=True):
            if schedule.root[operand] == j and (operand != j or axis != region.axis[value]):
                return None
        if value in step.outputs:
            alone = schedule.last[j] <= region.start + k
            return draft.arguments[j] if draft.cards[step.op].itself and alone else None
    return None


# The steps of a loop.


def _plan_step(draft: LoweringState, loop: LoopDraft, i: int, step: Step) -> None:
    region = loop.region
    role = region.roles[i - region.start]
    card = draft.cards[step.op]
    local = restrict_rows(step, card.blocking, role, region.rows)
    if step.form.seen and draft.schedule.is_view(step.outputs[0]):
        draft.view(i, local, draft.places[step.inputs[0]], role.operands[0], role.axis)
        return
    places = [
        _operand(draft, loop, step, k, axis, k in card.broadcasts)
        for k, axis in enumerate(role.operands)
    ]
    operands = draft.operands(local, places, role.operands)
    if role.axis is None:
        part = draft.store.buffer(local.results[0], loop.number)
        add_compute(draft, Compute(i, local, operands, part), places[0], role.operands[0])
        _add_up(draft, loop, Combine(i, role.combine, part, loop.sums[step.outputs[0]]))
    else:
        _fill(draft, loop, i, local, operands, places, role)


def _operand(
    draft: LoweringState, loop: LoopDraft, step: Step, k: int, axis: int | None, small: bool
) -> Place:
    """Return the place of operand `k`, sliced to the rows of the block if from outside."""
    value, type = step.inputs[k], step.operands[k]
    place = draft.places[value]
    if axis is None or value in loop.region.axis:
        return place
    if not small:
        place = draft.full(place, type)
    shape, cut = _local_shape(place.shape, type.shape, axis, loop.region.rows)
    return place if cut is None else draft.store.view(place, Cut(cut, loop.number), shape)


def _local_shape(shape: Shape, full: Shape, axis: int, rows: int) -> tuple[Shape, int | None]:
    """Return the shape of a block of an array broadcast to `full`, and the axis to slice.

    The axis is None if all rows are equal.
    """
    place = axis - (len(full) - len(shape))
    if place < 0 or shape[place] != full[axis]:
        return shape, None
    return (*shape[:place], rows, *shape[place + 1 :]), place


def _add_up(draft: LoweringState, loop: LoopDraft, combine: Combine) -> None:
    """Add a block's partial result to a total; in threads in the order of the blocks."""
    if loop.region.threads > 1:
        loop.totals.append(combine)
        return
    draft.body.append(combine)
    draft.free(combine.at, combine.part, draft.body)


def _fill(
    draft: LoweringState,
    loop: LoopDraft,
    i: int,
    step: Step,
    operands: tuple[Place, ...],
    places: Sequence[Place],
    role: Role,
) -> None:
    """Compute a block of rows, in its final place if the operation supports that."""
    value, type, axis, card = step.outputs[0], step.results[0], role.axis, draft.cards[step.op]
    assert axis is not None
    whole, taken, buffer = loop.whole.get(value), None, None
    rows = None if whole is None else draft.store.view(whole, Cut(axis, loop.number), type.shape)
    if rows is not None and (axis == 0 or (card.itself and card.spaced)):
        out: Place = rows
    elif rows is None and (taken := draft.reusable_operand(i, step, card, places)) is not None:
        out = draft.take_over(step, taken)
    else:
        out = buffer = draft.store.buffer(type, loop.number, axis)
        if rows is None:
            draft.buffers[value] = buffer
    draft.places[value] = out if rows is None else rows
    first = places[0] if places else None
    add_compute(draft, Compute(i, step, operands, out, taken), first, role.operands[0])
    if rows is not None and buffer is not None:
        # Only some operations can write to rows that are not contiguous.
        draft.body.append(Copy(i, value, out, rows))
        draft.free(i, buffer, draft.body)


def _neutral(combine: str, dtype: DType) -> bool | int | float | complex:
    """Return the neutral element of `combine`; for a sum it is -0."""
    if combine in ("add", "multiply"):
        if dtype.kind == "c" and combine == "add":
            return complex(-0.0, -0.0)
        one: bool | int | float = dtype.type(combine == "multiply").item()
        return -0.0 if dtype.kind == "f" and combine == "add" else one
    if dtype.kind == "b":
        return combine == "minimum"
    if dtype.kind == "f":
        return np.inf if combine == "minimum" else -np.inf
    limits = np.iinfo(dtype)
    return int(limits.min if combine == "maximum" else limits.max)


def load_copy_elision(schedule: Schedule) -> Any:
    """Return the module that finds landings, or None where no step writes a part of an array.

    Few programs need it: it is loaded by the first one that does.
    """
    if any(map(assigns, schedule.steps)):
        return import_module("primgraph.codegen.lower.arrays.copy_elision")
    return None


def plan_schedule(
    schedule: Schedule,
    regions: tuple[Region, ...],
    options: Options,
    cards: Cards,
) -> Plan:
    """Plan `schedule` with its `regions` for a back end with these `cards`.

    Lifetimes are known when everything is planned. If packing then saves enough memory, everything
    is planned again with the packed arena; nothing else depends on it.
    """
    arena = Arena()
    plan = _build_plan(schedule, regions, options, cards, arena)
    better = worthwhile_packing(arena)
    return plan if better is None else _build_plan(schedule, regions, options, cards, better)


def _build_plan(
    schedule: Schedule,
    regions: tuple[Region, ...],
    options: Options,
    cards: Cards,
    arena: AnyArena,
) -> Plan:
    inside = frozenset([i for r in regions for i in range(r.start, r.stop)])
    draft = LoweringState(schedule, cards, options, arena)
    found = load_copy_elision(schedule)
    if found is not None:
        free = {v: r for v, r in draft.results.items() if v not in draft.left_in}
        draft.landing = found.find_elidable_chains(schedule, cards, free, inside)
    begins = {r.start: (r, number) for number, r in enumerate(regions)}
    i, steps, loops = 0, schedule.steps, list[Loop]()
    while i < len(steps):
        if i in begins:
            region, number = begins[i]
            loops.append(plan_region(draft, region, number))
            i = region.stop
            continue
        step = steps[i]
        plan_step(draft, i, step)
        draft.release(i, (*step.inputs, *step.outputs))
        i += 1
    plan_results(draft)
    store = draft.store
    return Plan(
        schedule,
        options,
        draft.arguments,
        tuple(store.constants),
        tuple(store.arrays),
        tuple(store.buffers),
        tuple(draft.body),
        tuple(loops),
        arena.size,
        arena.least,
        store.space.size,
        cards,
    )
