"""Sorting, searching, order statistics and running products against NumPy, with slopes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.special
from helpers import evaluate, evaluate_one, same

import primgraph as pg
from primgraph.errors import AxisError

RNG = np.random.default_rng(30)
X = RNG.uniform(-2, 2, (3, 4))
TIED = np.array([[2.0, 1.0, 2.0, np.nan], [0.0, 3.0, 3.0, 0.0], [5.0, 5.0, -np.inf, 5.0]])
DTYPES = [np.float64, np.float32, np.float16, np.int64, np.uint8, np.bool_]


def cast(x: np.ndarray, dtype: Any) -> np.ndarray:
    return np.abs(x).astype(dtype) if np.dtype(dtype).kind in "ub" else x.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_sorting_is_numpys(axis: Any, dtype: Any) -> None:
    for array in (X, TIED, np.zeros((0, 2)), np.zeros((2, 0))):
        if not np.issubdtype(dtype, np.floating) and np.isnan(array).any():
            continue
        x = cast(array, dtype)
        same(evaluate_one(lambda x: pg.sort(x, axis), x), np.sort(x, axis))
        expected = np.argsort(x, axis, kind="stable")
        same(evaluate_one(lambda x: pg.argsort(x, axis), x), expected)
        if x.size and axis is not None:
            found = evaluate_one(lambda x: pg.partition(x, 1, axis), x)
            same(np.take(found, 1, axis), np.take(np.partition(x, 1, axis), 1, axis))
            order = evaluate_one(lambda x: pg.argpartition(x, 1, axis), x)
            same(np.take_along_axis(x, order, axis), np.sort(x, axis))


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64])
def test_values_and_order_keep_every_bit_if_sorted_once(dtype: Any, target: str) -> None:
    zeros = np.where(RNG.random((2, 500)) < 0.5, 0.0, -0.0)
    large = RNG.permuted(np.arange(6000.0)).reshape(2, 3000)
    for array in (X, TIED, zeros, large, np.zeros((0, 2)), np.zeros((2, 0))):
        if not np.issubdtype(dtype, np.floating) and np.isnan(array).any():
            continue
        for axis in (0, 1):
            x = array.astype(dtype)
            both = pg.trace(lambda x, axis=axis: (pg.sort(x, axis), pg.argsort(x, axis)), x)
            kernel = pg.compile(both, target=target)
            values, order = kernel.flat(x)
            assert order.tobytes() == np.argsort(x, axis, kind="stable").tobytes()
            assert np.array_equal(values, np.sort(x, axis), equal_nan=True)
            assert target == "c" or values.tobytes() == np.sort(x, axis).tobytes()


def test_the_gradient_of_sorted_values_sorts_once() -> None:
    def both(x: Any, w: Any) -> Any:
        value = pg.sum(pg.sort(x) * w)
        return value, pg.grad(value, x), pg.grad(pg.sum(pg.grad(value, x) ** 2), w)

    w = RNG.uniform(-1, 1, 4)
    for target in ("numpy", "c"):
        kernel = pg.compile(pg.trace(both, X[0], w), target=target)
        names = [eqn.op.name for eqn in kernel.graph.body]
        assert names.count("argsort") == 1
        assert "sort" not in names
        value, slope, second = kernel.flat(X[0], w)
        order = np.argsort(X[0])
        expected = np.empty(4)
        expected[order] = w
        same(value, np.sum(X[0][order] * w))
        same(slope, expected)
        same(second, 2 * w)


def test_searching_is_numpys() -> None:
    edges = np.array([-1.0, 0.0, 0.0, 2.0])
    values = np.array([[0.0, np.nan, -5.0], [2.0, 3.0, 1.0]])
    for side in ("left", "right"):
        found = evaluate_one(lambda a, v, side=side: pg.searchsorted(a, v, side), edges, values)
        same(found, np.searchsorted(edges, values, side))
        single = evaluate_one(lambda v, side=side: pg.searchsorted(edges, v, side), np.array(0.0))
        same(single, np.asarray(np.searchsorted(edges, 0.0, side)))
    sorter = np.array([2, 0, 1])
    shuffled = np.array([2.0, 3.0, 1.0])
    found = evaluate_one(lambda v: pg.searchsorted(shuffled, v, sorter=sorter), values)
    same(found, np.searchsorted(shuffled, values, sorter=sorter))
    for bins in (edges, edges[::-1]):
        for right in (False, True):
            found = evaluate_one(lambda v, b=bins, r=right: pg.digitize(v, b, r), values)
            same(found, np.digitize(values, bins, right))
    keys = [np.array([1, 0, 1, 0]), np.array([2, 2, 1, 1]), np.array([0, 1, 1, 0])]
    same(evaluate_one(lambda *ks: pg.lexsort(ks), *keys), np.lexsort(keys))


def test_searching_in_samples_that_differ_counts() -> None:
    edges = np.sort(RNG.normal(size=(5, 7)), -1)
    edges[2, -1] = np.nan
    values = RNG.normal(size=(5, 2, 3))
    values[:, 0, 0] = np.nan
    for side in ("left", "right"):
        found = pg.vmap(lambda a, v, side=side: pg.searchsorted(a, v, side))(edges, values)
        expected = [np.searchsorted(a, v, side) for a, v in zip(edges, values, strict=True)]
        np.testing.assert_array_equal(found, expected)


METHODS = [
    *("inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf"),
    *("hazen", "weibull", "linear", "median_unbiased", "normal_unbiased"),
    *("lower", "higher", "midpoint", "nearest"),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
def test_quantiles_are_numpys_by_every_method(method: str, axis: Any) -> None:
    for q in (0.0, 0.3, 0.5, 1.0, np.array([0.25, 0.9]), np.array([[0.1], [0.75]])):
        for keepdims in (False, True):
            numbers = q.tolist() if isinstance(q, np.ndarray) else q
            found = evaluate_one(
                lambda x, q=numbers, k=keepdims: pg.quantile(x, q, axis, method, keepdims=k), X
            )
            expected = np.quantile(X, q, axis=axis, method=method, keepdims=keepdims)
            same(found, np.asarray(expected), 1e-13)


@pytest.mark.parametrize("method", [*METHODS[3:9]])
def test_quantiles_that_are_computed_have_slopes(method: str) -> None:
    q = np.array([[0.31], [0.77]])
    found = evaluate_one(lambda x, q: pg.quantile(x, q, 1, method), X, q)
    same(found, np.quantile(X, q, 1, method=method), 1e-13)
    pg.check_grads(lambda x, q: pg.quantile(x, q, 1, method) ** 2, [X, q], order=2)


@pytest.mark.parametrize("method", [*METHODS[:3], *METHODS[9:]])
def test_quantiles_that_are_computed_by_steps(method: str) -> None:
    q = np.array([0.0, 0.25, 0.31, 0.5, 0.77, 1.0])
    found = evaluate_one(lambda x, q: pg.quantile(x, q, 1, method), X, q)
    same(found, np.quantile(X, q, 1, method=method), 1e-13)
    slope = pg.grad(lambda x, q: pg.sum(pg.quantile(x, q, 1, method)), argnums=1)(X, q[2:3])
    same(slope, np.zeros(1), 0.0)


@pytest.mark.parametrize("method", METHODS)
def test_arrays_of_quantiles_and_dtypes_are_numpys(method: str) -> None:
    for x in (X, X.astype(np.float32), np.arange(15, dtype=np.int8).reshape(3, 5)):
        for q in (30, 30.0, [30.0, 60.0], np.float32(30.0), np.array([10.0, 55.0])):
            expected = np.percentile(x, q, axis=1, method=method)  # type: ignore[call-overload]
            found = np.percentile(pg.tensor(x), q, axis=1, method=method)  # type: ignore[call-overload]
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, 1e-6)


def test_weighted_quantiles_of_what_is_not_nan() -> None:
    x = np.array([[1.0, np.nan, 4.0, 2.0], [3.0, 9.0, np.nan, 5.0]], np.float32)
    weights = np.array([[0.0, 1, 3, 2], [2, 1, 1, 3]])
    for q in (0.0, 0.3, [0.2, 0.9], 1.0):
        given: Any = {"axis": 1, "method": "inverted_cdf", "weights": weights}
        expected = np.nanquantile(x, q, **given)
        found = pg.nanquantile(x, q, **given)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
        parts = 100 * np.array(q)
        np.testing.assert_array_equal(pg.nanpercentile(x, parts, **given), expected)
    with pytest.raises(pg.ArgumentError, match="Only method 'inverted_cdf' supports weights"):
        pg.nanquantile(x, 0.5, 1, weights=weights)


@pytest.mark.parametrize("weights", [np.array([1.0, 0.0, 3.0]), np.array([[0.0, 1, 3], [2, 1, 1]])])
def test_weighted_quantiles_are_numpys(weights: Any) -> None:
    x = np.array([[1.0, 2.0, 4.0], [3.0, 9.0, 5.0]])
    for q in (0.0, 0.3, [0.2, 0.9], 1.0):
        for keepdims in (False, True):
            given: Any = {"axis": 1, "method": "inverted_cdf", "keepdims": keepdims}
            expected = np.quantile(x, q, weights=weights, **given)
            np.testing.assert_array_equal(pg.quantile(x, q, weights=weights, **given), expected)
    slope = pg.grad(lambda x: pg.sum(pg.quantile(x, 0.5, 1, "inverted_cdf", weights=weights)))(x)
    assert np.array_equal(np.sort(slope, 1), [[0.0, 0.0, 1.0]] * 2)
    with pytest.raises(pg.ArgumentError, match="Only method 'inverted_cdf' supports weights"):
        pg.quantile(x, 0.5, 1, weights=weights)
    with pytest.raises(pg.ShapeError, match="Shape of weights must be consistent"):
        pg.quantile(x, 0.5, 0, "inverted_cdf", weights=weights[..., :1])


def test_medians_and_percentiles_are_numpys() -> None:
    for x in (X, X.astype(np.float32), TIED, np.arange(12).reshape(3, 4)):
        for axis in (None, 0, 1):
            tolerance = 1e-6 if x.dtype == np.float32 else 1e-13
            with np.errstate(all="ignore"):
                middle, other = np.median(x, axis), np.percentile(x, 37.5, axis)
            found = evaluate_one(lambda x, axis=axis: pg.median(x, axis), x)
            same(found, np.asarray(middle), tolerance)
            found = evaluate_one(lambda x, axis=axis: pg.percentile(x, 37.5, axis), x)
            same(found, np.asarray(other), tolerance)


def test_the_largest_come_first_and_of_equal_ones_the_first() -> None:
    x = np.array([[1.0, 3.0, 3.0, 2.0], [0.0, 0.0, -1.0, 4.0]])
    values, indices = evaluate(lambda x: pg.top_k(x, 3), x)
    same(values, np.array([[3.0, 3.0, 2.0], [4.0, 0.0, 0.0]]))
    same(indices, np.array([[1, 2, 3], [3, 0, 1]]))
    result = pg.top_k(pg.tensor(x), 1, axis=0)
    assert result.values.numpy().tolist() == [[1.0, 3.0, 3.0, 4.0]]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int8])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_running_products_and_extrema_are_numpys(axis: Any, dtype: Any) -> None:
    tolerance = 1e-5 if dtype == np.float32 else 1e-13
    for array in (3 * X, np.zeros((0, 2)), np.zeros((2, 0))):
        x = array.astype(dtype)
        found = evaluate_one(lambda x: pg.cumprod(x, axis), x)
        same(found, np.cumprod(x, axis), tolerance)
        flat, along = (x.reshape(-1), 0) if axis is None else (x, axis)
        same(evaluate_one(lambda x: pg.cummax(x, axis), x), np.maximum.accumulate(flat, along))
        same(evaluate_one(lambda x: pg.cummin(x, axis), x), np.minimum.accumulate(flat, along))
        found = evaluate_one(lambda x: pg.cumulative_prod(x, axis=0, include_initial=True), x)
        same(found, np.cumulative_prod(x, axis=0, include_initial=True), tolerance)


def test_running_sums_of_exponentials_do_not_overflow() -> None:
    x = np.array([1000.0, -1000.0, 999.0, -np.inf, 1001.0, 3.0, 2.0])
    found = evaluate_one(pg.logcumsumexp, x)
    expected = [scipy.special.logsumexp(x[: i + 1]) for i in range(len(x))]
    same(found, np.array(expected), 1e-13)
    slope = np.asarray(pg.grad(lambda x: pg.logcumsumexp(x)[-1])(x))
    np.testing.assert_allclose(slope, scipy.special.softmax(x), rtol=1e-12)


SMOOTH = {
    "sort": lambda x: pg.sort(x, 0) ** 2,
    "flat": lambda x: pg.sort(x, None) ** 2,
    "partition": lambda x: pg.partition(x, 1) ** 3,
    "median": lambda x: pg.median(x, 1) ** 2,
    "quantile": lambda x: pg.quantile(x, [0.2, 0.7], 0) ** 2,
    "top_k": lambda x: pg.top_k(x, 2)[0] ** 2,
    "cumprod": lambda x: pg.cumprod(x, 1),
    "cummax": lambda x: pg.cummax(x, 1) ** 2,
    "cummin": lambda x: pg.cummin(x, 0) ** 2,
    "logcumsumexp": lambda x: pg.logcumsumexp(x, 1),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_slopes_in_both_modes_to_order_two(name: str) -> None:
    pg.check_grads(SMOOTH[name], [X], order=2)


def test_slopes_of_a_running_product_with_zeros() -> None:
    x = np.array([2.0, 0.0, 3.0, 0.0, 5.0])
    jacobian = np.asarray(pg.jacobian(lambda x: pg.cumprod(x), x))
    expected = [
        [np.prod(np.delete(x[: i + 1], j)) if j <= i else 0.0 for j in range(5)] for i in range(5)
    ]
    np.testing.assert_array_equal(jacobian, expected)
    pg.check_grads(lambda x: pg.cumprod(x), [x], order=3)


def test_slopes_at_ties_are_those_of_elements_in_their_order() -> None:
    x = np.array([1.0, 0.0, 1.0, 0.0])
    np.testing.assert_array_equal(pg.grad(lambda x: pg.sort(x)[0])(x), [0, 1, 0, 0])
    np.testing.assert_array_equal(pg.grad(lambda x: pg.sort(x)[-1])(x), [0, 0, 1, 0])
    np.testing.assert_array_equal(pg.grad(lambda x: pg.top_k(x, 1)[0][0])(x), [1, 0, 0, 0])
    np.testing.assert_array_equal(pg.grad(lambda x: pg.cummax(x)[-1])(x), [1, 0, 0, 0])
    np.testing.assert_array_equal(pg.grad(lambda x: pg.cummin(x)[-1])(x), [0, 1, 0, 0])
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    found = pg.grad(lambda x: pg.sum(pg.sort(x) * weights))(x)
    np.testing.assert_array_equal(found, [3, 1, 4, 2])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: pg.sort(x, 2), AxisError, "axis 2 is out of bounds"),
        (lambda x: pg.partition(x, 4), pg.ArgumentError, "no element 4 among 4"),
        (lambda x: pg.top_k(x, 5), pg.ArgumentError, "there are no 5 elements"),
        (lambda x: pg.searchsorted(x, 1.0), pg.ShapeError, "takes a vector"),
        (lambda x: pg.searchsorted(x[0], 1.0, "middle"), pg.ArgumentError, "'left' or 'right'"),
        (lambda x: pg.digitize(x, [0.0, 2.0, 1.0]), pg.ArgumentError, "in ascending or"),
        (lambda x: pg.lexsort([]), pg.ArgumentError, "at least one key"),
        (lambda x: pg.lexsort([x, x[0]]), pg.ShapeError, "keys of one shape"),
        (lambda x: pg.quantile(x, 1.5), pg.ArgumentError, "between 0 and 1"),
        (lambda x: pg.quantile(x, 0.5, method="best"), pg.ArgumentError, "takes no method"),
        (lambda x: pg.quantile(x, "low"), pg.ArgumentError, "numbers as q"),
        (lambda x: pg.median(x[:0]), pg.ShapeError, "over no elements"),
        (lambda x: pg.cumprod(x > 0, dtype=bool), pg.DTypeError, "cumprod does not take"),
    ],
)
def test_what_does_not_fit_is_told_with_the_line(call: Any, error: Any, message: str) -> None:
    with pg.Program(), pytest.raises(error, match=message) as caught:
        call(pg.data("x", (3, 4)))
    assert type(caught.value) is error


def test_arrays_of_unknown_size_are_sorted() -> None:
    n = pg.dim("n")
    kernel = pg.compile(pg.trace(lambda x: (pg.sort(x), pg.argsort(x)), pg.spec((n,))))
    slope = pg.compile(pg.trace(lambda x: pg.grad(pg.sum(pg.sort(x)[:1] ** 2), x), pg.spec((n,))))
    for size in (1, 5):
        x = RNG.normal(size=size)
        ordered, order = kernel(x)
        np.testing.assert_array_equal(ordered, np.sort(x))
        np.testing.assert_array_equal(order, np.argsort(x))
        expected = np.where(x == x.min(), 2 * x, 0.0)
        np.testing.assert_array_equal(slope(x), expected)
    graph = pg.trace(lambda x: pg.cumprod(x), pg.spec((n,)))
    np.testing.assert_array_equal(pg.compile(graph)(np.array([2.0, 3.0])), [2.0, 6.0])
    graph = pg.trace(lambda x: pg.grad(pg.sum(pg.cumprod(x)), x), pg.spec((n,)))
    slope = pg.compile(graph)
    for x in ([], [2.0], [2.0, 0.0, 3.0], [0.0, 5.0, 0.0], [1.0, -2.0, 3.0, 4.0]):
        parts = [
            [np.prod(np.delete(x[: j + 1], i)) for j in range(i, len(x))] for i in range(len(x))
        ]
        np.testing.assert_allclose(slope(np.array(x)), [sum(p) for p in parts], rtol=1e-15)
    with pytest.raises(pg.UnknownSizeError, match="number has to be known"):
        pg.trace(lambda x: pg.median(x), pg.spec((n,)))


NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    "x",
    [
        np.array([INF, INF, NAN]),
        np.array([-INF, INF, NAN, 1.0, NAN]),
        np.array([NAN, NAN]),
        np.array([[1.0, NAN, 4.0], [NAN, NAN, NAN], [5.0, 2.0, 1.0]], np.float32),
        np.array([[1 + 2j, complex(NAN, 1), 3], [complex(0, NAN), NAN, 2 - 1j]]),
    ],
)
def test_medians_of_infinities_nan_and_complex_numbers(x: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for function in (np.nanmedian, np.median, np.nancumprod, np.nancumsum):
            for axis in (None, 0, -1):
                expected: Any = function(x, axis=axis)
                found = np.asarray(function(pg.tensor(x), axis=axis))
                assert found.dtype == expected.dtype
                np.testing.assert_array_equal(found, expected)
    assert np.median(pg.tensor([3.0, 1.0]), overwrite_input=True).item() == 2.0
