"""Processor time around the work: calls of compiled functions, runs of programs, eager operations.

Functions compute next to nothing, so that what is measured is the way to the kernel and back:

    export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 PRIMGRAPH_THREADS=1
    taskset -c 0 python benchmarks/dispatch.py
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import primgraph as pg

X = np.linspace(0.1, 1.0, 100)


def microseconds(call: Callable[[], Any], seconds: float) -> float:
    """Return the least processor time of a call, over batches of two milliseconds."""
    call(), call()
    start = time.process_time()
    for _ in range(10):
        call()
    inner = max(1, int(2e-2 / max(time.process_time() - start, 1e-6)))
    best, spent = float("inf"), 0.0
    while spent < seconds:
        start = time.process_time()
        for _ in range(inner):
            call()
        took = time.process_time() - start
        best, spent = min(best, took / inner), spent + took
    return 1e6 * best


def jit_calls(target: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield calls of compiled functions."""
    few = np.ones(3)
    many = [X + k for k in range(10)]
    tree = {key: {f"{i}": X + i for i in range(10)} for key in ("a", "b")}
    one = pg.jit(lambda x: x * x, target=target)
    numbers = pg.jit(lambda x: pg.sin(x) * 2.0, target=target)
    ten = pg.jit(lambda *xs: xs[0] * xs[9], target=target)
    nested = pg.jit(lambda d: d["a"]["1"] * d["b"]["3"], target=target)
    yield "`jit`, an array of 100", lambda: one(X)
    yield "`jit`, `sin(x) * 2` of 3 numbers", lambda: numbers(few)
    yield "`jit`, 10 arguments", lambda: ten(*many)
    yield "`jit`, a nested dict of 20", lambda: nested(tree)


def program_runs(target: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield runs of programs: without states, reading states, and training."""
    executor = pg.Executor(target=target)
    with pg.Program() as plain:
        y = pg.sin(pg.data("x", (3,))) * 2.0
    with pg.Program() as training:
        x, labels = pg.data("x", (16, 3)), pg.data("y", (16,))
        loss = pg.mean((x @ pg.create_parameter((3,), name="w") - labels) ** 2)
        pg.optimizer.SGD(0.01).minimize(loss)
    small, feed = {"x": np.ones(3)}, {"x": np.ones((16, 3)), "y": np.ones(16)}
    yield "`Executor.run`, no states", lambda: executor.run(plain, small, [y])
    yield (
        "`Executor.run`, a state, `update=False`",
        lambda: executor.run(training, feed, [loss], update=False),
    )
    yield "`Executor.run`, a step of SGD", lambda: executor.run(training, feed, [loss])


def eager_operations() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield operations on tensors."""
    a, b = pg.tensor(np.ones(3)), pg.tensor(np.ones(3))
    w = pg.tensor(np.ones(3), requires_grad=True)

    def backward() -> Any:
        w.grad = None
        pg.sum(pg.tanh(w * w + w) * w).backward()
        return w.grad

    yield "`a * b`", lambda: a * b
    yield "`tanh(a)`", lambda: pg.tanh(a)
    yield "`(a * b).numpy()`", lambda: (a * b).numpy()
    yield "5 operations and `backward`", backward


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="few calls, to see that it works")
    seconds = 0.002 if parser.parse_args(arguments).short else 0.3
    print("| what | NumPy, µs | C, µs |\n|---|---|---|")
    targets = [[*jit_calls(t), *program_runs(t)] for t in ("numpy", "c")]
    for (name, own), (_, native) in zip(*targets, strict=True):
        times = " | ".join([f"{microseconds(call, seconds):.2f}" for call in (own, native)])
        print(f"| {name} | {times} |", flush=True)
    for name, call in eager_operations():
        print(f"| tensors, {name} | {microseconds(call, seconds):.2f} | |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
