"""How exact special functions are, against mpmath: the bounds that the reference tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest

import primgraph as pg
from primgraph.approximations import quadrature
from primgraph.ir.interpret import interpret
from primgraph.primitives.special_functions.formulas import FORMULAS, piece

Points = tuple[np.ndarray, ...]


class Accuracy(NamedTuple):
    """A function, what it is by mpmath, points of a generator, and units in the last place.

    NumPy's loops differ from processor to processor. Errors found with AVX2 and with the baseline
    of x86-64 are smaller by a quarter at the least.
    Smaller results than `least` may be as wrong as that.
    """

    function: Callable[..., Any]
    known: Callable[..., Any]
    points: Callable[[np.random.Generator, int], Points]
    units: float
    least: float = 0.0


def uniform(*intervals: tuple[float, float]) -> Callable[[np.random.Generator, int], Points]:
    return lambda rng, n: tuple(rng.uniform(low, high, n) for low, high in intervals)


def scales(*powers: tuple[float, float]) -> Callable[[np.random.Generator, int], Points]:
    """Numbers of all sizes between powers of ten."""
    return lambda rng, n: tuple(10 ** rng.uniform(low, high, n) for low, high in powers)


def around_mean(rng: np.random.Generator, n: int) -> Points:
    """Shapes and ends of gamma distributions, up to tails of a few standard deviations."""
    a = 10 ** rng.uniform(-2, 2.5, n)
    return a, a * np.exp(rng.normal(size=n) / np.sqrt(np.maximum(a, 0.3)))


def within_beta(rng: np.random.Generator, n: int) -> Points:
    a, b = (10 ** rng.uniform(-1, 2, n) for _ in range(2))
    spread = np.sqrt(1 / np.maximum(a, 0.3) + 1 / np.maximum(b, 0.3))
    return a, b, 1 / (1 + b / a * np.exp(rng.normal(size=n) * spread))


def log_beta(a: Any, b: Any) -> Any:
    return mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)


def lower_gamma(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, 0, x, regularized=True)


def upper_gamma(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, x, mpmath.inf, regularized=True)


def lower_beta(a: Any, b: Any, x: Any) -> Any:
    """By a series of positive terms from the nearer end. DLMF 8.17.8."""
    if x > a / (a + b):
        return 1 - lower_beta(b, a, 1 - x)
    scale = x**a * (1 - x) ** b / (a * mpmath.beta(a, b))
    return scale * mpmath.hyp2f1(a + b, 1, a + 1, x)


def normal_log(x: Any) -> Any:
    return mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2)


# The bounds that stand beside the formulas.
ULP = {formula.name: formula.ulp for formula in FORMULAS.values() if formula.ulp is not None}

ROWS: dict[str, Accuracy] = {
    "gammaln": Accuracy(pg.special.gammaln, mpmath.loggamma, scales((-10, 10)), ULP["gammaln"]),
    "gammaln, near its zeros": Accuracy(
        pg.special.gammaln, mpmath.loggamma, uniform((0.8, 2.2)), 8
    ),
    "gamma": Accuracy(pg.special.gamma, mpmath.gamma, uniform((0.0, 171.0)), ULP["gamma"]),
    "digamma": Accuracy(pg.special.digamma, mpmath.digamma, scales((-5, 8)), ULP["digamma"]),
    "digamma, near its zero": Accuracy(
        pg.special.digamma, mpmath.digamma, uniform((1.4, 1.5)), 4
    ),
    "polygamma": Accuracy(
        lambda x: pg.special.polygamma(3, x), lambda x: mpmath.psi(3, x), scales((-2, 3)), 8
    ),
    "betaln": Accuracy(pg.special.betaln, log_beta, scales((-3, 4), (-3, 4)), 32, 0.1),
    "beta": Accuracy(pg.special.beta, mpmath.beta, uniform((0.0, 80.0), (0.0, 80.0)), 20),
    "erf": Accuracy(pg.erf, mpmath.erf, uniform((-6.5, 6.5)), 2),
    "erfc": Accuracy(pg.erfc, mpmath.erfc, uniform((-6.5, 26.0)), 3),
    "erfinv": Accuracy(pg.special.erfinv, mpmath.erfinv, uniform((-1.0, 1.0)), ULP["erfinv"]),
    "erfcx": Accuracy(
        pg.special.erfcx,
        lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
        uniform((-5.0, 20.0)),
        ULP["erfcx"],
    ),
    "log_ndtr": Accuracy(pg.special.log_ndtr, normal_log, uniform((-38.0, 8.0)), ULP["log_ndtr"]),
    "logit": Accuracy(
        pg.special.logit, lambda p: mpmath.log(p / (1 - p)), uniform((0.0, 1.0)), ULP["logit"]
    ),
    "erfcinv": Accuracy(
        pg.special.erfcinv, lambda q: mpmath.erfinv(1 - q), uniform((0.0, 2.0)), ULP["erfcinv"]
    ),
    "xlogy": Accuracy(
        pg.special.xlogy, lambda x, y: x * mpmath.log(y), scales((-5, 5), (-5, 5)), ULP["xlogy"]
    ),
    "xlog1py": Accuracy(
        pg.special.xlog1py,
        lambda x, y: x * mpmath.log1p(y),
        scales((-5, 5), (-5, 5)),
        ULP["xlog1py"],
    ),
    "gammainc": Accuracy(pg.special.gammainc, lower_gamma, around_mean, 300),
    "gammaincc": Accuracy(pg.special.gammaincc, upper_gamma, around_mean, 300),
    "betainc": Accuracy(pg.special.betainc, lower_beta, within_beta, 300),
}  # fmt: skip


def largest_error(row: Accuracy, seed: int, count: int) -> float:
    """The largest error at so many points, in units of the last place."""
    points = row.points(np.random.default_rng(seed), count)
    specs = [pg.spec(p.shape) for p in points]
    found = pg.compile(pg.trace(lambda *xs: row.function(*xs), *specs))(*points)
    worst = 0.0
    with mpmath.workdps(40):
        for value, *at in zip(found.tolist(), *(p.tolist() for p in points), strict=True):
            exact = row.known(*map(mpmath.mpf, at))
            unit = float(np.spacing(max(abs(float(exact)), row.least)))
            error = abs(mpmath.mpf(value) - exact) / mpmath.mpf(unit)
            worst = max(worst, abs(float(error)))
    return worst


def test_special_functions_are_as_exact_as_the_reference_tells() -> None:
    for name, row in ROWS.items():
        assert largest_error(row, 0, 12) <= row.units, name


@pytest.mark.parametrize("formula", FORMULAS.values(), ids=lambda f: f.name)
def test_the_graph_of_a_special_function_is_its_numpy_function(formula: Any) -> None:
    """The graph, from which C is emitted, has the results of the text that NumPy runs."""
    assert formula.ulp is None or formula.name in ROWS
    at = np.array([-np.inf, -200.5, -30.0, -9.75, -2.0, -0.75, -0.25, -0.0, 0.0, 1e-300, 0.2, 0.5])
    at = np.concatenate([at, [0.9, 1.0, 1.4616, 1.9, 2.5, 8.5, 12.0, 45.0, 180.0, np.inf, np.nan]])
    points = [v.ravel() for v in np.meshgrid(*[at] * len(formula.operands))]
    graph = piece(formula.function.__name__)
    with np.errstate(all="ignore"):
        expected = formula.function(*points)
        found = [interpret(graph, *xs)[0] for xs in zip(*points, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=4e-16, atol=0.0)


# What is left of a bound for processors on which nothing was measured.
MARGIN = 1.25


@pytest.mark.long
@pytest.mark.parametrize("name", ROWS)
def test_special_functions_are_exact_on_many_points(name: str) -> None:
    assert MARGIN * largest_error(ROWS[name], 1, 400) <= ROWS[name].units


def test_series_and_fractions_meet_the_quadrature_where_they_end() -> None:
    """On both sides of each border between them, with the digits that both have."""
    rng = np.random.default_rng(2)
    a = np.concatenate([rng.uniform(0.02, 120.0, 400), [99.99, 100.0, 100.01], np.full(80, 900.0)])
    x = a * rng.choice([0.3, 0.6999, 0.7001, 0.99, 1.01, 1.2999, 1.3001, 3.0], a.size)
    x[::5] = rng.choice([1.4999, 1.5, 3.999, 4.0], x[::5].size)
    with np.errstate(all="ignore"):
        found, slowly = (f(a, x, 0, x < a) for f in (quadrature.gamma_part, quadrature.gamma_tail))
        both = [quadrature.gammainc(a, x, 0, upper) for upper in (False, True)]
    np.testing.assert_allclose(found, slowly, rtol=4e-14)
    np.testing.assert_allclose(both[0] + both[1], 1.0, rtol=1e-14)
    b = rng.choice([0.03, 0.999, 2.999, 3.001, 8.0, 60.0, 199.0, 201.0], a.size)
    x = np.minimum(rng.choice([0.2, 0.8999, 0.9001, 0.9999], a.size), 0.9999 * a / (a + b))
    with np.errstate(all="ignore"):
        found = quadrature.beta_part(a, b, x, 1.0 - x, 0, 0)
        slowly = quadrature.beta_tail(a, b, x, 1.0 - x, 0, 0)
    np.testing.assert_allclose(found, slowly, rtol=2e-13)


def test_what_lies_above_the_smallest_numbers_has_all_its_digits() -> None:
    a, x = (
        v.ravel()
        for v in np.meshgrid([1e-9, 1e-5, 3e-3, 0.01], [5e-324, 1e-300, 1e-20, 0.05, 0.0999])
    )
    with mpmath.workdps(40):
        known = [
            float(mpmath.gammainc(mpmath.mpf(float(p)), mpmath.mpf(float(q)), regularized=True))
            for p, q in zip(a, x, strict=True)
        ]
    found = pg.special.gammaincc(a, x).numpy()
    np.testing.assert_allclose(found, known, rtol=2e-14)
    ends = pg.special.gammainc([1e-300, 0.0, -1.0, 2.0], [1e300, np.inf, np.inf, np.inf]).numpy()
    np.testing.assert_array_equal(ends, [1.0, 1.0, np.nan, 1.0])
