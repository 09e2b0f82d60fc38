"""What it gains to change settings of the whole process: times without over times with.

Python's collector waits while graphs are made and compiled; OpenBLAS has one thread while products
of blocks run. Both ways take turns, and medians of the ratios are printed.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from unittest import mock

import growth
import numpy as np

import primgraph as pg
from primgraph.base.interpreter_limits import uncollected
from primgraph.codegen.runtime import blas

SIZES, SHORT_SIZES = (300, 3_000, 30_000), (100,)
ROWS, SHORT_ROWS = (4_096, 32_768), (4_096,)
WIDTHS = (64, 256)


def ratios(
    clock: Callable[[], float], with_it: Callable[[], object], without: Callable[[], object]
) -> Iterator[float]:
    """Time of the second over time of the first, of runs that take turns."""

    def seconds(call: Callable[[], object]) -> float:
        gc.collect()
        start = clock()
        call()
        return clock() - start

    with_it(), without()
    while True:
        took = seconds(with_it)
        yield seconds(without) / took


def compiling(count: int, compiled: bool) -> Callable[[], object]:
    """Build a network and its gradient, and compile them, if asked to."""

    def call() -> object:
        fetched = growth.with_gradient(growth.network(count))
        return growth.kernel(fetched) if compiled else fetched

    return call


def left_alone(call: Callable[[], object], kind: type, *methods: str) -> Callable[[], object]:
    """The same while these methods, which change the setting, do nothing."""

    def plain() -> object:
        with ExitStack() as stack:
            for method in methods:
                stack.enter_context(mock.patch.object(kind, method, return_value=None))
            return call()

    return plain


def training(rows: int, width: int) -> tuple[pg.Kernel, list[np.ndarray]]:
    """The gradient of a network of two layers on so many rows, and its feeds."""

    def loss(x: pg.Variable, w: pg.Variable, v: pg.Variable) -> object:
        total = pg.sum(pg.tanh(pg.tanh(x @ w) @ v) ** 2)
        return total, *pg.grad(total, [w, v])

    shapes = (rows, width), (width, width), (width, width)
    rng = np.random.default_rng(0)
    feeds = [rng.standard_normal(shape) / width**0.5 for shape in shapes]
    return pg.compile(pg.trace(loss, *map(pg.spec, shapes))), feeds


def row(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def told(found: Iterator[float]) -> str:
    low, middle, high = statistics.quantiles(found, n=4)
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print two tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="small sizes, few runs")
    options = parser.parse_args(arguments)
    sizes, rows, runs = (SHORT_SIZES, SHORT_ROWS, 3) if options.short else (SIZES, ROWS, 15)

    row("collector waits", "equations", "gain (quartiles)")
    row("---", "---", "---")
    for count in sizes:
        for name, compiled in (("build, gradient", False), ("and compile", True)):
            call = compiling(count, compiled)
            alone = left_alone(call, type(uncollected), "__enter__", "__exit__")
            row(name, f"{count:,}", told(islice(ratios(time.process_time, call, alone), runs)))

    print()
    row("BLAS has one thread", "threads of the kernel", "gain (quartiles)")
    row("---", "---", "---")
    for count in rows:
        for width in WIDTHS:
            kernel, feeds = training(count, width)
            if not any(region.products for region in kernel.plan.regions):
                continue
            call = partial(kernel, *feeds)
            alone = left_alone(call, blas._Setting, "hold", "release_threads")
            most = pg.get_num_threads()
            for threads in sorted({1, most}):
                pg.set_num_threads(threads)
                found = islice(ratios(time.perf_counter, call, alone), runs)
                row(f"{count:,} rows of {width}", threads, told(found))
            pg.set_num_threads(most)


if __name__ == "__main__":
    main()
