"""Every step from a program to its first value, every transform, printer, file and picture takes
linear work: ten times the equations are at most about ten times as many calls of functions.

Calls are counted, of Python and of C, which are the same on every machine.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import primgraph as pg
from primgraph.base.debug_mode import debug
from primgraph.ir.graph import Graph
from primgraph.transforms.pipeline import optimize_graph

# The exponent of growth from a size to its tenfold is at most 1.05.
MOST = 10**1.05

SIZES = [
    pytest.param(60, id="60"),
    pytest.param(1_000, id="1000", marks=pytest.mark.dense),
]

pytestmark = pytest.mark.long


def count_calls(action: Callable[[], object]) -> int:
    """The number of functions called while `action` runs, without checks of debug mode.

    Nothing is read from the disk cache, where code of an earlier run may be.
    """
    count = 0

    def watch(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    with debug(False), mock.patch("primgraph.codegen.code_entries._read", return_value=None):
        sys.setprofile(watch)
        try:
            action()
        finally:
            sys.setprofile(before)
    return count


class Case:
    """A chain of `count` operators on three arguments, its gradients, and graphs of them."""

    def __init__(self, count: int) -> None:
        with pg.Program("growth") as self.program:
            x, p, w = pg.data("x", (3,)), pg.data("p", (3,)), pg.data("w", (3, 3))
            value = x
            for i in range(0, count, 8):
                # Products, numbers, choices, moves and sums, on lines of their own.
                value = pg.cos(pg.sin(value) * p) + p
                value = pg.relu(value @ w) * 0.5
                value = pg.roll(value, 1) - (pg.sum(value) if i % 16 else value)
            self.x, self.loss = [x, p, w], pg.sum(value)
        self.plain = self.program.graph([self.loss])
        self.lowered = pg.transforms.lower(self.plain)

    def gradients(self) -> list[Any]:
        with self.program:
            return [self.loss, *pg.grad(self.loss, self.x)]


@cache
def case(count: int) -> Case:
    return Case(count)


@cache
def joint(count: int) -> tuple[pg.Program, Graph]:
    """A program with its gradients, and the graph of both."""
    made = Case(count)
    return made.program, made.program.graph(made.gradients())


def whole(count: int) -> Graph:
    """The graph of a value and its gradients, without notes."""
    return fresh(joint(count)[1])


def primitives(count: int) -> Graph:
    """The same graph, lowered to primitives."""
    return fresh(lowered(count))


@cache
def lowered(count: int) -> Graph:
    return pg.transforms.lower(whole(count))


def fresh(graph: Graph) -> Graph:
    return Graph(graph.inputs, graph.body, graph.outputs, graph.name)


def tangent_only(graph: Graph) -> Graph:
    jvp = pg.transforms.linearize(graph)
    return jvp.with_outputs(jvp.outputs[len(graph.outputs) :])


def first_value(count: int) -> None:
    made = Case(count)
    feed = {"x": np.ones(3), "p": np.ones(3), "w": np.eye(3)}
    pg.Executor().run(made.program, feed, made.gradients())


def optimized(math: str) -> Callable[[int], object]:
    return lambda n: optimize_graph(whole(n), math)


def compiled(style: str) -> Callable[[int], object]:
    return lambda n: pg.compile(whole(n), style=style)


def turned(n: int) -> Graph:
    jvp = tangent_only(case(n).lowered)
    return pg.transforms.transpose(jvp, range(3, 6))


STEPS: dict[str, Callable[[int], object]] = {
    "record": Case,
    "gradient": lambda n: Case(n).gradients(),
    "first value": first_value,
    "print": lambda n: str(whole(n)),
    "parse": lambda n: pg.parse(str(whole(n))),
    "verify": lambda n: pg.verify(whole(n)),
    "hash": lambda n: hash(whole(n)),
    "compare": lambda n: whole(n) == pg.parse(str(whole(n))),
    "pickle": lambda n: pickle.loads(pickle.dumps(whole(n))),
    "lower": lambda n: pg.transforms.lower(fresh(case(n).plain)),
    "linearize": lambda n: pg.transforms.linearize(case(n).lowered),
    "transpose": turned,
    "unzip": lambda n: pg.transforms.unzip(tangent_only(case(n).lowered), range(3, 6)),
    "batch": lambda n: pg.transforms.batch(case(n).lowered, 2),
    "simplify": lambda n: pg.transforms.simplify(primitives(n)),
    "fold_constants": lambda n: pg.transforms.fold_constants(primitives(n)),
    "dead_code": lambda n: pg.transforms.dead_code(primitives(n)),
    "clean_up": lambda n: pg.transforms.clean_up(primitives(n)),
    "hoist": lambda n: pg.transforms.hoist(primitives(n), [1, 2]),
    "join_products": lambda n: pg.transforms.join_products(primitives(n)),
    "matrix_chain": lambda n: pg.transforms.matrix_chain(primitives(n)),
    "optimize, exact": optimized("exact"),
    "optimize, fast": optimized("fast"),
    "compile, readable": compiled("readable"),
    "compile, planned": compiled("planned"),
    "dot": lambda n: whole(n).to_dot(),
    "mermaid": lambda n: whole(n).to_mermaid(),
    "networkx": lambda n: whole(n).to_networkx(),
    "svg": lambda n: whole(n).to_svg(),
    "html": lambda n: whole(n).to_html(),
    "cost": lambda n: pg.cost(whole(n)),
}


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("step", STEPS)
def test_work_grows_with_the_number_of_equations(step: str, count: int) -> None:
    run = STEPS[step]
    # What is loaded, cached or made for all steps is not counted.
    run(count)
    _ = case(10 * count), lowered(10 * count)
    small, large = (count_calls(lambda n=n: run(n)) for n in (count, 10 * count))
    assert large <= MOST * small, f"{small} calls, {large} for ten times the equations"


@pytest.mark.parametrize("count", SIZES)
def test_files_grow_with_the_number_of_equations(count: int, tmp_path: Path) -> None:
    def through_file(n: int) -> None:
        path = tmp_path / f"{n}.pg"
        pg.save(joint(n)[0], path)
        pg.load(path)

    through_file(count)
    small, large = (count_calls(lambda n=n: through_file(n)) for n in (count, 10 * count))
    assert large <= MOST * small, f"{small} calls, {large} for ten times the equations"


def test_quadratic_work_is_found() -> None:
    quadratic, linear = (
        [count_calls(lambda n=n, k=k: [abs(1) for _ in range(n**k)]) for n in (100, 1_000)]
        for k in (2, 1)
    )
    assert quadratic[1] > MOST * quadratic[0]
    assert linear[1] <= MOST * linear[0]


def many_loops(count: int) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        for k in range(count):
            rate = 1.1 + k / count
            x, _ = pg.scan(lambda c, _: (np.tanh(c * rate), None), x, length=3)  # noqa: B023
            x = pg.cond(x[0] > 0, lambda v: v * 0.9, lambda v: v * 1.1, x) + 0.1
        return np.sum(x)

    return f


def test_derivatives_of_many_loops_are_linear() -> None:
    x = np.ones(2)

    def counted(count: int) -> int:
        return count_calls(lambda: pg.trace(pg.grad(many_loops(count)), x))

    counted(3)
    assert counted(80) <= 4**1.05 * counted(20)
