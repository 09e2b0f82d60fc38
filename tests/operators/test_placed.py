"""Arrays that come to be part by part, from feeds and into results of every kind, at random."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from density import starts
from program_placed import PlacedProgram
from program_placed_checks import check_placed, check_placed_natively

import primgraph as pg
from primgraph.codegen.ops.table import CARDS
from primgraph.primitives.elementwise import neg

_CHUNK = 6
# The first program that tells wrong numbers of NumPy's from right ones.
_FOUND = 76

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
)


@pytest.mark.parametrize("start", starts(0, 60, _CHUNK, dense=_CHUNK, long=_CHUNK))
def test_arrays_are_what_the_interpreter_makes_wherever_they_land(start: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(start, start + _CHUNK):
        program = PlacedProgram(seed)
        try:
            check_placed(program, seen)
        except Exception as error:
            raise AssertionError(f"{program}\n{error}") from error
    assert seen["placed: parts made where they land"]


@needs_compiler
@pytest.mark.parametrize("start", starts(100, 32, 4, dense=8, long=4))
def test_in_c_too(start: int) -> None:
    check_placed_natively(range(start, start + 4))


def test_what_a_card_says_wrongly_of_numpy_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    if not _is_wrong_in_gaps():
        pytest.skip("this NumPy negates what lies apart as it should")
    monkeypatch.setitem(CARDS, neg, replace(CARDS[neg], spaced=True))  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="planned"):
        check_placed(PlacedProgram(_FOUND), Counter())


def _is_wrong_in_gaps() -> bool:
    x, out = np.arange(64.0, dtype=np.float32)[::4], np.zeros(64, np.float32)[::4]
    return not np.array_equal(np.negative(x, out), -x)


def test_a_program_is_the_same_for_the_same_seed_and_smaller_without_steps() -> None:
    one = PlacedProgram(5)
    assert str(one) == str(PlacedProgram(5)) != str(PlacedProgram(6))
    assert len(replace(one, left_out=frozenset(range(one.count))).graph) < len(one.graph)


@needs_compiler
def test_donated_feeds_are_read_before_results_are_left_there() -> None:
    """Beside arrays that are given for others, and feeds that have to be copied."""

    def f(x, y):  # type: ignore[no-untyped-def]
        return x[::-1] * 2.0, pg.cumsum(x, axis=0) + y, x - y

    x, y = np.arange(12.0).reshape(4, 3), np.linspace(0, 1, 12).reshape(4, 3)
    kernel = pg.compile(pg.trace(f, x, y), target="c", donated={0: 0})
    expected = x[::-1] * 2.0, np.cumsum(x, axis=0) + y, x - y
    for other in (y, np.asfortranarray(y)):
        for out in (None, [None, np.full((4, 3), np.nan), None]):
            given = x.copy()
            found = kernel(given, other, out=out)
            assert found[0] is given
            for one, right in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, right)
