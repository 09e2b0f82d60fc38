"""The benchmarks run, in their short form, and print tables of the form they should have.

No time is asserted: times are what the benchmarks are for. Counts are.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from density import DENSE

import primgraph as pg

FOLDER = Path(__file__).parents[2] / "benchmarks"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="looks at the checkout, and there is none here"),
]


def run_short(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
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


def short(name: str, *arguments: str) -> list[list[str]]:
    """The cells of every line of the tables that the benchmark prints with `--short`."""
    run = run_short(name, *arguments)
    assert run.returncode == 0, run.stdout + run.stderr
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
    for name in ("tanh(y)", "y * 0.5", "y @ w + a", "roll(y, 1)"):
        assert all(float(cell) > 0 for cell in steps[name])
    # Bytes depend on the version of Python only, not on the machine.
    assert 100 < float(steps["parsed"][-1]) < 400
    assert 100 < float(steps["unpickled"][-1]) < 400


def test_solvers_find_the_solutions_of_scipy():
    pytest.importorskip("scipy")
    rows = short("solvers.py")[1:]
    assert len(rows) == 14
    assert all(re.fullmatch(r"\d+\.\d\d", row[3]) for row in rows)


@pytest.mark.dense
def test_side_effects_tell_what_they_gain():
    rows = short("side_effects.py")
    assert {"collector waits", "build, gradient", "and compile"} <= {row[0] for row in rows}
    gains = [row[2] for row in rows if row[2] != "gain (quartiles)"]
    assert gains
    assert all(re.fullmatch(r"[0-9.]+ \([0-9.]+ to [0-9.]+\)", gain) for gain in gains)


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
        if title.startswith(("sin(", "network ")):
            first, second, third = map(int, cells)
            assert 10 < first < second < third < 100
    for mode in ("grad", "forward_grad"):
        assert min(map(float, counts[f"{mode}, ms to the first values"])) > 0
        assert min(map(float, counts[f"{mode}, µs a later run"])) > 0


@pytest.mark.dense
def test_jets_and_operators_are_measured_with_both_back_ends():
    rows = {row[0]: row[1:] for row in short("jets.py")}
    for name in ("tanh, 3", "partials, 2"):
        times = rows[name][1:]
        assert all(float(cell.replace(",", "")) >= 0 for cell in times if cell)
        assert times[0]


def test_import_time_tells_both_times_and_what_costs_most():
    rows = short("import_time.py")
    times = {row[0]: float(row[1]) for row in rows if row[0] in ("numpy", "primgraph")}
    assert times["primgraph"] > 0
    assert times["numpy"] > 0
    assert sum(row[0].startswith("primgraph.") for row in rows) >= 3
    first = [row[1:] for row in rows if row[0].startswith("gradient of")]
    assert len(first) == 2
    assert all(float(cell) > 0 for row in first for cell in row)


def test_dispatch_is_measured_with_both_back_ends():
    rows = {row[0]: row[1:] for row in short("dispatch.py")[1:]}
    assert len(rows) == 11
    for name, cells in rows.items():
        times = [float(cell) for cell in cells if cell]
        assert len(times) == (1 if name.startswith("tensors") else 2)
        assert min(times) > 0


def test_steps_at_new_sizes_stand_beside_those_at_a_known_one():
    rows = {row[0]: row[1:] for row in short("sizes.py")[1:]}
    assert set(rows) == {"network", "chain"}
    for cells in rows.values():
        assert all(float(cell.split()[0]) > 0 for cell in cells)


def test_differential_operators_need_fewer_operations_than_the_full_matrix():
    rows = {row[0]: row[1:] for row in short("differential.py")[1:]}
    assert set(rows) == {
        "laplacian", "hessian_diagonal", "divergence", "divergence, elementwise"
    }  # fmt: skip
    for name in rows:
        assert int(rows[name][1]) < int(rows[name][2])


@pytest.mark.dense
def test_all_workloads_agree_with_numpy_by_hand(tmp_path):
    """Dense, as `.ci/run` runs this benchmark with all tools in a stage of its own."""
    record = tmp_path / "record.json"
    arguments = ("--tools", "primgraph,hand", "--threads", "1", "--json", str(record))
    rows = short("run.py", *arguments)
    found = json.loads(record.read_text())
    cases = [r["case"] for r in found["results"]]
    assert {c.split()[0] for c in cases} == {f"W{i}" for i in range(1, 13)}
    for result in found["results"]:
        assert set(result["tools"]) == {"primgraph", "hand"}
        for tool in result["tools"].values():
            assert len(tool["rounds"]) == found["environment"]["rounds"] == 2
            assert min(tool["rounds"]) > 0
            assert tool["error"] <= 2e-5
    heads = [row for row in rows if row[0] in ("time", "primgraph's time /")]
    assert heads == [
        ["time", "primgraph", "hand", "others' cores"], ["primgraph's time /", "hand"]
    ]  # fmt: skip
    means = {row[0]: row[1] for row in rows if row[0].startswith("geometric mean")}
    assert means["geometric mean"].endswith(f" of {len(cases)}")
    assert set(means) == {"geometric mean", "geometric mean but W1"}


def test_processor_time_is_told_beside_that_of_programs_by_hand():
    rows = short("processor.py", "--only", "W5 sparse", "W6")
    names = [row[0] for row in rows[1:]]
    assert names == ["W5 sparse n=12", "W6 dense n=9", "W6 sparse n=9", "geometric mean of 3"]
    assert all(float(row[2]) > 0 for row in rows[1:])


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
def test_native_code_stands_beside_c_by_hand():
    # A network, a Jacobian and a loop: `.ci/run` has all workloads in a stage of its own.
    only = ("W2 N=20 f32", "W6 sparse", "W7 scan")
    if DENSE:
        only += ("W1 n=100 order=3", "W3", "W8 arith", "W10", "W11")
    rows = short("run.py", "--tools", "native,hand_c", "--threads", "1", "--only", *only)
    ratios = {row[0]: row[1] for row in rows[rows.index(["native's time /", "hand_c"]) + 1 :]}
    assert all(float(ratios[name].split()[0]) > 0 for name in ratios if name in only)
    assert ratios["geometric mean"].endswith("of 9" if DENSE else "of 3")


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
@pytest.mark.dense
def test_native_code_is_timed_in_one_process():
    found = subprocess.run(
        [sys.executable, str(FOLDER / "native.py"), "--short", "--all", "W5 hvp", "W4"],
        cwd=FOLDER, env={**os.environ, "PYTHONPATH": str(Path(pg.__file__).parent.parent)},
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in found.stdout.splitlines()]
    better = rows[0].index("/ better by hand")
    ratios = {row[0]: (row[3], row[better]) for row in rows if len(row) > better}
    assert {"the machine", "f64", "W9 N=200 d=7 f32", "operators", "40"} <= {r[0] for r in rows}
    for case in ("W5 hvp n=12", "W4 d=3 K=4 N=50"):
        assert float(ratios[case][1]) >= float(ratios[case][0]) > 0


def test_loops_that_numba_compiles_agree():
    pytest.importorskip("numba", reason="numba is not installed")
    rows = short("run.py", "--tools", "native,hand_numba", "--threads", "1", "--only", "W5", "W9")
    assert all(float(row[2].split()[0]) > 0 for row in rows[1:6])


FOREIGN = """
import numpy as np

def variants(workload, params):
    return ["right", "reversed"] if workload == "W1" else []

def build(workload, variant, params, data):
    x, = data
    t = np.tanh(x)
    step = 1 if variant == "right" else -1
    return lambda: (1 - t * t)[::step]
"""


def test_foreign_tools_are_compared_element_by_element(tmp_path):
    tmp_path.joinpath("tool_mine.py").write_text(FOREIGN)
    common = ("--peers", str(tmp_path), "--threads", "1", "--only", "W1 n=100 order=1", "W8 arith")
    rows = short("run.py", "--tools", "mine:right,primgraph", *common)
    assert [row[0] for row in rows[:3]] == ["time", "W1 n=100 order=1", "W8 arith n=300"]
    run = run_short("run.py", "--tools", "mine,primgraph", *common)
    assert run.returncode == 1
    assert "W1 n=100 order=1: mine: ArithmeticError" in run.stdout.splitlines()[-1]


def test_errors_are_of_single_elements(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    worker: Any = importlib.import_module("worker")
    expected = [np.array([1.0, 2.0]), np.zeros(2)]
    assert worker.largest_error([np.array([1.0, 2.0]), np.zeros(2)], expected) == 0
    assert worker.largest_error([np.array([2.0, 1.0]), np.zeros(2)], expected) == 0.5
    assert worker.largest_error([np.array([1.0, np.nan]), np.zeros(2)], expected) == np.inf
    assert worker.largest_error([np.array([1.0, 2.0]), np.zeros((2, 1))], expected) == np.inf
    assert worker.largest_error(expected[:1], expected) == np.inf


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
def test_nests_agree_with_c_by_hand():
    rows = short("nests.py", "--only", "gravity", "gray_scott", "burgers")
    assert [row[0].split()[0] for row in rows[1:]] == ["gravity", "gray_scott", "burgers"]
    assert all(float(row[3]) > 0 for row in rows[1:])


def test_programs_of_few_numbers_are_measured():
    rows = short("scalars.py")
    assert [row[0].split(",")[0] for row in rows[1:3]] == ["inverse dynamics", "arm Jacobian"]
    assert len(rows) == 1 + 6


def test_lines_of_a_kernel_are_told_with_their_shares():
    rows = short("lines.py", "W9", "--calls", "2")
    assert ["share", "time", "line"] in rows
    assert any("dot(" in row[-1] for row in rows)


@pytest.mark.parametrize("name", ["W4", "W5 hvp", "W5 sparse", "W6 sparse", "W7"])
def test_buffers_of_workloads_leave_few_gaps(monkeypatch, name):
    monkeypatch.syspath_prepend(FOLDER)
    cases: Any = importlib.import_module("cases")
    workloads: Any = importlib.import_module("workloads")
    for case in cases.cases([name]):
        plan = workloads.build(case)[0].plan
        assert plan.arena <= plan.least + max(4096, plan.least / 16), case.name


def test_loops_of_all_tools_agree():
    rows = short("loops.py", "--only", "recurrent", "lorenz", "lstm", "ode", "saddle")
    cases = {row[0]: row[1:] for row in rows[1:]}
    assert {name.split()[0] for name in cases} == {"recurrent", "lorenz", "lstm", "ode", "saddle"}
    for name, cells in cases.items():
        assert float(cells[0]) > 0, name
        assert float(cells[3]) > 0, name
    assert float(cases["recurrent T=20"][1]) > 0


def test_networks_by_hand_are_those_that_are_compiled():
    rows = short("networks.py")
    assert [row[:3] for row in rows[1:4]] == [
        ["4", "float64", name]
        for name in ("primgraph", "by hand, a row a window", "by hand, samples last")
    ]
    assert all(float(row[3]) > 0 for row in rows[1:])


def test_linear_algebra_agrees_with_what_is_written_by_hand():
    rows = short("linear_algebra.py")
    cases = {row[0]: row[1:] for row in rows[1:]}
    assert {name.split()[0] for name in cases} == {"gaussian", "kalman", "mixture", "systems"}
    for cells in cases.values():
        assert float(cells[0]) > 0
        assert float(cells[1]) > 0


def test_special_functions_stand_beside_those_of_scipy():
    pytest.importorskip("scipy.special", reason="SciPy is not installed")
    rows = short("special.py")[1:]
    assert {"erf", "gammaln"} <= {row[0] for row in rows}
    assert all(float(cell) > 0 for row in rows for cell in row[1:])


def test_a_step_by_fourier_series_agrees_with_what_is_written_by_hand():
    rows = short("spectral.py")
    assert [row[:2] for row in rows[1:3]] == [["16 x 16", "primgraph"], ["16 x 16", "by hand"]]
    assert all(float(row[2]) > 0 for row in rows[1:])
