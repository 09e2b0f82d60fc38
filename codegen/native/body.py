"""Writes a loop nest in C.

The innermost loop runs in strips of elements that stay in the nearest cache, where something is
done to runs of them: functions of the runtime, which are vectorised there, and sums, whose order
is fixed: each strip's own, then strip by strip. Between two such steps a strip is one loop of
arithmetic, which compilers vectorise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from math import prod
from typing import final

from primgraph.codegen.native.control import Writer
from primgraph.codegen.native.extents import extent, is_few, is_zero
from primgraph.codegen.native.items import Nest, Node, Operand
from primgraph.codegen.native.spellings import moved_type, spelling, type_name
from primgraph.codegen.native.walk import IDENTITY, STRIP, Walk
from primgraph.ir.types import TensorType


@final
class Body:
    """The statements of one nest. `writer` names the memory of a value."""

    def __init__(self, nest: Nest, writer: Writer, added: Set[int]) -> None:
        self.walk = Walk(nest)
        self.nest, self.added = self.walk.nest, added
        self.types, self.place, self.room = writer.type, writer.place, writer.room
        self.extents = self.walk.extents
        self.lines: list[str] = []

    def text(self) -> list[str]:
        self.fill_results()
        begin = len(self.lines)
        self.loops()
        # What is found wrong with an element ends the whole, behind all loops.
        if any("&bad" in line for line in self.lines[begin:]):
            self.lines.insert(begin, "int bad = 0;")
            self.lines.append("if (bad) return 1;")
        return self.lines

    def fill_results(self) -> None:
        for node in self.nest.nodes:
            if node.kind not in IDENTITY or node.value in self.added:
                continue
            type = self.types(node.value)
            start = first_of(node.kind, type)
            kind = moved_type(type.dtype)
            place = f"(({kind} *){self.place(node.value)})"
            if type.size == 1:
                self.lines.append(f"{place}[0] = {start};")
            else:
                size = extent(type.size)
                self.lines.append(f"for (long i = 0; i < {size}; i++) {place}[i] = {start};")

    def loops(self) -> None:
        roots: dict[int, None] = {}
        for node in self.nest.nodes:
            for o in node.operands:
                if o.root >= 0:
                    roots[o.root] = None
        placed = [n.value for n in self.nest.nodes if n.kind in ("put", "add", *IDENTITY)]
        written = list(dict.fromkeys([*self.nest.stored, *placed]))
        for v in roots:
            kind = moved_type(self.types(v).dtype)
            self.lines.append(f"const {kind} *restrict r{v} = (const {kind} *){self.place(v)};")
        for v in written:
            kind = moved_type(self.types(v).dtype)
            self.lines.append(f"{kind} *restrict w{v} = ({kind} *){self.place(v)};")
        self._buffers()
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

    def _buffers(self) -> None:
        """Room for a strip of each value that crosses from one loop to another.

        What a function makes, and is left in memory in a row, is left there at once.
        """
        self.buffer: dict[int, str] = {}
        self.direct: set[int] = set()
        if not self.extents or self.walk.along(self.walk.stored_strides)[-1] == 1:
            for node in self.nest.nodes:
                if node.kind == "call" and node.value in self.nest.stored:
                    base = self.walk.base(0, self.walk.stored_strides)
                    self.buffer[node.value] = f"(w{node.value} + {base})"
                    self.direct.add(node.value)
        few = not self.extents or is_few(self.extents[-1], self.walk.strip)
        size = prod(self.extents[-1:]) if few else self.walk.strip
        self._spread_before(size)
        crossing = self.walk.crossing - self.direct - self.buffer.keys()
        kinds = {v: self.kind_of(v) for v in crossing}
        names, made = _shared(self.walk, kinds)
        self.buffer.update(names)
        if is_few(size * len(made), _MOST_ON_STACK):
            self.lines += [f"{kind} {name}[{size}];" for name, kind in made.items()]
            return
        for name, kind in made.items():
            room = self.room(size * _WIDEST)
            self.lines.append(f"{kind} *restrict {name} = ({kind} *){room};")

    def _strip(self, pad: str, count: str) -> None:
        levels: dict[int, list[Node]] = {}
        for node, at in zip(self.nest.nodes, self.walk.levels, strict=True):
            levels.setdefault(at, []).append(node)
        for level in range(max(levels, default=-1) + 1):
            nodes = levels.get(level, [])
            for node in nodes:
                if node.kind == "call":
                    self._call(pad, node, count)
                elif node.kind == "spread" and node.value not in self.before:
                    self.lines += [f"{pad}{line}" for line in self._spread(node, count)]
            self._loop(pad, nodes, count)
            for node in nodes:
                if node.kind in IDENTITY and self.walk.is_run(node):
                    self._reduce(pad, node, count)

    # One strip.

    def kind_of(self, value: int) -> str:
        """The type of C of a value, or of what is spread."""
        flat = self.walk.flat
        source = value if flat is None else flat.sources.get(value, value)
        return moved_type(self.types(source).dtype)

    def _spread_before(self, size: int) -> None:
        """Spread what is the same for each strip ahead of all loops."""
        self.before: set[int] = set()
        for node in self.nest.nodes if self.walk.flat is not None else ():
            o = node.operands[0] if node.operands else None
            if node.kind != "spread" or o is None or any(s != 0 for s in o.strides[:-1]):
                continue
            self.before.add(node.value)
            self.buffer[node.value] = f"h{node.value}"
            self.lines.append(f"{self.kind_of(node.value)} h{node.value}[{size}];")
            self.lines += self._spread(node, str(size))

    def _spread(self, node: Node, count: str) -> Iterator[str]:
        """Fill a strip with the elements of an operand, row by row."""
        flat, (o,) = self.walk.flat, node.operands
        assert flat is not None
        n, first = flat.width, self.walk.first_row(o.offset, o.strides)
        terms = [f"q * {extent(o.strides[flat.row])}", f"t * {extent(o.strides[-1])}"]
        steps = [
            x for x, s in zip(terms, (o.strides[flat.row], o.strides[-1]), strict=True) if s != 0
        ]
        place = " + ".join([first, *steps])
        yield f"for (long q = 0; q < {count} / {n}; q++)"
        yield f"    for (long t = 0; t < {n}; t++)"
        yield f"        {self.buffer[node.value]}[q * {n} + t] = r{o.root}[{place}];"

    def _reduce_rows(self, node: Node, count: str) -> Iterator[str]:
        """Reduce each row of a strip."""
        flat, (o,) = self.walk.flat, node.operands
        assert flat is not None
        n, kind = flat.width, moved_type(self.types(node.value).dtype)
        if o.value >= 0:
            source = self.buffer[o.value]
        else:
            source = f"r{o.root} + {self.walk.base(o.offset, o.strides)}"
        first = self.walk.first_row(0, node.strides)
        target = f"w{node.value}[{first} + q * {extent(node.strides[flat.row])}]"
        name = type_name(self.types(node.value).dtype)
        yield f"for (long q = 0; q < {count} / {n}; q++) {{"
        yield f"    const {kind} *p = {source} + q * {n};"
        if node.kind == "prod":
            yield f"    {target} = pg_prod_{name}(p, 1, {n}, {target});"
        elif node.kind == "sum" and n <= _FEW:
            yield f"    {target} += {_in_pairs([f'p[{t}]' for t in range(n)])};"
        else:
            yield f"    const {kind} part = pg_{node.kind}_{name}(p, 1, {n});"
            yield f"    {combined(node.kind, target, 'part')}"
        yield "}"

    def _call(self, pad: str, node: Node, count: str) -> None:
        o = node.operands[0]
        suffix = "f" if self.types(node.value).dtype.itemsize == 4 else ""
        target = self.buffer[node.value]
        if len(node.operands) == 2:
            runs = [self._run(pad, node, k, count) for k in range(2)]
            self.lines.append(f"{pad}pg_{node.name}{suffix}({target}, {', '.join(runs)}, {count});")
            return
        if o.value >= 0:
            source = self.buffer[o.value]
        elif o.root >= 0 and (not self.extents or self.walk.along(o.strides)[-1] == 1):
            source = f"r{o.root} + {self.walk.base(o.offset, o.strides)}"
        else:
            text = self._element(o)
            self.lines.append(f"{pad}for (long j = 0; j < {count}; j++) {target}[j] = {text};")
            source = target
        self.lines.append(f"{pad}pg_{node.name}{suffix}({target}, {source}, {count});")

    def _run(self, pad: str, node: Node, k: int, count: str) -> str:
        """Where elements of an operand are, and how far apart."""
        o, name = node.operands[k], f"x{node.value}_{k}"
        if o.value >= 0:
            return f"{self.buffer[o.value]}, 1"
        if o.root >= 0:
            by = extent(self.walk.along(o.strides)[-1]) if self.extents else "1"
            return f"r{o.root} + {self.walk.base(o.offset, o.strides)}, {by}"
        kind, text = moved_type(self.types(node.value).dtype), self._element(o)
        if not o.strides:
            self.lines.append(f"{pad}const {kind} {name} = {text};")
            return f"&{name}, 0"
        self.lines.append(f"{pad}{kind} {name}[{STRIP}];")
        self.lines.append(f"{pad}for (long j = 0; j < {count}; j++) {name}[j] = {text};")
        return f"{name}, 1"

    def _loop(self, pad: str, nodes: Sequence[Node], count: str) -> None:
        inside: list[str] = []
        here = {n.value for n in nodes if n.kind in ("text", "copy", "take")}
        for node in nodes:
            if node.kind == "spread":
                continue
            if node.kind == "call":
                if node.value in self.nest.stored and node.value not in self.direct:
                    inside.append(self._store(node.value, f"{self.buffer[node.value]}[j]"))
                continue
            if node.kind in IDENTITY:
                # What is along the strip comes behind it.
                if not self.walk.is_run(node):
                    inside.append(self._accumulate(node, here))
                continue
            if node.kind in ("take", "add"):
                inside += self._reaching(node, here)
            if node.kind == "add":
                continue
            if node.kind == "take":
                args = [f"r{node.operands[0].root}[at{node.value}]"]
            else:
                args = [self._argument(o, here) for o in node.operands]
            if node.kind == "put":
                place = self.walk.index(node.offset, node.strides)
                inside.append(f"w{node.value}[{place}] = {args[0]};")
                continue
            kind = moved_type(self.types(node.value).dtype)
            if node.kind in ("copy", "take"):
                text: str | None = args[0]
            else:
                assert node.step is not None
                spelled = spelling(node.step)
                assert spelled is not None
                text = spelled(args, node.step)
            name = f"v{node.value}"
            inside.append(f"const {kind} {name} = {text};")
            if node.value in self.walk.crossing:
                inside.append(f"{self.buffer[node.value]}[j] = {name};")
            if node.value in self.nest.stored:
                inside.append(self._store(node.value, name))
        if not inside:
            return
        if count == "1":
            self.lines.append(f"{pad}{{")
            self.lines.append(f"{pad}    const long j = 0; (void)j;")
        else:
            self.lines.append(f"{pad}for (long j = 0; j < {count}; j++) {{")
        self.lines += [f"{pad}    {line}" for line in inside]
        self.lines.append(f"{pad}}}")

    def _reaching(self, node: Node, here: set[int]) -> Iterator[str]:
        """The place that indices tell, and what is added there."""
        first, *indices = node.operands
        offset, strides = 0, node.strides
        if node.kind == "take":
            offset, strides = first.offset, first.strides
        terms = []
        for o, (n, stride) in zip(indices, node.reach, strict=True):
            place = f"pg_place((int64_t){self._argument(o, here)}, {extent(n)}, &bad)"
            terms.append(place if stride == 1 else f"{place} * {extent(stride)}")
        base = self.walk.index(offset, strides)
        text = " + ".join([*terms, *([] if base == "0" else [base])])
        if node.kind == "take":
            yield f"const long at{node.value} = {text};"
            return
        added, target = self._argument(first, here), f"w{node.value}[{text}]"
        sign = "|=" if self.types(node.value).dtype.kind == "b" else "+="
        yield f"{target} {sign} {added};"

    def _argument(self, o: Operand, here: set[int]) -> str:
        if o.value >= 0:
            return f"v{o.value}" if o.value in here else f"{self.buffer[o.value]}[j]"
        return self._element(o)

    def _element(self, o: Operand) -> str:
        if o.text:
            return f"{o.text}({self.walk.index(0, o.strides)})" if o.strides else o.text
        return f"r{o.root}[{self.walk.index(o.offset, o.strides)}]"

    def _store(self, value: int, text: str) -> str:
        return f"w{value}[{self.walk.index(0, self.walk.stored_strides)}] = {text};"

    def _accumulate(self, node: Node, here: set[int]) -> str:
        """A reduction across strips: an element of the result for each of a strip."""
        text = self._argument(node.operands[0], here)
        target = f"w{node.value}[{self.walk.index(0, node.strides)}]"
        return combined(node.kind, target, text)

    def _reduce(self, pad: str, node: Node, count: str) -> None:
        (o,) = node.operands
        if self.walk.flat is not None and self.walk.flat.is_segmented(node):
            self.lines += [f"{pad}{line}" for line in self._reduce_rows(node, count)]
            return
        type = self.types(node.value)
        kind = moved_type(type.dtype)
        target = f"w{node.value}[{self.walk.base(0, node.strides)}]"
        if o.value >= 0:
            source, by = self.buffer[o.value], "1"
        elif o.root >= 0:
            by = extent(self.walk.along(o.strides)[-1]) if self.extents else "1"
            source = f"r{o.root} + {self.walk.base(o.offset, o.strides)}"
        else:
            self.lines.append(f"{pad}const {kind} one{node.value} = {o.text};")
            source, by = f"&one{node.value}", "0"
        name = type_name(type.dtype)
        if node.kind == "prod":
            self.lines.append(f"{pad}{target} = pg_prod_{name}({source}, {by}, {count}, {target});")
            return
        value = f"pg_{node.kind}_{name}({source}, {by}, {count})"
        self.lines.append(
            f"{pad}{{ const {kind} part = {value}; {combined(node.kind, target, 'part')} }}"
        )


# Elements that strips have on the stack at most, and the bytes of the widest; there is more room in
# the arena.
_MOST_ON_STACK, _WIDEST = 4096, 16
# As many elements are added up without a loop.
_FEW = 16


def _in_pairs(terms: Sequence[str]) -> str:
    """The sum of some terms, in pairs, whose sums are added up in pairs."""
    while len(terms) > 1:
        pairs = [f"({' + '.join(terms[k : k + 2])})" for k in range(0, len(terms), 2)]
        terms = pairs
    return terms[0]


def _shared(walk: Walk, kinds: Mapping[int, str]) -> tuple[dict[int, str], dict[str, str]]:
    """Names of strips for values of these types of C, and the types of all strips.

    A strip serves another value when nobody needs the first one any more.
    """
    last: dict[int, int] = {}
    begins: dict[int, list[int]] = {}
    for node, level in zip(walk.nest.nodes, walk.levels, strict=True):
        for v in {o.value for o in node.operands if o.value in kinds}:
            last[v] = max(level, last.get(v, level))
        if node.value in kinds:
            begins.setdefault(level, []).append(node.value)
            last.setdefault(node.value, level)
    names: dict[int, str] = {}
    made: dict[str, str] = {}
    free: dict[str, list[str]] = {}
    ends: dict[int, list[int]] = {}
    for v, level in last.items():
        ends.setdefault(level, []).append(v)
    for level in range(max(last.values(), default=-1) + 1):
        for v in begins.get(level, ()):
            unused = free.get(kinds[v])
            names[v] = unused.pop() if unused else f"b{len(made)}"
            made.setdefault(names[v], kinds[v])
        for v in ends.get(level, ()):
            free.setdefault(kinds[v], []).append(names[v])
    return names, made


def combined(kind: str, target: str, text: str) -> str:
    """The statement that combines what is in `target` with what `text` says."""
    match kind:
        case "sum":
            return f"{target} += {text};"
        case "prod":
            return f"{target} *= {text};"
        case _:
            sign = ">" if kind == "max" else "<"
            # A NaN wins, and stays.
            return f"if ({text} {sign} {target} || {text} != {text}) {target} = {text};"


def first_of(kind: str, type: TensorType) -> str:
    """What a reduction begins with, as C writes it."""
    if type.dtype.kind not in "biu" or kind not in ("max", "min"):
        return IDENTITY[kind]
    # Integers begin with the first of what they are the extremum of.
    bits, signed = 8 * type.dtype.itemsize, type.dtype.kind == "i"
    if kind == "max":
        return f"INT{bits}_MIN" if signed else "0"
    return f"INT{bits}_MAX" if signed else f"UINT{bits}_MAX"


def statements(nest: Nest, writer: Writer, added: Set[int]) -> Iterator[str]:
    """The lines of a nest; nothing where there are no indices.

    Reductions that are `added` go on from what is in their memory.
    """
    if not is_zero(prod(nest.domain)):
        yield from Body(nest, writer, added).text()
    else:
        body = Body(nest, writer, added)
        body.fill_results()
        yield from body.lines
