"""The programs of loops.py, written once for every library that has NumPy's functions and loops.

Each is a function of a `Library` and of arrays, and gives a single number; what its gradient is
taken by, and its arrays, are in `CASES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy

Array = Any
Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Library:
    """A copy of NumPy that can be differentiated, and what it has beside NumPy's functions.

    `scan(f, init, xs, length)`, `while_loop(test, f, init, most)`, where `most` may be None,
    `sigmoid`, `slope(f)`, the derivative of a function of one number, and `solve_triangular`.
    """

    np: Any
    scan: Function
    while_loop: Function
    sigmoid: Function
    slope: Function
    solve_triangular: Function


@dataclass(frozen=True, slots=True)
class Case:
    """A program, its arrays, and the positions of those that its gradient is taken by."""

    name: str
    model: Function
    arrays: list[Array]
    wrt: tuple[int, ...]
    tolerance: float = 1e-9


def recurrent(lib: Library, inputs: Any, targets: Any, *weights: Any) -> Any:
    """The mean squared error of a recurrent network with long short-term memory."""
    np, n = lib.np, inputs.shape[2]
    w_input, w_state, bias = weights

    def step(carry: Any, x: Any) -> Any:
        state, cell = carry
        gates = x @ w_input + state @ w_state + bias
        sigmoids = lib.sigmoid(gates[:, : 3 * n])
        entering, forgetting, leaving = (sigmoids[:, i * n : (i + 1) * n] for i in range(3))
        cell = forgetting * cell + entering * np.tanh(gates[:, 3 * n :])
        state = leaving * np.tanh(cell)
        return (state, cell), state

    zeros = np.zeros(inputs.shape[1:])
    _, states = lib.scan(step, (zeros, zeros), inputs, None)
    return np.mean((states - targets) ** 2)


def runge_kutta(rate: Function, dt: float, y: Any) -> Any:
    """A step of the classical method of order four."""
    k1 = rate(y)
    k2 = rate(y + 0.5 * dt * k1)
    k3 = rate(y + 0.5 * dt * k2)
    k4 = rate(y + dt * k3)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def lorenz(lib: Library, steps: int, state: Any, parameters: Any) -> Any:
    """The squared distance from the origin in which a path of Lorenz's system ends."""
    np = lib.np
    sigma, rho, beta = (parameters[i] for i in range(3))

    def rate(s: Any) -> Any:
        x, y, z = (s[i] for i in range(3))
        return np.stack([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])

    end, _ = lib.scan(lambda s, _: (runge_kutta(rate, 2e-3, s), None), state, None, steps)
    return np.sum(end**2)


def kuramoto(lib: Library, steps: int, phases: Any, frequencies: Any, coupling: Any) -> Any:
    """How far coupled oscillators are apart in the end."""
    np = lib.np

    def rate(p: Any) -> Any:
        s, c = np.sin(p), np.cos(p)
        return frequencies + c * (coupling @ s) - s * (coupling @ c)

    end, _ = lib.scan(lambda p, _: (runge_kutta(rate, 1e-2, p), None), phases, None, steps)
    return np.sum(np.cos(end)) ** 2 + np.sum(np.sin(end)) ** 2


def characters(lib: Library, main: Any, extra: Any, state: Any, sequence: Any) -> Any:
    """The loss of GradBench's lstm, whose weights are vectors: of a character by those before."""
    np = lib.np
    layers, n = main.shape[0] // 2, sequence.shape[1]

    def step(carry: Any, pair: Any) -> Any:
        states, total = carry
        x, following = pair
        x, new = x * extra[0], []
        for k in range(layers):
            hidden, cell = states[2 * k], states[2 * k + 1]
            gates = np.concatenate([x, hidden, x, hidden]) * main[2 * k] + main[2 * k + 1]
            forgetting, entering, leaving = (
                lib.sigmoid(gates[i * n : i * n + n]) for i in range(3)
            )
            cell = cell * forgetting + entering * np.tanh(gates[3 * n :])
            x = leaving * np.tanh(cell)
            new += [x, cell]
        guess = x * extra[1] + extra[2]
        guess = guess - np.log(2 + np.sum(np.exp(guess)))
        return (tuple(new), total + np.sum(following * guess)), None

    begin = tuple(state[k] for k in range(2 * layers))
    (_, total), _ = lib.scan(step, (begin, np.zeros(())), (sequence[:-1], sequence[1:]), None)
    return -total / ((sequence.shape[0] - 1) * n)


def ode(lib: Library, steps: int, factors: Any) -> Any:
    """The last of GradBench's equations `y_i' = x_i y_(i-1)`, by the midpoint rule."""
    np, dt = lib.np, 2 / steps
    begin = np.ones(1)

    def rate(y: Any) -> Any:
        return factors * np.concatenate([begin, y[:-1]])

    def step(y: Any, _: Any) -> Any:
        return y + dt * rate(y + 0.5 * dt * rate(y)), None

    end, _ = lib.scan(step, np.zeros(factors.shape), None, steps)
    return end[-1]


def particle(lib: Library, control: Any) -> Any:
    """Where a particle meets the ground once two charges are where that is nearest to zero.

    The field moves it in steps of Euler's; the place of a charge is found by Newton's method, and
    the derivative is that of its steps.
    """
    np = lib.np

    def force(x: Any, y: Any, w: Any) -> Any:
        d1 = ((x - 10) ** 2 + (y - 10 + w) ** 2) ** -1.5
        d2 = ((x - 10) ** 2 + y**2) ** -1.5
        return (x - 10) * (d1 + d2), (y - 10 + w) * d1 + y * d2

    def cost(w: Any) -> Any:
        dt = 0.1

        def step(s: Any) -> Any:
            x, y, vx, vy = s
            ax, ay = force(x, y, w)
            return x + dt * vx, y + dt * vy, vx + dt * ax, vy + dt * ay

        zero = 0.0 * w
        begin = (zero, 8.0 + zero, 0.75 + zero, zero)
        x, y, vx, vy = lib.while_loop(lambda s: s[1] > 0, step, begin, 400)
        return (x - y / vy * vx) ** 2

    slope = lib.slope(cost)
    bend = lib.slope(slope)

    def newton(w: Any) -> Any:
        return w - slope(w) / bend(w)

    found, _ = lib.scan(lambda w, _: (newton(w), None), control, None, 4)
    return found + 0.0 * np.sum(control)


def saddle(lib: Library, start: Any) -> Any:
    """`min_x max_y` of a saddle, by gradient steps in gradient steps, which end by their size."""

    def inner(x: Any, y: Any) -> Any:
        return (x - 1) ** 2 * (1 + 0.1 * x * x) + x * y - (y + 0.5) ** 2

    def best(x: Any) -> Any:
        def step(s: Any) -> Any:
            y, _ = s
            move = lib.slope(lambda v: inner(x, v))(y)
            return y + 0.2 * move, move

        y, _ = lib.while_loop(lambda s: s[1] * s[1] > 1e-12, step, (0 * x, 1 + 0 * x), 200)
        return inner(x, y)

    def descend(s: Any) -> Any:
        x, _ = s
        move = lib.slope(best)(x)
        return x - 0.1 * move, move

    x, _ = lib.while_loop(lambda s: s[1] * s[1] > 1e-12, descend, (start, 1 + 0 * start), 200)
    return best(x) + x * x


def _network(steps: int, batch: int = 16, width: int = 64) -> list[Array]:
    rng = numpy.random.default_rng(0)
    return [
        rng.normal(size=(steps, batch, width)),
        rng.normal(scale=0.5, size=(steps, batch, width)),
        rng.normal(scale=width**-0.5, size=(width, 4 * width)),
        rng.normal(scale=width**-0.5, size=(width, 4 * width)),
        rng.normal(scale=0.1, size=4 * width),
    ]


def _oscillators(n: int) -> list[Array]:
    rng = numpy.random.default_rng(1)
    return [rng.uniform(-3, 3, n), rng.normal(size=n), rng.uniform(0, 2 / n, (n, n))]


def _text(count: int) -> list[Array]:
    rng = numpy.random.default_rng(2)
    layers, n = 2, 14
    return [
        rng.uniform(-1, 1, (2 * layers, 4 * n)),
        rng.uniform(-1, 1, (3, n)),
        rng.uniform(-1, 1, (2 * layers, n)),
        rng.uniform(0, 1, (count, n)),
    ]


def newton(lib: Library, factors: Any) -> Any:
    """The sum of the solutions of x = a cos(x), by Newton's method until all are found."""
    np = lib.np

    def step(state: Any) -> Any:
        x, _ = state
        change = (x - factors * np.cos(x)) / (1.0 + factors * np.sin(x))
        return x - change, np.max(np.abs(change))

    begin = (np.ones(factors.shape), 1.0)
    return np.sum(lib.while_loop(lambda s: s[1] > 1e-13, step, begin, None)[0])


def solves(lib: Library, steps: int, a: Any, b: Any) -> Any:
    """The squared length of what repeated solves with one matrix end with."""
    np = lib.np
    end, _ = lib.scan(lambda x, _: (np.linalg.solve(a, np.tanh(x) + b), None), b, None, steps)
    return np.sum(end**2)


def _system(n: int) -> list[Array]:
    rng = numpy.random.default_rng(4)
    return [rng.normal(size=(n, n)) / n**0.5 + 2 * numpy.eye(n), rng.normal(size=n)]


def cases(short: bool = False) -> list[Case]:
    """All cases; `short` ones have few trips."""
    lengths = (3, 20) if short else (20, 1000, 10_000)
    steps, few = (10, 5) if short else (1000, 100)
    network = partial(_network, batch=2, width=4) if short else _network
    factors = numpy.random.default_rng(3).uniform(0.5, 1.5, 20)
    numbers = (10,) if short else (3, 100, 100_000)
    rows = (4,) if short else (10, 20, 50, 100, 200)
    repeated = _with_steps(solves, few)
    begin, parameters = numpy.array([1.0, 2.0, 20.0]), numpy.array([10.0, 28.0, 8 / 3])
    by_steps = {m: _with_steps(m, steps) for m in (lorenz, kuramoto)}
    return [
        *[Case(f"recurrent T={t}", recurrent, network(t), (2, 3, 4)) for t in lengths],
        Case(f"lorenz T={steps}", by_steps[lorenz], [begin, parameters], (0, 1)),
        Case(f"kuramoto T={steps}", by_steps[kuramoto], _oscillators(100), (0, 1, 2)),
        Case("lstm", characters, _text(12 if short else 1024), (0, 1)),
        Case("ode", _with_steps(ode, few), [factors], (0,)),
        *[Case(f"newton n={n}", newton, [numpy.linspace(0.1, 0.9, n)], (0,)) for n in numbers],
        *[Case(f"solves n={n}", repeated, _system(n), (0, 1)) for n in rows],
        Case("particle", particle, [numpy.array(0.1)], (0,), 1e-6),
        Case("saddle", saddle, [numpy.array(0.3)], (0,), 1e-6),
    ]


def _with_steps(model: Function, steps: int) -> Function:
    return lambda lib, *arrays: model(lib, steps, *arrays)
