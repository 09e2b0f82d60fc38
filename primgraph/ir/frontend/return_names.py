"""Names that the `return` statement of a function gives to its results."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

from primgraph.ir.frontend.containers import Leaf, Tree
from primgraph.ir.frontend.syntax import parse


def return_names(function: Callable[..., Any], results: Tree) -> list[str]:
    """Return the variable that each array in `results` is returned by; empty for other expressions.

    Only a function written in Python with a single `return` names its results.
    """
    plain = isinstance(function, FunctionType) and not hasattr(function, "__wrapped__")
    code: CodeType | None = getattr(function, "__code__", None) if plain else None
    return [*_names(None if code is None else _returned(code), results)]


@lru_cache(maxsize=1024)
def _returned(code: CodeType) -> ast.expr | None:
    """Return the expression that the function of `code` returns, if there is exactly one."""
    try:
        (definition,) = parse(textwrap.dedent(inspect.getsource(code))).body
    except (OSError, TypeError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(definition, ast.FunctionDef) or definition.name != code.co_name:
        return None
    found = [s for s in _own_statements(definition.body) if isinstance(s, ast.Return)]
    return found[0].value if len(found) == 1 else None


def _own_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements in order, without those of functions and classes inside."""
    waiting = body[::-1]
    while waiting:
        statement = waiting.pop()
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        inner = [n for n in ast.iter_child_nodes(statement) if isinstance(n, ast.stmt)]
        handlers = [n for n in ast.iter_child_nodes(statement) if not isinstance(n, ast.stmt)]
        inner += [s for h in handlers for s in ast.iter_child_nodes(h) if isinstance(s, ast.stmt)]
        waiting += inner[::-1]


def _names(expression: ast.expr | None, tree: Tree) -> Iterator[str]:
    if isinstance(tree, Leaf):
        yield expression.id if isinstance(expression, ast.Name) else ""
        return
    parts: list[ast.expr | None] = [None] * len(tree.parts)
    if isinstance(expression, ast.Tuple | ast.List) and tree.kind in (tuple, list):
        parts = [*expression.elts] if len(expression.elts) == len(parts) else parts
    for part, inner in zip(parts, tree.parts, strict=True):
        yield from _names(part, inner)
