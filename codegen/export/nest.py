"""Writes a loop nest as a person would: a loop for each axis, a statement for what has a name."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Protocol, final

from primgraph.codegen.export.formulas import Formula, call, formula, kind_of, trivial
from primgraph.codegen.export.places import Place, bare, number
from primgraph.codegen.export.words import ATOM, CHOICE, SIGN, SUM, Text, index
from primgraph.codegen.native.access import row_major
from primgraph.codegen.native.items import Nest, Node, Operand
from primgraph.ir.types import DType, TensorType
from primgraph.source import Source

ELEMENTWISE = ("text", "call", "copy", "take")
_LEFT = ("put", "add")

# Expressions are no longer, in characters, and no deeper.
_LONGEST, _DEEPEST = 66, 4
# Longer sums are made of sums of so many, which lose fewer digits.
_BLOCK = 256


class Page(Protocol):
    """The function that a nest is written into."""

    loops: list[str]

    def line(self, text: str) -> None: ...
    def open(self, head: str) -> None: ...
    def close(self) -> None: ...
    def say(self, source: Source | None) -> None: ...
    def place(self, value: int) -> Place: ...
    def type(self, value: int) -> TensorType: ...
    def hint(self, value: int) -> str: ...
    def name(self, hint: str) -> str: ...
    def function(self, node: Node) -> str: ...


def grid(domain: Sequence[int], rows: Sequence[Sequence[int]]) -> list[int]:
    """The axes that are left as loops when those are one that are gone through as one.

    `rows` are strides of all that is read or written; a loop over several axes is that of the last.
    """
    kept: list[int] = []
    extent: list[int] = []
    for axis, n in enumerate(domain):
        if kept and all(r[kept[-1]] == r[axis] * n for r in rows):
            kept[-1], extent[-1] = axis, extent[-1] * n
        else:
            kept.append(axis)
            extent.append(n)
    return kept


def is_apart(strides: Sequence[int], extents: Sequence[int]) -> bool:
    """Whether no two of the elements at these strides are one."""
    reach = 0
    for stride, n in sorted((abs(s), n) for s, n in zip(strides, extents, strict=False)):
        if stride <= reach:
            return False
        reach += stride * (n - 1)
    return True


@final
class Loops:
    """The statements of one nest."""

    def __init__(self, page: Page, nest: Nest) -> None:
        self.page, self.nest = page, nest
        stored = row_major(nest.domain)
        rows: list[Sequence[int]] = [stored] if nest.stored else []
        for node in nest.nodes:
            rows += [o.strides for o in node.operands if o.strides]
            if node.strides:
                rows.append(node.strides)
        self.axes = grid(nest.domain, rows) if nest.domain else []
        begins = [0, *[a + 1 for a in self.axes[:-1]]]
        self.extents = [
            prod(nest.domain[b : a + 1]) for b, a in zip(begins, self.axes, strict=False)
        ]
        self.variables = list(page.loops[: len(self.axes)])
        self.stored = self.along(stored)
        self.uses: dict[int, int] = {}
        for node in nest.nodes:
            for o in node.operands:
                if o.value >= 0:
                    self.uses[o.value] = self.uses.get(o.value, 0) + 1
        self.spelled = [self.spelling(n) for n in nest.nodes]
        self.folded = self.foldable()
        self.texts: dict[int, Text] = {}
        self.totals: dict[int, str] = {}
        # The reductions whose loops are the innermost, by the number of loops around these.
        self.inner: dict[int, list[Node]] = {}
        # Those that have but one element for each of the result.
        self.direct: set[int] = set()
        for node in nest.nodes:
            if node.kind in (*ELEMENTWISE, *_LEFT):
                continue
            along = self.along(node.strides)
            around = len(along)
            while around and not along[around - 1]:
                around -= 1
            # Windows that overlap meet in some elements, and leave others out.
            whole = prod(self.extents[:around]) == page.type(node.value).size
            if not whole or not is_apart(along[:around], self.extents):
                continue
            if around == len(along):
                self.direct.add(node.value)
            else:
                self.inner.setdefault(around, []).append(node)

    def along(self, strides: Sequence[int]) -> list[int]:
        return [strides[a] for a in self.axes]

    def spelling(self, node: Node) -> Formula | None:
        if node.kind == "text":
            assert node.step is not None
            return formula(node.step)
        if node.kind == "call":
            return call(self.page.function(node), len(node.operands))
        return None

    def foldable(self) -> set[int]:
        """Values that may be a part of the expression that reads them, which is but one."""
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

    # Lines.

    def write(self) -> None:
        self.begin_others()
        if prod(self.nest.domain):
            self.level(0)

    def begin_others(self) -> None:
        """Let what is added up in memory begin there."""
        # Others begin where their loops do.
        others = {n.value for nodes in self.inner.values() for n in nodes} | self.direct
        if not prod(self.nest.domain):
            others = set()
        for node in self.nest.nodes:
            if node.kind in (*ELEMENTWISE, *_LEFT):
                continue
            if node.value in others:
                continue
            type, place = self.page.type(node.value), self.page.place(node.value)
            start = _start(node.kind, type.dtype)
            if place.is_number:
                self.page.line(self.assigned(place, start, type.dtype, constant=False))
            elif type.size:
                i = self.page.loops[0]
                self.page.open(f"for (long {i} = 0; {i} < {type.size}; {i}++)")
                self.page.line(f"{place.element(i)} = {start};")
                self.page.close()

    def level(self, depth: int) -> None:
        """The loops within `depth` of them."""
        page, nodes = self.page, self.inner.get(depth, ())
        for node in nodes:
            self.begin(node)
        if depth == len(self.axes):
            self.statements()
        elif depth + 1 == len(self.axes) and self.in_blocks(depth):
            self.blocks(depth)
        else:
            i, n = self.variables[depth], self.extents[depth]
            page.open(f"for (long {i} = 0; {i} < {n}; {i}++)")
            self.level(depth + 1)
            page.close()
        for node in nodes:
            self.end(node, depth)

    def in_blocks(self, depth: int) -> bool:
        sums = [n for at in range(depth + 1) for n in self.inner.get(at, ()) if n.kind == "sum"]
        floats = [n for n in sums if self.page.type(n.value).dtype.kind == "f"]
        return bool(floats) and self.extents[depth] > 2 * _BLOCK

    def blocks(self, depth: int) -> None:
        """The innermost loop in blocks, each with a sum of its own."""
        page, i, n = self.page, self.variables[depth], self.extents[depth]
        first, last = page.name("first"), page.name("last")
        sums = [m for at in range(depth + 1) for m in self.inner.get(at, ()) if m.kind == "sum"]
        page.open(f"for (long {first} = 0; {first} < {n}; {first} += {_BLOCK})")
        page.line(f"const long {last} = {first} < {n - _BLOCK} ? {first} + {_BLOCK} : {n};")
        whole = dict(self.totals)
        for node in sums:
            dtype = self.page.type(node.value).dtype
            part = self.totals[node.value] = page.name("part")
            page.line(f"{kind_of(dtype)} {part} = {_start('sum', dtype)};")
        page.open(f"for (long {i} = {first}; {i} < {last}; {i}++)")
        self.level(depth + 1)
        page.close()
        for node in sums:
            page.line(f"{whole[node.value]} += {self.totals[node.value]};")
        self.totals = whole
        page.close()

    def begin(self, node: Node) -> None:
        type, place = self.page.type(node.value), self.page.place(node.value)
        start = _start(node.kind, type.dtype)
        if place.is_number and not place.is_declared:
            self.totals[node.value] = place.text
            self.page.line(self.assigned(place, start, type.dtype, constant=False))
        else:
            hint = self.page.hint(node.value)
            name = self.page.name(f"{hint}_{node.kind}" if hint else node.kind)
            self.totals[node.value] = name
            self.page.line(f"{kind_of(type.dtype)} {name} = {start};")

    def end(self, node: Node, depth: int) -> None:
        place, name = self.page.place(node.value), self.totals[node.value]
        if place.text != name:
            at = index(0, self.variables[:depth], self.along(node.strides)[:depth])
            self.page.line(f"{place.element(at)} = {name};")

    def assigned(self, place: Place, text: str, dtype: DType, *, constant: bool) -> str:
        """A statement that gives a number, with its declaration if there is none yet."""
        if place.is_declared:
            return f"{place.text} = {text};"
        place.is_declared = True
        return f"{'const ' if constant else ''}{kind_of(dtype)} {place.text} = {text};"

    # What is done for each element.

    def statements(self) -> None:
        for node, spelled in zip(self.nest.nodes, self.spelled, strict=True):
            if node.kind in ELEMENTWISE:
                self.compute(node, spelled)
            elif node.kind == "put":
                self.put(node)
            elif node.kind == "add":
                self.add(node)
            else:
                self.reduce(node)

    def put(self, node: Node) -> None:
        self.tell(node)
        at = index(node.offset, self.variables, self.along(node.strides))
        place, text = self.page.place(node.value), self.argument(node.operands[0]).code
        dtype = self.page.type(node.value).dtype
        text = number(dtype.type(0), dtype) if text == "0" else text
        if place.is_number:
            self.page.line(self.assigned(place, text, dtype, constant=False))
        else:
            self.page.line(f"{place.element(at)} = {text};")

    def add(self, node: Node) -> None:
        """Add an element at a place that others tell."""
        self.tell(node)
        target = self.reached(node, self.page.place(node.value), node.offset, node.strides)
        dtype = self.page.type(node.value).dtype
        for line in combined("sum", target, self.argument(node.operands[0]), dtype):
            self.page.line(line)

    def reached(self, node: Node, place: Place, offset: int, strides: Sequence[int]) -> str:
        """The element at a place that the operands behind the first one tell."""
        found = [
            (f"pg_place({self.argument(o).code}, {n}, &bad)", stride)
            for o, (n, stride) in zip(node.operands[1:], node.reach, strict=True)
        ]
        if place.is_number:
            for text, _ in found:
                self.page.line(f"(void){text};")
            return place.text
        names = [*self.variables, *(text for text, _ in found)]
        return place.element(index(offset, names, [*self.along(strides), *(s for _, s in found)]))

    def tell(self, node: Node) -> None:
        if node.step is not None:
            self.page.say(node.step.source)

    def compute(self, node: Node, spelled: Formula | None) -> None:
        page, value = self.page, node.value
        if node.kind == "take":
            first = node.operands[0]
            text = Text(self.reached(node, page.place(first.root), first.offset, first.strides))
        else:
            args = [self.argument(o) for o in node.operands]
            known = None if node.step is None else trivial(node.step, args)
            text = known or (args[0] if spelled is None else spelled.filled(args))
        stored, uses = value in self.nest.stored, self.uses.get(value, 0)
        if not stored and not uses:
            return
        if value in self.folded and self.is_short(node, text):
            self.texts[value] = text
            return
        self.tell(node)
        dtype = page.type(value).dtype
        code = text.code
        cast = f"({kind_of(dtype)})"
        small = dtype.kind in "iu" and dtype.itemsize < 4 and text.rank < ATOM
        if small and not code.startswith(cast):
            # Small integers are computed as larger ones.
            code = f"{cast}{text.within(ATOM)}"
        place = page.place(value) if stored else None
        if place is not None and (place.is_number or not uses):
            if place.is_number:
                page.line(self.assigned(place, code, dtype, constant=True))
            else:
                page.line(f"{place.element(index(0, self.variables, self.stored))} = {code};")
            self.texts[value] = Text(place.text)
            return
        if text.rank == ATOM and code.isidentifier() and place is None:
            self.texts[value] = text
            return
        hint = page.hint(value)
        name = page.name(f"{hint}_{self.variables[-1]}" if hint and place is not None else hint)
        page.line(f"const {kind_of(dtype)} {name} = {code};")
        if place is not None:
            page.line(f"{place.element(index(0, self.variables, self.stored))} = {name};")
        self.texts[value] = Text(name)

    def is_short(self, node: Node, text: Text) -> bool:
        return len(text.code) <= _LONGEST and text.code.count("(") < 2 * _DEEPEST

    def argument(self, o: Operand) -> Text:
        if o.text and o.strides:
            # An index, as a number of that type.
            at = index(0, self.variables, self.along(o.strides))
            return Text(f"{o.text}{at if at.isidentifier() else f'({at})'}", SIGN)
        if o.text:
            text = bare(o.text)
            return Text(text, ATOM if text == o.text else SIGN)
        if o.value >= 0:
            return self.texts[o.value]
        place = self.page.place(o.root)
        return Text(place.element(index(o.offset, self.variables, self.along(o.strides))))

    def reduce(self, node: Node) -> None:
        self.tell(node)
        page, dtype = self.page, self.page.type(node.value).dtype
        text = self.argument(node.operands[0])
        place = page.place(node.value)
        at = index(0, self.variables, self.along(node.strides))
        if node.value in self.direct:
            if place.is_number:
                page.line(self.assigned(place, text.code, dtype, constant=True))
            else:
                page.line(f"{place.element(at)} = {text.code};")
            return
        target = self.totals.get(node.value) or place.element(at)
        for line in combined(node.kind, target, text, dtype):
            page.line(line)


def combined(kind: str, target: str, text: Text, dtype: DType) -> list[str]:
    """Statements that take an element into a sum, product or extremum."""
    if dtype.kind == "b":
        joined = "&&" if kind in ("min", "prod") else "||"
        return [f"{target} = {target} {joined} {text.within(ATOM)};"]
    if kind in ("sum", "prod"):
        sign = "+" if kind == "sum" else "*"
        if dtype.kind == "f":
            return [f"{target} {sign}= {text.within(SUM if kind == 'sum' else CHOICE)};"]
        # Whole numbers wrap round, as those with a sign may not.
        wide, own = f"uint{8 * max(dtype.itemsize, 4)}_t", kind_of(dtype)
        return [f"{target} = ({own})(({wide}){target} {sign} ({wide}){text.within(ATOM)});"]
    sign = ">" if kind == "max" else "<"
    x = text.within(ATOM)
    # A NaN wins, and stays.
    test = f"{x} {sign} {target}" + (f" || {x} != {x}" if dtype.kind == "f" else "")
    return [f"if ({test}) {{", f"    {target} = {text.code};", "}"]


def _start(kind: str, dtype: DType) -> str:
    """What a reduction begins with."""
    if kind in ("sum", "prod") or dtype.kind == "b":
        return number(dtype.type(kind in ("prod", "min")), dtype)
    if dtype.kind == "f":
        return "-INFINITY" if kind == "max" else "INFINITY"
    bits = 8 * dtype.itemsize
    if dtype.kind == "u":
        return "0" if kind == "max" else f"UINT{bits}_MAX"
    return f"INT{bits}_{'MIN' if kind == 'max' else 'MAX'}"
