"""Published functions go in unchanged: of SciPy and NumPy themselves, and of others' kind."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import published
import pytest

import primgraph as pg

scipy = pytest.importorskip("scipy")
optimize = pytest.importorskip("scipy.optimize")
RUNGE = pytest.importorskip("scipy.integrate._ivp.rk")
DISTANCES = pytest.importorskip("scipy.spatial.distance")
LINALG = pytest.importorskip("scipy.linalg")
QUADRATURE = pytest.importorskip("scipy.integrate")
STATS = pytest.importorskip("scipy.stats")
SIMPSON = pytest.importorskip("scipy.integrate").simpson
P = np.polynomial

X = np.array([0.7, -0.3, 1.2, 0.4])
C = np.array([1.0, 2.0, -0.5, 0.3, 0.2])
S = np.array([0.3, -0.2])
MANY, OTHERS = np.array([0.2, 0.5, 0.3]), np.array([0.1, 0.6, 0.3])


def pendulum(t: Any, y: Any) -> Any:
    return np.array([y[1], -np.sin(y[0])])


def stepped(y: Any) -> Any:
    method, rk_step = RUNGE.RK45, RUNGE.rk_step
    stages = np.zeros((7, 2))
    return rk_step(pendulum, 0.0, y, pendulum(0.0, y), 0.1, method.A, method.B, method.C, stages)[0]


# Functions of at least 15 lines of SciPy and NumPy (BSD-3-Clause), and what they take.
INSTALLED = {
    "rosen": (optimize.rosen, [X]),
    "rosen_der": (optimize.rosen_der, [X]),
    "rosen_hess": (optimize.rosen_hess, [X]),
    "rosen_hess_prod": (optimize.rosen_hess_prod, [X, X[::-1] + 0.1]),
    "chebval": (P.chebyshev.chebval, [S, C]),
    "legval": (P.legendre.legval, [S, C]),
    "hermval": (P.hermite.hermval, [S, C]),
    "lagval": (P.laguerre.lagval, [S, C]),
    "hermeval": (P.hermite_e.hermeval, [S, C]),
    "chebder": (P.chebyshev.chebder, [C]),
    "legint": (P.legendre.legint, [C]),
    "chebvander": (lambda x: chebvander(x, 4), [S]),
    "hermvander": (lambda x: hermvander(x, 4), [S]),
    "rk_step": (stepped, [S]),
    "simpson": (SIMPSON, [C]),
    "jensenshannon": (DISTANCES.jensenshannon, [MANY, OTHERS]),
    "correlation": (DISTANCES.correlation, [MANY, OTHERS]),
    "romb": (QUADRATURE.romb, [np.linspace(0.3, 1.7, 9) ** 2]),
    "zscore": (STATS.zscore, [X]),
    "skew": (STATS.skew, [X]),
    "kurtosis": (STATS.kurtosis, [X]),
    "gmean": (STATS.gmean, [np.abs(X)]),
    "circmean": (STATS.circmean, [np.abs(X)]),
    "energy_distance": (STATS.energy_distance, [X, X[::-1] + 0.1]),
    "wasserstein_distance": (STATS.wasserstein_distance, [X, X[::-1] * 1.3 + 0.1]),
    "braycurtis": (DISTANCES.braycurtis, [MANY, OTHERS + 0.05]),
    "leslie": (LINALG.leslie, [C, X]),
    "fiedler": (LINALG.fiedler, [C]),
}
chebvander, hermvander, rk_step = P.chebyshev.chebvander, P.hermite.hermvander, RUNGE.rk_step

GRID = np.ones((5, 6)) + 0.3 * np.sin(np.arange(30.0)).reshape(5, 6)
ARM = ([0, -0.612, -0.5723, 0, 0, 0], [0.1273, 0, 0, 0.163941, 0.1157, 0.0922],
       [np.pi / 2, 0, 0, np.pi / 2, -np.pi / 2, 0])  # fmt: skip
ANGLES = [np.array(a) for a in (0.3, 1.0, 2.0)]
POINTS, SEEN = np.linspace(-1.0, 1.0, 6)[:, None], np.cos(np.arange(6.0))
likelihood = published.make_gp_funs(published.rbf_covariance)
PUBLISHED = {
    "black_scholes_merton": (
        published.black_scholes_merton,
        [np.array([95.0, 110.0]), np.array([100.0, 100.0]), np.array([0.5, 2.0]), np.array(0.03),
         np.array(0.25), np.array(0.01)],
    ),
    "forward": (lambda theta: published.forward(theta, *ARM), [np.linspace(0.2, 1.3, 6)]),
    "likelihood": (lambda p: likelihood(p, POINTS, SEEN), [np.array([0.1, -1.0, 0.2, -0.3])]),
    "burgers_2d": (
        lambda u, v: published.burgers_2d(u, v, 0.5, 0.5, 0.02, 0.1, 2), [GRID, GRID[::-1] * 1.1]
    ),
    "rk4": (
        lambda y: published.rk4(published.acrobot, y, [0, 0.1, 0.2]),
        [np.array([0.3, -0.2, 0.5, 0.1])],
    ),
    "euler2mat": (lambda i, j, k: published.euler2mat(i, j, k, "sxyx"), ANGLES),
    "turning": (lambda i, j, k: published.euler2mat(i, j, k, "rzyx"), ANGLES),
    "ekf_estimation": (
        lambda x, p, z, u: published.ekf_estimation(x, p, z, u, 0.1 * np.eye(4), np.eye(2)),
        [np.array([[1.0], [2.0], [0.4], [1.0]]), np.eye(4) + 0.1, np.array([[1.2], [2.1]]),
         np.array([[1.0], [0.1]])],
    ),
    "geodetic2enu": (
        lambda *place: published.geodetic2enu(*place, 48.0, 11.0, 500.0),
        [np.array([48.1, 47.0]), np.array([11.2, 12.0]), np.array([600.0, 0.0])],
    ),
}  # fmt: skip


def flat(found: Any) -> Any:
    parts = found if isinstance(found, list | tuple) else [found]
    return [np.asarray(part) for part in parts]


@pytest.mark.parametrize("name", [*INSTALLED, *PUBLISHED])
def test_a_published_function_is_traced_unchanged_and_has_its_gradient(name: str) -> None:
    function, arrays = (INSTALLED | PUBLISHED)[name]
    through = [scipy, np] if name in INSTALLED else []
    graph = pg.trace(function, *[pg.spec(np.shape(a)) for a in arrays], through=through)
    found = flat(pg.compile(graph)(*arrays))
    for one, other in zip(found, flat(function(*arrays)), strict=True):
        np.testing.assert_allclose(one, other, 1e-11, 1e-13)
    pg.check_grads(graph, arrays)


def test_there_are_twenty_five_of_fifteen_lines() -> None:
    own = [f for n, f in vars(published).items() if inspect.isfunction(f) and n != "motion_model"]
    theirs = [
        f for n, (f, _) in INSTALLED.items() if "lambda" not in f.__name__ and f is not stepped
    ]
    theirs += [chebvander, hermvander, rk_step]
    long = [f for f in [*own, *theirs] if len(inspect.getsource(f).splitlines()) >= 15]
    assert len(long) >= 25


def test_nothing_but_the_programs_is_left_of_numpy_in_a_copy() -> None:
    before = dict(vars(published))
    pg.trace(PUBLISHED["forward"][0], pg.spec((6,)))
    assert dict(vars(published)) == before


def added(x: Any) -> Any:
    y = np.zeros((3, 4))
    whole = y[:, 1:]
    y[0, 1:-1] += x
    y[1] -= 2.0
    y[:, 0] *= 3.0
    return y, whole


def misplaced(x: Any) -> Any:
    y = np.zeros((3, 2))
    row = y[0]
    row += x
    y[1] = row
    return y


def test_parts_are_added_to_in_place() -> None:
    x = np.array([1.0, 2.0])
    for one, other in zip(pg.jit(added)(x), added(x), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(pg.jit(misplaced)(x), misplaced(x))
