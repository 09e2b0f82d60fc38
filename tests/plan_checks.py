"""An independent reading of a kernel's plan: who owns which bytes when, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.codegen.arena import ALIGN, rounded
from primgraph.codegen.limits import Limits
from primgraph.codegen.load import Loaded, render
from primgraph.codegen.plan import Plan, PlanStep
from primgraph.codegen.planned import Options, planned
from primgraph.codegen.regions import Region, arranged
from primgraph.codegen.schedule import schedule
from primgraph.codegen.workspace import Storage
from primgraph.ir.graph import Graph

# Everything in blocks of two or three rows, however small it is.
SMALL = Limits(cache=1, least_bytes=1, least_block=1, rows=2)


class _Memory:
    """The owner of each line of the arena, as a number; -1 where nothing has been written."""

    def __init__(self, plan: Plan) -> None:
        self.owner = np.full(plan.arena // ALIGN, -1)
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


def check_plan(plan: Plan) -> None:
    """No step reads what has not been written, or what has been overwritten since.

    Loops are gone through twice: what a block leaves behind must outlast the next, and what it
    does not leave behind must be written anew. A buffer counts in lines of the cache.
    """
    memory = _Memory(plan)
    assert plan.least <= plan.arena
    done: set[Region] = set()
    for i, entry in enumerate(plan.steps):
        region = plan.region_of(entry.number)
        if region is None:
            _check_step(memory, entry, None)
        elif id(region) not in done:
            done.add(id(region))  # type: ignore[arg-type]
            body = [e for e in plan.steps[i:] if e.number in region]
            for storage in plan.buffers:
                if (
                    not storage.block
                    and storage.start == region.start
                    and _outlasts(storage, region)
                ):
                    memory.fill(storage)
            for _ in range(2):
                for storage in plan.buffers:
                    if storage.block and storage.start in region and memory.owns(storage):
                        memory.lines(storage)[...] = -1
                for inner in body:
                    _check_step(memory, inner, region)


def _outlasts(storage: Storage, region: Region) -> bool:
    return storage.stop < 0 or storage.stop >= region.stop - 1


def _check_step(memory: _Memory, entry: PlanStep, region: Region | None) -> None:
    for storage in entry.reads:
        assert memory.owns(storage), f"step {entry.number} reads what is not there: {storage}"
    if entry.writes is None:
        return
    stays = region is not None and not entry.writes.block and _outlasts(entry.writes, region)
    if entry.adds or (stays and region is not None and entry.writes.start == region.start):
        assert memory.owns(entry.writes), f"step {entry.number}: a total was overwritten"
    memory.fill(entry.writes)


def poisoned_results(graph: Graph, feeds: list[Any], limits: Limits) -> list[Any]:
    """What the planned code computes if all memory that is not in use is full of NaNs."""
    steps, regions = arranged(schedule(graph), limits)
    module, plan = planned(steps, regions, Options(poisoned=True))
    check_plan(plan)
    loaded = Loaded(module, render(module))
    workspace = loaded.function("workspace")()
    with np.errstate(all="ignore"):
        first = loaded.function("run")(workspace, feeds)
        second = loaded.function("run")(workspace, feeds)
    for one, other in zip(first, second, strict=True):
        assert one.tobytes() == other.tobytes()
    return list(first)
