"""Random programs with guards: all checks of `program_guard_checks`, on some of them."""

from collections import Counter

import numpy as np
import pytest
from density import starts
from program_guard_checks import check_guarded
from program_guards import GuardedProgram

_PROGRAMS = 120
_USUAL = 12
_CHUNK = 6
_QUICK = 12


@pytest.mark.parametrize("start", starts(0, _PROGRAMS, _CHUNK, dense=_USUAL, long=_QUICK))
def test_derivatives_do_not_see_what_nothing_chooses(start: int) -> None:
    for seed in range(start, start + _CHUNK):
        program = GuardedProgram(seed)
        try:
            check_guarded(program)
        except Exception as error:
            raise AssertionError(f"{program}\n{error}") from error


def test_programs_have_guards_of_all_kinds() -> None:
    """Most rows that are left out make a plain derivative infinite or NaN."""
    kinds: Counter[bool] = Counter()
    for seed in range(60):
        program = GuardedProgram(seed)
        assert 0 < np.sum(program.fine) < len(program.fine)
        lost = program.feeds()[0][~program.fine]
        kinds.update([bool(np.all(np.isfinite(lost)))])
        assert np.all(program.feeds()[0][program.fine] > 0)
    assert min(kinds.values()) >= 3


def test_the_same_seed_gives_the_same_guarded_program() -> None:
    one, other = GuardedProgram(4), GuardedProgram(4)
    assert str(one) == str(other) != str(GuardedProgram(5))
    assert str(GuardedProgram(4, frozenset({one.steps.index(one.steps[0])}))) != ""
