"""C code for a loop nest in the style of a person: few loops, and a statement for each long or
named expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import final

from primgraph.codegen.ir.access import row_major
from primgraph.codegen.ir.c_extents import is_few, is_zero
from primgraph.codegen.ir.extents import ATOM, UNARY, Text
from primgraph.codegen.ir.statements import Nest, Node, Operand
from primgraph.codegen.targets.export.formulas import Formula, call, formula, function_of, trivial
from primgraph.codegen.targets.export.loops import (
    KINDS,
    Grid,
    Reductions,
    accumulation_lines,
    grid_of,
)
from primgraph.codegen.targets.export.page import Page, write_source_comment
from primgraph.codegen.targets.export.places import Place, bare, kind_of, number

# Block length of longer sums, which reduces rounding errors.
_BLOCK = 256
# Limits of an expression: characters, and half the number of parentheses.
_LONGEST, _DEEPEST = 66, 4


def nest(page: Page, item: Nest) -> None:
    """Write the statements of a nest."""
    for n in item.indexed_sizes():
        # No index is valid.
        page.open(f"if ({page.size(n)} == 0 && {page.size(prod(item.domain))} != 0)")
        page.line("return 1;")
        page.fail()
        page.close()
    loops = _Loops(page, item)
    loops.reductions.begin_others()
    if not is_zero(prod(item.domain)):
        loops.level(0)


@final
class _Loops:
    """The nested loops of one nest."""

    def __init__(self, page: Page, item: Nest) -> None:
        self.page, self.grid = page, grid_of(item, page.loops)
        self.reductions = Reductions(page, item, self.grid)
        self.elements = Elements(page, item, self.grid, self.reductions)

    def level(self, depth: int) -> None:
        """Write the loops inside `depth` loops."""
        self.reductions.begin(depth)
        if depth == len(self.grid.axes):
            self.elements.write()
        elif depth + 1 == len(self.grid.axes) and self.in_blocks(depth):
            self.blocks(depth)
        else:
            i, n = self.grid.variables[depth], self.grid.extents[depth]
            self.page.open_for(i, n)
            self.level(depth + 1)
            self.page.close()
        self.reductions.end(depth)

    def in_blocks(self, depth: int) -> bool:
        sums = self.reductions.sums(depth)
        floats = [n for n in sums if self.page.type(n.value).dtype.kind == "f"]
        return bool(floats) and not is_few(self.grid.extents[depth], 2 * _BLOCK)

    def blocks(self, depth: int) -> None:
        """Write the innermost loop in blocks, with a partial sum per block."""
        page, i, n = self.page, self.grid.variables[depth], self.grid.extents[depth]
        first, last = page.names.fresh("first"), page.names.fresh("last")
        sums = self.reductions.sums(depth)
        page.open(f"for (long {first} = 0; {first} < {page.size(n)}; {first} += {_BLOCK})")
        more = f"{first} < {page.size(n - _BLOCK)} ? {first} + {_BLOCK}"
        page.line(f"const long {last} = {more} : {page.size(n)};")
        whole = self.reductions.begin_parts(sums)
        page.open(f"for (long {i} = {first}; {i} < {last}; {i}++)")
        self.level(depth + 1)
        page.close()
        self.reductions.end_parts(sums, whole)
        page.close()


@final
class Elements:
    """Generator of the statements inside the loops of one nest, and of their expressions."""

    def __init__(self, page: Page, nest: Nest, grid: Grid, reductions: Reductions) -> None:
        self.page, self.nest, self.grid, self.reductions = page, nest, grid, reductions
        self.uses: dict[int, int] = {}
        for node in nest.nodes:
            for o in node.operands:
                if o.value >= 0:
                    self.uses[o.value] = self.uses.get(o.value, 0) + 1
        self.spelled = [_node_formula(page, n) for n in nest.nodes]
        self.folded = self.foldable()
        self.texts: dict[int, Text] = {}
        self.stored = row_major(nest.domain)

    def foldable(self) -> set[int]:
        """Return values that may be inlined into the single expression that reads them."""
        made = {n.value: n for n in self.nest.nodes if n.kind in ("text", "call")}
        found = set()
        for node, spelled in zip(self.nest.nodes, self.spelled, strict=True):
            for k, o in enumerate(node.operands):
                before = made.get(o.value)
                if before is None or self.uses[o.value] != 1 or o.value in self.nest.stored:
                    continue
                if spelled is not None and spelled.within[k] is None:
                    continue
                if spelled is None and node.kind not in ("sum", "prod", "put", "copy"):
                    continue
                type = self.page.type(o.value)
                if type.dtype.kind in "fb" and not self.page.hint(o.value):
                    found.add(o.value)
        return found

    def write(self) -> None:
        """Write the statements of all nodes."""
        for node, spelled in zip(self.nest.nodes, self.spelled, strict=True):
            if node.kind == "put":
                self.write_store(node)
            elif node.kind == "add":
                self.add(node)
            elif node.kind in KINDS:
                self.tell(node)
                self.reductions.take_in(node, self.argument(node.operands[0]))
            else:
                self.compute(node, spelled)

    def write_store(self, node: Node) -> None:
        self.tell(node)
        at = self.index(node.offset, node.strides)
        place, text = self.page.place(node.value), self.argument(node.operands[0]).code
        dtype = self.page.type(node.value).dtype
        text = number(dtype.type(0), dtype) if text == "0" else text
        self.page.store(place, at, text, dtype)

    def add(self, node: Node) -> None:
        """Add an element at an indexed position."""
        self.tell(node)
        target = self.indexed_element(node, self.page.place(node.value), node.offset, node.strides)
        dtype = self.page.type(node.value).dtype
        for line in accumulation_lines("sum", target, self.argument(node.operands[0]), dtype):
            self.page.line(line)

    def indexed_element(self, node: Node, place: Place, offset: int, strides: Sequence[int]) -> str:
        """Return the element at the position given by the operands after the first one."""
        found = [
            (
                f"{self.page.use('pg_place')}({self.argument(o).code}, {self.page.size(n)}, &bad)",
                stride,
            )
            for o, (n, stride) in zip(node.operands[1:], node.reach, strict=True)
        ]
        if place.is_number:
            for text, _ in found:
                self.page.line(f"(void){text};")
            return place.text
        names = [*self.grid.variables, *(text for text, _ in found)]
        along = [*self.grid.loop_strides(strides), *(s for _, s in found)]
        return place.element(self.page.index(offset, names, along))

    def tell(self, node: Node) -> None:
        if node.step is not None:
            write_source_comment(self.page, node.step.source)

    def compute(self, node: Node, spelled: Formula | None) -> None:
        page, value = self.page, node.value
        if node.kind == "take":
            first = node.operands[0]
            text = Text(
                self.indexed_element(node, page.place(first.root), first.offset, first.strides)
            )
        else:
            args = [self.argument(o) for o in node.operands]
            known = None if node.step is None else trivial(node.step, args)
            text = known or (args[0] if spelled is None else self.filled(spelled, args))
        stored, uses = value in self.nest.stored, self.uses.get(value, 0)
        if not stored and not uses:
            return
        is_short = len(text.code) <= _LONGEST and text.code.count("(") < 2 * _DEEPEST
        if value in self.folded and is_short:
            self.texts[value] = text
            return
        self.tell(node)
        dtype = page.type(value).dtype
        line = text.code
        cast = f"({kind_of(dtype)})"
        small = dtype.kind in "iu" and dtype.itemsize < 4 and text.rank < ATOM
        if small and not line.startswith(cast):
            # Small integers are promoted in C, and have to be cast back.
            line = f"{cast}{text.operand_code(ATOM)}"
        place = page.place(value) if stored else None
        if place is not None and (place.is_number or not uses):
            page.store(place, self.index(0, self.stored), line, dtype, constant=True)
            self.texts[value] = Text(place.text)
            return
        if text.rank == ATOM and line.isidentifier() and place is None:
            self.texts[value] = text
            return
        hint = page.hint(value)
        name = page.names.fresh(
            f"{hint}_{self.grid.variables[-1]}" if hint and place is not None else hint
        )
        page.line(f"const {kind_of(dtype)} {name} = {line};")
        if place is not None:
            page.store(place, self.index(0, self.stored), name, dtype)
        self.texts[value] = Text(name)

    def filled(self, spelled: Formula, args: Sequence[Text]) -> Text:
        """Return a formula of these operands."""
        for function in spelled.functions:
            self.page.use(function)
        return spelled.fill_operands(args)

    def index(self, offset: int, strides: Sequence[int]) -> str:
        """Return the index expression of an element."""
        return self.page.index(offset, self.grid.variables, self.grid.loop_strides(strides))

    def argument(self, o: Operand) -> Text:
        if o.cast:
            at = self.index(o.offset, o.strides) if o.strides else self.page.size(o.offset)
            return Text(f"({o.cast}){at if at.isidentifier() else f'({at})'}", UNARY)
        if o.text:
            text = bare(o.text)
            return Text(text, ATOM if text == o.text else UNARY)
        if o.value >= 0:
            return self.texts[o.value]
        place = self.page.place(o.root)
        return Text(place.element(self.index(o.offset, o.strides)))


def _node_formula(page: Page, node: Node) -> Formula | None:
    """Return the formula of a node, if it has one."""
    if node.kind == "text":
        assert node.step is not None
        return formula(node.step)
    if node.kind == "call":
        return call(function_of(node.name, page.type(node.value).dtype), len(node.operands))
    return None
