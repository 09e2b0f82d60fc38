"""Derivatives of high orders and operators of differential equations, beside JAX's.

Each row is a process of its own for each tool, one after the other: seconds of processor time of
the first call, with all that goes before it, and the least of later calls; and by how much memory
the process grew at most. JAX takes jets by `jax.experimental.jet` and, to order 6, by nested `jvp`;
operators by forward mode over gradients, and by nested `jvp` along the axes. Values are compared.
Run it as `python benchmarks/jets.py --peers PYTHON`, an interpreter that has JAX.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

TOOLS = ("primgraph", "primgraph, C", "JAX", "JAX, nested jvp")
ORDERS = (3, 6, 10)
MOST_NESTED = 6
POINTS, SHORT_POINTS = 1000, 5
WIDTH, LAYERS = 64, 5
FUNCTIONS = ("tanh", "softplus", "sine", "root", "network")
OPERATORS = tuple(
    (name, d) for name in ("laplacian", "partials", "biharmonic") for d in (2, 10, 50)
)
SECONDS, SHORT_SECONDS = 1.0, 0.01


class Case(NamedTuple):
    """A jet of an order, or an operator in so many dimensions, at so many points."""

    name: str
    number: int
    points: int


def weights(first: int, width: int, layers: int) -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(0)
    sizes = (first, *[width] * (layers - 1), 1)
    return [
        (rng.normal(scale=n**-0.5, size=(n, m)), rng.normal(size=m)) for n, m in pairwise(sizes)
    ]


def through(np_: Any, x: Any, layers: list[tuple[Any, Any]]) -> Any:
    for i, (weight, bias) in enumerate(layers):
        x = x @ weight + bias
        x = np_.tanh(x) if i + 1 < len(layers) else x
    return x


def functions(np_: Any) -> dict[str, Callable[[Any], Any]]:
    """Of each number in an array, with the functions of a library."""
    layers = weights(1, 32, 3)
    return {
        "tanh": np_.tanh,
        "softplus": lambda x: np_.log1p(np_.exp(x * np_.tanh(x))) / (1 + x * x),
        "sine": lambda x: np_.sin(np_.exp(x)),
        "root": lambda x: 1 / np_.sqrt(1 + x * x),
        "network": lambda x: through(np_, x.reshape((-1, 1)), layers).reshape((-1,)),
    }


def indices(d: int) -> list[tuple[int, ...]]:
    rest = (0,) * (d - 2)
    return [(2, 1, *rest), (1, 1, *rest), (0, 4, *rest)]


def at(case: Case) -> np.ndarray:
    if case.name in FUNCTIONS:
        return np.linspace(0.1, 1.4, case.points)
    return np.random.default_rng(1).normal(size=(case.points, case.number))


def with_primgraph(case: Case, target: str | None) -> Callable[[], Any]:
    pg: Any = importlib.import_module("primgraph")
    x = at(case)
    if case.name in FUNCTIONS:
        f = functions(pg)[case.name]
        graph = pg.trace(lambda v: pg.taylor(f(v), v, case.number)[1:], pg.spec(x.shape))
    else:
        layers = weights(case.number, WIDTH, LAYERS)
        operator = getattr(pg, case.name)
        options = (indices(case.number),) if case.name == "partials" else ()
        graph = pg.trace(
            lambda v: operator(through(pg, v, layers), v, *options, True), pg.spec(x.shape)
        )
    kernel = pg.compile(graph, **({"target": target} if target else {}))
    return lambda: kernel(x)


def along(jax: Any, f: Any, v: Any) -> Any:
    return lambda x: jax.jvp(f, (x,), (v(x),))[1]


def laplacian_of(jax: Any, f: Any, d: int) -> Any:
    numpy = jax.numpy

    def found(x: Any) -> Any:
        slope = jax.grad(f)
        rows = jax.vmap(lambda e: numpy.vdot(e, jax.jvp(slope, (x,), (e,))[1]))
        return numpy.sum(rows(numpy.eye(d)))

    return found


def with_jax(case: Case, nested: bool) -> Callable[[], Any] | None:
    jax: Any = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    numpy = jax.numpy
    x = numpy.asarray(at(case))
    if case.name in FUNCTIONS:
        f, order = functions(numpy)[case.name], case.number
        if nested and order > MOST_NESTED:
            return None
        if nested:
            chain = [f]
            for _ in range(order):
                chain.append(along(jax, chain[-1], numpy.ones_like))
            run = jax.jit(lambda v: [g(v) for g in chain[1:]])
        else:
            jet = importlib.import_module("jax.experimental.jet").jet
            ones, zero = numpy.ones_like(x), numpy.zeros_like(x)
            run = jax.jit(lambda v: jet(f, (v,), ((ones, *[zero] * (order - 1)),))[1])
    else:
        layers, d = weights(case.number, WIDTH, LAYERS), case.number

        def u(v: Any) -> Any:
            return through(numpy, v, layers)[0]

        if nested:
            return None
        if case.name == "partials":

            def whole(v: Any) -> Any:
                found = []
                for index in indices(d):
                    g: Any = u
                    for axis in np.repeat(np.arange(d), index):
                        g = along(jax, g, lambda v, axis=axis: numpy.eye(d)[axis])
                    found.append(g(v))
                return found

        elif case.name == "laplacian":
            whole = laplacian_of(jax, u, d)
        else:
            whole = laplacian_of(jax, laplacian_of(jax, u, d), d)
        run = jax.jit(jax.vmap(whole))
    return lambda: jax.block_until_ready(run(x))


def made(tool: str, case: Case) -> Callable[[], Any] | None:
    if tool.startswith("JAX"):
        return with_jax(case, tool != "JAX")
    return with_primgraph(case, "c" if tool.endswith("C") else None)


def seconds_taken() -> float:
    """Processor seconds of this process, and of those that it has waited for: compilers."""
    return sum(os.times()[:4])


def serve(tool: str, case: Case, path: str, seconds: float) -> None:
    """Measure a case, and leave its values at `path`."""
    small = made(tool, Case("tanh", 1, 3))
    if small is not None:
        small()
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, seconds_taken()
    call = made(tool, case)
    if call is None:
        return
    results = call()
    first = seconds_taken() - start
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while len(taken) < 3 or time.perf_counter() < end:
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    listed = results if isinstance(results, list | tuple) else [results]
    np.savez(path, *[np.ravel(np.asarray(a)) for a in listed])
    print(json.dumps({"first": first, "later": min(taken), "memory": grown * 1024}), flush=True)


def asked(tool: str, python: str, case: Case, path: Path, seconds: float) -> dict[str, float]:
    """What the process of a tool measures; nothing where it has no such case."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    order = json.dumps([tool, *case, str(path), seconds])
    found = subprocess.run(
        [python, __file__, "--serve", order],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **threads, "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"},
    )
    if found.returncode:
        raise ChildProcessError(f"{tool}, {case.name}: {found.stderr[-2000:]}")
    result: dict[str, float] = json.loads(found.stdout) if found.stdout else {}
    return result


def row(case: Case, pythons: dict[str, str], seconds: float, digits: float) -> list[str]:
    found: dict[str, dict[str, float]] = {}
    values: dict[str, list[np.ndarray]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for tool, python in pythons.items():
            path = Path(folder, f"{len(found)}.npz")
            answer = asked(tool, python, case, path, seconds)
            if answer:
                found[tool] = answer
                with np.load(path) as stored:
                    values[tool] = [stored[k] for k in stored.files]
    own = values["primgraph"]
    for tool, arrays in values.items():
        for one, other in zip(arrays, own, strict=True):
            scale = max(float(np.max(np.abs(other), initial=0.0)), 1e-3)
            off = float(np.max(np.abs(one - other), initial=0.0)) / scale
            if not off < digits:
                raise ArithmeticError(f"{case}: {tool} differs by {off:.1e}")
    cells = [f"{found[t]['later'] * 1e6:,.0f}" if t in found else "" for t in TOOLS]
    cells += [f"{found[t]['first'] * 1e3:,.0f}" if t in found else "" for t in TOOLS]
    if case.name not in FUNCTIONS:
        cells += [f"{found[t]['memory'] / 1e6:,.0f}" if t in found else "" for t in TOOLS[:3]]
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="few points and cases")
    parser.add_argument("--peers", default=sys.executable, help="the interpreter that has JAX")
    parser.add_argument("--only", nargs="*", default=[], help="names of functions or operators")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        tool, name, number, points, path, seconds = json.loads(options.serve)
        serve(tool, Case(name, number, points), path, seconds)
        return
    pythons = dict.fromkeys(TOOLS[:2], sys.executable)
    if options.peers != sys.executable or importlib.util.find_spec("jax") is not None:
        pythons |= dict.fromkeys(TOOLS[2:], options.peers)
    points = SHORT_POINTS if options.short else POINTS
    seconds = SHORT_SECONDS if options.short else SECONDS
    orders = ORDERS[:1] if options.short else ORDERS
    chosen = options.only or (["tanh", "partials"] if options.short else [])
    jets = [Case(f, k, points) for f in FUNCTIONS for k in orders]
    # Nested operators of many variables take gigabytes: there are fewer points then.
    operators = [
        Case(name, d, points if name != "biharmonic" or d < 50 else points // 50 + 1)
        for name, d in OPERATORS
        if not options.short or d == 2
    ]
    for title, cases in (("jet of order", jets), ("operator, variables", operators)):
        heads = [f"{t}, µs" for t in TOOLS] + ["first call, ms", "C", "JAX", "nested jvp"]
        heads += ["memory, MB", "C", "JAX"] if title.startswith("operator") else []
        print(f"| {title} | points | {' | '.join(heads)} |")
        print("|---" * (len(heads) + 2) + "|")
        for case in cases:
            if not chosen or case.name in chosen:
                cells = row(case, pythons, seconds, 1e-6)
                name = f"{case.name}, {case.number}"
                print(f"| {name} | {case.points} | {' | '.join(cells)} |", flush=True)
        print()


if __name__ == "__main__":
    main()
