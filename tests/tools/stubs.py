"""Write the stubs of modules whose names are rows, which type checkers and editors read.

    python tests/tools/stubs.py

A stub imports each object from the module that defines it, and has the parameters of functions that
rows define.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT)]

from primgraph.operators.names import rows  # noqa: E402

# The world of each module with a stub.
STUBS = {
    "primgraph": "primgraph",
    "primgraph.array_api": "array_api",
    "primgraph.array_api.fft": "array_api.fft",
    "primgraph.array_api.linalg": "array_api.linalg",
    "primgraph.fft": "fft",
    "primgraph.linalg": "linalg",
    "primgraph.operators": "operators",
    "primgraph.random": "random",
    "primgraph.special": "special",
}


def path(module: str) -> Path:
    """The stub of a module, beside its file."""
    return Path(str(importlib.import_module(module).__file__)).with_suffix(".pyi")


def stub(module: str) -> str:
    """The text of a stub."""
    home = importlib.import_module(module)
    imported: dict[str, set[str]] = {}
    lines = []
    known = rows(STUBS[module])
    for name in sorted({*known} | ({*home.__all__} if module.startswith(_DEFINING) else set())):
        row = known.get(name)
        if row is not None and not row.parameters:
            place, own = (row.module, row.function) if row.function else row.module.rsplit(".", 1)
            imported.setdefault(place, set()).add(f"{own} as {name}")
        elif row is not None:
            lines.append(f"def {name}({_typed(row.parameters)}) -> Any: ...")
        else:
            place, line = _written(home, name)
            if place:
                imported.setdefault(place, set()).add(f"{name} as {name}")
            else:
                lines.append(line)
    head = [f"from {p} import {', '.join(sorted(imported[p]))}" for p in sorted(imported)]
    if lines:
        head.insert(0, "from typing import Any")
    if module == "primgraph":
        head += ["from primgraph.operators import *"]
        lines += ["__version__: str"]
    title = f'"""Names of {module}, written by tests/tools/stubs.py."""'
    return "\n".join([title, "", *head, *([""] if lines else []), *lines, ""])


# Modules that define functions beside those of rows.
_DEFINING = "primgraph.array_api"


def _typed(parameters: str) -> str:
    """Parameters, each with a type."""
    (definition,) = ast.parse(f"def f({parameters}): ...").body
    assert isinstance(definition, ast.FunctionDef)
    given = definition.args
    for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs):
        argument.annotation = argument.annotation or ast.Name("Any")
    return ast.unparse(given)


def _written(home: ModuleType, name: str) -> tuple[str, str]:
    """The module from which a stub imports a name; or, if there is none, the line for it."""
    found = getattr(home, name)
    if isinstance(found, ModuleType):
        return home.__name__, ""
    parts = [v for v in vars(home).values() if isinstance(v, ModuleType)]
    for part in parts:
        if name in getattr(part, "__all__", ()) and getattr(part, name) is found:
            return part.__name__, ""
    if inspect.isfunction(found):
        return "", f"def {name}{inspect.signature(found)}: ..."
    return "", f"{name}: {None if found is None else type(found).__name__}"


if __name__ == "__main__":
    for module in STUBS:
        path(module).write_text(stub(module), encoding="utf-8")
