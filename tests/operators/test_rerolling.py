"""Stacks of numbers that a Python loop computed alike are vectors."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

import primgraph as pg
import primgraph.numpy as pnp

N = 40


def _chain(x, a):
    """One form, with elements at two steps, a shared number and a constant."""
    return pnp.array([np.exp(x[i]) - a * x[i + 1] + 0.5 for i in range(N - 1)])


def _three_forms(x, a):
    """Three forms that alternate, with constants that differ and reads in any order."""
    found = []
    for k in range(N // 3):
        found += [x[k] ** 2 + 3 * x[k + 1], np.sin(x[(7 * k) % N]) * k, x[2 * k] * x[k] - a]
    return pg.stack(found)


def _with_exceptions(x, a):
    """Ends that are computed otherwise than the rest."""
    inner = [x[i - 1] - 2 * x[i] + x[i + 1] for i in range(1, N - 1)]
    return pg.stack([x[0] * a, *inner, np.cos(x[-1])])


def _of_matrix(x, a):
    matrix = pg.reshape(x, (8, 5))
    return pg.stack([matrix[i, j] * matrix[7 - i, 4 - j] / a for i in range(8) for j in range(5)])


def _on_axis(x, a):
    """Numbers of shape (1,), reshaped, and a mask."""
    found = [pg.where(x[i] > 0.5, x[i : i + 1][0] * a, x[i] + i) for i in range(N)]
    return pnp.array([found, found])


FUNCTIONS = (_chain, _three_forms, _with_exceptions, _of_matrix, _on_axis)


def _not_rerolled(function):
    """The function with an equation for each number."""

    def call(*arguments):
        with mock.patch("primgraph.operators.promotion.reroll", return_value=None):
            return function(*arguments)

    return call


@pytest.mark.parametrize("function", FUNCTIONS)
def test_rerolled_stacks_have_the_values_and_derivatives_of_others(function):
    x, a = np.linspace(-1.0, 2.0, N), np.array(1.5)
    plain = _not_rerolled(function)
    second, other = (
        pg.hessian(lambda x, a, f=f: pg.sum(f(x, a) ** 2))(x, a) for f in (function, plain)
    )
    np.testing.assert_allclose(second, other, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(pg.jit(function)(x, a), pg.jit(plain)(x, a), rtol=1e-14)
    found, expected = (pg.jacobian(f, argnums=(0, 1))(x, a) for f in (function, plain))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("function", FUNCTIONS[:4])
def test_rerolled_stacks_have_few_equations(function):
    counts = [
        len(pg.transforms.dead_code(pg.trace(f, pg.spec(N), 1.5)).body)
        for f in (function, _not_rerolled(function))
    ]
    assert counts[0] < 40
    assert counts[0] < counts[1] / 5


def test_the_code_of_a_loop_is_that_of_slices():
    kernel = pg.compile(pg.trace(_chain, pg.spec(N), 1.5))
    assert "return np.exp(x[:39]) - a * x[1:] + 0.5" in kernel.source


def test_numbers_that_differ_or_depend_on_each_other_stay_as_they_are():
    def recurrence(x):
        found = [x[0]]
        for i in range(1, N):
            found.append(np.sin(found[-1]) + x[i])
        return pg.stack(found)

    plain = _not_rerolled(recurrence)
    assert pg.trace(recurrence, pg.spec(N)) == pg.trace(plain, pg.spec(N))
    x = np.linspace(0.0, 1.0, N)
    np.testing.assert_array_equal(pg.jit(recurrence)(x), pg.jit(plain)(x))


def test_random_numbers_of_different_keys_differ():
    def draws(x):
        return pg.stack([pg.random.normal(i, ()) + x for i in range(N)])

    found = pg.jit(draws)(np.array(1.0))
    assert len(np.unique(found)) == N
    np.testing.assert_array_equal(found, pg.jit(_not_rerolled(draws))(np.array(1.0)))


def test_time_grows_with_the_number_of_equations():
    """Each value is visited once, whatever shares it."""

    def shared(x):
        total = x[0]
        for _ in range(60):
            total = total + total
        return pg.stack([total * x[i] for i in range(N)])

    x = np.linspace(0.0, 1.0, N) + 1e-20
    np.testing.assert_allclose(pg.jit(shared)(x), 2.0**60 * x[0] * x, rtol=1e-14)
