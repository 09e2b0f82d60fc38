"""Random programs of which a part is a custom function: all is what it is without it."""

from collections import Counter

import pytest
from density import starts
from program_custom import KINDS, check_custom
from random_programs import random_program

_CHUNK = 20


@pytest.mark.parametrize("start", starts(2000, 60, _CHUNK, dense=_CHUNK))
def test_a_part_that_has_its_own_derivative_as_rules_changes_nothing(start: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(start, start + _CHUNK):
        program = random_program(seed)
        try:
            check_custom(program, seen)
        except Exception as error:
            raise AssertionError(f"{program}\n{error}") from error
    assert seen["custom: tensors"]
    assert sum(seen[f"custom: {kind}"] for kind in KINDS) > 2
