"""A graph as a tree for the terminal: source lines, the operators in them, their equations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from primgraph.base.plain_text import plain, shortened
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.text import names
from primgraph.view.layers import is_told
from primgraph.view.picture import equation_text

# What stands for the lines of the tree where the terminal has ASCII only.
_ASCII = str.maketrans({"├": "|", "└": "`", "│": "|", "─": "-", "…": "~", "→": ">"})


class _Branch(NamedTuple):
    """A line of the tree, what hangs below it, and how many equations that are."""

    text: str
    inner: list[_Branch]
    equations: int = 1


def tree_text(graph: Graph, lines: int, width: int, encoding: str = "utf-8") -> str:
    """The tree of `graph` in at most `lines` lines, if these are four, of `width` characters.

    Equations that come from one line of the user's code stand together, in order. Where all would
    be too long, first the equations are left out, then whole source lines in the middle.
    """
    spelled = names(graph)
    branches = [
        _line_branch(list(group), spelled)
        for _, group in groupby(graph.body, key=lambda eqn: eqn.source and eqn.source.place)
    ]
    if sum(1 for _ in _drawn(branches)) >= lines:
        branches = [_Branch(_told(b), [], b.equations) for b in branches]
    if len(branches) >= lines:
        kept = max(lines - 2, 2)
        first, last = kept // 2, len(branches) - (kept - kept // 2)
        hidden = sum(b.equations for b in branches[first:last])
        branches[first:last] = [_Branch(f"… {_counted(hidden)} more …", [], hidden)]
    rows = [shortened(plain(row), width) for row in (_title(graph), *_drawn(branches))]
    text = "\n".join(rows)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_ASCII).encode(encoding, "backslashreplace").decode(encoding)
    return text


def _title(graph: Graph) -> str:
    inputs = ", ".join(f"{v.hint}: {v.type}" if v.hint else str(v.type) for v in graph.inputs)
    outputs = ", ".join(str(v.type) for v in graph.outputs)
    return f"{graph.name}: {_counted(len(graph.body))}, ({inputs}) → ({outputs})"


def _counted(equations: int) -> str:
    return f"{equations} equation{'' if equations == 1 else 's'}"


def _told(branch: _Branch) -> str:
    """The text of a branch whose leaves are not shown."""
    return f"({_counted(branch.equations)}) {branch.text}" if branch.inner else branch.text


def _line_branch(equations: Sequence[Equation], spelled: Mapping[Value, str]) -> _Branch:
    """The equations of one line of the user's; those of one operator hang together."""
    source = equations[0].source
    inner: list[_Branch] = []
    for operator, group in groupby(equations, key=lambda eqn: eqn.source and eqn.source.operator):
        leaves = [_Branch(equation_text(eqn, spelled), []) for eqn in group]
        if operator and len(leaves) > 1:
            leaves = [_Branch(operator, leaves, len(leaves))]
        inner += leaves
    if source is None or not is_told(source):
        return _Branch("equations", inner, len(equations)) if len(inner) > 1 else inner[0]
    return _Branch(f"{source}  {source.text}".rstrip(), inner, len(equations))


def _drawn(branches: Sequence[_Branch], lead: str = "") -> Iterator[str]:
    """The lines of a tree, which is never deeper than lines, operators and equations are."""
    for branch in branches:
        last = branch is branches[-1]
        yield f"{lead}{'└─' if last else '├─'} {branch.text}"
        yield from _drawn(branch.inner, lead + ("   " if last else "│  "))
