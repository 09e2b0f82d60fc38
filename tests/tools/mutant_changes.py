"""Small changes of Python files, each in one place: operators, comparisons, signs and constants."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BINARY = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "*"), ast.Pow: ("**", "*"), ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}  # fmt: skip
_COMPARED = {
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
_JOINED = {ast.And: ("and", "or"), ast.Or: ("or", "and")}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of one place in a file: bytes from `start` to `stop` of it become `text`.

    `line` is where that is, and `statement` where the statement begins that it belongs to.
    """

    file: str
    start: int
    stop: int
    text: str
    line: int
    statement: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}\n    - {self.before}\n    + {self.after}"

    @property
    def key(self) -> tuple[str, str, str]:
        return self.file, self.before, self.after

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.stop :]


def mutants_of(root: Path, file: str) -> list[Mutant]:
    """All changes of a file that this knows to make."""
    source = (root / file).read_bytes()
    starts = [0]
    for row in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(row))
    tree = ast.parse(source)
    statements = sorted({n.lineno for n in ast.walk(tree) if isinstance(n, ast.stmt)})
    found = []
    for start, stop, text in _changes(tree, source, starts):
        line = next(i for i, s in enumerate(starts) if s > start)
        first, last = starts[line - 1], starts[line]
        before = source[first:last].decode().strip()
        after = (source[first:start] + text.encode() + source[stop:last]).decode().strip()
        statement = statements[bisect_right(statements, line) - 1]
        found.append(Mutant(file, start, stop, text, line, statement, before, after))
    return found


def _changes(tree: ast.AST, source: bytes, starts: list[int]) -> Iterator[tuple[int, int, str]]:
    def place(node: Any, end: bool = False) -> int:
        line, column = (
            (node.end_lineno, node.end_col_offset) if end else (node.lineno, node.col_offset)
        )
        return int(starts[line - 1] + column)

    def between(left: Any, right: Any, pair: tuple[str, str]) -> Iterator[tuple[int, int, str]]:
        begin = place(left, end=True)
        found = source.find(pair[0].encode(), begin, place(right))
        if found >= 0:
            yield found, found + len(pair[0]), pair[1]

    for node in _walked(tree):
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            yield from between(node.left, node.right, _BINARY[type(node.op)])
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
                yield from between(left, right, _COMPARED[type(op)])
        elif isinstance(node, ast.BoolOp):
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from between(left, right, _JOINED[type(node.op)])
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
            sign = "-" if isinstance(node.op, ast.USub) else "not"
            yield place(node), place(node) + len(sign), ""
        elif isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
            yield place(node), place(node, end=True), _other(node.value)


def _other(value: bool | float) -> str:
    if isinstance(value, bool):
        return str(not value)
    return repr(value + 1) if isinstance(value, int) or value == 0 else repr(value * 2)


def _walked(tree: ast.AST) -> Iterator[ast.AST]:
    """Expressions that run; not types, messages, assertions, and estimates of operations."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert):
            continue
        yield node
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns") or (name == "value" and _is_alias(node)):
                continue
            children = value if isinstance(value, list) else [value]
            waiting += [c for c in children if isinstance(c, ast.AST) and not _is_beside(c)]


def _is_alias(node: ast.AST) -> bool:
    return isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias"


def _is_beside(node: ast.AST) -> bool:
    """Whether an argument says nothing of what is computed: `zip(..., strict=True)` asserts."""
    return isinstance(node, ast.keyword) and node.arg in ("flops", "strict", "frozen", "slots")
