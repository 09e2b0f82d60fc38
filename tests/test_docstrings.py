"""Examples in the docstrings of public functions run, and print what they show."""

from __future__ import annotations

import doctest
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from public_api import MODULES, _public

import primgraph as pg

# Functions of `pg` without an example.
WITHOUT = {"check_rules", "constraints", "default_startup_program", "scipy_objective", "spy"}


def documented() -> dict[str, Any]:
    """Each public function, method and class, once, by its longest name."""
    found: dict[int, tuple[str, Any]] = {}
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in _public(module):
            item = getattr(module, name)
            if callable(item):
                found.setdefault(id(item), (f"{module_name}.{name}", item))
    return dict(found.values())


EXAMPLES = {
    name: item for name, item in documented().items() if ">>>" in (inspect.getdoc(item) or "")
}


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run in a folder for files, and restore what examples set."""
    monkeypatch.chdir(tmp_path)
    threads = pg.get_num_threads()
    yield
    pg.set_num_threads(threads)
    pg.set_default_dtype("float64")
    pg.seed(0)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_a_docstring_prints_what_it_shows(name: str) -> None:
    names = {"np": np, "pg": pg}
    text = inspect.getdoc(EXAMPLES[name]) or ""
    test = doctest.DocTestParser().get_doctest(text, names, name, None, None)
    said: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert not said, "".join(said)


def test_functions_have_examples() -> None:
    functions = {n: getattr(pg, n) for n in pg.__all__}
    lacking = {
        n
        for n, f in functions.items()
        if callable(f) and not inspect.isclass(f) and ">>>" not in (f.__doc__ or "")
    }
    assert lacking == WITHOUT
