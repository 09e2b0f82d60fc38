"""Elementwise functions that kernels compute by several of NumPy's, also at the ends of numbers."""

from __future__ import annotations

import numpy as np
import pytest
from plan_checks import SMALL, poisoned_results

import primgraph as pg
from primgraph.ir.interpret import interpret

DTYPES = (np.float64, np.float32, np.float16)
STYLES = ("planned", "readable")

# Errors of the terms of a sum, whose own rounding error is half a unit, in units of the result.
ULPS = 4.0


def numbers(dtype: type) -> np.ndarray:
    """Zeros, infinities, NaN, what overflows or vanishes, and random numbers of all sizes."""
    rng = np.random.default_rng(7)
    info = np.finfo(dtype)
    edges = [0.0, np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal, 1.0, 11, 12, 64, 65]
    grown = [np.log(float(info.max)), -np.log(float(info.smallest_subnormal)), 16.6, 36.7, 700.0]
    near = [x + d for x in grown for d in (-1.0, 0.0, 1.0)]
    sizes = 10.0 ** rng.uniform(-3, 3, 400)
    with np.errstate(over="ignore"):
        positive = np.array([*edges, *near, *sizes]).astype(dtype)
    return np.concatenate([positive, -positive])


def within(found: np.ndarray, exact: np.ndarray, largest: np.ndarray) -> None:
    """The same NaNs and infinities, and errors of a few units in the last place of `largest`."""
    dtype = found.dtype
    with np.errstate(all="ignore"):
        rounded = exact.astype(dtype)
        unit = np.spacing(np.abs(largest.astype(dtype)))
        finite = np.isfinite(rounded) & np.isfinite(found)
        np.testing.assert_array_equal(found[~finite], rounded[~finite])
        assert np.all(np.abs(found - exact)[finite] <= ULPS * unit[finite])


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_logistic_function_is_accurate_down_to_the_smallest_numbers(dtype, style):
    x = numbers(dtype)
    kernel = pg.compile(pg.trace(lambda x: pg.sigmoid(x), x), style=style)
    wide = x.astype(np.longdouble)
    with np.errstate(all="ignore"):
        small = np.exp(-np.abs(wide))
        exact = np.where(wide < 0, small, 1) / (1 + small)
    within(kernel(x), exact, exact)


def logaddexp(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The exact values, and the larger of the two terms by which they are computed.

    The second, an exponential, is as uncertain as the difference of `x` and `y`.
    """
    x, y = x.astype(np.longdouble), y.astype(np.longdouble)
    with np.errstate(all="ignore"):
        gap = np.where(x == y, 0, -np.abs(x - y))
        rest = np.log1p(np.exp(gap))
        uncertain = np.where(rest == 0, 0, rest * (1 - gap))
        return np.maximum(x, y) + rest, np.maximum(np.abs(np.maximum(x, y)), uncertain)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_logarithm_of_a_sum_of_exponentials_is_accurate(dtype, style):
    ends = numbers(dtype)
    x, y = (a.reshape(-1) for a in np.meshgrid(ends[::3], ends[::3]))
    kernel = pg.compile(pg.trace(lambda x, y: pg.logaddexp(x, y), x, y), style=style)
    within(kernel(x, y), *logaddexp(x, y))
    for number in (0.0, -0.0, 1.5, np.inf, -np.inf, np.nan):
        constant = np.full_like(ends, number)
        for order in (1, -1):
            kernel = pg.compile(
                pg.trace(lambda x, c=number, k=order: pg.logaddexp(*(x, c)[::k]), ends), style=style
            )
            within(kernel(ends), *logaddexp(ends, constant))


@pytest.mark.parametrize("shape", [(), (1,), (3, 4), (40, 50), (0, 3)])
def test_results_and_buffers_may_be_anywhere(shape):
    """In place, in a result, of a view, repeated, and in blocks."""

    def function(x, y):
        kept = pg.logaddexp(x, y)
        inner = pg.sigmoid(pg.logaddexp(x * 2, pg.sigmoid(y - x)) * 3)
        turned = pg.sigmoid(x.T) + pg.logaddexp(y.T, pg.sum(x))
        return kept, pg.sum(inner), inner * kept, turned, pg.logaddexp(kept, kept)

    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, *shape))
    graph = pg.trace(function, x, y)
    expected = interpret(pg.transforms.lower(graph), x, y)
    for found in (pg.compile(graph)(x, y), pg.compile(graph, style="readable")(x, y)):
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_allclose(other, one, 1e-13, 1e-14)


def test_blocks_and_memory_that_is_given_back():
    x, y = np.random.default_rng(0).standard_normal((2, 3001, 20))

    def function(x, y):
        z = pg.sigmoid(x) + pg.logaddexp(x, y) * pg.logaddexp(y, 0.0)
        return pg.sum(pg.sigmoid(z), axis=0), pg.sigmoid(z)

    graph = pg.transforms.clean_up(pg.transforms.lower(pg.trace(function, x, y)))
    for one, other in zip(
        interpret(graph, x, y), poisoned_results(graph, [x, y], SMALL), strict=True
    ):
        np.testing.assert_allclose(other, one, 1e-12, 1e-12)


INF = np.inf
# Positions, points and values with infinities among them.
INFINITE = [
    ([1.0, 2.5, INF, -INF, np.nan], [0.0, 1.0, 2.0, 3.0], [0.0, 1.0, INF, 3.0]),
    ([1.5, 0.5], [0.0, 1.0, INF], [1.0, 2.0, 3.0]),
    ([0.5, -1.0, INF], [-INF, 0.0, 1.0], [1.0, 2.0, 3.0]),
    ([0.5, 1.5, 2.5], [0.0, 1.0, 2.0, 3.0], [INF, INF, 1.0, -INF]),
    ([0.5, 2.0], [0.0, 1.0], [-INF, INF]),
]


@pytest.mark.parametrize("points", INFINITE)
def test_interp_of_infinite_points_and_values(points: tuple[list[float], ...]) -> None:
    arrays = [np.array(a) for a in points]
    with np.errstate(invalid="ignore"):
        wanted = np.interp(*arrays)
        np.testing.assert_array_equal(pg.interp(arrays[0], *arrays[1:]), wanted)
        np.testing.assert_array_equal(pg.jit(pg.interp)(*arrays), wanted)


def test_interp_has_the_slope_of_the_segment_where_all_is_finite() -> None:
    at, points, values = np.array([0.0, 0.5, 1.0]), np.arange(3.0), np.array([0.0, 1.0, 3.0])
    slopes = pg.grad(lambda x, p, v: pg.sum(pg.interp(x, p, v)), (0, 1, 2))(at, points, values)
    np.testing.assert_allclose(slopes[0], [1.0, 1.0, 2.0])
    np.testing.assert_allclose(slopes[2], [1.5, 1.5, 0.0])
