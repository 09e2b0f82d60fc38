"""How long a step takes whose sizes are new, beside one of the same code at a known size.

A small network is trained on batches, and a chain of elementwise functions evaluated on arrays, of
1 to 512 rows in random order, most of them new. Run it as `python benchmarks/sizes.py`.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import primgraph as pg

LARGEST, KNOWN = 512, 256
STEPS, SHORT_STEPS = 400, 20
# Milliseconds that a step may take beside twice those of one at a known size.
ALLOWED = 0.3

Array = np.ndarray[Any, Any]
Step = Callable[[Array, Array], Any]


def network(rows: int | str) -> Step:
    """A step of training."""
    with pg.Program() as program:
        x, t = pg.data("x", (rows, 16)), pg.data("t", (rows, 4))
        hidden = pg.tanh(pg.nn.Linear(16, 32)(x))
        loss = pg.mse_loss(pg.nn.Linear(32, 4)(hidden), t)
        pg.optimizer.Adam(0.01).minimize(loss)
    executor = pg.Executor()
    return lambda x, t: executor.run(program, {"x": x, "t": t}, [loss])


def chain(rows: int | str) -> Step:
    """Elementwise functions, and their mean."""
    graph = pg.trace(
        lambda x, t: pg.mean(pg.exp(-pg.tanh(x) * pg.sin(x) + x * x) * pg.sigmoid(x)),
        pg.spec((rows, 16)),
        pg.spec((rows, 4)),
    )
    return pg.compile(graph)


WORKLOADS: dict[str, Callable[[int | str], Step]] = {"network": network, "chain": chain}


def milliseconds(step: Step, feeds: Sequence[tuple[Array, Array]]) -> float:
    """Processor time of one step, on the average of all."""
    begun = time.thread_time()
    for x, t in feeds:
        step(x, t)
    return 1e3 * (time.thread_time() - begun) / len(feeds)


def measured(build: Callable[[int | str], Step], steps: int) -> tuple[float, float, float]:
    """Milliseconds at a known size, at random ones, and of the first step of all."""
    rng = np.random.default_rng(0)
    rows = rng.integers(1, LARGEST + 1, steps + 1)
    first, *feeds = [(rng.normal(size=(n, 16)), rng.normal(size=(n, 4))) for n in rows]
    same = [(rng.normal(size=(KNOWN, 16)), rng.normal(size=(KNOWN, 4)))] * steps
    known, step = build(KNOWN), build("N")
    milliseconds(known, same[:2])
    begun = milliseconds(step, [first])
    # In turns, so that whatever else the machine does meets both alike.
    parts = [slice(k, k + 20) for k in range(0, steps, 20)]
    times = [(milliseconds(known, same[p]), milliseconds(step, feeds[p])) for p in parts]
    of_known, of_new = zip(*times, strict=True)
    return statistics.mean(of_known), statistics.mean(of_new), begun


def main(arguments: Sequence[str] | None = None) -> None:
    """Print milliseconds of a step, and whether they are within the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="a few steps")
    options = parser.parse_args(arguments)
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {os.cpu_count()} CPUs")
    print("| step, ms | known size | random sizes | 2 x known + 0.3 | first |")
    print("|---|---|---|---|---|")
    for name, build in WORKLOADS.items():
        known, new, first = measured(build, SHORT_STEPS if options.short else STEPS)
        bar = 2 * known + ALLOWED
        over = " over the bar" if new > bar else ""
        print(f"| {name} | {known:.3f} | {new:.3f}{over} | {bar:.3f} | {first:.1f} |")


if __name__ == "__main__":
    main()
