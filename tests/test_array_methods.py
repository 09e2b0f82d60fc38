"""Methods that variables and tensors share with NumPy's arrays: `copy`, `fill`, and orders."""

import numpy as np
import pytest

import primgraph as pg

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
