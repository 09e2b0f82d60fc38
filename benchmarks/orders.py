"""How programs grow with the order of the derivative, in each mode.

Counted are the equations that are compiled for one derivative alone. In the end the tenth
derivative of tanh is timed from building to its first value. Run it as
`python benchmarks/orders.py`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

import primgraph as pg
from primgraph.transforms import bind, clean_up, linearize, lower

ORDERS, SHORT_ORDERS = 8, 3
TIMED_ORDERS = 10
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


def seconds_to_first_value(mode: Any, orders: int) -> float:
    """From an empty program to the value of the derivative of that order of tanh."""
    start = time.perf_counter()
    with pg.Program() as program:
        x = pg.data("x", (1,))
        y = pg.tanh(x)
        for _ in range(orders):
            y = mode(y, x)
    pg.Executor().run(program, {"x": np.ones(1)}, [y])
    return time.perf_counter() - start


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table of counts, then the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help=f"{SHORT_ORDERS} orders only")
    options = parser.parse_args(arguments)
    orders, timed, runs = (SHORT_ORDERS, SHORT_ORDERS, 1) if options.short else (
        ORDERS, TIMED_ORDERS, 5
    )  # fmt: skip

    print("| equations | " + " | ".join(str(k) for k in range(1, orders + 1)) + " |")
    print("|---|" + "---|" * orders)
    for title, (function, shape) in FUNCTIONS.items():
        for mode, count in MODES.items():
            cells = " | ".join(map(str, count(function, shape, orders)))
            print(f"| {title}, {mode} | {cells} |", flush=True)

    print(f"\n| tanh to order {timed} | equations | ms to the first value |\n|---|---|---|")
    for mode in (pg.grad, pg.forward_grad):
        times = [seconds_to_first_value(mode, timed) for _ in range(runs)]
        equations = nested(mode, tanh, (1,), timed)[-1]
        print(f"| {mode.__name__} | {equations} | {1e3 * statistics.median(times):.1f} |")


if __name__ == "__main__":
    main()
