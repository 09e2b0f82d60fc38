"""SciPy's names for signals, equations and integrals: values as SciPy's, and derivatives."""

from __future__ import annotations

from functools import wraps
from typing import Any

import numpy as np
import pytest

import primgraph as pg
import primgraph.numpy as pnp
from primgraph.scipy import integrate, linalg, signal

sp = pytest.importorskip("scipy")
sg = pytest.importorskip("scipy.signal")
sl = pytest.importorskip("scipy.linalg")
si = pytest.importorskip("scipy.integrate")

RNG = np.random.default_rng(0)


def test_convolutions() -> None:
    for first, second in (((5,), (3,)), ((3,), (5,)), ((4, 3), (2, 2)), ((2, 3), (3, 4))):
        a, b = RNG.standard_normal(first), RNG.standard_normal(second)
        for mode in ("full", "same", "valid"):
            wanted = sg.convolve(a, b, mode)
            found = signal.convolve(pg.tensor(a), b, mode).numpy()
            np.testing.assert_allclose(found, wanted, atol=1e-14)
            np.testing.assert_array_equal(signal.convolve(a, b, mode), wanted)
    a, b = RNG.standard_normal((4, 3)), RNG.standard_normal((2, 2))
    for mode in ("full", "same", "valid"):
        graph = pg.trace(lambda x, y, m=mode: signal.convolve(x, y, m), a, b)
        np.testing.assert_allclose(pg.compile(graph)(a, b), sg.convolve(a, b, mode), atol=1e-14)
        pg.check_grads(graph, [a, b], order=2)
    a, b = RNG.standard_normal((3, 5)), RNG.standard_normal((3, 4, 2))
    for mode in ("full", "valid"):
        found = signal.convolve(a, b, mode, axes=([1], [2]), dot_axes=([0], [0]))
        parts = [sg.convolve(a[i], b[i, 1], mode) for i in range(3)]
        np.testing.assert_allclose(found[1], sum(parts), atol=1e-14)
    with pytest.raises(pg.ShapeError, match="at least as large as the other"):
        signal.convolve(pg.tensor(np.ones((2, 3))), np.ones((3, 2)), "valid")
    with pytest.raises(pg.ArgumentError, match="mode is 'full'"):
        signal.convolve(pg.tensor(np.ones(2)), np.ones(3), "whole")
    with pytest.raises(pg.ShapeError, match="as many axes"):
        signal.convolve(pg.tensor(np.ones(2)), np.ones((3, 2)))
    assert signal.lfilter is sg.lfilter
    with pytest.raises(AttributeError, match="convolve"):
        _ = signal.convolv


def flow(y: Any, t: Any, a: Any, b: Any) -> Any:
    return -pnp.sqrt(t) * y + a - pnp.sin(y * b["rate"])


Y, A = np.array([0.3, -0.8, 1.2]), np.array([0.1, 0.2, -0.3])
B = {"rate": np.array([1.0, 2.0, 0.5])}
TIMES = np.array([0.1, 0.4, 1.0, 1.5])


def test_solutions_of_differential_equations() -> None:
    exact = si.odeint(flow, Y, TIMES, (A, B), rtol=1e-12, atol=1e-12)
    found = integrate.odeint(flow, pg.tensor(Y), TIMES, (A, B)).numpy()
    np.testing.assert_allclose(found, exact, atol=2e-7)
    closer = integrate.odeint(flow, pg.tensor(Y), TIMES, (A, B), rtol=1e-11, atol=1e-11).numpy()
    np.testing.assert_allclose(closer, exact, atol=1e-10)
    back = integrate.odeint(flow, pg.tensor(exact[-1]), TIMES[::-1], (A, B)).numpy()
    np.testing.assert_allclose(back[-1], Y, atol=1e-6)
    turned = integrate.odeint(
        lambda t, y, a: flow(y, t, a, B), pg.tensor(Y), TIMES, (A,), tfirst=True
    )
    np.testing.assert_allclose(turned.numpy(), found, rtol=1e-13)
    np.testing.assert_allclose(integrate.odeint(flow, Y, TIMES, (A, B)), exact, atol=2e-7)
    # Times that are equal go nowhere, and what takes too many steps is not a number.
    same = integrate.odeint(flow, pg.tensor(Y), np.array([0.5, 0.5]), (A, B)).numpy()
    np.testing.assert_array_equal(same, [Y, Y])
    short = integrate.odeint(flow, pg.tensor(Y), TIMES, (A, B), mxstep=2).numpy()
    assert np.isnan(short[-1]).all()


def total(y: Any, t: Any, a: Any, b: Any) -> Any:
    found = integrate.odeint(flow, y, t, (a, b), rtol=1e-10, atol=1e-10)
    return pg.sum(found**2)


def test_slopes_of_solutions() -> None:
    compiled = pg.jit(pg.grad(total, (0, 1, 2, 3)))
    slopes = compiled(Y, TIMES, A, B)

    def exact(y: Any, t: Any, a: Any, rate: Any) -> Any:
        args = (a, {"rate": rate})
        return np.sum(si.odeint(flow, y, t, args, rtol=1e-13, atol=1e-13) ** 2)

    given, step = [Y, TIMES, A, B["rate"]], 1e-5
    for i, slope in enumerate((*slopes[:3], slopes[3]["rate"])):
        way = RNG.standard_normal(given[i].shape)
        up, down = ([*given[:i], given[i] + s * way, *given[i + 1 :]] for s in (step, -step))
        wanted = (exact(*up) - exact(*down)) / (2.0 * step)
        np.testing.assert_allclose(np.sum(slope * way), wanted, rtol=1e-6)


def test_memory_of_slopes_of_solutions_is_that_of_the_steps_that_are_made() -> None:
    def graph(most: int) -> Any:
        def sum_of(y: Any) -> Any:
            return pg.sum(integrate.odeint(flow, y, TIMES, (A, B), mxstep=most))

        return pg.trace(pg.grad(sum_of), Y)

    few, many = (pg.cost(graph(most)).residual_bytes for most in (50, 5000))
    assert few == many


@pytest.mark.long
def test_second_derivatives_of_solutions() -> None:
    step = 1e-5
    curved = pg.jit(pg.grad(lambda a: total(Y, TIMES[:2], a, B) * 1.0))
    direction = np.array([1.0, -0.5, 2.0])
    twice = pg.hvp(lambda a: total(Y, TIMES[:2], a, B), A, direction)[1]
    ends = [curved(A + s * direction) for s in (step, -step)]
    np.testing.assert_allclose(twice, (ends[0] - ends[1]) / (2.0 * step), atol=1e-6)


def test_equations_that_are_refused() -> None:
    with pytest.raises(pg.ShapeError, match="func gives"):
        integrate.odeint(lambda y, t: y[0], pg.tensor(Y), TIMES)
    with pytest.raises(pg.ShapeError, match="takes vectors"):
        integrate.odeint(flow, pg.tensor(np.ones((2, 2))), TIMES, (A, B))
    with pytest.raises(pg.ArgumentError, match="and no hmax"):
        integrate.odeint(flow, pg.tensor(Y), TIMES, (A, B), hmax=0.1)
    assert integrate.simpson is si.simpson
    with pytest.raises(AttributeError, match="odeint"):
        _ = integrate.odein


def test_linear_algebra() -> None:
    a, b, q = (RNG.standard_normal((3, 3)) + 2.0 * np.eye(3) for _ in range(3))
    cases: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("solve_sylvester", (a, b, q), {}),
        ("cholesky", (a @ a.T,), {}),
        ("cholesky", (a @ a.T,), {"lower": True}),
        ("solve_triangular", (a, q[0]), {"lower": True, "check_finite": False}),
        ("inv", (a,), {}),
        ("det", (a,), {}),
        ("pinv", (a,), {}),
    ]
    for name, given, options in cases:
        wanted = getattr(sl, name)(*given, **options)
        own = getattr(linalg, name)
        tensors = [pg.tensor(v) for v in given]
        np.testing.assert_allclose(own(*tensors, **options).numpy(), wanted, rtol=1e-10)
        np.testing.assert_array_equal(own(*given, **options), wanted)
    pg.check_grads(pg.trace(linalg.solve_sylvester, a, b, q), [a, b, q], order=2)
    bands, right = RNG.standard_normal((4, 5)) + np.array([[0.0], [3.0], [0.0], [0.0]]), np.ones(5)
    found = linalg.solve_banded((2, 1), pg.tensor(bands), right).numpy()
    np.testing.assert_allclose(found, sl.solve_banded((2, 1), bands, right), rtol=1e-11)
    graph = pg.trace(lambda m, x: linalg.solve_banded((2, 1), m, x), bands, right)
    pg.check_grads(graph, [bands, right], order=2)
    with pytest.raises(pg.ShapeError, match="4 rows of diagonals"):
        linalg.solve_banded((2, 1), pg.tensor(bands[1:]), right)
    with pytest.raises(pg.ShapeError, match="matrices that fit"):
        linalg.solve_sylvester(pg.tensor(a), b, np.ones((2, 3)))
    with pytest.raises(pg.ArgumentError, match="no counterpart"):
        linalg.hessenberg(pg.tensor(a))
    with pytest.raises(pg.ArgumentError, match="no argument 'strange'"):
        linalg.inv(pg.tensor(a), strange=3)
    with pytest.raises(AttributeError, match="cholesky"):
        _ = linalg.choleski


def test_functions_that_wrap_others_are_called() -> None:
    @wraps(np.std)
    def total(x: Any) -> Any:
        return np.sum(x)

    @wraps(sl.inv)
    def doubled(x: Any) -> Any:
        return 2.0 * np.asarray(x)

    wrapped = pnp.std
    x = np.array([[1.0, 2.0], [3.0, 5.0]])
    assert pg.jit(lambda v: total(v))(x) == 11.0
    np.testing.assert_array_equal(pg.jit(lambda v: doubled(v))(x), 2.0 * x)
    np.testing.assert_allclose(pg.jit(lambda v: wrapped(v, axis=0))(x), np.std(x, axis=0))
