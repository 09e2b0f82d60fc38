"""Planning: a schedule and its regions become a program of instructions."""

from __future__ import annotations

from primgraph.codegen.plan.blocks import plan_region
from primgraph.codegen.plan.card import Cards
from primgraph.codegen.plan.draft import Draft
from primgraph.codegen.plan.program import Loop, Options, Plan
from primgraph.codegen.plan.regions import Region
from primgraph.codegen.plan.schedule import Schedule
from primgraph.codegen.plan.steps import plan_results, plan_step


def planned(
    schedule: Schedule,
    regions: tuple[Region, ...],
    options: Options,
    cards: Cards,
) -> Plan:
    """What is done step by step, and where, for a back end that has these `cards`."""
    draft = Draft(schedule, cards, options)
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
        store.arena.size,
        store.arena.least,
        store.space.size,
        cards,
    )
