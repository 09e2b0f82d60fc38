"""Files of the package whose code runs for a small gradient or Jacobian.

    python tests/project/test_files_entered.py

prints them. The tests count in a process of its own, as other tests verify each graph.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType

import pytest

import primgraph as pg


def gradient() -> None:
    with pg.Program():
        x = pg.data("x", (3,))
        y = pg.sum(pg.exp(x) * x)
        pg.grad(y, x)


def jacobian() -> None:
    with pg.Program():
        x = pg.data("x", (3,))
        pg.jacobian(pg.exp(x) * x, x)


# Bounds are lowered when a change allows it. They were raised once, when files above 500 lines were
# split. Building the two operations of `gradient` alone enters 22 files.
BOUNDS = {gradient: 53, jacobian: 59}


def files_entered(run: Callable[[], None]) -> list[str]:
    """Return the files of the package with a function that is called, after two runs to warm up."""
    run()
    run()
    base = Path(pg.__file__).resolve().parent.parent
    roots = tuple(f"{base / name}{os.sep}" for name in ("primgraph", "transforms", "codegen"))
    found = set()

    def note(frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(roots):
            found.add(frame.f_code.co_filename.removeprefix(str(base)))

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return sorted(found)


@cache
def entered() -> dict[str, list[str]]:
    plain = {k: v for k, v in os.environ.items() if k != "PRIMGRAPH_DEBUG"}
    command = [sys.executable, __file__]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=plain)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("run", BOUNDS)
def test_few_files_are_entered(run: Callable[[], None]) -> None:
    found = entered()[run.__name__]
    assert len(found) <= BOUNDS[run], "\n".join(found)


if __name__ == "__main__":
    print(json.dumps({run.__name__: files_entered(run) for run in BOUNDS}, indent=2))
