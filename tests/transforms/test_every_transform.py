"""Random programs go through every transform that is declared, and keep what they compute."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter

import pytest
from density import starts
from program_transforms import CHECKS, check_transforms
from random_programs import random_program

from primgraph import transforms
from primgraph.transforms.dataflow.contract import declared

_PROGRAMS = 100
_USUAL = 10
_CHUNK = 10


def test_every_transform_that_is_declared_has_a_check() -> None:
    """A new one wants a function in `program_transforms`, which compares what it computes."""
    for module in pkgutil.walk_packages(transforms.__path__, f"{transforms.__name__}."):
        importlib.import_module(module.name)
    known = {name for name in declared if name.startswith("primgraph.")}
    missing = sorted(known - {f"{t.__module__}.{t.__qualname__}" for t in CHECKS})
    assert not missing, f"add checks of {missing} to tests/drafts/program_transforms.py"
    assert len(CHECKS) == len(known)
    assert len(known) >= 16


def test_some_random_programs_keep_what_they_compute() -> None:
    """For `-m quick`: programs of its own, in which not all transforms find something to do."""
    for seed in range(3000 + _PROGRAMS, 3003 + _PROGRAMS):
        check_transforms(random_program(seed), Counter())


@pytest.mark.parametrize("start", starts(3000, _PROGRAMS, _CHUNK, dense=_USUAL, long=0))
def test_random_programs_keep_what_they_compute_through_every_transform(start: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(start, start + _CHUNK):
        program = random_program(seed)
        try:
            check_transforms(program, seen)
        except AssertionError as error:
            raise AssertionError(f"{program}\n{error}") from error
    assert {t.__name__ for t in CHECKS} == set(seen)
