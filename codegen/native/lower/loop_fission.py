"""Takes nests apart that do several things which have nothing to do with each other.

Steps over the same indices are drafted as one nest, whatever they read. A loop that goes along
many arrays at once is slower than a loop for each few of them: compilers do not prove that so many
do not overlap, and do not vectorise it, and processors follow few runs of memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, final

from primgraph.codegen.native.items import PLAIN, Nest, Node

# Runs of memory that a loop goes along, where it need not go along more.
_MOST = 12

# Where elements are read: the root of an operand, its offset and strides.
_Read: TypeAlias = tuple[int, int, tuple[int, ...]]


@final
@dataclass(slots=True)
class _Group:
    """Places of nodes, what they read, and how many runs of memory they go along."""

    nodes: list[int] = field(default_factory=list)
    reads: dict[_Read, None] = field(default_factory=dict)
    written: int = 0

    def runs_with(self, other: _Group) -> int:
        return len({**self.reads, **other.reads}) + self.written + other.written

    def take(self, other: _Group) -> None:
        self.nodes += other.nodes
        self.reads.update(other.reads)
        self.written += other.written


def apart(nest: Nest) -> list[Nest]:
    """Nests that do together what `nest` does, in any order.

    What computes from each other's elements stays in one loop, and what reads the same memory does
    where there is not too much of it.
    """
    if not nest.domain or _runs(nest) <= _MOST:
        return [nest]
    groups: list[_Group] = []
    readers: dict[_Read, _Group] = {}
    for found in _connected(nest):
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


def _connected(nest: Nest) -> Iterator[_Group]:
    """Groups of nodes of which none computes from a value of another group."""
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
    found: dict[int, _Group] = {}
    for k, node in enumerate(nest.nodes):
        group = found.setdefault(top(k), _Group())
        group.nodes.append(k)
        group.reads.update(_reads([node]))
        group.written += _is_written(nest, node)
    yield from found.values()


def _nest_of(nest: Nest, places: list[int]) -> Nest:
    nodes = [nest.nodes[k] for k in places]
    return Nest(nest.domain, nodes, {n.value: None for n in nodes if n.value in nest.stored})
