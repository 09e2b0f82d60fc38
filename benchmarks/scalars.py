"""Programs of a few numbers on NumPy, beside CasADi's virtual machine.

    python benchmarks/scalars.py [--short] [--only arm ...]

A kernel of primgraph takes arrays, and returns new ones. CasADi's `SX` functions, if it is
installed, are evaluated by its virtual machine, by `Function.buffer`, which reads and writes given
arrays. Results are compared first. The tools take turns in one process and one thread; shortest
times count. Of both the time of a function with the same arguments and results is taken away, whose
results are copies of one element; the ratio is that of the rest, the time of the arithmetic.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.update({"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"})

import numpy as np
from scalar_models import Case, Library, cases
from tables import seconds, table
from worker import largest_error

import primgraph as pg
import primgraph.numpy as pnp
from primgraph.special import erf

TOLERANCE = 1e-12
ROUNDS, CALLS = 100, 200
Call = Callable[[], list[Any]]


class _Functions:
    """Elementwise functions, by the names that CasADi has for them."""

    sin, cos, exp, log, sqrt, erf = map(
        staticmethod, (pg.sin, pg.cos, pg.exp, pg.log, pg.sqrt, erf)
    )


def with_primgraph(case: Case) -> tuple[Call, Call]:
    """Return calls of the program, and of one that only copies."""
    lib = Library(
        _Functions,
        pg.stack,
        lambda rows: pg.stack([pg.stack(row) for row in rows]),
        pnp.cross,
        pg.linalg.solve,
        lambda y, x: pg.jacobian(y, x) if y.shape else pg.grad(y, x),
    )
    kernel = pg.compile(pg.trace(lambda *a: case.model(lib, *a), *case.arrays)).flat
    shapes = [t.shape for t in kernel.graph.output_types]

    def nothing(*arrays: Any) -> list[Any]:
        first = pg.reshape(arrays[0], (-1,))[0]
        return [pg.stack([first] * int(np.prod(s))).reshape(s) if s else +first for s in shapes]

    empty = pg.compile(pg.trace(nothing, *case.arrays)).flat
    return lambda: kernel(*case.arrays), lambda: empty(*case.arrays)


def with_casadi(case: Case) -> tuple[Call, Call]:
    ca = importlib.import_module("casadi")
    lib = Library(
        ca,
        lambda elements: ca.vertcat(*elements),
        lambda rows: ca.vertcat(*[ca.horzcat(*row) for row in rows]),
        lambda a, b: ca.cross(ca.SX(a), ca.SX(b)),
        ca.solve,
        ca.jacobian,
    )
    shapes = [a.shape if a.ndim == 2 else (a.size, 1) for a in case.arrays]
    given = [ca.SX.sym(f"x{i}", *shape) for i, shape in enumerate(shapes)]
    made = case.model(lib, *given)
    made = [ca.densify(y) for y in (made if isinstance(made, tuple) else (made,))]
    copies = [ca.SX.ones(*y.shape) * given[0][0] for y in made]
    found = [_evaluated(ca.Function(n, given, y), case) for n, y in (("f", made), ("g", copies))]
    return found[0], found[1]


def _evaluated(function: Any, case: Case) -> Call:
    """Return a call on arrays that are given once, and its results in row-major order."""
    buffer, evaluate = function.buffer()
    given = [np.ravel(a, order="F").copy() for a in case.arrays]
    shapes = [function.size_out(k) for k in range(function.n_out())]
    results = [np.zeros(rows * columns) for rows, columns in shapes]
    for k, array in enumerate(given):
        buffer.set_arg(k, memoryview(array))
    for k, array in enumerate(results):
        buffer.set_res(k, memoryview(array))
    views = [y.reshape(columns, rows).T for y, (rows, columns) in zip(results, shapes, strict=True)]

    def call() -> list[Any]:
        evaluate()
        return views

    # `evaluate` keeps none of them.
    call.kept = function, buffer, given  # type: ignore[attr-defined]
    return call


def shortest_times(calls: dict[str, Call], rounds: int) -> dict[str, float]:
    """Return the processor seconds of a call, the least of all rounds."""
    found = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.process_time()
            for _ in range(CALLS):
                call()
            found[name] = min(found[name], (time.process_time() - start) / CALLS)
    return found


def row_of(case: Case, peers: dict[str, Any], rounds: int) -> list[str]:
    """Return the cells of a row: times, and the ratio of the arithmetic's."""
    calls, found = {}, {}
    for name, make in peers.items():
        calls[name], calls[f"{name}, copies"] = make(case)
        found[name] = [np.array(y) for y in calls[name]()]
    shapes = [y.shape for y in found["primgraph"]]
    for name, results in found.items():
        # CasADi's vectors are columns, and gradients rows.
        results = [y.reshape(shape) for y, shape in zip(results, shapes, strict=True)]
        error = largest_error(results, found["primgraph"])
        if not error <= TOLERANCE:
            raise ArithmeticError(f"{case.name}: {name} differs by {error:.1e}")
    times = shortest_times(calls, rounds)
    net = {name: times[name] - times[f"{name}, copies"] for name in peers}
    cells = [seconds(times["primgraph"]), seconds(net["primgraph"])]
    if "casadi" not in peers:
        return [case.name, *cells, "-", "-", "-"]
    whole, inner = times["casadi"], net["casadi"]
    return [case.name, *cells, seconds(whole), seconds(inner), f"{net['primgraph'] / inner:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="few rounds, to see that it works")
    parser.add_argument("--only", nargs="*", default=[], help="cases that begin with one of these")
    options = parser.parse_args()
    peers: dict[str, Any] = {"primgraph": with_primgraph}
    if importlib.util.find_spec("casadi"):
        peers["casadi"] = with_casadi
    chosen = [c for c in cases() if c.name.startswith(tuple(options.only or [""]))]
    rows = [row_of(case, peers, 1 if options.short else ROUNDS) for case in chosen]
    heads = ["", "a call", "its arithmetic", "CasADi's call", "its arithmetic", "ratio"]
    print("\n".join(table(heads, rows)))


if __name__ == "__main__":
    main()
