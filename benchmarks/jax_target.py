"""Source for JAX beside JAX's own derivatives, both compiled by `jax.jit`.

The first table has the workloads of order one: the time of a call of the source that primgraph
generates, over that of JAX's own program, measured in turns. The second one has first calls of
derivatives of high orders, with tracing and compilation, over the faster of `jax.experimental.jet`
and nested `jvp`. Times are seconds of processors. Run it as `python benchmarks/jax_target.py`.
"""

from __future__ import annotations

import argparse
import importlib
import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import cases
import jets
import peers
import workloads
from tables import seconds, table

import primgraph as pg

# The sizes that count: of several, the middle one.
RUNS = (
    "W1 n=1000 order=1", "W1 n=1e6 order=1", "W2 N=2048", "W3", "W4 d=10", "W7", "W8 mixed n=1000",
    "W8 arith n=1000", "W8 mixed n=1e6", "W9", "W10", "W11", "W12",
)  # fmt: skip
ORDERS = (6, 8, 10)


def seconds_in_turns(calls: list[Callable[[], Any]], rounds: int) -> list[float]:
    """The least time of each call, in `rounds` batches that alternate."""
    best = [math.inf] * len(calls)
    inner = []
    for call in calls:
        call()
        start = time.process_time()
        call()
        inner.append(max(1, int(0.02 / max(time.process_time() - start, 1e-6))))
    for _ in range(rounds):
        for i, call in enumerate(calls):
            start = time.process_time()
            for _ in range(inner[i]):
                call()
            best[i] = min(best[i], (time.process_time() - start) / inner[i])
    return best


def run_times(only: list[str], rounds: int, *, short: bool) -> Iterator[list[str]]:
    """Cells of each case: both times, and their ratio."""
    tool = peers.Jax()
    jax = tool.jax
    for case in cases.cases(only, short=short):
        if case.params.get("order", 1) != 1:
            continue
        graph, arrays = workloads.graph_of(case)
        function = jax.jit(pg.compile(graph.in_form(None), target="jax").function)
        placed = [jax.numpy.asarray(a) for a in arrays]
        calls = [lambda f=function, a=placed: jax.block_until_ready(f(*a))]
        for variant in tool.variants(case):
            other, given = tool.build(case, variant)
            calls.append(lambda f=other, a=given: f(*a))
        own, *others = seconds_in_turns(calls, rounds)
        least = min(others)
        yield [case.name, case["dt"], seconds(own), seconds(least), f"{own / least:.2f}"]


def seconds_of_first(make: Callable[[], Callable[[], Any] | None]) -> float:
    """The time until a function has given its first result."""
    start = time.process_time()
    call = make()
    if call is None:
        return math.inf
    call()
    return time.process_time() - start


def with_target(case: jets.Case) -> Callable[[], Any]:
    """The derivatives of a function as source for JAX."""
    jax: Any = importlib.import_module("jax")
    run = jets.with_primgraph(case, "jax")
    return lambda: jax.block_until_ready(run())


def first_calls(orders: tuple[int, ...], points: int) -> Iterator[list[str]]:
    """Cells of each function and order: our first call, JAX's two, and the ratio."""
    for name in jets.FUNCTIONS:
        for order in orders:
            case = jets.Case(name, order, points)
            own = seconds_of_first(lambda c=case: with_target(c))
            jet, nested = (
                seconds_of_first(lambda c=case, n=n: jets.with_jax(c, n)) for n in (False, True)
            )
            ratio = f"{own / min(jet, nested):.2f}"
            yield [name, str(order), *(seconds(t) if t < math.inf else "-"
                                       for t in (own, jet, nested)), ratio]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="cases whose names begin so, as W2")
    parser.add_argument("--rounds", type=int, default=9, help="batches of each call")
    parser.add_argument("--short", action="store_true", help="small sizes, to see that it runs")
    options = parser.parse_args()
    only = options.only or ([] if options.short else [*RUNS])
    runs = run_times(only, 1 if options.short else options.rounds, short=options.short)
    head = ["case", "dtype", "source", "JAX", "source / JAX"]
    sys.stdout.write("\n".join([*table(head, [*runs]), "", ""]))
    orders, points = ((3,), 5) if options.short else (ORDERS, jets.POINTS)
    head = ["function", "order", "source", "jet", "nested jvp", "source / JAX"]
    sys.stdout.write("\n".join([*table(head, [*first_calls(orders, points)]), ""]))


if __name__ == "__main__":
    main()
