"""Methods that variables and tensors share with NumPy's arrays: `copy`, `fill`, and orders."""

from functools import partial

import numpy as np
import pytest

import primgraph as pg
import primgraph.compat.paddle as paddle
from primgraph.compat import torch

X = np.arange(24.0).reshape(2, 3, 4)
ORDERED = [
    lambda a, order: a.reshape((4, 6), order=order),
    lambda a, order: a.reshape(4, -1, 2, order=order),
    lambda a, order: a.reshape(-1, order=order),
    lambda a, order: a.ravel(order),
    lambda a, order: a.ravel(order=order),
    lambda a, order: a.flatten(order),
    lambda a, order: a.flatten(order=order),
]


@pytest.mark.parametrize("order", ["C", "F", "A"])
@pytest.mark.parametrize("method", ORDERED)
def test_orders_are_those_of_arrays(method, order):
    expected = method(X, order)
    np.testing.assert_array_equal(pg.jit(lambda a: method(a, order))(X), expected)
    np.testing.assert_array_equal(method(pg.tensor(X), order).numpy(), expected)
    weights = np.cos(np.arange(24.0)).reshape(expected.shape)
    slope = pg.jit(pg.grad(lambda a: pg.sum(method(a, order) * weights)))(X)
    shape, last = ((24,), "C") if order != "F" else ((24,), "F")
    np.testing.assert_array_equal(slope, weights.reshape(shape, order=last).reshape(
        X.shape, order=last
    ))  # fmt: skip


def test_functions_take_orders_too():
    for name in ("ravel", "flatten"):
        found = getattr(pg, name)(pg.tensor(X), order="F")
        np.testing.assert_array_equal(found.numpy(), X.ravel("F"))
    found = pg.reshape(X, (6, 4), "F")
    np.testing.assert_array_equal(found.numpy(), X.reshape((6, 4), order="F"))
    with pytest.raises(pg.ArgumentError, match="order is 'C', 'F', 'A' or 'K', not 'B'"):
        pg.reshape(X, (24,), "B")
    with pytest.raises(pg.ShapeError, match="cannot reshape 24 elements"):
        pg.reshape(X, (5, 5), "F")


def test_copies_of_variables_are_equal_and_constant_where_that_is_asked_for():
    with pg.Program() as program:
        x = pg.data("x", (3,))
        y = x.copy()
        with pg.no_grad():
            held = x.copy()
        slope = pg.grad(pg.sum(y * held * x), x)
    found = pg.Executor().run(program, {"x": [1.0, 2.0, 3.0]}, [y, slope])
    np.testing.assert_array_equal(found[0], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(found[1], 2.0 * np.array([1.0, 2.0, 3.0]) ** 2)


def test_variables_are_not_filled_and_tensors_are():
    with pg.Program():
        x = pg.data("x", (3,))
        with pytest.raises(pg.ArgumentError, match="a variable does not change") as error:
            x.fill(2.0)
    assert "pg.full_like(x, value)" in error.value.hint
    t = pg.tensor([1.0, 2.0])
    assert t.fill(3.0) is None
    np.testing.assert_array_equal(t.numpy(), [3.0, 3.0])


# Reductions.


def least_of_rows(a, function, axis, keepdims=False):
    return function(a[:, :0], axis=axis, initial=3.0, keepdims=keepdims)


@pytest.mark.parametrize("function", [np.min, np.max])
@pytest.mark.parametrize("axis", [1, None, (1, 2)])
def test_initial_values_of_no_elements(function, axis):
    t = pg.tensor(X)
    for keep in (False, True):
        reduce = partial(least_of_rows, function=function, axis=axis, keepdims=keep)
        expected = reduce(X)
        for found in (reduce(t).numpy(), pg.jit(reduce)(X)):
            np.testing.assert_array_equal(found, expected, strict=True)
    ints = function(pg.tensor(np.arange(3))[:0], initial=2)
    assert ints.numpy() == 2
    assert ints.dtype == np.int64
    assert function(t, initial=30.0).numpy() == function(X, initial=30.0)


@pytest.mark.parametrize("axis", [(2, 0), (0, 2), (-1, -3), (1, 0), (2, 1, 0), (1,), 1])
def test_weights_stand_in_the_order_of_the_axes(axis):
    axes = axis if isinstance(axis, tuple) else (axis,)
    weights = 1.0 + np.arange(np.prod([X.shape[a] for a in axes])).reshape(
        [X.shape[a] for a in axes]
    )
    expected = np.average(X, axis=axis, weights=weights)
    found = pg.jit(lambda a, w: np.average(a, axis=axis, weights=w))(X, weights)
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(pg.average(pg.tensor(X), axis, weights).numpy(), expected)


def test_weights_that_do_not_fit():
    for axis, shape in ((None, (4, 3, 2)), ((2, 0), (2, 4)), (1, (2,))):
        with pytest.raises(pg.ShapeError, match="neither the shape of the array"):
            pg.average(pg.tensor(X), axis, np.ones(shape))


A = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
OF_MATRICES = [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf]
OF_VECTORS = [None, 0, 1, 2, 3, 0.5, -1, -2, np.inf, -np.inf]


@pytest.mark.parametrize("order", OF_MATRICES)
def test_norms_of_matrices(order):
    np.testing.assert_allclose(pg.norm(A, order).numpy(), np.linalg.norm(A, order))
    both = np.stack([A, A[::-1] * 2.0])
    for axis in ((1, 2), (2, 1), (-1, 0)):
        for keep in (False, True):
            expected = np.linalg.norm(both, order, axis, keep)
            found = pg.jit(partial(pg.norm, ord=order, axis=axis, keepdims=keep))(both)
            np.testing.assert_allclose(found, expected)
    slope = pg.jit(pg.grad(lambda a: pg.norm(a, order)))(A)
    np.testing.assert_allclose(slope, pg.jit(pg.grad(lambda a: pg.linalg.norm(a, order)))(A))


@pytest.mark.parametrize("order", OF_VECTORS)
def test_norms_of_vectors(order):
    np.testing.assert_allclose(pg.norm(A[0], order).numpy(), np.linalg.norm(A[0], order))
    for axis in (0, -1):
        expected = np.linalg.norm(A, order, axis, keepdims=True)
        found = pg.jit(lambda a, axis=axis: a.norm(order, axis, True))(A)
        np.testing.assert_allclose(found, expected)
    graph = pg.trace(lambda a: pg.norm(a, order, 0), A)
    assert pg.parse(str(graph), graph.constants) == graph


def test_norms_that_there_are_not():
    with pytest.raises(pg.ArgumentError, match="norm of matrices takes no order 3"):
        pg.norm(A, 3)
    with pytest.raises(pg.ArgumentError, match="norm of vectors takes no order 'nuc'"):
        pg.norm(A[0], "nuc")
    with pytest.raises(pg.ShapeError, match="one axis or two"):
        pg.norm(X, 2)


def test_norms_of_several_axes_of_torch_and_paddle():
    of_one_vector = torch.norm(torch.tensor(A), 3, (0, 1))
    np.testing.assert_allclose(of_one_vector.numpy(), (np.abs(A) ** 3).sum() ** (1 / 3))
    of_matrix = paddle.norm(paddle.to_tensor(A), 1, [0, 1])
    np.testing.assert_allclose(of_matrix.numpy(), np.linalg.norm(A, 1))
    with pytest.raises(pg.ArgumentError, match="norm of matrices takes no order 3"):
        paddle.norm(paddle.to_tensor(A), 3, [0, 1])
