"""Loops and branches in each other: one limit of depth, and work linear in their number."""

import copy
import pickle
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

import primgraph as pg
from primgraph.base import interpreter_limits as nesting
from primgraph.base.debug_mode import debug
from primgraph.ir.interpret import interpret
from primgraph.transforms.dataflow.value_bounds import ranges_of

KINDS = ("cond", "loop", "while")
LIMIT = nesting.DEEPEST


@pytest.fixture(autouse=True)
def _without_debug():
    """Debug mode prints and reads the graphs of every level."""
    with debug(False):
        yield


def nest(kind, depth, x):
    if depth == 0:
        return pg.sin(x)
    if kind == "cond":
        inner = (lambda: nest(kind, depth - 1, x * 1.01) + 0.1 * x, lambda: x * 2.0)
        return pg.cond(pg.sum(x) > 0.0, *inner)
    if kind == "while":
        return pg.while_loop(
            lambda s: pg.sum(s) < 3.0, lambda s: nest(kind, depth - 1, s * 0.5) + 4.0, x
        )
    if kind == "sum":
        inner = lambda i, s: s * 0.5 + nest(kind, depth - 1, x * 0.9)  # noqa: E731
        return pg.fori_loop(0, 2, inner, np.zeros(3))
    return pg.fori_loop(0, 1, lambda i, s: nest(kind, depth - 1, s * 0.5) + x, x)


def graph_of(kind, depth):
    return pg.trace(lambda x: pg.sum(nest(kind, depth, x)), pg.spec((3,)))


def program_of(kind, depth):
    with pg.Program() as program:
        x = pg.data("x", (3,))
        y = pg.sum(nest(kind, depth, x))
    return program, x, y


@pytest.mark.parametrize("kind", KINDS)
def test_graphs_at_the_limit_are_built_printed_copied_compiled_and_run(kind):
    graph = graph_of(kind, LIMIT)
    assert graph.nesting == LIMIT
    assert pg.parse(str(graph)) == graph
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert copy.deepcopy(graph) == graph
    x = np.array([0.3, 0.2, 0.5])
    np.testing.assert_allclose(pg.compile(graph)(x), interpret(graph, x)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_files_at_the_limit_come_back(kind, tmp_path):
    program, _, _ = program_of(kind, LIMIT)
    pg.save(program, tmp_path / "deep.pgz")
    assert pg.load(tmp_path / "deep.pgz").graph() == program.graph()


def test_gradients_of_branches_at_the_limit():
    program, x, y = program_of("cond", LIMIT)
    with program:
        slope = pg.grad(y, x)
    given = np.array([0.3, 0.2, 0.5])
    (found,) = pg.Executor().run(program, feed={"x": given}, fetch_list=[slope])
    step = 1e-6
    kernel = pg.compile(program.graph([y]))
    ends = [kernel(given + sign * step * np.eye(3)[0])[0] for sign in (1.0, -1.0)]
    np.testing.assert_allclose(found[0], (ends[0] - ends[1]) / (2 * step), rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_deeper_graphs_are_refused_when_they_are_built(kind):
    with pytest.raises(pg.BuildError, match=f"nested more than {LIMIT} deep"):
        graph_of(kind, LIMIT + 1)


def test_recursion_without_an_end_is_refused():
    def endless(x):
        return pg.cond(pg.sum(x) > 0.0, lambda: endless(x * 0.5), lambda: x)

    with pytest.raises(pg.BuildError, match=f"nested more than {LIMIT} deep"):
        pg.trace(endless, pg.spec((3,)))


def deeper_text(text):
    """The text of a graph of one branch more around that of `text`."""
    rows = "\n".join(text.split("\n"))
    other = "graph g(%x: f64[3]) {\n  %0: f64[] = reduce_sum(%x, axes=(0,))\n  return %0\n}"
    return (
        "graph f(%x: f64[3]) {\n  %0: i64[] = full(dtype=i64, shape=(), value=0)\n"
        f"  %1: f64[] = cond(%0, %x, branches=({rows}, {other}))\n  return %1\n}}"
    )


def test_texts_have_the_same_limit():
    text = "graph g(%x: f64[3]) {\n  %0: f64[] = reduce_sum(%x, axes=(0,))\n  return %0\n}"
    for _ in range(LIMIT):
        text = deeper_text(text)
    assert pg.parse(text).nesting == LIMIT
    with pytest.raises(pg.LoadError, match=f"line .*nested more than {LIMIT} deep"):
        pg.parse(deeper_text(text))


def test_files_have_the_same_limit(tmp_path, monkeypatch):
    program, _, _ = program_of("cond", 4)
    pg.save(program, tmp_path / "deep.pgz")
    monkeypatch.setattr(nesting, "DEEPEST", 3)
    with pytest.raises(pg.LoadError, match="nested more than 3 deep"):
        pg.load(tmp_path / "deep.pgz")


_FRESH = """
import pickle, sys
import numpy as np
import primgraph as pg
kind, path = sys.argv[1:]
if kind == "file":
    graph = pg.load(path).graph()
elif kind == "text":
    graph = pg.parse(open(path).read())
else:
    graph = pickle.load(open(path, "rb"))
print(graph.nesting, len(pg.compile(graph)(np.ones(3))) > 0)
"""


@pytest.mark.parametrize("kind", ["file", "text", "pickle"])
def test_a_new_process_takes_deep_graphs(kind, tmp_path):
    path = tmp_path / "deep"
    program, _, y = program_of("cond", LIMIT)
    if kind == "file":
        pg.save(program, path)
    elif kind == "text":
        path.write_text(str(program.graph([y])))
    else:
        path.write_bytes(pickle.dumps(program.graph([y])))
    command = [sys.executable, "-c", _FRESH, kind, str(path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.stdout.split() == [str(LIMIT), "True"], found.stderr


def test_readable_code_that_python_cannot_nest_is_an_error():
    for kind, depth in (("loop", 30), ("cond", LIMIT)):
        with pytest.raises(pg.CompileError, match="20 loops, 98 in all"):
            pg.compile(graph_of(kind, depth), style="readable")
    assert pg.compile(graph_of("cond", 60), style="readable")(np.ones(3)) > 0


def test_types_have_as_many_axes_as_arrays_may():
    pg.spec((1,) * 64)
    with pytest.raises(pg.ShapeError, match="65 axes"):
        pg.trace(lambda x: x, pg.spec((1,) * 65))
    with pytest.raises(pg.LoadError, match="65 axes"):
        pg.parse(f"graph f(%x: f64[{','.join('1' * 65)}]) {{\n  return %x\n}}")


# Growth, in calls of functions: these are the same on every machine.


def calls(function):
    """How many functions are called while `function` runs."""
    count = 0

    def watch(frame, event, arg):
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def equations(graph):
    return len(graph) + sum(equations(b) for e in graph.body for b in e.bodies)


def steps_of(kind, depth):
    """Calls for building, printing, reading and compiling, and for the gradient of each equation
    that it has."""
    found = [calls(lambda: program_of(kind, depth))]
    program, x, y = program_of(kind, depth)
    graph = program.graph([y])
    text = str(graph)
    found += [calls(lambda: str(graph)), calls(lambda: pg.parse(text))]
    with debug(False):
        found.append(calls(lambda: pg.compile(graph)))
        with program:
            slopes = []
            count = calls(lambda: slopes.append(pg.grad(y, x)))
        joint = program.graph([y, *slopes])
        found.append(count * equations(graph) / equations(joint))
        count = calls(lambda: pg.compile(joint))
        found.append(count * equations(graph) / equations(joint))
    return found


@pytest.mark.parametrize("kind", [*KINDS, "sum"])
def test_work_grows_with_the_number_of_equations(kind):
    steps_of(kind, 3)
    counts = [steps_of(kind, depth) for depth in (6, 12)]
    for less, more in pairwise(counts):
        assert all(b < 2.5 * a for a, b in zip(less, more, strict=True)), counts


@pytest.mark.parametrize("kind", ["loop", "while", "sum"])
def test_ranges_in_nested_loops_are_found_once(kind):
    graphs = [graph_of(kind, depth) for depth in (5, 10)]
    less, more = [calls(lambda g=g: ranges_of(g)) for g in graphs]
    assert more < 2.5 * less
