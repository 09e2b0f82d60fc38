"""How programs grow with the order of the derivative, in each mode.

Counted are the equations that are compiled for one derivative alone. In the end derivatives of
tanh are timed, from building to the first value and in later runs. Run it as
`python benchmarks/orders.py`.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

import primgraph as pg
from primgraph.transforms import bind, clean_up, linearize, lower

ORDERS, SHORT_ORDERS = 10, 3
POINTS = 1000
RUNS_OF_A_KERNEL = 50
WIDTHS = (2, 32, 32, 1)

Function = Callable[[pg.Variable], pg.Variable]


def tanh(x: pg.Variable) -> pg.Variable:
    return pg.tanh(x)


def product(x: pg.Variable) -> pg.Variable:
    return pg.sin(x) * pg.tanh(x + x * pg.tanh(x))


def network(x: pg.Variable) -> pg.Variable:
    """A tanh network with constant weights, on rows of `x`."""
    rng = np.random.default_rng(0)
    for n, m in pairwise(WIDTHS):
        x = x @ rng.normal(scale=n**-0.5, size=(n, m)) + rng.normal(size=m)
        x = pg.tanh(x) if m > 1 else x
    return x


FUNCTIONS: dict[str, tuple[Function, tuple[int, ...]]] = {
    "tanh(x)": (tanh, (1,)),
    "sin(x) tanh(x + x tanh(x))": (product, (1,)),
    "network 2-32-32-1": (network, (8, 2)),
}


def nested(mode: Any, function: Function, shape: tuple[int, ...], orders: int) -> list[int]:
    """Equations of the derivatives 1 to `orders`, each taken of the one before by `mode`."""
    counts = []
    with pg.Program() as program:
        x = pg.data("x", shape)
        y = function(x)
        for _ in range(orders):
            y = mode(y, x)
            counts.append(len(clean_up(lower(program.graph([y])))))
    return counts


def linearized(function: Function, shape: tuple[int, ...], orders: int) -> list[int]:
    """The same by `linearize` on graphs, each time along ones."""
    counts = []
    graph = clean_up(lower(pg.trace(function, pg.spec(shape))))
    for _ in range(orders):
        jvp = linearize(graph)
        graph = clean_up(bind(jvp.with_outputs(jvp.outputs[1:]), {1: 1.0}))
        counts.append(len(graph))
    return counts


MODES: dict[str, Callable[[Function, tuple[int, ...], int], list[int]]] = {
    "grad": lambda function, shape, orders: nested(pg.grad, function, shape, orders),
    "forward_grad": lambda function, shape, orders: nested(
        pg.forward_grad, function, shape, orders
    ),
    "linearize": linearized,
}


def timed(mode: Any, order: int) -> tuple[float, float]:
    """Seconds from nothing to the first values of that derivative of tanh, and of a later run."""
    points = np.linspace(-1, 1, POINTS)
    # Equal graphs share compiled code as long as some kernel has it.
    gc.collect()
    start = time.perf_counter()
    with pg.Program() as program:
        x = pg.data("x", (POINTS,))
        y = pg.tanh(x)
        for _ in range(order):
            y = mode(y, x)
    kernel = pg.Executor().kernel(program, [y])
    kernel(points)
    first = time.perf_counter() - start
    later = []
    for _ in range(RUNS_OF_A_KERNEL):
        start = time.perf_counter()
        kernel(points)
        later.append(time.perf_counter() - start)
    return first, statistics.median(later)


def times_of(mode: Any, orders: int, runs: int) -> list[list[str]]:
    """Milliseconds to the first value and microseconds of later runs, for each order."""
    firsts, laters = [], []
    for order in range(1, orders + 1):
        found = [timed(mode, order) for _ in range(runs)]
        firsts.append(f"{1e3 * statistics.median(f for f, _ in found):.1f}")
        laters.append(f"{1e6 * statistics.median(t for _, t in found):.1f}")
    return [firsts, laters]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table of counts, then the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help=f"{SHORT_ORDERS} orders only")
    options = parser.parse_args(arguments)
    orders, runs = (SHORT_ORDERS, 1) if options.short else (ORDERS, 5)
    head = " | ".join(str(k) for k in range(1, orders + 1))

    print(f"| equations | {head} |")
    print("|---|" + "---|" * orders)
    for title, (function, shape) in FUNCTIONS.items():
        for mode, count in MODES.items():
            cells = " | ".join(map(str, count(function, shape, orders)))
            print(f"| {title}, {mode} | {cells} |", flush=True)

    print(f"\n| tanh at {POINTS:,} points | {head} |")
    print("|---|" + "---|" * orders)
    for mode in (pg.grad, pg.forward_grad):
        firsts, laters = times_of(mode, orders, runs)
        print(f"| {mode.__name__}, ms to the first values | {' | '.join(firsts)} |")
        print(f"| {mode.__name__}, µs a later run | {' | '.join(laters)} |", flush=True)


if __name__ == "__main__":
    main()
