"""Systems with matrices that loops do not change: factored once, with the results of `solve`."""

import numpy as np
import pytest

import primgraph as pg
from primgraph.ir.interpret import interpret

la = pg.linalg
rng = np.random.default_rng(0)


def bodies(graph):
    for eqn in graph.body:
        for body in eqn.bodies:
            yield body
            yield from bodies(body)


def names(graph):
    return [eqn.op.name for eqn in graph.body]


def solving(a, b):
    """A loop that solves with a matrix and its transpose, and the gradient of what it ends with."""
    x, _ = pg.scan(lambda x, _: (la.solve(a.mT, la.solve(a, pg.sin(x) + b)), None), b, None,
                   length=5)  # fmt: skip
    value = pg.sum(pg.real(x * x))
    return value, *pg.grad(value, [a, b])


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize(
    ("shape", "columns"), [((7, 7), (7,)), ((6, 6), (6, 3)), ((2, 5, 5), (2, 5, 1))]
)
def test_numpy_factors_the_matrix_once_for_value_and_gradient(shape, columns, dtype):
    a = (rng.normal(size=shape) + 4 * np.eye(shape[-1])).astype(dtype)
    b = rng.normal(size=columns).astype(dtype)
    if dtype == "complex128":
        a, b = a + 1j * rng.normal(size=shape), b - 0.5j
    graph = pg.trace(solving, a, b)
    kernel = pg.compile(graph, target="numpy")
    assert names(kernel.graph).count("qr") == 1
    assert not any("solve" in names(body) or "inv" in names(body) for body in bodies(kernel.graph))
    tolerance = 1e-3 if dtype == "float32" else 1e-9
    for found, expected in zip(kernel(a, b), interpret(graph, a, b), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, tolerance, tolerance)


def test_the_residual_is_as_small_as_that_of_an_elimination():
    """For matrices of all conditions, for which products with an inverse have large residuals."""
    n = 12
    u, v = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))

    def loop(a, rights):
        """The right-hand sides depend on a carry, which is 1 in all steps."""

        def step(one, right):
            return pg.sqrt(one), la.solve(a, right * one)

        return pg.scan(step, np.array(1.0), rights)[1]

    for power in (0, 4, 8, 12, 15):
        a = u @ np.diag(np.logspace(0, -power, n)) @ v
        rights = np.stack([a @ rng.normal(size=n) for _ in range(8)])

        kernel = pg.compile(pg.trace(loop, a, rights), target="numpy")
        assert "qr" in names(kernel.graph)
        found = kernel(a, rights)
        size = np.linalg.norm(a, np.inf) * np.abs(found).max(1) + np.abs(rights).max(1)
        residuals = np.abs(rights - found @ a.T).max(1) / size
        assert np.max(residuals) < 32 * np.finfo(float).eps


@pytest.mark.parametrize("matrix", [np.ones((5, 5)), np.zeros((5, 5)), np.diag([1.0, 2, 0, 3, 4])])
def test_a_singular_matrix_is_refused_only_if_the_loop_runs(matrix):
    def loop(a, b, n):
        return pg.while_loop(lambda s: s[1] < n, lambda s: (la.solve(a, s[0]), s[1] + 1), (b, 0))

    b = np.ones(5)
    kernel = pg.compile(pg.trace(loop, matrix, b, np.array(0)), target="numpy")
    assert not any("solve" in names(body) for body in bodies(kernel.graph))
    found, count = kernel(matrix, b, np.array(0))
    assert count == 0
    np.testing.assert_array_equal(found, b)
    with pytest.raises(pg.LinAlgError, match="Singular matrix") as caught:
        kernel(matrix, b, np.array(1))
    assert "la.solve(a, s[0])" in str(caught.value)
    scan = pg.trace(lambda a, b: pg.scan(lambda x, _: (la.solve(a, x), None), b, None, length=6)[0],
                    matrix, b)  # fmt: skip
    kernel = pg.compile(scan, target="numpy")
    assert "qr" in names(kernel.graph)
    with pytest.raises(pg.LinAlgError, match="Singular matrix"):
        kernel(matrix, b)


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_factors_of_a_matrix_of_symbolic_size(target):
    graph = pg.trace(solving, pg.spec(("N", "N")), pg.spec("N"))
    kernel = pg.compile(graph, target=target)
    for n in (1, 4, 9):
        a, b = rng.normal(size=(n, n)) + 4 * np.eye(n), rng.normal(size=n)
        for _ in range(3):
            found = kernel(a, b)
        for mine, theirs in zip(found, interpret(graph, a, b), strict=True):
            np.testing.assert_allclose(mine, theirs, 1e-9, 1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("n", [5, 8])
def test_a_matrix_with_nans_is_not_called_singular(dtype, n):
    """Where `solve` returns NaN; LAPACK refuses some complex triangles with NaNs."""
    for seed in range(12):
        draw = np.random.default_rng(seed)
        a = (draw.normal(size=(n, n)) + 3 * np.eye(n)).astype(dtype)
        a[draw.integers(n), draw.integers(n)] = np.nan
        b = np.ones(n, dtype)
        scan = pg.trace(lambda a, b: pg.scan(lambda x, _: (la.solve(a, x), None), b, None,
                                             length=6)[0], a, b)  # fmt: skip
        kernel = pg.compile(scan, target="numpy")
        assert "qr" in names(kernel.graph)
        assert np.isnan(kernel(a, b)).all()


def test_factors_of_a_constant_matrix_are_computed_once_for_all_calls():
    a = rng.normal(size=(6, 6)) + 3 * np.eye(6)
    graph = pg.trace(lambda b: solving(pg.array(a), b)[0], np.ones(6))
    kernel = pg.compile(graph, target="numpy")
    assert {"qr", "inv"} <= {kernel.graph.body[k].op.name for k in kernel.once}


def test_what_changes_in_the_loop_and_few_steps_are_solved_as_written():
    def changing(a, b):
        return pg.scan(lambda c, _: ((c[0] * 1.5, la.solve(c[0], c[1])), None), (a, b), None,
                       length=6)[0][1]  # fmt: skip

    def few(a, b):
        return pg.scan(lambda x, _: (la.solve(a, x), None), b, None, length=3)[0]

    def wide(a, b):
        return pg.scan(lambda x, _: (la.solve(a, x), None), a, None, length=9)[0] + b

    a, b = rng.normal(size=(20, 20)), rng.normal(size=20)
    for function in (changing, few, wide):
        kernel = pg.compile(pg.trace(function, a, b), target="numpy")
        assert any("solve" in names(body) for body in bodies(kernel.graph))
        np.testing.assert_allclose(kernel(a, b), interpret(pg.trace(function, a, b), a, b)[0])
