"""Short axes of native code: for each index along them there is an array of its own."""

import shutil

import numpy as np
import pytest
from helpers import gravity, lennard_jones

import primgraph as pg
from primgraph.codegen import compile_graph
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.ir.statements import Nest
from primgraph.codegen.lower.nests.nests import nests
from primgraph.codegen.lower.nests.short_axes import unroll_short_axes
from primgraph.ir.interpret import interpret
from primgraph.ir.verify import verify
from primgraph.transforms import clean_up, lower

rng = np.random.default_rng(31)


@pytest.fixture(autouse=True, scope="module")
def own_cache(native_cache):
    return native_cache


needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
)


def traced(function, *arrays):
    return clean_up(lower(pg.trace(function, *arrays)))


def with_coordinates_first(x):
    apart = x[:, None, :] - x[:, :, None]
    far = pg.sqrt(pg.sum(apart * apart, axis=0) + 1.0)
    value = pg.sum(pg.exp(-far))
    return apart / far, value, pg.grad(value, x)


def extrema(x):
    apart = pg.abs(x[:, None] - x[None])
    most = pg.max(apart, axis=-1)
    least = pg.min(apart, axis=2, keepdims=True)
    return most, apart * least, pg.sum(pg.prod(apart, axis=2), axis=0), pg.max(apart, axis=(0, 2))


def parts(x):
    apart = x[:, None] - x[None]
    near = pg.where(apart > 0.1, apart, 0.5)
    return (
        pg.sum(near, axis=(1, 2)), pg.sum(near[1:, ::2] * 2.0, axis=2),
        pg.sum(near[:, :, :2], axis=2), pg.transpose(near, (2, 0, 1)) * 3.0,
    )  # fmt: skip


def domains_of(graph):
    items = nests(schedule(unroll_short_axes(graph))).items
    assert all(isinstance(item, Nest) for item in items)
    return [item.domain for item in items if item.nodes]


@pytest.mark.parametrize("function", [lennard_jones, gravity, extrema])
@pytest.mark.parametrize("width", [2, 3, 4])
def test_loops_run_over_pairs(function, width):
    graph = traced(function, rng.normal(size=(20, width)))
    found = unroll_short_axes(graph)
    verify(found)
    assert max(v.type.size for eqn in found.body for v in eqn.outputs) <= max(
        400, *(v.type.size for v in graph.outputs)
    )
    outside = (20, 20, width) if function is extrema else (20, 20)
    assert set(domains_of(graph)) <= {outside, (20, 20), (20,), ()}


@needs_compiler
@pytest.mark.parametrize(
    "function", [lennard_jones, gravity, with_coordinates_first, extrema, parts]
)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_results_are_the_interpreters(function, dtype):
    shape = (3, 21) if function is with_coordinates_first else (21, 3)
    for n in (21, 0, 1):
        x = rng.normal(size=[n if m == 21 else m for m in shape]).astype(dtype)
        if n == 0 and function is extrema:
            continue
        graph = traced(function, x)
        expected = interpret(unroll_short_axes(graph), x), interpret(graph, x)
        found = compile_graph(graph, style="native")(x)
        tolerance = 1e-12 if dtype == "f8" else 2e-5
        for results in (expected[0], found):
            for a, b in zip(results, expected[1], strict=True):
                assert a.dtype == b.dtype
                scale = max(float(np.abs(b).max(initial=0)), 1e-30)
                np.testing.assert_allclose(a / scale, b / scale, atol=tolerance, rtol=tolerance)


@needs_compiler
def test_sizes_may_be_symbolic():
    graph = traced(gravity, pg.spec(("n", 3)))
    assert unroll_short_axes(graph) is not graph
    kernel = compile_graph(graph, style="native")
    for n in (0, 1, 5, 40):
        x = rng.normal(size=(n, 3))
        for a, b in zip(kernel(x), interpret(traced(gravity, x), x), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


@needs_compiler
def test_what_is_no_number_stays_where_it_is():
    x = rng.normal(size=(9, 3))
    x[4, 1] = np.nan
    force, slope = compile_graph(traced(gravity, x), style="native")(x)
    assert np.isnan(force[:, 1]).all()
    assert np.isnan(slope).all()
    most = compile_graph(traced(extrema, x), style="native")(x)[0]
    assert (np.isnan(most) == (np.arange(9) == 4) | (np.arange(9) == 4)[:, None]).all()


def unchanged(function, *arrays):
    graph = traced(function, *arrays)
    return unroll_short_axes(graph) is graph


def test_arrays_that_are_read_and_written_stay_whole():
    x = rng.normal(size=(50, 3))
    assert unchanged(lambda x: pg.sin(x) * 2.0 + x, x)
    assert unchanged(lambda x: pg.cumsum(x[:, None] - x[None], axis=0), x)
    assert unchanged(lambda x: x @ x.T, x)
    # Five coordinates are no short axis.
    assert unchanged(
        lambda x: pg.sum((x[:, None] - x[None]) ** 2, axis=-1), rng.normal(size=(9, 5))
    )
