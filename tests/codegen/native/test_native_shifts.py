"""Stencils in native code: rolled and joined arrays are read in place, and edges are peeled."""

import re
import shutil

import numpy as np
import pytest

import primgraph as pg
from primgraph.codegen import compile_graph
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.ir.statements import Blocks, Nest
from primgraph.codegen.lower.nests.nests import nests
from primgraph.codegen.targets.c.source import source
from primgraph.ir.interpret import interpret
from primgraph.transforms import clean_up, lower

rng = np.random.default_rng(32)


@pytest.fixture(autouse=True, scope="module")
def own_cache(native_cache):
    return native_cache


needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
)


def traced(function, *arrays):
    return clean_up(lower(pg.trace(function, *arrays)))


def rolled(u):
    rows = pg.roll(u, 1, axis=0) + pg.roll(u, -1, axis=0)
    return u * (rows + pg.roll(u, 2, axis=1) - 3.0 * pg.roll(u, -1, axis=1))


def with_functions(u):
    return pg.exp(pg.roll(u, 1, axis=1)) * pg.tanh(u) + pg.roll(pg.sin(u), 1, axis=0)


def joined(u):
    v = pg.concatenate([u[1:], u[:1] * 2.0])
    w = pg.concatenate([u[:, 2:], u[:, 1:2], u[:, :1]], axis=1)
    return u + v * w, pg.sum(w * u, axis=1), pg.sum(v * u, axis=0)


def padded(u):
    inner = pg.pad(u[1:-1, 1:-1] * 2.0, ((1, 1), (1, 1)))
    return inner - pg.roll(u, 1, axis=1), pg.concatenate([u[:1], inner[1:]]) * inner


def two_steps(u):
    return rolled(rolled(u) * 0.1)


MODELS = (rolled, with_functions, joined, padded, two_steps)


def with_gradient(model):
    def whole(u):
        found = model(u)
        found = found if isinstance(found, tuple) else (found,)
        return *found, pg.grad(sum(pg.sum(v * v) for v in found), u)

    return whole


def assert_native_equals_interpreter(model, u, tolerance):
    graph = traced(with_gradient(model), u)
    found = compile_graph(graph, style="native")(u)
    for a, b in zip(found, interpret(graph, u), strict=True):
        assert a.dtype == b.dtype
        scale = max(float(np.nanmax(np.abs(b), initial=0)), 1e-30)
        np.testing.assert_allclose(a / scale, b / scale, rtol=tolerance, atol=tolerance)


@needs_compiler
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("shape", [(5, 7), (3, 3), (40, 300), (300, 5)])
def test_results_are_the_interpreters(model, shape):
    assert_native_equals_interpreter(model, rng.normal(size=shape), 1e-12)


@needs_compiler
@pytest.mark.parametrize("model", MODELS)
def test_results_in_float32_and_of_nan(model):
    u = rng.normal(size=(20, 40)).astype("f4")
    assert_native_equals_interpreter(model, u, 1e-4)
    u = rng.normal(size=(20, 40))
    u[0, 3] = u[7, 39] = np.nan
    assert_native_equals_interpreter(model, u, 1e-12)


@needs_compiler
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (0, 4), (4, 0)])
def test_axes_without_elements_or_with_one(shape):
    u = rng.normal(size=shape)
    for model in (rolled, with_functions):
        assert_native_equals_interpreter(model, u, 1e-12)


@needs_compiler
def test_sizes_may_be_symbolic():
    kernel = compile_graph(traced(with_gradient(rolled), pg.spec(("n", 6))), style="native")
    for n in (2, 3, 30):
        u = rng.normal(size=(n, 6))
        expected = interpret(traced(with_gradient(rolled), u), u)
        for a, b in zip(kernel(u), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


@needs_compiler
def test_an_element_of_two_neighbours_has_the_bits_of_numpy():
    u = rng.normal(size=(300, 300))

    def neighbours(u):
        return pg.roll(u, 1, axis=1) * u - pg.roll(u, -1, axis=0)

    found = pg.compile(pg.trace(neighbours, u), target="c")(u)
    np.testing.assert_array_equal(found, np.roll(u, 1, 1) * u - np.roll(u, -1, 0))


def items_of(graph):
    return [i for i in nests(schedule(graph)).items if not isinstance(i, Nest) or i.nodes]


def test_a_stencil_is_one_nest_of_any_size():
    for n in (20, 600):
        (nest,) = items_of(traced(rolled, rng.normal(size=(n, n))))
        kinds = [node.kind for node in nest.nodes]
        assert kinds.count("parts") == 4
        assert len(nest.stored) == 1


def test_edges_are_peeled():
    """The middle of a row, without its edges, has a loop without conditions."""
    text = source(nests(schedule(traced(rolled, rng.normal(size=(20, 50))))), "f").text
    (body,) = re.findall(r"for \(long j = 0; j < 47; j\+\+\) \{\n(.*?)\}", text, re.DOTALL)
    assert "?" not in body
    assert "unsigned" not in body


def test_the_gradient_of_a_roll_is_a_roll():
    graph = traced(lambda u: pg.grad(pg.sum(rolled(u) ** 2), u), rng.normal(size=(20, 50)))
    assert not {"pad", "slice_assign"} & {eqn.op.name for eqn in graph.body}


def test_cheap_values_of_large_arrays_are_computed_again():
    def twice(u):
        v = pg.abs(u) + 1.0
        w = v * u
        return pg.roll(w, 1) * v

    for n, expected in ((200_000, 1), (200, 2)):
        first, *_ = items_of(traced(twice, rng.normal(size=n)))
        assert len(first.stored) == expected


def test_blocks_are_kept_where_they_save_memory_traffic():
    x, w = rng.normal(size=(20_000, 30)), rng.normal(size=(30, 30))

    def layers(x, w):
        padded = pg.pad(x[:, 1:], ((0, 0), (1, 0)))
        return pg.sum(pg.tanh(pg.tanh(padded @ w) @ w))

    assert any(isinstance(item, Blocks) for item in items_of(traced(layers, x, w)))


def test_copies_of_repeated_values_are_computed_before_their_readers():
    def burgers(u):
        right = pg.concatenate([u[1:], u[:1]])
        most = pg.maximum(pg.abs(u), pg.abs(right))
        flux = 0.25 * (u * u + right * right) - 0.5 * most * (right - u)
        new = u - 0.1 * (flux - pg.concatenate([flux[-1:], flux[:-1]]))
        return pg.sum(new * new)

    def program(u):
        return pg.grad(burgers(u), u)

    # Larger values than this are computed again and not read from memory.
    u = np.random.default_rng(5).normal(size=1 << 15)
    graph = clean_up(lower(pg.trace(program, u)))
    (found,) = compile_graph(graph, style="native")(u)
    np.testing.assert_allclose(found, interpret(graph, u)[0], 1e-12, 1e-12)


@needs_compiler
@pytest.mark.parametrize("rows", [(1, 0), (0, 1), (0, 0, 1), (2, 0)])
def test_empty_parts_of_a_joined_array(rows):
    parts = [rng.normal(size=(n, 3)) for n in rows]

    def f(*parts):
        return pg.tanh(pg.concatenate([2.0 * p for p in parts])) * 3.0

    # Without clean-up, which leaves out empty parts.
    graph = lower(pg.trace(f, *parts))
    (found,) = compile_graph(graph.in_form(None), style="native")(*parts)
    np.testing.assert_allclose(found, interpret(graph, *parts)[0], 1e-14)
