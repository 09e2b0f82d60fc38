"""Hints for code that needs a symbolic size as a number, by the user's line."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from primgraph.ir.written import expressions, text_of


def for_a_number() -> str:
    """Return the hint for code that iterates over a symbolic size, or takes a length."""
    nodes = expressions()
    match nodes[:1]:
        case [ast.Call(func=ast.Name(id="len"), args=[operand])]:
            return f"{text_of(operand)}.shape[0], which is a size"
    # Python reports the whole loop for iteration, but the expression for a call.
    if not any(map(_loops, nodes[:1])) and all(
        g.iter not in nodes for n in nodes for g in _loops(n)
    ):
        return ""
    return (
        "pg.scan(f, state, x), which goes through the rows of x, pg.fori_loop(0, n, f, state), "
        "which counts, or pg.map(f, x), which keeps what f gives"
    )


def _loops(node: ast.AST) -> Sequence[ast.For | ast.comprehension]:
    if isinstance(node, ast.For):
        return [node]
    comprehensions = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    return node.generators if isinstance(node, comprehensions) else []
