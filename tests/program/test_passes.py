"""The pipeline of `pg.compile`: its table, passes of other packages, and passes left out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from helpers import restored_tables
from program_tolerance import differs
from random_programs import random_program

import primgraph as pg
from primgraph.errors import ArgumentError
from primgraph.extend import add_pass, pass_names
from primgraph.ir.rebuild import copy, rebuild
from primgraph.primitives.elementwise import neg

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "passes.md"
REQUIRED = ("lower", "expand_solutions")
OPTIONAL = [name for name in pass_names() if name not in REQUIRED]


def twice(x: pg.Variable) -> pg.Variable:
    negative = -x
    return -negative * 2.0


TWICE = pg.trace(twice, pg.spec(3))


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    with restored_tables():
        yield


def ops(graph: pg.Graph) -> list[str]:
    return [eqn.op.name for eqn in graph.body]


def negated(graph: pg.Graph) -> pg.Graph:
    """Return the graph with all outputs negated twice, which `clean_up` removes."""
    builder, moved = rebuild(graph)
    with builder:
        for eqn in graph.body:
            copy(builder, eqn, moved)
        return builder.graph([neg(neg(moved[v])) for v in graph.outputs])


@pytest.mark.skipif(not GUIDE.exists(), reason="the guide is in a checkout only")
def test_the_guide_lists_the_passes_in_order() -> None:
    section = GUIDE.read_text(encoding="utf-8").split("## The passes of pg.compile")[1]
    rows = re.findall(r"^\| `(\w+)` \|", section.split("\n## ")[0], re.MULTILINE)
    assert rows == pass_names(), "add a row to the table of docs/guide/passes.md"


def test_a_pass_of_another_package_runs_at_its_place_and_level() -> None:
    met = []

    def before_lower(graph: pg.Graph) -> pg.Graph:
        met.append(("before_lower", ops(graph)))
        return graph

    def at_level(graph: pg.Graph, math: str) -> pg.Graph:
        met.append((math, ops(graph)))
        return graph

    add_pass(before_lower, before="lower")
    add_pass(at_level, after="clean_up", level="finite")
    first = ["before_lower", "lower", "expand_solutions", "vectorize_stacks", "clean_up"]
    assert pass_names()[:6] == [*first, "at_level"]
    graph = pg.trace(lambda x: pg.softplus(twice(x)), pg.spec(3))
    pg.compile(graph)
    assert met == [("before_lower", ["neg", "neg", "full", "mul", "softplus"])]
    pg.compile(graph, math="fast")
    assert met[2][0] == "fast"
    assert "neg" not in met[2][1][:2]
    pg.compile(graph, math="fast", skip=["at_level", "before_lower"])
    assert len(met) == 3


def test_clean_up_follows_a_pass_that_changes_the_graph() -> None:
    add_pass(negated, after="clean_up")
    assert ops(pg.compile(TWICE).graph) == ["full", "mul"]
    assert ops(pg.compile(TWICE, skip=["clean_up"]).graph).count("neg") == 4


def test_programs_functions_and_tensors_run_an_added_pass() -> None:
    seen = []

    def counted(graph: pg.Graph) -> pg.Graph:
        seen.append(graph)
        return graph

    add_pass(counted, after="matrix_chain", level="exact")
    with pg.Program():
        x = pg.data("x", (3,))
        pg.Executor().run(feed={"x": np.ones(3)}, fetch_list=[pg.sin(x)])
    assert len(seen) == 1
    pg.jit(lambda x: pg.cos(x) * 2.5)(np.ones(3))
    assert len(seen) == 2
    pg.compile(pg.trace(pg.sin, pg.spec("n")))(np.ones(3))
    assert len(seen) == 3


def test_kernels_with_and_without_a_pass_are_different_ones() -> None:
    found = [pg.compile(TWICE, skip=skip) for skip in ((), ["clean_up"], (), ["clean_up"])]
    assert [ops(k.graph).count("neg") for k in found] == [0, 2, 0, 2]
    for kernel in found:
        assert np.array_equal(kernel(np.arange(3.0)), [0.0, 2.0, 4.0])
    sized = pg.compile(pg.trace(twice, pg.spec("n")), skip=["clean_up"])
    assert np.array_equal(sized(np.arange(3.0)), [0.0, 2.0, 4.0])
    assert ops(sized.at(n=3).graph).count("neg") == 2


def test_mistakes_are_explained() -> None:
    with pytest.raises(
        ArgumentError,
        match=r"no pass 'tidy'(?s:.)*lower, expand_solutions, vectorize_stacks, clean_up",
    ):
        pg.compile(TWICE, skip=["tidy"])
    for name in REQUIRED:
        with pytest.raises(ArgumentError, match=f"{name} can't be skipped"):
            pg.compile(TWICE, skip=[name])
    with pytest.raises(ArgumentError, match=r"skip=\['clean_up'\]"):
        pg.compile(TWICE, skip="clean_up")
    with pytest.raises(ArgumentError, match="no pass 'tidy'"):
        add_pass(negated, after="tidy")
    with pytest.raises(ArgumentError, match="one of before and after"):
        add_pass(negated)
    with pytest.raises(ArgumentError, match="one of before and after"):
        add_pass(negated, before="lower", after="lower")
    with pytest.raises(ArgumentError, match="is not known"):
        add_pass(negated, after="lower", level="loose")
    add_pass(negated, after="lower")
    with pytest.raises(ArgumentError, match="already"):
        add_pass(negated, after="lower")


def test_the_environment_leaves_passes_out_of_a_whole_process() -> None:
    program = (
        "import numpy as np\nimport primgraph as pg\n"
        "f = pg.jit(lambda x: -(-x) * 2.0)\n"
        "f(np.ones(2))\n"
        "k = pg.compile(pg.trace(lambda x: -(-x) * 2.0, pg.spec(3)))\n"
        "print(*[e.op.name for e in k.graph.body])\n"
    )

    def run(names: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PRIMGRAPH_SKIP_PASSES": names}
        return subprocess.run(
            [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False
        )

    assert run("").stdout.split() == ["full", "mul"]
    assert run("clean_up, join_solves").stdout.split() == ["neg", "neg", "full", "mul"]
    assert "there is no pass 'tidy'" in run("tidy").stderr


@pytest.mark.parametrize("name", OPTIONAL)
def test_random_programs_compute_the_same_without_a_pass(name: str) -> None:
    for seed in range(40, 52):
        program = random_program(seed)
        graph = pg.transforms.lower(program.graph)
        expected = pg.interpret(program.graph, *program.feeds)
        found = pg.compile(graph, skip=[name])(*program.feeds)
        fault = differs(graph, program.feeds, expected, found)
        assert not fault, f"without {name}: {program}\n{fault}"


def test_solutions_loops_and_systems_compile_with_required_passes_alone() -> None:
    a, b = np.array([[3.0, 1.0], [0.5, 2.0]]), np.array([1.0, 2.0])

    def function(a: pg.Variable, b: pg.Variable) -> tuple[pg.Variable, ...]:
        root = pg.fixed_point(lambda z: 0.5 * pg.cos(z) + b, b)
        return pg.linalg.solve(a, b), pg.linalg.inv(a), root

    graph = pg.trace(function, pg.spec((2, 2)), pg.spec(2))
    expected = pg.compile(graph)(a, b)
    for style in ("planned", "readable"):
        found = pg.compile(graph, style=style, skip=OPTIONAL)(a, b)
        for mine, known in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, known, rtol=1e-12)
