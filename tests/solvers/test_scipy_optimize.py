"""SciPy's methods with exact derivatives: the optima of SciPy's own, in fewer evaluations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primgraph as pg
from primgraph.scipy import optimize

theirs = pytest.importorskip("scipy.optimize")

START = np.array([0.4, 0.8, 0.5, 1.4])


def rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def own_gradient(method: str) -> dict[str, Any]:
    """The derivatives without which SciPy's methods do not start."""
    if method not in ("Newton-CG", "trust-ncg", "trust-krylov", "trust-exact"):
        return {}
    return {"jac": theirs.rosen_der, "hess": theirs.rosen_hess}


@pytest.mark.parametrize(
    "method",
    ["BFGS", "L-BFGS-B", "CG", "TNC", "SLSQP", "trust-constr", "Newton-CG", "trust-ncg",
     "trust-krylov", "trust-exact", "Nelder-Mead", None],
)  # fmt: skip
def test_methods_of_minimize_find_the_minimum_of_scipy(method: str | None) -> None:
    found = optimize.minimize(rosenbrock, START, method=method)
    expected = theirs.minimize(rosenbrock, START, method=method, **own_gradient(str(method)))
    np.testing.assert_allclose(found.x, 1.0, atol=2e-3 if method == "SLSQP" else 2e-4)
    if method == "Nelder-Mead" or own_gradient(str(method)):
        assert found.nfev == expected.nfev
    else:
        assert found.nfev <= 0.45 * expected.nfev


def test_minimize_takes_what_scipy_does() -> None:
    arguments: dict[str, Any] = {"method": "L-BFGS-B", "bounds": [(None, 0.8)] * 4, "tol": 1e-12}
    found = optimize.minimize(rosenbrock, START, options={"maxiter": 90}, **arguments)
    expected = theirs.minimize(theirs.rosen, START, jac=theirs.rosen_der, **arguments)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-7)
    shifted = optimize.minimize(
        lambda x, a, b: pg.sum((x - a * b) ** 2), [0.0, 0.0], (START[:2], 2)
    )
    np.testing.assert_allclose(shifted.x, 2 * START[:2], atol=1e-7)
    own = optimize.minimize(theirs.rosen, START, jac=theirs.rosen_der)
    np.testing.assert_array_equal(
        own.x, theirs.minimize(theirs.rosen, START, jac=theirs.rosen_der).x
    )
    assert optimize.differential_evolution is theirs.differential_evolution


def test_unknowns_are_containers_of_arrays_of_any_shape() -> None:
    target = {"a": np.arange(6.0).reshape(2, 3), "b": [np.array(2.0), np.ones(2)]}
    start = pg.tree.map(lambda v: np.zeros_like(v), target)

    def distance(x: Any) -> Any:
        parts = zip(pg.tree.leaves(x), pg.tree.leaves(target), strict=True)
        return sum(pg.sum((u - v) ** 2) for u, v in parts)

    for method in ("BFGS", "trust-constr", "trust-exact", "Newton-CG"):
        found = optimize.minimize(distance, start, method=method).x
        assert pg.tree.structure(found) == pg.tree.structure(target)
        for ours, wanted in zip(pg.tree.leaves(found), pg.tree.leaves(target), strict=True):
            np.testing.assert_allclose(ours, wanted, atol=1e-5)


def test_a_data_frame_of_unknowns_is_a_dict_of_its_columns() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    found = optimize.minimize(lambda x: pg.sum((x["a"] - 5.0) ** 2 + (x["b"] - x["a"]) ** 2), frame)
    np.testing.assert_allclose(found.x["b"], 5.0, atol=1e-6)


def test_trust_constr_is_given_a_sparse_hessian(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    plain = theirs.minimize
    monkeypatch.setattr(
        theirs, "minimize", lambda **kwargs: given.update(kwargs) or plain(**kwargs)
    )
    start = np.linspace(0.5, 1.5, 30)
    found = optimize.minimize(rosenbrock, start, method="trust-constr")
    np.testing.assert_allclose(found.x, 1.0, atol=1e-5)
    matrix = given["hess"](start)
    assert matrix.nnz == 3 * 30 - 2
    np.testing.assert_allclose(matrix.toarray(), theirs.rosen_hess(start))


def test_constraints_are_differentiated() -> None:
    below = {"type": "ineq", "fun": lambda x, most: [most - x[0] - x[1]], "args": (1.5,)}
    disc = theirs.NonlinearConstraint(lambda x: x[0] ** 2 + x[1] ** 2, 0.0, 0.5)
    plane = theirs.LinearConstraint(np.ones((1, 4)), -np.inf, 3.0)
    for method, constraints in (
        ("SLSQP", below),
        ("trust-constr", disc),
        ("SLSQP", [below, plane]),
    ):
        found = optimize.minimize(rosenbrock, START, method=method, constraints=constraints)
        expected = theirs.minimize(rosenbrock, START, method=method, constraints=constraints)
        np.testing.assert_allclose(found.x, expected.x, atol=1e-3)
        assert found.nfev <= 0.45 * expected.nfev


def test_least_squares_root_and_curve_fit() -> None:
    x = np.linspace(0.0, 3.0, 20)
    data = 2.0 * np.exp(-1.5 * x) + 0.3

    def model(x: Any, size: Any, rate: Any, rest: Any) -> Any:
        return size * np.exp(-rate * x) + rest

    found = optimize.least_squares(lambda p, x: model(x, *p) - data, [1.0, 1.0, 0.0], args=(x,))
    np.testing.assert_allclose(found.x, [2.0, 1.5, 0.3], atol=1e-8)
    for start in (None, [1.0, 1.0, 0.0]):
        values, covariance = optimize.curve_fit(model, x, data, start, sigma=1 + x)
        np.testing.assert_allclose(values, [2.0, 1.5, 0.3], atol=1e-7)
        assert covariance.shape == (3, 3)
    for method in ("hybr", "lm", "krylov"):
        found = optimize.root(lambda v, a: np.cos(v) - a * v, np.ones(3), (2.0,), method)
        np.testing.assert_allclose(np.cos(found.x), 2 * found.x, atol=1e-6)


def test_functions_that_assign_to_arrays_are_traced() -> None:
    def chain(x: Any) -> Any:
        steps = np.zeros(3)
        for i in range(3):
            steps[i] = x[i + 1] - x[i] ** 2
        return 100.0 * np.sum(steps**2) + np.sum((1 - x[:-1]) ** 2)

    for method in ("BFGS", "Newton-CG", "trust-constr", "Powell"):
        expected = optimize.minimize(rosenbrock, START, method=method)
        found = optimize.minimize(chain, START, method=method)
        np.testing.assert_allclose(found.x, expected.x, atol=1e-6)


def test_programs_are_pointed_to_solvers() -> None:
    with pg.Program(), pytest.raises(pg.ArgumentError, match=r"pg\.solvers\.minimize"):
        optimize.minimize(rosenbrock, pg.data("x", (4,)))
    with pytest.raises(pg.ArgumentError, match="nothing in x0"):
        optimize.root(lambda x: x, ())
    with pytest.raises(pg.UnknownNameError, match="minimise"):
        optimize.minimise  # noqa: B018


def test_least_squares_passes_arguments_by_name() -> None:
    for jac in (None, "2-point"):
        found = optimize.least_squares(
            lambda x, *, size: x - size, [0.0], jac, kwargs={"size": 2.0}
        )
        np.testing.assert_allclose(found.x, [2.0], rtol=1e-7)
