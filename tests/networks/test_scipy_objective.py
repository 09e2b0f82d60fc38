"""A loss as a function of one flat vector: SciPy's methods find the minimum, and it is checked."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import primgraph as pg


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def problem(dtype="float64"):
    """The chained Rosenbrock function of ten elements in three parameters, and its objective."""
    start = pg.initializers.Uniform(-0.5, 0.5)
    with pg.Program("rosenbrock") as program:
        shapes = {"a": (), "b": (2, 2), "c": (5,)}
        parts = [pg.create_parameter(s, dtype, n, start) for n, s in shapes.items()]
        loss = rosenbrock(pg.concatenate([pg.ravel(p) for p in parts]))
    return program, loss, pg.scipy_objective(program, loss)


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "Newton-CG", "trust-exact"])
def test_methods_of_scipy_find_the_minimum(method):
    optimize = pytest.importorskip("scipy.optimize", reason="SciPy is not installed")
    program, loss, objective = problem()
    second = {
        "Newton-CG": {"hessp": objective.hessp},
        "trust-exact": {"hess": objective.hess},
    }.get(method, {})
    tight = {"ftol": 1e-15} if method == "L-BFGS-B" else {}
    options = {"maxiter": 1000, **tight}
    options |= {"xtol": 1e-9} if method == "Newton-CG" else {"gtol": 1e-8}
    found = optimize.minimize(
        objective.fun, objective.x0, method=method, jac=objective.jac, options=options, **second
    )
    assert found.fun < 1e-10
    assert_allclose(found.x, np.ones(10), rtol=1e-5)
    objective.assign(found.x)
    values = program.state_dict()
    assert [values[n].shape for n in "abc"] == [(), (2, 2), (5,)]
    assert_array_equal(values["b"].ravel(), found.x[1:5])
    assert pg.Executor().run(program, fetch_list=[loss])[0] == pytest.approx(found.fun)


def test_value_and_gradient_come_together():
    optimize = pytest.importorskip("scipy.optimize", reason="SciPy is not installed")
    *_, objective = problem()
    found = optimize.minimize(
        objective.fun_and_jac, objective.x0, jac=True, method="BFGS", options={"gtol": 1e-7}
    )
    assert_allclose(found.x, np.ones(10), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_derivatives_agree_with_differences(dtype):
    *_, objective = problem(dtype)
    theta = objective.x0
    assert theta.shape == (objective.size,) == (10,)
    exact = dtype == "float64"
    rtol, step = (1e-7, 1e-5) if exact else (1e-2, 1e-2)
    value, gradient = objective.fun_and_jac(theta)
    assert value == pytest.approx(rosenbrock(theta), rel=rtol)
    hessian = objective.hess(theta)
    for found in (gradient, hessian):
        assert found.dtype == np.float64
    differences = np.array(
        [
            (objective.fun(theta + d) - objective.fun(theta - d)) / (2 * step)
            for d in step * np.eye(10)
        ]
    )
    assert_allclose(gradient, differences, rtol, 1e-6 if exact else 0.5)
    rows = [
        (objective.jac(theta + d) - objective.jac(theta - d)) / (2 * step)
        for d in step * np.eye(10)
    ]
    assert_allclose(hessian, rows, rtol, 1e-6 if exact else 2.0)
    direction = np.linspace(-1, 1, 10)
    rounding = 1e-12 if exact else 1e-4
    assert_allclose(objective.hessp(theta, direction), hessian @ direction, rounding, rounding)
    assert_allclose(hessian, hessian.T, rounding, rounding)


def test_one_point_is_evaluated_once_and_results_are_the_callers(monkeypatch):
    *_, objective = problem()
    theta = objective.x0
    calls, kernel = [], objective.kernel
    monkeypatch.setattr(objective, "kernel", lambda *a: calls.append(1) or kernel(*a))
    objective.fun(theta)
    gradient = objective.jac(theta)
    expected = gradient.copy()
    gradient[:] = 0
    assert_array_equal(objective.jac(theta.tolist()), expected)
    assert_array_equal(objective.fun_and_jac(theta)[1], expected)
    assert len(calls) == 1
    objective.fun(-theta)
    assert len(calls) == 2


def network():
    """A loss of two parameters with inputs, and another loss of a third one, in one program."""
    with pg.Program() as program:
        x, y = pg.data("x", (4, 3)), pg.data("y", (4,))
        w, v = pg.create_parameter((3,), name="w"), pg.create_parameter((2,), name="v")
        b = pg.create_parameter((), name="b", is_bias=True)
        loss = pg.reshape(pg.mse_loss(pg.tanh(x @ w) + b, y), (1,))
        other = pg.sum(v)
        pg.optimizer.SGD(0.1).minimize(loss)
    rng = np.random.default_rng(0)
    feed = {"x": rng.standard_normal((4, 3)), "y": rng.standard_normal(4)}
    return program, (w, v, b), loss, other, feed


def test_feeds_and_other_states_are_taken_once():
    program, (w, *_), loss, _, feed = network()
    objective = pg.scipy_objective(program, loss, [w], feed)
    theta = objective.x0
    before = objective.fun_and_jac(theta)
    expected = np.mean((np.tanh(feed["x"] @ theta) - feed["y"]) ** 2)
    assert before[0] == pytest.approx(expected, rel=1e-14)
    feed["x"][:] = 0
    program.set_state_dict({"b": 5.0})
    objective.fun(theta + 1)
    assert objective.fun(theta) == before[0]
    assert_array_equal(objective.unflatten(theta)["w"], program.state_dict()["w"])
    assert program.state_dict()["sgd.step"] == 0


def test_parameters_are_chosen():
    program, (w, v, b), loss, other, feed = network()
    by_default = pg.scipy_objective(program, loss, feed=feed)
    assert [p.name for p in by_default.parameters] == ["w", "b"]
    all_of_them = pg.scipy_objective(program, loss, [v, b, w], feed)
    theta = all_of_them.x0
    assert list(all_of_them.unflatten(theta)) == ["v", "b", "w"]
    assert_array_equal(all_of_them.jac(theta)[:2], [0, 0])
    assert_array_equal(all_of_them.hess(theta)[:2], np.zeros((2, 6)))
    linear = pg.scipy_objective(program, other)
    assert_array_equal(linear.jac([1.0, 2.0]), [1, 1])
    assert_array_equal(linear.hess([1.0, 2.0]), np.zeros((2, 2)))
    assert_array_equal(linear.hessp([1.0, 2.0], [1.0, 1.0]), [0, 0])
    assert linear.fun([1.0, 2.0]) == 3


def test_values_that_stop_gradients_stop_them_here_too():
    with pg.Program() as program:
        w = pg.create_parameter((3,))
        held = pg.exp(w)
        held.stop_gradient = True
        loss = pg.sum(held * w)
    objective = pg.scipy_objective(program, loss)
    theta = np.array([0.0, 1.0, 2.0])
    assert_allclose(objective.jac(theta), np.exp(theta), rtol=1e-15)


def test_what_does_not_fit_is_refused():
    program, (w, _, _), loss, _, feed = network()
    other = pg.Program()
    with pytest.raises(pg.ShapeError, match="one element"):
        pg.scipy_objective(program, w, feed=feed)
    with pytest.raises(pg.BuildError, match="another program"):
        pg.scipy_objective(other, loss)
    with pytest.raises(pg.ArgumentError, match="a program and a loss"):
        pg.scipy_objective(program, "loss")
    with pytest.raises(pg.BuildError, match="not a parameter"):
        pg.scipy_objective(program, loss, [program.inputs["x"]], feed)
    with pytest.raises(pg.BuildError, match="listed twice"):
        pg.scipy_objective(program, loss, [w, w], feed)
    with pytest.raises(pg.BuildError, match="no parameter"):
        pg.scipy_objective(program, program.inputs["y"][0], feed=feed)
    with pytest.raises(pg.FeedError, match="missing 'y'"):
        pg.scipy_objective(program, loss, feed={"x": feed["x"]})
    with pytest.raises(pg.FeedError, match="unexpected 'z'"):
        pg.scipy_objective(program, loss, feed=feed | {"z": 1})
    objective = pg.scipy_objective(program, loss, feed=feed)
    for wrong in (np.zeros(3), np.zeros((4, 1)), 1.0):
        with pytest.raises(pg.ShapeError, match="vector of 4 elements"):
            objective.fun(wrong)
    with pytest.raises(pg.ShapeError, match="vector of 4 elements"):
        objective.hessp(objective.x0, np.zeros(3))


def test_sizes_with_names_are_those_of_what_is_fed():
    rng = np.random.default_rng(0)
    feed = {"points": rng.standard_normal((50, 3)), "targets": rng.standard_normal(50)}

    def objective(rows, **options):
        with pg.Program() as program:
            points, targets = pg.data("points", (rows, 3)), pg.data("targets", (rows,))
            weights = pg.create_parameter((3,), name="weights")
            chain = pg.create_parameter((5,), name="chain")
            held = pg.mean(points * weights)
            held.stop_gradient = True
            fit = pg.mean((points @ weights - targets) ** 2) * held
            loss = fit + pg.sum((chain[1:] - chain[:-1] ** 2) ** 2)
        return pg.scipy_objective(program, loss, feed=feed, **options)

    named, known, sparse = objective("N"), objective(50), objective("N", hess="sparse")
    theta, direction = rng.standard_normal((2, 8))
    assert named.fun(theta) == known.fun(theta)
    np.testing.assert_array_equal(named.jac(theta), known.jac(theta))
    np.testing.assert_array_equal(named.hessp(theta, direction), known.hessp(theta, direction))
    np.testing.assert_array_equal(named.hess(theta), known.hess(theta))
    pytest.importorskip("scipy.sparse")
    found = sparse.hess(theta)
    assert found.nnz == 9 + 13
    np.testing.assert_allclose(found.toarray(), known.hess(theta), rtol=1e-10, atol=1e-12)
    with pytest.raises(pg.FeedError, match="N"):
        _with_other_rows(feed)


def _with_other_rows(feed):
    with pg.Program() as program:
        points, targets = pg.data("points", ("N", 3)), pg.data("targets", ("N",))
        weights = pg.create_parameter((3,), name="weights")
        loss = pg.sum((points @ weights - targets) ** 2)
    return pg.scipy_objective(program, loss, feed={**feed, "targets": np.ones(3)})


@pytest.mark.parametrize("method", ["trust-constr", "Newton-CG", "trust-ncg", "trust-krylov"])
def test_methods_of_scipy_take_what_a_sparse_objective_gives(method):
    optimize = pytest.importorskip("scipy.optimize")
    with pg.Program() as program:
        a = pg.create_parameter((12,), name="a")
        loss = pg.sum(100 * (a[1:] - a[:-1] ** 2) ** 2 + (1 - a[:-1]) ** 2)
    objective = pg.scipy_objective(program, loss, hess="sparse")
    curvature = {"hess": objective.hess}
    if method in ("trust-ncg", "trust-krylov"):
        curvature = {"hessp": objective.hessp}
    found = optimize.minimize(
        objective.fun_and_jac, np.full(12, 0.8), jac=True, method=method, **curvature
    )
    np.testing.assert_allclose(found.x, np.ones(12), atol=1e-3)
