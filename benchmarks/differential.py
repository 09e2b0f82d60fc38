"""What Laplacian, divergence and the diagonal of the Hessian cost beside the full matrix.

Operations are those of the compiled graph as `pg.cost` counts them. Times are medians, given as a
ratio to the full matrix measured in turn with it. Run it as `python benchmarks/differential.py`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np

import primgraph as pg

WIDTH = 32
SIZES, SHORT_SIZES = (5, 20, 50), (5,)
REPEATS, SHORT_REPEATS = 31, 3


def network(x: pg.Variable, outputs: int) -> pg.Variable:
    """A tanh network of two hidden layers with constant weights."""
    rng = np.random.default_rng(0)
    sizes = (x.shape[-1], WIDTH, WIDTH, outputs)
    for n, m in pairwise(sizes):
        x = x @ rng.normal(scale=n**-0.5, size=(n, m))
        x = pg.tanh(x) if m != outputs else x
    return x


def total(x: pg.Variable) -> pg.Variable:
    return pg.sum(network(x, 1))


Rival = tuple[str, Callable[[pg.Variable], pg.Variable], Callable[[pg.Variable], pg.Variable]]

RIVALS: tuple[Rival, ...] = (
    ("laplacian", lambda x: pg.laplacian(total(x), x), lambda x: pg.hessian(total(x), x)),
    (
        "hessian_diagonal",
        lambda x: pg.hessian_diagonal(total(x), x),
        lambda x: pg.hessian(total(x), x),
    ),
    (
        "divergence",
        lambda x: pg.divergence(network(x, x.shape[-1]), x),
        lambda x: pg.jacobian(network(x, x.shape[-1]), x),
    ),
    (
        "divergence, elementwise",
        lambda x: pg.divergence(pg.sin(x) * x, x),
        lambda x: pg.jacobian(pg.sin(x) * x, x),
    ),
)


def ratio_of_times(one: pg.Kernel, other: pg.Kernel, x: np.ndarray, repeats: int) -> float:
    """Median time of `one` over that of `other`, measured in turn."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for kernel, taken in zip((one, other), times, strict=True):
            begun = time.perf_counter()
            kernel(x)
            taken.append(time.perf_counter() - begun)
    return statistics.median(times[0]) / statistics.median(times[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="small and quick")
    short = parser.parse_args().short
    print("| of n variables | n | operations | of the full matrix | time, ratio |")
    print("|---|---|---|---|---|")
    for name, direct, full in RIVALS:
        for n in SHORT_SIZES if short else SIZES:
            kernels = [pg.compile(pg.trace(f, pg.spec(n))) for f in (direct, full)]
            counts = [pg.cost(k).flops for k in kernels]
            x = np.linspace(-1, 1, n)
            ratio = ratio_of_times(*kernels, x, SHORT_REPEATS if short else REPEATS)
            print(f"| {name} | {n} | {counts[0]} | {counts[1]} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
