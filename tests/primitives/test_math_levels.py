"""Levels of mathematics from the outside: what is compiled, and the order of products."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import primgraph as pg
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph
from primgraph.ir.types import FLOAT64, TensorType
from primgraph.primitives.linear_algebra.products import matmul, swap_last
from primgraph.program.compile import optimize_graph
from primgraph.transforms import join_products, matrix_chain


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


AROUND_NAN = {
    "nanmedian": lambda x: pg.nanmedian(x, axis=1),
    "nanquantile": lambda x: pg.nanquantile(x, [0.3, 0.8], axis=1),
    "nanmean": lambda x: pg.nanmean(x, axis=1),
    "nansum": lambda x: pg.nansum(x, axis=1),
    "nanprod": lambda x: pg.nanprod(x, axis=1),
    "nanmax": lambda x: pg.nanmax(x, axis=1),
    "nanstd": lambda x: pg.nanstd(x, axis=1),
    "nancumsum": lambda x: pg.nancumsum(x, axis=1),
    "nan_to_num": pg.nan_to_num,
    "fmax": lambda x: pg.fmax(x, 0.5),
    "isnan": pg.isnan,
    "x != x": lambda x: pg.where(x != x, 0.0, x),
    "not x == x": lambda x: pg.where(pg.logical_not(x == x), 0.0, x),
}


@pytest.mark.parametrize("level", ["finite", "fast"])
def test_functions_that_leave_out_nan_do_so_at_every_level(level):
    x = np.array([[1.0, np.nan, 3.0], [np.nan, 2.0, 2.0], [0.5, -1.0, 4.0]])
    slope = pg.grad(lambda x: pg.sum(pg.nanmean(x, axis=1) ** 2))
    graph = pg.trace(lambda x: [slope(x), *[f(x) for f in AROUND_NAN.values()]], x)
    wanted = pg.compile(graph)(x)
    for target in ("numpy", "c"):
        found = pg.compile(graph, math=level, target=target)(x)
        for name, one, other in zip(("slope", *AROUND_NAN), found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-14, err_msg=f"{target} {name}")


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
    ordered = optimize_graph(graph, "fast")
    # The example of Cormen et al.: ((A1 (A2 A3)) ((A4 A5) A6)), 15,125 products of numbers.
    assert sum(n * k * m for n, k, m in products(ordered)) == 15_125
    assert products(optimize_graph(graph)) == products(graph)
    arrays = feeds(graph)
    np.testing.assert_allclose(
        pg.interpret(ordered, *arrays)[0], np.linalg.multi_dot(arrays), 1e-12
    )


def test_a_vector_at_the_end_makes_all_products_small():
    ordered = optimize_graph(chain(50, 50, 50, 50, 1), "fast")
    assert all(m == 1 for _, _, m in products(ordered))


def test_stacks_of_matrices_are_chains_too():
    specs = [pg.spec((4, *pair)) for pair in ((9, 8), (8, 7), (7, 1))]
    graph = pg.trace(lambda x, y, z: x @ y @ z, *specs)
    ordered = optimize_graph(graph, "fast")
    assert [e.output.shape for e in ordered.body] == [(4, 8, 1), (4, 9, 1)]
    arrays = feeds(graph)
    np.testing.assert_allclose(*(pg.interpret(g, *arrays)[0] for g in (graph, ordered)), 1e-12)


def test_products_that_are_read_twice_are_kept():
    def function(x, y, z):
        xy = x @ y
        return xy @ z, xy

    graph = pg.trace(function, pg.spec((9, 9)), pg.spec((9, 9)), pg.spec((9, 1)))
    assert products(optimize_graph(graph, "fast")) == products(graph)


def test_long_chains_are_ordered_in_pieces():
    graph = chain(*([4, 1] * 200))
    ordered = optimize_graph(graph, "fast")
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
    assert products(optimize_graph(graph)) == [(50, 50, 1), (2, 50, 1), (50, 2, 1)]
    np.testing.assert_allclose(
        pg.interpret(graph, *arrays)[0], np.einsum("ab,bc,cd,de->ae", *arrays), 1e-12
    )


def kernels_agree(graph: Graph) -> None:
    arrays = feeds(graph)
    exact, fast = (pg.compile(graph, math=m)(*arrays) for m in ("exact", "fast"))
    for one, other in zip(exact, fast, strict=True):
        np.testing.assert_allclose(one, other, 1e-12, 1e-12)


def test_rows_of_one_array_are_multiplied_at_once():
    specs = pg.spec((6, 4, 3)), pg.spec((3, 5))
    graph = pg.trace(lambda x, w: [x[k] @ w for k in (3, 0, 1, 5, 4, 2)], *specs)
    assert products(optimize_graph(graph, "fast")) == [(24, 3, 5)]
    assert products(optimize_graph(graph, "finite")) == [(4, 3, 5)] * 6
    kernels_agree(graph)
    uneven = pg.trace(lambda x, w: (x[4:] @ w, x[:1] @ w, x[1:4] @ w), pg.spec((7, 3)), specs[1])
    assert products(optimize_graph(uneven, "fast")) == [(7, 3, 5)]
    kernels_agree(uneven)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: (x[:2] @ w, x[3:] @ w),
        lambda x, w: (x[:4] @ w, x[2:] @ w),
        lambda x, w: (x[:3] @ w, x[3:] @ (2 * w)),
        lambda x, w: (x[::2] @ w, x[1::2] @ w),
        lambda x, w: (x[:, :3] @ w[:3], x[:, 3:] @ w[3:]),
        lambda x, w: (x[:3].T @ w[:3], x[3:].T @ w[:3]),
    ],
)
def test_products_of_other_parts_stay_as_they_are(function):
    graph = pg.trace(function, pg.spec((6, 6)), pg.spec((6, 5)))
    assert products(optimize_graph(graph, "fast")) == products(optimize_graph(graph))
    kernels_agree(graph)


def outer(*pairs):
    """The sum of products of transposed matrices with others."""
    x, y, *rest = pairs
    total = x.T @ y
    for x, y in zip(rest[::2], rest[1::2], strict=True):
        total = total + x.T @ y
    return total


def test_products_with_short_sums_are_added_by_one_product():
    specs = [pg.spec((2, 30)), pg.spec((2, 20)), pg.spec((3, 30)), pg.spec((3, 20))]
    graph = pg.trace(outer, *specs, *specs)
    assert products(optimize_graph(graph, "fast")) == [(30, 10, 20)]
    assert products(optimize_graph(graph, "finite")) == products(optimize_graph(graph))
    kernels_agree(graph)
    mixed = pg.trace(lambda b, *p: pg.tanh(b) + outer(*p) + b, pg.spec((30, 20)), *specs)
    assert products(optimize_graph(mixed, "fast")) == [(30, 5, 20)]
    kernels_agree(mixed)


def test_long_sums_and_results_that_are_read_are_added_as_they_are():
    long = [pg.spec((13, 30)), pg.spec((13, 20))]
    graph = pg.trace(outer, *long, *long)
    assert len(products(optimize_graph(graph, "fast"))) == 2
    specs = [pg.spec((2, 30)), pg.spec((2, 20))] * 3

    def also_read(*pairs):
        first = pairs[0].T @ pairs[1]
        return first + outer(*pairs[2:]), first

    graph = pg.trace(also_read, *specs)
    assert products(optimize_graph(graph, "fast")) == [(30, 2, 20), (30, 4, 20)]
    kernels_agree(graph)


def test_factors_that_are_parts_of_one_array_are_that_array():
    def gradient(x, w):
        """As reverse mode adds up what each step of a recurrence says of its weights."""
        steps = [pg.tanh(x[k] @ w) for k in range(5)]
        return pg.grad(pg.sum(pg.stack(steps) ** 2), w)

    graph = pg.trace(gradient, pg.spec((5, 2, 30)), pg.spec((30, 20)))
    fast = optimize_graph(graph, "fast")
    assert products(fast) == [(10, 30, 20), (30, 10, 20)]
    kernels_agree(graph)


@pytest.mark.long
def test_many_products_are_joined_in_linear_time_and_without_recursion():
    count = 8_000
    with Builder() as builder:
        pairs = [[builder.input(TensorType((1, n), FLOAT64)) for n in (4, 3)] for _ in range(3)]
        total = None
        for k in range(count):
            x, y = pairs[k % 3]
            product = matmul(swap_last(x * float(k)), y)
            total = product if total is None else total + product
        graph = builder.graph([total])
    joined = join_products(graph)
    assert products(joined) == [(4, count, 3)]
    assert join_products(joined) is joined


def test_what_asks_for_the_sign_of_a_zero_may_come_out_otherwise_above_exact() -> None:
    def by_sign(x):
        return pg.arctan2(-0.0 / x, -0.0 / x), pg.arctan2(x * 0.0 + 0.0, -1.0)

    graph, x = pg.trace(by_sign, pg.spec(2)), np.array([2.0, -2.0])
    for level, first, second in (
        ("exact", [-np.pi, 0.0], [np.pi, np.pi]),
        ("signs", [-np.pi, 0.0], [np.pi, -np.pi]),
        ("finite", [0.0, 0.0], [np.pi, np.pi]),
    ):
        for found, expected in zip(pg.compile(graph, math=level)(x), (first, second), strict=True):
            np.testing.assert_array_equal(found, expected, err_msg=level)
