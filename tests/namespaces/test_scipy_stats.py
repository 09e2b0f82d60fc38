"""Distributions: values and edges as SciPy's, tails, derivatives by all parameters."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest

import primgraph as pg
from primgraph.scipy import stats

ss = pytest.importorskip("scipy.stats")

INF, NAN = math.inf, math.nan
REALS = np.array(
    [-INF, -40.0, -3.0, -1.0, -1e-5, 0.0, 1e-9, 0.2, 0.5, 1.0, 1.5, 3.0, 7.0, 40.0, INF, NAN]
)
WHOLE = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0, NAN])
# Parameters of shape, loc and scale; the last ones are out of range.
CONTINUOUS = {
    "norm": [(), (0.5, 2.0), (0.0, -1.0)],
    "uniform": [(), (-1.0, 3.0), (0.0, 0.0)],
    "expon": [(), (0.1, 2.0)],
    "laplace": [(), (0.1, 2.0)],
    "lognorm": [(0.7,), (0.7, -0.5, 2.0), (-1.0,)],
    "gamma": [(1.0,), (1.7,), (0.7, 0.0, 2.0), (-1.0,)],
    "chi2": [(2.0,), (3.0, 0.2, 1.5), (0.0,)],
    "beta": [(2.0, 3.0), (0.5, 1.0), (1.0, 1.0), (2.0, -1.0)],
    "t": [(1.0,), (3.5, 0.2, 2.0), (300.0,), (INF,), (-1.0,)],
}
DISCRETE = {
    "poisson": [(2.5,), (0.0,), (2.5, 1.0), (-1.0,)],
    "binom": [(4.0, 0.3), (4.0, 0.0), (4.0, 0.3, 1.0)],
    "bernoulli": [(0.3,), (0.0,), (1.0,)],
}
EVERY = [(name, row) for table in (CONTINUOUS, DISCRETE) for name, rows in table.items()
         for row in rows]  # fmt: skip


def methods(name: str) -> list[str]:
    density = "pmf" if name in DISCRETE else "pdf"
    return [density, f"log{density}", "cdf", "sf", "logcdf", "logsf"]


@pytest.mark.parametrize(("name", "row"), EVERY)
def test_values_and_edges_are_scipys(name: str, row: tuple[float, ...]) -> None:
    x = WHOLE if name in DISCRETE else REALS
    # SciPy's distribution function of Student's distribution has no digits just beside zero.
    x = np.delete(x, 6) if name == "t" else x
    own, theirs = getattr(stats, name), getattr(ss, name)
    for method in methods(name):
        with np.errstate(all="ignore"):
            wanted = getattr(theirs, method)(x, *row)
            np.testing.assert_array_equal(getattr(own, method)(x, *row), wanted)
        np.testing.assert_allclose(
            getattr(own, method)(pg.tensor(x), *row).numpy(), wanted, rtol=1e-12, atol=1e-15
        )


def all_of(name: str, x: Any, parameters: Any, asked: Any = None) -> Any:
    own = getattr(stats, name)
    return pg.stack([getattr(own, m)(x, *parameters) for m in asked or methods(name)])


INSIDE = {
    "norm": ([-1.2, 0.0, 2.3], (0.3, 1.7)),
    "uniform": ([0.4, 1.2], (0.1, 2.0)),
    "expon": ([0.4, 3.2], (0.1, 2.0)),
    "laplace": ([-0.7, 2.0], (0.1, 1.5)),
    "lognorm": ([0.4, 3.2], (0.7, 0.1, 1.2)),
    "gamma": ([0.4, 3.2], (1.7, 0.1, 1.2)),
    "chi2": ([0.4, 3.2], (3.0, 0.1, 1.2)),
    "beta": ([0.3, 0.8], (1.7, 2.4, 0.1, 1.2)),
    "t": ([-1.5, 0.3, 2.0], (3.5, 0.3, 1.2)),
}


@pytest.mark.parametrize("name", INSIDE)
def test_derivatives_by_all_parameters(name: str) -> None:
    x, row = INSIDE[name]
    # Twice by parameters of incomplete beta functions is for the tests of these.
    twice = methods(name)[:2] if name in ("beta", "t") else methods(name)
    once = [m for m in methods(name) if m not in twice]
    for order, asked in ((2, twice), (1, once)):
        if asked:
            graph = pg.trace(
                lambda x, p, a=asked: all_of(name, x, [p[i] for i in range(len(row))], a),
                pg.spec(len(x)), pg.spec(len(row)),
            )  # fmt: skip
            pg.check_grads(graph, [np.array(x), np.array(row)], order=order)


def test_derivatives_by_parameters_of_whole_numbers() -> None:
    k = np.array([0.0, 1.0, 3.0])
    for name, fixed, p in (("poisson", (), 1.7), ("binom", (4.0,), 0.3), ("bernoulli", (), 0.3)):
        at = np.minimum(k, 1.0) if name == "bernoulli" else k
        graph = pg.trace(lambda p, n=name, a=at, f=fixed: all_of(n, a, (*f, p))[:2], pg.spec(()))
        pg.check_grads(graph, [np.array(p)], order=2)
        slope = pg.grad(lambda p, n=name, f=fixed: getattr(stats, n).cdf(1.0, *f, p))(p)
        theirs, step = getattr(ss, name), 1e-6
        ends = [theirs.cdf(1.0, *fixed, p + e) for e in (step, -step)]
        np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2.0 * step), atol=1e-9)


def test_tails_and_slopes_there_are_exact() -> None:
    for x in (-40.0, -8.0, 4.0):
        value, slope = pg.value_and_grad(stats.norm.logcdf)(x)
        exact = mpmath.log(mpmath.ncdf(x))
        np.testing.assert_allclose(value, float(exact), rtol=1e-14)
        ratio = mpmath.npdf(x) / mpmath.ncdf(x)
        np.testing.assert_allclose(slope, float(ratio), rtol=1e-13)
    # The slope of Student's distribution function is its density, at zero as elsewhere.
    at = np.array([-2.0, -1e-4, 0.0, 1e-7, 1e-3, 0.5])
    slopes = pg.vjp(lambda x: stats.t.cdf(x, 3.5), at)[1]
    np.testing.assert_allclose(slopes, ss.t.pdf(at, 3.5), rtol=1e-12)
    for df in (0.5, 3.0, 40.0):
        below = pg.grad(lambda n: stats.t.cdf(1e-5, n))(df)
        above = pg.grad(lambda n: stats.t.cdf(0.3, n))(df)
        for found, x in ((below, 1e-5), (above, 0.3)):
            exact = mpmath.diff(lambda n, x=x: student(x, n), df)
            np.testing.assert_allclose(found, float(exact), rtol=1e-8)


def student(x: float, n: Any) -> Any:
    """The distribution function of Student's distribution for positive numbers."""
    z = n / (n + mpmath.mpf(x) ** 2)
    return 1 - mpmath.betainc(n / 2, mpmath.mpf(1) / 2, 0, z, regularized=True) / 2


def test_slopes_beyond_the_support_are_zero() -> None:
    for name, row in (
        ("beta", (0.5, 0.7)),
        ("gamma", (0.5,)),
        ("uniform", ()),
        ("lognorm", (1.0,)),
    ):
        own = getattr(stats, name)
        for method in ("pdf", "cdf", "sf"):
            found = pg.vjp(lambda x, m=method, o=own, r=row: getattr(o, m)(x, *r), np.array([-1.0]))
            assert found[1] == 0.0


EDGES: dict[str, Any] = {
    "gamma.pdf": lambda s: stats.gamma.pdf(np.array([0.0, 1.0]), s),
    "gamma.pdf, scaled": lambda s: stats.gamma.pdf(np.array([0.0, 1.0]), s, 0.0, s),
    "chi2.pdf": lambda s: stats.chi2.pdf(np.array([0.0, 1.0]), 2.0 * s),
    "beta.pdf": lambda s: stats.beta.pdf(np.array([0.0, 0.3, 1.0]), s, s),
    "binom.pmf": lambda s: stats.binom.pmf(np.array([0.0, 1.0, 3.0]), 3.0, s - 1.7),
    "poisson.pmf": lambda s: stats.poisson.pmf(np.array([0.0, 1.0, 2.0]), s - 1.7),
    "bernoulli.pmf": lambda s: stats.bernoulli.pmf(np.array([0.0, 1.0]), s - 1.7),
    "lognorm.cdf": lambda s: stats.lognorm.cdf(np.array([0.0, 1.5]), s),
    "lognorm.sf": lambda s: stats.lognorm.sf(np.array([0.0, 1.5]), s),
    "lognorm.logsf": lambda s: stats.lognorm.logsf(np.array([0.0, 1.5]), s),
    "lognorm.ppf": lambda s: stats.lognorm.ppf(np.array([0.0, 0.3]), s),
    "norm.pdf": lambda s: stats.norm.pdf(np.array([-INF, 0.3, INF]), s, s),
    "norm.cdf": lambda s: stats.norm.cdf(np.array([-INF, 0.3, INF]), s, s),
    "norm.logsf": lambda s: stats.norm.logsf(np.array([-INF, 0.3]), s, s),
    "t.cdf": lambda s: stats.t.cdf(np.array([-INF, 0.3, INF]), s, 0.0, s),
    "gamma.cdf": lambda s: stats.gamma.cdf(np.array([0.0, 0.3, INF]), s, 0.0, s),
    "dirichlet.pdf": lambda s: stats.dirichlet.pdf(np.array([0.0, 0.4, 0.6]), pg.stack([s, s, s])),
}


@pytest.mark.parametrize("name", EDGES)
def test_slopes_at_the_edge_of_the_support_by_a_shared_parameter(name: str) -> None:
    density = EDGES[name]
    one_sided = name.endswith("pmf")
    h = 1e-6
    ends = [np.asarray(density(pg.tensor(1.7 + e)).numpy()) for e in (h, 0.0 if one_sided else -h)]
    wanted = (ends[0] - ends[1]) / (h if one_sided else 2.0 * h)
    found = pg.jvp(density, np.float64(1.7), np.float64(1.0))[1]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    reverse = pg.grad(lambda s: pg.sum(density(s)))(1.7)
    np.testing.assert_allclose(reverse, np.sum(wanted), rtol=1e-4, atol=1e-5)


def test_slopes_of_densities_at_the_edge_by_the_variable() -> None:
    for a, slope in ((1.0, -1.0), (1.5, INF), (2.0, 1.0), (3.0, 0.0)):
        assert pg.grad(lambda x, a=a: stats.gamma.pdf(x, a))(0.0) == slope
    for b, slope in ((1.0, 2.0), (1.5, -INF), (2.0, -6.0), (3.0, 0.0)):
        found = pg.grad(lambda x, b=b: stats.beta.pdf(x, 2.0, b))(1.0)
        np.testing.assert_allclose(found, slope, rtol=1e-14)
    assert pg.grad(lambda a: stats.gamma.pdf(0.0, a))(1.0) == -INF
    assert pg.grad(lambda q: stats.lognorm.ppf(q, 0.7))(0.0) == INF
    # Second derivatives of the distribution functions are slopes of the densities.
    for modes in ((pg.grad, pg.grad), (pg.jacfwd, pg.grad)):
        second = modes[0](modes[1](lambda x: stats.gamma.cdf(x, 2.0)))
        np.testing.assert_allclose(second(0.0), 1.0, rtol=1e-14)
    mixed = pg.hessian(lambda p: stats.beta.cdf(p[0], p[1], p[2]))(np.array([1.0, 2.5, 3.0]))
    assert not np.any(mixed)


def test_slopes_where_two_exponentials_meet() -> None:
    for method, slope in (("cdf", 0.5), ("sf", -0.5), ("logcdf", 1.0), ("logsf", -1.0)):
        own = getattr(stats.laplace, method)
        assert pg.grad(own)(0.0) == slope
        assert pg.grad(lambda m, f=own: f(0.4, m))(0.4) == -slope
        assert pg.jvp(own, np.float64(0.0), np.float64(1.0))[1] == slope
        second = pg.grad(pg.grad(own))(0.0)
        low, high = sorted(float(pg.grad(pg.grad(own))(e)) for e in (-1e-9, 1e-9))
        assert low - 1e-8 <= second <= high + 1e-8


def test_parameters_by_name_in_programs_and_by_batches() -> None:
    def likelihood(a: Any, scale: Any, x: Any) -> Any:
        return pg.sum(stats.gamma.logpdf(x, a, scale=scale))

    x = np.array([0.5, 1.5, 2.5])
    wanted = ss.gamma.logpdf(x, 1.7, scale=2.0).sum()
    compiled = pg.jit(pg.value_and_grad(likelihood, (0, 1)))
    value, slopes = compiled(1.7, 2.0, x)
    np.testing.assert_allclose(value, wanted, rtol=1e-14)
    eager = pg.grad(likelihood, (0, 1))(1.7, 2.0, x)
    np.testing.assert_allclose(slopes, eager, rtol=1e-13)
    batched = pg.vmap(lambda a: stats.gamma.logpdf(x, a))(np.array([1.2, 1.7]))
    np.testing.assert_allclose(batched[1], ss.gamma.logpdf(x, 1.7), rtol=1e-14)
    # float32 is computed in float64 and rounded once.
    single = stats.norm.logpdf(pg.tensor(x.astype(np.float32)), 0.5)
    assert single.dtype == np.float32
    far = np.array([1e-3, 0.2], np.float32)
    for name, row in (("argus", (1.0,)), ("landau", ()), ("maxwell", ()), ("pearson3", (0.1,)),
                      ("truncpareto", (1.8, 5.3)), ("nct", (14.0, 0.25))):  # fmt: skip
        for method in ("logpdf", "logcdf"):
            own = getattr(getattr(stats, name), method)
            found = own(pg.tensor(far), *row)
            assert found.dtype == np.float32
            wanted = own(pg.tensor(far.astype(float)), *row).numpy().astype(np.float32)
            np.testing.assert_array_equal(found.numpy(), wanted, err_msg=name)
    # A distribution with its parameters.
    frozen = stats.norm(0.5, scale=2.0)
    np.testing.assert_allclose(frozen.logpdf(pg.tensor(x)).numpy(), ss.norm(0.5, 2.0).logpdf(x))
    np.testing.assert_array_equal(frozen.cdf(x), ss.norm(0.5, 2.0).cdf(x))
    np.testing.assert_allclose(
        stats.norm.ppf(pg.tensor([0.1, 0.9]), 0.5, 2.0).numpy(), ss.norm.ppf([0.1, 0.9], 0.5, 2.0)
    )
    for name, row in (("uniform", ()), ("expon", ()), ("lognorm", (0.7,))):
        q = np.array([0.0, 0.2, 0.9, 1.0])
        np.testing.assert_allclose(
            getattr(stats, name).ppf(pg.tensor(q), *row).numpy(), getattr(ss, name).ppf(q, *row),
            rtol=1e-13,
        )  # fmt: skip
    assert stats.norm.mean(0.5) == 0.5
    assert repr(stats.norm) == "<primgraph.scipy.stats.norm>"


def test_normal_vectors() -> None:
    x = np.array([[0.3, -0.2, 0.5], [1.0, 0.1, -0.7]])
    mean = np.array([0.1, 0.2, -0.3])
    cov = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.0]])
    theirs = ss.multivariate_normal
    for given in ((mean, cov), (mean, np.diag(cov)), (mean, 2.0), (None, cov), (mean,), ()):
        at = x if given and (given[0] is not None or len(given) > 1) else x[:, 0]
        for method in ("logpdf", "pdf"):
            wanted = getattr(theirs, method)(at, *given)
            found = getattr(stats.multivariate_normal, method)(pg.tensor(at), *given)
            np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-13)
    np.testing.assert_allclose(
        stats.multivariate_normal.entropy(mean, pg.tensor(cov)).numpy(), theirs.entropy(mean, cov)
    )
    graph = pg.trace(
        lambda x, m, c: stats.multivariate_normal.logpdf(x, m, (c + c.T) / 2.0), x, mean, cov
    )
    pg.check_grads(graph, [x, mean, cov], order=2)
    flat = np.diag([1.0, 1.0, 0.0])
    at = np.array([0.3, -0.2, 0.0])
    own = pg.tensor(at, requires_grad=True)
    found = stats.multivariate_normal.logpdf(own, np.zeros(3), flat, allow_singular=True)
    np.testing.assert_allclose(
        found.numpy(), theirs.logpdf(at, np.zeros(3), flat, allow_singular=True), rtol=1e-13
    )
    np.testing.assert_allclose(pg.grad(found, own)[0].numpy(), -at, atol=1e-15)
    with pytest.raises(pg.ShapeError, match="mean is a vector as long as cov is wide"):
        stats.multivariate_normal.logpdf(own, np.zeros(2), cov)
    with pytest.raises(pg.ShapeError, match="cov is a square matrix"):
        stats.multivariate_normal.logpdf(own, np.zeros(3), cov[:2])


def test_proportions() -> None:
    alpha, x = np.array([0.7, 2.0, 3.0]), np.array([0.2, 0.3, 0.5])
    for at in (x, np.stack([x, x[[1, 0, 2]]], 1)):
        for method in ("logpdf", "pdf"):
            np.testing.assert_allclose(
                getattr(stats.dirichlet, method)(pg.tensor(at), alpha).numpy(),
                getattr(ss.dirichlet, method)(at, alpha), rtol=1e-13,
            )  # fmt: skip
    pg.check_grads(pg.trace(stats.dirichlet.logpdf, x, alpha), [x, alpha], order=2)
    with pytest.raises(pg.ArgumentError, match="first axis of x is as long as alpha"):
        stats.dirichlet.logpdf(pg.tensor(x[:2]), alpha)
    with pytest.raises(pg.ShapeError, match="alpha is a vector"):
        stats.dirichlet.logpdf(pg.tensor(x), alpha[0])
    np.testing.assert_array_equal(stats.dirichlet.mean(alpha), ss.dirichlet.mean(alpha))


def test_chosen_numbers() -> None:
    p = np.array([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]])
    k = np.array([2, 0])
    wanted = np.log([0.7, 0.5])
    np.testing.assert_allclose(stats.categorical.logpmf(k, p), wanted, rtol=1e-15)
    np.testing.assert_allclose(stats.categorical.pmf(k, pg.tensor(p)).numpy(), [0.7, 0.5])
    found = stats.categorical.logpmf(k, logits=pg.tensor(np.log(p) + 3.0))
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-14)
    np.testing.assert_array_equal(stats.categorical(p[0]).pmf(np.array([3, -1, 1])), [0, 0, 0.2])
    pg.check_grads(
        pg.trace(lambda w: stats.categorical.logpmf(k, logits=w), p), [np.log(p)], order=2
    )
    with pytest.raises(pg.ArgumentError, match="either probabilities or logits"):
        stats.categorical.logpmf(k)
    with pytest.raises(pg.ArgumentError, match="an axis of probabilities"):
        stats.categorical.logpmf(k, 0.3)


def test_what_is_refused() -> None:
    x = pg.tensor([0.5])
    with pytest.raises(pg.ArgumentError, match=r"gamma.pdf takes \(x, a, loc=..., scale=...\)"):
        stats.gamma.pdf(x)
    with pytest.raises(pg.ArgumentError, match=r"norm\.pdf takes"):
        stats.norm.pdf(x, 0.0, 1.0, 2.0)
    with pytest.raises(pg.ArgumentError, match=r"norm\.cdf takes"):
        stats.norm.cdf(x, 0.0, loc=1.0)
    with pytest.raises(AttributeError, match="nothing named 'logpfd'"):
        stats.norm.logpfd(x)
    with pytest.raises(AttributeError, match="logpdf"):
        stats.dirichlet.logpfd(x)
