"""NumPy's own tests, with eager tensors in the place of arrays.

They are taken from the installed NumPy, and import `eager_numpy` instead of it. Tests about dtypes
and memory that tensors do not have are left out by the patterns of `numpy_exceptions.txt`.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve().parents[1]
TOOLS = HERE / "tools"
EXCEPTIONS = TOOLS / "numpy_exceptions.txt"
ROOT = Path(np.__file__).parent

# The part of the counted tests of each file that passes at least.
LEAST = {
    "_core/tests/test_einsum.py": 0.86,
    "_core/tests/test_indexing.py": 0.6,
    "_core/tests/test_item_selection.py": 0.98,
    "_core/tests/test_numeric.py": 0.96,
    "_core/tests/test_shape_base.py": 0.9,
    "fft/tests/test_helper.py": 1.0,
    "fft/tests/test_pocketfft.py": 0.86,
    "lib/tests/test_arraypad.py": 0.92,
    "lib/tests/test_arraysetops.py": 0.9,
    "lib/tests/test_function_base.py": 0.94,
    "lib/tests/test_histograms.py": 0.88,
    "lib/tests/test_index_tricks.py": 0.85,
    "lib/tests/test_nanfunctions.py": 0.85,
    "lib/tests/test_packbits.py": 1.0,
    "lib/tests/test_polynomial.py": 0.94,
    "lib/tests/test_regression.py": 0.9,
    "lib/tests/test_shape_base.py": 0.86,
    "lib/tests/test_stride_tricks.py": 0.8,
    "lib/tests/test_twodim_base.py": 0.94,
    "lib/tests/test_type_check.py": 0.88,
    "lib/tests/test_ufunclike.py": 1.0,
    "linalg/tests/test_linalg.py": 0.82,
    "linalg/tests/test_regression.py": 0.8,
}

# Modules whose names the tests take from `eager_numpy`.
_IMPORTED = re.compile(
    r"^(\s*(?:import|from) )numpy(?=(?: as np| import"
    r"|\.(?:linalg|fft|random|testing|_core|_core\.(?:shape_base|numeric|umath)) import)\b)",
    re.MULTILINE,
)

_CONFTEST = """
import re

import pytest

import eager_numpy

eager_numpy.settings.on = False
UNSTATED = re.compile({unstated!r})


def pytest_collection_modifyitems(items):
    eager_numpy.settings.on = True
    for module in {{item.module for item in items}}:
        eager_numpy.convert_module(module)
    eager_numpy.settings.on = False


@pytest.fixture(autouse=True)
def with_tensors():
    eager_numpy.settings.on = True
    yield
    eager_numpy.settings.on = False


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed and UNSTATED.search(str(call.excinfo.value)):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, "about what tensors do not have")
"""


def exceptions() -> list[tuple[str, str, str]]:
    """Return the kind, the pattern and the reason of each exception."""
    lines = EXCEPTIONS.read_text(encoding="utf-8").splitlines()
    rows = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    return [(kind, *rest.rsplit(" -- ", 1)) for kind, rest in rows]


def outcomes(name: str, folder: Path) -> Counter[str]:
    """Run one file of NumPy's tests, and count the outcomes; print what fails."""
    text = (ROOT / name).read_text(encoding="utf-8")
    path = folder / name.replace("/tests/", "_").replace("/", "_")
    path = folder / f"test_{path.name.replace('_test_', '_').lstrip('_')}"
    path.write_text(_IMPORTED.sub(r"\1eager_numpy", text), encoding="utf-8")
    unstated = "|".join(pattern for kind, pattern, _ in exceptions() if kind == "unstated")
    (folder / "conftest.py").write_text(_CONFTEST.format(unstated=unstated), encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    package = os.environ.get("PYTHONPATH", "") or str(HERE.parent)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=line", "-rA", "-q",
         "-W", "ignore", path.name],
        cwd=folder, capture_output=True, text=True, check=False, timeout=3000,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([package, str(TOOLS)]),
             "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    found = re.findall(r"^(PASSED|FAILED|ERROR) (\S+::.*)", run.stdout, re.MULTILINE)
    assert found, run.stdout[-2000:] + run.stderr[-2000:]
    for outcome, test in found:
        if outcome != "PASSED":
            print(test)
    return Counter(outcome for outcome, _ in found)


@pytest.mark.dense
@pytest.mark.parametrize("name", LEAST)
def test_the_suite_of_numpy(name: str, tmp_path: Path) -> None:
    if importlib.util.find_spec("hypothesis") is None and "hypothesis" in (ROOT / name).read_text():
        pytest.skip("these tests of NumPy's need hypothesis")
    found = outcomes(name, tmp_path)
    assert found["PASSED"] >= LEAST[name] * found.total(), found


def test_exceptions_have_reasons() -> None:
    assert {kind for kind, _, _ in exceptions()} == {"unstated", "convention"}
    for _, pattern, reason in exceptions():
        re.compile(pattern)
        assert len(reason) > 5
