"""Integrals: beside SciPy's, with their derivatives and errors."""

import numpy as np
import pytest

import primgraph as pg

integrate = pytest.importorskip("scipy.integrate")

INTEGRALS = {
    "bell": (lambda x, m: m.exp(-x * x), -np.inf, np.inf),
    "half-line": (lambda x, m: x * m.exp(-x), 0.5, np.inf),
    "lower half-line": (lambda x, m: m.exp(x), -np.inf, 0.3),
    "reversed": (lambda x, m: m.exp(-x), np.inf, 0.0),
    "reversed, lower": (lambda x, m: m.exp(x), 0.0, -np.inf),
    "root": (lambda x, m: m.sqrt(x), 0.0, 1.0),
    "pole": (lambda x, m: 1.0 / m.sqrt(x), 0.0, 1.0),
    "logarithm": (lambda x, m: m.log(x), 0.0, 1.0),
    "waves": (lambda x, m: m.sin(50.0 * x), 0.0, 3.0),
    "peak": (lambda x, m: 1.0 / (1e-4 + x * x), -1.0, 1.0),
    "kink": (lambda x, m: m.abs(x - 0.3), 0.0, 1.0),
    "backward": (lambda x, m: x**2, 2.0, -1.0),
    "nothing": (lambda x, m: x, 1.0, 1.0),
    "constant": (lambda x, m: 1.0, 0.0, 2.0),
}


@pytest.mark.parametrize("name", INTEGRALS)
def test_integrals_are_scipys(name):
    f, a, b = INTEGRALS[name]
    found, (converged, trips) = pg.solvers.quad(lambda x: f(x, pg), a, b, full_output=True)
    assert converged
    assert trips >= 1
    np.testing.assert_allclose(found, integrate.quad(lambda x: f(x, np), a, b)[0], atol=3e-8)


def test_what_has_no_integral_is_not_found():
    assert np.isnan(pg.solvers.quad(lambda x: 1.0 / x, 0.0, 1.0))
    assert np.isnan(pg.solvers.quad(lambda x: x * np.nan, 0.0, 1.0))
    _, (converged, trips) = pg.solvers.quad(pg.log, 0.0, 1.0, limit=5, full_output=True)
    assert not converged
    assert trips == 5


def test_derivatives_by_ends_and_parameters(native_cache):
    def f(p):
        return pg.solvers.quad(
            lambda x: pg.exp(-p[0] * x * x) * pg.cos(p[1] * x), p[2], np.inf, rtol=1e-12
        )

    def theirs(p):
        return integrate.quad(
            lambda x: np.exp(-p[0] * x * x) * np.cos(p[1] * x), p[2], np.inf,
            epsabs=1e-13, epsrel=1e-13,
        )[0]  # fmt: skip

    p = np.array([1.0, 2.0, 0.5])
    expected = [(theirs(p + 1e-4 * e) - theirs(p - 1e-4 * e)) / 2e-4 for e in np.eye(3)]
    for target in ("numpy", "c"):
        np.testing.assert_allclose(pg.jit(pg.grad(f), target=target)(p), expected, atol=1e-7)
    to = lambda a: pg.solvers.quad(lambda x: x**2, 0.0, a)  # noqa: E731
    np.testing.assert_allclose([pg.grad(to)(2.0), pg.grad(pg.grad(to))(2.0)], [4.0, 4.0])
    np.testing.assert_allclose(pg.grad(lambda a: pg.solvers.quad(pg.exp, a, 3.0))(3.0), -np.exp(3))


def test_batches_find_their_own_intervals():
    widths = np.array([1.0, 1e-2, 1e-4])
    solve = pg.vmap(lambda w: pg.solvers.quad(lambda x: w / (w * w + x * x), -1.0, 1.0))
    np.testing.assert_allclose(pg.jit(solve)(widths), 2.0 * np.arctan(1.0 / widths), rtol=1e-7)


def test_tolerances_and_infinite_ends_of_any_dtype():
    def wave(x):
        return x * pg.sin(10.0 * x)

    found = pg.solvers.quad(wave, np.float32(0.0), np.float32(7.0))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, pg.solvers.quad(wave, 0.0, 7.0), rtol=1e-3)
    for infinite in (np.float32(np.inf), np.array(np.inf)):
        whole = pg.solvers.quad(lambda x: pg.exp(-x * x), -infinite, infinite)
        np.testing.assert_allclose(whole, np.sqrt(np.pi), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s(lambda x: pg.stack([x, x]), 0.0, 1.0), pg.ShapeError, "f returns a number"),
        (lambda s: s(3, 0.0, 1.0), pg.ArgumentError, "f is a function"),
        (lambda s: s(pg.exp, np.ones(2), 1.0), pg.ShapeError, "a and b are numbers"),
        (lambda s: s(pg.exp, 0.0, 1.0, limit=0), pg.ArgumentError, "limit is"),
        (lambda s: s(pg.exp, 0.0, 1.0, atol=-1.0), pg.ArgumentError, "tolerances are"),
    ],
)
def test_wrong_arguments_are_told(call, error, message):
    with pytest.raises(error, match=message):
        call(pg.solvers.quad)
