"""Copy elision: assemble arrays part by part in the array of a result.

A chain begins with an array of which part after part is replaced. Each intermediate value is read
by the next step only, so that all of them share one array. If the last one is a result, this is the
result's array, and parts are computed in place. If the parts cover the whole, the initial array is
not written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np

from primgraph.codegen.ir.card import Cards
from primgraph.codegen.ir.places import Result
from primgraph.codegen.ir.schedule import Schedule, Step, assigns
from primgraph.codegen.lower.arrays.lowering_state import CopyElision

# Making a view of a result in each call takes as long as copying this many bytes.
_VIEW_BYTES = 6144
# Larger arrays are not searched for gaps.
_MOST = 2**24


def find_elidable_chains(
    schedule: Schedule, cards: Cards, results: Mapping[int, Result], inside: Collection[int]
) -> CopyElision:
    """Find the chains of `schedule` that can be elided, except those with steps in loops."""
    lands: dict[int, Result] = {}
    replaced, puts = set(), set()
    for value, chain in chains(schedule, inside):
        steps = [schedule.steps[k] for k in chain]
        result = results.get(value)
        if result is not None and not result.given and _is_worth(steps):
            lands.update(dict.fromkeys([s.outputs[0] for s in steps], result))
            for k, step in zip(chain, steps, strict=True):
                before = k - 1
                alone = before >= 0 and before not in inside
                if alone and _is_put(schedule, cards, schedule.steps[before], step):
                    puts.add(before)
        if leaves_nothing(steps):
            replaced.add(chain[0])
    return CopyElision(lands, replaced, puts)


def sink_parts(schedule: Schedule, cards: Cards, outputs: Collection[int]) -> Schedule:
    """Move each step that computes a part of one of `outputs` right before its assignment."""
    made: dict[int, int] = {}
    moved: dict[int, int] = {}
    for value, chain in chains(schedule, ()):
        if value not in outputs or not _is_worth([schedule.steps[k] for k in chain]):
            continue
        made = made or {v: i for i, s in enumerate(schedule.steps) for v in s.outputs}
        for k in chain:
            before = made.get(schedule.steps[k].inputs[1], -1)
            fits = before >= 0 and before != k - 1
            if fits and _is_put(schedule, cards, schedule.steps[before], schedule.steps[k]):
                moved[before] = k
    if not moved:
        return schedule
    waiting = {k: before for before, k in moved.items()}
    order: list[int] = []
    for i in range(len(schedule.steps)):
        if i in waiting:
            order.append(waiting[i])
        if i not in moved:
            order.append(i)
    return schedule.reorder(order)


def chains(schedule: Schedule, inside: Collection[int]) -> Iterator[tuple[int, list[int]]]:
    """Yield the values assembled part by part, with the assigning steps in order."""
    made: dict[int, int] = {}
    followed = set()
    for i, step in enumerate(schedule.steps):
        if i in inside or step.results[0].names or not assigns(step):
            continue
        x, y = step.inputs
        if x in made and schedule.uses[x] == 1 and x != schedule.root[y]:
            followed.add(x)
        made[step.outputs[0]] = i
    for value, i in made.items():
        if value in followed:
            continue
        chain = [i]
        while (x := schedule.steps[chain[-1]].inputs[0]) in followed:
            chain.append(made[x])
        yield value, chain[::-1]


def _is_worth(steps: list[Step]) -> bool:
    return steps[0].results[0].nbytes >= _VIEW_BYTES * len(steps)


def _is_put(schedule: Schedule, cards: Cards, step: Step, put: Step) -> bool:
    """Return whether a step only computes the assigned part, and can write it in place."""
    card, y = cards.get(step.op), put.inputs[1]
    if card is None or not card.itself or card.needs is not None or len(step.outputs) > 1:
        return False
    if not card.spaced and not _is_run(put):
        return False
    return step.outputs[0] == y and schedule.uses[y] == 1 and not schedule.is_view(y)


def _is_run(put: Step) -> bool:
    """Return whether the assigned part is contiguous in memory."""
    whole, part = put.results[0].shape, put.operands[1].shape
    return part[1:] == whole[1:] and all(n == 1 for n in put.params["steps"])


def leaves_nothing(steps: list[Step]) -> bool:
    """Return whether the parts cover the whole array."""
    type = steps[0].results[0]
    if type.size > _MOST or sum(s.operands[1].size for s in steps) < type.size:
        return False
    left = np.ones(type.shape, np.bool_)
    for step in steps:
        p, shape = step.params, step.operands[1].shape
        left[tuple(map(_range, p["starts"], shape, p["steps"]))] = False
    return not left.any()


def _range(start: int, size: int, step: int) -> slice:
    end = start + size * step
    return slice(start, None if end < 0 else end, step)
