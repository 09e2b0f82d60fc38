"""Derivatives of operators at the edge: roots of squares, far tails, NaN, in every mode."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import primgraph as pg

Function = Callable[[pg.Variable], pg.Variable]


def slopes(function: Function, at: Any, order: int = 1) -> list[np.ndarray]:
    """The derivative of that order along ones, by each sequence of modes."""
    x0 = np.asarray(at)
    with pg.Program() as program:
        x = pg.data("x", x0.shape, str(x0.dtype))
        found = []
        for modes in product((pg.grad, pg.forward_grad), repeat=order):
            y = function(x)
            for mode in modes:
                y = mode(pg.sum(y) if y.ndim and mode is pg.grad else y, x)
            found.append(y)
        return pg.Executor().run(program, {"x": x0}, found)


def gradient(function: Function, at: Any, atol: float = 0.0) -> np.ndarray:
    """The gradient, with forward mode along each axis found to agree."""
    x0 = np.asarray(at)
    with pg.Program() as program:
        x = pg.data("x", x0.shape, str(x0.dtype))
        y = function(x)
        rows = np.eye(x0.size, dtype=x0.dtype).reshape(-1, *x0.shape)
        forward = [pg.forward_grad(y, x, row) for row in rows]
        reverse, *parts = pg.Executor().run(program, {"x": x0}, [pg.grad(y, x), *forward])
    together = np.reshape(parts, x0.shape)
    close = 1e-6 if x0.dtype == np.float32 else 1e-13
    np.testing.assert_allclose(together, reverse, rtol=close, atol=atol)
    return reverse


# Roots of sums of squares.

ROOTS: dict[str, Function] = {
    "norm": pg.norm,
    "norm of a matrix": lambda x: pg.norm(pg.stack([x, x])),
    "norm with keepdims": lambda x: pg.sum(pg.norm(x, keepdims=True)),
    "std": pg.std,
    "std with ddof": lambda x: pg.std(x, ddof=1),
    "std along an axis": lambda x: pg.sum(pg.std(pg.stack([x, -x]), axis=1)),
}


@pytest.mark.parametrize("name", ROOTS)
def test_a_root_of_squares_that_are_zero_has_slope_zero(name: str) -> None:
    at = np.ones(3) if "std" in name else np.zeros(3)
    np.testing.assert_array_equal(gradient(ROOTS[name], at), np.zeros(3))
    for order in (1, 2, 3) if name == "norm" else (1, 2):
        for found in slopes(ROOTS[name], at, order):
            assert not np.any(found)


def test_what_is_divided_by_a_deviation_of_equal_elements_has_slopes() -> None:
    def normal(v: pg.Variable) -> pg.Variable:
        return pg.sum((v - pg.mean(v)) / (pg.std(v) + 1e-5) * v)

    assert np.all(np.isfinite(gradient(normal, np.ones(3), 1e-9)))


@pytest.mark.parametrize("name", ROOTS)
@pytest.mark.parametrize("scale", [1e200, 1e-170, 5e-324 * 2.0**20, 1e300, 1.0])
def test_a_root_of_squares_that_over_or_underflow(name: str, scale: float) -> None:
    at = np.array([3.0, 4.0, 0.0])
    with pg.Program() as program:
        x = pg.data("x", (3,))
        y = ROOTS[name](x)
        results = [y, pg.grad(y, x)]
    unit, expected = pg.Executor().run(program, {"x": at}, results)
    whole, found = pg.Executor().run(program, {"x": at * scale}, results)
    np.testing.assert_allclose(whole, unit * scale, rtol=1e-5)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-15)


@pytest.mark.parametrize("scale", [1e25, 1e-25, 1e37])
def test_a_norm_of_small_floats_that_over_or_underflow(scale: float) -> None:
    at = np.array([3.0, 4.0], np.float32) * np.float32(scale)
    np.testing.assert_allclose(gradient(pg.norm, at), [0.6, 0.8], rtol=1e-6)
    at = np.array([3.0, 4.0], np.float16)
    np.testing.assert_allclose(gradient(pg.norm, at), [0.6, 0.8], rtol=1e-3)


def test_scaling_changes_no_bit_where_nothing_overflows() -> None:
    rng = np.random.default_rng(0)
    for size in (3, 50):
        for exponent in range(-140, 140, 20):
            x = rng.normal(size=size) * 10.0**exponent
            with pg.Program() as program:
                v = pg.data("v", (size,))
                results = pg.norm(v), pg.sqrt(pg.sum(v * v))
            norm, plain = pg.Executor().run(program, {"v": x}, list(results))
            assert norm == plain


@pytest.mark.parametrize("x", [[np.inf, 1.0], [-np.inf, np.inf], [np.nan, 1.0]])
def test_norms_of_what_is_not_finite_are_those_of_numpy(x: list[float]) -> None:
    with pg.Program() as program:
        v = pg.data("v", (2,))
        y = [pg.norm(v), pg.std(v)]
    found = pg.Executor().run(program, {"v": x}, y)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, [np.linalg.norm(x), np.std(x)])


# Far tails.


def test_the_slope_of_arcsinh_does_not_vanish() -> None:
    x = np.array([1e160, -1e160, 1e200, 1.7e308, 2.0, -0.3, 0.0, 1e-200])
    size = np.hypot(1.0, x)
    first, second = 1 / size, -(x / size) / size / size
    for found in slopes(pg.arcsinh, x):
        np.testing.assert_allclose(found, first, rtol=1e-14)
    for found in slopes(pg.arcsinh, x, 2):
        np.testing.assert_allclose(found, second, rtol=1e-13, atol=1e-320)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_tails_of_the_error_function_and_of_gelu_are_flat(order: int) -> None:
    x = np.array([1e200, -1e200, 50.0, -50.0, 1e300, 1e20])
    for found in slopes(pg.gelu, x, order):
        np.testing.assert_array_equal(found, (x > 0) * float(order == 1))
    for found in slopes(lambda x: x * pg.erf(x) - pg.abs(x), x, order):
        np.testing.assert_array_equal(found, np.zeros(6))
    for found in slopes(pg.erfc, x, order):
        np.testing.assert_array_equal(found, np.zeros(6))


def test_the_slope_of_erf_has_all_digits_where_it_is_not_zero() -> None:
    x = np.linspace(-26.0, 26.0, 101)
    expected = 2 / np.sqrt(np.pi) * np.exp(-x * x)
    for found in slopes(pg.erf, x):
        np.testing.assert_allclose(found, expected, rtol=1e-15)


# NaN beside NaN.


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: pg.maximum(x, 0.0) * x,
        lambda x: pg.minimum(0.5, x) * x,
        lambda x: pg.maximum(x * x, x),
        lambda x: pg.max(x) * x,
        lambda x: pg.min(x) * x,
        lambda x: pg.max(pg.stack([x, 2.0 * x]), axis=0) * x,
        lambda x: pg.abs(x) * x,
        lambda x: pg.norm(x, ord=np.inf) * x,
    ],
)
def test_extrema_of_nan_have_slopes_of_nan(function: Function, order: int) -> None:
    for found in slopes(function, [np.nan], order):
        assert np.isnan(found).all()


@pytest.mark.parametrize("mode", [pg.grad, pg.forward_grad])
def test_one_nan_takes_the_slopes_of_its_extremum_alone(mode: Any) -> None:
    x0 = np.array([[np.nan, 1.0], [2.0, 3.0]])
    with pg.Program() as program:
        x = pg.data("x", (2, 2))
        other = pg.data("other", (2, 2))
        along, pairs = pg.max(x, axis=1), pg.maximum(other, x)
        ends = (pg.sum(along), pg.sum(pairs)) if mode is pg.grad else (along, pairs)
        results = [mode(y, x) for y in ends]
    feed = {"x": x0, "other": np.array([[0.0, 1.0], [np.nan, 5.0]])}
    along, pairs = pg.Executor().run(program, feed, results)
    nan = np.nan
    expected = [[nan, nan], [0, 1]] if mode is pg.grad else [nan, 1]
    np.testing.assert_array_equal(along, expected)
    np.testing.assert_array_equal(pairs, [[nan, 0.5], [nan, 0]])


@pytest.mark.parametrize("at", [np.inf, -np.inf])
def test_infinite_elements_tie_as_others_do(at: float) -> None:
    for found in slopes(lambda x: pg.maximum(x, at) + pg.minimum(x, at), [at]):
        np.testing.assert_array_equal(found, [1.0])
    found = gradient(lambda x: pg.max(x) if at > 0 else pg.min(x), [at, 0.0, at])
    np.testing.assert_array_equal(found, [0.5, 0.0, 0.5])
