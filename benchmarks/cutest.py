"""Sparse Hessians of problems of CUTEst, against products with them and what JAX samples.

    python benchmarks/cutest.py [--problems 30] [--largest 5000]

needs sif2jax, which has the problems as functions of JAX (N. Gould, D. Orban and P. Toint, CUTEst,
Computational Optimization and Applications 60, 2015). Those that primgraph's names of NumPy can
stand in for are taken, of 1,000 unknowns and more. For each it compares the time of the sparse
Hessian with that of as many products with the Hessian as it has colours, its products with random
vectors with those of JAX, and its pattern with the elements that are not zero at some of three
points.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import primgraph as pg
import primgraph.numpy as names

# Problems of which tracing takes long, or whose Hessian is dense.
LEFT_OUT = frozenset({"EIGENALS", "EIGENBLS", "EIGENCLS", "MSQRTALS", "MSQRTBLS", "NONMSQRT"})


def best(function: Callable[[], Any]) -> float:
    """The shortest of some runs, in seconds."""
    function()
    times, total = [], 0.0
    while total < 0.1 or len(times) < 5:
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
        total += times[-1]
    return min(times)


def own(problem: Any) -> Callable[[Any], Any]:
    """The objective of a problem, with primgraph's names in the place of JAX's."""
    function = type(problem).objective
    scope = {**function.__globals__, "jnp": names}
    copy = types.FunctionType(function.__code__, scope, function.__name__)
    return lambda x: copy(problem, x, problem.args)


def problems(largest: int) -> Iterator[tuple[str, Any, np.ndarray]]:
    """Problems without constraints, with their first points."""
    module = importlib.import_module("sif2jax")
    for problem in module.unconstrained_minimisation_problems:
        start = np.asarray(problem.y0)
        name = type(problem).__name__
        if name not in LEFT_OUT and start.ndim == 1 and 1000 <= start.size <= largest:
            yield name, problem, start


def compared(name: str, problem: Any, start: np.ndarray) -> float | None:
    """Print a line of a problem; the time in those of its products, None where it is left out."""
    jax = importlib.import_module("jax")
    x = start + 0.01 * np.random.default_rng(0).standard_normal(start.size)
    function = own(problem)
    try:
        began = time.perf_counter()
        gradient = pg.compile(pg.trace(lambda x: pg.grad(function(x), x), x))
        slope = jax.jit(jax.grad(lambda y: problem.objective(y, problem.args)))
        if not np.allclose(gradient(x), slope(x), rtol=1e-7, atol=1e-7):
            print(f"{name:12} the gradients differ")
            return None
    except Exception as error:
        print(f"{name:12} left out: {type(error).__name__}: {str(error).splitlines()[0]:.70}")
        return None
    began = time.perf_counter()
    sparse = pg.sparse_hessian(function)
    found = sparse(x)
    first = time.perf_counter() - began

    def product(x: pg.Variable, v: pg.Variable) -> pg.Variable:
        return pg.forward_grad(pg.grad(function(x), x), x, v)

    along = pg.compile(pg.trace(product, x, x))
    kernel = sparse._compiled.kernel(x)
    ratio = best(lambda: kernel(x)) / (found.coloring.count * best(lambda: along(x, x)))
    matrix = found.to_scipy()
    peer = jax.jit(lambda x, v: jax.jvp(slope, (x,), (v,))[1])
    rng = np.random.default_rng(1)
    worst, seen = 0.0, np.zeros(found.nnz, bool)
    for _ in range(3):
        v = rng.standard_normal(x.size)
        expected = np.asarray(peer(x, v))
        scale = np.abs(expected).max() + 1e-300
        worst = max(worst, float(np.abs(matrix @ v - expected).max() / scale))
    for shift in (0.0, 0.1, -0.3):
        seen |= sparse(x + shift * rng.standard_normal(x.size)).data != 0
    print(
        f"{name:12} n {x.size:5}  nonzeros {found.nnz:7}, never seen {found.nnz - seen.sum():5}  "
        f"colours {found.coloring.count:3}  / products {ratio:5.2f}  products differ by {worst:.0e}"
        f"  first {first:.2f} s",
        flush=True,
    )
    return ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=30)
    parser.add_argument("--largest", type=int, default=5000)
    options = parser.parse_args()
    importlib.import_module("jax").config.update("jax_enable_x64", True)
    warnings.simplefilter("ignore")
    ratios: list[float] = []
    for found in problems(options.largest):
        ratio = compared(*found)
        ratios += [] if ratio is None else [ratio]
        if len(ratios) == options.problems:
            break
    ratios.sort()
    print(
        f"{len(ratios)} problems: median {statistics.median(ratios):.2f}, largest {ratios[-1]:.2f} "
        "times what their colours and a product would take"
    )


if __name__ == "__main__":
    main()
