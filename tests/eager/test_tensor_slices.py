"""Slices whose bounds are tensors: of tensors, in functions that are traced, with derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primgraph as pg

X = np.arange(6.0)
V = np.array([10.0, 20.0])


def wanted(k: int) -> np.ndarray:
    found = X.copy()
    found[k : k + 2] = V
    return found


def assigned(x: Any, k: Any, v: Any) -> Any:
    y = x * 1.0
    y[k : k + 2] = v
    return y


def added(x: Any, k: Any, v: Any) -> Any:
    y = x * 1.0
    y[k : k + 2] += v - y[k : k + 2]
    return y


def through_view(x: Any, k: Any, v: Any) -> Any:
    y = x * 1.0
    part = y[k : k + 2]
    part[...] = v
    return y


@pytest.mark.parametrize("k", [0, 2, 4, -3])
@pytest.mark.parametrize(
    "write",
    [lambda x, k, v: pg.set_slice(x, slice(k, k + 2), v), assigned, added, through_view],
)
def test_slices_with_bounds_of_tensors_are_written_to(write: Any, k: int) -> None:
    x, v = (pg.tensor(a, requires_grad=True) for a in (X, V))
    found = write(x, pg.tensor(k), v)
    np.testing.assert_array_equal(found.numpy(), wanted(k))
    (found * found).sum().backward()
    slopes = 2 * X
    slopes[k : k + 2] = 0.0
    np.testing.assert_array_equal(x.grad.numpy(), slopes)
    np.testing.assert_array_equal(v.grad.numpy(), 2 * V)


def test_a_view_keeps_the_bounds_that_it_was_taken_by() -> None:
    y, k = pg.tensor(X), pg.tensor(1)
    part = y[k : k + 2]
    k.fill_(3)
    y *= 2.0
    np.testing.assert_array_equal(part.numpy(), [2.0, 4.0])


def test_slices_with_bounds_of_tensors_are_taken() -> None:
    x, k = pg.tensor(np.stack([X, 2 * X])), pg.tensor(3)
    for found in (x[:, k : k + 2], pg.getitem(x, (slice(None), slice(k, k + 2)))):
        np.testing.assert_array_equal(found.numpy(), [X[3:5], 2 * X[3:5]])
    np.testing.assert_array_equal(pg.set_slice(x, (1, slice(None, None, k)), 9.0)[1, ::3], [9, 9])
    with pytest.raises(pg.DTypeError, match="an index is an integer"):
        pg.set_slice(x, slice(pg.tensor(1.0), 2), 0.0)


def test_bounds_in_traced_functions_are_those_of_each_call() -> None:
    k = pg.tensor(2)
    table = pg.tensor(3 * X)

    @pg.jit
    def both(x: Any, i: Any) -> Any:
        inner = pg.set_slice(x, slice(k, k + 2), V)
        return pg.set_slice(x, slice(i, i + 2), V), inner, table[k : k + 2], table[i : i + 2]

    for i, j in ((0, 2), (3, 1), (4, 4)):
        k.fill_(j)
        first, second, third, last = both(X, np.array(i))
        np.testing.assert_array_equal(first, wanted(i))
        np.testing.assert_array_equal(second, wanted(j))
        np.testing.assert_array_equal(third, 3 * X[j : j + 2])
        np.testing.assert_array_equal(last, 3 * X[i : i + 2])
    assert len(both.compilations) == 1


@pytest.mark.parametrize("transform", [lambda f: f, pg.jit])
def test_gradients_through_slices_of_traced_bounds(transform: Any) -> None:
    def loss(x: Any, v: Any, k: Any) -> Any:
        return pg.sum(pg.set_slice(x, slice(k, k + 2), v) ** 2) + pg.sum(x[k : k + 2] ** 3)

    by_x, by_v = transform(pg.grad(loss, argnums=(0, 1)))(X, V, np.array(1))
    slopes = 2 * X
    slopes[1:3] = 3 * X[1:3] ** 2
    np.testing.assert_allclose(by_x, slopes)
    np.testing.assert_allclose(by_v, 2 * V)


def test_tensors_are_bounds_in_programs() -> None:
    with pg.Program() as program:
        x = pg.data("x", (6,))
        y = pg.set_slice(x, slice(pg.tensor(1), pg.tensor(3)), V)
    (found,) = pg.Executor().run(program, {"x": X}, [y])
    np.testing.assert_array_equal(found, wanted(1))
