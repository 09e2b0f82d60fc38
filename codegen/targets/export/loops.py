"""The loops of a nest, one per axis or group of collapsed axes, and the reductions in them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple, final

from primgraph.codegen.ir.access import row_major
from primgraph.codegen.ir.c_extents import is_zero
from primgraph.codegen.ir.extents import ADD, ATOM, CHOICE, Text
from primgraph.codegen.ir.statements import Nest, Node
from primgraph.codegen.lower.nests.loop_collapse import collapse_axes
from primgraph.codegen.targets.c.reductions import first_of
from primgraph.codegen.targets.export.page import Page, fill
from primgraph.codegen.targets.export.places import kind_of, number
from primgraph.ir.assumptions import is_at_least
from primgraph.ir.dims import typical
from primgraph.ir.types import DType, TensorType


@final
class Grid(NamedTuple):
    """The axes of loops, their iteration counts, and the names of their variables.

    A collapsed loop is represented by its last axis.
    """

    axes: list[int]
    extents: list[int]
    variables: list[str]

    def loop_strides(self, strides: Sequence[int]) -> list[int]:
        """Return the strides of each loop, from strides by axis."""
        return [strides[a] for a in self.axes]


def grid_of(nest: Nest, names: Sequence[str]) -> Grid:
    """Return the loops of a nest, with variables of these names."""
    rows: list[Sequence[int]] = [row_major(nest.domain)] if nest.stored else []
    for node in nest.nodes:
        rows += [o.strides for o in node.operands if o.strides]
        if node.strides:
            rows.append(node.strides)
    axes, extents = collapse_axes(range(len(nest.domain)), nest.domain, rows)
    return Grid(axes, extents, list(names[: len(axes)]))


def is_apart(strides: Sequence[int], extents: Sequence[int]) -> bool:
    """Return whether all elements at these strides are known to be distinct."""
    reach = 0
    pairs = [(s if typical(s) >= 0 else -s, n) for s, n in zip(strides, extents, strict=False)]
    for stride, n in sorted(pairs, key=lambda pair: (typical(pair[0]), typical(pair[1]))):
        if not is_at_least(stride, reach + 1):
            return False
        reach += stride * (n - 1)
    return True


KINDS = ("sum", "prod", "min", "max")


@final
class Reductions:
    """The reductions of one nest, and the names of their accumulators."""

    def __init__(self, page: Page, nest: Nest, grid: Grid) -> None:
        self.page, self.grid, self.is_empty = page, grid, is_zero(prod(nest.domain))
        self.nodes = [node for node in nest.nodes if node.kind in KINDS]
        self.totals: dict[int, str] = {}
        # Reductions over the innermost loops, by the number of loops around these.
        self.inner: dict[int, list[Node]] = {}
        # Reductions of a single element per result element.
        self.direct: set[int] = set()
        for node in self.nodes:
            along = grid.loop_strides(node.strides)
            around = len(along)
            while around and is_zero(along[around - 1]):
                around -= 1
            # Overlapping windows share some elements, and may leave others out.
            whole = prod(grid.extents[:around]) == page.type(node.value).size
            if not whole or not is_apart(along[:around], grid.extents):
                continue
            if around == len(along):
                self.direct.add(node.value)
            else:
                self.inner.setdefault(around, []).append(node)

    def begin_others(self) -> None:
        """Initialise reductions that accumulate in memory."""
        # The others are initialised before their loops.
        others = {n.value for nodes in self.inner.values() for n in nodes} | self.direct
        if self.is_empty:
            others = set()
        for node in self.nodes:
            if node.value in others:
                continue
            type, place = self.page.type(node.value), self.page.place(node.value)
            start = _start(node.kind, type)
            fill(self.page, place, start, type)

    def begin(self, depth: int) -> None:
        """Declare the accumulators of the reductions inside `depth` loops."""
        for node in self.inner.get(depth, ()):
            type, place = self.page.type(node.value), self.page.place(node.value)
            start = _start(node.kind, type)
            if place.is_number and not place.is_declared:
                self.totals[node.value] = place.name
                self.page.store(place, "0", start, type.dtype)
            else:
                hint = self.page.hint(node.value)
                name = self.page.names.fresh(f"{hint}_{node.kind}" if hint else node.kind)
                self.totals[node.value] = name
                self.page.line(f"{kind_of(type.dtype)} {name} = {start};")

    def end(self, depth: int) -> None:
        """Store the accumulators of the reductions inside `depth` loops."""
        for node in self.inner.get(depth, ()):
            place, name = self.page.place(node.value), self.totals[node.value]
            if place.name != name:
                strides = self.grid.loop_strides(node.strides)[:depth]
                at = self.page.index(0, self.grid.variables[:depth], strides)
                self.page.line(f"{place.element(at)} = {name};")

    def sums(self, depth: int) -> list[Node]:
        """Return the sums that the loop inside `depth` loops adds to."""
        return [n for at in range(depth + 1) for n in self.inner.get(at, ()) if n.kind == "sum"]

    def begin_parts(self, sums: Sequence[Node]) -> dict[int, str]:
        """Declare partial sums to accumulate into; return the former accumulators."""
        whole = dict(self.totals)
        for node in sums:
            type = self.page.type(node.value)
            part = self.totals[node.value] = self.page.names.fresh("part")
            self.page.line(f"{kind_of(type.dtype)} {part} = {_start('sum', type)};")
        return whole

    def end_parts(self, sums: Sequence[Node], whole: dict[int, str]) -> None:
        """Add the partial sums to the sums."""
        for node in sums:
            self.page.line(f"{whole[node.value]} += {self.totals[node.value]};")
        self.totals = whole

    def index(self, strides: Sequence[int]) -> str:
        """Return the index expression of an element."""
        return self.page.index(0, self.grid.variables, self.grid.loop_strides(strides))

    def take_in(self, node: Node, text: Text) -> None:
        """Write the accumulation of an element."""
        page, dtype = self.page, self.page.type(node.value).dtype
        place, at = page.place(node.value), self.index(node.strides)
        if node.value in self.direct:
            page.store(place, at, text.code, dtype, constant=True)
            return
        target = self.totals.get(node.value) or place.element(at)
        for line in accumulation_lines(node.kind, target, text, dtype):
            page.line(line)


def accumulation_lines(kind: str, target: str, text: Text, dtype: DType) -> list[str]:
    """Return statements that accumulate an element into a sum, product or extremum."""
    if dtype.kind == "b":
        joined = "&&" if kind in ("min", "prod") else "||"
        return [f"{target} = {target} {joined} {text.operand_code(ATOM)};"]
    if kind in ("sum", "prod"):
        sign = "+" if kind == "sum" else "*"
        if dtype.kind == "f":
            return [f"{target} {sign}= {text.operand_code(ADD if kind == 'sum' else CHOICE)};"]
        # Integers wrap round; overflow of signed ones is undefined in C.
        wide, own = f"uint{8 * max(dtype.itemsize, 4)}_t", kind_of(dtype)
        return [f"{target} = ({own})(({wide}){target} {sign} ({wide}){text.operand_code(ATOM)});"]
    sign = ">" if kind == "max" else "<"
    if dtype.kind == "f":
        # Of signed zeros the last one counts, as in NumPy.
        sign += "="
    x = text.operand_code(ATOM)
    # NaN propagates.
    test = f"{x} {sign} {target}" + (f" || {x} != {x}" if dtype.kind == "f" else "")
    return [f"if ({test}) {{", f"    {target} = {text.code};", "}"]


def _start(kind: str, type: TensorType) -> str:
    """Return the initial value of a reduction."""
    if kind in ("sum", "prod") or type.dtype.kind == "b":
        return number(type.dtype.type(kind in ("prod", "min")), type.dtype)
    return first_of(kind, type)
