"""Functions that were written for NumPy, traced as they are: their names, their assignments."""

from __future__ import annotations

import functools
import math
from math import exp
from typing import Any

import numpy as np
import numpy.linalg as la
import pytest
from numpy import cos, sin

import primgraph as pg
import primgraph.numpy as pnp

X = np.array([0.3, 0.6, 0.9])
SCALE = 2.0
COUNT = 0


def rosen(x: Any) -> Any:
    x = np.asarray(x)
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0, axis=0)


def turned(angle: Any) -> Any:
    c, s = cos(angle), sin(angle)
    return np.array([[c, -s], [s, c]])


def arm(q: Any) -> Any:
    """Where an arm with three joints ends."""
    at, frame = np.zeros(2), np.eye(2)
    for angle in q:
        frame = frame @ turned(angle)
        at = at + frame @ np.array([1.0, 0.0])
    return at


def stepped(x: Any) -> Any:
    y = np.zeros_like(x)
    y[1:-1] = x[2:] - x[:-2]
    y += 1
    y[0], y[-1] = x[0], math.sqrt(x[1])
    return y


def black_scholes(x: Any) -> Any:
    spot, strike, spread = x
    d1 = (np.log(spot / strike) + 0.5 * spread**2) / spread
    return spot * logistic(d1) - strike * exp(-0.1) * logistic(d1 - spread)


def logistic(x: Any) -> Any:
    return 1.0 / (1.0 + math.exp(-x))


def likelihood(x: Any) -> Any:
    apart = np.subtract.outer(x, x)
    k = np.exp(-0.5 * apart**2 / SCALE) + 0.1 * np.eye(len(x))
    factor = la.cholesky(k)
    return np.sum(np.linalg.solve(factor, x) ** 2) + np.linalg.slogdet(k)[1]


def filled(x: Any) -> Any:
    m = np.zeros((3, 3))
    for i in range(3):
        for j in range(i + 1):
            m[i, j] = x[i] * x[j]
    np.fill_diagonal(m, 1.0)
    m[m > 0.5] = -1.0
    m[[0, 2], 1] = x[:2]
    m *= 2
    np.add.at(m, [0, 0], x)
    np.multiply(m, x, out=m)
    np.put_along_axis(m, np.array([[1], [0], [2]]), 7.0, 1)
    np.copyto(m, 3.0, where=np.eye(3) > 0)
    return m


def views(x: Any) -> Any:
    y = np.zeros((2, 3))
    row, turned = y[0], y.T
    y[0, 1] = x[0]
    y[1] = x
    once = row * 2
    y -= 1
    x[0] = 7.0
    return once, turned.sum(0), row, x, y.copy()


def scaled(x: Any) -> Any:
    return np.sum(x) * SCALE


def counted(x: Any) -> Any:
    global COUNT
    COUNT += 1
    return np.sum(x)


def factorial(x: Any, n: int) -> Any:
    return np.ones(3) if n == 0 else factorial(x, n - 1) * np.sqrt(x)


def decorated(function: Any) -> Any:
    @functools.wraps(function)
    def call(*args: Any) -> Any:
        return function(*args) + 1.0

    return call


@decorated
def wrapped(x: Any) -> Any:
    return np.array([x[0], x[1] * 2.0])


class Model:
    rate = 0.5

    def value(self, x: Any) -> Any:
        return np.stack([self.rate * x[0], np.hypot(x[1], x[2])])


def closed() -> Any:
    long = np.hypot

    def inner(x: Any) -> Any:
        def deepest(y: Any) -> Any:
            return np.array([long(y[0], y[1]), SCALE])

        return deepest(x)

    return inner


CASES = {
    "rosen": rosen,
    "arm": arm,
    "stepped": stepped,
    "black_scholes": black_scholes,
    "likelihood": likelihood,
    "filled": filled,
    "views": views,
    "recursive": lambda x: factorial(x, 3),
    "wrapped": wrapped,
    "method": Model().value,
    "closed": closed(),
    "partial": functools.partial(factorial, n=2),
}


def listed(found: Any) -> list[Any]:
    return list(found) if isinstance(found, list | tuple) else [found]


@pytest.mark.parametrize("name", CASES)
def test_a_function_of_numpy_is_traced_as_it_is(name: str) -> None:
    function = CASES[name]
    expected = listed(function(X.copy()))
    for found in (pg.compile(pg.trace(function, pg.spec(3)))(X), pg.jit(function)(X)):
        for one, other in zip(listed(found), expected, strict=True):
            np.testing.assert_allclose(one, other, 1e-13)


SMOOTH = ("rosen", "arm", "stepped", "black_scholes", "likelihood", "views", "recursive")


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_go_through_what_was_assigned(name: str) -> None:
    function = CASES[name]

    def summed(x: Any) -> Any:
        return sum(np.sum(np.sin(v)) for v in listed(function(x)))

    pg.check_grads(pg.trace(summed, pg.spec(3)), [X], order=2)


def test_originals_are_left_alone() -> None:
    before = rosen.__globals__["np"], closed.__code__
    pg.trace(rosen, pg.spec(3))
    assert (rosen.__globals__["np"], closed.__code__) == before
    with pytest.raises(TypeError, match="no elements before the compiled function runs"):
        pg.trace(rosen, pg.spec(3), rebind=False)
    with pytest.raises(TypeError, match="no elements before the compiled function runs"):
        pg.jit(rosen, rebind=False)(X)


def test_what_mentions_nothing_of_numpys_may_change_arrays() -> None:
    def plain(x: Any) -> Any:
        x[0] = 1.0
        return x

    np.testing.assert_array_equal(pg.compile(pg.trace(plain, pg.spec(3)))(X), [1.0, *X[1:]])


def test_other_globals_are_those_of_the_original(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(scaled.__globals__, "SCALE", 5.0)
    assert pg.compile(pg.trace(scaled, pg.spec(3)))(np.ones(3)) == 15.0


def test_functions_that_assign_to_globals_are_called_themselves() -> None:
    before = COUNT
    pg.trace(counted, pg.spec(3))
    assert before + 1 == COUNT


def test_a_variable_index_may_be_assigned_to() -> None:
    def placed(x: Any, i: Any) -> Any:
        y = np.ones(3)
        y[i] = x[0]
        z = np.zeros((3, 2))
        z[i, 1] = x[1]
        z[-1] = y[:2]
        return y, z

    for i in (0, 1, -2):
        found, expected = pg.jit(placed)(X, np.array(i)), placed(X, i)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other)


def through_a_view(x: Any) -> Any:
    y = np.zeros((2, 3))
    row = y[0]
    row[1] = x[0]
    return np.sum(y)


def test_views_write_through() -> None:
    np.testing.assert_array_equal(pg.jit(through_a_view)(X), through_a_view(X))

    def alone(x: Any) -> Any:
        x = np.reshape(x, (1, 3))
        x[0, 1] = 4.0
        return x

    assert pg.jit(alone)(X).tolist() == [[0.3, 4.0, 0.9]]


def test_what_an_array_cannot_hold_is_refused() -> None:
    def longer(x: Any) -> Any:
        y = np.zeros(3)
        y += np.ones((2, 3)) * x
        return y

    def fractions(x: Any) -> Any:
        y = np.round(x).astype(int)
        y += 0.5
        return y

    with pytest.raises(pg.ShapeError, match="cannot be changed in place"):
        pg.trace(longer, pg.spec(3))
    with pytest.raises(pg.DTypeError, match="cannot hold"):
        pg.trace(fractions, pg.spec(3))


def test_arrays_of_the_drop_in_may_be_filled_in_a_program() -> None:
    with pg.Program() as program:
        v = pg.data("v", (3,))
        y = pnp.zeros((2, 3))
        y[1] = v
        y[:, 0] = [v[1], 5.0]
    found = pg.Executor().run(program, {"v": X}, [y])[0]
    np.testing.assert_array_equal(found, [[0.6, 0, 0], [5.0, 0.6, 0.9]])


def test_arrays_of_numbers_stay_numpys_where_nothing_is_changed_in_place():
    def function(x):
        mask = np.zeros(3, bool)
        return x if np.any(mask) else 2.0 * x + np.asarray(np.ones(3)).tolist()

    kernel = pg.compile(pg.trace(function, pg.spec(3)))
    assert kernel(np.arange(3.0)).tolist() == [1.0, 3.0, 5.0]


def _heat(u, steps):
    n = u.shape[0]
    x, new = np.linspace(0.0, 1.0, n), np.zeros(n)
    for _ in range(steps):
        new[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u = new + x * np.ones(n) / math.sqrt(n)
    return np.sum(u) / np.sqrt(n) + np.arange(n) @ u + np.sum(np.eye(n) @ np.full((n, 2), 0.5))


def test_functions_of_numpy_are_for_all_sizes() -> None:
    """Extents with names go where NumPy takes numbers of elements, and into its functions."""
    graph = pg.trace(functools.partial(_heat, steps=3), pg.spec(("N",)))
    assert graph.sizes == ("N",)
    kernel = pg.compile(graph)
    for n in (2, 3, 8, 13):
        u = np.random.default_rng(n).normal(size=n)
        np.testing.assert_allclose(kernel(u), _heat(u, 3), rtol=1e-13)


@pytest.mark.parametrize("endpoint", [True, False])
def test_points_of_as_many_as_there_are_have_the_bits_of_numpys(endpoint: bool) -> None:
    def spaced(x, a, b):
        known = pg.linspace(0.3, 1.7, x.shape[0], endpoint)
        return known, pg.linspace(a, b, x.shape[0], endpoint)

    kernel = pg.compile(pg.trace(spaced, pg.spec(("N",)), 1.0, 1.0))
    for n in (0, 1, 2, 3, 50, 101):
        found = kernel(np.ones(n), -3.0, 1e-3)
        for mine, (a, b) in zip(found, [(0.3, 1.7), (-3.0, 1e-3)], strict=True):
            np.testing.assert_array_equal(mine, np.linspace(a, b, n, endpoint))
