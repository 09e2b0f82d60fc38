"""The suite of HIPS autograd, run with `primgraph.compat.autograd` in the place of autograd.

Its source distribution is taken from `AUTOGRAD_SDIST`, or from the package index; where it cannot
be had the test is skipped. What does not pass is in `autograd_exceptions.txt`, with reasons.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[1]
VERSION = "1.9.1"

# How many of the tests that can be stated pass at least.
LEAST = 0.99

# What is put beside the suite: every module of autograd is that of the compatible package.
_CONFTEST = """
import importlib
import importlib.abc
import importlib.util
import sys

import numpy as np
import pytest


class Instead(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name == "autograd" or name.startswith("autograd."):
            return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec):
        return importlib.import_module(f"primgraph.compat.{spec.name}")

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Instead())


@pytest.fixture(autouse=True)
def random_seed():
    np.random.seed(42)
"""


def exceptions() -> dict[str, tuple[str, str]]:
    """The tests that do not pass, with what kind of reason each has and which."""
    found = {}
    for line in (
        (HERE / "tools" / "autograd_exceptions.txt").read_text(encoding="utf-8").splitlines()
    ):
        if line and not line.startswith("#"):
            name, kind, reason = line.split(maxsplit=2)
            found[name] = kind, reason
    return found


def sdist(folder: Path) -> Path:
    """The source distribution; the test is skipped where there is none."""
    given = os.environ.get("AUTOGRAD_SDIST", "")
    if given:
        return Path(given)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:",
               "--no-build-isolation", f"--dest={folder}", f"autograd=={VERSION}"]  # fmt: skip
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        pytest.skip("autograd's source distribution cannot be had; AUTOGRAD_SDIST may name it")
    return next(folder.glob("autograd-*.tar.gz"))


def outcomes(archive: Path, folder: Path) -> dict[str, str]:
    """What becomes of each test of the suite: "passed", "failed" or "skipped"."""
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    tests = next(folder.glob("autograd-*/tests"))
    (tests / "conftest.py").write_text(_CONFTEST, encoding="utf-8")
    (tests / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    package = Path(os.environ.get("PYTHONPATH", "") or HERE.parent)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=no", "-v", "-W", "ignore"],
        cwd=tests, capture_output=True, text=True, check=False, timeout=3000,
        env={**os.environ, "PYTHONPATH": str(package), "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    found = re.findall(r"^(\S+::\S+) (PASSED|FAILED|ERROR|SKIPPED)", run.stdout, re.MULTILINE)
    assert found, run.stdout[-2000:] + run.stderr[-2000:]
    return {name: outcome.lower() for name, outcome in found}


@pytest.mark.long
def test_the_suite_of_autograd(tmp_path: Path) -> None:
    found = outcomes(sdist(tmp_path), tmp_path)
    known = exceptions()
    failed = {name for name, outcome in found.items() if outcome in ("failed", "error")}
    assert failed <= set(known)
    assert set(known) <= set(found)
    # What is about long doubles, or the machinery inside autograd, cannot be stated here.
    left = {name for name, (kind, _) in known.items() if kind == "unstated"}
    stated = [n for n, o in found.items() if o != "skipped" and n not in left]
    passed = sum(found[n] == "passed" for n in stated)
    assert passed >= LEAST * len(stated)


def test_exceptions_have_reasons() -> None:
    kinds = {kind for kind, _ in exceptions().values()}
    assert kinds <= {"unstated", "convention", "missing"}
    assert all(len(reason) > 10 for _, reason in exceptions().values())


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        results = outcomes(Path(sys.argv[1]), Path(place))
    for test, outcome in results.items():
        if outcome in ("failed", "error"):
            print(test)
    print({o: sum(v == o for v in results.values()) for o in ("passed", "failed", "skipped")})
