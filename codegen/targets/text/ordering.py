"""Statement order of readable code: statements of one source line are grouped.

A plan keeps the order in which memory is best used; a reader wants few changes of the source line.
"""

from __future__ import annotations

from heapq import heappop, heappush

from primgraph.base.user_lines import Source
from primgraph.codegen.ir.schedule import Schedule


def order_by_source(schedule: Schedule) -> Schedule:
    """Return the steps, reordered so that few follow a step of another line.

    A line continues while it has steps whose operands exist; then the first remaining step follows.
    """
    sources = _sources(schedule)
    waiting, readers = _needs(schedule)
    ready: dict[Source | None, list[int]] = {}
    first: list[int] = []

    def enter(i: int) -> None:
        heappush(ready.setdefault(sources[i], []), i)
        heappush(first, i)

    for i, count in enumerate(waiting):
        if not count:
            enter(i)
    order: list[int] = []
    done = [False] * len(waiting)
    line: Source | None = None
    while len(order) < len(waiting):
        if not ready.get(line):
            while done[first[0]]:
                heappop(first)
            line = sources[first[0]]
        i = heappop(ready[line])
        done[i] = True
        order.append(i)
        for reader in readers[i]:
            waiting[reader] -= 1
            if not waiting[reader]:
                enter(reader)
    return schedule if order == sorted(order) else schedule.reorder(order)


def _sources(schedule: Schedule) -> list[Source | None]:
    """Return the line of each step; literals and steps without one take the previous line."""
    found: list[Source | None] = []
    last: Source | None = None
    for step in schedule.steps:
        last = (None if step.op.literal else step.source) or last
        found.append(last)
    return found


def _needs(schedule: Schedule) -> tuple[list[int], list[list[int]]]:
    """Return the number of computed operands of each step, and the steps that read each step."""
    made = {v: i for i, step in enumerate(schedule.steps) for v in step.outputs}
    waiting = [0] * len(schedule.steps)
    readers: list[list[int]] = [[] for _ in schedule.steps]
    for i, step in enumerate(schedule.steps):
        for value in step.inputs:
            if value in made:
                waiting[i] += 1
                readers[made[value]].append(i)
    return waiting, readers
