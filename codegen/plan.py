"""The plan of a kernel as data: which step writes where, what it reads, and what runs in blocks."""

from __future__ import annotations

from dataclasses import dataclass

from primgraph.codegen.regions import Region
from primgraph.codegen.schedule import Step
from primgraph.codegen.workspace import Storage


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A step, by number, with the buffers that it reads and the one that it writes.

    `adds` tells one that combines what it reads with what is in the buffer already. Steps of a
    loop are done once for each block; feeds, constants and results are not listed.
    """

    number: int
    step: Step
    reads: tuple[Storage, ...]
    writes: Storage | None
    adds: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What the planned source does with memory, and with threads. It prints as a text.

    `arena` is the size of the arena in bytes, `least` the most that is alive at once, so that no
    arena could be smaller. `space` is the size of a second one, in which the buffers of blocks
    are: each thread that works on blocks has one. `buffers` have their place in one of the two
    and the steps between which they are in use, both included.
    `workspace` is what one thread makes in the first call and keeps, in bytes, both arenas
    included. `call` is the most that a call allocates at once beside it: results, and what NumPy
    needs for itself.
    """

    arena: int
    least: int
    space: int
    buffers: tuple[Storage, ...]
    steps: tuple[PlanStep, ...]
    regions: tuple[Region, ...]
    workspace: int
    call: int

    def kept(self, threads: int) -> int:
        """What the first call makes and keeps, in bytes, where it may use so many threads."""
        most = max((region.threads for region in self.regions), default=1)
        return self.workspace + (min(threads, most) - 1) * self.space

    def region_of(self, number: int) -> Region | None:
        return next((r for r in self.regions if number in r), None)

    def __str__(self) -> str:
        name = {s: f"%{i}" for i, s in enumerate(self.buffers)}
        lines = [f"arena of {self.arena} bytes, {self.least} in use at most"]
        if self.space:
            lines.append(f"space of {self.space} bytes for blocks, one for each thread")
        lines += [
            f"  {name[s]}: {s.type} at {s.offset}, steps {s.start} to {s.stop}"
            f"{', in blocks' if s.block else ''}, as {s.name}"
            for s in self.buffers
        ]
        begins = {r.start: r for r in self.regions}
        ends = 0
        for entry in self.steps:
            region = begins.pop(entry.number, None)
            if region is not None:
                ends = region.stop
                threads = f", in up to {region.threads} threads" if region.threads > 1 else ""
                lines.append(f"for each block of {region.rows} of {region.extent} rows{threads}:")
            reads = ", ".join(name[s] for s in entry.reads)
            writes = "a result" if entry.writes is None else name[entry.writes]
            sign = "+=" if entry.adds else "="
            indent = "    " if entry.number < ends else "  "
            text = f"{indent}{entry.number}: {writes} {sign} {entry.step.op.name}({reads})"
            lines.append(text)
        return "\n".join(lines)
