"""Slices whose bounds are integer variables, and elements that are set at computed places."""

import numpy as np
import pytest

import primgraph as pg

X = np.arange(1.0, 7.0)
M = np.arange(24.0).reshape(4, 6)
SLICES = {
    "two bounds": (lambda x, k: x[k : k + 2], X, 2),
    "before": (lambda x, k: x[k - 2 : k], X, 3),
    "on the left": (lambda x, k: x[1 + k : 3 + k], X, 1),
    "equal expressions": (lambda x, k: x[2 * k - 1 : 2 * k + 2], X, 2),
    "steps": (lambda x, k: x[k : k + 4 : 3], X, 1),
    "from the end": (lambda x, k: x[k : k + 2], X, -3),
    "none": (lambda x, k: x[k:k], X, 2),
    "none the other way": (lambda x, k: x[k + 1 : k], X, 2),
    "rows": (lambda x, k: x[k : k + 2, ::2], M, 1),
    "columns": (lambda x, k: x[..., None, k : k + 2], M, 1),
    "both": (lambda x, k: x[k : k + 2, k + 1 : k + 4], M, 1),
    "beside an array": (lambda x, k: x[k : k + 2, [0, 3, 5]], M, 1),
    "beside a number": (lambda x, k: x[k, k : k + 3], M, 1),
}


@pytest.mark.parametrize("name", SLICES)
def test_parts_and_their_derivatives(name):
    take, x, k = SLICES[name]
    expected = take(x, k)
    for dtype in (np.int64, np.int32):
        np.testing.assert_array_equal(pg.jit(take)(x, dtype(k)), expected)
    weights = np.cos(np.arange(expected.size)).reshape(expected.shape)
    slope = pg.jit(pg.grad(lambda x, k: pg.sum(take(x, k) * weights)))(x, np.int64(k))
    places = take(np.arange(x.size).reshape(x.shape), k)
    wanted = np.zeros(x.size)
    np.add.at(wanted, places.reshape(-1), weights.reshape(-1))
    np.testing.assert_array_equal(slope, wanted.reshape(x.shape))


@pytest.mark.parametrize("k", [-7, -1, 5, 9])
def test_what_does_not_lie_within_is_an_error_of_the_run(k):
    read = pg.jit(lambda x, k: x[k : k + 2])
    written = pg.jit(lambda x, k: pg.set_slice(x, slice(k, k + 2), 0.0))
    for kernel in (read, written):
        with pytest.raises((pg.RunError, IndexError), match="out of bounds"):
            kernel(X, np.int64(k))


def test_lengths_that_are_not_known_are_refused():
    with pg.Program():
        x, k, n = pg.data("x", (6,)), pg.data("k", (), "int64"), pg.data("n", (), "int64")
        for bad in (slice(k, None), slice(None, k), slice(k, n), slice(k, k + n), slice(k, k * 2)):
            with pytest.raises(pg.ArgumentError, match="a variable as bound, and no length"):
                x[bad]
        with pytest.raises(pg.ArgumentError, match="no length"):
            x[k : k + 4 : n]
        with pytest.raises(pg.DTypeError, match=r"the bound of a slice is one integer, not f64"):
            x[x[0] : x[0] + 2]


def test_bounds_from_around_a_body():
    def windows(x, k):
        end = k + 2

        def step(carry, i):
            return carry + pg.sum(x[i : i + 2]), x[k:end] + x[k + i : end + i]

        return pg.scan(step, 0.0, pg.arange(4))

    total, rows = pg.jit(windows)(X, np.int64(1))
    assert total == sum(X[i : i + 2].sum() for i in range(4))
    np.testing.assert_array_equal(rows, [X[1:3] + X[1 + i : 3 + i] for i in range(4)])


def test_parts_that_are_set():
    def moved(x, k):
        y = np.zeros(6)
        y[k : k + 2] = x[:2]
        y[k + 2 : k + 4] += 1.0
        return y

    for k in (0, 2):
        np.testing.assert_array_equal(pg.jit(moved)(X, np.int64(k)), moved(X, k))
    columns = pg.jit(lambda m, k: pg.set_slice(m, (slice(None, None, 2), slice(k, k + 2)), 9.0))
    expected = M.copy()
    expected[::2, 3:5] = 9.0
    np.testing.assert_array_equal(columns(M, np.int64(3)), expected)
    many = pg.jit(pg.vmap(lambda k: pg.set_slice(pg.asarray(X), slice(k, k + 2), 0.0)))
    expected = np.stack([X] * 3)
    for k in range(3):
        expected[k, k : k + 2] = 0.0
    np.testing.assert_array_equal(many(np.arange(3)), expected)


PLACES = {
    "a matrix": np.array([[0, 1], [2, 3]]),
    "places that come twice": np.array([[0, 1], [1, 0]]),
    "from the end": np.array([[-1, 0], [2, -2]]),
    "a row": np.array([4, 0, 4]),
    "many": np.arange(120) % 6,
}


@pytest.mark.parametrize("name", PLACES)
def test_index_arrays_of_tensors_and_variables(name):
    places = PLACES[name]
    values = np.cos(np.arange(places.size)).reshape(places.shape)
    expected = X.copy()
    expected[places] = values
    t = pg.tensor(X, requires_grad=True)
    found = pg.set_slice(t, places, values)
    np.testing.assert_array_equal(found.numpy(), expected)
    pg.sum(found).backward()
    np.testing.assert_array_equal(t.grad.numpy(), ~np.isin(np.arange(6), places % 6))
    np.testing.assert_array_equal(pg.set_slice(t, pg.tensor(places), values).numpy(), expected)
    compiled = pg.jit(pg.set_slice)
    np.testing.assert_array_equal(compiled(X, places, values), expected)
    of_values = pg.jit(pg.grad(lambda v, p: pg.sum(pg.set_slice(X, p, v) * X)))(values, places)
    wanted = np.zeros(places.size)
    last = {p: i for i, p in enumerate((places % 6).reshape(-1))}
    for place, i in last.items():
        wanted[i] = X[place]
    np.testing.assert_array_equal(of_values.reshape(-1), wanted)


def test_values_that_do_not_fit_computed_places():
    t = pg.tensor(np.arange(3))
    with pytest.raises(pg.DTypeError, match="cannot put f64"):
        pg.set_slice(t, np.array([0, 1]), 1.5)
    with pytest.raises(pg.ShapeError, match="set_slice into"):
        pg.set_slice(t, np.array([0, 1]), np.arange(3))
    with pytest.raises((pg.RunError, IndexError), match="out of bounds"):
        pg.set_slice(t, pg.tensor(np.array([0, 7])), 1).numpy()
