"""Arguments of SciPy's methods that are of another kind or shape: solved, or refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primgraph as pg
from primgraph.scipy import integrate, optimize

theirs = pytest.importorskip("scipy.optimize")

SPAN = (0.0, 1.0)


def decay(t: Any, y: Any, rate: Any = 1.0) -> Any:
    return -rate * y


def squares(x: Any) -> Any:
    return np.sum(x**2)


@pytest.mark.parametrize(
    "args", [2.0, (2.0,), [2.0], np.array(2.0), np.array([2.0])], ids=lambda v: type(v).__name__
)
def test_one_further_argument_needs_no_tuple(args: Any) -> None:
    found = integrate.solve_ivp(decay, SPAN, [1.0], args=args, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.y[0, -1], np.exp(-2.0), rtol=1e-6)
    value, _ = integrate.quad(lambda x, k: x**k, 0.0, 1.0, args=args if np.ndim(args) == 0 else 2.0)
    np.testing.assert_allclose(value, 1 / 3)


@pytest.mark.parametrize("is_frame", [True, False], ids=["frame", "dict"])
def test_dicts_and_data_frames_are_further_arguments(is_frame: bool) -> None:
    data: Any = {"a": np.array([1.0, 2.0])}
    data = pytest.importorskip("pandas").DataFrame(data) if is_frame else data

    def shifted(x: Any, data: Any) -> Any:
        return x - np.array(data["a"])

    start = [0.0, 0.0]
    for given in (data, (data,)):
        for found in (
            optimize.minimize(lambda x, d: squares(shifted(x, d)), start, given),
            optimize.least_squares(shifted, start, args=given),
            optimize.root(shifted, start, given),
        ):
            np.testing.assert_allclose(found.x, [1.0, 2.0], rtol=1e-6)
        found = integrate.solve_ivp(lambda t, y, d: d["a"][1] + 0.0 * y, SPAN, [0.0], args=given)
        np.testing.assert_allclose(found.y[0, -1], 2.0)
        assert integrate.quad(lambda x, d: d["a"][1] * x, 0.0, 1.0, given)[0] == 1.0


def test_bounds_and_parameters_are_dicts_like_the_unknowns() -> None:
    start = {"a": 0.0, "b": np.full(2, 2.5)}
    bounds = {"a": (None, 0.5), "b": (np.array([2.0, -1.0]), 3.0)}

    def loss(p: Any) -> Any:
        return (p["a"] - 3.0) ** 2 + squares(p["b"])

    for method in (None, "trust-constr", "nelder-mead"):
        found = optimize.minimize(loss, start, method=method, bounds=bounds)
        np.testing.assert_allclose(found.x["a"], 0.5, atol=1e-3)
        np.testing.assert_allclose(found.x["b"], [2.0, 0.0], atol=1e-3)
    fit = optimize.least_squares(
        lambda p: p["a"] - 3.0, {"a": 1.0}, bounds=({"a": 0.0}, {"a": 2.5})
    )
    np.testing.assert_allclose(fit.x["a"], 2.5, rtol=1e-6)
    points = np.linspace(0.0, 1.0, 5)
    mode = integrate.solve_bvp(
        lambda x, y, p: np.stack([y[1], -(p["k"] ** 2) * y[0]]),
        lambda a, b, p: np.stack([a[0], b[0], a[1] - p["k"]]),
        points,
        np.stack([np.sin(3.0 * points), 3.0 * np.cos(3.0 * points)]),
        {"k": 3.0},
    )
    np.testing.assert_allclose(mode.p["k"], np.pi, rtol=1e-4)


def test_constraints_of_any_shape_have_sparse_hessians() -> None:
    def product(x: Any) -> Any:
        return np.outer(x, x)

    limit = theirs.NonlinearConstraint(product, -np.inf, np.full((2, 2), 0.5))
    found = optimize.minimize(
        lambda x: -x[0] - x[1], [0.1, 0.2], method="trust-constr", constraints=limit
    )
    np.testing.assert_allclose(found.x, np.full(2, np.sqrt(0.5)), atol=1e-3)
    scalar = {"type": "ineq", "fun": lambda x, k: k - x[0] - x[1], "args": 1.0}
    found = optimize.minimize(lambda x: squares(x - 2.0), [0.0, 0.0], constraints=scalar)
    np.testing.assert_allclose(found.x, [0.5, 0.5], atol=1e-6)
    with pytest.raises(ValueError, match="no function defined"):
        optimize.minimize(squares, [0.0], constraints={"type": "ineq"})


def test_one_element_is_a_value_as_for_scipy() -> None:
    for method in ("BFGS", "nelder-mead"):
        found = optimize.minimize(lambda x: (x - 1.0) ** 2, [0.0], method=method)
        np.testing.assert_allclose(found.x, [1.0], atol=1e-4)


def test_quad_has_derivatives_in_functions_that_are_differentiated() -> None:
    def area(k: Any, end: Any) -> Any:
        return integrate.quad(lambda x: np.exp(-k * x), 0.0, end)[0]

    slopes = pg.grad(area, argnums=(0, 1))(2.0, 1.5)
    k, end = 2.0, 1.5
    by_k = (np.exp(-k * end) * (1 + k * end) - 1) / k**2
    np.testing.assert_allclose(slopes, [by_k, np.exp(-k * end)], rtol=1e-7)
    assert integrate.quad(np.exp, 0.0, 1.0, full_output=1)[2]["neval"] == 21
    value, error = pg.jit(lambda k: integrate.quad(lambda x: x**k, 0.0, 1.0))(2.0)
    np.testing.assert_allclose(value, 1 / 3)
    assert abs(value - 1 / 3) <= error <= 1.5e-8
    with pytest.raises(pg.ArgumentError, match="and no points"):
        pg.grad(lambda k: integrate.quad(lambda x: x**k, 0.0, 1.0, points=[0.5])[0])(2.0)


COMPLEX = pg.errors.DTypeError
REFUSED: dict[str, tuple[type[Exception], str, Any]] = {
    "empty state": (pg.ArgumentError, "in y0 to", lambda: integrate.solve_ivp(decay, SPAN, [])),
    "text": (COMPLEX, "'a' in y0", lambda: integrate.solve_ivp(decay, SPAN, "a")),
    "complex unknowns": (
        COMPLEX, r"in x0 is no array of real", lambda: optimize.minimize(squares, np.array([1j]))
    ),
    "complex list": (COMPLEX, "1j in x0", lambda: optimize.root(squares, [1j, 1.0])),
    "complex slope": (
        COMPLEX, "y0 is real", lambda: integrate.solve_ivp(lambda t, y: 1j * y, SPAN, [1.0])
    ),
    "complex residuals": (
        COMPLEX, "x0 is real", lambda: optimize.least_squares(lambda x: 1j * x, [1.0])
    ),
    "None": (
        pg.ArgumentError, "returned None", lambda: optimize.minimize(lambda x: None, [1.0])
    ),
    "no slope": (
        pg.ArgumentError, "returned None", lambda: integrate.solve_ivp(lambda t, y: None, SPAN, [1])
    ),
    "one time": (
        pg.ArgumentError, r"pair of times, not 1\.0", lambda: integrate.solve_ivp(decay, 1.0, [1.0])
    ),
    "too few equations": (
        pg.ShapeError, "1 numbers, but x0 has 2", lambda: optimize.root(lambda x: x[:1], [1.0, 2.0])
    ),
    "derivatives of a dict": (
        pg.ArgumentError, "a vector as x0 with jac",
        lambda: optimize.minimize(lambda p: p["a"] ** 2, {"a": 1.0}, jac=lambda p: 2 * p["a"]),
    ),
    "named parameters of a curve": (
        pg.ArgumentError, "a vector as p0",
        lambda: optimize.curve_fit(lambda x, a: a * x, [1.0, 2.0], [1.0, 2.0], {"a": 1.0}),
    ),
    "batches": (
        pg.ArgumentError, r"curve_fit of SciPy cannot be a part of a program",
        lambda: pg.vmap(lambda y: optimize.curve_fit(lambda x, a: a * x, np.ones(3), y)[0])(
            np.ones((2, 3))
        ),
    ),
    "a derivative of the solution": (
        pg.ArgumentError, "solve_ivp of SciPy has no derivative",
        lambda: pg.grad(lambda y: squares(integrate.solve_ivp(decay, SPAN, y).y))(np.ones(1)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_misuse_is_named(name: str) -> None:
    kind, text, call = REFUSED[name]
    with pytest.raises(kind, match=text):
        call()
