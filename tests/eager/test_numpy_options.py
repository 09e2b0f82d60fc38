"""NumPy's options on tensors: `out=`, `casting=`, `mean=`, static integers that are tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primgraph as pg
import primgraph.numpy as pnp

X = np.array([[1.0, 2.0, 4.0], [3.0, 9.0, 5.0]])


def test_results_of_tensors_are_written_to_arrays_and_tensors() -> None:
    x = pg.tensor(X)
    for out in (np.zeros((4, 3)), pg.zeros((4, 3))):
        assert np.concatenate([x, x], out=out) is out
        np.testing.assert_array_equal(out, np.concatenate([X, X]))
    total = np.zeros(3, np.float32)
    np.add.reduce(x, out=total)
    np.testing.assert_array_equal(total, X.sum(0))
    x.clip(2, 4, out=x)
    np.testing.assert_array_equal(x, X.clip(2, 4))


def test_casting_is_that_of_numpy() -> None:
    x = pg.tensor(X)
    whole = pg.zeros((2, 3), dtype=int)
    with pytest.raises(TypeError, match="cannot write float64 to out= of int64"):
        np.add(x, 1.5, out=whole)
    np.add(x, 1.5, out=whole, casting="unsafe")
    np.testing.assert_array_equal(whole, (X + 1.5).astype(int))
    with pytest.raises(TypeError, match="with casting 'safe'"):
        np.stack([x, x], dtype="float32", casting="safe")
    with pytest.raises(TypeError, match="out= or dtype=, not both"):
        np.stack([x, x], dtype="float32", out=pg.zeros((2, 2, 3)))
    with pytest.raises(ValueError, match="to out= of shape"):
        np.add(x, 1.0, out=np.zeros(3))


@pytest.mark.parametrize("function", [np.var, np.std, np.nanvar, np.nanstd])
def test_spreads_about_given_means(function: Callable[..., Any]) -> None:
    hole = X.copy()
    hole[0, 1] = np.nan
    for array in (X, hole):
        for options in (
            {},
            {"ddof": 1},
            {"correction": 0.5, "keepdims": True},
            {"ddof": 0, "correction": 1},
        ):
            mean = np.nanmean(array, axis=1, keepdims=True)
            expected = function(array, axis=1, mean=mean, **options)
            found = function(pg.tensor(array), axis=1, mean=mean, **options)
            np.testing.assert_allclose(found, expected, 1e-14)
    mask = X > 1.5
    expected = function(X, axis=0, mean=2.0, where=mask)
    np.testing.assert_allclose(function(pg.tensor(X), axis=0, mean=2.0, where=mask), expected)
    with pytest.raises(ValueError, match="ddof and correction can't be provided simultaneously"):
        function(pg.tensor(X), ddof=1, correction=1)
    expected = function(X, ddof=0, correction=1)
    np.testing.assert_allclose(function(pg.tensor(X), ddof=0, correction=1), expected, 1e-14)


STATIC: dict[str, Callable[[Any], Any]] = {
    "insert": lambda of: np.insert(of(X), of(np.array([0, 1])), 9.0, axis=1),
    "delete": lambda of: np.delete(of(X), of(np.array([True, False, True])), axis=1),
    "pad": lambda of: np.pad(of(X), of(np.array([[1, 0], [0, 2]]))),
    "partition": lambda of: np.partition(of(X), of(np.array([1])), axis=1),
    "einsum": lambda of: np.einsum(of(X), of(np.array([0, 1])), of(np.array([1, 0]))),
}


@pytest.mark.parametrize("name", STATIC)
def test_static_integers_may_be_tensors(name: str) -> None:
    np.testing.assert_array_equal(STATIC[name](pg.tensor), STATIC[name](np.asarray))


def test_functions_of_numbers_take_tensors() -> None:
    np.testing.assert_array_equal(pnp.hanning(pg.tensor(5)), np.hanning(5))
    assert pnp.isscalar(pg.tensor(5.0)) is False
    with pytest.raises(pg.PrimgraphError):
        pg.grad(lambda x: pg.sum(pnp.kaiser(4, x)))(1.0)


def test_arrays_are_filled_from_tensors() -> None:
    array = np.zeros(4)
    np.put(array, pg.tensor([0, 2]), pg.tensor([5.0, 6.0]))
    np.copyto(array, pg.tensor(7.0), where=np.array([False, True, False, False]))
    np.testing.assert_array_equal(array, [5.0, 7.0, 6.0, 0.0])


def test_errors_of_axes_are_numpys() -> None:
    with pytest.raises(np.exceptions.AxisError, match="out of bounds"):
        np.flip(pg.tensor(X), 5)


def test_matrices_that_are_not_square_are_an_error_of_linalg() -> None:
    for call in (np.linalg.inv, np.linalg.det, lambda x: np.linalg.matrix_power(x, 2)):
        with pytest.raises(np.linalg.LinAlgError, match="takes square matrices"):
            call(pg.tensor(X))


def test_no_parts_are_unstacked() -> None:
    assert len(pg.unstack(pg.zeros((2, 0)), axis=-1)) == 0


def test_methods_take_numpys_modes() -> None:
    x = pg.tensor(X)
    np.testing.assert_array_equal(x.take([4, -1], 1, mode="wrap"), X.take([4, -1], 1, mode="wrap"))
    out = np.zeros(3)
    assert pg.tensor([0, 1, 0]).choose([x[0], x[1]], out=out) is out
    np.testing.assert_array_equal(out, [1.0, 9.0, 4.0])
