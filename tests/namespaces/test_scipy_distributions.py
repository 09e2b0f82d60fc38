"""All continuous distributions by SciPy's names: values beside SciPy's, slopes by differences.

Points are quantiles, also far in both tails. Parameters of shape are those of SciPy's own tests.
"""

from __future__ import annotations

import warnings
from typing import Any

import mpmath
import numpy as np
import pytest

import primgraph as pg
from primgraph.scipy import stats

ss = pytest.importorskip("scipy.stats")
params = pytest.importorskip("scipy.stats._distr_params")

# Not here yet: powers of matrices of the size of a parameter, and integrals of sharp peaks.
LACKING = {"kstwo", "levy_stable"}
ROWS = [(n, tuple(map(float, shapes))) for n, shapes in params.distcont if n not in LACKING]
SAMPLE = {"burr12", "genextreme", "invgauss", "landau"}
# Where SciPy's values are not exact to 1e-10, these points are left out: SciPy integrates with
# adaptive rules, or subtracts numbers that are close. Exact values are those of mpmath, below.
INEXACT = {
    "cosine": (1e-9, 1.0),
    "gausshyper": (1e-5, 1.0 - 1e-5),
    "geninvgauss": (1e-5, 0.99),
    "kstwobign": (0.55, 1.0),
    "norminvgauss": (1e-5, 1.0 - 1e-5),
    "semicircular": (1e-5, 1.0),
    "studentized_range": (1e-3, 0.98),
    "tukeylambda": (1e-5, 1.0 - 1e-5),
}
QUANTILES = np.array([1e-12, 1e-6, 1e-3, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 0.999, 1.0 - 1e-6])
METHODS = ("pdf", "logpdf", "cdf", "sf", "logcdf", "logsf")
EPS = np.finfo(float).eps


def rows(is_sample: bool) -> list[Any]:
    return [
        pytest.param(name, shapes, id=f"{name}-{i}")
        for i, (name, shapes) in enumerate(ROWS)
        if (name in SAMPLE) == is_sample
    ]


def all_values(name: str, x: Any, shapes: Any) -> Any:
    own = getattr(stats, name)
    return pg.stack([getattr(own, m)(x, *shapes) for m in METHODS])


@np.errstate(all="ignore")
def check_values(name: str, shapes: tuple[float, ...]) -> None:
    own, theirs = getattr(stats, name), getattr(ss, name)
    low, high = INEXACT.get(name, (0.0, 1.0))
    q = QUANTILES[(low <= QUANTILES) & (high >= QUANTILES)]
    x = own.ppf(pg.tensor(q), *shapes).numpy()
    found = dict(zip(METHODS, all_values(name, pg.tensor(x), shapes).numpy(), strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = {m: getattr(theirs, m)(x, *shapes) for m in METHODS}
        quantiles = theirs.ppf(q, *shapes)
    # Parts are not known better than the number that they are taken at, and than their rest of one.
    slack = 16.0 * EPS + 4.0 * EPS * np.abs(x) * wanted["pdf"]
    more = {"logpdf": 1e-12, "cdf": slack, "sf": slack,
            "logcdf": slack / wanted["cdf"], "logsf": slack / wanted["sf"]}  # fmt: skip
    for m in METHODS:
        allowed = 1e-10 * np.abs(wanted[m]) + more.get(m, 0.0)
        bad = ~(np.abs(found[m] - wanted[m]) <= allowed) & (found[m] != wanted[m])
        assert not bad.any(), (m, x[bad], found[m][bad], wanted[m][bad])
    height = np.maximum(wanted["pdf"], 1e-300)
    allowed = 1e-10 * np.abs(quantiles) + 16.0 * EPS / height + 1e-300
    assert np.all(np.abs(x - quantiles) <= allowed), (q, x, quantiles)
    upper = own.isf(pg.tensor(q), *shapes).numpy()
    slack = 1e-15 + 4.0 * EPS * np.abs(upper) * own.pdf(pg.tensor(upper), *shapes).numpy()
    missed = np.abs(own.sf(pg.tensor(upper), *shapes).numpy() - q)
    assert np.all(missed <= 1e-10 * q + slack), (upper, missed)


def check_slopes(name: str, shapes: tuple[float, ...]) -> None:
    q = np.array([0.2, 0.6])
    x = getattr(stats, name).ppf(pg.tensor(q), *shapes).numpy()
    place = 1 + len(shapes)

    def every(v: Any) -> Any:
        own = [v[1 + i] for i in range(len(shapes))]
        values = [getattr(getattr(stats, name), m)(v[0] * x, *own) for m in METHODS]
        return pg.stack([*values, getattr(stats, name).ppf(v[place] * q, *own)])

    at = np.array([1.0, *shapes, 1.0])
    slopes = pg.jacobian(every)(at)
    compiled = pg.jit(every)
    for i in range(len(at)):
        if name in ("irwinhall", "ksone") and i == 1:
            continue
        step = np.zeros(len(at))
        step[i] = 1e-3 * max(abs(at[i]), 0.05)
        near = [w * (compiled(at + k * step) - compiled(at - k * step))
                for k, w in ((1, 0.75), (2, -0.15), (3, 1.0 / 60.0))]  # fmt: skip
        wanted = sum(near) / step[i]
        np.testing.assert_allclose(slopes[..., i], wanted, 1e-6, 1e-8, err_msg=f"{name} by {i}")


@pytest.mark.parametrize(("name", "shapes"), rows(is_sample=True))
def test_some_distributions_have_scipys_values_and_exact_slopes(
    name: str, shapes: tuple[float, ...]
) -> None:
    check_values(name, shapes)
    check_slopes(name, shapes)


@pytest.mark.dense
@pytest.mark.parametrize(("name", "shapes"), rows(is_sample=False))
def test_all_distributions_have_scipys_values_and_exact_slopes(
    name: str, shapes: tuple[float, ...]
) -> None:
    check_values(name, shapes)
    check_slopes(name, shapes)


def test_every_distribution_of_scipys_is_here_or_named() -> None:
    names = {n for n in dir(ss) if isinstance(getattr(ss, n), ss.rv_continuous)}
    assert names - set(stats.__all__) == LACKING


# By the density in mpmath, where SciPy is not exact.
EXACT: dict[str, Any] = {
    "geninvgauss": (
        lambda x, p, b: x ** (p - 1) * mpmath.exp(-b * (x + 1 / x) / 2) / 2 / mpmath.besselk(p, b),
        (2.3, 1.5), 13.6, [13.6, 20, 40, mpmath.inf],
    ),
    "norminvgauss": (
        lambda x, a, b: (
            a * mpmath.besselk(1, a * mpmath.sqrt(1 + x * x)) / mpmath.pi / mpmath.sqrt(1 + x * x)
            * mpmath.exp(mpmath.sqrt(a * a - b * b) + b * x)
        ),
        (1.25, 0.5), 13.8, [13.8, 20, 40, mpmath.inf],
    ),
    "gausshyper": (
        lambda x, a, b, c, z: (
            x ** (a - 1) * (1 - x) ** (b - 1) / (1 + z * x) ** c / mpmath.beta(a, b)
            / mpmath.hyp2f1(c, a, a + b, -z)
        ),
        (13.7, 3.1, 2.5, 5.2), 0.998, [0.998, 0.999, 1],
    ),
    "semicircular": (
        lambda x: 2 / mpmath.pi * mpmath.sqrt(1 - x * x), (), 0.999999, [0.999999, 1],
    ),
    "cosine": (lambda x: (1 + mpmath.cos(x)) / 2 / mpmath.pi, (), 3.1412, [3.1412, mpmath.pi]),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.dense) if n == "norminvgauss" else n for n in EXACT]
)
def test_tails_are_exact_where_scipys_are_not(name: str) -> None:
    density, shapes, x, path = EXACT[name]
    own = getattr(stats, name)
    with mpmath.workdps(20):
        exact = [mpmath.mpf(s) for s in shapes]
        wanted = mpmath.quad(lambda t: density(t, *exact), [mpmath.mpf(p) for p in path])
        height = density(mpmath.mpf(x), *exact)
    found = own.sf(pg.tensor(x), *shapes).numpy()
    slack = 4.0 * EPS * x * float(height)
    np.testing.assert_allclose(found, float(wanted), 1e-10, slack)
    np.testing.assert_allclose(own.pdf(pg.tensor(x), *shapes).numpy(), float(height), 1e-10)


def test_kolmogorovs_distribution_is_exact_on_both_sides_of_the_change_of_series() -> None:
    def below(x: Any) -> Any:
        return 1 - 2 * mpmath.nsum(lambda k: (-1) ** (k - 1) * mpmath.exp(-2 * (k * x) ** 2),
                                   [1, mpmath.inf])  # fmt: skip

    with mpmath.workdps(30):
        for x in (0.4, 0.8275, 0.8999, 0.9001, 2.0):
            at = mpmath.mpf(x)
            found = stats.kstwobign.cdf(pg.tensor(x)).numpy()
            np.testing.assert_allclose(found, float(below(at)), 1e-12)
            slope = float(mpmath.diff(below, at))
            np.testing.assert_allclose(stats.kstwobign.pdf(pg.tensor(x)).numpy(), slope, 1e-11)


def test_the_range_of_two_normal_numbers_is_students_distribution() -> None:
    q = np.array([1e-3, 0.3, 3.0, 15.0, 40.0])
    for df in (1.0, 10.0, 300.0):
        found = [getattr(stats.studentized_range, m)(pg.tensor(q), 2.0, df).numpy()
                 for m in ("sf", "pdf")]  # fmt: skip
        t = q / np.sqrt(2.0)
        np.testing.assert_allclose(found[0], 2.0 * ss.t.sf(t, df), 1e-10)
        np.testing.assert_allclose(found[1], np.sqrt(2.0) * ss.t.pdf(t, df), 1e-10)


def test_the_range_of_normal_numbers_near_0() -> None:
    density = stats.studentized_range.pdf
    at_zero = [density(pg.tensor(0.0), k, 10.0).numpy() for k in (1.5, 2.0, 3.0)]
    wanted = [np.inf, np.sqrt(2.0) * ss.t.pdf(0.0, 10.0), 0.0]
    np.testing.assert_allclose(at_zero, wanted, 1e-13)
    for method in ("logcdf", "logpdf"):
        found = getattr(stats.studentized_range, method)(pg.tensor([0.0, -1.0]), 3.0, 10.0)
        np.testing.assert_array_equal(found.numpy(), -np.inf)
    # For three numbers it is six times the integral of the third power of the normal density.
    q = np.array([1e-12, 1e-9, 1e-6])
    wanted = np.sqrt(3.0) / np.pi * q
    np.testing.assert_allclose(density(pg.tensor(q), 3.0, 10.0).numpy(), wanted, 1e-10)


def test_smirnovs_density_below_the_smallest_number() -> None:
    density = stats.ksone.pdf
    np.testing.assert_array_equal(density(pg.tensor(0.9), 1000.0).numpy(), 0.0)
    assert pg.grad(lambda x: density(x, 1000.0))(0.9) == 0.0
    # All terms but those of the first 100 are zero.
    x, n = mpmath.mpf("0.9"), 1000
    with mpmath.workdps(30):
        wanted = mpmath.log(-mpmath.diff(lambda x: sum(
            mpmath.binomial(n, j) * x * (x + mpmath.mpf(j) / n) ** (j - 1)
            * (1 - x - mpmath.mpf(j) / n) ** (n - j) for j in range(100)), x))  # fmt: skip
    found = stats.ksone.logpdf(pg.tensor(0.9), 1000.0).numpy()
    np.testing.assert_allclose(found, float(wanted), 1e-12)


def test_no_events_are_expected_at_infinity() -> None:
    found = stats.poisson.pmf(pg.tensor([np.inf, 3.0, 0.0]), 0.0).numpy()
    np.testing.assert_array_equal(found, [0.0, 0.0, 1.0])


def test_smirnovs_distribution_is_exact_on_all_pieces() -> None:
    x, n = np.array([0.05, 0.1999, 0.2001, 0.3, 0.5, 0.7, 0.95]), 5

    def above(x: Any) -> Any:
        places = [j for j in range(n) if mpmath.mpf(j) / n < 1 - x]
        return sum(mpmath.binomial(n, j) * x * (x + mpmath.mpf(j) / n) ** (j - 1)
                   * (1 - x - mpmath.mpf(j) / n) ** (n - j) for j in places)  # fmt: skip

    with mpmath.workdps(30):
        wanted = [float(above(mpmath.mpf(v))) for v in x]
        slopes = [float(-mpmath.diff(above, mpmath.mpf(v))) for v in x]
    np.testing.assert_allclose(stats.ksone.sf(pg.tensor(x), 5.0).numpy(), wanted, 1e-13)
    np.testing.assert_allclose(stats.ksone.pdf(pg.tensor(x), 5.0).numpy(), slopes, 1e-12)
    np.testing.assert_allclose(pg.grad(lambda x: pg.sum(stats.ksone.cdf(x, 5.0)))(x), slopes, 1e-11)
    assert np.isnan(stats.ksone.sf(pg.tensor(0.1), 2000.0).numpy())
    upper = [stats.ksone.pdf(pg.tensor(1.0), n).numpy() for n in (1.0, 2.0, 10.0)]
    assert upper == [1.0, 0.0, 0.0]


def test_quantiles_by_roots_have_derivatives_of_second_order() -> None:
    def quantile(v: Any) -> Any:
        return stats.gamma.ppf(v[0], v[1])

    at = np.array([0.3, 2.5])
    found = pg.hessian(quantile)(at)
    with mpmath.workdps(30):

        def exact(q: Any, a: Any) -> Any:
            return mpmath.findroot(lambda x: mpmath.gammainc(a, 0, x, regularized=True) - q, 1.9)

        orders = (((2, 0), (1, 1)), ((1, 1), (0, 2)))
        wanted = [[float(mpmath.diff(exact, (0.3, 2.5), n)) for n in row] for row in orders]
    np.testing.assert_allclose(found, wanted, 1e-9)


def test_quantiles_at_the_ends_and_beyond() -> None:
    q = np.array([-0.1, 0.0, 1.0, 1.1])
    for name, shapes in (("gamma", (2.0,)), ("cauchy", ()), ("weibull_min", (1.5,)),
                         ("genpareto", (-0.5,)), ("gumbel_r", ()), ("poisson", (2.0,)),
                         ("binom", (5.0, 0.3))):  # fmt: skip
        for method in ("ppf", "isf"):
            found = getattr(getattr(stats, name), method)(pg.tensor(q), *shapes).numpy()
            wanted = getattr(getattr(ss, name), method)(q, *shapes)
            if name == "cauchy":
                found = np.where(np.abs(found) > 1e15, np.sign(found) * np.inf, found)
            np.testing.assert_array_equal(found, wanted, err_msg=f"{name}.{method}")


def test_quantiles_of_whole_numbers() -> None:
    q = np.array([1e-9, 0.01, 0.3, 0.5, 0.77, 0.999])
    for name, shapes in (("poisson", (300.0,)), ("poisson", (0.3,)), ("binom", (40.0, 0.3)),
                         ("bernoulli", (0.4,))):  # fmt: skip
        found = getattr(stats, name).ppf(pg.tensor(q), *shapes).numpy()
        np.testing.assert_array_equal(found, getattr(ss, name).ppf(q, *shapes))
    assert pg.grad(lambda mu: stats.poisson.ppf(0.5, mu))(2.3) == 0.0


def test_programs_on_c_and_batches() -> None:
    def loss(a: Any, x: Any) -> Any:
        return pg.sum(stats.genextreme.logpdf(x, a)) + pg.sum(stats.gamma.ppf(x / 4.0, a + 2.0))

    x = np.array([0.5, 1.5, 2.5])
    graph = pg.trace(pg.value_and_grad(loss), pg.spec(()), pg.spec(3))
    wanted = pg.compile(graph)(0.1, x)
    for found in (pg.compile(graph, target="c")(0.1, x), pg.value_and_grad(loss)(0.1, x)):
        np.testing.assert_allclose(found, wanted, 1e-12)
    many = pg.vmap(lambda a: loss(a, x))(np.array([0.1, 0.2]))
    np.testing.assert_allclose(many[0], wanted[0], 1e-13)


WHOLE = [("bernoulli", (0.3,)), ("betabinom", (5.0, 2.3, 0.63)), ("betanbinom", (5.0, 9.3, 1.0)),
         ("binom", (9.0, 0.4)), ("boltzmann", (0.4, 19.0)), ("dlaplace", (0.8,)), ("geom", (0.3,)),
         ("hypergeom", (21.0, 18.0, 11.0)), ("logser", (0.6,)), ("nbinom", (4.5, 0.4)),
         ("nchypergeom_fisher", (14.0, 8.0, 6.0, 0.5)), ("nhypergeom", (20.0, 7.0, 0.0)),
         ("nchypergeom_wallenius", (14.0, 8.0, 6.0, 0.5)), ("nhypergeom", (20.0, 7.0, 2.0)),
         ("planck", (0.51,)), ("poisson", (2.6,)), ("randint", (-3.0, 8.0)),
         ("skellam", (5.0, 3.0)), ("yulesimon", (5.0,)), ("zipf", (4.6,)),
         ("zipfian", (0.75, 15.0)), ("zipfian", (1.0, 900.0))]  # fmt: skip
# The parameter that is differentiated by, if it is not the first one; None where all are whole.
PLACE_OF = {"betabinom": 1, "betanbinom": 2, "binom": 1, "hypergeom": None, "nchypergeom_fisher": 3,
            "nchypergeom_wallenius": 3, "nhypergeom": None, "randint": None}  # fmt: skip


@pytest.mark.parametrize(("name", "shapes"), WHOLE)
def test_distributions_of_whole_numbers(name: str, shapes: tuple[float, ...]) -> None:
    own, theirs = getattr(stats, name), getattr(ss, name)
    k = np.array([-9.0, -3.0, -1.0, 0.0, 0.5, 1.0, 2.0, 4.0, 7.0, 8.0, 11.0, 12.0])
    for method in ("pmf", "logpmf", "cdf", "sf", "logcdf", "logsf"):
        with np.errstate(all="ignore"):
            wanted = getattr(theirs, method)(k, *shapes)
        found = getattr(own, method)(pg.tensor(k), *shapes).numpy()
        np.testing.assert_allclose(found, wanted, 1e-10, 1e-15, err_msg=method)
    q = np.array([1e-4, 0.013, 0.21, 0.56, 0.87, 0.9991])
    np.testing.assert_array_equal(own.ppf(pg.tensor(q), *shapes).numpy(), theirs.ppf(q, *shapes))
    place = PLACE_OF.get(name, 0)
    if place is None:
        return
    at = np.array([1.0, 2.0, 4.0]) if name != "bernoulli" else np.array([0.0, 1.0])
    step = 1e-5

    def values(s: Any) -> Any:
        own_shapes = [s if i == place else v for i, v in enumerate(shapes)]
        return pg.stack([getattr(own, m)(at, *own_shapes) for m in ("logpmf", "cdf", "sf")])

    found = pg.jvp(values, np.float64(shapes[place]), np.float64(1.0))[1]
    ends = [values(pg.tensor(shapes[place] + e)).numpy() for e in (step, -step)]
    np.testing.assert_allclose(found, (ends[0] - ends[1]) / (2.0 * step), 1e-6, 1e-8)


def test_distributions_of_whole_numbers_far_in_the_tails() -> None:
    """Beside sums in mpmath, where SciPy has zero or no digits."""
    with mpmath.workdps(30):
        total = mpmath.nsum(lambda k: mpmath.mpf("0.99") ** k / k, [3001, mpmath.inf])
        wanted = float(total / -mpmath.log(mpmath.mpf("0.01")))
        np.testing.assert_allclose(stats.logser.sf(pg.tensor(3000.0), 0.99).numpy(), wanted, 1e-10)
        # The integral of (1 - t**(1 / 40))**60.
        whole = 40 * mpmath.beta(40, 61)
    found = stats.nchypergeom_wallenius.pmf(pg.tensor(0.0), 140.0, 80.0, 60.0, 0.5).numpy()
    np.testing.assert_allclose(found, float(whole), 1e-10)
    # More places than are summed.
    assert np.isnan(stats.betabinom.cdf(pg.tensor(4000.0), 9000.0, 1.0, 1.0).numpy())
    at = np.array([1.0, 40.0, 5000.0])
    found = stats.zipfian.cdf(pg.tensor(at), 1.3, 10000.0).numpy()
    np.testing.assert_allclose(found, ss.zipfian.cdf(at, 1.3, 10000), 1e-13)


def test_every_distribution_of_whole_numbers_of_scipys_is_here_or_named() -> None:
    names = {n for n in dir(ss) if isinstance(getattr(ss, n), ss.rv_discrete)}
    assert not names - set(stats.__all__)
    assert {name for name, _ in WHOLE} == names - {"poisson_binom"}


@pytest.mark.parametrize("size", [1, 5, 60])
def test_the_number_of_successes_of_different_trials(size: int) -> None:
    own, theirs, rng = stats.poisson_binom, ss.poisson_binom, np.random.default_rng(size)
    p, k = rng.uniform(0.0, 1.0, size), np.arange(-1.0, size + 2)
    p[0] = 0.25
    for name in ("pmf", "cdf", "sf", "logpmf", "logcdf"):
        with np.errstate(all="ignore"):
            wanted = getattr(theirs, name)(k, p)
        found = getattr(own, name)(pg.tensor(k), p).numpy()
        np.testing.assert_allclose(found, wanted, 1e-10, 1e-14, err_msg=name)
    with np.errstate(divide="ignore"):
        upper = np.log(own.sf(pg.tensor(k), p).numpy())
    np.testing.assert_allclose(own.logsf(pg.tensor(k), p).numpy(), upper, 1e-12, 1e-14)
    q = np.array([0.0, 0.01, 0.4, 0.9, 1.0, -0.1, np.nan])
    for name in ("ppf", "isf"):
        wanted = getattr(theirs, name)(q, p)
        found = getattr(own, name)(pg.tensor(q), p).numpy()
        np.testing.assert_array_equal(found[:4], wanted[:4], err_msg=name)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted), err_msg=name)
    # All probabilities are of first degree in each chance.
    slope = pg.jacobian(lambda p: own.cdf(pg.astype(k, float) + 0.0 * p[0], p))(p)
    ends = [own.cdf(pg.tensor(k), np.where(np.arange(size) == 0, end, p)).numpy()
            for end in (0.0, 1.0)]  # fmt: skip
    np.testing.assert_allclose(slope[:, 0], ends[1] - ends[0], 1e-11, 1e-15)


def test_parameters_and_numbers_of_different_trials() -> None:
    own, p = stats.poisson_binom, np.array([[0.2, 0.7, 0.4], [0.5, 0.5, 1.5]])
    found = own.pmf(pg.tensor([1.0, 1.0]), p).numpy()
    np.testing.assert_allclose(found, [ss.poisson_binom.pmf(1, p[0]), np.nan], 1e-13)
    assert own.pmf(pg.tensor(1.5), p[0]).numpy() == 0.0
    assert own.pmf(pg.tensor(3.0), p[0], loc=2).numpy() == found[0]
    assert np.isnan(own.cdf(pg.tensor(np.nan), p[0]).numpy())
    assert own(p[0]).pmf(1) == ss.poisson_binom.pmf(1, p[0])
    compiled = pg.jit(lambda p: own.logpmf(pg.asarray(2.0), p), target="c")
    np.testing.assert_allclose(compiled(p[0]), ss.poisson_binom.logpmf(2, p[0]), 1e-12)


# Beside SciPy's own row of parameters: where the density at an end is finite, infinite or zero.
AT_ENDS: dict[str, list[tuple[float, ...]]] = {
    "alpha": [(3.57,)], "burr": [(2.0, 0.5), (0.5, 0.5), (3.0, 1.2)], "dpareto_lognorm": [
        (0.3, 1.2, 1.5, 2.0), (0.3, 1.2, 1.5, 0.5), (0.3, 1.2, 1.5, 1.0)],
    "exponweib": [(2.0, 0.5), (0.5, 0.5), (2.9, 1.9)], "fatiguelife": [(2.0,)],
    "fisk": [(1.0,), (0.5,), (3.1,)], "genextreme": [(-0.1,), (0.4,)],
    "gengamma": [(2.0, 0.5), (4.4, 3.1), (4.4, -3.1), (0.4, 1.5)], "halfgennorm": [(0.7,), (2.5,)],
    "genhalflogistic": [(0.77,), (1.0,)], "invgamma": [(4.1,)], "invgauss": [(0.2,)],
    "invweibull": [(2.0,)], "johnsonsb": [(4.3, 3.2)], "kappa3": [(0.6,), (1.7,)],
    "kappa4": [(-0.1, 0.1), (0.0, 0.1), (1.0, 1.0), (-0.2, -0.5)],
    "kstwobign": [()], "levy": [()], "levy_l": [()], "loglaplace": [(1.0,), (0.5,), (3.3,)],
    "mielke": [(1.0, 2.0), (0.5, 2.0), (4.6, 2.0)], "powerlaw": [(1.0,), (0.7,), (1.7,)],
    "powerlognorm": [(2.1, 0.4)], "recipinvgauss": [(0.6,)], "wald": [()],
}  # fmt: skip
# Limits of the logarithm of the density that SciPy lacks: it has NaN.
LIMITS = {
    ("exponweib", (2.0, 0.5)): 0.0,
    ("mielke", (1.0, 2.0)): 0.0,
    ("kappa4", (-0.2, -0.5)): -np.inf,
}


@pytest.mark.parametrize("name", AT_ENDS)
def test_ends_of_the_support_and_what_is_not_a_number(name: str) -> None:
    own, theirs = getattr(stats, name), getattr(ss, name)
    for shapes in AT_ENDS[name]:
        ends = np.array(theirs.support(*shapes))
        x = np.append(ends[np.isfinite(ends)], np.nan)
        with np.errstate(all="ignore"):
            wanted = np.stack([getattr(theirs, m)(x, *shapes) for m in METHODS])
        found = all_values(name, pg.tensor(x), shapes).numpy()
        lacks = np.isnan(wanted) & ~np.isnan(x)
        assert not lacks.any() or (name, shapes) in LIMITS
        wanted = np.where(lacks, LIMITS.get((name, shapes), 0.0), wanted)
        wanted[0] = np.exp(wanted[1])
        np.testing.assert_allclose(found, wanted, 1e-12, 1e-15, err_msg=str(shapes))
        scaled = own.pdf(pg.tensor(2.0 * x + 0.5), *shapes, loc=0.5, scale=2.0).numpy()
        np.testing.assert_allclose(scaled, wanted[0] / 2.0, 1e-12, err_msg=str(shapes))


def test_densities_at_what_is_not_a_number_are_none() -> None:
    for name, shapes in (("trapezoid", (0.2, 0.8)), ("irwinhall", (10.0,))):
        assert np.isnan(all_values(name, pg.tensor([np.nan]), shapes).numpy()).all()


def test_quantiles_at_0_and_1_are_ends_of_the_support() -> None:
    for name, shapes in (("alpha", (4.5,)), ("cauchy", ()), ("halfcauchy", ()), ("hypsecant", ())):
        for method in ("ppf", "isf"):
            found = getattr(getattr(stats, name), method)(pg.tensor([0.0, 1.0]), *shapes).numpy()
            with np.errstate(all="ignore"):
                wanted = getattr(getattr(ss, name), method)(np.array([0.0, 1.0]), *shapes)
            np.testing.assert_array_equal(found, wanted, err_msg=name)


def test_no_success_is_no_parameter() -> None:
    assert np.isnan(stats.geom.pmf(pg.tensor(3.0), 0.0).numpy())
    assert np.isnan(stats.nbinom.cdf(pg.tensor(3.0), 2.0, 0.0).numpy())


def test_parts_of_lognormal_power_laws_far_below_are_numbers() -> None:
    shapes = (0.3, 1.2, 1.5, 2.0)
    found = stats.dpareto_lognorm.cdf(pg.tensor([1e-18, 1e-100]), *shapes).numpy()
    wanted = ss.dpareto_lognorm.cdf(np.array([1e-18, 1e-100]), *shapes)
    np.testing.assert_allclose(found, wanted, 1e-9)


def test_limits_at_ends_keep_single_precision() -> None:
    for name, shapes in (("powerlaw", (1.7,)), ("burr", (3.0, 1.2)), ("fisk", (3.1,))):
        x = np.array([0.0, 0.5], np.float32)
        found = getattr(stats, name).pdf(pg.tensor(x), *[np.float32(v) for v in shapes])
        assert found.dtype == np.float32
