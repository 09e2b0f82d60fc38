"""Planning: lower a schedule and its regions to a program of instructions."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from primgraph.codegen.ir.arena import AnyArena, Arena, worthwhile_packing
from primgraph.codegen.ir.card import Cards
from primgraph.codegen.ir.limits import Options
from primgraph.codegen.ir.program import Plan
from primgraph.codegen.ir.schedule import Schedule, assigns
from primgraph.codegen.ir.statements import Loop, Region
from primgraph.codegen.lower.arrays.blocks import plan_region
from primgraph.codegen.lower.arrays.lowering_state import LoweringState
from primgraph.codegen.lower.arrays.steps import plan_results, plan_step


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
