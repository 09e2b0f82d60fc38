"""Shortcuts of compiled functions: repeated calls run a kernel after one check, and only these."""

from __future__ import annotations

import enum
import sys
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import primgraph as pg
from primgraph import nn

X = np.array([0.3, 0.6, 0.9])
Pair = namedtuple("Pair", ["first", "second"])


class Key(enum.StrEnum):
    A = "a"


def python_calls(function: Any, *args: Any, **kwargs: Any) -> int:
    """Return how many functions of Python a call calls."""
    count = 0

    def trace(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(trace)
    try:
        function(*args, **kwargs)
    finally:
        sys.setprofile(None)
    return count


def total(tree: Any) -> Any:
    """Return the weighted sum of all leaves of containers, and the containers."""
    leaves = pg.tree.leaves(tree)
    return sum(((k + 1.0) * leaf for k, leaf in enumerate(leaves)), 0.0), tree


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize(
    "make",
    [
        lambda k: (X + k,),
        lambda k: ({"b": X + k, "a": [X, (X * k, None)]},),
        lambda k: ([X + k] * 3, {}, ()),
        lambda k: (X, 0.5 + k),
        lambda k: (X, 2 + k, True),
        lambda k: (np.ones((2, 40)) * k, np.ones((2, 1))),
    ],
)
def test_repeated_calls_take_few_calls_of_python(make: Any, target: str) -> None:
    f = pg.jit(lambda *trees: total(trees), target=target)
    for k in range(4):
        found, tree = f(*make(k))
        expected, same = total(make(k))
        np.testing.assert_allclose(found, expected, rtol=1e-15)
        assert pg.tree.structure(tree) == pg.tree.structure(same)
        for one, other in zip(pg.tree.leaves(tree), pg.tree.leaves(same), strict=True):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == np.asarray(other).dtype
    assert python_calls(f, *make(5)) <= 8
    assert len(f.compilations) == 1


def test_keywords_and_static_arguments_take_few_calls_too() -> None:
    f = pg.jit(lambda x, n, axes: pg.sum(x, axes) * n, static_argnames=("n", "axes"))
    a = np.ones((2, 3))
    for _ in range(3):
        np.testing.assert_array_equal(f(a, n=2, axes=(0,)), [4.0, 4.0, 4.0])
        np.testing.assert_array_equal(f(a, axes=(1,), n=2), [6.0, 6.0])
        np.testing.assert_array_equal(f(a, 3, axes=(1,)), [9.0, 9.0])
        np.testing.assert_array_equal(f(x=a, n=2.0, axes=(1,)), [6.0, 6.0])
    assert len(f.compilations) == 4
    for _ in range(2):
        assert f(a, n=2, axes=(0,)) is not None
        assert f(a, n=True, axes=(0,))[0] == 2.0
    assert python_calls(f, a, n=True, axes=(0,)) <= 8
    with pytest.raises(pg.ArgumentError, match="hashed"):
        f(a, n=2, axes=[0])
    with pytest.raises(TypeError):
        f(a, 2, (0,), 1)


def test_functions_of_any_keywords_see_their_order() -> None:
    f = pg.jit(lambda x, **kw: (total([*kw.values()])[0] + x, kw))
    for _ in range(4):
        for names in ["ab", "ba"]:
            found, tree = f(X, **{names[0]: X, names[1]: 2.0 * X})
            np.testing.assert_allclose(found, 6.0 * X)
            assert [*tree] == [*names]
            found, tree = f(**{names[0]: X, "x": 0.0 * X, names[1]: 2.0 * X})
            np.testing.assert_allclose(found, 5.0 * X)
            assert [*tree] == [*names]


@pytest.mark.parametrize(
    "others",
    [
        [{"a": X}, {Key.A: X}, {1: X}, {True: X}, {"b": X}],
        [{"a": X, "b": 2 * X}, {"b": 2 * X, "a": X}],
        [[X, X], (X, X), Pair(X, X), {"0": X, "1": X}],
        [X, X.astype(np.float32), X[:2], X.reshape(3, 1), [X]],
        [0.5, np.float64(0.5), np.array(0.5), np.float32(0.5), 1, True, 0.5 + 0j],
        [None, (), [], {}],
    ],
)
def test_calls_of_other_kinds_have_results_of_their_own(others: list[Any]) -> None:
    f = pg.jit(lambda tree, x: (total(tree), x))
    for _ in range(4):
        for one in others:
            (found, tree), _ = f(one, X)
            assert pg.tree.structure(tree) == pg.tree.structure(one)
            kinds = [*map(type, tree)] if isinstance(tree, dict) else []
            assert kinds == ([*map(type, one)] if isinstance(one, dict) else [])
            np.testing.assert_allclose(found, total(one)[0])
            given = [np.asarray(leaf).dtype for leaf in pg.tree.leaves(one)]
            assert [leaf.dtype for leaf in pg.tree.leaves(tree)] == given


def test_shortcuts_look_at_the_default_dtype_modes_and_programs() -> None:
    layer = nn.Dropout(0.5)
    f = pg.jit(lambda x: layer(x) * 2.0)
    layer.eval()
    for _ in range(3):
        np.testing.assert_array_equal(f(X), 2.0 * X)
    layer.train()
    assert any(0.0 in f(np.ones(50)) for _ in range(3))
    layer.eval()
    np.testing.assert_array_equal(f(X), 2.0 * X)
    g = pg.jit(lambda x: x + pg.zeros(3))
    small = X.astype(np.float32)
    assert [g(small).dtype for _ in range(3)] == [np.float64] * 3
    pg.set_default_dtype("float32")
    try:
        assert [g(small).dtype for _ in range(3)] == [np.float32] * 3
    finally:
        pg.set_default_dtype("float64")
    assert g(small).dtype == np.float64
    with pg.Program():
        assert isinstance(f(X), pg.Variable)
    assert isinstance(pg.jit(lambda x: f(x))(X), np.ndarray)


def test_arrays_in_other_layouts_and_failures_are_the_kernels_business() -> None:
    f = pg.jit(lambda x, y: pg.linalg.solve(x, y))
    a, b = np.array([[2.0, 1.0], [0.0, 4.0]]), np.ones(2)
    for _ in range(3):
        np.testing.assert_allclose(f(a, b), np.linalg.solve(a, b))
    np.testing.assert_allclose(f(a.T, b), np.linalg.solve(a.T, b))
    frozen = a.copy()
    frozen.setflags(write=False)
    np.testing.assert_allclose(f(frozen, b), np.linalg.solve(a, b))
    with pytest.raises(pg.LinAlgError):
        f(np.zeros((2, 2)), b)
    np.testing.assert_allclose(f(a, b), np.linalg.solve(a, b))
    # Overflow leaves the arithmetic of Python's numbers.
    g = pg.jit(lambda x: pg.exp(x))
    for _ in range(3):
        np.testing.assert_array_equal(g(np.array([800.0, 0.0])), [np.inf, 1.0])


def test_results_of_calls_share_no_memory() -> None:
    f = pg.jit(lambda d: {"same": d["x"], "twice": [d["x"], 2.0 * d["x"]]})
    found = [f({"x": X}) for _ in range(4)]
    arrays = [X, *[leaf for tree in found for leaf in pg.tree.leaves(tree)]]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])
    assert all(a.flags.writeable for a in arrays)
