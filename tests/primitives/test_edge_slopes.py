"""Derivatives of operators at the edge: roots of squares, far tails, NaN, in every mode."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import mpmath
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


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["norm", "std"])
def test_rows_of_all_sizes_beside_each_other_have_slopes_of_their_own(name: str, axis: int) -> None:
    """The second derivatives too, as far as they are numbers: they shrink as the rows grow."""
    scales = np.array([1e200, 1e-150, 0.0, 1.0, 1e300])
    rows = np.array([3.0, 4.0, -1.0, 0.5]) * scales[:, None]
    at = rows if axis == 1 else rows.T

    def function(x: pg.Variable) -> pg.Variable:
        return getattr(pg, name)(x, axis=axis)

    weights = np.array([1.0, -2.0, 0.5, 3.0])
    with pg.Program() as program:
        x = pg.data("x", at.shape)
        y = function(x)
        slope = pg.grad(pg.sum(y), x)
        along = slope * (weights if axis == 1 else weights[:, None])
        results = [y, slope, pg.grad(pg.sum(along), x)]
    found, first, second = pg.Executor().run(program, {"x": at}, results)
    if axis == 0:
        first, second = first.T, second.T
    np.testing.assert_allclose(found, found[3] * scales, rtol=1e-14)
    np.testing.assert_allclose(first, first[3] * (scales > 0)[:, None], rtol=1e-13)
    inverse = np.divide(1.0, scales, where=scales > 0, out=np.zeros(5))
    np.testing.assert_allclose(second, second[3] * inverse[:, None], rtol=1e-12)


@pytest.mark.parametrize("name", ["norm", "std"])
def test_scaling_costs_no_equations_beside_the_plain_formula(name: str) -> None:
    def norm(x: pg.Variable) -> pg.Variable:
        squares = pg.sum(x * x)
        zero = pg.equal(squares, 0)
        return pg.where(zero, 0, pg.sqrt(pg.where(zero, 1, squares)))

    plain = norm if name == "norm" else lambda x: pg.sqrt(pg.mean((x - pg.mean(x)) ** 2))
    ours, theirs = (
        len(pg.compile(pg.trace(lambda x, f=f: (f(x), pg.grad(f(x), x)), pg.spec((5,)))).graph.body)
        for f in (getattr(pg, name), plain)
    )
    assert ours <= theirs


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


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_approximate_gelu_is_right_in_its_tails(order: int) -> None:
    def gelu(x: pg.Variable) -> pg.Variable:
        return pg.gelu(x, approximate=True)

    x = np.array([1e200, -1e200, 1e20, -1e20, 30.0, -30.0, 1.7e308])
    for found in slopes(gelu, x, order):
        np.testing.assert_array_equal(found, (x > 0) * float(order == 1))
    # In the left tail the logistic function is the exponential one.
    left = np.array([-6.0, -8.0, -12.0])
    for found in slopes(gelu, left, order):
        for other in slopes(
            lambda x: x * pg.exp(1.5957691216057308 * (x + 0.044715 * x**3)), left, order
        ):
            np.testing.assert_allclose(found, other, rtol=1e-9)
    for found in slopes(gelu, np.array([700.0, -700.0], np.float16), order):
        np.testing.assert_array_equal(found, [float(order == 1), 0.0])


def tail_of_logistic(x: np.ndarray, order: int) -> np.ndarray:
    """A derivative of `1 / (1 + exp(-x))`, by sums of positive powers of a small exponential."""
    small = np.exp(-np.abs(x).astype(np.longdouble))
    terms = [(-1.0) ** (n + 1) * np.longdouble(n) ** order * small**n for n in range(1, 12)]
    sign = np.where(x < 0, 1.0, (-1.0) ** (order + 1))
    return sign * np.sum(terms, axis=0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_slopes_of_sigmoid_do_not_vanish_in_either_tail(order: int, dtype: Any) -> None:
    """Nor do those of softplus, and of tanh written by sigmoid."""
    x = np.array([30.0, -30.0, 60.0, -60.0, 17.0, -17.0], dtype)
    rtol = 1e-13 if dtype == np.float64 else 1e-5
    for found in slopes(pg.sigmoid, x, order):
        np.testing.assert_allclose(found, tail_of_logistic(x, order), rtol=rtol)
    for found in slopes(pg.softplus, x, order) if order > 1 else []:
        np.testing.assert_allclose(found, tail_of_logistic(x, order - 1), rtol=rtol)
    near = x / 2
    for found in slopes(lambda x: 2.0 * pg.sigmoid(2.0 * x) - 1.0, near, order):
        expected = 2.0 ** (order + 1) * tail_of_logistic(2 * near, order)
        np.testing.assert_allclose(found, expected, rtol=rtol)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize(
    ("function", "exact"),
    [
        (pg.silu, lambda x: x / (1 + mpmath.exp(-x))),
        (
            lambda x: pg.logaddexp(x, 0.5 * x),
            lambda x: mpmath.log(mpmath.exp(x) + mpmath.exp(x / 2)),
        ),
    ],
)
def test_slopes_of_silu_and_logaddexp_do_not_vanish_in_either_tail(
    function: Function, exact: Callable[[Any], Any], order: int, dtype: Any
) -> None:
    x = np.array([30.0, -30.0, 60.0, -60.0, 17.0, -17.0], dtype)
    with mpmath.workdps(60):
        step = mpmath.mpf(10) ** -15
        expected = [float(mpmath.diff(exact, mpmath.mpf(float(v)), order, h=step)) for v in x]
    for found in slopes(function, x, order):
        np.testing.assert_allclose(found, expected, rtol=1e-15 if dtype == np.float64 else 1e-6)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize(
    ("function", "right"),
    [
        (lambda x: x * pg.sigmoid(x), 1.0),
        (pg.silu, 1.0),
        (pg.softplus, 1.0),
        (lambda x: x * pg.tanh(pg.softplus(x)), 1.0),
        (pg.tanh, 0.0),
        (pg.sigmoid, 0.0),
        (lambda x: pg.logaddexp(x, 0.5 * x), None),
        (lambda x: pg.softmax(pg.stack([x, 0.0 * x]), axis=0)[0], 0.0),
        (lambda x: pg.logsumexp(pg.stack([x, 0.0 * x]), axis=0), 1.0),
    ],
)
def test_far_tails_are_not_nan(function: Function, right: float | None, order: int) -> None:
    x = np.array([1e200, -1e200, 1e100, -1e100, 900.0, -900.0])
    ends = (1.0, 0.5) if right is None else (right, 0.0)
    for found in slopes(function, x, order):
        expected = np.where(x > 0, *ends) * float(order == 1)
        np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-100)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_slope_of_tanh_is_right_to_a_unit_in_the_last_place_of_one(dtype: Any) -> None:
    x = np.linspace(-30.0, 30.0, 241).astype(dtype)
    exact = 1 / np.cosh(x.astype(np.float64)) ** 2
    for found in slopes(pg.tanh, x):
        assert np.max(np.abs(found - exact)) <= 2 * np.finfo(dtype).eps
        assert not np.any(found[np.abs(x) > 19.1])


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
        lambda x: pg.relu(x) * x,
        lambda x: pg.relu(x) ** 2,
        lambda x: pg.relu(pg.relu(2.0 * x) - 1.0) * x,
        lambda x: pg.clip(x, -1.0, 1.0) * x,
        lambda x: pg.clip(x, None, 1.0) * x,
        lambda x: pg.clip(x, np.zeros(1), None) ** 2,
        lambda x: pg.clip(x, -pg.sin(x), 6.0) * x,
        lambda x: x * pg.clip(x + 3.0, 0.0, 6.0),
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


@pytest.mark.parametrize("bound", [np.float64(1.0), 1, np.ones(1)])
def test_relu_is_flat_at_zero_and_clip_is_not_at_its_bounds(bound: Any) -> None:
    x = np.array([-np.inf, -3.0, -1.0, 0.0, -0.0, 0.5, 1.0, 1.5, np.inf])
    for found in slopes(pg.relu, x):
        np.testing.assert_array_equal(found, x > 0)
    for found in slopes(lambda x: pg.clip(x, -bound, bound), x):
        np.testing.assert_array_equal(found, np.abs(x) <= 1)
    for found in slopes(lambda x: pg.clip(x, None, bound), x):
        np.testing.assert_array_equal(found, x <= 1)


@pytest.mark.parametrize("size", [1, 5, 300])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_relu_and_clip_of_nan_have_slope_nan(size: int, dtype: Any) -> None:
    x = np.resize(np.array([np.nan, -2.0, 0.0, 1.0, 3.0], dtype), size)
    for found in slopes(pg.relu, x):
        np.testing.assert_array_equal(found, np.where(np.isnan(x), x, x > 0))
    for found in slopes(lambda x: pg.clip(x, 0.0, 1.0), x):
        np.testing.assert_array_equal(found, np.where(np.isnan(x), x, (x >= 0) & (x <= 1)))
    for found in slopes(lambda x: pg.clip(x), x):
        np.testing.assert_array_equal(found, np.where(np.isnan(x), x, 1.0))


def test_a_nan_that_is_not_selected_leaves_the_slopes_beside_it_alone() -> None:
    for function in (pg.relu, lambda x: pg.clip(x, -5.0, 5.0)):
        for found in slopes(lambda x, f=function: pg.where(x > 0, f(x), 0.0), [np.nan, 1.0]):
            np.testing.assert_array_equal(found, [0.0, 1.0])


def test_a_slope_that_is_nan_at_nan_costs_a_relu_one_choice() -> None:
    """The value and the slope: two comparisons, and two choices as without NaN."""

    def step(x: pg.Variable, w: pg.Variable) -> Any:
        y = pg.relu(x)
        return y, pg.grad(pg.sum(y * w), x)

    source = pg.compile(pg.trace(step, pg.spec((500,)), pg.spec((500,)))).source
    assert source.count("np.where") == 2
    assert "isnan" not in source
    value = pg.compile(pg.trace(pg.relu, pg.spec((500,)))).source
    assert value.count("np.where") == 1
    value = pg.compile(pg.trace(lambda x: pg.clip(x, -1.0, 1.0), pg.spec((500,)))).source
    assert value.count("np.where") == 2


def test_a_random_mask_guards_no_relu_and_costs_its_slope_nothing() -> None:
    """What a dropout leaves out it leaves out by chance: a NaN there is one like any other."""

    def step(x: pg.Variable, w: pg.Variable) -> Any:
        return pg.grad(pg.sum(pg.dropout(pg.relu(x), 3, 0.5) * w), x)

    kernel = pg.compile(pg.trace(step, pg.spec((500,)), pg.spec((500,))))
    assert kernel.source.count("np.where") == 3
    found = kernel(np.full(500, np.nan), np.ones(500))
    assert np.isnan(found).all()


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ([np.inf, 0.0], [np.nan, 0.0]),
        ([0.0, np.inf, -np.inf], [0.0, np.nan, 0.0]),
        ([np.inf, np.inf], [np.nan, np.nan]),
        ([-np.inf, 0.0], [0.0, 1.0]),
        ([1e308, 0.0], [1.0, 0.0]),
    ],
)
def test_logsumexp_of_infinite_elements(at: list[float], expected: list[float]) -> None:
    with pg.Program() as program:
        x = pg.data("x", (len(at),))
        y = pg.logsumexp(x)
        results = [y, pg.grad(y, x), pg.jacobian(y, x), pg.Jacobian(y, x)[:]]
    value, slope, *matrices = pg.Executor().run(program, {"x": at}, results)
    assert value == np.max(at)
    for found in (slope, *matrices):
        np.testing.assert_array_equal(np.reshape(found, -1), expected)


@pytest.mark.parametrize("at", [np.inf, -np.inf])
def test_infinite_elements_tie_as_others_do(at: float) -> None:
    for found in slopes(lambda x: pg.maximum(x, at) + pg.minimum(x, at), [at]):
        np.testing.assert_array_equal(found, [1.0])
    found = gradient(lambda x: pg.max(x) if at > 0 else pg.min(x), [at, 0.0, at])
    np.testing.assert_array_equal(found, [0.5, 0.0, 0.5])
