"""The cache of compiled functions: its keys, what a miss costs, eviction and warnings."""

from __future__ import annotations

import gc
import inspect
import pickle
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from program_statics import check_statics

import primgraph as pg
from primgraph import nn

X = np.array([0.3, 0.6, 0.9])


@dataclass(frozen=True)
class Config:
    scale: Any


@dataclass(frozen=True)
class Rounded:
    """A dataclass whose equality is written by the user, of what cannot be hashed."""

    values: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rounded) and sum(self.values) == sum(other.values)

    def __hash__(self) -> int:
        return hash(sum(self.values))


def described(x: Any, static: Any) -> Any:
    """Return `x`, and as the length of a second result a number that tells leaves apart."""
    return x, np.zeros(len(f"{static!r}"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((2,), (2.0,)),
        (0.0, -0.0),
        (("neg", 1), ("neg", True)),
        ((((1,),),), (((1.0,),),)),
        (frozenset({0.0}), frozenset({-0.0})),
        (Config((1,)), Config((1.0,))),
        (Config(0.0), Config(-0.0)),
        (np.float64(0.0), np.float64(-0.0)),
        (("bool", 1), True),
        (range(0), range(1, 1)),
        (1 + 0j, complex(1, -0.0)),
    ],
)
def test_static_arguments_with_other_leaves_are_compiled_for_themselves(
    one: Any, other: Any
) -> None:
    f = pg.jit(described, static_argnames="static")
    for _ in range(2):
        for value in (one, other):
            assert f(X, static=value)[1].shape == (len(f"{value!r}"),)
    assert len(f.compilations) == 2
    assert str(f.compilations[1]) == f"static is {other!r}, and was {one!r}"


@pytest.mark.parametrize(
    "make",
    [
        lambda: float("nan"),
        lambda: (float("nan"), 1),
        lambda: np.float32("nan"),
        lambda: Config(float("nan")),
        lambda: frozenset({1, "a"}),
        lambda: Rounded([1, 2]),
    ],
)
def test_equal_static_arguments_are_compiled_once(make: Any) -> None:
    f = pg.jit(described, static_argnames="static")
    for _ in range(3):
        f(X, static=make())
    assert len(f.compilations) == 1


def test_static_arguments_of_other_classes_go_by_their_own_equality() -> None:
    f = pg.jit(described, static_argnames="static")
    f(X, static=Rounded([1, 2])), f(X, static=Rounded([2, 1])), f(X, static=Rounded([2, 2]))
    assert len(f.compilations) == 2


def test_static_arguments_that_cannot_be_hashed_are_refused_within_tuples() -> None:
    f = pg.jit(described, static_argnames="static")
    with pytest.raises(pg.ArgumentError, match=r"static is static, and tuple \(1, \[2\]\) cannot"):
        f(X, static=(1, [2]))


def test_keys_of_containers_are_told_apart_as_static_values_are() -> None:
    f = pg.jit(lambda d: next(d[k] * (2.0 if type(k) is int else 3.0) for k in d))
    np.testing.assert_array_equal(f({1: X}), 2.0 * X)
    np.testing.assert_array_equal(f({1.0: X}), 3.0 * X)
    np.testing.assert_array_equal(f({True: X}), 3.0 * X)


@pytest.mark.parametrize("seed", range(6))
def test_random_static_arguments(seed: int) -> None:
    check_statics(seed, Counter())


real = inspect.signature


def scaled(x: Any, n: Any) -> Any:
    return x * n


@contextmanager
def calls_of_python() -> Iterator[list[int]]:
    """Count the functions of Python that are called."""
    count = [0]

    def trace(frame: Any, event: str, argument: Any) -> None:
        count[0] += event == "call"

    sys.setprofile(trace)
    try:
        yield count
    finally:
        sys.setprofile(None)


@pytest.mark.filterwarnings("ignore::primgraph.RecompilationWarning")
def test_a_miss_costs_the_same_at_any_number_of_entries(monkeypatch: Any) -> None:
    f = pg.jit(scaled, static_argnames="n", max_entries=80)
    work = []
    for n in range(150):
        with calls_of_python() as count:
            f(X, n=float(n + 1))
        work.append(count[0])
    few, many, full = (sorted(work[k - 10 : k])[5] for k in (20, 75, 150))
    assert many < 1.1 * few
    assert full < 1.1 * few
    bound = Counter[str]()
    monkeypatch.setattr(
        inspect, "signature", lambda *a, **k: bound.update(["signature"]) or real(*a, **k)
    )
    f(X, n=1000.0)
    assert bound["signature"] <= 4


def test_the_least_recently_used_entry_is_evicted() -> None:
    traced: list[int] = []

    def f(x: Any) -> Any:
        traced.append(x.shape[0])
        # Equal graphs share code: no other test holds that of this one.
        return x * 2.71875

    compiled = pg.jit(f, max_entries=2)
    one, two, three = np.ones(1), np.ones(2), np.ones(3)
    compiled(one), compiled(two)
    kernel = weakref.ref(compiled.kernel(two)._code)
    compiled(one)
    compiled(three)
    gc.collect()
    assert kernel() is None, "evicted code is freed"
    assert len(compiled.compilations) == 2
    compiled(one), compiled(three)
    assert traced == [1, 2, 3]
    np.testing.assert_array_equal(compiled(two), 2.71875 * two)
    assert traced == [1, 2, 3, 2]
    assert [str(c) for c in compiled.compilations] == [
        "x is f64[3], and was f64[2]",
        "x is f64[2], and was f64[3]",
    ]
    again = pickle.loads(pickle.dumps(pg.jit(scaled, max_entries=2)))
    assert again.max_entries == 2
    compiled.clear_cache()
    assert not compiled.compilations
    compiled(one)
    assert [str(c) for c in compiled.compilations] == ["the first call"]


def test_entries_of_other_modes_are_evicted_too() -> None:
    layer = nn.Dropout(0.5)
    compiled = pg.jit(lambda x: layer(x), max_entries=1)
    for _ in range(2):
        layer.train(), compiled(X)
        assert [str(c) for c in compiled.compilations] != []
        layer.eval()
        np.testing.assert_array_equal(compiled(X), X)
        assert len(compiled.compilations) == 1


@pytest.mark.parametrize("bound", [0, -1, 2.0, True, None])
def test_a_bound_of_entries_is_an_integer_from_1_on(bound: Any) -> None:
    with pytest.raises(pg.ArgumentError, match="max_entries"):
        pg.jit(scaled, max_entries=bound)


@pytest.mark.parametrize(
    ("call", "cause", "hint"),
    [
        (lambda f, i: f(X, n=float(i)), r"the value of n changed \(now n is 31.0, and was 30.0\)",
         "trace it"),
        (lambda f, i: f(np.ones(i + 1), n=2.0), r"the shape of x changed \(now x is f64\[32\], and "
         r"was f64\[31\]\)", "name the sizes"),
        (lambda f, i: f({f"k{i}": X}, n=2.0), "the containers of x changed", "built alike"),
    ],
)  # fmt: skip
def test_a_warning_tells_why_a_function_is_compiled_again_and_again(
    call: Any, cause: str, hint: str
) -> None:
    def f(x: Any, n: Any) -> Any:
        return {k: v * n for k, v in x.items()} if isinstance(x, dict) else x * n

    compiled = pg.jit(f, static_argnames="n", max_entries=4)
    for i in range(31):
        call(compiled, i)
    with pytest.warns(pg.RecompilationWarning, match=f"{cause}.*{hint}.*max_entries") as found:
        call(compiled, 31)
    assert "compiled 32 times, 31 of the last 32 times" in str(found[0].message)
    assert found[0].filename == __file__
    for i in range(32, 63):
        call(compiled, i)
    with pytest.warns(pg.RecompilationWarning, match="compiled 64 times"):
        call(compiled, 63)


@pytest.mark.filterwarnings("ignore::primgraph.RecompilationWarning")
def test_threads_share_a_small_cache() -> None:
    compiled = pg.jit(lambda x: x * 2.0, max_entries=2)
    wrong: list[Any] = []

    def use(first: int) -> None:
        for i in range(10):
            x = np.ones((first + i) % 3 + 1)
            try:
                np.testing.assert_array_equal(compiled(x), 2.0 * x)
            except BaseException as error:
                wrong.append(error)

    threads = [threading.Thread(target=use, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(compiled.compilations) <= 2
