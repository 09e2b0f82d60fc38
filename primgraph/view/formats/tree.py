"""Graph as a tree for the terminal: source lines, their operators, and their equations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from primgraph.base.plain_text import plain, shorten_text
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.text import names
from primgraph.view.layers import is_user_line
from primgraph.view.picture import equation_text

# Replacements for the lines of the tree in ASCII terminals.
_ASCII = str.maketrans({"├": "|", "└": "`", "│": "|", "─": "-", "…": "~", "→": ">"})


class _Branch(NamedTuple):
    """Line of the tree, the branches below it, and its number of equations."""

    text: str
    inner: list[_Branch]
    equations: int = 1


def tree_text(graph: Graph, lines: int, width: int, encoding: str = "utf-8") -> str:
    """Return the tree of `graph` in at most `lines` lines (at least four) of `width` characters.

    Equations of one line of the user's code are together, in order. If the tree is too long,
    equations are omitted first, then whole source lines in the middle.
    """
    spelled = names(graph)
    branches = [
        _line_branch(list(group), spelled)
        for _, group in groupby(graph.body, key=lambda eqn: eqn.source and eqn.source.place)
    ]
    if sum(1 for _ in _tree_lines(branches)) >= lines:
        branches = [_Branch(_branch_text(b), [], b.equations) for b in branches]
    if len(branches) >= lines:
        kept = max(lines - 2, 2)
        first, last = kept // 2, len(branches) - (kept - kept // 2)
        hidden = sum(b.equations for b in branches[first:last])
        branches[first:last] = [_Branch(f"… {_format_count(hidden)} more …", [], hidden)]
    rows = [shorten_text(plain(row), width) for row in (_title(graph), *_tree_lines(branches))]
    text = "\n".join(rows)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_ASCII).encode(encoding, "backslashreplace").decode(encoding)
    return text


def _title(graph: Graph) -> str:
    inputs = ", ".join(f"{v.hint}: {v.type}" if v.hint else str(v.type) for v in graph.inputs)
    outputs = ", ".join(str(v.type) for v in graph.outputs)
    return f"{graph.name}: {_format_count(len(graph.body))}, ({inputs}) → ({outputs})"


def _format_count(equations: int) -> str:
    return f"{equations} equation{'' if equations == 1 else 's'}"


def _branch_text(branch: _Branch) -> str:
    """Return the text of a branch whose leaves are omitted."""
    return f"({_format_count(branch.equations)}) {branch.text}" if branch.inner else branch.text


def _line_branch(equations: Sequence[Equation], spelled: Mapping[Value, str]) -> _Branch:
    """Return the branch of one line of the user; equations of one operator are nested."""
    source = equations[0].source
    inner: list[_Branch] = []
    for operator, group in groupby(equations, key=lambda eqn: eqn.source and eqn.source.operator):
        leaves = [_Branch(equation_text(eqn, spelled), []) for eqn in group]
        if operator and len(leaves) > 1:
            leaves = [_Branch(operator, leaves, len(leaves))]
        inner += leaves
    if source is None or not is_user_line(source):
        return _Branch("equations", inner, len(equations)) if len(inner) > 1 else inner[0]
    return _Branch(f"{source}  {source.text}".rstrip(), inner, len(equations))


def _tree_lines(branches: Sequence[_Branch], lead: str = "") -> Iterator[str]:
    """Yield the lines of a tree; its depth is at most three: lines, operators, equations."""
    for branch in branches:
        last = branch is branches[-1]
        yield f"{lead}{'└─' if last else '├─'} {branch.text}"
        yield from _tree_lines(branch.inner, lead + ("   " if last else "│  "))
