"""An independent reading of a kernel's plan: who owns which bytes when, step by step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from primgraph.codegen.arena import ALIGN, rounded
from primgraph.codegen.limits import Limits
from primgraph.codegen.load import Loaded, render
from primgraph.codegen.plan import Plan, PlanStep
from primgraph.codegen.planned import Options, plan_of, planned
from primgraph.codegen.regions import Region, arranged
from primgraph.codegen.schedule import schedule
from primgraph.codegen.workspace import Storage
from primgraph.ir.graph import Graph

# Everything in blocks of two or three rows, however small it is; then in threads too.
SMALL = Limits(cache=1, least_bytes=1, least_block=1, rows=2)
# Nothing in blocks.
NEVER = Limits(cache=1 << 60)
SHARED = replace(SMALL, processors=2, least_share=0)


class _Memory:
    """The owner of each line of an arena, as a number; -1 where nothing has been written."""

    def __init__(self, plan: Plan, size: int) -> None:
        self.owner = np.full(size // ALIGN, -1)
        self.number = {s: i for i, s in enumerate(plan.buffers)}

    def lines(self, storage: Storage) -> Any:
        start = storage.offset // ALIGN
        assert storage.offset % ALIGN == 0
        assert start + rounded(storage.size) // ALIGN <= len(self.owner), "outside of the arena"
        return self.owner[start : start + rounded(storage.size) // ALIGN]

    def owns(self, storage: Storage) -> bool:
        return bool((self.lines(storage) == self.number[storage]).all())

    def fill(self, storage: Storage) -> None:
        self.lines(storage)[...] = self.number[storage]


class _Worker:
    """A thread at a plan: the arena that all have, and its own space."""

    def __init__(self, plan: Plan, arena: _Memory) -> None:
        self.arena, self.space = arena, _Memory(plan, plan.space)

    def memory(self, storage: Storage) -> _Memory:
        return self.space if storage.block else self.arena

    def step(self, entry: PlanStep, region: Region | None) -> None:
        for storage in entry.reads:
            owned = self.memory(storage).owns(storage)
            assert owned, f"step {entry.number} reads what is not there: {storage}"
        target = entry.writes
        if target is None:
            return
        memory = self.memory(target)
        if region is None:
            assert not target.block
        elif not target.block:
            # Rows of an array that the loop fills, or the share of a block in a total.
            assert target.start == region.start, f"step {entry.number} writes for all blocks"
            assert memory.owns(target), f"step {entry.number}: a total was overwritten"
        memory.fill(target)


def check_plan(plan: Plan) -> None:
    """No step reads what has not been written, or what has been overwritten since.

    Loops are gone through by two workers at once, step by step, and then again: what a block
    leaves behind must outlast the next, and what it does not leave behind must be written anew.
    All that a block adds to totals it adds in the end. A buffer counts in lines of the cache.
    """
    arena = _Memory(plan, plan.arena)
    workers = [_Worker(plan, arena) for _ in range(2)]
    assert plan.least <= plan.arena
    done: set[int] = set()
    for i, entry in enumerate(plan.steps):
        region = plan.region_of(entry.number)
        if region is None:
            workers[0].step(entry, None)
        elif id(region) not in done:
            done.add(id(region))
            body = [e for e in plan.steps[i:] if e.number in region]
            _check_roles(body, region)
            for storage in plan.buffers:
                if not storage.block and storage.start == region.start:
                    arena.fill(storage)
            for _ in range(2):
                for worker in workers:
                    worker.space.owner[...] = -1
                for inner in body:
                    for worker in workers[: 1 + (region.threads > 1)]:
                        worker.step(inner, region)


def _check_roles(body: list[PlanStep], region: Region) -> None:
    """A block reads rows of its own only, of all that the loop makes, and adds in the end."""
    for entry in body:
        role = region.roles[entry.number - region.start]
        for value, axis in zip(entry.step.inputs, role.operands, strict=True):
            assert value not in region.totals, f"step {entry.number} reads a total"
            assert axis == region.axis.get(value, axis), f"step {entry.number} reads all rows"
    if region.threads > 1:
        to_totals = [e.number for e in body if e.step.outputs[0] in region.totals and e.adds]
        last = [e.number for e in body][len(body) - len(to_totals) :]
        assert to_totals == last, "totals are added to before the turn of the block"


def poisoned_results(graph: Graph, feeds: list[Any], limits: Limits) -> list[Any]:
    """What the planned code computes if all memory that is not in use is full of NaNs."""
    steps, regions = arranged(schedule(graph), limits)
    options = Options(poisoned=True)
    module = planned(steps, regions, options)
    check_plan(plan_of(steps, regions, options))
    loaded = Loaded(module, render(module))
    workspace = loaded.function("workspace")()
    with np.errstate(all="ignore"):
        first = loaded.function("run")(workspace, feeds)
        second = loaded.function("run")(workspace, feeds)
    for one, other in zip(first, second, strict=True):
        assert one.tobytes() == other.tobytes()
    return list(first)
