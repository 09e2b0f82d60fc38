"""Fork processes while other threads compute, and see that no child waits for ever.

    python tests/tools/forks.py --count 200

Threads compute tensors and run functions for new sizes, new structures among them, so that they
often hold a lock of the package. Every child does the same. The exit status is 1 if one hangs or
fails; what a child was doing that hangs is printed.
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2])]

import numpy as np  # noqa: E402

import primgraph as pg  # noqa: E402

# A child that takes longer hangs, in seconds.
LIMIT = 20


def tensors(number: int) -> float:
    """A structure that depends on `number`, with random numbers, gradients and large arrays."""
    x = pg.tensor(np.full(5000, 0.5), requires_grad=True)
    y = x * float(number)
    for _ in range(number % 7):
        y = pg.tanh(y) + x
    if number % 3 == 0:
        y = pg.nn.Dropout(0.5)(y)
    pg.sum(y).backward()
    assert x.grad is not None
    x.grad += 1.0
    return float(x.grad.numpy()[0])


def sizes(number: int) -> float:
    """A function for arrays of a size that depends on `number`."""
    return float(_sized(np.full(number % 11 + 1, 0.5))[0])


def parameters(number: int) -> float:
    """First values of a layer, and a step."""
    layer = pg.nn.LayerNorm(number % 5 + 1)
    sgd = pg.optimizer.SGD(0.1, parameters=layer.parameters())
    pg.sum(layer(pg.tensor(np.ones((2, number % 5 + 1)))) ** 2).backward()
    sgd.step()
    return float(sum(p.numpy().sum() for p in layer.parameters()))


def _made() -> Callable[..., np.ndarray]:
    with pg.Builder("f") as builder:
        x = pg.data("x", ("N",))
        graph = builder.graph([pg.sum(pg.sin(x) * pg.exp(x)).value])
    return pg.compile(graph)


WORK = (tensors, sizes, parameters)


def check(count: int) -> Counter[str]:
    """Fork `count` children, and count how they end: "done", "hangs", "failed"."""
    # A module that is being imported at the fork is one of a lock of Python's own.
    for number in range(3 * len(WORK)):
        WORK[number % len(WORK)](number)
    done, numbers = threading.Event(), itertools.count()

    def compute() -> None:
        while not done.is_set():
            number = next(numbers)
            WORK[number % len(WORK)](number)

    threads = [threading.Thread(target=compute, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    found: Counter[str] = Counter()
    try:
        for i in range(count):
            time.sleep(0.001 * (i % 5))
            found[_fork(i)] += 1
    finally:
        done.set()
        for thread in threads:
            thread.join()
    return found


def _fork(number: int) -> str:
    """Let a child do all kinds of work; how it ends."""
    with tempfile.TemporaryFile() as told:
        child = os.fork()
        if child == 0:
            code = 3
            try:
                faulthandler.dump_traceback_later(LIMIT, exit=True, file=told)
                for i, work in enumerate(WORK):
                    work(3 * number + i)
                code = 0
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code == 1:
            told.seek(0)
            print(told.read().decode(), file=sys.stderr)
        return {0: "done", 1: "hangs"}.get(code, "failed")


_sized = _made()


def main() -> int:
    parser = argparse.ArgumentParser(description="Fork while other threads compute.")
    parser.add_argument("--count", type=int, default=200)
    found = check(parser.parse_args().count)
    print(", ".join(f"{word}: {n}" for word, n in found.items()))
    return int(set(found) != {"done"})


if __name__ == "__main__":
    sys.exit(main())
