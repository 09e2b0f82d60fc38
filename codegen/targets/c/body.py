"""C code for a loop nest.

The innermost loop runs over strips of elements that fit into the nearest cache, if runs of them go
through runtime functions or reductions. Runtime functions are vectorised, and sums have a fixed
order: within each strip, then strip by strip. Between these, a strip is one loop of arithmetic,
which compilers vectorise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from math import prod
from typing import final

from primgraph.codegen.ir.c_extents import extent, is_zero
from primgraph.codegen.ir.statements import PLAIN, Nest, Node, Operand
from primgraph.codegen.lower.nests.loop_fission import split_nest
from primgraph.codegen.ops.c.spellings import (
    PRODUCTS,
    may_fail,
    moved_type,
    template,
    type_name,
)
from primgraph.codegen.targets.c.control import Places
from primgraph.codegen.targets.c.lines import indented, lines_of
from primgraph.codegen.targets.c.parts import functions_in
from primgraph.codegen.targets.c.reductions import (
    are_joint_sums,
    initial_statement,
    strip_accumulation,
    write_joint_sums,
    write_reduction,
)
from primgraph.codegen.targets.c.strip_mining import Strips, call
from primgraph.codegen.targets.c.walk import IDENTITY, Walk, axes_of_inner

# Node kinds whose result is written once per element, and not read again in the loop.
_APART = ("text", "copy", "call", "spread", "put", "parts", *IDENTITY)


@final
class Elements:
    """Generator of the statements for one element, in the loop over a strip.

    `low` is the first index of the piece of the innermost loop that is being written.
    """

    def __init__(self, walk: Walk, strips: Strips) -> None:
        self.walk, self.strips, self.use = walk, strips, strips.use
        self.low = 0

    def statements(self, node: Node, here: Set[int]) -> Iterator[str]:
        """Yield the statements for a node in the loop over a strip."""
        strips = self.strips
        if node.kind == "call":
            if node.value in self.walk.nest.stored and node.value not in strips.direct:
                yield strips.store(node.value, f"{strips.buffer[node.value]}[j]")
        elif node.kind in IDENTITY:
            # Reductions along the strip follow the loop.
            if not self.walk.is_run(node):
                yield strip_accumulation(strips, node, here)
        elif node.kind == "put":
            place = self.walk.index(node.offset, node.strides)
            yield f"w{node.value}[{place}] = {strips.argument(node.operands[0], here)};"
        elif node.kind == "add":
            yield self._add(node, here)
        elif node.kind != "spread":
            yield from self._compute(node, here)

    def _compute(self, node: Node, here: Set[int]) -> Iterator[str]:
        """Yield the computation of an element as a variable, and its stores."""
        value, strips = node.value, self.strips
        if node.kind == "take":
            first, *indices = node.operands
            place = self._place(node, indices, first.offset, first.strides, here)
            yield f"const long at{value} = {place};"
            text = f"r{first.root}[at{value}]"
        elif node.kind == "inner":
            text = self._inner(node)
        elif node.kind == "parts":
            text = self._part(node)
        else:
            args = [strips.argument(o, here) for o in node.operands]
            text = args[0] if node.kind == "copy" else self._step_expression(node, args)
        yield f"const {moved_type(self.strips.types(value).dtype)} v{value} = {text};"
        if value in self.walk.crossing:
            yield f"{strips.buffer[value]}[j] = v{value};"
        if value in self.walk.nest.stored:
            yield strips.store(value, f"v{value}")

    def _inner(self, node: Node) -> str:
        """Return an element of an inner part, or a constant outside the part."""
        first, *indices = node.operands
        tests = []
        rows = zip(indices, node.within, _names_of_bounds(node), axes_of_inner(node), strict=True)
        for o, (begin, size), (low, count), axis in rows:
            known = type(begin) is int and type(size) is int
            if not (known and self.walk.pieces) or axis != self.walk.order[-1]:
                index = self.strips.element(o)
                tests.append(f"(unsigned long)({index} - {low}) < (unsigned long){count}")
            elif not begin <= self.low < begin + size:
                return node.name
        there = " & ".join(f"({test})" for test in tests) or "1"
        return f"{there} ? {self.strips.element(first)} : {node.name}"

    def _part(self, node: Node) -> str:
        """Return an element of the part that a piece of the loop reads."""
        walk = self.walk
        if node.offset != walk.order[-1]:
            return f"p{node.value}[{walk.inner_index(node.operands[0].strides)}]"
        (o,) = (
            o
            for o, (first, count) in zip(node.operands, node.within, strict=True)
            if first <= self.low < first + count
        )
        return self.strips.element(o)

    def _add(self, node: Node, here: Set[int]) -> str:
        """Return the statement that adds an element at indexed positions."""
        first, *indices = node.operands
        place = self._place(node, indices, 0, node.strides, here)
        sign = "|=" if self.strips.types(node.value).dtype.kind == "b" else "+="
        return f"w{node.value}[{place}] {sign} {self.strips.argument(first, here)};"

    def _place(
        self,
        node: Node,
        indices: Sequence[Operand],
        offset: int,
        strides: Sequence[int],
        here: Set[int],
    ) -> str:
        """Return the index expression of an access by index arrays, plus `strides`."""
        terms = []
        for o, (n, stride) in zip(indices, node.reach, strict=True):
            index = f"(int64_t){self.strips.argument(o, here)}"
            place = f"{self.use('pg_place')}({index}, {extent(n)}, &bad)"
            terms.append(place if stride == 1 else f"{place} * {extent(stride)}")
        base = self.walk.index(offset, strides)
        return " + ".join([*terms, *([] if base == "0" else [base])])

    def _step_expression(self, node: Node, args: Sequence[str]) -> str:
        """Return the C expression of a step."""
        if node.step is None:
            # A prefix of C.
            return f"{node.name}({args[0]})"
        if node.name:
            return f"{self.use(node.name)}({args[0]})"
        text = template(node.step)
        assert text is not None
        dtype = node.step.results[0].dtype
        if dtype.kind == "f" and node.step.op in PRODUCTS and "*" in text:
            text = f"pg_rounded_{type_name(dtype)}({text})"
        for function in functions_in(text):
            self.use(function)
        for k, arg in enumerate(args):
            text = text.replace(f"@{k}@", arg)
        return text


@final
class Body:
    """Generator of the statements of one nest. `writer` names the memory of values."""

    def __init__(self, nest: Nest, writer: Places, added: Set[int]) -> None:
        self.walk = Walk(nest)
        self.nest, self.added = self.walk.nest, added
        self.types, self.place, self.room = writer.type, writer.place, writer.room
        self.is_traced = writer.is_traced
        self.extents = self.walk.extents
        self.use = writer.use
        self.strips = Strips(self.walk, self.types, self.use)
        self.elements = Elements(self.walk, self.strips)
        self.lines: list[str] = []

    def text(self) -> list[str]:
        for n in self.nest.indexed_sizes():
            some = extent(prod(self.nest.domain))
            self.lines.append(f"if ({extent(n)} == 0 && {some} != 0) return 1;")
        self.fill_results()
        begin = len(self.lines)
        self.declare()
        self.loops()
        # An error of an element is returned after all loops.
        if any(node.reach or may_fail(node.step) for node in self.nest.nodes):
            self.lines.insert(begin, "int bad = 0;")
            self.lines.append("if (bad) return 1;")
        return self.lines

    def fill_results(self) -> None:
        for node in self.nest.nodes:
            if node.kind in IDENTITY and not self.nest.added and node.value not in self.added:
                v = node.value
                self.lines.append(initial_statement(node.kind, self.types(v), self.place(v)))

    def declare(self) -> None:
        """Declare pointers to operands and results, bounds, and buffers for strips."""
        roots = dict.fromkeys(o.root for n in self.nest.nodes for o in n.operands if o.root >= 0)
        placed = [n.value for n in self.nest.nodes if n.kind in ("put", "add", *IDENTITY)]
        for v in roots:
            kind = moved_type(self.types(v).dtype)
            self.lines.append(f"const {kind} *restrict r{v} = (const {kind} *){self.place(v)};")
        for v in dict.fromkeys([*self.nest.stored, *placed]):
            kind = moved_type(self.types(v).dtype)
            self.lines.append(f"{kind} *restrict w{v} = ({kind} *){self.place(v)};")
        for node in self.nest.nodes:
            if node.kind == "parts":
                continue
            for names, bounds in zip(_names_of_bounds(node), node.within, strict=True):
                low, count = names
                self.lines.append(
                    f"long {low} = {extent(bounds[0])}, {count} = {extent(bounds[1])};"
                )
                # Compilers that know the bounds split loops at them, and do not vectorise.
                self.lines.append(f'__asm__("" : "+r"({low}), "+r"({count}));')
        self.buffers = list(self.strips.buffer_declarations(self.room))
        if not self.walk.in_octets:
            self.lines += self.buffers

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
            self._choose_parts(pad)
            if self.walk.first:
                self._octets(pad, n) if self.walk.in_octets else self._strips(
                    pad, self.walk.first, n
                )
            elif self.walk.pieces:
                self._pieces(pad)
            elif self.walk.start:
                self._strips(pad, "0", n)
            else:
                self._strip(pad, n)
        for depth in reversed(range(len(outer))):
            self.lines.append(f"{'    ' * depth}}}")

    def _choose_parts(self, pad: str) -> None:
        """Declare pointers to the parts that are read along outer loops."""
        walk = self.walk
        for node in self.nest.nodes:
            if node.kind != "parts" or node.offset == walk.order[-1]:
                continue
            v, kind = node.value, moved_type(self.types(node.value).dtype)
            index, text = f"i{walk.order.index(node.offset)}", ""
            for o, (first, count) in zip(node.operands, node.within, strict=True):
                place = f"r{o.root} + {walk.outer_base(o.offset, o.strides)}"
                text += (
                    place if o is node.operands[-1] else f"{index} < {first + count} ? {place} : "
                )
            self.lines.append(f"{pad}const {kind} *const p{v} = {text};")

    def _pieces(self, pad: str) -> None:
        """Write the strips of each piece of the innermost loop."""
        for low, high in self.walk.pieces:
            self.elements.low = low
            if high - low <= self.walk.strip or not self.walk.in_strips:
                self.lines.append(f"{pad}{{")
                self.lines.append(f"{pad}    const long s = {low}; (void)s;")
                self._strip(pad + "    ", str(high - low))
                self.lines.append(f"{pad}}}")
            else:
                self._strips(pad, str(low), str(high))

    def _strips(self, pad: str, low: str, high: str) -> None:
        """Write a loop over the strips from one index to another."""
        strip = self.walk.strip
        self.lines.append(f"{pad}for (long s = {low}; s < {high}; s += {strip}) {{")
        self.lines.append(f"{pad}    const long n = {high} - s < {strip} ? {high} - s : {strip};")
        self._strip(pad + "    ", "n")
        self.lines.append(f"{pad}}}")

    def _octets(self, pad: str, count: str) -> None:
        """Write strips of eight elements, whose sums stay in registers up to the end of a row."""
        nodes = self.nest.nodes
        runs = [node for node in nodes if node.kind == "sum" and self.walk.is_run(node)]
        name = type_name(self.types(runs[0].value).dtype)
        sums = [(f"s{node.value}", self.strips.buffer[node.operands[0].value]) for node in runs]
        self._say(pad, [
            f"pg_octet_{name} {', '.join([f'{s} = {{0}}' for s, _ in sums])};",
            f"long s = {self.walk.first};",
            f"for (; s + 8 <= {count}; s += 8) {{",
            *[f"    {line}" for line in self.buffers],
        ])  # fmt: skip
        self._loop(pad + "    ", nodes, "8")
        self._say(pad, [
            *[f"    {s} += *(const pg_octet_{name} *){buffer};" for s, buffer in sums],
            "}",
            *self.buffers,
        ])  # fmt: skip
        size = self.extents[-1]
        if type(size) is not int or size % 8:
            self._loop(pad, nodes, f"{count} - s")
        for node, (s, buffer) in zip(runs, sums, strict=True):
            target = f"w{node.value}[{self.walk.base(0, node.strides)}]"
            total = self.use(f"pg_total_{name}")
            self.lines.append(f"{pad}{target} += {total}({s}, {buffer}, {count} - s);")

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
                    self._say(pad, self.strips.fill_strip(node, count))
            self._loop(pad, nodes, count)
            runs = [node for node in nodes if node.kind in IDENTITY and self.walk.is_run(node)]
            if count != "1" and are_joint_sums(self.strips, runs):
                self._say(pad, write_joint_sums(self.strips, runs, count))
                runs = []
            for node in runs:
                self._say(pad, write_reduction(self.strips, node, count))

    def _say(self, pad: str, lines: Iterable[str]) -> None:
        self.lines += indented(pad, lines)

    def _loop(self, pad: str, nodes: Sequence[Node], count: str) -> None:
        here = {n.value for n in nodes if n.kind in PLAIN and n.kind != "call"}
        each = self.elements.statements
        if self.is_traced:
            inside = [x for node in nodes for x in lines_of(node.step, each(node, here))]
        else:
            inside = [x for node in nodes for x in each(node, here)]
        if not inside:
            return
        if count == "1":
            self._say(pad, ["{", "    const long j = 0; (void)j;"])
        else:
            if all(node.kind in _APART and not may_fail(node.step) for node in nodes):
                self.lines.append("#pragma GCC ivdep")
            self.lines.append(f"{pad}for (long j = 0; j < {count}; j++) {{")
        self._say(pad + "    ", inside)
        self.lines.append(f"{pad}}}")


def _names_of_bounds(node: Node) -> list[tuple[str, str]]:
    """Return the variable names of the first index and the count along each axis."""
    return [(f"l{node.value}_{k}", f"c{node.value}_{k}") for k in range(len(node.within))]


def statements(nest: Nest, writer: Places, added: Set[int]) -> Iterator[str]:
    """Yield the lines of a nest; nothing for an empty domain.

    Reductions in `added` continue from the contents of their memory.
    """
    if is_zero(prod(nest.domain)):
        body = Body(nest, writer, added)
        body.fill_results()
        yield from body.lines
        return
    nests = split_nest(nest)
    for each in nests:
        lines = Body(each, writer, added).text()
        yield from lines if len(nests) == 1 else ["{", *lines, "}"]
