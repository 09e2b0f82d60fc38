"""Steps of methods for ordinary differential equations, with errors and interpolants.

A step from `(t, y)`, whose slope is `k`, of length `h`, returns `Step`. The interpolant of a step
is a polynomial of the part of the step that has been gone, as a matrix of coefficients: a row for
each power, beginning with the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from primgraph.api.public import jacobian
from primgraph.operators.lazy_loading import functions
from primgraph.operators.linear_algebra.products import matmul

Slope = Callable[[Any, Any], Any]


class Step(NamedTuple):
    """The solution after a step, the slope there, an estimate of the error, and the interpolant."""

    y: Any
    slope: Any
    error: Any
    powers: Any


class Method(NamedTuple):
    """How steps are made; errors grow with the power `order` of their lengths."""

    step: Callable[[Slope, Any, Any, Any, Any], Step]
    order: int
    powers: int


def _combined(weights: Sequence[float], rows: Sequence[Any]) -> Any:
    found = None
    for weight, row in zip(weights, rows, strict=False):
        if weight:
            found = weight * row if found is None else found + weight * row
    return found


# J. R. Dormand and P. J. Prince, A family of embedded Runge-Kutta formulae, 1980; the interpolant
# of fourth order is that of L. Shampine, Some practical Runge-Kutta formulas, 1986.
_AT = (0.2, 0.3, 0.8, 8 / 9, 1.0)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
)
_SUM = (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84)
_ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
_POWERS = np.array([
    [1, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432],
    [0, 0, 0, 0],
    [0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799],
    [0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072],
    [0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632],
    [0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844],
    [0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423],
])  # fmt: skip


def _step_rk45(f: Slope, t: Any, y: Any, k: Any, h: Any) -> Step:
    slopes = [k]
    for at, weights in zip(_AT, _STAGES, strict=True):
        slopes.append(f(t + at * h, y + h * _combined(weights, slopes)))
    new = y + h * _combined(_SUM, slopes)
    slopes.append(f(t + h, new))
    powers = h * matmul(_POWERS.T.astype(y.dtype), functions["stack"](slopes))
    return Step(new, slopes[-1], h * _combined(_ERROR, slopes), powers)


# RODAS4P: G. Steinebach, Order reduction of ROW methods for DAEs and method of lines applications,
# 1995, with the coefficients of the code RODAS (E. Hairer, G. Wanner, Solving ordinary differential
# equations II, 1996): L-stable, six stages, errors of order four and three.
_GAMMA = 0.25
_ROS_AT = (0.0, 0.75, 0.21, 0.63, 1.0, 1.0)
_ROS_TIME = (0.25, -0.5, -0.023504, -0.0362, 0.0, 0.0)
_ROS_STAGES: tuple[tuple[float, ...], ...] = (
    (),
    (3.0,),
    (1.831036793486759, 0.4955183967433795),
    (2.304376582692669, -0.05249275245743001, -1.176798761832782),
    (-7.170454962423024, -4.741636671481785, -16.31002631330971, -1.062004044111401),
    (-7.170454962423024, -4.741636671481785, -16.31002631330971, -1.062004044111401, 1.0),
)
_ROS_SHARES: tuple[tuple[float, ...], ...] = (
    (),
    (-12.0,),
    (-8.791795173947035, -2.207865586973518),
    (10.81793056857153, 6.780270611428266, 19.53485944642410),
    (34.19095006749676, 15.49671153725963, 54.74760875964130, 14.16005392148534),
    (34.62605830930532, 15.30084976114473, 56.99955578662667, 18.40807009793095, -40.0 / 7.0),
)
_ROS_DENSE = (
    (25.09876703708589, 11.62013104361867, 28.49148307714626, -5.664021568594133, 0.0),
    (1.638054557396973, -0.7373619806678748, 8.477918219238990, 15.99253148779520, -32.0 / 17.0),
)


def _step_rosenbrock(f: Slope, t: Any, y: Any, k: Any, h: Any) -> Step:
    by_time = jacobian(lambda t: f(t, y))(t)
    by_y = jacobian(lambda y: f(t, y))(y)
    identity = functions["eye"](y.shape[0], dtype=y.dtype)
    inverse = functions["linear_algebra.systems.inv"](identity / (_GAMMA * h) - by_y)
    parts: list[Any] = []
    for at, time, weights, shares in zip(_ROS_AT, _ROS_TIME, _ROS_STAGES, _ROS_SHARES, strict=True):
        given = f(t + at * h, y + _combined(weights, parts)) if weights else k
        if shares:
            given = given + _combined(shares, parts) / h
        if time:
            given = given + h * time * by_time
        parts.append(matmul(inverse, given))
    new = y + _combined(_ROS_STAGES[-1], parts) + parts[-1]
    a, b = (_combined(weights, parts) for weights in _ROS_DENSE)
    # y (1 - s) + s (new + (1 - s) (a + s b)), sorted by the powers of s.
    powers = functions["stack"]([new - y + a, b - a, -b])
    return Step(new, f(t + h, new), parts[-1], powers)


METHODS = {"RK45": Method(_step_rk45, 5, 4), "Rosenbrock": Method(_step_rosenbrock, 4, 3)}
