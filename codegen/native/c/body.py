"""Writes a loop nest in C.

The innermost loop runs in strips of elements that stay in the nearest cache, where something is
done to runs of them: functions of the runtime, which are vectorised there, and sums, whose order
is fixed: each strip's own, then strip by strip. Between two such steps a strip is one loop of
arithmetic, which compilers vectorise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from math import prod
from typing import final

from primgraph.codegen.native.c.control import Writer
from primgraph.codegen.native.c.extents import extent, is_zero
from primgraph.codegen.native.c.reductions import accumulated, begun, reduced
from primgraph.codegen.native.c.spellings import PRODUCTS, moved_type, spelling, type_name
from primgraph.codegen.native.c.strip_mining import Strips
from primgraph.codegen.native.c.vector_calls import call
from primgraph.codegen.native.c.walk import IDENTITY, Walk
from primgraph.codegen.native.items import PLAIN, Nest, Node, Operand
from primgraph.codegen.native.lower.loop_fission import apart

# What is left at a place of its own for each element of a loop, and read nowhere else in it.
_APART = ("text", "copy", "call", "spread", "put", *IDENTITY)


@final
class Body:
    """The statements of one nest. `writer` names the memory of a value."""

    def __init__(self, nest: Nest, writer: Writer, added: Set[int]) -> None:
        self.walk = Walk(nest)
        self.nest, self.added = self.walk.nest, added
        self.types, self.place, self.room = writer.type, writer.place, writer.room
        self.extents = self.walk.extents
        self.strips = Strips(self.walk, self.types)
        self.lines: list[str] = []

    def text(self) -> list[str]:
        for n in self.nest.reached():
            some = extent(prod(self.nest.domain))
            self.lines.append(f"if ({extent(n)} == 0 && {some} != 0) return 1;")
        self.fill_results()
        begin = len(self.lines)
        self.declare()
        self.loops()
        # What is found wrong with an element ends the whole, behind all loops.
        if any("&bad" in line for line in self.lines[begin:]):
            self.lines.insert(begin, "int bad = 0;")
            self.lines.append("if (bad) return 1;")
        return self.lines

    def fill_results(self) -> None:
        for node in self.nest.nodes:
            if node.kind in IDENTITY and node.value not in self.added:
                v = node.value
                self.lines.append(begun(node.kind, self.types(v), self.place(v)))

    def declare(self) -> None:
        """Name what is read and what is written, and make room for strips."""
        roots = dict.fromkeys(o.root for n in self.nest.nodes for o in n.operands if o.root >= 0)
        placed = [n.value for n in self.nest.nodes if n.kind in ("put", "add", *IDENTITY)]
        for v in roots:
            kind = moved_type(self.types(v).dtype)
            self.lines.append(f"const {kind} *restrict r{v} = (const {kind} *){self.place(v)};")
        for v in dict.fromkeys([*self.nest.stored, *placed]):
            kind = moved_type(self.types(v).dtype)
            self.lines.append(f"{kind} *restrict w{v} = ({kind} *){self.place(v)};")
        for node in self.nest.nodes:
            for names, bounds in zip(_names_of_bounds(node), node.within, strict=True):
                low, count = names
                self.lines.append(
                    f"long {low} = {extent(bounds[0])}, {count} = {extent(bounds[1])};"
                )
                # Compilers that know bounds cut loops up by them, and leave out vectors.
                self.lines.append(f'__asm__("" : "+r"({low}), "+r"({count}));')
        self.lines += self.strips.declared(self.room)

    def loops(self) -> None:
        outer = self.extents[:-1]
        for depth, count in enumerate(outer):
            pad = "    " * depth
            self.lines.append(
                f"{pad}for (long i{depth} = 0; i{depth} < {extent(count)}; i{depth}++) {{"
            )
        pad = "    " * len(outer)
        if not self.extents:
            self._strip(pad, "1")
        else:
            n = extent(self.extents[-1])
            if self.walk.start:
                strip = self.walk.strip
                self.lines.append(f"{pad}for (long s = 0; s < {n}; s += {strip}) {{")
                self.lines.append(f"{pad}    const long n = {n} - s < {strip} ? {n} - s : {strip};")
                self._strip(pad + "    ", "n")
                self.lines.append(f"{pad}}}")
            else:
                self._strip(pad, n)
        for depth in reversed(range(len(outer))):
            self.lines.append(f"{'    ' * depth}}}")

    # One strip.

    def _strip(self, pad: str, count: str) -> None:
        levels: dict[int, list[Node]] = {}
        for node, at in zip(self.nest.nodes, self.walk.levels, strict=True):
            levels.setdefault(at, []).append(node)
        for level in range(max(levels, default=-1) + 1):
            nodes = levels.get(level, [])
            for node in nodes:
                if node.kind == "call":
                    self._say(pad, call(self.strips, node, count))
                elif node.kind == "spread" and node.value not in self.strips.before:
                    self._say(pad, self.strips.spread(node, count))
            self._loop(pad, nodes, count)
            for node in nodes:
                if node.kind in IDENTITY and self.walk.is_run(node):
                    self._say(pad, reduced(self.strips, node, count))

    def _say(self, pad: str, lines: Iterable[str]) -> None:
        self.lines += [f"{pad}{line}" for line in lines]

    def _loop(self, pad: str, nodes: Sequence[Node], count: str) -> None:
        here = {n.value for n in nodes if n.kind in PLAIN and n.kind != "call"}
        inside = [line for node in nodes for line in self._each(node, here)]
        if not inside:
            return
        if count == "1":
            self._say(pad, ["{", "    const long j = 0; (void)j;"])
        else:
            if all(node.kind in _APART for node in nodes) and not any("&bad" in x for x in inside):
                self.lines.append("#pragma GCC ivdep")
            self.lines.append(f"{pad}for (long j = 0; j < {count}; j++) {{")
        self._say(pad + "    ", inside)
        self.lines.append(f"{pad}}}")

    # One element.

    def _each(self, node: Node, here: Set[int]) -> Iterator[str]:
        """What the loop over a strip does for a node."""
        strips = self.strips
        if node.kind == "call":
            if node.value in self.nest.stored and node.value not in strips.direct:
                yield strips.store(node.value, f"{strips.buffer[node.value]}[j]")
        elif node.kind in IDENTITY:
            # What is along the strip comes behind it.
            if not self.walk.is_run(node):
                yield accumulated(strips, node, here)
        elif node.kind == "put":
            place = self.walk.index(node.offset, node.strides)
            yield f"w{node.value}[{place}] = {strips.argument(node.operands[0], here)};"
        elif node.kind == "add":
            yield self._add(node, here)
        elif node.kind != "spread":
            yield from self._compute(node, here)

    def _compute(self, node: Node, here: Set[int]) -> Iterator[str]:
        """An element as a variable, which is left wherever it is needed behind the loop."""
        value, strips = node.value, self.strips
        if node.kind == "take":
            first, *indices = node.operands
            place = self._place(node, indices, first.offset, first.strides, here)
            yield f"const long at{value} = {place};"
            text = f"r{first.root}[at{value}]"
        elif node.kind == "inner":
            text = self._inner(node)
        else:
            args = [strips.argument(o, here) for o in node.operands]
            text = args[0] if node.kind == "copy" else _spelled(node, args)
        yield f"const {moved_type(self.types(value).dtype)} v{value} = {text};"
        if value in self.walk.crossing:
            yield f"{strips.buffer[value]}[j] = v{value};"
        if value in self.nest.stored:
            yield strips.store(value, f"v{value}")

    def _inner(self, node: Node) -> str:
        """An element of a part, or a number where there is none."""
        first, *indices = node.operands
        tests = [
            f"(unsigned long)({self.strips.element(o)} - {low}) < (unsigned long){count}"
            for o, (low, count) in zip(indices, _names_of_bounds(node), strict=True)
        ]
        there = " & ".join(f"({test})" for test in tests) or "1"
        return f"{there} ? {self.strips.element(first)} : {node.name}"

    def _add(self, node: Node, here: Set[int]) -> str:
        """An element that is added where indices tell."""
        first, *indices = node.operands
        place = self._place(node, indices, 0, node.strides, here)
        sign = "|=" if self.types(node.value).dtype.kind == "b" else "+="
        return f"w{node.value}[{place}] {sign} {self.strips.argument(first, here)};"

    def _place(
        self,
        node: Node,
        indices: Sequence[Operand],
        offset: int,
        strides: Sequence[int],
        here: Set[int],
    ) -> str:
        """The place that indices tell, in memory that else is gone through with `strides`."""
        terms = []
        for o, (n, stride) in zip(indices, node.reach, strict=True):
            place = f"pg_place((int64_t){self.strips.argument(o, here)}, {extent(n)}, &bad)"
            terms.append(place if stride == 1 else f"{place} * {extent(stride)}")
        base = self.walk.index(offset, strides)
        return " + ".join([*terms, *([] if base == "0" else [base])])


def _names_of_bounds(node: Node) -> list[tuple[str, str]]:
    """What the first index, and the number of them, is called along each axis."""
    return [(f"l{node.value}_{k}", f"c{node.value}_{k}") for k in range(len(node.within))]


def _spelled(node: Node, args: Sequence[str]) -> str:
    """The expression that a step is."""
    assert node.step is not None
    spelled = spelling(node.step)
    assert spelled is not None
    text = spelled(args, node.step)
    assert text is not None
    dtype = node.step.results[0].dtype
    if dtype.kind == "f" and node.step.op in PRODUCTS and "*" in text:
        return f"pg_rounded_{type_name(dtype)}({text})"
    return text


def statements(nest: Nest, writer: Writer, added: Set[int]) -> Iterator[str]:
    """The lines of a nest; nothing where there are no indices.

    Reductions that are `added` go on from what is in their memory.
    """
    if is_zero(prod(nest.domain)):
        body = Body(nest, writer, added)
        body.fill_results()
        yield from body.lines
        return
    nests = apart(nest)
    for each in nests:
        lines = Body(each, writer, added).text()
        yield from lines if len(nests) == 1 else ["{", *lines, "}"]
