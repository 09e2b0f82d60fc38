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
        return y

    kernel = pg.compile(pg.trace(change, pg.spec(("N", "M"))))
    for shape in ((3, 4), (5, 2)):
        x = RNG.normal(size=shape)
        np.testing.assert_array_equal(kernel(x), change(x))


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
    ):
        with pytest.raises(pg.PrimgraphError, match=words):
            wrong()
