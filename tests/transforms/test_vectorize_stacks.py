"""Numbers that a Python loop computed alike, stacked or added up, are computed as vectors."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import primgraph as pg
import primgraph.numpy as pnp
from primgraph.ir.interpret import interpret
from primgraph.transforms.lower import lower
from primgraph.transforms.vectorize_stacks import vectorize_stacks

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
    """Elements of a matrix, row by row and column by column, of a part and in reverse."""
    matrix = pg.reshape(x, (5, 8))
    rows = [matrix[i, j] * matrix[4 - i, 7 - j] / a for i in range(5) for j in range(8)]
    inside = [matrix[i, j] * matrix[i + 1, j - 1] for j in range(1, 8) for i in range(4)]
    return pg.concatenate([pg.stack(rows), pg.stack([*inside, *inside])])


def _on_axis(x, a):
    """Numbers of shape (1,), reshaped, and a mask."""
    found = [pg.where(x[i] > 0.5, x[i : i + 1][0] * a, x[i] + i) for i in range(N)]
    return pnp.array([found, found])


def _sums(x, a):
    """Sums of terms of two forms, from another start, in another order, and of sums."""
    total, other = a * 0.1, 0.0
    for i in range(1, N):
        total += np.sin(x[i]) * x[i - 1]
        total = x[i] ** 2 * i + total
        other = other - x[i] + a * x[i]
    return pg.stack([total * total, other])


def _products(x, a):
    """A product of a matrix and a vector in two loops."""
    found = []
    for i in range(N):
        total = 0.0
        for j in range(8):
            total += x[j] * (i - a) * x[i]
        found.append(total)
    return pg.stack(found)


FUNCTIONS = (_chain, _three_forms, _with_exceptions, _of_matrix, _on_axis, _sums, _products)
X, A = np.linspace(-1.0, 2.0, N) + 0.01 * np.cos(np.arange(N)), np.array(1.5)


def _primitives(function):
    return lower(pg.trace(function, pg.spec(N), 1.5))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_values_keep_their_bits(function):
    graph = _primitives(function)
    found, expected = (interpret(g, X, A) for g in (vectorize_stacks(graph), graph))
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(pg.compile(graph)(X, A)[0], expected[0])


@pytest.mark.parametrize("function", FUNCTIONS)
def test_there_are_few_equations(function):
    graph = pg.transforms.dead_code(_primitives(function))
    assert len(vectorize_stacks(graph)) < min(70, len(graph) / 2)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_derivatives_are_those_of_numbers(function, monkeypatch):
    def derivatives(x, a):
        y = function(x, a)
        return [
            *pg.grad(pg.sum(y**2), [x, a]),
            pg.forward_grad(y, x, pg.cos(x)),
            pg.hessian(pg.sum(pg.sin(y)), x),
            pg.Jacobian(y, x)[...],
        ]

    graph = pg.trace(derivatives, pg.spec(N), 1.5)
    monkeypatch.setattr("primgraph.derivatives.subgraph.may_have_loops", lambda graph: False)
    plain = pg.trace(derivatives, pg.spec(N), 1.5)
    assert len(plain) > len(graph)
    # Larger graphs have the same values, the more so if passes do not change them.
    kernels = pg.compile(graph), pg.compile(plain, skip=["vectorize_stacks"])
    for one, other in zip(*[kernel(X, A) for kernel in kernels], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_the_code_of_a_loop_is_that_of_slices():
    kernel = pg.compile(pg.trace(_chain, pg.spec(N), 1.5))
    assert "return np.exp(x[:39]) - a * x[1:] + 0.5" in kernel.source


def test_two_loops_read_a_part_of_a_matrix():
    def laplacian(u):
        inside = [(i, j) for j in range(1, 9) for i in range(1, 9)]
        return pg.stack([4 * u[9 * i + j] - u[9 * i + j - 1] - u[9 * i + j - 9] for i, j in inside])

    kernel = pg.compile(pg.trace(laplacian, pg.spec(81)))
    assert "v0 = u.reshape(9, 9)" in kernel.source
    assert "4.0 * v0[1:, 1:].T - v0[1:, :8].T - v0[:8, 1:].T" in kernel.source


def test_numbers_that_differ_or_depend_on_each_other_stay_as_they_are():
    def recurrence(x):
        found = [x[0]]
        for i in range(1, 3 * N):
            found.append(np.sin(found[-1]) + x[i % N])
        return pg.stack(found)

    graph = lower(pg.trace(recurrence, pg.spec(N)))
    assert vectorize_stacks(graph) == graph
    inputs = pg.trace(lambda *xs: pg.stack(xs), *[1.0] * N)
    assert vectorize_stacks(lower(inputs)) == lower(inputs)


def test_random_numbers_of_different_keys_differ():
    graph = _primitives(lambda x, a: pg.stack([pg.random.normal(i, ()) + a for i in range(N)]))
    found = interpret(vectorize_stacks(graph), X, A)[0]
    assert len(np.unique(found)) == N
    np.testing.assert_array_equal(found, interpret(graph, X, A)[0])


def test_derivatives_by_numbers_of_a_stack_and_of_a_sum():
    """Each number is a variable of its own, also for derivatives of derivatives."""

    def slopes(x):
        numbers = [pg.sin(x[i]) for i in range(N)]
        cubes = [n**3 for n in numbers]
        total = 0.0
        for c in cubes:
            total = total + c
        y = pg.sum(pg.stack(cubes)) + total
        by_x, by_number, by_both = (
            pg.grad(y, x),
            pg.grad(y, numbers[3]),
            pg.grad(y, [numbers[3], x]),
        )
        mixed = pg.grad(pg.sum(by_x), numbers[3])
        return by_number, *by_both, mixed, pg.grad(pg.sum(by_x), x), pg.grad(total, cubes[5])

    n, dn = np.sin(X), np.cos(X)
    found = pg.jit(slopes)(X)
    expected = [6 * n[3] ** 2, 6 * n[3] ** 2, 6 * n**2 * dn, 12 * n[3] * dn[3],
                12 * n * dn**2 - 6 * n**3, 1.0]  # fmt: skip
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


def test_values_held_constant_and_functions_of_many_arguments():
    def held(x):
        numbers = [pg.stop_gradient(x[i]) * x[i] for i in range(N)]
        return pg.sum(pg.stack(numbers) ** 2)

    np.testing.assert_allclose(pg.grad(held)(X), 2 * X**3, rtol=1e-13)

    def many(*xs):
        return pg.sum(pg.stack([xs[i] * xs[i] * xs[i - 1] for i in range(N)]))

    expected = 2 * X * np.roll(X, 1) + np.roll(X, -1) ** 2
    found = pg.grad(many, argnums=tuple(range(N)))(*X)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_chain_that_all_share_is_visited_once():
    def shared(x):
        total = x[0]
        for _ in range(60):
            total = total + total
        return pg.stack([total * x[i] for i in range(N)])

    x = np.linspace(0.0, 1.0, N) + 1e-20
    np.testing.assert_allclose(pg.jit(shared)(x), 2.0**60 * x[0] * x, rtol=1e-14)


def test_calls_grow_linearly_with_the_number_of_equations():
    def loop(n):
        return lower(
            pg.trace(lambda x: pg.stack([np.exp(x[i]) * x[i] for i in range(n)]), pg.spec(n))
        )

    def calls(graph):
        count = 0

        def watch(*_):
            nonlocal count
            count += 1

        sys.setprofile(watch)
        try:
            vectorize_stacks(graph)
        finally:
            sys.setprofile(None)
        return count

    small, large = calls(loop(300)), calls(loop(3_000))
    assert large < 11 * small
