"""Programs at the sizes at which code changes: all checks of `program_sizes`, from all sides."""

from collections import Counter

import pytest
from program_sizes import THRESHOLDS, check_sizes, sides

_CHUNK = 5
_ALL = 3 * len(THRESHOLDS)
_QUICK = 10


@pytest.mark.parametrize(
    "start",
    [pytest.param(i, marks=[pytest.mark.long] * (i >= _QUICK)) for i in range(0, _ALL, _CHUNK)],
)
def test_programs_at_thresholds_compute_what_the_interpreter_does(start: int) -> None:
    seen: Counter[str] = Counter()
    for number in range(start, start + _CHUNK):
        check_sizes(number, seen)
    assert len(seen) == _CHUNK
    assert set(seen) <= set(sides())


def test_every_threshold_is_a_number_of_the_code() -> None:
    assert all(threshold.limit > 4 for threshold in THRESHOLDS)
    assert len(sides()) == _ALL
