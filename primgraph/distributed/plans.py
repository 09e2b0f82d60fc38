"""Cost estimates of computations over chunks."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from typing import final

from primgraph.base.user_lines import caller
from primgraph.codegen.ir.limits import Options
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.lower.arrays.memory_use import call_bytes, kept_bytes, live_bytes
from primgraph.codegen.planned import plan_with_bodies
from primgraph.distributed.engine import FAN_IN, Engine
from primgraph.distributed.kernels import Kernels
from primgraph.inspect.cost import works
from primgraph.ir.graph import Graph
from primgraph.ir.sizes import specialize_graph
from primgraph.ir.types import TensorType
from primgraph.tables import quantity

# Memory of a worker process before it receives data.
PROCESS_BYTES = 150 << 20
# Fraction of the memory limit above which dask starts no more tasks on a worker.
_FULL = 0.8


@final
@dataclass(frozen=True)
class Plan:
    """Cost of an evaluation; it prints as a few lines.

    `flops` count all chunks. `bytes_read` are the data, `bytes_sent` go to all workers (parameters
    and kernels), `bytes_returned` go up the tree of sums. `task_bytes` is the peak memory of one
    task, its chunk included, and `worker_bytes` that of a worker with a task in each of its
    threads. `limit` is the memory of the smallest worker, 0 if there is no limit, and
    `fitting_rows` the number of rows of a chunk that fit.
    """

    what: str
    chunks: int
    rows: int
    largest: int
    workers: int
    threads: int
    flops: int
    bytes_read: int
    bytes_sent: int
    bytes_returned: int
    levels: int
    task_bytes: int
    worker_bytes: int
    limit: int
    fitting_rows: int

    @property
    def fits(self) -> bool:
        """Return whether all tasks fit into the memory at which dask still starts tasks."""
        return not self.limit or self.worker_bytes <= _FULL * self.limit

    def warning(self) -> str:
        """Warning about the chunk size; empty if all tasks fit."""
        if self.fits:
            return ""
        if not self.fitting_rows:
            advice = "chunks of any size are too large: give workers more memory or fewer threads"
        else:
            advice = f"chunks of {self.fitting_rows:,} rows would fit"
        return (
            f"a worker with {self.threads} task{'s' * (self.threads != 1)} takes about "
            f"{quantity(self.worker_bytes, 'B')}, "
            f"of which dask begins tasks up to {quantity(int(_FULL * self.limit), 'B')}; {advice}"
        )

    def __str__(self) -> str:
        workers = f"{self.workers} worker{'s' * (self.workers != 1)}"
        limit = f" of {quantity(self.limit, 'B')}" if self.limit else ""
        lines = [
            f"{self.what}: {self.chunks:,} chunks, {self.rows:,} rows, {self.largest:,} at most in "
            f"one; {workers} with {self.threads} thread{'s' * (self.threads != 1)}",
            f"  operations  {quantity(self.flops, 'flop')}",
            f"  data        {quantity(self.bytes_read, 'B')} read by tasks",
            f"  sent        {quantity(self.bytes_sent, 'B')} to workers",
            f"  returned    {quantity(self.bytes_returned, 'B')} in a tree of {self.levels} levels",
            f"  memory      {quantity(self.task_bytes, 'B')} a task, "
            f"{quantity(self.worker_bytes, 'B')}{limit} a worker",
        ]
        return "\n".join([*lines, *([f"  WARNING     {self.warning()}"] if not self.fits else [])])


def _parcel_bytes(kernels: Kernels, used: Iterable[int]) -> int:
    """Return the bytes of the different parcels of code and constants for these chunks."""
    parcels = {}
    for i in used:
        parcel, large = kernels.pack_parcel(kernels.chunks.rows[i])
        parcels[parcel.digest] = parcel.nbytes + sum(a.nbytes for a in large)
    return sum(parcels.values())


def _tree_of_sums(width: int) -> tuple[int, int]:
    """Return the levels, and the nodes, of the tree that adds up so many results."""
    levels = nodes = 0
    while width > 1:
        nodes, width, levels = nodes + width, ceil(width / FAN_IN), levels + 1
    return levels, nodes


def plan_of(what: str, kernels: Kernels, engine: Engine, exact: bool = True) -> Plan:
    """Estimate the cost of evaluating `kernels` on all chunks.

    Unless `exact`, memory is that of all values in equation order; planned code may need less.
    """
    chunks = kernels.chunks
    used = chunks.nonempty_chunks()
    workers = engine.workers()
    threads = max((n for n, _ in workers), default=1)
    limit = min((memory for _, memory in workers if memory), default=0)
    number = max(used, key=chunks.rows.__getitem__)
    largest, data = chunks.rows[number], chunks.bytes_of(number)
    graph, style, _, limits, *_ = kernels.parts(largest)
    sent = sum(t.nbytes for t in _common_types(graph, len(chunks.types(number))))
    if graph.sizes:
        graph = specialize_graph(graph, {kernels.summand.size: largest})
    returned = sum(t.nbytes for t in graph.output_types)
    if exact and style != "readable":
        plan = plan_with_bodies(graph, Options(), limits)
        kept = kept_bytes(plan)
        memory = kept + call_bytes(plan)
    else:
        kept, memory = 0, live_bytes(schedule(graph))
    flops = sum(part.flops for part in works(graph)) if exact else 0
    parcels = _parcel_bytes(kernels, used if exact else ())
    levels, nodes = _tree_of_sums(len(used))
    process = PROCESS_BYTES if engine.client is not None else 0
    task, fixed = data + memory, sent + returned
    fitting = 0
    if limit:
        room = (_FULL * limit - process) / threads - fixed - kept
        fitting = max(0, int(room / max(task - fixed, 1) * largest))
    return Plan(
        what=what,
        chunks=len(used),
        rows=chunks.total,
        largest=largest,
        workers=len(workers),
        threads=threads,
        flops=flops * chunks.total // largest,
        bytes_read=sum(chunks.bytes_of(i) for i in used),
        bytes_sent=(sent + parcels) * max(len(workers), 1),
        bytes_returned=returned * (nodes + 1),
        levels=levels,
        task_bytes=task,
        worker_bytes=process + threads * task,
        limit=limit,
        fitting_rows=fitting,
    )


def warn_early(kernels: Kernels, engine: Engine) -> None:
    """Warn if chunks are too large for a worker's memory."""
    if engine.client is None or plan_of("", kernels, engine, exact=False).fits:
        return
    plan = plan_of("", kernels, engine)
    if not plan.fits:
        place = caller()
        warnings.warn_explicit(plan.warning(), UserWarning, place.file, place.line)


def _common_types(graph: Graph, data: int) -> tuple[TensorType, ...]:
    """Return the types of the common arguments of all chunks."""
    return graph.input_types[: len(graph.inputs) - data]
