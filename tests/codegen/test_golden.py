"""The readable source of some programs, as kept text, and as formatters would have it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import numpy as np
import pytest
from golden_programs import PROGRAMS, path_of
from random_programs import random_program

import primgraph as pg

RUFF = pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="needs ruff")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_source_is_the_text_that_was_read(name):
    assert PROGRAMS[name]().source == path_of(name).read_text(encoding="ascii")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_readable_source_gives_what_the_planned_code_does(name):
    kernel = PROGRAMS[name]()
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.5, 1.5, t.shape) for t in kernel.graph.input_types]
    readable = pg.compile(kernel.graph, style="readable")
    for got, wanted in zip(readable(*arrays), kernel(*arrays), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-14)


def checked(*arguments: str) -> None:
    """Run ruff as one who has configured nothing."""
    found = subprocess.run(
        [sys.executable, "-m", "ruff", *arguments], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr


@RUFF
def test_saved_random_programs_are_as_a_formatter_would_have_them(tmp_path):
    for seed in range(120):
        pg.compile(random_program(seed).graph).save(tmp_path / f"saved_{seed}.py")
    checked("format", "--isolated", "--check", "--diff", str(tmp_path))
    checked("check", "--isolated", "--select", "E4,E7,E9,F", str(tmp_path))


@RUFF
@pytest.mark.parametrize("name", PROGRAMS)
def test_saved_files_are_as_a_formatter_would_have_them(name, tmp_path):
    file = tmp_path / "saved.py"
    PROGRAMS[name]().save(file)
    checked("format", "--isolated", "--check", "--diff", str(file))
    checked("check", "--isolated", str(file))
