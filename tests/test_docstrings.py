"""Examples in the docstrings of public functions run, and print what they show."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_origin

import numpy as np
import pytest
from public_api import MODULES, _public

import primgraph as pg
import primgraph.array_api as xp
import primgraph.compat.paddle as paddle
from primgraph.codegen.cards.table import CARDS
from primgraph.codegen.native.spellings import SPELLINGS
from primgraph.extend import registered
from primgraph.ir import primitive as registry
from primgraph.operators import borrowed, late
from primgraph.operators.implementing import implemented
from primgraph.program import program as programs

# Names that examples use without importing them.
NAMES = {"np": np, "pg": pg, "xp": xp, "paddle": paddle}

# Words with which no docstring begins: the subject of the sentence would be missing.
NO_START = re.compile(r"(What|Where|Which|Whose|Who|Whoever|How|That|Those|Whether|As|The same)\b")


def documented() -> dict[str, Any]:
    """Each public function, method and class, once, by its longest name."""
    found: dict[int, tuple[str, Any]] = {}
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in _public(module):
            item = getattr(module, name)
            if callable(item) and get_origin(item) is None:
                found.setdefault(id(item), (f"{module_name}.{name}", item))
    return dict(found.values())


DOCUMENTED = documented()
EXAMPLES = {
    name: item for name, item in DOCUMENTED.items() if ">>>" in (inspect.getdoc(item) or "")
}


@contextlib.contextmanager
def restored_tables() -> Iterator[None]:
    """Forget the primitives, operators and cards that an example declares."""
    registered()
    late.all_functions()
    tables: list[dict[Any, Any]] = [
        registry._registry, CARDS, SPELLINGS, late.functions, implemented
    ]  # fmt: skip
    before = [dict(table) for table in tables]
    try:
        yield
    finally:
        for table, entries in zip(tables, before, strict=True):
            table.clear()
            table.update(entries)


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run in a folder for files, and restore what examples set."""
    monkeypatch.chdir(tmp_path)
    threads, main = pg.get_num_threads(), programs._main[0]
    programs._main[0] = pg.Program("main")
    with restored_tables():
        yield
    programs._main[0] = main
    pg.set_num_threads(threads)
    pg.set_default_dtype("float64")
    pg.seed(0)
    paddle.disable_static()
    paddle.set_default_dtype("float32")
    paddle.incubate.autograd.disable_prim()


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_a_docstring_prints_what_it_shows(name: str) -> None:
    if _needs_scipy(EXAMPLES[name]):
        pytest.importorskip("scipy")
    text = inspect.getdoc(EXAMPLES[name]) or ""
    test = doctest.DocTestParser().get_doctest(text, dict(NAMES), name, None, None)
    said: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert not said, "".join(said)


def _needs_scipy(item: Callable[..., Any]) -> bool:
    """Whether the function calls SciPy, which may not be installed."""
    return inspect.unwrap(item).__module__ == borrowed.__name__


def test_functions_have_examples() -> None:
    functions = {n: x for n, x in DOCUMENTED.items() if not inspect.isclass(x)}
    assert sorted(functions.keys() - EXAMPLES.keys()) == []
