"""JAX's own tests, run with primgraph in the place of `jax.numpy`, and with imported functions.

They are those of the checkout of JAX that `JAX_CHECKOUT` names; without it, or without jax and
absl-py, the test is skipped. What does not pass is in `jax_exceptions.txt`, with reasons.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import jax_imports
import jax_suite
import pytest


def checkout() -> Path:
    """The folder of JAX's sources."""
    given = os.environ.get("JAX_CHECKOUT", "")
    if not given or not all(map(importlib.util.find_spec, ("jax", "absl"))):
        pytest.skip("JAX_CHECKOUT names no checkout of JAX, or jax and absl-py are not installed")
    return Path(given)


@pytest.mark.dense
@pytest.mark.parametrize("file", jax_imports.FILES)
def test_functions_of_jaxs_tests_are_imported(file: str) -> None:
    found = jax_suite.outcomes(checkout(), [file], cases=1, plugin="jax_imports")
    stated = [outcome for _, outcome in found if outcome != "skipped"]
    assert sum(o == "passed" for o in stated) >= jax_imports.FILES[file] * len(stated)


@pytest.mark.dense
@pytest.mark.parametrize("file", jax_suite.FILES)
def test_the_suite_of_jax(file: str) -> None:
    found = jax_suite.outcomes(checkout(), [file], cases=2)
    known = jax_suite.exceptions()
    named = [(jax_suite.exception_of(name, known), name, outcome) for name, outcome in found]
    assert not [name for key, name, o in named if key is None and o in ("failed", "error")]
    # JAX's own conventions are stated as little as its own functions.
    left = {key for key, (kind, _) in known.items() if kind != "missing"}
    stated = [o for key, _, o in named if o != "skipped" and key not in left]
    assert sum(o == "passed" for o in stated) >= jax_suite.FILES[file] * len(stated)


def test_exceptions_have_reasons() -> None:
    kinds = {kind for kind, _ in jax_suite.exceptions().values()}
    assert kinds <= {"unstated", "convention", "missing"}
    assert all(len(reason) > 10 for _, reason in jax_suite.exceptions().values())
