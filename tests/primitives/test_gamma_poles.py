"""Values and slopes of quotients of gamma functions at poles, where these are finite."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import primgraph as pg
from primgraph import special as sp

STYLES = ("planned", "readable", "native")
Orders = tuple[int, int]


def derivatives(
    function: Callable[..., Any], points: Sequence[tuple[float, float]], style: str, *asked: Orders
) -> list[list[np.ndarray]]:
    """Derivatives of these orders by both operands, each by reverse and by forward mode."""

    def slopes(*xs: Any) -> list[Any]:
        found = []
        for orders in asked:
            for mode in (pg.grad, pg.forward_grad):
                y, moved = (
                    function(*xs),
                    [x for x, n in zip(xs, orders, strict=True) for _ in range(n)],
                )
                for i, x in enumerate(moved):
                    last = i == len(moved) - 1
                    y = mode(y, x) if mode is pg.forward_grad and last else pg.grad(pg.sum(y), x)
                found.append(y)
        return found

    at = np.transpose(points)
    kernel = pg.compile(pg.trace(slopes, *[pg.spec(x.shape) for x in at]), style=style)
    flat = [np.asarray(v) for v in kernel(*at)]
    return [flat[2 * i : 2 * i + 2] for i in range(len(asked))]


def by_mpmath(
    function: Callable[..., Any], points: Sequence[tuple[float, float]], orders: Orders
) -> list[float]:
    with mpmath.workdps(40):
        return [float(mpmath.diff(function, at, orders)) for at in points]


@pytest.mark.parametrize("style", STYLES)
def test_poch_is_a_polynomial_of_its_first_operand(style: str) -> None:
    points = [
        (start, float(steps))
        for start in (0.0, -1.0, -2.0, -4.0, 0.3, -2.5)
        for steps in (0, 1, 2, 3, 5)
    ]
    found = derivatives(sp.poch, points, style, (0, 0), (1, 0), (2, 0))
    for order, arrays in enumerate(found):
        known = [
            np.poly1d(np.poly(-np.arange(steps))).deriv(order)(start) for start, steps in points
        ]
        for array in arrays:
            np.testing.assert_allclose(array, known, 1e-11, 1e-11)


SECOND: tuple[Orders, ...] = ((2, 0), (1, 1), (0, 2))


@pytest.mark.parametrize("style", STYLES)
def test_beta_is_smooth_where_its_denominator_has_a_pole(style: str) -> None:
    """Its derivative is that of `1 / gamma(x)`, `(-1)**n * n!`, times the numerator."""
    points, known = [], []
    for a in (0.5, 1.5, -0.5, -1.5, 2.25):
        for n in range(4):
            points.append((a, -n - a))
            known.append(math.gamma(a) * math.gamma(-n - a) * (-1) ** n * math.factorial(n))
    value, *first = derivatives(sp.beta, points, style, (0, 0), (1, 0), (0, 1))
    np.testing.assert_array_equal(value[0], 0.0)
    for arrays in first:
        for array in arrays:
            np.testing.assert_allclose(array, known, 1e-13)
    near = [(0.5, -2.5 + 1e-9), (0.5, -2.5 - 1e-6), (-1.5, 0.5 + 1e-13)]

    def exact(x: Any, y: Any) -> Any:
        return mpmath.gamma(x) * mpmath.gamma(y) * mpmath.rgamma(x + y)

    for orders, arrays in zip(
        SECOND, derivatives(sp.beta, [*points, *near], style, *SECOND), strict=True
    ):
        expected = by_mpmath(exact, [*points, *near], orders)
        for array in arrays:
            np.testing.assert_allclose(array, expected, 1e-11, 1e-11)


@pytest.mark.parametrize("style", STYLES)
def test_beta_and_its_logarithm_where_poles_cancel(style: str) -> None:
    """`gamma(m) / (a * (a + 1) * ... * (a + m - 1))`, whose logarithm has a simple slope."""
    points = [(-3.0, 2.0), (-1.0, 1.0), (-4.0, 4.0), (-7.0, 3.0)]
    factors = [a + np.arange(m) for a, m in points]
    value = np.array([math.gamma(f.size) / np.prod(f) for f in factors])
    slope = np.array([-np.sum(1 / f) for f in factors])
    second = np.array([np.sum(f**-2) for f in factors])
    found = derivatives(sp.betaln, points, style, (0, 0), (1, 0), (2, 0))
    for arrays, known in zip(found, (np.log(np.abs(value)), slope, second), strict=True):
        for array in arrays:
            np.testing.assert_allclose(array, known, 1e-13, 1e-15)
    turned = [(m, a) for a, m in points]
    plain = (value, value * slope, value * (slope**2 + second))
    for at, asked in ((points, ((0, 0), (1, 0), (2, 0))), (turned, ((0, 0), (0, 1), (0, 2)))):
        for arrays, known in zip(derivatives(sp.beta, at, style, *asked), plain, strict=True):
            for array in arrays:
                np.testing.assert_allclose(array, known, 1e-12)


@pytest.mark.parametrize("style", STYLES)
def test_quotients_of_large_numbers_keep_their_digits(style: str) -> None:
    points = [(1000.5, -0.5), (1e10, -10.5), (-2.25, 1000.5), (5000.0, -4990.25), (200.5, -190.75),
              (1e10, -0.5), (1e5, 2.0), (300.5, 10.25), (-0.5, 0.25)]  # fmt: skip
    with mpmath.workdps(40):
        sizes = [mpmath.gammaprod([a, b], [a + b]) for a, b in points]
        beta = [float(z) for z in sizes]
        betaln = [float(mpmath.log(abs(z))) for z in sizes]
        poch = [float(mpmath.gammaprod([a + b], [a])) for a, b in points]
    for function, known in ((sp.beta, beta), (sp.betaln, betaln), (sp.poch, poch)):
        for array in derivatives(function, points, style, (0, 0))[0]:
            np.testing.assert_allclose(array, known, 1e-10 if function is sp.beta else 1e-12)
    # A pole of the denominator alone, though the sum is rounded to a whole number.
    assert float(sp.poch(-1e10, -1e-10)) == 0.0
    assert float(sp.poch(-1e10, -3.0)) == pytest.approx(-9.99999999400000e-31, rel=1e-12)


@pytest.mark.parametrize("style", STYLES)
def test_binom_is_smooth_where_it_is_zero(style: str) -> None:
    """And so where its first operand is below zero and no whole number."""
    points = [(float(n), float(k)) for n in (0, 1, 2, 5) for k in (n + 1, n + 3, -1, -2)]
    known = []
    for n, k in ((int(n), int(k)) for n, k in points):
        j = max(k, n - k)
        size = math.factorial(n) * math.factorial(j - n - 1) / math.factorial(j)
        known.append((-1) ** (j - n) * size * (1 if k > n else -1))
    value, by_n, by_k = derivatives(sp.binom, points, style, (0, 0), (1, 0), (0, 1))
    np.testing.assert_array_equal(value[0], 0.0)
    for array in by_k:
        np.testing.assert_allclose(array, known, 1e-13)
    for array in by_n:
        expected = [-v if k > n else 0.0 for v, (n, k) in zip(known, points, strict=True)]
        np.testing.assert_allclose(array, expected, 1e-13, 1e-15)

    def exact(n: Any, k: Any) -> Any:
        return mpmath.gamma(n + 1) * mpmath.rgamma(k + 1) * mpmath.rgamma(n - k + 1)

    points += [(0.5, 1.5), (-1.5, -1.0), (-1.5, 0.5), (-2.5, -1.5), (3.0, 1.0), (0.0, 0.0)]
    points = [points[i] for i in (1, 3, 4, 6)] + points[-6:]
    for orders, arrays in zip(SECOND, derivatives(sp.binom, points, style, *SECOND), strict=True):
        expected = by_mpmath(exact, points, orders)
        for array in arrays:
            np.testing.assert_allclose(array, expected, 1e-10, 1e-11)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("style", STYLES)
def test_values_at_poles_are_those_of_scipy(style: str, dtype: str) -> None:
    numbers = np.array([0.0, -1.0, -2.0, -5.0, 1.0, 2.0, 3.0, 0.5, -0.5, -1.5, -2.5], dtype)
    a, b = (v.ravel() for v in np.meshgrid(numbers, numbers))
    names = ("poch", "beta", "betaln", "binom")
    graph = pg.trace(
        lambda *xs: [getattr(sp, name)(*xs) for name in names], *[pg.spec(a.shape, dtype)] * 2
    )
    rtol = 1e-13 if dtype == "float64" else 1e-5
    for name, found in zip(names, pg.compile(graph, style=style)(a, b), strict=True):
        expected = getattr(scipy.special, name)(a, b)
        finite = np.isfinite(expected)
        np.testing.assert_allclose(found[finite], expected[finite], rtol, rtol, err_msg=name)
        if name in ("poch", "binom"):
            np.testing.assert_array_equal(np.isnan(found), np.isnan(expected), name)


def test_there_is_no_slope_across_poles() -> None:
    """In these directions the function is another one at each side of a single point."""
    cases: list[tuple[Callable[..., Any], tuple[float, float], Orders]] = [
        (sp.poch, (-2.0, 1.0), (0, 1)),
        (sp.poch, (-1.0, 0.0), (0, 1)),
        (sp.beta, (-3.0, 2.0), (0, 1)),
        (sp.betaln, (-3.0, 2.0), (0, 1)),
        (sp.binom, (-2.0, 1.0), (1, 0)),
    ]
    for function, at, orders in cases:
        assert not np.isfinite(derivatives(function, [at], "planned", orders)).any()


def test_far_from_zero_slopes_do_not_overflow() -> None:
    for found in derivatives(sp.poch, [(-200.5, 1.0), (-200.0, 1.0)], "planned", (1, 0))[0]:
        np.testing.assert_allclose(found, 1.0, 1e-9)
    for found in derivatives(sp.binom, [(100.0, 101.0)], "planned", (0, 1))[0]:
        np.testing.assert_allclose(found, -1.0 / 101.0, 1e-12)
