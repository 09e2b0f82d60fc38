"""Derivatives of special functions by parameters, and functions of complex numbers."""

from __future__ import annotations

import cmath
import math
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import primgraph as pg
from primgraph import special as sp

scipy_special = pytest.importorskip("scipy.special")


def exact(function: Callable[..., Any], at: tuple[float, ...], orders: tuple[int, ...]) -> float:
    with mpmath.workdps(40):
        given = tuple([mpmath.mpf(v) for v in at])
        return float(mpmath.diff(function, given, orders, h=mpmath.mpf(10) ** -10))


def scaled(function: Callable[..., Any], sign: int) -> Callable[..., Any]:
    return lambda v, x: function(v, x) * mpmath.exp(sign * x)


BESSEL: dict[str, Callable[..., Any]] = {
    "iv": mpmath.besseli,
    "ive": scaled(mpmath.besseli, -1),
    "jv": mpmath.besselj,
    "kv": mpmath.besselk,
    "kve": scaled(mpmath.besselk, 1),
    "yv": mpmath.bessely,
}
# Orders and arguments on all sides of where the formula changes.
PLACES = [(0.3, 0.01), (2.1, 1.5), (-1.3, 2.5), (0.0, 9.0), (3.1, 12.0), (-2.6, 30.0), (19.0, 20.5),
          (21.5, 20.0), (40.5, 21.0), (60.3, 4.0), (1.5, 400.0)]  # fmt: skip


@pytest.mark.parametrize("name", BESSEL)
def test_bessel_functions_by_their_order(name: str) -> None:
    v, x = np.array(PLACES).T
    function = getattr(sp, name)
    first = pg.grad(lambda v: pg.sum(function(v, x)))(v)
    second = pg.grad(lambda v: pg.sum(pg.grad(lambda v: pg.sum(function(v, x)))(v)))(v)
    mixed = pg.grad(lambda x: pg.sum(pg.grad(lambda v: pg.sum(function(v, x)))(v)))(x)
    # Functions of neighbouring orders may cancel.
    size = 1e-16 * np.abs(function(v, x).numpy())
    for all_found, orders, some in (
        (first, (1, 0), slice(None)),
        (second, (2, 0), slice(1, None, 4)),
        (mixed, (1, 1), slice(3, None, 4)),
    ):
        found = all_found[some]
        wanted = np.array([exact(BESSEL[name], place, orders) for place in PLACES[some]])
        slack = size[some] if orders == (1, 1) else 0.0
        assert np.all(np.abs(found - wanted) <= 2e-12 * np.abs(wanted) + slack), (orders, wanted)


@pytest.mark.dense
@pytest.mark.parametrize("name", BESSEL)
def test_bessel_functions_by_their_order_at_random_places(name: str) -> None:
    rng = np.random.default_rng(3)
    v = rng.choice([-1.0, 1.0, 1.0], 200) * 10.0 ** rng.uniform(-2.0, 2.0, 200)
    x = 10.0 ** rng.uniform(-4.0, 2.5, 200)
    v[:40] = np.round(v[:40])
    v[40:80] = x[40:80] + rng.uniform(-1.0, 1.0, 40) * np.cbrt(x[40:80])
    found = pg.grad(lambda v: pg.sum(getattr(sp, name)(v, x)))(v)
    wanted = np.array([exact(BESSEL[name], place, (1, 0)) for place in zip(v, x, strict=True)])
    inside = (np.abs(wanted) > 1e-290) & (np.abs(wanted) < 1e290)
    # Near a zero of the derivative only its size nearby is meant.
    slack = 1e-13 * np.abs(pg.grad(lambda x: pg.sum(getattr(sp, name)(v, x)))(x))
    allowed = 1e-11 * np.abs(wanted) + np.where(np.isfinite(slack), slack, 0.0)
    assert np.all(np.abs(found - wanted)[inside] <= allowed[inside])


def test_bessel_functions_by_their_order_beyond_the_positive_numbers() -> None:
    x = np.array([0.0, -1.0, np.inf, np.nan])
    for name in BESSEL:
        found = pg.grad(lambda v, n=name: pg.sum(getattr(sp, n)(v, x)))(np.full(4, 1.5))
        assert np.isnan(found[1:]).all()
        assert np.isnan(found[0]) if name[0] in "ky" else found[0] == 0.0


def parameters(count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.append(rng.uniform(-3.0, 4.0, (count, 8)), rng.uniform(0.3, 5.0, (1, 8)), axis=0)


HYPERGEOMETRIC = {
    "hyp1f1": (mpmath.hyp1f1, parameters(1, 1), [-1e4, -80.0, -12.0, -0.5, 0.0, 0.7, 12.0, 300.0]),
    "hyp2f1": (mpmath.hyp2f1, parameters(2, 2), [-1e5, -7.0, -0.9, 0.0, 0.3, 0.7, 0.97, 0.9999]),
}


@pytest.mark.parametrize("name", HYPERGEOMETRIC)
def test_hypergeometric_functions_by_all_operands(name: str) -> None:
    theirs, given, x = HYPERGEOMETRIC[name]
    operands = np.append(given, [x], axis=0)
    count = len(operands)
    hessian = pg.vmap(pg.hessian(lambda p: getattr(sp, name)(*[p[i] for i in range(count)])))
    gradient = pg.vmap(pg.grad(lambda p: getattr(sp, name)(*[p[i] for i in range(count)])))
    first, second = gradient(operands.T.copy()), hessian(operands.T.copy())
    for k in range(operands.shape[1]):
        at = tuple(operands[:, k].tolist())
        for i in range(count):
            orders = tuple([int(m == i) for m in range(count)])
            np.testing.assert_allclose(first[k, i], exact(theirs, at, orders), 1e-11)
        for i, j in ((0, 0), (0, count - 2), (count - 2, count - 2), (0, count - 1),
                     (count - 2, count - 1)):  # fmt: skip
            orders = tuple([(m == i) + (m == j) for m in range(count)])
            wanted = exact(theirs, at, orders)
            np.testing.assert_allclose(second[k, i, j], wanted, 1e-10, 1e-300, err_msg=f"{at}")


def test_hypergeometric_functions_of_parameters_that_end_the_series() -> None:
    mixed = pg.grad(lambda x: pg.grad(lambda a: sp.hyp2f1(a, 1.0, 2.0, x))(0.0))(0.5)
    np.testing.assert_allclose(mixed, exact(mpmath.hyp2f1, (0.0, 1.0, 2.0, 0.5), (1, 0, 0, 1)))
    slope = pg.grad(lambda a: sp.hyp2f1(a, 1.5, 2.5, 0.9))(-2.0)
    np.testing.assert_allclose(slope, exact(mpmath.hyp2f1, (-2.0, 1.5, 2.5, 0.9), (1, 0, 0, 0)))
    # The Laguerre polynomial of degree two.
    np.testing.assert_allclose(sp.hyp1f1(-2.0, 1.0, 3.0).numpy(), 1.0 - 6.0 + 4.5)
    assert np.isnan(pg.grad(lambda c: sp.hyp2f1(0.5, 1.5, c, 0.3))(-1.0))
    assert np.isnan(pg.grad(lambda a: sp.hyp2f1(a, 1.5, 2.5, 1.5))(0.5))


def test_series_that_end_before_a_pole_have_derivatives_there() -> None:
    def finite(above: tuple[float, ...], z: float) -> Any:
        """The derivative at -5 of a polynomial in z of degree 3, by the lower parameter."""
        rise = mpmath.rf
        return mpmath.diff(lambda c: sum(
            math.prod(rise(p, k) for p in above) / rise(c, k) * mpmath.mpf(z) ** k / rise(1, k)
            for k in range(4)), -5)  # fmt: skip

    for z in (1.0, -1.7, 30.0):
        found = pg.grad(lambda b: sp.hyp1f1(-3.0, b, z))(-5.0)  # noqa: B023
        np.testing.assert_allclose(found, float(finite((-3.0,), z)), 1e-13)
    for above in ((-3.0, 2.0), (2.0, -3.0)):
        found = pg.grad(lambda c: sp.hyp2f1(*above, c, 0.7))(-5.0)  # noqa: B023
        np.testing.assert_allclose(found, float(finite(above, 0.7)), 1e-13)
    for a in (-5.0, -6.0, 0.5):
        assert np.isnan(pg.grad(lambda b: sp.hyp1f1(a, b, 1.0))(-5.0))  # noqa: B023
    assert np.isnan(pg.grad(lambda a: sp.hyp1f1(a, -5.0, 1.0))(-3.0))


def test_zeta_functions_by_the_exponent() -> None:
    s, q = np.array([1.001, 1.5, 3.0, 30.0]), np.array([0.3, 1.0, 2.5, 7.0])
    places = list(zip(s.tolist(), q.tolist(), strict=True))
    first = pg.grad(lambda s: pg.sum(sp.zeta(s, q)))
    mixed = pg.grad(lambda q: pg.sum(pg.grad(lambda s: pg.sum(sp.zeta(s, q)))(s)))(q)
    second = pg.grad(lambda s: pg.sum(first(s)))(s)
    for found, order in ((first(s), 1), (second, 2)):
        wanted = [exact(lambda s, p=p: mpmath.zeta(s, p[1]), p[:1], (order,)) for p in places]
        np.testing.assert_allclose(found, wanted, 1e-13)
    # The derivative by the second operand is -s zeta(s + 1, q).
    wanted = [exact(lambda s, p=p: -s * mpmath.zeta(s + 1, p[1]), p[:1], (1,)) for p in places]
    np.testing.assert_allclose(mixed, wanted, 1e-13)
    assert np.isnan(first(np.full(4, 0.5))).all()


@pytest.mark.parametrize("name", ["jv", "yv", "iv", "kv", "ive", "kve"])
def test_bessel_functions_along_curves_of_order_and_argument(name: str) -> None:
    scales = {"ive": lambda x: mpmath.exp(-x), "kve": mpmath.exp}
    plain = {"jv": mpmath.besselj, "yv": mpmath.bessely, "iv": mpmath.besseli, "kv": mpmath.besselk}
    bends = (0.3, -0.2, 0.5, 0.1)

    def curve(t: Any, start: float, slope: float) -> Any:
        return start + slope * t + sum(
            c * t ** (k + 2) / math.factorial(k + 2) for k, c in enumerate(bends)
        )  # fmt: skip

    def exactly(t: Any) -> Any:
        v, x = curve(t, mpmath.mpf(1.25), 1), curve(t, mpmath.mpf(2), 0.75)
        return plain[name.removesuffix("e")](v, x) * scales.get(name, lambda x: 1)(x)

    series = ((1.0, *bends), (0.75, *bends))
    _, found = pg.jet(getattr(sp, name), (1.25, 2.0), series)
    with mpmath.workdps(40):
        wanted = [float(mpmath.diff(exactly, 0, k)) for k in range(1, 6)]
    np.testing.assert_allclose(np.stack(found), wanted, 1e-11)
    # Those without a pole or a kink at 0 have series there.
    if name in ("jv", "iv"):
        _, at_zero = pg.jet(lambda x: getattr(sp, name)(1.0, x), 0.0, (1.0, 0.0, 0.0, 0.0))
        wanted = [0.5, 0.0, 0.375 if name == "iv" else -0.375, 0.0]
        np.testing.assert_allclose(np.stack(at_zero), wanted, 1e-15, 1e-15)


def test_derivatives_by_parameters_on_c_in_files_and_of_high_order(tmp_path: Path) -> None:
    def slope(v: Any, x: Any) -> Any:
        return pg.grad(pg.sum(sp.jv(v, x) + sp.hyp1f1(v, 1.5, x) + sp.zeta(v + 1.0, x)), v)

    v, x = np.array([0.5, 2.0]), np.array([1.0, 14.0])
    graph = pg.trace(slope, pg.spec(2), pg.spec(2))
    wanted = pg.compile(graph)(v, x)
    np.testing.assert_allclose(pg.compile(graph, target="c")(v, x), wanted, 1e-15)
    pg.compile(graph).save(tmp_path / "slope.py")
    found = runpy.run_path(str(tmp_path / "slope.py"))["slope"](v, x)
    np.testing.assert_array_equal(found, wanted)
    _, series = pg.jet(lambda v: sp.jv(v, 2.0), (1.5,), ((1.0, 0.0, 0.0, 0.0, 0.0),))
    wanted = [exact(mpmath.besselj, (1.5, 2.0), (k, 0)) for k in range(1, 6)]
    np.testing.assert_allclose(np.stack(series), wanted, 1e-11)


COMPLEX = ("dawsn", "erf", "erfc", "erfcx", "erfi", "exp1", "expi", "wofz")


@pytest.mark.parametrize("name", COMPLEX)
def test_error_functions_of_complex_numbers(name: str) -> None:
    function, theirs = getattr(sp, name), getattr(scipy_special, name)
    z = np.array([0.3 + 0.2j, -1.0 - 2.0j, 5.0 + 0.1j, 0.4j])
    np.testing.assert_array_equal(function(pg.tensor(z)).numpy(), theirs(z))
    single = function(pg.tensor(z.astype(np.complex64)))
    assert single.dtype == np.complex64
    np.testing.assert_allclose(single.numpy(), theirs(z), 1e-6)
    # The derivative along the circle exp(i t), by its Fourier coefficients.
    turn = np.exp(2j * np.pi * np.arange(64) / 64)
    for order in (1, 2):
        wanted = [np.mean(theirs(c + 0.15 * turn) / turn**order) / 0.15**order for c in z]
        path = function if order == 1 else lambda t: pg.jvp(function, t, np.ones(4) + 0j)[1]
        found = pg.jvp(path, z, np.ones(4) + 0j)[1]
        np.testing.assert_allclose(found, math.factorial(order) * np.array(wanted), 1e-10, 1e-14)
    pg.check_grads(lambda x: pg.real(function(x * (0.3 + 0.4j))), [np.array([0.5, 1.2])], order=2)


def test_wofz_of_real_numbers_is_complex() -> None:
    x = np.array([0.5, -2.0])
    np.testing.assert_array_equal(sp.wofz(pg.tensor(x)).numpy(), scipy_special.wofz(x))
    assert sp.wofz(pg.tensor(x.astype(np.float32))).dtype == np.complex64


def test_the_sigmoid_of_complex_numbers_does_not_overflow() -> None:
    z = np.array([0.3 + 0.2j, -1.0 - 2.0j, 800.0 + 1.0j, -800.0 + 1.0j])
    wanted = [1.0 / (1.0 + cmath.exp(-w)) for w in z[:2]] + [1.0, 0.0]
    np.testing.assert_allclose(pg.sigmoid(pg.tensor(z)).numpy(), wanted, 1e-14)
