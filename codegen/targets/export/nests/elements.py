"""C statements of a nest for each element: one per named or long expression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from primgraph.codegen.ir.access import row_major
from primgraph.codegen.ir.extents import ATOM, UNARY, Text
from primgraph.codegen.ir.statements import Nest, Node, Operand
from primgraph.codegen.targets.export.nests.formulas import (
    Formula,
    call,
    formula,
    function_of,
    kind_of,
    trivial,
)
from primgraph.codegen.targets.export.nests.grid import Grid
from primgraph.codegen.targets.export.nests.reductions import KINDS, Reductions, accumulation_lines
from primgraph.codegen.targets.export.page import Page
from primgraph.codegen.targets.export.places import Place, assignment, bare, number

# Limits of an expression: characters, and half the number of parentheses.
_LONGEST, _DEEPEST = 66, 4


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
        if place.is_number:
            self.page.line(assignment(place, text, dtype, constant=False))
        else:
            self.page.line(f"{place.element(at)} = {text};")

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
            self.page.write_source_comment(node.step.source)

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
        if value in self.folded and self.is_short(node, text):
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
            if place.is_number:
                page.line(assignment(place, line, dtype, constant=True))
            else:
                page.line(f"{place.element(self.index(0, self.stored))} = {line};")
            self.texts[value] = Text(place.text)
            return
        if text.rank == ATOM and line.isidentifier() and place is None:
            self.texts[value] = text
            return
        hint = page.hint(value)
        name = page.name(
            f"{hint}_{self.grid.variables[-1]}" if hint and place is not None else hint
        )
        page.line(f"const {kind_of(dtype)} {name} = {line};")
        if place is not None:
            page.line(f"{place.element(self.index(0, self.stored))} = {name};")
        self.texts[value] = Text(name)

    def filled(self, spelled: Formula, args: Sequence[Text]) -> Text:
        """Return a formula of these operands."""
        for function in spelled.functions:
            self.page.use(function)
        return spelled.fill_operands(args)

    def index(self, offset: int, strides: Sequence[int]) -> str:
        """Return the index expression of an element."""
        return self.page.index(offset, self.grid.variables, self.grid.loop_strides(strides))

    def is_short(self, node: Node, text: Text) -> bool:
        return len(text.code) <= _LONGEST and text.code.count("(") < 2 * _DEEPEST

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
