"""Loop collapse: iterate over the last two axes of a nest as one, if the last is short.

A loop over ten elements costs more overhead than work. For the rows of a table with ten columns one
loop suffices if elements are contiguous. Values that are constant along rows or columns are first
spread over a strip. Reductions along the short axis run segment by segment behind each strip.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from primgraph.codegen.ir.statements import Nest, Node, Operand

# Axes of more elements are not short; nor are multiples of the vector length.
_NARROW, _SHORT, _LANES = 64, 16, 8

_KINDS = ("text", "call", "copy", "put", "sum", "prod", "max", "min")
_REDUCED = _KINDS[4:]


class Flat(NamedTuple):
    """A nest with "spread" nodes; the axis of rows, and the number of elements of a row.

    `sources` maps each spread value to its value in memory.
    """

    nest: Nest
    row: int
    width: int
    sources: Mapping[int, int]

    def is_segmented(self, node: Node) -> bool:
        """Return whether a node reduces each row to its own element."""
        return node.kind in _REDUCED and node.strides[-1] == 0 and node.strides[self.row] != 0


def collapse_nest(nest: Nest) -> Flat | None:
    """Return the collapsed nest, or None if that is impossible or does not pay."""
    if len(nest.domain) < 2 or nest.pairs or not all(_is_known(node) for node in nest.nodes):
        return None
    n = nest.domain[-1]
    if type(n) is not int or not 1 < n <= _NARROW or (n % _LANES == 0 and n >= _SHORT):
        return None
    segmented = any(node.kind in _REDUCED and not _in_a_row(node.strides, n) for node in nest.nodes)
    calls = any(node.kind == "call" for node in nest.nodes)
    writes = [node.strides for node in nest.nodes if node.strides]
    if not all(_in_a_row(w, n) or w[-1] == 0 for w in writes):
        return None
    if any(node.kind == "put" and not _in_a_row(node.strides, n) for node in nest.nodes):
        return None
    spread = _SpreadBuilder(nest, n)
    nodes = [spread.node(node) for node in nest.nodes]
    if not (spread.found or segmented) or not (calls or segmented or n < _SHORT):
        return None
    made = replace(nest, nodes=[*spread.nodes, *nodes])
    return Flat(made, len(nest.domain) - 2, n, spread.sources)


def _is_known(node: Node) -> bool:
    fixed = any(o.text or o.cast for o in node.operands)
    indices = any(o.cast and o.strides for o in node.operands)
    plain = not (fixed and node.kind in _REDUCED) and not indices
    return node.kind in _KINDS and plain


def _in_a_row(strides: tuple[int, ...], n: int) -> bool:
    """Return whether consecutive rows are contiguous at these strides."""
    return strides[-2] == strides[-1] * n


def collapse_axes(
    axes: Sequence[int], extents: Sequence[int], rows: Sequence[Sequence[int]]
) -> tuple[list[int], list[int]]:
    """Return the axes that remain as loops after collapsing contiguous ones, and their extents.

    `rows` are the strides of all accesses. A collapsed loop is named by the last of its axes, and
    runs over all elements of these.
    """
    kept: list[int] = []
    sizes: list[int] = []
    for axis, n in zip(axes, extents, strict=True):
        if kept and axis == kept[-1] + 1 and all(r[kept[-1]] == r[axis] * n for r in rows):
            kept[-1], sizes[-1] = axis, sizes[-1] * n
        else:
            kept.append(axis)
            sizes.append(n)
    return kept, sizes


class _SpreadBuilder:
    """Builder of "spread" nodes for operands that are not contiguous, one for each."""

    def __init__(self, nest: Nest, width: int) -> None:
        self.width = width
        self.found: dict[Operand, int] = {}
        self.sources: dict[int, int] = {}
        self.nodes: list[Node] = []
        named = [v for n in nest.nodes for o in n.operands for v in (n.value, o.value, o.root)]
        self.next = max(named) + 1

    def node(self, node: Node) -> Node:
        reduced = node.kind in _REDUCED
        return replace(node, operands=tuple([self.operand(o, reduced) for o in node.operands]))

    def operand(self, o: Operand, reduced: bool) -> Operand:
        if o.root < 0:
            return o
        if o.root >= 0 and _in_a_row(o.strides, self.width) and (not reduced or o.strides[-1] == 1):
            return o
        if o not in self.found:
            self.found[o] = self.next
            self.sources[self.next] = o.root
            self.nodes.append(Node(None, self.next, "spread", "", (o,)))
            self.next += 1
        return Operand(value=self.found[o])
