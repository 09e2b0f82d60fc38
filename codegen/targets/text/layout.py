"""Line breaks in long statements, as formatters of Python code insert them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

# The default line width of formatters.
WIDTH = 88

_INDENT = "    "
# Approximate width of a name and an equals sign.
_NAMED = 5


def statement(head: str, expression: str, depth: int = 1) -> list[str]:
    """Return `head` and an expression, broken into several lines if too long.

    Lines are indented relative to the statement, which is at depth `depth`.
    """
    width = WIDTH - len(_INDENT) * depth
    if len(head) + len(expression) <= width:
        return [head + expression]
    first, *rest = _in_brackets(expression, width) or _in_parentheses(expression, width)
    return [head + first, *rest]


def result(expression: str) -> list[str]:
    """Return the lines of an expression that a function returns."""
    head = "return "
    first, *rest = statement(head, expression)
    return [first[len(head) :], *rest]


def signature(name: str, parameters: Sequence[str]) -> list[str]:
    """Return the lines of a function header."""
    line = f"def {name}({', '.join(parameters)}):"
    if len(line) <= WIDTH or not parameters:
        return [line]
    return [f"def {name}(", *(f"{_INDENT}{p}," for p in parameters), "):"]


def _in_parentheses(text: str, width: int) -> list[str]:
    """Enclose in parentheses; if still too long, break before the only operator."""
    rows = [text]
    node = ast.parse(text, mode="eval").body
    if len(_INDENT) + len(text) > width:
        match node:
            case ast.Compare(left=left, comparators=[_]) | ast.BinOp(left=left) if not isinstance(
                left, ast.BinOp
            ):
                end = left.end_col_offset or 0
                end += len(text[end:]) - len(text[end:].lstrip(")"))
                rows = [text[:end], text[end:].lstrip()]
    return ["(", *(_INDENT + row for row in rows), ")"]


def _in_brackets(text: str, width: int) -> list[str]:
    """Break an expression that ends in brackets, with one item per line; else return []."""
    node = ast.parse(text, mode="eval").body
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call() | ast.BinOp() as before)):
            return _break_trailer(text, before, width)
        case ast.Subscript(value=ast.Call() as before):
            return _break_trailer(text, before, width)
        case ast.Call(func=ast.Name() | ast.Attribute() as function):
            opening = text[: (function.end_col_offset or 0) + 1]
            items = [("", x) for x in node.args]
            items += [(f"{k.arg}=", k.value) for k in node.keywords]
        case ast.List(elts) | ast.Tuple(elts) if text[0] in "([":
            opening, items = text[0], [("", x) for x in elts]
        case _:
            return []
    if not items:
        return []
    parts = [(label, text[x.col_offset : x.end_col_offset]) for label, x in items]
    together = _INDENT + ", ".join(label + part for label, part in parts)
    if isinstance(node, ast.Call) and len(together) <= width:
        return [opening, together, text[-1]]
    lines = [opening]
    for label, part in parts:
        rows = [part]
        if len(_INDENT) + len(label) + len(part) + 1 > width:
            rows = _in_brackets(part, width - len(_INDENT)) or rows
        first, *rest = rows
        lines += [f"{_INDENT}{row}" for row in (label + first, *rest)]
        # Formatters add no trailing comma after a single item that cannot be split.
        if len(parts) > 1 or rest:
            lines[-1] += ","
    return [*lines, text[-1]]


def _break_trailer(text: str, before: ast.expr, width: int) -> list[str]:
    """Break a method call or a subscript of another call in its brackets, if that call fits."""
    end = before.end_col_offset or 0
    end += text[end:].startswith(")")
    inner, rest = text[:end], text[end:]
    start = rest.index("(" if rest.endswith(")") else "[") + 1
    if len(inner) + start + _NAMED <= width and rest[start:-1]:
        return [inner + rest[:start], _INDENT + rest[start:-1], rest[-1]]
    if inner.startswith("("):
        return ["(", _INDENT + inner[1:-1], f"){rest}"]
    rows = _in_brackets(inner, width)
    return [*rows[:-1], rows[-1] + rest] if rows else []
