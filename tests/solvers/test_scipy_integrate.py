"""SciPy's solvers of differential equations and of errors in variables, with exact Jacobians."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primgraph as pg
from primgraph.scipy.integrate import solve_bvp, solve_ivp

theirs = pytest.importorskip("scipy.integrate")

POINTS = np.linspace(0.0, 1.0, 5)


def van_der_pol(t: Any, y: Any, mu: Any) -> Any:
    return np.array([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Radau", "BDF", "LSODA"])
def test_initial_value_problems_have_the_solution_of_scipy(method: str) -> None:
    arguments: dict[str, Any] = {"method": method, "rtol": 1e-8, "atol": 1e-8, "args": (10.0,)}
    found = solve_ivp(van_der_pol, (0.0, 5.0), [2.0, 0.0], t_eval=[1.0, 5.0], **arguments)
    expected = theirs.solve_ivp(van_der_pol, (0.0, 5.0), [2.0, 0.0], t_eval=[1.0, 5.0], **arguments)
    assert found.success
    np.testing.assert_allclose(found.y, expected.y, rtol=1e-5)
    assert found.nfev <= 1.1 * expected.nfev


def test_the_jacobian_of_an_implicit_method_is_exact() -> None:
    """Differences cost a call a column, and are counted by nfev of LSODA."""
    count = 30
    matrix = np.diag(-(np.arange(1.0, count + 1) ** 2))
    arguments: dict[str, Any] = {"method": "LSODA", "rtol": 1e-8}
    start = np.ones(count)
    found = solve_ivp(lambda t, y: matrix @ y, (0.0, 1.0), start, **arguments)
    expected = theirs.solve_ivp(lambda t, y: matrix @ y, (0.0, 1.0), start, **arguments)
    np.testing.assert_allclose(found.y[0, -1], np.exp(-1.0), rtol=1e-6)
    assert found.nfev < 0.7 * expected.nfev


def test_states_are_containers_and_events_see_them() -> None:
    def hit(t: float, state: Any, g: float) -> Any:
        return state["x"]

    hit.terminal = True  # type: ignore[attr-defined]
    found = solve_ivp(
        lambda t, s, g: {"x": s["v"], "v": -g + 0.0 * s["v"]},
        (0.0, 5.0),
        {"x": 1.0, "v": 0.0},
        events=hit,
        args=(9.81,),
    )
    np.testing.assert_allclose(found.t_events[0], [np.sqrt(2 / 9.81)])
    assert found.status == 1
    with pytest.raises(pg.ArgumentError, match=r"fun returned \{'v': .*, but y0 is \{'x'"):
        solve_ivp(lambda t, s: {"v": s["v"], "x": s["v"]}, (0.0, 1.0), {"x": 1.0, "v": 0.0})


def test_what_is_given_goes_to_scipy_as_it_is() -> None:
    found = solve_ivp(lambda t, y: 1j * y, (0.0, 1.0), [1.0 + 0.0j], rtol=1e-8)
    np.testing.assert_allclose(found.y[0, -1], np.exp(1j), rtol=1e-6)
    given = {"method": "BDF", "jac": lambda t, y: -np.eye(2)}
    found = solve_ivp(lambda t, y: [-float(y[0]), -y[1]], (0.0, 1.0), [1.0, 2.0], **given)
    assert found.success
    assert pg.scipy.integrate.solve_ivp is solve_ivp
    assert pg.scipy.integrate.simpson is theirs.simpson


def test_what_cannot_be_solved_is_refused() -> None:
    with pytest.raises(pg.ShapeError, match="fun returned 1 numbers, but y0 has 2"):
        solve_ivp(lambda t, y: y[:1], (0.0, 1.0), [1.0, 2.0])
    with pytest.raises(pg.ArgumentError, match=r"such as pg\.solvers\.solve_ivp"):
        pg.trace(lambda x: solve_ivp(lambda t, y: -y, (0.0, 1.0), x), pg.spec(2))
    with pytest.raises(pg.ArgumentError, match="cannot be a part of a program"):
        pg.trace(lambda x: solve_bvp(lambda x, y: y, lambda a, b: a, POINTS, x), pg.spec((2, 5)))


def test_boundary_value_problems_have_the_solution_of_scipy() -> None:
    def slope(x: Any, y: Any, p: Any) -> Any:
        return np.vstack((y[1], -(p[0] ** 2) * y[0] * np.cos(0.1 * x)))

    def ends(a: Any, b: Any, p: Any) -> Any:
        return np.array([a[0], b[0], a[1] - p[0]])

    start = np.zeros((2, 5))
    start[0, [1, 3]] = 1.0, -1.0
    found = solve_bvp(slope, ends, POINTS, start, p=[6.0], tol=1e-6)
    expected = theirs.solve_bvp(slope, ends, POINTS, start, p=[6.0], tol=1e-6)
    assert found.success
    assert found.niter <= expected.niter
    np.testing.assert_allclose(found.p, expected.p, rtol=1e-6)
    np.testing.assert_allclose(found.sol(0.3), expected.sol(0.3), rtol=1e-5)
    without = solve_bvp(
        lambda x, y: (y[1], -np.exp(y[0])), lambda a, b: (a[0], b[0]), POINTS, np.zeros((2, 5))
    )
    np.testing.assert_allclose(without.sol(0.5)[0], 0.1405392, rtol=1e-4)


def test_jacobians_of_boundary_value_problems_are_exact(monkeypatch: Any) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(
        theirs, "solve_bvp", lambda *args, **options: given.update(functions=args[6:8])
    )

    def slope(x: Any, y: Any, p: Any) -> Any:
        return np.stack([y[1] * p[1], x * np.sin(y[0]) * p[0]])

    solve_bvp(slope, lambda a, b, p: [a[0] * b[1], p[0] * p[1]], POINTS, np.zeros((2, 5)), p=[1, 2])
    of_points, of_ends = given["functions"]
    y, p = np.arange(8.0).reshape(2, 4), np.array([3.0, 2.0])
    x = np.linspace(1.0, 2.0, 4)
    by_y, by_p = of_points(x, y, p)
    none = np.zeros(4)
    np.testing.assert_allclose(by_y, [[none, none + 2.0], [x * np.cos(y[0]) * 3.0, none]])
    np.testing.assert_allclose(by_p, [[none, y[1]], [x * np.sin(y[0]), none]])
    a, b = np.array([5.0, 6.0]), np.array([7.0, 8.0])
    by_a, by_b, by_p = of_ends(a, b, p)
    np.testing.assert_array_equal(by_a, [[8.0, 0.0], [0.0, 0.0]])
    np.testing.assert_array_equal(by_b, [[0.0, 5.0], [0.0, 0.0]])
    np.testing.assert_array_equal(by_p, [[0.0, 0.0], [2.0, 3.0]])


@pytest.mark.filterwarnings("ignore:.scipy.odr. is deprecated:DeprecationWarning")
@pytest.mark.parametrize("fit_type", [0, 2])
def test_models_of_odr_have_exact_derivatives(fit_type: int) -> None:
    original = pytest.importorskip("scipy.odr", exc_type=ImportError)
    odr = pg.scipy.odr
    rng = np.random.default_rng(0)
    x = rng.random((2, 40))
    y = np.stack([2.0 * x[0] + x[1] ** 2, 3.0 * np.sin(x[0])])

    def several(beta: Any, x: Any) -> Any:
        return np.stack([beta[0] * x[0] + x[1] ** beta[1], beta[2] * np.sin(x[0])])

    model = odr.Model(several)
    beta = np.array([1.5, 1.0, 2.0])
    none = np.zeros(40)
    np.testing.assert_allclose(
        model.fjacb(beta, x),
        [[x[0], x[1] * np.log(x[1]), none], [none, none, np.sin(x[0])]],
    )
    np.testing.assert_allclose(
        model.fjacd(beta, x), [[none + 1.5, none + 1.0], [2.0 * np.cos(x[0]), none]]
    )
    fit = odr.ODR(odr.Data(x, y), model, beta0=beta)
    fit.set_job(fit_type=fit_type, deriv=2)
    plain = original.ODR(original.Data(x, y), original.Model(several), beta0=beta)
    plain.set_job(fit_type=fit_type)
    np.testing.assert_allclose(fit.run().beta, plain.run().beta, atol=1e-6)
    one = odr.Model(lambda beta, x, factor: factor * beta[0] * x**2, extra_args=(2.0,))
    np.testing.assert_allclose(one.fjacd(np.array([3.0]), x[0], 2.0), 12.0 * x[0])


def test_complex_states_are_vectors_for_scipy_itself() -> None:
    found = solve_ivp(lambda t, y: 1j * y, (0.0, 1.0), [1.0, 1j], rtol=1e-8)
    np.testing.assert_allclose(found.y[:, -1], np.exp(1j) * np.array([1.0, 1j]), rtol=1e-6)
    state: dict[str, Any] = {"x": 1.0, "v": 1j}
    with pytest.raises(pg.errors.ArgumentError, match="takes a vector as y0"):
        solve_ivp(lambda t, s: {"x": s["x"], "v": 1j * s["v"]}, (0.0, 1.0), state)
    with pytest.raises(pg.errors.ArgumentError, match="takes a vector as y0"):
        solve_ivp(lambda t, s: s, (0.0, 1.0), {"x": 1.0}, method="BDF", jac=[[1.0]])


def test_methods_given_as_classes_have_the_exact_jacobian() -> None:
    arguments: dict[str, Any] = {"args": (10.0,)}
    named = solve_ivp(van_der_pol, (0.0, 5.0), [2.0, 0.0], "BDF", **arguments)
    found = solve_ivp(van_der_pol, (0.0, 5.0), [2.0, 0.0], theirs.BDF, **arguments)
    np.testing.assert_array_equal(found.y, named.y)


def test_spans_of_time_are_no_variables() -> None:
    def decayed(end: Any) -> Any:
        return solve_ivp(lambda t, y: -y, (0.0, end), [1.0]).y[:, -1]

    with pytest.raises(pg.errors.ArgumentError, match=r"pg\.solvers\.solve_ivp"):
        pg.jit(decayed)(1.0)


def test_errors_in_variables_begin_at_integers() -> None:
    odr = pytest.importorskip("scipy.odr") and pg.scipy.odr
    x = np.arange(6)
    model = odr.Model(lambda beta, x: beta[0] * np.exp(beta[1] * x))
    found = odr.ODR(odr.Data(x, 3.0 * np.exp(-x)), model, beta0=[1, 0]).run()
    np.testing.assert_allclose(found.beta, [3.0, -1.0], atol=1e-6)
    # Infinite places change no derivative.
    far = np.array([np.inf, 1.0])
    by_x = odr.Model(lambda beta, x: beta[0] * np.tanh(x)).fjacd(np.array([2.0]), far)
    np.testing.assert_allclose(by_x, [0.0, 2.0 / np.cosh(1.0) ** 2])
