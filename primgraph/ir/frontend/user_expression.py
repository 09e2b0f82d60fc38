"""The user's expression being evaluated, for hints that rewrite it."""

from __future__ import annotations

import ast
from types import FrameType

from primgraph.base.user_lines import lines_of, user_frame
from primgraph.ir.frontend.syntax import parse

_Range = tuple[tuple[int, int], tuple[int, int]]


def expressions() -> list[ast.AST]:
    """Return the syntax nodes that enclose the expression being evaluated, innermost first.

    Empty if the source cannot be read, as for `exec`.
    """
    frame = user_frame()
    place = _place(frame)
    if place is None:
        return []
    try:
        tree = parse("".join(lines_of(frame.f_code, frame.f_code.co_filename)))
    except (SyntaxError, ValueError):
        return []
    (begin, end), found = place, []
    for node in ast.walk(tree):
        around = _range(node)
        if around is not None and around[0] <= begin and end <= around[1]:
            found.append((around, node))
    # Among nodes of equal range, such as an expression and its statement, inner ones come first.
    found.reverse()
    found.sort(key=lambda item: (item[0][1], [-n for n in item[0][0]]))
    return [node for _, node in found]


def _place(frame: FrameType) -> _Range | None:
    """Return the source range of the instruction that `frame` is at: lines and columns."""
    for index, (line, last, column, end) in enumerate(frame.f_code.co_positions()):
        if index == frame.f_lasti // 2:
            if line is None or last is None or column is None or end is None:
                return None
            return (line, column), (last, end)
    return None


def _range(node: ast.AST) -> _Range | None:
    if not isinstance(node, ast.expr | ast.stmt | ast.keyword):
        return None
    if node.end_lineno is None or node.end_col_offset is None:
        return None
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def text_of(node: ast.AST) -> str:
    """Return the expression as text on one line, shortened."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 80 else text[:77] + "..."
