"""The benchmarks run, in their short form, and print tables of the form they should have.

No time is asserted: times are what the benchmarks are for. Counts are.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import primgraph as pg

FOLDER = Path(__file__).parent.parent / "benchmarks"

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="looks at the checkout, and there is none here"
)


def short(name: str, *arguments: str) -> list[list[str]]:
    """The cells of every line of the tables that the benchmark prints with `--short`."""
    run = subprocess.run(
        [sys.executable, str(FOLDER / name), "--short", *arguments],
        cwd=FOLDER,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(pg.__file__).parent.parent),
            "PRIMGRAPH_DEBUG": "0",
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    lines = [line for line in run.stdout.splitlines() if line.startswith("|")]
    return [[c.strip() for c in line.strip("|").split("|")] for line in lines if "---" not in line]


def test_growth_measures_every_step_and_the_bytes():
    rows = short("growth.py")
    steps = {row[0]: row[1:] for row in rows}
    for name in ("build", "parse", "transpose", "lower", "compile, planned", "run, readable"):
        small, large, growth = steps[name]
        assert float(small) >= 0
        assert float(large) > 0
        assert re.match(r"-?\d+\.\d\d\b", growth)
    # Bytes depend on the version of Python only, not on the machine.
    assert 100 < float(steps["parsed"][-1]) < 400
    assert 100 < float(steps["unpickled"][-1]) < 400


def test_growth_of_steps_by_name():
    rows = short("growth.py", "--only", "hash", "deep copy")
    assert [row[0] for row in rows] == [
        "ms", "hash", "deep copy", "bytes an equation", "parsed", "unpickled"
    ]  # fmt: skip


def test_orders_of_all_modes_agree_and_stay_small():
    counts = {row[0]: row[1:] for row in short("orders.py")}
    for mode in ("grad", "forward_grad", "linearize"):
        assert [int(c) for c in counts[f"tanh(x), {mode}"]] == [4, 7, 11]
    for title, cells in counts.items():
        if title.startswith(("sin", "network")):
            first, second, third = map(int, cells)
            assert 10 < first < second < third < 100
    assert counts["grad"][0] == counts["forward_grad"][0] == "11"


def test_import_time_tells_both_times_and_what_costs_most():
    rows = short("import_time.py")
    times = {row[0]: float(row[1]) for row in rows if row[0] in ("numpy", "primgraph")}
    assert times["primgraph"] > 0
    assert times["numpy"] > 0
    assert sum(row[0].startswith("primgraph.") for row in rows) >= 3


def test_differential_operators_need_fewer_operations_than_the_full_matrix():
    rows = {row[0]: row[1:] for row in short("differential.py")[1:]}
    assert set(rows) == {
        "laplacian", "hessian_diagonal", "divergence", "divergence, elementwise"
    }  # fmt: skip
    for name in ("laplacian", "hessian_diagonal", "divergence, elementwise"):
        assert int(rows[name][1]) < int(rows[name][2])
