"""Loops over pairs of native code: symmetric and antisymmetric values for i < j, added to both."""

import shutil

import numpy as np
import pytest
from helpers import gravity, lennard_jones

import primgraph as pg
from primgraph.codegen import compile_graph
from primgraph.codegen.ir.reading import read_nests
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.ir.statements import Nest
from primgraph.codegen.ir.text import to_text
from primgraph.codegen.lower.nests.nests import nests
from primgraph.codegen.lower.nests.short_axes import unroll_short_axes
from primgraph.ir.interpret import interpret
from primgraph.transforms import clean_up, lower

pytestmark = [
    pytest.mark.skipif(
        not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
    ),
    pytest.mark.usefixtures("native_cache"),
]

rng = np.random.default_rng(17)


def traced(function, *arrays):
    return clean_up(lower(pg.trace(function, *arrays)))


def lowered(graph):
    return nests(schedule(unroll_short_axes(graph)))


def loops(graph):
    return [item for item in lowered(graph).items if isinstance(item, Nest) and item.pairs]


def values_of(graph, *arrays):
    kernel = compile_graph(graph, style="native")
    assert kernel.running_style(arrays) == "native"
    return kernel(*arrays)


def in_a_box(x):
    apart = x[:, None] - x[None]
    apart = apart - 3.0 * pg.round(apart / 3.0)
    energy = pg.sum(pg.exp(-pg.sum(apart * apart, axis=-1)))
    return energy, pg.grad(energy, x)


def charges(x):
    charge = x[:, 0] * x[:, 1]
    apart = x[:, None] - x[None]
    far = pg.sqrt(pg.sum(apart * apart, axis=-1) + 1.0)
    field = pg.sum(charge[None] / far, axis=1)
    energy = pg.sum(charge * field)
    return energy, pg.grad(energy, x)


@pytest.mark.parametrize("model", [lennard_jones, gravity, in_a_box])
@pytest.mark.parametrize("count", [24, 29, 40])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_forces_between_points_are_computed_once_for_each_pair(model, count, dtype):
    x = (2 * rng.normal(size=(count, 3))).astype(dtype)
    graph = traced(model, x)
    assert loops(graph)
    expected = interpret(traced(model, x.astype(np.float64)), x.astype(np.float64))
    tolerance = 1e-11 if dtype == np.float64 else 1e-4
    for one, other in zip(values_of(graph, x), expected, strict=True):
        np.testing.assert_allclose(one, other, tolerance, tolerance * np.max(np.abs(other)))


def test_few_points_and_values_without_symmetry_are_computed_as_a_whole():
    assert not loops(traced(lennard_jones, np.ones((23, 3))))
    x, y = rng.normal(size=(2, 30))
    assert not loops(traced(lambda x, y: pg.sum(pg.exp(x[:, None] - y[None]), axis=1), x, y))
    # A matrix that is an argument may have any elements.
    m = rng.normal(size=(30, 30))
    assert not loops(traced(lambda x, m: pg.sum(m * (x[:, None] - x[None]) ** 4, axis=1), x, m))
    # The maximum with zero of a difference is another number for exchanged points.
    assert not loops(traced(lambda x: pg.sum(pg.maximum(x[:, None] - x, 0.0), axis=1), x))


def test_symmetric_constants_are_read_for_half_of_the_pairs():
    x, m = rng.normal(size=30), rng.normal(size=(30, 30))
    for constant in (m + m.T, np.eye(30), np.full((30, 30), 2.0)):
        graph = traced(lambda x, c=constant: pg.sum(c * (x[:, None] - x) ** 4, axis=1), x)
        assert len(loops(graph)) == 1
        np.testing.assert_allclose(values_of(graph, x)[0], interpret(graph, x)[0], 1e-12)
    assert not loops(traced(lambda x: pg.sum(m * (x[:, None] - x) ** 4, axis=1), x))


def test_sums_over_columns_are_those_over_rows_or_their_negatives():
    x = rng.normal(size=32)

    def program(x):
        apart = x[:, None] - x[None]
        cube, square = apart**3 / (1 + apart**4), 1 / (1 + apart**4)
        return [pg.sum(v, axis=axis) for v in (cube, square) for axis in (0, 1)]

    graph = traced(program, x)
    (nest,) = loops(graph)
    assert len({node.value for node in nest.nodes if node.kind == "sum"}) == 2
    columns, rows, first, second = values_of(graph, x)
    np.testing.assert_array_equal(columns, -rows)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(rows, interpret(graph, x)[1], 1e-12, 1e-12)


def test_zeros_infinities_and_nan_are_those_of_the_whole():
    def program(x):
        apart = x[:, None] - x[None]
        near = 1 / (apart * apart)
        return pg.sum(apart * near, axis=1), pg.sum(near), pg.sum(0 * apart, axis=0)

    x = rng.normal(size=40)
    x[[3, 17]] = 0.5
    x[5], x[6] = np.inf, np.nan
    for points in (x, np.arange(40.0), np.zeros(40)):
        graph = traced(program, points)
        with np.errstate(all="ignore"):
            expected = interpret(graph, points)
        for one, other in zip(values_of(graph, points), expected, strict=True):
            np.testing.assert_allclose(one, other, 1e-12, 1e-12)
            np.testing.assert_array_equal(np.signbit(one[one == 0]), np.signbit(other[other == 0]))


def test_what_a_nest_stores_is_read_by_pairs_or_computed_again():
    x = rng.normal(size=(32, 3))
    nest, later = loops(traced(gravity, x))
    # Of differences and powers, half is stored; the forces are not symmetric.
    assert nest.stored
    assert {o.root for node in later.nodes for o in node.operands} >= nest.stored.keys()
    graph = traced(charges, x)
    for one, other in zip(values_of(graph, x), interpret(graph, x), strict=True):
        np.testing.assert_allclose(one, other, 1e-11, 1e-11 * np.max(np.abs(other)))


def test_the_text_of_pairs_is_read_back():
    plan = lowered(traced(gravity, np.ones((27, 3))))
    text = to_text(plan)
    assert "pairs=8" in text
    assert to_text(read_nests(text)) == text


def test_symbolic_counts_have_pairs():
    x = rng.normal(size=(61, 3))
    graph = clean_up(lower(pg.trace(gravity, pg.spec(("N", 3)))))
    kernel = compile_graph(graph, style="native")
    for count in (1, 7, 8, 30, 61):
        part = x[:count].copy()
        for one, other in zip(kernel(part), interpret(graph, part), strict=True):
            np.testing.assert_allclose(one, other, 1e-11, 1e-11 * np.max(np.abs(other)))
