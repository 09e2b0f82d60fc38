"""Counts of the source: long functions and files, full folders, places that recognise a primitive.

    python tests/tools/house.py

prints them. `test_house.py` holds each to a bound: a change may lower a bound and never raises one.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

from rooms import nodes, sources

# Files that are about single primitives: their declarations, their cards, rewriting rules.
ABOUT_PRIMITIVES = ("primgraph/primitives/", "codegen/cards/", "transforms/rewrite/")
# A docstring begins with a verb or a noun; these begin clauses.
CLAUSES = re.compile(r"(What|Where|That|Those|Who)\b")

LONG_FUNCTION, LONG_CLASS, LONG_FILE, FULL_FOLDER = 50, 250, 500, 15


@cache
def files() -> dict[str, tuple[str, tuple[ast.AST, ...]]]:
    """Text and syntax nodes of each file of the package, by its path in a checkout."""
    found = nodes()
    return {path: (text, found[name]) for name, (path, text) in sources().items()}


def _definitions(kinds: tuple[type, ...]) -> Iterator[tuple[int, str]]:
    """The number of lines, and the name, of each definition."""
    for path, (_, found) in files().items():
        for node in found:
            if isinstance(node, kinds):
                yield node.end_lineno - node.lineno + 1, f"{path}:{node.name}"  # type: ignore[attr-defined]


def long_functions() -> list[str]:
    """Functions above `LONG_FUNCTION` lines."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [name for lines, name in _definitions(kinds) if lines > LONG_FUNCTION]


def long_classes() -> list[str]:
    """Classes above `LONG_CLASS` lines."""
    return [name for lines, name in _definitions((ast.ClassDef,)) if lines > LONG_CLASS]


def long_files() -> list[str]:
    """Files above `LONG_FILE` lines."""
    return [path for path, (text, _) in files().items() if text.count("\n") > LONG_FILE]


def full_folders() -> list[str]:
    """Folders with more than `FULL_FOLDER` files beside `__init__.py`."""
    counts = Counter(path.rpartition("/")[0] for path in files() if "__init__" not in path)
    return [folder for folder, count in counts.items() if count > FULL_FOLDER]


def clauses() -> list[str]:
    """Definitions whose docstring begins with a clause."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return [
        f"{path}:{getattr(node, 'name', '')}"
        for path, (_, found) in files().items()
        for node in found
        if isinstance(node, kinds) and CLAUSES.match(ast.get_docstring(node) or "")
    ]


def recognitions() -> list[str]:
    """Comparisons of an op outside of the files that are about single primitives."""
    asked = (ast.Is, ast.IsNot, ast.In, ast.NotIn, ast.Eq, ast.NotEq)
    return [
        f"{path}:{node.lineno}"
        for path, (_, found) in files().items()
        for node in found
        if not path.startswith(ABOUT_PRIMITIVES)
        and isinstance(node, ast.Compare)
        and any(isinstance(o, asked) for o in node.ops)
        and any(
            isinstance(x, ast.Attribute) and x.attr == "op" for x in (node.left, *node.comparators)
        )
    ]


COUNTS = {
    "functions above 50 lines": long_functions,
    "classes above 250 lines": long_classes,
    "files above 500 lines": long_files,
    "folders above 15 files": full_folders,
    "docstrings that begin with a clause": clauses,
    "places that recognise a primitive": recognitions,
}

if __name__ == "__main__":
    for title, count in COUNTS.items():
        found = count()
        print(f"{len(found):5d} {title}")
        if len(found) <= 30:
            print("".join(f"      {name}\n" for name in found), end="")
