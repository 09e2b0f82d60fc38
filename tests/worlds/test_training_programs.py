"""Random programs that train: all checks of `program_training`, on a few of them."""

from pathlib import Path

import pytest
from density import starts
from program_training import check_training

_PROGRAMS = 60
_USUAL = 10
_CHUNK = 5
_QUICK = 20


@pytest.mark.parametrize("start", starts(0, _PROGRAMS, _CHUNK, dense=_USUAL, long=_QUICK))
def test_runs_of_random_training_programs_do_what_the_interpreter_says(
    start: int, tmp_path: Path
) -> None:
    for seed in range(start, start + _CHUNK):
        try:
            check_training(seed, tmp_path)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error
