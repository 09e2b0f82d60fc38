"""NumPy's functions that write to an array, on tensors and traced arrays, beside NumPy's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primgraph as pg

RNG = np.random.default_rng(8)
MATRIX = RNG.uniform(-2, 2, (3, 4))
NUMBERS = RNG.uniform(1, 2, 3)

# Statements on y, a copy of the matrix x, with v of 3 elements, on z of shape
# (7, 3) and on a cube c.
STATEMENTS = """
y.put([1, -1], [5, 6])
y.put(2, v)
y.put([2, 2, 1], v)
y.put([], [])
y.put([1, 50, -100], v, mode="wrap")
np.put(y, [1, 50, -100], v, "clip")
np.put(y, [0, 3, 5, 7], v[:2])
np.put(y, [0, 3], v)
np.put(y, np.argsort(v) - 1, v)
np.put(y, 9 * np.argsort(v), [8, 9], mode="wrap")
np.put(y, 9 * np.argsort(v) - 5, v, mode="clip")
np.putmask(y, y > 0, v)
np.putmask(y, y > 0, y * y)
np.putmask(y, y > 0, 2)
np.putmask(y, y > 0, [])
np.putmask(y, [[True] * 4] * 3, v[:2])
np.place(y, y > 0, v)
np.place(y, y > 9, v)
np.place(y, np.eye(3, 4) > 0, v[:2])
np.place(y, y > 0, np.arange(20.0))
np.copyto(y, v[:1])
np.copyto(y, 2 * y, where=y > 0)
np.fill_diagonal(y, v[0])
np.fill_diagonal(y, v)
np.fill_diagonal(y, v[:2])
np.fill_diagonal(z, 4)
np.fill_diagonal(z, v, wrap=True)
np.fill_diagonal(c, v[:2])
np.put_along_axis(y, np.argmax(y, 1)[:, None], 9, 1)
np.put_along_axis(y, np.array([[1, 2]]), v[:, None], axis=1)
np.put_along_axis(y, np.argsort(y[:1], -1)[:, :2], v[:, None], axis=-1)
np.put_along_axis(y, np.argsort(y, 0), 2 * y, 0)
np.put_along_axis(y, np.array([4, 0, 4]), v, None)
np.add.at(y, [1, 1, 0], v[:, None])
np.subtract.at(y, ([0, 0, 1], [1, 1, 2]), v)
np.add.at(y, slice(1, 3), v[0])
np.add.at(y, y > 0, 2)
np.maximum.at(y, ([0, 0, 1], [1, 1, 2]), v)
np.minimum.at(y, [0, 0, 1], -v[:, None])
np.minimum.at(y, np.argsort(v), -v[:, None])
np.multiply.at(y, [1, 1, 0, 1], v[0])
np.divide.at(y, ([1, 1, 0], 1), v)
np.negative.at(y, [1, 1, 0])
y.flat = v
y.flat[::5] = v[:2]
y.flat[[1, 3]] += v[:2]
y.flat[-1] = x.flat[2]
y.flat[np.argsort(v)] = v
y[0] = y.T.flat[3:7]
y[0] = [sum(x.flat), len(x.flat), np.max(x.flat), np.sum(np.sin(x.flat))]
y[0] = x.flat.copy()[:4] + x.flat.base[1] + next(x.flat)
np.exp(x, y)
np.divide(1, x, out=y, where=x > 0)
np.add(x, x, out=(y,))
np.modf(x, y, np.copy(x))
np.take(x, [0, -1, 5], 0, y, mode="clip")
np.einsum("ij,j->ij", x, x[0], out=y)
np.concatenate([x[1:], x[:1]], out=y)
x.max(axis=1, out=z[0])
x.sum(axis=1, dtype=float, out=z[1])
x.clip(-1, 1, out=y)
np.add.reduce(x, 1, out=z[0])
np.multiply.accumulate(x, 0, out=y)
""".strip().splitlines()


DIRECTION = RNG.normal(size=(3, 4))


def written(statement: str) -> Any:
    """The function that copies its arguments, runs a statement and returns the copies."""
    space: dict[str, Any] = {"np": np}
    lines = ["y = np.copy(x)", "z = np.zeros((7, 3)) * v", "c = np.zeros((3, 3, 3)) + v", statement]
    exec("def function(x, v):\n    " + "\n    ".join([*lines, "return y, z, c"]), space)
    return space["function"]


def weighed(function: Any) -> Any:
    """A number of all that a function writes."""

    def weigh(x: Any, v: Any) -> Any:
        return sum(
            np.sum(np.cos(np.arange(a.size)) * np.reshape(a * a, -1)) for a in function(x, v)
        )

    return weigh


@pytest.mark.parametrize("statement", STATEMENTS)
def test_an_assignment_is_numpys(statement: str) -> None:
    function = written(statement)
    expected = function(MATRIX, NUMBERS)
    tensors = function(pg.tensor(MATRIX), pg.tensor(NUMBERS))
    traced = pg.compile(pg.trace(function, MATRIX, NUMBERS))(MATRIX, NUMBERS)
    for eager, compiled, wanted in zip(tensors, traced, expected, strict=True):
        np.testing.assert_array_equal(eager, wanted)
        np.testing.assert_array_equal(compiled, wanted)
        assert eager.dtype == compiled.dtype == wanted.dtype


@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_derivative_of_an_assignment_is_that_of_differences(statement: str) -> None:
    function = weighed(written(statement))
    slope = np.sum(pg.grad(function)(MATRIX, NUMBERS) * DIRECTION)
    step = 1e-6 * DIRECTION
    rise = function(MATRIX + step, NUMBERS) - function(MATRIX - step, NUMBERS)
    assert np.isclose(slope, rise / 2e-6, rtol=1e-6, atol=1e-6)


def test_positions_are_set_in_arrays_of_unknown_size() -> None:
    def change(x: Any) -> Any:
        y = np.copy(x)
        np.put(y, [1, -1], [5.0, 6.0])
        np.putmask(y, y < 0, [7.0, 8.0])
        np.fill_diagonal(y, [1.0, 2.0])
        np.put_along_axis(y, np.argmax(x, 1)[:, None], 9.0, 1)
        y.flat[[1, -2]] = y.flat[2]
        return y

    kernel = pg.compile(pg.trace(change, pg.spec(("N", "M"))))
    for shape in ((3, 4), (5, 2)):
        x = RNG.normal(size=shape)
        np.testing.assert_array_equal(kernel(x), change(x))


def test_extremes_at_positions_have_nan_and_all_dtypes() -> None:
    places = np.array([1, 0, 1, 3, 3])
    for dtype in ("float64", "float32", "int8", "uint16", "bool"):
        start = RNG.integers(0, 2, 5).astype(dtype)
        updates = RNG.integers(0, 5, 5).astype(dtype)
        if dtype.startswith("float"):
            updates[2] = np.nan
        for name in ("maximum", "minimum"):
            expected = start.copy()
            with np.errstate(invalid="ignore"):
                getattr(np, name).at(expected, places, updates)
            found = getattr(pg, f"scatter_{name[:3]}")(start, places, updates).numpy()
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == dtype


def test_extremes_are_scattered_along_an_axis() -> None:
    x, updates = RNG.normal(size=(2, 4)), RNG.normal(size=(2, 3))
    expected = x.copy()
    np.maximum.at(expected, (slice(None), [3, 0, 3]), updates)
    np.testing.assert_array_equal(pg.scatter_max(x, [3, 0, 3], updates, axis=1), expected)
    graph = pg.trace(lambda x, u: pg.scatter_min(x, [3, 0, 3], u, axis=1), x, updates)
    pg.check_grads(graph, [x, updates], order=2)


def test_what_numpy_refuses_is_refused() -> None:
    x = pg.tensor(MATRIX)
    for wrong, words in (
        (lambda: np.fill_diagonal(x[0], 1.0), "2 or more axes"),
        (lambda: np.fill_diagonal(pg.tensor(np.ones((2, 3, 2))), 1.0), "must have one size"),
        (lambda: np.fill_diagonal(x, []), "at least one value"),
        (lambda: np.place(x, x > 0, []), "at least one value"),
        (lambda: np.put(x, [0], [1.0], mode="up"), "'raise', 'wrap' or 'clip'"),
        (lambda: np.put(x, [12], [1.0]), "out of bounds"),
        (lambda: np.put_along_axis(x, np.array([0]), 1.0, 1), "1 axes of indices"),
        (lambda: np.put_along_axis(x, np.array([[0]]), 1.0, None), "takes a vector"),
        (lambda: pg.diag_indices_from(x), "equal sizes"),
        (lambda: np.add.at(pg.tensor([1, 2]), [0], 1.5), "cannot put"),
        (lambda: np.sin(x, np.zeros((3, 2))), "to out= of shape"),
    ):
        with pytest.raises(pg.PrimgraphError, match=words):
            wrong()


def test_logsumexp_has_the_sign_as_scipy_returns_it() -> None:
    special = pytest.importorskip("scipy.special")
    weights = np.array([1.0, -2.0, 0.0, 3.0])
    tables: list[tuple[Any, dict[str, Any]]] = [
        (MATRIX, {"axis": 1, "b": weights}),
        (MATRIX, {"axis": 0, "b": -np.ones(4), "keepdims": True}),
        (MATRIX, {}),
        (MATRIX, {"b": np.zeros(4), "axis": 0}),
        (np.full(2, -np.inf), {}),
        (np.array([1000.0, np.inf, -np.inf, 0.0]), {"b": weights}),
        (MATRIX + 1j * MATRIX[::-1], {"axis": 0}),
        (1j * MATRIX, {"b": weights}),
    ]
    for x, options in tables:
        with np.errstate(all="ignore"):
            expected = special.logsumexp(x, return_sign=True, **options)
        found = pg.jit(lambda x, o=options: special.logsumexp(x, return_sign=True, **o))(x)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, 1e-13, 1e-13)
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
    for x, options in tables[:3]:
        graph = pg.trace(lambda x, o=options: pg.logsumexp(x, return_sign=True, **o)[0], x)
        pg.check_grads(graph, [x], order=2)
