"""Profiles: every step is timed once, times add up, and nothing of the user's changes."""

import json
import math

import numpy as np
import pytest

import primgraph as pg
from primgraph.codegen import compile_graph
from primgraph.codegen.ir.limits import Limits
from primgraph.codegen.targets.text.clocks import Clocks, with_clocks
from primgraph.codegen.targets.text.module import Function, Module
from primgraph.errors import ArgumentError, FeedError
from primgraph.ir.text import parse

rng = np.random.default_rng(0)


def loss(x, w):
    hidden = pg.tanh(x @ w)
    return pg.sum(hidden**2)


def gradient(x, w):
    value = loss(x, w)
    return value, pg.grad(value, w)


FEED = [rng.standard_normal((200, 100)), rng.standard_normal((100, 50))]


@pytest.fixture
def graph():
    return pg.trace(gradient, *FEED)


@pytest.mark.parametrize("style", ["planned", "readable"])
def test_lines_of_code_are_counted_where_they_belong(graph, style):
    kernel = pg.compile(graph, style=style)
    profile = pg.profile(kernel, FEED, repeats=5)
    assert (profile.style, profile.repeats, profile.kernel) == (style, 5, kernel)
    assert len(profile.times) == len(profile.parts) == len(kernel.graph.body)
    by_op = profile.by_op()
    # In readable code one product is a part of a longer line, and counted there.
    products = 2 if style == "planned" else 1
    assert by_op["matmul"].calls == products
    assert by_op["matmul"].work.flops == products * 2 * 200 * 100 * 50
    assert by_op["matmul"].seconds > 0
    lines = {s.text.partition(" =")[0]: spent for s, spent in profile.by_line().items() if s}
    assert lines["hidden"].calls >= 2
    total = sum(spent.seconds for spent in profile.by_line().values())
    assert math.isclose(total, sum(profile.times))
    assert profile.explained > 0
    assert math.isclose(sum(profile.shares.values()), sum(profile.times) / profile.seconds)


def test_what_a_profile_runs_gives_the_results_of_the_kernel(graph):
    for style in ("planned", "readable"):
        kernel = pg.compile(graph, style=style)
        watched, clocks, places = kernel.with_clocks()
        for mine, theirs in zip(watched(*FEED), kernel(*FEED), strict=True):
            assert mine.tobytes() == theirs.tobytes()
        seconds, calls = clocks.take()
        assert len(seconds) == len(places) + 1
        assert max(calls[:-1]) == 1
        assert clocks.take()[1] == [0] * len(seconds)
        # The code with clocks is nobody else's.
        assert "clock" not in pg.compile(graph, style=style).planned_source


def test_steps_in_blocks_run_once_for_each_block():
    graph = parse("""graph f(%x: f64[1000,4]) {
      %0: f64[1000,4] = sin(%x)
      %1: f64[1000,4] = exp(%0)
      %2: f64[4] = reduce_sum(%1, axes=(0,))
      return %2
    }""")
    limits = Limits(cache=1, least_bytes=1, least_block=1, rows=100)
    kernel = compile_graph(graph, limits=limits)
    assert kernel.plan.regions
    profile = pg.profile(kernel, [rng.standard_normal((1000, 4))], repeats=3)
    # Before the loop, the total is filled with zeros.
    assert [part.calls for part in profile.parts] == [11, 10, 10]
    assert profile.parts[0].work.flops == 8 * 4000
    assert profile.around > 0


def test_long_kernels_of_many_functions_are_timed():
    def chain(x):
        for _ in range(1500):
            x = pg.sin(x) + x
        return x

    kernel = pg.compile(pg.trace(chain, pg.spec(3)))
    for _ in range(5):
        profile = pg.profile(kernel, [np.ones(3)], repeats=15)
        assert sum(part.calls for part in profile.parts) == 3000
        # On a busy machine a run may be stopped for longer than it takes.
        if 0.3 < profile.explained < 3:
            break
    assert 0.3 < profile.explained < 3
    text = profile.table("equation", top=5).splitlines()
    assert len(text) == 1 + 5 + 1 + 1
    assert "(2995 more)" in text[-2]


def test_results_on_many_lines_are_worked_out_before_the_last_reading():
    graph = pg.trace(lambda x: tuple(pg.sin(x * i) + 1 for i in range(2, 40)), pg.spec(3))
    kernel = pg.compile(graph, style="readable")
    assert "    return (\n" in kernel.source
    assert pg.profile(kernel, [np.ones(3)], repeats=2).style == "readable"


def test_an_expression_that_is_returned_at_once_is_timed():
    kernel = pg.compile(pg.trace(lambda x: -x, pg.spec(3)), style="readable")
    assert "return -x" in kernel.source
    assert pg.profile(kernel, [np.ones(3)], repeats=2).parts[0].calls == 1


def test_scalar_code_is_profiled_unless_it_gives_up():
    graph = pg.trace(lambda x: pg.exp(x) * 2.0, pg.spec(()))
    assert pg.profile(graph, [np.array(1.0)], repeats=3).style == "scalar"
    assert pg.profile(graph, [np.array(1000.0)], repeats=3).style == "planned"
    profile = pg.profile(graph, {"x": np.array(1.0)}, repeats=3)
    assert sum(part.calls for part in profile.parts) == 2


def test_tables_and_json(graph):
    profile = pg.profile(graph, FEED, repeats=3, ranges=True)
    text = str(profile)
    assert "a call of the planned code" in text
    assert "hidden = pg.tanh(x @ w)" in text
    assert "around the equations" in text
    assert "matmul" in profile.table("op")
    with pytest.raises(ArgumentError, match="'file'"):
        profile.table("file")
    data = json.loads(profile.to_json())
    assert data["seconds"] == profile.seconds
    assert math.isclose(sum(e["seconds"] for e in data["equations"]), sum(profile.times))
    matmul = next(e for e in data["equations"] if e["op"] == "matmul")
    assert matmul["flops"] == 2 * 200 * 100 * 50
    assert matmul["share"] == pytest.approx(matmul["seconds"] / profile.seconds)
    assert matmul["range"]["nans"] == 0


def test_ranges_are_those_of_the_values():
    graph = parse("""graph f(%x: f64[3]) {
      %0: f64[3] = log(%x)
      %1: f64[3] = neg(%x)
      %2: bool[3] = less(%x, %1)
      return %0, %2
    }""")
    profile = pg.profile(graph, [np.array([-1.0, 1.0, 4.0])], repeats=1, ranges=True)
    assert profile.ranges is not None
    assert profile.ranges[0] == (0.0, np.log(4.0), 1)
    assert profile.ranges[1] == (-4.0, 1.0, 0)
    assert profile.ranges[2] == (0.0, 1.0, 0)
    none = pg.profile(graph, [np.full(3, np.nan)], repeats=1, ranges=True).ranges
    assert none is not None
    assert none[0].nans == 3
    assert math.isnan(none[0].least)
    json.loads(pg.profile(graph, [np.zeros(3)], repeats=1, ranges=True).to_json())


def test_profiles_are_saved_as_pages_pictures_and_figures(tmp_path):
    graph = pg.trace(lambda x: pg.exp(pg.log(x)), pg.spec(3))
    profile = pg.profile(graph, [np.array([-1.0, 1.0, 4.0])], repeats=2, ranges=True)
    for form in ("html", "svg", "json"):
        profile.save(tmp_path / f"p.{form}")
    page, svg = ((tmp_path / f"p.{form}").read_text("utf-8") for form in ("html", "svg"))
    assert "from 0 to 1.38629, 1 NaN" in page
    assert "from 0 to 1.38629, 1 NaN" in svg
    assert svg.count('class="warm"') == 2
    assert json.loads((tmp_path / "p.json").read_text())["name"] == "f"
    with pytest.raises(ArgumentError, match=r"\.html, \.svg or \.json"):
        profile.save(tmp_path / "p.png")


def trained():
    with pg.Program("model") as program:
        x = pg.data("x", (8, 3))
        value = pg.mean(pg.nn.Linear(3, 2)(x) ** 2)
        pg.optimizer.Adam(0.1).minimize(value)
    return program, value


def test_states_and_updates_stay_as_they_were():
    program, value = trained()
    feed = {"x": np.ones((8, 3))}
    profile = pg.profile(program, feed, [value], repeats=4)
    assert len(program.scope) == 0
    assert profile.by_op()["matmul"].calls
    executor = pg.Executor()
    first = executor.run(program, feed, [value])[0]
    before = program.state_dict()
    pg.profile(program, feed, repeats=4)
    assert all(np.array_equal(v, before[n]) for n, v in program.state_dict().items())
    fresh, other = trained()
    assert executor.run(fresh, feed, [other])[0] == first


def test_feeds_are_checked():
    program, value = trained()
    graph = pg.trace(lambda x: x * 2, pg.spec(3))
    with pytest.raises(FeedError, match="missing 'x'"):
        pg.profile(program, {}, [value])
    with pytest.raises(ArgumentError, match="mapping"):
        pg.profile(program, [np.ones((8, 3))], [value])
    with pytest.raises(FeedError, match="no input 'y'"):
        pg.profile(graph, {"y": np.ones(3)})
    with pytest.raises(FeedError, match="1 arrays, 2 given"):
        pg.profile(graph, [np.ones(3), np.ones(3)])
    with pytest.raises(FeedError, match="shapes differ"):
        pg.profile(graph, [np.ones(4)])
    with pytest.raises(ArgumentError, match="at least 1"):
        pg.profile(graph, [np.ones(3)], repeats=0)


def test_donated_inputs_are_copied():
    graph = parse("graph f(%x: f64[3]) {\n  %0: f64[3] = neg(%x)\n  return %0\n}")
    kernel = pg.compile(graph, donated={0: 0})
    array = np.arange(3.0)
    profile = pg.profile(kernel, [array], repeats=3, ranges=True)
    assert array.tolist() == [0.0, 1.0, 2.0]
    assert profile.ranges == ((-2.0, 0.0, 0),)


def test_clocks_are_put_after_each_run_of_lines_and_into_loops():
    function = Function("run", "x")
    for line, step, depth in (("a = x", -1, 0), ("for s in a:", -1, 0), ("b = 1", 0, 1),
                              ("b += 1", 0, 1), ("c = 2", 0, 0)):  # fmt: skip
        function.line(line, step, depth)
    function.returns(["[", "    c,", "]"], 1)
    plain = Function("entry", "x")
    plain.returns(["run(x)"])
    module = Module([], [], [function, plain], "entry", {})
    clocks = with_clocks(module, 2)
    assert plain.indented_lines == ["    return run(x)"]
    assert "clock_calls[2] += 1" in "".join(function.indented_lines)
    namespace = dict(module.table)
    exec("\n".join([*function.header, *function.indented_lines]), namespace)
    assert namespace["run"]([1, 2, 3]) == [2]
    assert clocks.calls == [3 + 1, 1, 3]
    assert all(s > 0 for s in clocks.seconds)
    assert isinstance(clocks, Clocks)
