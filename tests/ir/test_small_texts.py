"""Small texts do not take much work: expressions in sizes have limits, and so has all else."""

import subprocess
import sys
from pathlib import Path

import pytest

import primgraph as pg
from primgraph.ir.dims import bounds, parse_extent, size

SCRIPT = Path(__file__).parents[1] / "drafts" / "small_texts.py"


@pytest.mark.parametrize(
    "text",
    [
        "*".join(f"(a{i}+b{i})" for i in range(24)),
        "+".join(f"a{i}" for i in range(300)),
        "%".join(f"n{i}" for i in range(40)),
        "9" * 400 + "*N",
        "+".join(f"max(a{i}*b{i},c{i}*d{i})*n" for i in range(120)),
    ],
)
def test_expressions_beyond_a_limit_are_errors_that_say_so(text):
    with pytest.raises(pg.LoadError, match=r"terms|characters|a number of"):
        parse_extent(text)
    with pytest.raises(pg.LoadError, match=r"terms|characters|a number of"):
        pg.parse(f"graph f(%x: f64[{text}]) {{\n  return %x\n}}")


def test_expressions_that_are_built_have_the_same_limits():
    n = size("N")
    with pytest.raises(pg.ShapeError, match="more than 2000 characters"):
        n**100_000
    for i in range(20):
        n = (n - size(f"m{i}")).max(7)
    with pytest.raises(pg.ShapeError, match="more than 20 quotients"):
        (n - size("k")).max(7)


def test_bounds_of_many_quotients_take_few_relaxations():
    found = parse_extent("+".join(f"N//{p}" for p in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)))
    assert bounds(found) == (0.0, float("inf"))
    assert found >= 0


def test_small_texts_stay_within_processor_time_and_memory():
    # 5000 texts take minutes: `python tests/drafts/small_texts.py --texts 5000`.
    command = [sys.executable, str(SCRIPT), "--texts", "60", "--seconds", "200"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
