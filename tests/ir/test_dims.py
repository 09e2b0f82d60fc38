"""Integer expressions in sizes: their normal form, what is decided of them, and their text."""

from __future__ import annotations

import copy
import itertools
import pickle
import random
from typing import Any

import pytest

import primgraph as pg
from primgraph.ir.dims import Dim, bounds, extent_at, parse_extent, size

N, M = size("N"), size("M")
_SIZES = [dict(zip("NM", pair, strict=True)) for pair in itertools.product(range(6), repeat=2)]


def _drawn(depth: int, rng: random.Random, sizes: dict[str, int]) -> tuple[Any, int]:
    """An expression, and what Python's integers give for it at `sizes`."""
    if depth == 0:
        number = rng.randint(-3, 5)
        return rng.choice([(N, sizes["N"]), (M, sizes["M"]), (number, number)])
    (a, x), (b, y) = (_drawn(depth - 1, rng, sizes) for _ in range(2))
    kind, c = rng.randrange(6), rng.choice([1, 2, 3, 4, 6, -2])
    if kind < 3:
        return [(a + b, x + y), (a - b, x - y), (a * b, x * y)][kind]
    if kind < 5:
        return (a // c, x // c) if kind == 3 else (a % c, x % c)
    if isinstance(a, Dim):
        return rng.choice([(a.max(b), max(x, y)), (a.min(b), min(x, y))])
    return a, x


def test_expressions_are_what_integers_give() -> None:
    for seed in range(600):
        rng = random.Random(seed)
        sizes = rng.choice(_SIZES)
        found, wanted = _drawn(3, rng, sizes)
        assert extent_at(found, sizes) == wanted, (seed, found, sizes)


def test_text_reads_back_to_the_same_object_and_bounds_hold() -> None:
    for seed in range(300):
        found, _ = _drawn(3, random.Random(seed), _SIZES[0])
        assert parse_extent(str(found)) is found or parse_extent(str(found)) == found
        ceiling = -(-seed // (N + 1)) + found
        assert parse_extent(str(ceiling)) is ceiling
        low, high = bounds(found)
        assert all(low <= extent_at(found, s) <= high for s in _SIZES), (seed, found)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((N + 1) * (N - 1) + 1, N * N),
        (N + M - N, M),
        ((2 * N + 1) // 2, N),
        (2 * N // 4, N // 2),
        (N // 2 // 3, N // 6),
        ((N + 2) // 2, N // 2 + 1),
        (N // 3 * 3 + N % 3, N),
        (N % 3 % 3, N % 3),
        ((4 * N) % 2, 0),
        (N * M // M, N),
        ((N * M + M) // M, N + 1),
        (N.max(N + 1), N + 1),
        (N.min(3 * N), N),
        (N.max(M), M.max(N)),
        (3 * N**2, 3 * N * N),
    ],
)
def test_what_is_equal_for_all_sizes_is_one_object(one: Any, other: Any) -> None:
    assert one is other or one == other
    assert hash(one) == hash(other)


@pytest.mark.parametrize(
    ("extent", "text"),
    [
        (2 * N + 1, "2*N+1"),
        (N * M - 3, "M*N-3"),
        ((N + 1) // 2, "(N+1)//2"),
        (2 * (N // 2) + N, "2*(N//2)+N"),
        (-N + 1, "-N+1"),
        (N % 3, "mod(N,3)"),
        (N.max(3), "max(3,N)"),
        (N // M, "N//M"),
        (-3 // M, "(-3)//M"),
        (-(-3 // M), "-((-3)//M)"),
    ],
)
def test_text(extent: Dim, text: str) -> None:
    assert str(extent) == text
    assert pg.dim(text) is extent


@pytest.mark.parametrize("text", ["", "N+", "2N", "N/2", "max(N)", "N//0", "f64", "(N", "N,3", "-"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(pg.LoadError, match="is not an extent"):
        pg.dim(text)


def test_what_holds_for_all_sizes_is_decided() -> None:
    assert N >= 0
    assert not N < 0
    assert N + 1 > 0
    assert bool(N + 1)
    assert N + 1 != 0
    assert N // 2 <= N
    assert N.min(M) <= M
    assert N % 4 < 4
    assert N != N + 1
    assert pg.spec(("N", 3)).shape == (N, 3)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: N > 3,
        lambda: N == 3,
        lambda: N != 0,
        lambda: N == M,
        lambda: bool(N),
        lambda: N <= M,
        lambda: max(N, 3),
        lambda: range(N),
        lambda: int(N),
        lambda: float(N),
        lambda: N / 2,
        lambda: 2.5 / N,
    ],
)
def test_what_depends_on_sizes_is_an_error_with_the_line(ask: Any) -> None:
    with pytest.raises(pg.UnknownSizeError, match="not known before the program runs") as caught:
        ask()
    assert "test_dims.py" in str(caught.value)
    assert caught.value.hint


def test_ways_out_are_named() -> None:
    with pytest.raises(pg.UnknownSizeError, match=r"N\.max\(k\) or N\.min\(k\)"):
        _ = N > 3


def test_copies_and_pickles_are_the_same_object() -> None:
    for extent in (N, 2 * N + 1, (N + M) // 3, N.max(M)):
        assert copy.deepcopy(extent) is extent
        assert pickle.loads(pickle.dumps(extent)) is extent


def test_some_sizes_may_stay_unknown() -> None:
    assert (2 * N + M).at({"M": 3}) == 2 * N + 3
    assert (N * M).at({"N": 2, "M": 3}) == 6


def test_names() -> None:
    assert (N // 2 + M).names == {"N", "M"}
    for name in ("2x", "a b", "f64", "max", "None", "", "ä"):
        with pytest.raises(pg.ArgumentError, match="a size is named"):
            size(name)


def test_division_by_a_size_of_zero_is_refused() -> None:
    with pytest.raises(pg.ShapeError, match="divided by zero"):
        (N // M).at({"N": 3, "M": 0})
