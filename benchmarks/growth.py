"""How time and memory of every step grow with the number of equations.

A chain of equations is built, printed, parsed, transformed, compiled, run, pickled and freed in
several sizes, at Python's default recursion limit; then programs of as many operators go all
the way to the first value of their gradients, and single operations are recorded and
differentiated. A step of exponent 1 is linear: ten times the equations take ten times as long. Run
it as `python benchmarks/growth.py`.
"""

from __future__ import annotations

import argparse
import copy
import gc
import math
import pickle
import platform
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

import primgraph as pg
from primgraph.ir.graph import Graph
from primgraph.ir.types import FLOAT64, TensorType
from primgraph.primitives.elementwise import add, cos, mul, sin

SIZES = (100, 1_000, 10_000, 100_000)
SHORT_SIZES = (100, 1_000)
LARGEST_EXPONENT = 1.15
LARGEST_EQUATION = 400
VECTOR = TensorType((3,), FLOAT64)


def chain(count: int) -> Graph:
    """`count` equations, each on the result of the one before, some on a parameter too."""
    builder = pg.Builder("chain")
    value = builder.input(VECTOR, "x")
    p = builder.input(VECTOR, "p")
    with builder:
        for i in range(count):
            match i % 4:
                case 0:
                    value = sin(value)
                case 1:
                    value = mul(value, p)
                case 2:
                    value = cos(value)
                case _:
                    value = add(value, p)
    return builder.graph([value])


def operator_chain(count: int) -> Graph:
    """`count` user-level operators in a row, each on the result of the one before."""
    with pg.Program("operators") as program:
        value = pg.data("x", shape=VECTOR.shape)
        for _ in range(count):
            value = pg.softplus(value)
    return program.graph([value])


Variables = tuple[pg.Program, pg.Variable, list[pg.Variable]]


def program(count: int) -> Variables:
    """A user's program of `count` operators in a row: its sum, and its inputs."""
    with pg.Program("program") as made:
        x = value = pg.data("x", VECTOR.shape)
        p = pg.data("p", VECTOR.shape)
        for i in range(0, count, 4):
            value = pg.cos(pg.sin(value) * p) + p if i % 8 else pg.tanh(value * p) - p * value
        loss = pg.sum(value)
    return made, loss, [x, p]


def network(count: int) -> Variables:
    """Residual layers of four operators each on a batch of 16, which share eight weights."""
    with pg.Program("network") as made:
        x = value = pg.data("x", (16, 8))
        weights = [pg.data(f"w{k}", (8, 8)) for k in range(8)]
        for i in range(count // 4):
            value = value + 0.5 * pg.softplus(value @ weights[i % 8])
        loss = pg.mean(value * value)
    return made, loss, [x, *weights]


def recurrence(count: int) -> Variables:
    """An LSTM on a batch of 2, of steps of 40 equations each."""
    steps = max(1, count // 40)
    with pg.Program("recurrence") as made:
        x = pg.data("x", (steps, 2, 3))
        w, u, b = pg.data("w", (3, 16)), pg.data("u", (4, 16)), pg.data("b", (16,))
        state = cell = pg.zeros((2, 4))
        for i in range(steps):
            entering, kept, leaving, new = pg.split(x[i] @ w + state @ u + b, 4, axis=1)
            cell = pg.sigmoid(kept) * cell + pg.sigmoid(entering) * pg.tanh(new)
            state = pg.sigmoid(leaving) * pg.tanh(cell)
        loss = pg.mean(state * state)
    return made, loss, [w, u, b]


def descent(count: int) -> pg.Variable:
    """Steps along gradients, each of which is taken in the loop and of ten equations."""
    with pg.Program("descent"):
        x, w = pg.data("x", (5,)), pg.data("w", (5,))
        for _ in range(max(1, count // 10)):
            x = x + 0.1 * pg.grad(pg.sum(pg.sin(x * w)), x)
    return x


def with_gradient(built: Variables) -> tuple[pg.Program, list[pg.Variable]]:
    """What is fetched from a program: its sum and the gradients of it."""
    made, loss, inputs = built
    return made, [loss, *(g for g in pg.grad(loss, inputs) if g is not None)]


def kernel(fetched: tuple[pg.Program, list[pg.Variable]]) -> pg.Kernel:
    """Compiled anew: an executor keeps kernels with the program."""
    made, variables = fetched
    made.kernels.clear()
    return pg.Executor().kernel(made, variables)


class Case:
    """What the steps of one size work on; each is made once, on first use, outside the clock."""

    def __init__(self, count: int) -> None:
        self.count = count

    @cached_property
    def graph(self) -> Graph:
        return chain(self.count)

    @cached_property
    def text(self) -> str:
        return str(self.graph)

    @cached_property
    def twin(self) -> Graph:
        return pg.parse(self.text)

    @cached_property
    def pickled(self) -> bytes:
        return pickle.dumps(self.graph)

    @cached_property
    def jvp(self) -> Graph:
        return tangent_only(self.graph)

    @cached_property
    def operators(self) -> Graph:
        return operator_chain(self.count)

    @cached_property
    def fetched(self) -> tuple[pg.Program, list[pg.Variable]]:
        return with_gradient(program(self.count))

    @cached_property
    def kernels(self) -> dict[str, Any]:
        return {style: pg.compile(self.graph, style=style) for style in ("readable", "planned")}

    @cached_property
    def network_feeds(self) -> list[np.ndarray[Any, Any]]:
        return [np.ones((16, 8)), *(np.eye(8) for _ in range(8))]

    @cached_property
    def feeds(self) -> list[np.ndarray[Any, Any]]:
        return [np.linspace(0.1, 0.9, 3), np.linspace(0.5, 1.5, 3)]


def tangent_only(graph: Graph) -> Graph:
    """The linearized graph with the tangent as its only output."""
    jvp = pg.transforms.linearize(graph)
    return jvp.with_outputs(jvp.outputs[1:])


def unhashed(graph: Graph) -> Graph:
    """The same graph, which has not worked out its hash yet."""
    return Graph(graph.inputs, graph.body, graph.outputs, graph.name)


def _compare(case: Case) -> bool:
    same = unhashed(case.graph) == unhashed(case.twin)
    assert same
    return same


def _gradient(case: Case) -> Callable[[], object]:
    built = program(case.count)
    return lambda: with_gradient(built)


def _gradient_of_recurrence(case: Case) -> Callable[[], object]:
    built = recurrence(case.count)
    return lambda: with_gradient(built)


def _first_run(case: Case) -> Callable[[], object]:
    made = kernel(case.fetched)
    return lambda: made(*case.feeds)


def _first_value(case: Case) -> Callable[[], object]:
    # Equal graphs share compiled code as long as some kernel has it.
    case.fetched[0].kernels.clear()
    return lambda: kernel(with_gradient(program(case.count)))(*case.feeds)


def _first_value_of_network(case: Case) -> Callable[[], object]:
    return lambda: kernel(with_gradient(network(case.count)))(*case.network_feeds)


def _free(case: Case) -> Callable[[], object]:
    """A graph whose last reference goes when it is dropped."""
    held = [pickle.loads(case.pickled)]
    return held.clear


# Each answers with what is to be timed, and prepares it outside the clock.
PREPARED: dict[str, Callable[[Case], Callable[[], object]]] = {
    "build": lambda case: lambda: chain(case.count),
    "print": lambda case: lambda: str(case.graph),
    "parse": lambda case: lambda: pg.parse(case.text),
    "verify": lambda case: lambda: pg.verify(case.graph),
    "hash": lambda case: lambda: hash(unhashed(case.graph)),
    "compare": lambda case: lambda: _compare(case),
    "linearize": lambda case: lambda: pg.transforms.linearize(case.graph),
    "transpose": lambda case: lambda: pg.transforms.transpose(case.jvp, (2, 3)),
    "unzip": lambda case: lambda: pg.transforms.unzip(case.jvp, (2, 3)),
    "batch": lambda case: lambda: pg.transforms.batch(case.graph, 2),
    "simplify": lambda case: lambda: pg.transforms.simplify(case.graph),
    "fold_constants": lambda case: lambda: pg.transforms.fold_constants(case.graph),
    "dead_code": lambda case: lambda: pg.transforms.dead_code(case.graph),
    "lower": lambda case: lambda: pg.transforms.lower(case.operators),
    "compile, readable": lambda case: lambda: pg.compile(case.graph, style="readable"),
    "compile, planned": lambda case: lambda: pg.compile(case.graph, style="planned"),
    "run, readable": lambda case: lambda: case.kernels["readable"](*case.feeds),
    "run, planned": lambda case: lambda: case.kernels["planned"](*case.feeds),
    "pickle": lambda case: lambda: pickle.dumps(case.graph),
    "unpickle": lambda case: lambda: pickle.loads(case.pickled),
    "deep copy": lambda case: lambda: copy.deepcopy(case.graph),
    "free": _free,
    "program": lambda case: lambda: program(case.count),
    "program, gradient": _gradient,
    "program, compile": lambda case: lambda: kernel(case.fetched),
    "program, first run": _first_run,
    "program, all of these": _first_value,
    "network, all of these": _first_value_of_network,
    "recurrence, gradient": _gradient_of_recurrence,
    "gradients in a loop": lambda case: lambda: descent(case.count),
}


def median_time(prepare: Callable[[Case], Callable[[], object]], case: Case, runs: int) -> float:
    """Median seconds of processor time of `runs` runs, after one that is not counted.

    Python's garbage collector is on, and has to follow what the step makes; what the benchmark
    itself holds is among the old objects.
    """
    times = []
    for _ in range(runs + 1):
        step = prepare(case)
        gc.collect()
        start = time.process_time()
        result = step()
        times.append(time.process_time() - start)
        del result, step
    return statistics.median(times[1:])


def bytes_an_equation(make: Callable[[], Graph]) -> float:
    """Memory that the graph made by `make` keeps, over its number of equations."""
    make()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    graph = make()
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (after - before) / len(graph)


# Operations of a chain, each on the result of the one before, with the shapes of their operands.
OPERATIONS: dict[str, tuple[Callable[..., pg.Variable], tuple[tuple[int, ...], ...]]] = {
    "tanh(y)": (pg.tanh, ((3,),)),
    "y + a": (lambda y, a: y + a, ((3,), (3,))),
    "y * 0.5": (lambda y: y * 0.5, ((3,),)),
    "y @ w + a": (lambda y, w, a: y @ w + a, ((2, 4), (4, 4), (4,))),
    "roll(y, 1)": (lambda y: pg.roll(y, 1), ((3,),)),
}


def microseconds(name: str, count: int, runs: int) -> tuple[float, float]:
    """Shortest processor time for recording an operation of a chain, and for its gradient."""
    operation, shapes = OPERATIONS[name]
    recorded, differentiated = [], []
    for _ in range(runs):
        with pg.Program():
            inputs = [pg.data(f"x{i}", shape) for i, shape in enumerate(shapes)]
            value, others = inputs[0], inputs[1:]
            gc.collect()
            start = time.process_time()
            for _ in range(count):
                value = operation(value, *others)
            recorded.append(time.process_time() - start)
            total = pg.sum(value)
            start = time.process_time()
            pg.grad(total, inputs)
            differentiated.append(time.process_time() - start)
    return 1e6 * min(recorded) / count, 1e6 * min(differentiated) / count


def exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    """The slope over the last two decades of sizes on logarithmic scales."""
    first = max(0, len(sizes) - 3)
    return math.log(times[-1] / times[first]) / math.log(sizes[-1] / sizes[first])


def row(name: str, sizes: Sequence[int], times: Sequence[float]) -> str:
    slope = exponent(sizes, times)
    over = " over the bar" if slope > LARGEST_EXPONENT else ""
    cells = " | ".join(f"{1e3 * t:.3f}" for t in times)
    return f"| {name} | {cells} | {slope:.2f}{over} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table of times and the table of bytes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="small sizes, one run of each step")
    parser.add_argument("--only", nargs="*", help="names of the steps to measure")
    parser.add_argument("--runs", type=int, help="how often each step is run")
    options = parser.parse_args(arguments)
    sizes, runs = (SHORT_SIZES, 1) if options.short else (SIZES, 5)
    runs = options.runs or runs
    steps = {n: s for n, s in PREPARED.items() if not options.only or n in options.only}

    versions = f"Python {platform.python_version()}, numpy {np.__version__}"
    print(f"{versions}, recursion limit {sys.getrecursionlimit()}, medians of {runs}\n")
    cases = [Case(n) for n in sizes]
    print("| ms | " + " | ".join(f"{n:,}" for n in sizes) + " | exponent |")
    print("|---|" + "---|" * (len(sizes) + 1))
    for name, prepare in steps.items():
        print(row(name, sizes, [median_time(prepare, case, runs) for case in cases]), flush=True)

    if options.only is None:
        print("\n| us an operation | record | gradient |")
        print("|---|---|---|")
        for name in OPERATIONS:
            cells = microseconds(name, min(sizes[-1], 1_000), runs)
            print(f"| {name} | " + " | ".join(f"{t:.1f}" for t in cells) + " |", flush=True)

    print("\n| bytes an equation | " + " | ".join(f"{n:,}" for n in sizes) + " |")
    print("|---|" + "---|" * len(sizes))
    for name, make in (
        ("parsed", lambda case: pg.parse(case.text)),
        ("unpickled", lambda case: pickle.loads(case.pickled)),
    ):
        found = [bytes_an_equation(lambda make=make, case=case: make(case)) for case in cases]
        over = " over the bar" if max(found) > LARGEST_EQUATION else ""
        print(f"| {name}{over} | " + " | ".join(f"{b:.0f}" for b in found) + " |")


if __name__ == "__main__":
    main()
