"""Random arrays of `pg.random`: their distributions, keys, and derivatives by parameters."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats

import primgraph as pg
from primgraph import random

N = 4000


def test_keys_decide() -> None:
    drawn: list[Any] = [
        lambda k: random.truncated_normal(k, -1.0, 2.0, (50,)),
        lambda k: random.categorical(k, np.zeros(5), (50,)),
        lambda k: random.permutation(k, 50),
        lambda k: random.choice(k, 50, (20,), replace=False),
        lambda k: random.choice(k, 50, (20,)),
        lambda k: random.multivariate_normal(k, np.zeros(3), np.eye(3), (20,)),
        lambda k: random.gamma(k, 2.0, (20,)),
        lambda k: random.t(k, 3.0, (20,)),
        lambda k: random.dirichlet(k, np.ones(4), (5,)),
        lambda k: random.poisson(k, 50.0, (20,)),
        lambda k: random.randint(k, (20,), -1000, 1000),
        lambda k: random.split(k, 3),
    ]
    for draw in drawn:
        first, again, other = (draw(k).numpy() for k in (1, 1, 2))
        np.testing.assert_allclose(first, again, rtol=1e-12)
        assert (first != other).any()
        compiled = pg.jit(draw)
        np.testing.assert_allclose(compiled(1), first, rtol=1e-12)


def test_normal_numbers_between_bounds() -> None:
    for low, high in ((-1.0, 2.0), (8.0, 9.0), (-9.5, -9.0), (-40.0, 40.0)):
        found = random.truncated_normal(3, low, high, (N,)).numpy()
        assert low <= found.min() < found.max() <= high
    found = random.truncated_normal(3, -1.0, 2.0, (N,)).numpy()
    # The mean is the difference of densities over that of distribution functions.
    assert abs(found.mean() - 0.2296) < 0.05
    # A bound that moves takes the numbers with it.
    graph = pg.trace(lambda a, b: random.truncated_normal(5, a, b, (7,)), (), ())
    pg.check_grads(graph, [np.array(-0.7), np.array(1.3)], order=2)
    assert random.truncated_normal(1, np.zeros(3, np.float32), 1.0, (2, 3)).dtype == np.float32


def test_integers_by_weights() -> None:
    p = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]])
    with np.errstate(divide="ignore"):
        found = random.categorical(11, np.log(p), (N,)).numpy()
    assert found.shape == (N, 2)
    assert found.dtype == np.int64
    shares = np.stack([(found == i).mean(0) for i in range(3)], 1)
    np.testing.assert_allclose(shares, p, atol=0.04)
    assert shares[1, 2] == 0.0
    with pytest.raises(pg.ShapeError, match="axis of weights"):
        random.categorical(1, 2.0)


def test_orders_and_choices() -> None:
    np.testing.assert_array_equal(np.sort(random.permutation(4, 30).numpy()), np.arange(30))
    rows = np.arange(12.0).reshape(6, 2)
    turned = random.permutation(4, rows).numpy()
    np.testing.assert_array_equal(np.sort(turned, 0), rows)
    slopes = pg.grad(lambda x: pg.sum(random.permutation(4, x) * rows))(rows)
    np.testing.assert_array_equal(np.sort(slopes, 0), rows)
    some = random.choice(4, 30, (5, 6), replace=False).numpy()
    np.testing.assert_array_equal(np.sort(some.ravel()), np.arange(30))
    p = np.array([0.1, 0.2, 0.7])
    chosen = random.choice(9, 3, (N,), p=p).numpy()
    np.testing.assert_allclose(np.bincount(chosen) / N, p, atol=0.04)
    even = random.choice(9, 4, (N,)).numpy()
    np.testing.assert_allclose(np.bincount(even) / N, 0.25, atol=0.04)
    # The first of those without repeats are distributed as p says.
    first = pg.vmap(lambda k: random.choice(k, 3, (2,), False, p))(np.arange(600))
    np.testing.assert_allclose(np.bincount(first[:, 0]) / 600, p, atol=0.08)
    assert (first[:, 0] != first[:, 1]).all()
    assert random.choice(9, rows, (2, 3)).shape == (2, 3, 2)
    with pytest.raises(pg.ArgumentError, match="4 of 3 cannot be chosen"):
        random.choice(1, 3, (4,), replace=False)
    with pytest.raises(pg.ShapeError, match="one probability for each of 3"):
        random.choice(1, 3, (2,), p=[0.5, 0.5])
    with pytest.raises(pg.ShapeError, match="an integer or an array with axes"):
        random.permutation(1, np.float64(2.0))


def test_normal_vectors() -> None:
    mean, cov = np.array([1.0, -2.0]), np.array([[2.0, 0.6], [0.6, 1.0]])
    found = random.multivariate_normal(5, mean, cov, (N,)).numpy()
    np.testing.assert_allclose(found.mean(0), mean, atol=0.08)
    np.testing.assert_allclose(np.cov(found.T), cov, atol=0.12)
    graph = pg.trace(lambda m, c: random.multivariate_normal(5, m, (c + c.T) / 2.0), mean, cov)
    pg.check_grads(graph, [mean, cov], order=2)
    with pytest.raises(pg.ShapeError, match="a vector and a square matrix"):
        random.multivariate_normal(5, mean, np.eye(3))
    with pytest.raises(AttributeError, match="permutation"):
        _ = random.permutations


# Names of functions, their parameters, and the distribution by SciPy.
DRAWN: list[tuple[str, tuple[Any, ...], Any]] = [
    ("gamma", (2.5,), scipy.stats.gamma(2.5)),
    ("gamma", (0.3,), scipy.stats.gamma(0.3)),
    ("loggamma", (0.01,), scipy.stats.loggamma(0.01)),
    ("beta", (0.5, 2.0), scipy.stats.beta(0.5, 2.0)),
    ("chisquare", (3.0,), scipy.stats.chi2(3.0)),
    ("t", (5.0,), scipy.stats.t(5.0)),
    ("lognormal", (0.5,), scipy.stats.lognorm(0.5)),
    ("exponential", (), scipy.stats.expon()),
    ("laplace", (), scipy.stats.laplace()),
    ("gumbel", (), scipy.stats.gumbel_r()),
    ("logistic", (), scipy.stats.logistic()),
    ("cauchy", (), scipy.stats.cauchy()),
    ("poisson", (3.3,), scipy.stats.poisson(3.3)),
    ("binomial", (10, 0.3), scipy.stats.binom(10, 0.3)),
]


def test_numbers_have_their_distributions() -> None:
    for name, given, distribution in DRAWN:
        found = getattr(random, name)(3, *given, (N,)).numpy()
        if found.dtype.kind == "f":
            assert scipy.stats.kstest(found, distribution.cdf).pvalue > 0.01, name
            continue
        assert found.dtype == np.int64
        assert abs(found.mean() - distribution.mean()) < 0.1
        assert abs(found.var() - distribution.var()) < 0.2
    found = random.dirichlet(3, [1.0, 2.0, 3.0], (N,)).numpy()
    np.testing.assert_allclose(found.sum(1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(found.mean(0), [1 / 6, 1 / 3, 1 / 2], atol=0.01)
    np.testing.assert_allclose(np.cov(found.T)[0, 1], -2 / (36 * 7), atol=2e-3)
    whole = random.randint(3, (N,), np.array(-2), 3).numpy()
    np.testing.assert_allclose(np.bincount(whole + 2) / N, 0.2, atol=0.03)
    signs = random.rademacher(3, (N,)).numpy()
    assert set(signs.tolist()) == {-1, 1}
    assert abs(signs.mean()) < 0.06
    # Keys that one is split into draw what has nothing to do with each other.
    one, other = (pg.random.normal(k, (N,)).numpy() for k in random.split(8).numpy())
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.06


def test_gamma_numbers_go_with_their_shape_as_quantiles_do() -> None:
    shape = np.array([[0.3, 0.7, 1.0], [3.5, 40.0, 900.0]])

    def drawn(a: Any) -> Any:
        return random.gamma(5, a)

    z = drawn(shape).numpy()
    part = scipy.special.gammainc(shape, z)
    assert ((part > 1e-3) & (part < 1 - 1e-3)).all()
    moved = [scipy.special.gammaincinv(shape * (1 + h), part) for h in (-1e-3, 0.0, 1e-3)]
    slope = (moved[2] - moved[0]) / (2e-3 * shape)
    curve = (moved[2] - 2 * moved[1] + moved[0]) / (1e-3 * shape) ** 2
    for style in ("planned", "readable"):
        orders = pg.compile(pg.trace(lambda a: _two_slopes(drawn, a), shape), style=style)
        for found, expected in zip(orders(shape), (slope, slope, curve), strict=True):
            bound = 2e-5 * np.abs(expected) + 1e-6 * z / shape
            np.testing.assert_array_less(np.abs(found - expected), bound)
    pg.check_grads(lambda a: pg.log(random.gamma(5, a)), [shape], order=2)
    # What is left of a distribution is where NaN is not: a shape below zero has none.
    assert np.isnan(random.gamma(5, np.array([-1.0, np.inf, np.nan])).numpy()).all()
    assert random.gamma(5, np.zeros(2, np.float32)).numpy().dtype == np.float32


def _two_slopes(function: Any, x: Any) -> Any:
    """In reverse mode, in forward mode, and the second, where each element has its own."""
    slope = pg.grad(pg.sum(function(x)), x)
    along = pg.forward_grad(function(x), x, pg.ones_like(x))
    return slope, along, pg.grad(pg.sum(slope), x)


def test_slopes_of_means_are_those_of_the_distribution() -> None:
    def of_beta(a: Any, b: Any) -> Any:
        return pg.mean(random.beta(2, a, b, (N,)) ** 2)

    a, b = 0.8, 1.7
    by_a, by_b = pg.grad(of_beta, (0, 1))(a, b)
    moment = [a * (a + 1) / ((a + b) * (a + b + 1))]
    for da, db in ((1e-5, 0.0), (0.0, 1e-5)):
        p, q = a + da, b + db
        moment.append((p * (p + 1) / ((p + q) * (p + q + 1)) - moment[0]) * 1e5)
    np.testing.assert_allclose([by_a, by_b], moment[1:], rtol=0.06)

    def of_dirichlet(alpha: Any) -> Any:
        return pg.mean(random.dirichlet(2, alpha, (N,)), 0)

    alpha = np.array([1.0, 2.0, 0.5])
    expected = np.eye(3) / alpha.sum() - alpha[:, None] / alpha.sum() ** 2
    np.testing.assert_allclose(pg.jacobian(of_dirichlet, alpha), expected, atol=0.012)
    by_df = pg.grad(lambda df: pg.mean(random.chisquare(2, df, (N,))))(3.0)
    np.testing.assert_allclose(by_df, 1.0, atol=0.05)
    assert pg.grad(lambda s: pg.mean(random.lognormal(2, s, (N,))))(0.5) > 0.0
    # The variance of t is df / (df - 2).
    by_df = pg.grad(lambda df: pg.mean(random.t(2, df, (N,)) ** 2))(9.0)
    np.testing.assert_allclose(by_df, -2 / 49, rtol=0.4)


def test_counts_and_gammas_in_every_way_to_run() -> None:
    def drawn(key: Any, a: Any) -> Any:
        return random.gamma(key, a), random.poisson(key, a), random.binomial(key, 9, a / 4.0)

    a = np.array([[0.5, 1.0, 3.9], [0.0, 2.0, 1.5]])
    keys = np.array([4, 5])
    graph = pg.trace(drawn, keys, a)
    expected = drawn(keys, a)
    for style in ("planned", "readable"):
        for found, value in zip(pg.compile(graph, style=style)(keys, a), expected, strict=True):
            np.testing.assert_array_equal(found, value.numpy())
    mapped = pg.vmap(drawn)(keys, a)
    alone = [drawn(int(k), row) for k, row in zip(keys, a, strict=True)]
    for found, value, *rows in zip(mapped, expected, *alone, strict=True):
        # Keys lead: each draws for all parameters.
        assert value.shape == (2, 2, 3)
        np.testing.assert_array_equal(np.asarray(found), np.stack([r.numpy() for r in rows]))
    # One key draws the same for every sample.
    same = pg.vmap(lambda row: random.gamma(4, row), in_axes=0)(np.full((3, 2), 1.5))
    assert len(np.unique(np.asarray(same), axis=0)) == 1

    def loop(key: Any) -> Any:
        return pg.scan(lambda c, k: (c + random.gamma(k, 1.0 + c), c), 0.5, random.split(key, 4))

    by_loop = pg.compile(pg.trace(loop, pg.spec((), dtype="int64")))(3)
    total = np.float64(0.5)
    for key in random.split(3, 4).numpy():
        total = total + random.gamma(int(key), 1.0 + total).numpy()
    np.testing.assert_allclose(by_loop[0], total)
    for wrong in (lambda: random.poisson(1, -1.0), lambda: random.binomial(1, 3, 1.5)):
        with pytest.raises(ValueError, match=r"lam < 0|p > 1"):
            wrong().numpy()
    with pytest.raises(pg.DTypeError, match="the key of gamma is an integer"):
        random.gamma(1.5, 2.0)
    with pytest.raises(pg.ArgumentError, match="at least one key"):
        random.split(1, 0)
    with pytest.raises(pg.NotDifferentiable):
        pg.grad(lambda lam: pg.sum(random.poisson(1, lam, (3,))))(2.0)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("normal", ((3,),)), ("normal", (0, 1, (3,))), ("normal", (0.0, 1.0, (3,))),
        ("uniform", ((3,),)), ("uniform", (0, 1, (3,))), ("uniform", (0.0, 1.0, (3,))),
        ("exponential", ((3,),)), ("laplace", (0, 1, (3,))), ("bernoulli", ((3,),)),
        ("poisson", (5, (3,))), ("gamma", (2, (3,))), ("beta", (1, 2, (3,))),
        ("binomial", (10, 0.5, (3,))), ("binomial", (10, 1, (3,))), ("chisquare", (2, (3,))),
        ("t", (2, (3,))), ("lognormal", (0.0, 1.0, (3,))), ("rademacher", ((3,),)),
    ],
)  # fmt: skip
def test_signatures_of_numpy_are_told_from_these(name: str, given: tuple[Any, ...]) -> None:
    match = "its key is|the key of|its dtype is|low is|high is|a is|b is|df is|lam is|p is"
    with pytest.raises((pg.ArgumentError, pg.DTypeError), match=match) as error:
        getattr(random, name)(*given)
    assert re.search(r"pg\.random\.\w+\(key, (\w+, )*shape\)", error.value.hint)
    if hasattr(np.random, name):
        assert "primgraph.numpy.random" in error.value.hint


def test_keys_are_arrays_and_lists_of_integers() -> None:
    rows = random.normal([1, 2], (3,)).numpy()
    for row, key in zip(rows, (1, 2), strict=True):
        np.testing.assert_allclose(row, random.normal(key, (3,)).numpy())
    assert random.normal(np.array([1, 2, 3])).shape == (3,)
    assert random.poisson(1, [2.0, 3.0]).shape == (2,)
