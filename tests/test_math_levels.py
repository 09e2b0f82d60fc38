"""Levels of mathematics from the outside: what is compiled, and the order of products."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import primgraph as pg
from primgraph.compiler import optimized
from primgraph.ir.graph import Graph
from primgraph.transforms import matrix_chain


def products(graph: Graph) -> list[tuple[int, int, int]]:
    """The extents of each product of matrices."""
    return [(*e.inputs[0].shape, e.output.shape[-1]) for e in graph.body if e.op.name == "matmul"]


def chain(*sides: int) -> Graph:
    specs = [pg.spec(pair) for pair in pairwise(sides)]

    def multiplied(*factors):
        result = factors[0]
        for factor in factors[1:]:
            result = result @ factor
        return result

    return pg.trace(multiplied, *specs)


def feeds(graph: Graph) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(v.shape) for v in graph.inputs]


def test_levels_of_a_kernel():
    graph = pg.trace(lambda x: (x - x, x / 3.0, x / 4.0), pg.spec((3,)))
    x = np.array([1.0, np.inf, 0.1])
    exact, finite, fast = (pg.compile(graph, math=m) for m in ("exact", "finite", "fast"))
    np.testing.assert_array_equal(exact(x)[0], [0, np.nan, 0])
    np.testing.assert_array_equal(finite(x)[0], [0, 0, 0])
    assert "divide" in finite.planned_source
    assert "divide" not in fast.planned_source
    np.testing.assert_array_equal(pg.compile(graph)(x)[2], x / 4)
    np.testing.assert_allclose(fast(x)[1], x / 3, 1e-15)
    with pytest.raises(pg.ArgumentError, match="'quick' is not known"):
        pg.compile(graph, math="quick")
    with pytest.raises(pg.ArgumentError, match="'quick' is not known"):
        pg.Executor(math="quick")


def test_executors_of_two_levels_share_a_program():
    with pg.Program() as program:
        x = pg.data("x", (2,))
        y = x - x
    feed = {"x": np.array([np.inf, 1.0])}
    for _ in range(2):
        np.testing.assert_array_equal(pg.Executor().run(program, feed, [y])[0], [np.nan, 0])
        np.testing.assert_array_equal(pg.Executor(math="finite").run(program, feed, [y])[0], [0, 0])


def test_chains_are_multiplied_in_the_cheapest_order():
    graph = chain(30, 35, 15, 5, 10, 20, 25)
    assert matrix_chain(graph) is not graph
    ordered = optimized(graph, "fast")
    # The example of Cormen et al.: ((A1 (A2 A3)) ((A4 A5) A6)), 15,125 products of numbers.
    assert sum(n * k * m for n, k, m in products(ordered)) == 15_125
    assert products(optimized(graph)) == products(graph)
    arrays = feeds(graph)
    np.testing.assert_allclose(
        pg.interpret(ordered, *arrays)[0], np.linalg.multi_dot(arrays), 1e-12
    )


def test_a_vector_at_the_end_makes_all_products_small():
    ordered = optimized(chain(50, 50, 50, 50, 1), "fast")
    assert all(m == 1 for _, _, m in products(ordered))


def test_stacks_of_matrices_are_chains_too():
    specs = [pg.spec((4, *pair)) for pair in ((9, 8), (8, 7), (7, 1))]
    graph = pg.trace(lambda x, y, z: x @ y @ z, *specs)
    ordered = optimized(graph, "fast")
    assert [e.output.shape for e in ordered.body] == [(4, 8, 1), (4, 9, 1)]
    arrays = feeds(graph)
    np.testing.assert_allclose(*(pg.interpret(g, *arrays)[0] for g in (graph, ordered)), 1e-12)


def test_products_that_are_read_twice_are_kept():
    def function(x, y, z):
        xy = x @ y
        return xy @ z, xy

    graph = pg.trace(function, pg.spec((9, 9)), pg.spec((9, 9)), pg.spec((9, 1)))
    assert products(optimized(graph, "fast")) == products(graph)


def test_long_chains_are_ordered_in_pieces():
    graph = chain(*([4, 1] * 200))
    ordered = optimized(graph, "fast")
    assert len(ordered) == len(graph)
    arrays = [np.ones(v.shape) for v in graph.inputs]
    np.testing.assert_allclose(*(pg.interpret(g, *arrays)[0] for g in (graph, ordered)))


def test_einsum_multiplies_in_the_order_that_numpy_finds():
    shapes = (50, 2), (2, 50), (50, 50), (50, 1)
    graph = pg.trace(
        lambda *xs: pg.einsum("ab,bc,cd,de->ae", *xs), *(pg.spec(shape) for shape in shapes)
    )
    arrays = feeds(graph)
    path = np.einsum_path("ab,bc,cd,de->ae", *arrays, optimize="optimal")[0]
    assert path[1:] == [(2, 3), (1, 2), (0, 1)]
    assert products(optimized(graph)) == [(50, 50, 1), (2, 50, 1), (50, 2, 1)]
    np.testing.assert_allclose(
        pg.interpret(graph, *arrays)[0], np.einsum("ab,bc,cd,de->ae", *arrays), 1e-12
    )
