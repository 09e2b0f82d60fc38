"""Loop structure of a nest: the order of its loops, and the nodes in each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import final

from primgraph.codegen.ir.access import row_major
from primgraph.codegen.ir.c_extents import extent, index_text, is_few
from primgraph.codegen.ir.statements import Nest, Node
from primgraph.codegen.lower.nests.loop_collapse import collapse_axes, collapse_nest
from primgraph.ir.dims import typical

# Number of elements of a strip.
STRIP = 256
# A loop of at least so many elements is peeled at the edges of embedded parts, if these are few.
_LONG, _EDGES = 32, 8
# A shorter innermost axis is exchanged with a longer one.
_SHORT = 16

# Number of elements of an inner loop that is one vector.
_VECTOR = 8

# Initial values of reductions.
IDENTITY = {"sum": "0", "prod": "1", "max": "-INFINITY", "min": "INFINITY"}


@final
class Walk:
    """The loops of a nest, outermost first: their axes in `order`, and their `extents`.

    A collapsed loop is named by the last of its axes. The innermost loop runs over strips, each of
    which has several loops: `levels` has that of each node. `crossing` are values that are live
    behind their loop.
    """

    def __init__(self, nest: Nest) -> None:
        self.flat = collapse_nest(nest)
        self.nest = nest = nest if self.flat is None else self.flat.nest
        self.order = _loop_order(nest) if self.flat is None else list(range(len(nest.domain)))
        # The elements of a strip: whole rows of a collapsed nest.
        self.strip = STRIP if self.flat is None else STRIP // self.flat.width * self.flat.width
        # Whether a strip is one vector, so that sums stay in registers.
        self.in_octets = _has_octets(nest)
        if self.in_octets:
            self.strip = _VECTOR
        self.extents = [nest.domain[i] for i in self.order]
        self.stored_strides = row_major(nest.domain)
        self.levels: list[int] = []
        self.find_levels()
        if not nest.pairs:
            self.collapse()
        # Pieces of the innermost loop, in each of which a "parts" node reads one part, and an
        # "inner" node is inside or outside of its range.
        self.pieces = self._peel()
        # The first index of the innermost loop, if that depends on the outer one.
        self.first = f"(i0 / {nest.pairs} + 1) * {nest.pairs}" if nest.pairs else ""
        # The variable of a strip's first element; empty if there is only one strip.
        several = bool(self.extents) and not is_few(self.extents[-1], self.strip)
        cut = (several and self.in_strips) or len(self.pieces) > 1
        self.start = "s" if cut or self.first else ""

    def find_levels(self) -> None:
        """Assign each node to a loop of a strip; function calls are between loops."""
        level: dict[int, int] = {}
        for node in self.nest.nodes:
            known = [level[o.value] for o in node.operands if o.value >= 0]
            here = max(known, default=0)
            # The operand of a function has to be computed first, unless it is in memory.
            here = here + 1 if node.kind == "call" and known else here
            self.levels.append(here)
            if node.kind not in ("put", "add"):
                level[node.value] = here
        self.crossing = self._crossing_values(level)

    def _crossing_values(self, level: Mapping[int, int]) -> set[int]:
        """Return values that are live behind their loop, or are operands of runtime functions."""
        found: set[int] = set()
        for node, here in zip(self.nest.nodes, self.levels, strict=True):
            for o in node.operands:
                if o.value < 0:
                    continue
                if level[o.value] < here or (node.kind in IDENTITY and self.is_run(node)):
                    found.add(o.value)
            if node.kind in ("call", "spread"):
                found.add(node.value)
        return found

    def is_run(self, node: Node) -> bool:
        """Return whether a reduction is along the innermost loop."""
        return not self.extents or self.loop_strides(node.strides)[-1] == 0

    def _peel(self) -> list[tuple[int, int]]:
        """Return the first and last index of each piece of the innermost loop."""
        if not self.extents or type(self.extents[-1]) is not int:
            return []
        edges = {0, self.extents[-1]}
        for node in self.nest.nodes:
            axes = [node.offset] * len(node.within) if node.kind == "parts" else axes_of_inner(node)
            for axis, (first, count) in zip(axes, node.within, strict=True):
                if axis == self.order[-1] and type(first) is int and type(count) is int:
                    edges.update((first, first + count))
        has_parts = any(node.kind == "parts" for node in self.nest.nodes)
        if not has_parts and (self.extents[-1] < _LONG or not 2 < len(edges) <= _EDGES):
            return []
        return list(pairwise(sorted(edges)))

    def loop_strides(self, strides: Sequence[int]) -> list[int]:
        """Permute strides from axes to loops."""
        return [strides[i] for i in self.order]

    @property
    def in_strips(self) -> bool:
        return self.flat is not None or any(
            n.kind == "call" or (n.kind in IDENTITY and self.is_run(n)) for n in self.nest.nodes
        )

    def collapse(self) -> None:
        """Collapse adjacent loops if all accesses are contiguous across them."""
        rows = [self.stored_strides]
        for node in self.nest.nodes:
            rows += [o.strides for o in node.operands if o.root >= 0 or o.strides]
            if node.strides:
                rows.append(node.strides)
            if node.kind == "parts":
                rows.append(tuple([int(i == node.offset) for i in range(len(self.order))]))
        if self.flat is None:
            self.order, self.extents = collapse_axes(self.order, self.extents, rows)
        else:
            last = self.order[-1]
            self.order, self.extents = collapse_axes(self.order[:-1], self.extents[:-1], rows)
            self.order[-1], self.extents[-1] = last, self.extents[-1] * self.flat.width

    def first_row(self, offset: int, strides: Sequence[int]) -> str:
        """Return the index of a strip's first row, in values with one element per row."""
        assert self.flat is not None
        outer = [(f"i{d}", strides[i]) for d, i in enumerate(self.order[:-1])]
        if self.start:
            outer.append((f"{self.start} / {self.flat.width}", strides[self.flat.row]))
        return index_text(offset, outer)

    def _along(self, strides: Sequence[int], *inner: str) -> list[tuple[str, int]]:
        """Return the variables of outer loops, and of the innermost one, with their strides."""
        *outer, last = self.loop_strides(strides) or [0]
        return [*((f"i{d}", s) for d, s in enumerate(outer)), *((name, last) for name in inner)]

    def base(self, offset: int, strides: Sequence[int]) -> str:
        """Return the index of the first element of a strip."""
        return index_text(offset, self._along(strides, *filter(None, [self.start])))

    def outer_base(self, offset: int, strides: Sequence[int]) -> str:
        """Return the index of the first element of the innermost loop."""
        return index_text(offset, self._along(strides))

    def inner_index(self, strides: Sequence[int]) -> str:
        """Return the index of element `j` along the innermost loop."""
        apart = self.loop_strides(strides)[-1]
        index = f"{self.start} + j" if self.start else "j"
        return index if apart == 1 else f"({index}) * {extent(apart)}"

    def index(self, offset: int, strides: Sequence[int]) -> str:
        """Return the index of element `j` of a strip."""
        return index_text(offset, self._along(strides, *filter(None, [self.start, "j"])))


def _has_octets(nest: Nest) -> bool:
    """Return whether pairs have no function calls, and sums of values alone, of one dtype."""
    sums = [node for node in nest.nodes if node.kind == "sum"]
    return (
        nest.pairs > 0
        and all(node.kind != "call" for node in nest.nodes)
        and all(node.operands[0].value >= 0 for node in sums)
        and len({node.step.results[0].dtype for node in sums if node.step is not None}) == 1
    )


def axes_of_inner(node: Node) -> list[int]:
    """Return the axis of each index operand of an "inner" node; none for others."""
    return [o.strides.index(1) for o in node.operands[1:]] if node.kind == "inner" else []


def _loop_order(nest: Nest) -> list[int]:
    """Return the axes of a nest from the outermost loop to the innermost one.

    Memory is best read in its order, but a short inner loop costs more than this saves.
    """
    order = list(range(len(nest.domain)))
    if any(node.kind == "add" for node in nest.nodes):
        # Additions to one element keep the order of the indices.
        return order
    if len(order) > 1 and typical(nest.domain[-1]) < _SHORT:
        rows = [o.strides for n in nest.nodes for o in n.operands if o.root >= 0]
        if nest.domain[-1] == _VECTOR and all(r[-1] in (0, 1) for r in rows):
            return order
        longest = max(order, key=lambda i: typical(nest.domain[i]))
        whole = all(r == row_major(nest.domain) or all(s == 0 for s in r) for r in rows)
        whole = whole and not any(n.strides for n in nest.nodes)
        if not whole and typical(nest.domain[longest]) >= _SHORT:
            order.remove(longest)
            order.append(longest)
    return order
