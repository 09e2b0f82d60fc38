"""Constraints and objectives with sparse derivatives, as SciPy's methods take them."""

import sys

import numpy as np
import pytest

import primgraph as pg

N = 12


def energy(x):
    return pg.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def links(x):
    """Squared distances of neighbours, and a curve that all but two lie on."""
    return pg.concatenate([(x[1:] - x[:-1]) ** 2, pg.sin(x[2:]) * x[1:-1] - x[:-2]])


def test_values_jacobians_and_weighted_hessians():
    pytest.importorskip("scipy.sparse")
    limits = pg.constraints(links, -1.0, np.full(2 * N - 3, 2.0))
    rng = np.random.default_rng(0)
    x, v = rng.standard_normal(N), rng.standard_normal(2 * N - 3)
    np.testing.assert_allclose(limits.fun(x), links(pg.tensor(x)).numpy())
    slopes, curvature = limits.jac(x), limits.hess(x, v)
    np.testing.assert_allclose(slopes.toarray(), pg.jacobian(links, x), rtol=1e-13)
    assert slopes.nnz == 2 * (N - 1) + 3 * (N - 2)
    weighted = pg.hessian(lambda x: pg.sum(v * links(x)), x)
    np.testing.assert_allclose(curvature.toarray(), weighted, rtol=1e-12, atol=1e-13)
    assert curvature.nnz == np.count_nonzero(weighted)
    plain = pg.constraints(links, -1.0, 2.0, sparse=False)
    np.testing.assert_allclose(plain.jac(x), slopes.toarray())
    np.testing.assert_allclose(plain.hess(x, v), curvature.toarray())


@pytest.mark.parametrize("method", ["trust-constr", "SLSQP"])
def test_methods_of_scipy_find_a_minimum_within_constraints(method):
    optimize = pytest.importorskip("scipy.optimize")
    limits = pg.constraints(lambda x: x[1:] ** 2 + x[:-1], -np.inf, 1.5)
    value, slope = pg.jit(energy), pg.jit(pg.grad(energy))
    second = pg.sparse_hessian(energy)
    start = np.full(6, 0.2)
    if method == "SLSQP":
        given = {"constraints": limits.to_dicts(start), "options": {"ftol": 1e-12}}
    else:
        given = {"constraints": limits.to_scipy(), "hess": lambda x: second(x).to_scipy()}
        given["options"] = {"gtol": 1e-7, "maxiter": 200}
    found = optimize.minimize(
        lambda x: float(value(x)), start, jac=lambda x: slope(x), method=method, **given
    )
    assert np.all(limits.fun(found.x) <= 1.5 + 1e-6)
    # At the minimum the slope is a sum of those of the constraints that hold it.
    held = limits.fun(found.x) > 1.5 - 1e-4
    assert held.any()
    forces = limits.jac(found.x).toarray()[held]
    weights, *_ = np.linalg.lstsq(forces.T, -slope(found.x), rcond=None)
    np.testing.assert_allclose(forces.T @ weights, -slope(found.x), atol=1e-3)
    assert np.all(weights > -1e-4)


def test_least_squares_takes_the_sparse_jacobian():
    optimize = pytest.importorskip("scipy.optimize")
    residuals = pg.constraints(
        lambda x: pg.concatenate([10.0 * (x[1:] - x[:-1] ** 2), 1.0 - x[:-1]]), 0.0, 0.0
    )
    found = optimize.least_squares(residuals.fun, np.full(N, 0.5), jac=residuals.jac)
    np.testing.assert_allclose(found.x, np.ones(N), rtol=1e-6)


def test_an_equality_and_both_sides_are_told_apart():
    limits = pg.constraints(lambda x: x * x, [1.0, 0.0, -np.inf], [1.0, 2.0, 3.0])
    x = np.array([1.0, 2.0, 3.0])
    parts = limits.to_dicts(x)
    assert [p["type"] for p in parts] == ["eq", "ineq", "ineq"]
    np.testing.assert_array_equal(parts[0]["fun"](x), [0.0])
    np.testing.assert_array_equal(parts[1]["fun"](x), [4.0])
    np.testing.assert_array_equal(parts[2]["fun"](x), [-2.0, -6.0])
    np.testing.assert_array_equal(parts[2]["jac"](x), [[0.0, -4.0, 0.0], [0.0, 0.0, -6.0]])


def test_an_objective_has_a_sparse_hessian():
    pytest.importorskip("scipy.sparse")
    with pg.Program() as program:
        a = pg.create_parameter((4,), name="a")
        b = pg.create_parameter((2, 3), name="b")
        loss = energy(pg.concatenate([a, pg.ravel(b)]))
    theta = np.random.default_rng(1).standard_normal(10)
    dense = pg.scipy_objective(program, loss).hess(theta)
    sparse = pg.scipy_objective(program, loss, hess="sparse").hess(theta)
    assert sparse.nnz == 28
    np.testing.assert_allclose(sparse.toarray(), dense, rtol=1e-12)
    with pytest.raises(pg.OptionError, match="hess is 'dense' or 'sparse'"):
        pg.scipy_objective(program, loss, hess="banded")


def test_what_is_no_constraint_is_refused(monkeypatch):
    with pytest.raises(pg.ArgumentError, match="takes a function"):
        pg.constraints(3, 0.0, 1.0)
    with pytest.raises(pg.OptionError, match="above an upper one"):
        pg.constraints(links, 1.0, 0.0)
    with pytest.raises(pg.ShapeError, match="numbers or vectors"):
        pg.constraints(links, np.zeros((2, 2)), 1.0)
    with pytest.raises(pg.ShapeError, match="3 lower bounds and 4 upper ones"):
        pg.constraints(links, np.zeros(3), np.ones(4))
    with pytest.raises(pg.OptionError, match="a bound is NaN"):
        pg.constraints(links, np.nan, 1.0)
    with pytest.raises(pg.ShapeError, match="there are 2 constraints and 4 bounds"):
        pg.constraints(lambda x: x[1:], 0.0, np.ones(4)).fun(np.zeros(3))
    with pytest.raises(pg.ArgumentError, match="gives a list"):
        pg.constraints(lambda x: [x[0], x[1]], 0.0, 1.0).fun(np.zeros(3))
    limits = pg.constraints(links, 0.0, 1.0)
    with pytest.raises(pg.ShapeError, match="take a vector"):
        limits.fun(np.zeros((2, 2)))
    with pytest.raises(pg.ShapeError, match="are a vector"):
        pg.constraints(lambda x: pg.sum(x), 0.0, 1.0).fun(np.zeros(3))
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(pg.OptionError, match="needs SciPy"):
        limits.to_scipy()


def test_ipopt_takes_the_lower_triangle_of_the_lagrangian():
    cyipopt = pytest.importorskip("cyipopt")
    n = 6
    start = np.full(n, 0.2)
    limits = pg.constraints(lambda x: x[1:] ** 2 + x[:-1], -np.inf, 1.5)
    jacobian = pg.sparse_jacobian(limits.function)

    def lagrangian(x, weights, factor):
        return factor * energy(x) + pg.sum(weights * limits.function(x))

    @pg.jit
    def hessian(x, weights, factor):
        return pg.sparse_hessian(lambda x: lagrangian(x, weights, factor), x, triangle="lower")

    places = jacobian(start)
    second = hessian(start, np.ones(n - 1), 1.0)

    class Problem:
        def objective(self, x):
            return float(pg.jit(energy)(x))

        def gradient(self, x):
            return pg.grad(energy)(x)

        def constraints(self, x):
            return limits.fun(x)

        def jacobian(self, x):
            return jacobian(x).data

        def jacobianstructure(self):
            return places.rows, places.cols

        def hessian(self, x, weights, factor):
            return hessian(x, weights, factor).data

        def hessianstructure(self):
            return second.rows, second.cols

    problem = cyipopt.Problem(
        n=n, m=n - 1, problem_obj=Problem(), cl=np.full(n - 1, -1e20), cu=np.full(n - 1, 1.5)
    )
    problem.add_option("print_level", 0)
    x, told = problem.solve(start)
    assert told["status"] == 0
    assert np.all(limits.fun(x) <= 1.5 + 1e-6)
