"""Initial value problems: errors, rows, events and derivatives, beside solutions in closed form."""

import numpy as np
import pytest

import primgraph as pg
from primgraph.solvers.ode_steps import METHODS as STEPS

METHODS = ("RK45", "Rosenbrock")
every_method = pytest.mark.parametrize("method", METHODS)


def bell(t, y):
    return -2.0 * t * y


def predators(p):
    return lambda t, y: pg.stack([p[0] * y[0] - p[1] * y[0] * y[1], p[1] * y[0] * y[1] - y[1]])


@every_method
def test_errors_follow_the_tolerance(method):
    times = np.linspace(0.0, 2.0, 21)
    errors, trips = [], []
    for tol in (1e-4, 1e-6, 1e-8, 1e-10):
        rows, (converged, count) = pg.jit(
            lambda y, tol=tol: pg.solvers.solve_ivp(
                bell, (0.0, 2.0), y, times, method=method, rtol=tol, atol=tol, full_output=True
            )
        )(np.ones(1))
        assert converged
        errors.append(np.abs(np.asarray(rows)[:, 0] - np.exp(-(times**2))).max())
        trips.append(int(count))
        assert errors[-1] < 30.0 * tol
    assert errors == sorted(errors, reverse=True)
    assert trips == sorted(trips)


@every_method
def test_order_of_the_error_and_of_the_interpolant(method):
    """One step of half the length has an error 2^(p + 1) times smaller, for the order p."""
    steps = STEPS[method]

    def f(t, y):
        return pg.stack([y[1] * pg.cos(t), -y[0] * y[1]])

    def one(h, part=1.0):
        y = np.array([1.0, 0.5])
        found = steps.step(f, pg.tensor(0.2), pg.tensor(y), f(0.2, pg.tensor(y)), h)
        inner = y + sum(found.powers[k].numpy() * part ** (k + 1) for k in range(steps.powers))
        return found.y.numpy(), inner, found.error.numpy()

    def exact(h):
        return pg.solvers.solve_ivp(f, (0.2, 0.2 + h), np.array([1.0, 0.5]), rtol=1e-13, atol=1e-14)

    order = {"RK45": 5, "Rosenbrock": 4}[method]
    wide, narrow = 0.2, 0.1
    ends = [np.abs(one(h)[0] - exact(h)).max() for h in (wide, narrow)]
    assert np.log2(ends[0] / ends[1]) == pytest.approx(order + 1, abs=0.7)
    estimates = [np.abs(one(h)[2]).max() for h in (wide, narrow)]
    assert np.log2(estimates[0] / estimates[1]) == pytest.approx(order, abs=0.7)
    inner = [np.abs(one(h, 0.5)[1] - exact(0.5 * h)).max() for h in (wide, narrow)]
    assert np.log2(inner[0] / inner[1]) > order - 0.7
    np.testing.assert_allclose(one(wide)[1], one(wide)[0], rtol=1e-13)


def test_a_stiff_equation_takes_few_steps(native_cache):
    def f(t, y):
        return pg.stack([y[1], 1000.0 * ((1.0 - y[0] ** 2) * y[1]) - y[0]])

    def solve(y, method):
        return pg.solvers.solve_ivp(f, (0.0, 1000.0), y, method=method, full_output=True)

    start = np.array([2.0, 0.0])
    end, (converged, trips) = pg.jit(lambda y: solve(y, "Rosenbrock"), target="c")(start)
    assert converged
    assert trips < 1000
    integrate = pytest.importorskip("scipy.integrate")
    theirs = integrate.solve_ivp(
        lambda t, y: [y[1], 1000.0 * ((1.0 - y[0] ** 2) * y[1]) - y[0]], (0.0, 1000.0), start,
        method="Radau", rtol=1e-9, atol=1e-12,
    )  # fmt: skip
    np.testing.assert_allclose(end, theirs.y[:, -1], rtol=1e-4)
    end, (converged, _) = pg.jit(lambda y: solve(y, "RK45"), target="c")(start)
    assert not converged
    assert np.isnan(end).all()


@every_method
def test_gradients_are_those_of_differences(method, native_cache):
    times = np.linspace(0.0, 3.0, 7)
    p = np.array([1.5, 1.0])

    def loss(p, end):
        rows = pg.solvers.solve_ivp(
            predators(p), (0.0, end), pg.ones(2), times, method=method, rtol=1e-9, atol=1e-11
        )
        return pg.sum(rows**2)

    value = pg.jit(lambda p: loss(p, 3.0))
    expected = [(value(p + 1e-5 * e) - value(p - 1e-5 * e)) / 2e-5 for e in np.eye(2)]
    for target in ("numpy", "c"):
        found = pg.jit(pg.grad(lambda p: loss(p, 3.0)), target=target)(p)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@every_method
def test_derivatives_by_both_ends_and_the_beginning(method):
    def end(t0, t1, y0):
        return pg.solvers.solve_ivp(
            lambda t, y: pg.cos(t) * y, (t0, t1), y0, method=method, rtol=1e-9, atol=1e-11
        )

    at = (0.3, 1.4, 2.0)
    y = 2.0 * np.exp(np.sin(1.4) - np.sin(0.3))
    found = pg.grad(end, argnums=(0, 1, 2))(*at)
    np.testing.assert_allclose(end(*at), y, rtol=1e-8)
    np.testing.assert_allclose(found, [-np.cos(0.3) * y, np.cos(1.4) * y, y / 2.0], rtol=1e-6)
    second = pg.grad(pg.grad(lambda t1: end(0.3, t1, 2.0)))(1.4)
    np.testing.assert_allclose(second, (np.cos(1.4) ** 2 - np.sin(1.4)) * y, rtol=1e-4)


def test_time_runs_backward_too():
    back = pg.solvers.solve_ivp(bell, (2.0, 0.0), np.array([np.exp(-4.0)]), [2.0, 1.0, 0.0])
    np.testing.assert_allclose(back[:, 0], np.exp([-4.0, -1.0, 0.0]), rtol=1e-5)


def test_an_event_ends_it():
    def ground(height, drag=0.0):
        return pg.solvers.solve_ivp(
            lambda t, y: pg.stack([y[1], -9.81 - drag * y[1]]), (0.0, 9.0),
            pg.stack([height, 0.0 * height]), event=lambda t, y: y[0],
        )  # fmt: skip

    time, y = ground(1.0)
    np.testing.assert_allclose(time, np.sqrt(2.0 / 9.81), rtol=1e-9)
    np.testing.assert_allclose(y, [0.0, -np.sqrt(2.0 * 9.81)], atol=1e-7)
    slope = pg.grad(lambda h: ground(h)[0])
    for found in (slope(1.0), pg.jit(slope)(1.0)):
        np.testing.assert_allclose(found, 0.5 * np.sqrt(2.0 / 9.81), rtol=1e-8)
    times = pg.jit(pg.vmap(lambda h: ground(h)[0]))(np.array([0.5, 1.0, 4.0]))
    np.testing.assert_allclose(times, np.sqrt(2.0 * np.array([0.5, 1.0, 4.0]) / 9.81), rtol=1e-9)
    (time, y), (converged, _) = pg.solvers.solve_ivp(
        lambda t, y: -y, (0.0, 1.0), np.ones(1), event=lambda t, y: y[0] + 1.0, full_output=True
    )
    assert not converged
    assert np.isnan(time)
    assert np.isnan(y).all()


def test_containers_and_rows_of_them():
    def f(t, y):
        return {"x": y["v"], "v": -y["x"]}

    start = {"x": np.ones(2), "v": np.zeros(2)}
    rows = pg.solvers.solve_ivp(f, (0.0, 1.0), start, np.array([0.0, 0.5, 1.0]))
    np.testing.assert_allclose(rows["x"], np.cos([[0.0] * 2, [0.5] * 2, [1.0] * 2]), atol=1e-6)
    assert pg.solvers.solve_ivp(f, (0.0, 1.0), start)["v"].shape == (2,)
    outside = pg.solvers.solve_ivp(f, (0.0, 1.0), start, np.array([0.5, 1.5]))
    assert np.isnan(outside["x"][1]).all()
    assert not np.isnan(outside["x"][0]).any()


def test_samples_of_a_batch_make_their_own_steps():
    rates = np.array([1.0, 10.0, 100.0])
    y, (converged, trips) = pg.jit(
        pg.vmap(
            lambda k: pg.solvers.solve_ivp(
                lambda t, y: -k * y, (0.0, 1.0), pg.ones(1), full_output=True
            )
        )
    )(rates)
    assert converged.all()
    assert trips[0] < trips[1] < trips[2]
    np.testing.assert_allclose(y[:, 0], np.exp(-rates), atol=1e-6)


@every_method
def test_float32_stays_float32(method):
    start = np.ones(2, np.float32)

    def solve(y):
        return pg.solvers.solve_ivp(lambda t, y: -y, (0.0, 2.0), y, [0.0, 2.0], method=method)

    for rows in (solve(start), pg.jit(solve)(start)):
        assert rows.dtype == np.float32
        np.testing.assert_allclose(rows[:, 0], np.exp([0.0, -2.0]), rtol=1e-5)
    time, _ = pg.solvers.solve_ivp(
        lambda t, y: -y, (0.0, 2.0), np.float32(1.0), method=method, event=lambda t, y: y - 0.5
    )
    np.testing.assert_allclose(time, np.log(2.0), rtol=1e-5)


def test_steps_of_float16_end():
    _, (converged, trips) = pg.solvers.solve_ivp(
        lambda t, y: 1.0 + 0.0 * y, (0.0, np.inf), np.ones(2, np.float16), max_steps=3000,
        full_output=True,
    )  # fmt: skip
    assert not converged
    assert trips == 3000


def test_derivatives_by_times_at_the_beginning():
    """Where no step is made, the derivative is the slope."""

    def end(time):
        return pg.solvers.solve_ivp(lambda t, y: -3.0 * y, (1.0, time), 2.0)

    def rows(times):
        return pg.sum(pg.solvers.solve_ivp(lambda t, y: -3.0 * y, (1.0, 2.0), 2.0, times))

    assert end(1.0) == 2.0
    np.testing.assert_allclose(pg.grad(end)(1.0), -6.0)
    expected = -6.0 * np.exp([0.0, -3.0])
    np.testing.assert_allclose(pg.grad(rows)(np.array([1.0, 2.0])), expected, rtol=1e-5)


def test_rows_out_of_order_are_nan():
    solve = pg.jit(lambda t: pg.solvers.solve_ivp(bell, (0.0, 3.0), 1.0, t, full_output=True))
    rows, (converged, _) = solve(np.array([0.0, 3.0, 0.5]))
    np.testing.assert_array_equal(np.isnan(rows), [False, False, True])
    assert not converged
    rows, (converged, _) = solve(np.array([0.0, 0.0, 3.0, 3.0]))
    assert rows[0] == rows[1] == 1.0
    assert rows[2] == rows[3]
    assert converged
    count = int(solve(np.array([3.0]))[1].trips)
    exact = pg.solvers.solve_ivp(bell, (0.0, 3.0), 1.0, [3.0], max_steps=count, full_output=True)
    assert exact[1].converged


def test_small_events_and_no_end():
    def half(k, scale):
        return pg.solvers.solve_ivp(
            lambda t, y: -k * y, (0.0, np.inf), 1.0, event=lambda t, y: scale * (y - 0.5)
        )[0]

    for scale in (1.0, 1e-170):
        np.testing.assert_allclose(half(2.0, scale), 0.5 * np.log(2.0), rtol=1e-6)
    np.testing.assert_allclose(pg.grad(half)(2.0, 1.0), -0.25 * np.log(2.0), rtol=1e-5)


@every_method
def test_open_sizes(method):
    def last(y):
        return pg.sum(
            pg.solvers.solve_ivp(lambda t, y: -y, (0.0, 1.0), y, [0.5, 1.0], method=method)[1]
        )

    program = pg.trace(pg.value_and_grad(last), pg.spec(pg.dim("n")))
    kernel = pg.compile(program, target="numpy")
    for size in (1, 3):
        value, slope = kernel(np.ones(size))
        np.testing.assert_allclose(value, size * np.exp(-1.0), rtol=1e-5)
        np.testing.assert_allclose(slope, np.exp([-1.0] * size), rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s(bell, (0.0, 1.0), 1.0, method="Euler"), pg.ArgumentError, "method is"),
        (lambda s: s(bell, (0.0, 1.0), 1.0, rtol=-1.0), pg.ArgumentError, "tolerances are"),
        (lambda s: s(bell, (0.0, 1.0), 1.0, max_steps=0), pg.ArgumentError, "max_steps is"),
        (lambda s: s(bell, (0.0, 1.0, 2.0), 1.0), pg.ArgumentError, "pair of times"),
        (lambda s: s(bell, (0.0, np.ones(2)), 1.0), pg.ShapeError, "t_span are numbers"),
        (lambda s: s(bell, (0.0, 1.0), 1.0, np.ones((2, 2))), pg.ShapeError, "vector of times"),
        (lambda s: s(lambda y: y, (0.0, 1.0), 1.0), pg.ArgumentError, "function of"),
        (lambda s: s(lambda t, y: y[:1], (0.0, 1.0), np.ones(2)), pg.ShapeError, "y0 is"),
        (lambda s: s(bell, (0.0, 1.0), np.arange(2)), pg.DTypeError, "not a float array"),
        (lambda s: s(bell, (0.0, 1.0), np.ones(2), event=lambda t, y: y), pg.ShapeError,
         "event returns a number"),
        (lambda s: s(bell, (0.0, 1.0), 1.0, event=lambda t, y: y < 0.5), pg.DTypeError,
         "event returns a float"),
        (lambda s: s(bell, (0.0, 1.0), 1.0, [0.0, 1.0, 0.5]), pg.ArgumentError, "t_eval is"),
        (lambda s: s(bell, (0.0, 1.0), np.ones(0)), pg.ArgumentError, "nothing in y0"),
        (lambda s: s(bell, (0.0, "1"), 1.0), pg.ArgumentError, "arrays and numbers, not str"),
        (lambda s: s(bell, (0.0, 1.0), 1.0, [0.5], event=lambda t, y: y), pg.ArgumentError,
         "not both"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_told(call, error, message):
    with pytest.raises(error, match=message):
        call(pg.solvers.solve_ivp)
