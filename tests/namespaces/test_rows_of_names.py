"""Rows of names: a row alone makes a function of NumPy's, or of a library defined by texts."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import primgraph as pg
from primgraph.operators import names, numpy_calls

X = np.array([[3.0, 1.0, 2.0], [0.5, -1.0, 4.0]])


@pytest.fixture(autouse=True)
def own_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a test change the rows."""
    monkeypatch.setattr(names, "_worlds", {w: dict(rows) for w, rows in names._worlds.items()})
    caches = (numpy_calls.known_functions, numpy_calls.counterpart)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def test_a_row_adds_a_function_of_numpy() -> None:
    for world in ("numpy", "operators"):
        del names._worlds[world]["ptp"]
    with pytest.raises(pg.ArgumentError, match=r"numpy\.ptp has no counterpart"):
        np.ptp(pg.tensor(X))
    numpy_calls.known_functions.cache_clear()
    numpy_calls.counterpart.cache_clear()
    names.declare({"operators numpy": {"primgraph.operators.reduce.averages": "ptp"}})
    np.testing.assert_array_equal(np.ptp(pg.tensor(X), axis=1), np.ptp(X, axis=1))
    assert "ptp" in names.names_of("primgraph.operators.reduce.averages")
    all_names, find, listed = names.namespace("primgraph.operators", {})
    assert "ptp" in all_names
    assert "ptp" in listed()
    assert find("ptp") is pg.ptp


def test_a_row_renames_arguments_and_sets_them() -> None:
    batch = np.stack([X[:, :2], X[:, 1:]])
    found = np.linalg.trace(pg.tensor(batch), offset=1)
    np.testing.assert_array_equal(found, np.linalg.trace(batch, offset=1))
    np.testing.assert_allclose(
        np.nanvar(pg.tensor(X), axis=1, correction=1), np.nanvar(X, axis=1, ddof=1)
    )
    (name, row) = numpy_calls.known_functions()[np.nanvar]
    assert (name, row.function, row.renamed) == ("nanvar", "nanvar", {"ddof": "correction"})


# How functions of torch would be rows.
TORCH = """
sum(input, /, dim=None, keepdim=False): sum(axis=dim, keepdims=keepdim)
Compute the sum.
>>> sum(torch.ones(2))
tensor(2.)

var(input, /, dim=None, *, correction=1): var(axis=dim, ddof=correction)
Compute the variance.

clamp(input, /, min=None, max=None): clip

cat(tensors, /, dim=0): concatenate(axis=dim)

swap_last(input, /): swapaxes(axis1=-2, axis2=-1)
"""


def test_texts_define_functions_of_a_library() -> None:
    own: dict[str, Any] = {"__name__": "torch"}
    assert names.define("torch", own, TORCH) == ["sum", "var", "clamp", "cat", "swap_last"]
    x = pg.tensor(X)
    np.testing.assert_array_equal(own["sum"](x, dim=0, keepdim=True), X.sum(0, keepdims=True))
    np.testing.assert_allclose(own["var"](x, 1), X.var(1, ddof=1))
    np.testing.assert_array_equal(own["clamp"](x, max=2.0), X.clip(max=2.0))
    np.testing.assert_array_equal(own["cat"]([x, x], 1), np.concatenate([X, X], 1))
    np.testing.assert_array_equal(own["swap_last"](x), X.T)
    assert str(inspect.signature(own["sum"])) == "(input, /, dim=None, keepdim=False)"
    assert own["sum"].__doc__ == "Compute the sum.\n\n>>> sum(torch.ones(2))\ntensor(2.)"
    assert own["sum"].__module__ == "torch"
    with pytest.raises(TypeError, match="unexpected keyword argument 'axis'"):
        own["sum"](x, axis=0)
