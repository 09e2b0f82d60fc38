"""Random arrays of `pg.random`: their distributions, keys, and derivatives by parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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
