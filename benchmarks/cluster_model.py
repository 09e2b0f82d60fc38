"""A model of sums over chunks on many workers: what becomes the bottleneck, and when.

    python benchmarks/cluster_model.py [PICTURE.svg]

measures what a task costs the scheduler here, and lets a simulation take one evaluation of a
gradient on 10 to 10,000 workers, event by event: one scheduler, which does one thing at a time,
workers, which ask it for each task, and the tree of sums, eight results a node. It prints a table,
and draws it beside the ideal, in which the workers do nothing but run kernels.
"""

from __future__ import annotations

import heapq
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from math import log10
from pathlib import Path

from distributed import Client, LocalCluster

FAN_IN = 8
WORKERS = (10, 30, 100, 300, 1_000, 3_000, 10_000)


@dataclass(frozen=True)
class Case:
    """What every worker has to do, and what its network does.

    A worker computes `chunks` chunks, each in `kernel` seconds; the scheduler takes `service`
    seconds for a task, a message `latency` seconds and a byte `1 / bandwidth`. `result` bytes are
    what a chunk gives, and what all of them are given.
    """

    name: str
    chunks: int
    kernel: float
    result: int
    service: float
    latency: float = 1e-4
    bandwidth: float = 1.25e9

    def ideal(self) -> float:
        return self.chunks * self.kernel

    def message(self, size: int = 0) -> float:
        return self.latency + size / self.bandwidth


def simulated(case: Case, workers: int) -> float:
    """The seconds of one evaluation: events in the order of their times."""
    total = workers * case.chunks
    levels = [total]
    while levels[-1] > 1:
        levels.append(-(-levels[-1] // FAN_IN))
    missing = [
        [min(FAN_IN, below - FAN_IN * i) for i in range(count)] for below, count in pairwise(levels)
    ]
    # Parameters go from worker to worker, each passing them on to another one.
    spread = case.message(case.result)
    ready, known = [], 1
    for worker in range(workers):
        while worker >= known:
            known, spread = 2 * known, spread + case.message(case.result)
        ready.append(spread)
    free = 0.0
    done_at = ready
    events: list[tuple[float, int, int, int]] = []
    # A worker has its next task beside it while it computes one, as dask has it.
    left = [case.chunks] * workers
    for worker in range(workers):
        heapq.heappush(events, (done_at[worker] + case.kernel, 0, worker, worker))
        left[worker] -= 1
    issued, now = workers, 0.0
    while events:
        now, level, index, worker = heapq.heappop(events)
        # The scheduler hears of it, when it has done with what came before.
        free = max(free, now + case.latency) + case.service
        if level == 0 and left[worker]:
            left[worker] -= 1
            start = max(now, free + case.latency - case.kernel)
            heapq.heappush(events, (start + case.kernel, 0, issued, worker))
            issued += 1
        if level == len(missing):
            continue
        node = index // FAN_IN
        missing[level][node] -= 1
        if not missing[level][node]:
            parts = case.message(FAN_IN * case.result) + FAN_IN * case.result / 4e9
            heapq.heappush(events, (free + case.latency + parts, level + 1, node, worker))
    return now + case.message(case.result)


def service_time() -> float:
    """Seconds of processor time that dask's scheduler and client take for a task that does nothing.

    They are one process here; waiting and other work on the machine do not count.
    """
    count = 2_000
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        found = []
        for _ in range(4):
            start = time.process_time()
            level = client.map(abs, range(count), pure=False)
            client.submit(len, level, pure=False).result()
            del level
            found.append((time.process_time() - start) / count)
        return min(found)


def cases(service: float) -> list[Case]:
    return [
        Case("chunks of 128 MB, 20 a worker, 20 parameters", 20, 0.016, 176, service),
        Case("chunks of 1.3 GB, 4 a worker, 20 parameters", 4, 0.16, 176, service),
        Case("chunks of 1.3 GB, 4 a worker, 1 M parameters", 4, 0.16, 8_000_000, service),
        Case("chunks of 13 GB, 4 a worker, 1 M parameters", 4, 1.6, 8_000_000, service),
    ]


COLOURS = ("#4269d0", "#efb118", "#ff725c", "#3ca951")
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 400, 64, 24, 64, 132


def drawn(rows: dict[str, list[float]]) -> str:
    """The part of the time that workers compute, by their number."""

    def at(workers: float, part: float) -> tuple[float, float]:
        x = LEFT + (log10(workers) - 1) / 3 * (WIDTH - LEFT - RIGHT)
        return x, TOP + (1 - part) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        (x, y), (end, _) = at(10, share), at(10_000, share)
        parts.append(f'<path d="M{x:.1f} {y:.1f}H{end:.1f}" stroke="#dddddd"/>')
        parts.append(
            f'<text x="{x - 8:.1f}" y="{y + 4:.1f}" text-anchor="end" fill="#333333">'
            f"{share:.0%}</text>"
        )
    for count in (10, 100, 1_000, 10_000):
        x, y = at(count, 0.0)
        parts.append(
            f'<text x="{x:.1f}" y="{y + 20:.1f}" text-anchor="middle" fill="#333333">'
            f"{count:,} workers</text>"
        )
    (x, y), (end, _) = at(10, 1.0), at(10_000, 1.0)
    parts.append(f'<path d="M{x:.1f} {y:.1f}H{end:.1f}" stroke="#333333" stroke-dasharray="5 4"/>')
    parts.append(
        f'<text x="{end:.1f}" y="{y - 7:.1f}" text-anchor="end" fill="#333333">ideal</text>'
    )
    for i, (name, shares) in enumerate(rows.items()):
        points = [at(w, s) for w, s in zip(WORKERS, shares, strict=True)]
        line = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        colour = COLOURS[i]
        parts.append(f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        y = HEIGHT - BOTTOM + 48 + 20 * i
        parts.append(f'<path d="M{LEFT} {y - 4}h24" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{LEFT + 32}" y="{y}" fill="#333333">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main(picture: str | None = None) -> None:
    service = service_time()
    print(f"the scheduler takes {service * 1e3:.2f} ms for a task\n")
    print("| seconds (part of it in kernels) | " + " | ".join(f"{w:,}" for w in WORKERS) + " |")
    print("|---|" + "---|" * len(WORKERS))
    rows = {}
    for case in cases(service):
        times = [simulated(case, w) for w in WORKERS]
        rows[case.name] = [case.ideal() / t for t in times]
        cells = [f"{t:.1f} ({s:.0%})" for t, s in zip(times, rows[case.name], strict=True)]
        print(f"| {case.name} | " + " | ".join(cells) + " |")
    if picture is not None:
        Path(picture).write_text(drawn(rows), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
