"""Functions of tensors, arrays and installed modules mean the drop-in as what is traced does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import primgraph as pg
import primgraph.numpy

X = np.array([0.3, 0.6, 0.9])


def test_functions_of_installed_modules_are_followed_where_they_are_named() -> None:
    scipy = pytest.importorskip("scipy")
    optimize = pytest.importorskip("scipy.optimize")
    x = np.array([1.1, 0.9, 1.3])
    for traced in (pg.compile(pg.trace(optimize.rosen, x, through=[scipy])),
                   pg.jit(optimize.rosen, through=[scipy])):  # fmt: skip
        np.testing.assert_allclose(traced(x), optimize.rosen(x), rtol=1e-15)
    with pytest.raises(TypeError, match="no elements before the compiled function runs"):
        pg.trace(optimize.rosen, x)
    with pytest.raises(pg.ArgumentError, match="through is a list of modules, not of str 'scipy'"):
        pg.jit(optimize.rosen, through=["scipy"])  # type: ignore[list-item]


def filled(x: Any) -> Any:
    y = np.zeros(3)
    y[0] = x[0] * x[1]
    y[1:] = np.array([math.sin(x[0]), float(3)])
    return np.sum(y**2)


def test_functions_of_tensors_mean_the_drop_in_too() -> None:
    at = np.array([0.3, 0.7])
    wanted = pg.jit(pg.grad(filled))(at)
    assert np.all(wanted != 0.0)
    np.testing.assert_allclose(pg.grad(filled)(at), wanted, rtol=1e-15)
    np.testing.assert_allclose(pg.vjp(filled, at)[1], wanted, rtol=1e-15)
    np.testing.assert_allclose(
        pg.hessian(filled)(at), pg.jacfwd(pg.grad(filled))(at), rtol=1e-14
    )  # fmt: skip
    np.testing.assert_allclose(pg.laplacian(filled)(at), np.trace(pg.hessian(filled)(at)))
    # What Python decides by, it decides by numbers.
    turned = pg.grad(lambda x: np.sum(np.array([x[0], x[1]])) if x[0] > x[1] else x[0] * 3.0)
    np.testing.assert_array_equal(turned(np.array([2.0, 1.0])), [1.0, 1.0])
    np.testing.assert_array_equal(turned(np.array([1.0, 2.0])), [3.0, 0.0])


OUTSIDE = np.zeros(2)


def test_numbers_are_not_taken_unseen_of_what_derivatives_go_through() -> None:
    def kept(x: Any) -> Any:
        OUTSIDE[0] = x[0]
        return np.sum(x) + OUTSIDE[0]

    with pytest.raises(ValueError, match="OUTSIDE was computed by NumPy before tracing"):
        pg.grad(kept)(X)
    with pytest.raises(pg.BuildError, match="numbers alone would lose the derivatives"):
        pg.grad(lambda x: x[0] * float(x[1]))(X)
    # Integers have no derivative, and numbers may be asked for by name.
    assert pg.grad(lambda x: x[0] * int(x[1] * 10.0) * np.int64(x[2] * 10.0))(X)[0] == 54.0
    assert pg.grad(lambda x: x[0] * x[1].item())(X)[0] == 0.6


# Functions that a transform wraps.


def shifted(a):
    b = a.copy()
    b[1:] = a[:-1]
    b[:1] = math.sin(0.5)
    return np.cumsum(b * b)


def gathered(a):
    b = np.zeros(3)
    b.fill(2.0)
    b[1:] += a[1:]
    return b * a


ROWS = np.arange(6.0).reshape(2, 3) / 5.0
WRAPPED = {
    "vmap": lambda f: pg.vmap(f),
    "vmap of vmap": lambda f: lambda a: pg.vmap(pg.vmap(f))(a[None])[0],
    "jit": lambda f: pg.vmap(pg.jit(f)),
    "checkpoint": lambda f: pg.vmap(pg.checkpoint(f)),
    "grad": lambda f: pg.vmap(pg.grad(lambda a: np.sum(f(a)))),
    "jvp": lambda f: pg.vmap(lambda a: pg.jvp(f, a)[1]),
    "jacobian": lambda f: pg.vmap(pg.jacobian(f)),
    "scan": lambda f: lambda a: pg.scan(lambda c, row: (c, f(row)), 0.0, a)[1],
    "map": lambda f: lambda a: pg.map(f, a),
    "cond": lambda f: pg.vmap(lambda a: pg.cond(np.sum(a) > 0.0, f, f, a)),
}


def expected_of(name, f):
    if name not in ("grad", "jvp", "jacobian"):
        return np.stack([f(row) for row in ROWS])
    steps = 1e-6 * np.eye(3)
    whole = [np.stack([(f(row + e) - f(row - e)) / 2e-6 for e in steps], axis=1) for row in ROWS]
    axis = {"grad": 1, "jvp": 2}.get(name)
    return np.stack(whole) if axis is None else np.stack(whole).sum(axis)


@pytest.mark.parametrize("f", [shifted, gathered])
@pytest.mark.parametrize("name", WRAPPED)
def test_names_are_followed_into_what_a_transform_wraps(name, f):
    wrapped, expected = WRAPPED[name](f), expected_of(name, f)
    for found in (
        pg.jit(wrapped)(ROWS),
        pg.jit(lambda a: wrapped(a * 1.0))(ROWS),
        pg.compile(pg.trace(wrapped, ROWS))(ROWS),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_names_are_followed_from_a_program():
    with pg.Program() as program:
        a = pg.data("a", (2, 3))
        found = [
            pg.vmap(shifted)(a),
            pg.scan(lambda c, row: (c, shifted(row)), 0.0, a)[1],
            pg.vmap(pg.checkpoint(gathered))(a),
        ]
    values = pg.Executor().run(program, {"a": ROWS}, found)
    for value, f in zip(values, (shifted, shifted, gathered), strict=True):
        np.testing.assert_allclose(value, np.stack([f(row) for row in ROWS]))


def test_functions_of_the_drop_in_are_called_by_other_names():
    deviation = primgraph.numpy.std
    x = np.array([[1.0, 2.0], [4.0, 3.0]])
    found = pg.value_and_grad(lambda x: deviation(x))(x)
    np.testing.assert_allclose(found[0], np.std(x))
    np.testing.assert_allclose(found[1], (x - np.mean(x)) / (4 * np.std(x)))
