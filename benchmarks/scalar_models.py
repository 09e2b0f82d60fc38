"""The programs of scalars.py: a few numbers, vectors of three and matrices up to four by four.

Each is a function of a `Library` and of arrays. It is written once for primgraph and for CasADi.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy
from loop_models import runge_kutta

Array = Any
Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Library:
    """Functions of numbers and arrays that two libraries have under different names.

    `np` has the elementwise functions. `vector(elements)`, `matrix(rows)`, `cross(a, b)` and
    `dot(a, b)` are of vectors and matrices, `solve(a, b)` of a system; `derivative(y, x)` is the
    gradient of a number or the Jacobian of a vector.
    """

    np: Any
    vector: Function
    matrix: Function
    cross: Function
    solve: Function
    derivative: Function


@dataclass(frozen=True, slots=True)
class Case:
    """A program and its arrays."""

    name: str
    model: Function
    arrays: list[Array]


# Denavit-Hartenberg parameters of the links (a, alpha, d): Franka Emika's arm of seven joints, as
# its manual has them (Craig's convention), and the Puma 560.
PANDA = [
    (0.0, 0.0, 0.333),
    (0.0, -numpy.pi / 2, 0.0),
    (0.0, numpy.pi / 2, 0.316),
    (0.0825, numpy.pi / 2, 0.0),
    (-0.0825, -numpy.pi / 2, 0.384),
    (0.0, numpy.pi / 2, 0.0),
    (0.088, numpy.pi / 2, 0.0),
]
MASSES = (4.97, 0.65, 3.23, 3.59, 1.23, 1.67, 0.74)
CENTRES = numpy.array([
    [0.0039, 0.0021, -0.0476], [-0.0031, -0.0287, 0.0035], [0.0275, 0.0393, -0.0665],
    [-0.0532, 0.1044, 0.0275], [-0.0120, 0.0411, -0.0384], [0.0601, -0.0141, -0.0105],
    [0.0105, -0.0043, 0.0616],
])  # fmt: skip
INERTIAS = [numpy.diag([0.03, 0.02, 0.01]) + 0.001 * (k + 1) for k in range(7)]
PUMA = [
    (0.0, numpy.pi / 2, 0.0),
    (0.4318, 0.0, 0.0),
    (0.0203, -numpy.pi / 2, 0.15005),
    (0.0, numpy.pi / 2, 0.4318),
    (0.0, -numpy.pi / 2, 0.0),
    (0.0, 0.0, 0.0),
]


def inverse_dynamics(lib: Library, q: Any, velocities: Any, accelerations: Any) -> Any:
    """Torques of seven joints, by recursive Newton-Euler (Craig, Introduction to Robotics, 6.5)."""
    np, vector, cross = lib.np, lib.vector, lib.cross
    spin = turn = numpy.zeros(3)
    pull = numpy.array([0.0, 0.0, 9.81])
    turns, places, forces, moments = [], [], [], []
    for k, (a, alpha, d) in enumerate(PANDA):
        c, s, ca, sa = np.cos(q[k]), np.sin(q[k]), numpy.cos(alpha), numpy.sin(alpha)
        rotation = lib.matrix([[c, -s, 0.0], [s * ca, c * ca, -sa], [s * sa, c * sa, ca]])
        place = numpy.array([a, -sa * d, ca * d])
        zero = 0.0
        axis, along = (vector([zero, zero, x[k]]) for x in (velocities, accelerations))
        pull = rotation.T @ (cross(turn, place) + cross(spin, cross(spin, place)) + pull)
        turned = rotation.T @ spin
        turn = rotation.T @ turn + cross(turned, axis) + along
        spin = turned + axis
        centre, inertia = CENTRES[k], INERTIAS[k]
        force = MASSES[k] * (cross(turn, centre) + cross(spin, cross(spin, centre)) + pull)
        turns.append(rotation)
        places.append(place)
        forces.append(force)
        moments.append(inertia @ turn + cross(spin, inertia @ spin))
    force, moment, torques = forces[6], moments[6] + cross(CENTRES[6], forces[6]), []
    for k in range(5, -1, -1):
        torques.append(moment[2])
        moved = turns[k + 1] @ force
        moment = moments[k] + turns[k + 1] @ moment + cross(CENTRES[k], forces[k])
        moment = moment + cross(places[k + 1], moved)
        force = moved + forces[k]
    torques.append(moment[2])
    return vector(torques[::-1])


def arm(lib: Library, q: Any) -> Any:
    """Place of the Puma's hand and its Jacobian, by Denavit-Hartenberg matrices."""
    np, links = lib.np, []
    for k, (a, alpha, d) in enumerate(PUMA):
        c, s, ca, sa = np.cos(q[k]), np.sin(q[k]), numpy.cos(alpha), numpy.sin(alpha)
        first = [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s]]
        links.append(lib.matrix([*first, [0.0, sa, ca, d], [0.0, 0.0, 0.0, 1.0]]))
    place = reduce(lambda x, y: x @ y, links)[:3, 3]
    return place, lib.derivative(place, q)


def kalman(lib: Library, x: Any, p: Any, z: Any) -> Any:
    """A step of a Kalman filter for a point in the plane: four states, two measurements."""
    dt = 0.1
    f, h = numpy.eye(4) + dt * numpy.eye(4, k=2), numpy.eye(2, 4)
    x, p = f @ x, f @ p @ f.T + 0.01 * numpy.eye(4)
    s = h @ p @ h.T + 0.25 * numpy.eye(2)
    gain = lib.solve(s, h @ p).T
    return x + gain @ (z - h @ x), p - gain @ h @ p


def cart_pole(lib: Library, state: Any, push: Any) -> Any:
    """A step of a cart with a pole on it, and its Jacobian by the state."""
    np, cart, pole, length, gravity = lib.np, 1.0, 0.1, 0.5, 9.81

    def rate(y: Any) -> Any:
        angle, speed, spin = y[1], y[2], y[3]
        c, s = np.cos(angle), np.sin(angle)
        drive = (push + pole * length * spin * spin * s) / (cart + pole)
        turn = (gravity * s - c * drive) / (length * (4 / 3 - pole * c * c / (cart + pole)))
        return lib.vector([speed, spin, drive - pole * length * turn * c / (cart + pole), turn])

    after = runge_kutta(rate, 0.02, state)
    return after, lib.derivative(after, state)


def lorenz(lib: Library, state: Any) -> Any:
    """A step of Lorenz's system."""

    def rate(s: Any) -> Any:
        x, y, z = s[0], s[1], s[2]
        return lib.vector([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8 / 3 * z])

    return runge_kutta(rate, 0.01, state)


def greeks(lib: Library, option: Any) -> Any:
    """Price of a call by Black and Scholes, and its derivatives by all five parameters."""
    np = lib.np
    spot, strike, rate, volatility, years = (option[k] for k in range(5))
    spread = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
    d2 = d1 - spread

    def below(x: Any) -> Any:
        return 0.5 + 0.5 * np.erf(x * 0.7071067811865476)

    price = spot * below(d1) - strike * np.exp(-rate * years) * below(d2)
    return price, lib.derivative(price, option)


def cases() -> list[Case]:
    rng = numpy.random.default_rng(0)
    angles, velocities, accelerations = rng.uniform(-1, 1, (3, 7))
    covariance = rng.normal(size=(4, 4))
    covariance = covariance @ covariance.T
    return [
        Case("inverse dynamics, 7 joints", inverse_dynamics, [angles, velocities, accelerations]),
        Case("arm Jacobian, 6 joints", arm, [rng.uniform(-1, 1, 6)]),
        Case("Kalman step, 4 states", kalman, [rng.normal(size=4), covariance, rng.normal(size=2)]),
        Case("cart-pole, step and Jacobian", cart_pole, [rng.uniform(-1, 1, 4), numpy.array(0.3)]),
        Case("Lorenz step", lorenz, [numpy.array([1.0, 2.0, 20.0])]),
        Case("Black-Scholes Greeks", greeks, [numpy.array([100.0, 95.0, 0.03, 0.25, 0.5])]),
    ]
