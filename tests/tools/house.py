"""Counts of the source: long functions and files, full folders, places that recognise a primitive.

    python tests/tools/house.py

prints them. `test_house.py` holds each to a bound: a change may lower a bound and never raises one.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module

from rooms import nodes, sources

from primgraph.ir.primitive import Primitive

# Files that are about single primitives: their declarations, their cards, rewriting rules.
ABOUT_PRIMITIVES = ("primgraph/primitives/", "codegen/ops/", "transforms/rewrite/")
# A docstring begins with a verb or a noun; these begin clauses.
CLAUSES = re.compile(r"(What|Where|That|Those|Who)\b")

# Functions that make tables of primitives.
_TABLES = ("frozenset", "dict.fromkeys")

LONG_FUNCTION, LONG_CLASS, LONG_FILE, FULL_FOLDER = 50, 250, 500, 15
MANY_FILES = 6


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
        and _is_op(node.left) + sum(map(_is_op, node.comparators)) == 1
    ]


def _is_op(node: ast.expr) -> bool:
    """Whether an expression is the op of an equation; two of them are compared with each other."""
    return isinstance(node, ast.Attribute) and node.attr == "op"


def recognised() -> dict[str, list[str]]:
    """The files that recognise each primitive: that compare ops with it, or list it in a table."""
    found: dict[str, list[str]] = {}
    for path, (_, syntax) in files().items():
        if path.startswith(ABOUT_PRIMITIVES):
            continue
        names = _primitives_of(syntax)
        here = {names[n.id] for n in _listed(syntax) if isinstance(n, ast.Name) and n.id in names}
        for name in here:
            found.setdefault(name, []).append(path)
    return found


def _primitives_of(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """The primitives that a file imports: their names, by those in the file."""
    found = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "primgraph.primitives"
        ):
            module = import_module(node.module or "")
            for alias in node.names:
                op = getattr(module, alias.name, None)
                if isinstance(op, Primitive):
                    found[alias.asname or alias.name] = op.name
    return found


def _listed(nodes: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """The operands of comparisons with ops, keys of tables, elements of sets, and decorators."""
    for node in nodes:
        if isinstance(node, ast.Compare) and any(map(_is_op, (node.left, *node.comparators))):
            for side in (node.left, *node.comparators):
                yield from side.elts if isinstance(side, ast.Tuple | ast.Set) else [side]
        elif isinstance(node, ast.Dict):
            yield from (key for key in node.keys if key is not None)
        elif isinstance(node, ast.Set):
            yield from node.elts
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "frozenset",
            "dict.fromkeys",
        ):
            for given in node.args[:1]:
                yield from given.elts if isinstance(given, ast.Tuple | ast.List | ast.Set) else []


def widely_recognised() -> list[str]:
    """Primitives that more than `MANY_FILES` files recognise, beside those about primitives."""
    return [
        f"{name}: {', '.join(paths)}"
        for name, paths in recognised().items()
        if len(paths) > MANY_FILES
    ]


COUNTS = {
    "functions above 50 lines": long_functions,
    "classes above 250 lines": long_classes,
    "files above 500 lines": long_files,
    "folders above 15 files": full_folders,
    "docstrings that begin with a clause": clauses,
    "places that recognise a primitive": recognitions,
    "primitives that more than 6 files recognise": widely_recognised,
}

if __name__ == "__main__":
    for title, count in COUNTS.items():
        found = count()
        print(f"{len(found):5d} {title}")
        if len(found) <= 30:
            print("".join(f"      {name}\n" for name in found), end="")
    most = Counter({name: len(paths) for name, paths in recognised().items()}).most_common(10)
    print("files that recognise a primitive:", ", ".join(f"{n} {name}" for name, n in most))
