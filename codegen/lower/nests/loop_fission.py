"""Loop fission: split nests that do independent work.

Steps over the same indices are lowered into one nest, whatever they read. A loop over many arrays
at once is slower than several loops over few: compilers cannot prove that the arrays do not
overlap, do not vectorise, and processors prefetch few streams.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from typing import TypeAlias, final

from primgraph.base.records import dataclass
from primgraph.codegen.ir.statements import PLAIN, Nest, Node

# Maximum number of memory streams of a loop, unless its steps depend on each other.
_MOST = 12

# A read: root, offset and strides of an operand.
_Read: TypeAlias = tuple[int, int, tuple[int, ...]]


@final
@dataclass(slots=True)
class _Group:
    """Node indices, the reads of these nodes, and the number of streams they write."""

    nodes: list[int] = field(default_factory=list)
    reads: dict[_Read, None] = field(default_factory=dict)
    written: int = 0

    def runs_with(self, other: _Group) -> int:
        return len({**self.reads, **other.reads}) + self.written + other.written

    def take(self, other: _Group) -> None:
        self.nodes += other.nodes
        self.reads.update(other.reads)
        self.written += other.written


def split_nest(nest: Nest) -> list[Nest]:
    """Split `nest` into independent nests, to be run in any order.

    Nodes that depend on each other stay in one loop, and so do copies to elements beside each
    other, such as the columns of a matrix: each alone would go through all of its cache lines.
    Nodes that read the same memory stay in one loop as long as there are few streams.
    """
    if not nest.domain or nest.pairs or _runs(nest) <= _MOST:
        return [nest]
    groups: list[_Group] = []
    readers: dict[_Read, _Group] = {}
    for found in _connected_components(nest):
        near = next((readers[r] for r in found.reads if r in readers), None)
        if near is not None and near.runs_with(found) <= _MOST:
            near.take(found)
        else:
            near = found
            groups.append(found)
        readers.update(dict.fromkeys(found.reads, near))
    return [_nest_of(nest, sorted(group.nodes)) for group in groups]


def _runs(nest: Nest) -> int:
    return len(_reads(nest.nodes)) + sum(_is_written(nest, node) for node in nest.nodes)


def _is_written(nest: Nest, node: Node) -> bool:
    return node.value in nest.stored or node.kind not in PLAIN


def _reads(nodes: list[Node]) -> dict[_Read, None]:
    return {(o.root, o.offset, o.strides): None for n in nodes for o in n.operands if o.root >= 0}


def _connected_components(nest: Nest) -> Iterator[_Group]:
    """Yield groups of nodes that depend on each other, or write beside each other."""
    above = list(range(len(nest.nodes)))

    def top(k: int) -> int:
        while above[k] != k:
            above[k] = above[above[k]]
            k = above[k]
        return k

    made: dict[int, int] = {}
    for k, node in enumerate(nest.nodes):
        for o in node.operands:
            if o.value >= 0:
                one, other = sorted((top(made[o.value]), top(k)))
                above[other] = one
        made[node.value] = k
    beside: dict[object, int] = {}
    for k, node in enumerate(nest.nodes):
        row = _row_written(node)
        if row is not None:
            one, other = sorted((top(beside.setdefault(row, k)), top(k)))
            above[other] = one
    found: dict[int, _Group] = {}
    for k, node in enumerate(nest.nodes):
        group = found.setdefault(top(k), _Group())
        group.nodes.append(k)
        group.reads.update(_reads([node]))
        group.written += _is_written(nest, node)
    yield from found.values()


def _row_written(node: Node) -> object:
    """Return the row of elements, of which a loop writes one at each step; None if contiguous."""
    step = min((n for n in node.strides if type(n) is int and n), default=1)
    if node.kind != "put" or step <= 1 or type(node.offset) is not int:
        return None
    return node.value, node.strides, node.offset // step


def _nest_of(nest: Nest, places: list[int]) -> Nest:
    nodes = [nest.nodes[k] for k in places]
    stored = {n.value: None for n in nodes if n.value in nest.stored}
    return replace(nest, nodes=nodes, stored=stored)
