"""Data in chunks on worker processes of dask's: against the same by hand, and what it costs.

    python benchmarks/cluster.py FOLDER [ROWS]

writes ROWS samples of 20 features (by default 4 million) to memory maps in FOLDER, unless they are
there, starts two worker processes of 1 GB each and prints a table: the gradient of a logistic
regression by `pg.distributed`, by tasks with NumPy written by hand, and streamed in this process;
memory; the share of the workers' time inside kernels; what a task costs beside one of dask's that
does nothing; and what becomes of a graph of 100,000 equations.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import primgraph as pg
from primgraph.distributed import parcels
from primgraph.distributed.tasks import process_statistics

FEATURES, WORKERS, REPEATS = 20, 2, 5


def loss(w, x, y):
    return pg.sum(pg.log1p(pg.exp(-y * (x @ w))))


def by_hand(files, first, count, w):
    """Value and gradient of some rows, as one writes them down."""
    x = np.load(files[0], mmap_mode="r")[first : first + count]
    y = np.load(files[1], mmap_mode="r")[first : first + count]
    margin = y * (x @ w)
    e = np.exp(-margin)
    return np.sum(np.log1p(e)), x.T @ (-y * e / (1.0 + e))


def add_up(parts):
    return sum(p[0] for p in parts), sum(p[1] for p in parts)


def written(folder: Path, rows: int) -> list[str]:
    """The files with the samples."""
    names = [str(folder / f"{name}-{rows}.npy") for name in "xy"]
    if all(Path(n).exists() for n in names):
        return names
    rng = np.random.default_rng(0)
    true = np.linspace(-1.0, 1.0, FEATURES)
    # By ordinary writes: what is stored through a memory map lies in the page cache in pages of
    # 4 KiB until it is read from the disk again, and these take long to map and to unmap.
    with Path(names[0]).open("wb") as x, Path(names[1]).open("wb") as y:
        for file, shape in ((x, (rows, FEATURES)), (y, (rows,))):
            header = {"descr": "<f8", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, rows, 500_000):
            part = rng.standard_normal((min(500_000, rows - start), FEATURES))
            part.tofile(x)
            np.sign(part @ true + rng.logistic(size=len(part))).tofile(y)
    return names


def hand_total(client: Client, files: list[str], rows: int, step: int, w: Any) -> Any:
    future = client.scatter(w, broadcast=True)
    starts = range(0, rows, step)
    level = [
        client.submit(by_hand, files, i, min(step, rows - i), future, pure=False) for i in starts
    ]
    while len(level) > 1:
        level = [
            client.submit(add_up, level[i : i + 8], pure=False) for i in range(0, len(level), 8)
        ]
    return level[0].result()


def streamed(files: list[str], rows: int, w: Any) -> Any:
    """The same in this process, in extended precision where it is added up."""
    value, gradient = np.longdouble(0.0), np.zeros(FEATURES, np.longdouble)
    for start in range(0, rows, 100_000):
        part = by_hand(files, start, min(100_000, rows - start), w)
        value, gradient = value + part[0], gradient + part[1]
    return float(value), gradient.astype(np.float64)


def peak() -> int:
    """The most memory that this process has had, of files that it has mapped too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


def has_kernel(digest: str) -> bool:
    return digest in parcels._parcels


def nothing(number: int) -> int:
    return number


def main(folder: str, rows: int = 4_000_000) -> None:
    files = written(Path(folder), rows)
    w = np.linspace(0.5, -0.5, FEATURES)
    data = pg.distributed.chunks(tuple(np.load(n, mmap_mode="r") for n in files))
    with (
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, memory_limit="1GB", dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        total = pg.distributed.objective(loss, w, data, client)
        print(total.plan())
        found = total.value_and_grad()
        step = data.rows[0]
        hand = hand_total(client, files, rows, step, w)
        exact = streamed(files, rows, w)
        for name, (value, gradient) in {"primgraph": found, "by hand": hand}.items():
            error = np.max(np.abs(gradient - exact[1])) / np.max(np.abs(exact[1]))
            print(f"{name}: loss {value:.15g}, gradient differs by {error:.1e} of its largest")
        ours, theirs, shares, processor = [], [], [], []
        for _ in range(REPEATS):
            before = client.run(process_statistics)
            start = time.perf_counter()
            again = total.value_and_grad()
            ours.append(time.perf_counter() - start)
            after = client.run(process_statistics)
            assert again[1].tobytes() == found[1].tobytes()
            names = next(iter(after.values()))
            used = {n: sum(after[k][n] - before[k][n] for k in after) for n in names}
            shares.append(used["kernels"] / (WORKERS * ours[-1]))
            processor.append(used["computing"] / used["process"])
            start = time.perf_counter()
            hand_total(client, files, rows, step, w)
            theirs.append(time.perf_counter() - start)
        ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
        print(f"time {statistics.median(ours):.2f} s, by hand {statistics.median(theirs):.2f} s")
        print(
            f"ratio {statistics.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}; "
            f"inside kernels {statistics.median(shares):.0%} of the workers' time, and "
            f"{statistics.median(processor):.0%} of their processor time"
        )
        print(f"most memory of a worker: {max(client.run(peak).values()) / 1e6:.0f} MB")
        overhead(client)
        large_graph(client)


def overhead(client: Client) -> None:
    """What tasks with hardly anything to compute take, beside tasks with nothing."""
    count = 1_000
    small = pg.distributed.chunks(np.ones((count, 2)), rows=1)
    total = pg.distributed.objective(lambda w, x: pg.sum(x @ w), np.ones(2), small, client)
    total.value_and_grad()
    differences, empties = [], []
    for _ in range(REPEATS):
        start = time.perf_counter()
        total.value_and_grad()
        ours = time.perf_counter() - start
        start = time.perf_counter()
        level = client.map(nothing, range(count), pure=False)
        client.submit(len, level, pure=False).result()
        empties.append((time.perf_counter() - start) / count)
        differences.append(ours / count - empties[-1])
    print(
        f"a task takes {statistics.median(differences) * 1e3:+.2f} ms more than dask's empty one, "
        f"of {statistics.median(empties) * 1e3:.2f} ms"
    )


def large_graph(client: Client) -> None:
    """A graph of many equations: what is sent, how often, and how long it takes to be ready."""

    def chain(w, x):
        for i in range(12_500):
            x = pg.sin(x) * w + float(i % 7)
        return pg.sum(x)

    data = pg.distributed.chunks(np.ones((64, 2)), rows=4)
    start = time.perf_counter()
    total = pg.distributed.objective(chain, np.ones(()), data, client)
    equations = len(total.kernels("value_and_grad").graph(4).body)
    total.value_and_grad()
    first = time.perf_counter() - start
    start = time.perf_counter()
    total.value_and_grad()
    second = time.perf_counter() - start
    parcel, _ = total.kernels("value_and_grad").pack_parcel(4)
    held = client.run(has_kernel, parcel.digest)
    print(
        f"{equations:,} equations are {parcel.nbytes / 1e3:.0f} kB, sent once to "
        f"{sum(held.values())} workers for {2 * len(data)} tasks, each of which has a name for "
        f"them; first evaluation {first:.1f} s, second {second:.2f} s"
    )


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
