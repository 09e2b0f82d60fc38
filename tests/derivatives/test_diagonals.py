"""Diagonals and traces of sparse Jacobians and Hessians: equal to dense ones, by few directions."""

import numpy as np
import pytest

import primgraph as pg
from primgraph.codegen.kernel import compile_graph
from primgraph.derivatives import differential_operators
from primgraph.derivatives.matrices import diagonals
from primgraph.ir.interpret import interpret
from primgraph.sparsity.greedy import vertex_colors
from primgraph.sparsity.pattern import Pattern
from primgraph.transforms.lower import lower

N = 30
RNG = np.random.default_rng(5)
WEIGHTS = RNG.standard_normal((3, 4))


def separable(x):
    return pg.sum(pg.sin(x[::2]) * x[::2]) + pg.sum(pg.exp(x[1::2])) + x[3] ** 4


def chained(x):
    return pg.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def of_blocks(x):
    return pg.sum(pg.tanh(pg.reshape(x, (-1, 3)) @ WEIGHTS) ** 3)


def headed(x):
    return pg.sum(x**3) + x[0] * pg.sum(pg.cos(x))


def on_a_grid(x):
    u = pg.reshape(x, (5, -1))
    return pg.sum((u[1:] - u[:-1]) ** 4) + pg.sum(pg.exp(u[:, 1:] * u[:, :-1]))


def permuted(x):
    order = np.random.default_rng(1).permutation(x.size)
    return chained(x[order])


FUNCTIONS = {separable: 1, chained: 2, of_blocks: 3, headed: 2, on_a_grid: 2, permuted: 3}


def point(n=N, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 1.5, n)


def traced(operator, function, n=N, dtype="float64"):
    return pg.trace(lambda x: operator(function(x), x), pg.spec(n, dtype=dtype))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_second_derivatives_of_a_sparse_hessian_are_those_of_a_dense_one(function):
    x = point()
    expected = np.diagonal(pg.hessian(function, x))
    graph = traced(lambda y, x: [pg.hessian_diagonal(y, x), pg.laplacian(y, x)], function)
    for found in (
        interpret(lower(graph), x),
        *(compile_graph(lower(graph), style=style)(x) for style in ("readable", "planned")),
    ):
        np.testing.assert_allclose(found[0], expected, rtol=1e-12)
        np.testing.assert_allclose(found[1], expected.sum(), rtol=1e-12)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_directions_are_as_many_as_colours(function, monkeypatch):
    counts = []
    taken = diagonals.axis_colors

    def noted(*given):
        colors = taken(*given)
        counts.append(None if colors is None else diagonals.count_of(colors))
        return colors

    monkeypatch.setattr(diagonals, "axis_colors", noted)
    n = 300
    most = FUNCTIONS[function]
    for operator in (pg.laplacian, pg.hessian_diagonal):
        graph = lower(traced(operator, function, n))
        largest = max(v.type.size for e in graph.body for v in e.outputs)
        # The blocks have four hidden numbers for three; nothing is as large as a matrix.
        assert largest <= 3 * most * n
        cost = pg.cost(graph).flops
        assert cost <= 60 * most * max(pg.cost(pg.trace(function, pg.spec(n))).flops, n)
    assert all(c is not None and c <= most for c in counts)


def slopes(x):
    """The values of a field whose Jacobian is tridiagonal."""
    return x**2 * pg.concatenate([x[1:], x[:1]]) + pg.sin(pg.concatenate([x[-1:], x[:-1]]))


def test_a_divergence_of_a_sparse_field_is_the_trace_of_its_jacobian():
    x = point()
    for field in (
        slopes,
        lambda x: pg.reshape(pg.tanh(pg.reshape(x, (-1, 3)) @ WEIGHTS[:, :3]), -1),
    ):
        graph = traced(pg.divergence, field)
        expected = np.trace(pg.jacobian(field, x))
        for style in ("readable", "planned"):
            kernel = compile_graph(lower(graph), style=style)
            np.testing.assert_allclose(kernel(x), expected, rtol=1e-12)
        large = lower(traced(pg.divergence, field, 300))
        assert max(v.type.size for e in large.body for v in e.outputs) <= 9 * 300


def test_samples_share_their_directions():
    x = point(4 * N).reshape(4, N)

    def each(x):
        return pg.sum(100.0 * (x[:, 1:] - x[:, :-1] ** 2) ** 2, axis=1) + pg.sum(x**4, axis=1)

    def field(x):
        return x**2 * pg.concatenate([x[:, 1:], x[:, :1]], axis=1)

    def all_of(x):
        return (
            pg.hessian_diagonal(each(x), x, True),
            pg.laplacian(each(x), x, True),
            pg.divergence(field(x), x, True),
        )

    graph = pg.trace(all_of, pg.spec((4, N)))
    assert max(v.type.size for e in lower(graph).body for v in e.outputs) <= 6 * x.size
    diagonal, laplacian, divergence = pg.compile(graph)(x)
    for i, row in enumerate(x):
        one = np.diagonal(pg.hessian(lambda v: each(v[None])[0], row))
        np.testing.assert_allclose(diagonal[i], one, rtol=1e-12)
        np.testing.assert_allclose(laplacian[i], one.sum(), rtol=1e-12)
        slope = np.trace(pg.jacobian(lambda v: field(v[None])[0], row))
        np.testing.assert_allclose(divergence[i], slope, rtol=1e-12)


def test_they_are_differentiable_again_in_both_modes():
    x = point()
    for function in (chained, of_blocks, on_a_grid):

        def third(x, function=function):
            found = pg.laplacian(function(x), x)
            weighted = pg.sum(pg.hessian_diagonal(function(x), x) * np.cos(np.arange(N)))
            return pg.grad(found, x), pg.grad(weighted, x), pg.forward_grad(found, x)

        by_reverse, weighted, along = pg.compile(pg.trace(third, pg.spec(N)))(x)
        step = 1e-5 * np.eye(N)
        matrices = [
            [np.diagonal(pg.hessian(function, x + s * d)) for s in (1, -1)] for d in step[:4]
        ]
        for i, (ahead, behind) in enumerate(matrices):
            slope = (ahead - behind) / 2e-5
            np.testing.assert_allclose(by_reverse[i], slope.sum(), rtol=1e-5, atol=1e-4)
            np.testing.assert_allclose(
                weighted[i], slope @ np.cos(np.arange(N)), rtol=1e-5, atol=1e-4
            )
        np.testing.assert_allclose(along, by_reverse.sum(), rtol=1e-10)


def test_dense_functions_are_differentiated_as_ever(monkeypatch):
    full = RNG.standard_normal((N, N))

    def dense(x):
        return pg.sum(pg.tanh(full @ x) ** 2)

    def field(x):
        return pg.tanh(full @ x)

    def texts():
        return [
            str(lower(traced(pg.laplacian, dense))),
            str(lower(traced(pg.hessian_diagonal, dense))),
            str(lower(traced(pg.divergence, field))),
        ]

    found = texts()
    monkeypatch.setattr(differential_operators, "_SMALL", 10**9)
    assert texts() == found


def test_tensors_loops_float32_and_sizes_with_names():
    x = point()
    expected = np.diagonal(pg.hessian(chained, x))
    tensor = pg.tensor(x, requires_grad=True)
    np.testing.assert_allclose(pg.laplacian(chained, tensor).numpy(), expected.sum(), rtol=1e-12)
    single = pg.compile(traced(pg.hessian_diagonal, chained, dtype="float32"))(x.astype("f4"))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=1e-4)
    named = pg.compile(pg.trace(lambda x: pg.laplacian(chained(x), x), pg.spec(("N",))))
    np.testing.assert_allclose(named(x), expected.sum(), rtol=1e-12)

    def looped(x):
        def step(v, _):
            return v - 1e-4 * pg.hessian_diagonal(chained(v), v), None

        return pg.scan(step, x, length=2)[0]

    after = x
    for _ in range(2):
        after = after - 1e-4 * np.diagonal(pg.hessian(chained, after))
    np.testing.assert_allclose(pg.compile(pg.trace(looped, pg.spec(N)))(x), after, rtol=1e-12)


def test_what_is_linear_or_does_not_depend_has_zeros():
    for function in (lambda x: pg.sum(x) * 2.0, lambda x: x[0] + x[-1] ** 2):
        diagonal, total = pg.compile(
            pg.trace(
                lambda x, f=function: (pg.hessian_diagonal(f(x), x), pg.laplacian(f(x), x)),
                pg.spec(N),
            )
        )(point())
        np.testing.assert_array_equal(diagonal, np.diagonal(pg.hessian(function, point())))
        assert total == diagonal.sum()


def test_infinite_slopes_beside_the_diagonal_are_no_part_of_it():
    def rooted(x):
        return pg.sum(pg.sqrt(x[1:]) * x[:-1] ** 2) + pg.sum(pg.tanh(x))

    x = point()
    x[7] = 0.0
    found = pg.compile(traced(pg.hessian_diagonal, rooted))(x)
    others = np.arange(N) != 7
    at = np.where(others, x, 1e-300)
    expected = np.diagonal(pg.hessian(rooted, at))
    np.testing.assert_allclose(found[others], expected[others], rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_neighbours_have_different_colours(seed):
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(0, 40, (2, 90))
    half = Pattern.from_coo(rows, columns, (40, 40))
    pattern = half.union(half.T)
    colors = vertex_colors(pattern)
    beside = pattern.rows != pattern.indices
    assert np.all(colors[pattern.rows[beside]] != colors[pattern.indices[beside]])
    assert colors.max() <= np.bincount(pattern.rows[beside]).max()
