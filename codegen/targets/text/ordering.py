"""Statement order of readable code: statements of one source line are grouped.

A plan keeps the order in which memory is best used; a reader wants few changes of the source line.
"""

from __future__ import annotations

from collections import Counter
from heapq import heappop, heappush
from typing import final

from primgraph.base.user_lines import Source
from primgraph.codegen.ir.schedule import Schedule

# Longer programs are ordered without looking ahead.
_LONGEST = 1000


def order_by_source(schedule: Schedule) -> Schedule:
    """Return the steps, reordered so that few follow a step of another line.

    A line continues while it has steps whose operands exist. Then follows the line of the first
    remaining step, or the first one of which all remaining steps can follow, if there is one.
    """
    order = _Order(schedule).steps()
    return schedule if order == sorted(order) else schedule.reorder(order)


@final
class _Order:
    """The state of the reordering: what is ready, by line, and what waits for operands."""

    def __init__(self, schedule: Schedule) -> None:
        self.sources = _sources(schedule)
        self.waiting, self.readers = _needs(schedule)
        self.ready: dict[Source | None, list[int]] = {}
        self.first: list[int] = []
        self.left = Counter(self.sources)
        self.done = [False] * len(self.waiting)
        # Looking ahead takes as long as the lines that are looked at.
        self.looks_ahead = len(self.waiting) <= _LONGEST

    def steps(self) -> list[int]:
        """Return the steps in their new order."""
        for i, count in enumerate(self.waiting):
            if not count:
                self._enter(i)
        order: list[int] = []
        line: Source | None = None
        while len(order) < len(self.waiting):
            if not self.ready.get(line):
                line = self._next_line()
            i = heappop(self.ready[line])
            self.done[i] = True
            self.left[line] -= 1
            order.append(i)
            for reader in self.readers[i]:
                self.waiting[reader] -= 1
                if not self.waiting[reader]:
                    self._enter(reader)
        return order

    def _enter(self, i: int) -> None:
        heappush(self.ready.setdefault(self.sources[i], []), i)
        heappush(self.first, i)

    def _next_line(self) -> Source | None:
        """Return the line that follows where the last one has no more steps that are ready."""
        while self.done[self.first[0]]:
            heappop(self.first)
        lines = [self.sources[self.first[0]]]
        if self.looks_ahead:
            rest = sorted(i for i in self.first if not self.done[i])
            lines = [*dict.fromkeys(self.sources[i] for i in rest)]
        return next((line for line in lines if self._ends(line)), lines[0])

    def _ends(self, line: Source | None) -> bool:
        """Return whether all remaining steps of a line can follow each other."""
        found, reached = list(self.ready[line]), 0
        missing: dict[int, int] = {}
        while found:
            i = found.pop()
            reached += 1
            for reader in self.readers[i]:
                if self.sources[reader] == line:
                    missing[reader] = missing.get(reader, self.waiting[reader]) - 1
                    if not missing[reader]:
                        found.append(reader)
        return reached == self.left[line]


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
