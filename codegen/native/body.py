"""Writes a loop nest in C.

The innermost loop runs in strips of elements that stay in the nearest cache, where something is
done to runs of them: functions of the runtime, which are vectorised there, and sums, whose order
is fixed: each strip's own, then strip by strip. Between two such steps a strip is one loop of
arithmetic, which compilers vectorise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import final

from primgraph.codegen.native.access import row_major
from primgraph.codegen.native.nests import Nest, Node, Operand
from primgraph.codegen.native.spellings import SPELLINGS, moved_type
from primgraph.ir.types import TensorType

# Elements of a strip.
STRIP = 256
# An innermost axis of fewer elements gives way to a longer one.
_SHORT = 16

_IDENTITY = {"sum": "0", "prod": "1", "max": "-INFINITY", "min": "INFINITY"}


@final
class Body:
    """The statements of one nest. `place` names the memory of a value."""

    def __init__(
        self, nest: Nest, types: Callable[[int], TensorType], place: Callable[[int], str]
    ) -> None:
        self.nest, self.types, self.place = nest, types, place
        self.order = _loop_order(nest)
        self.extents = [nest.domain[i] for i in self.order]
        self.stored_strides = row_major(nest.domain)
        self.levels: list[int] = []
        self.lines: list[str] = []

    def text(self) -> list[str]:
        self.find_levels()
        self.collapse()
        self.fill_results()
        self.loops()
        return self.lines

    # What is done when.

    def find_levels(self) -> None:
        """The loop of a strip that each node is in; functions are between two of them."""
        level: dict[int, int] = {}
        for node in self.nest.nodes:
            known = [level[o.value] for o in node.operands if o.value >= 0]
            here = max(known, default=0)
            # What a function is given has to be computed first, unless it is in memory already.
            here = here + 1 if node.kind == "call" and known else here
            self.levels.append(here)
            if node.kind != "put":
                level[node.value] = here
        self.crossing = self._crossing(level)

    def _crossing(self, level: Mapping[int, int]) -> set[int]:
        """Values that are needed behind the loop that computes them, or by a run's function."""
        found: set[int] = set()
        for node, here in zip(self.nest.nodes, self.levels, strict=True):
            for o in node.operands:
                if o.value < 0:
                    continue
                if level[o.value] < here or (node.kind in _IDENTITY and self.is_run(node)):
                    found.add(o.value)
            if node.kind == "call":
                found.add(node.value)
        return found

    def is_run(self, node: Node) -> bool:
        """Whether a reduction is along the innermost loop."""
        return not self.extents or self.along(node.strides)[-1] == 0

    def along(self, strides: Sequence[int]) -> list[int]:
        """Strides by loop, from those by axis."""
        return [strides[i] for i in self.order]

    @property
    def in_strips(self) -> bool:
        return any(
            n.kind == "call" or (n.kind in _IDENTITY and self.is_run(n)) for n in self.nest.nodes
        )

    # Loops.

    def collapse(self) -> None:
        """Make one loop of two wherever all that is read and written lies in a row."""
        rows = [self.stored_strides]
        for node in self.nest.nodes:
            rows += [o.strides for o in node.operands if o.root >= 0]
            if node.strides:
                rows.append(node.strides)
        k = 0
        while k + 1 < len(self.order):
            outer, inner = self.order[k], self.order[k + 1]
            n = self.nest.domain[inner]
            if inner == outer + 1 and all(r[outer] == r[inner] * self._size(k + 1) for r in rows):
                # Loops are named by their last axis, and run over all elements of both.
                self.extents[k + 1] *= self.extents[k]
                del self.order[k], self.extents[k]
                k = max(k - 1, 0)
            else:
                k += 1
            del n

    def _size(self, k: int) -> int:
        return self.extents[k]

    def fill_results(self) -> None:
        for node in self.nest.nodes:
            if node.kind not in _IDENTITY:
                continue
            type = self.types(node.value)
            start = _IDENTITY[node.kind]
            if type.dtype.kind in "iu" and node.kind in ("max", "min"):
                # Integers begin with the first of what they are the extremum of.
                start = _least(type, node.kind)
            kind = moved_type(type.dtype)
            place = f"(({kind} *){self.place(node.value)})"
            if type.size == 1:
                self.lines.append(f"{place}[0] = {start};")
            else:
                self.lines.append(f"for (long i = 0; i < {type.size}; i++) {place}[i] = {start};")

    def loops(self) -> None:
        roots: dict[int, None] = {}
        for node in self.nest.nodes:
            for o in node.operands:
                if o.root >= 0:
                    roots[o.root] = None
        placed = [n.value for n in self.nest.nodes if n.kind == "put" or n.kind in _IDENTITY]
        written = list(dict.fromkeys([*self.nest.stored, *placed]))
        for v in roots:
            kind = moved_type(self.types(v).dtype)
            self.lines.append(f"const {kind} *restrict r{v} = (const {kind} *){self.place(v)};")
        for v in written:
            kind = moved_type(self.types(v).dtype)
            self.lines.append(f"{kind} *restrict w{v} = ({kind} *){self.place(v)};")
        self._buffers()
        outer = self.extents[:-1]
        for depth, n in enumerate(outer):
            pad = "    " * depth
            self.lines.append(f"{pad}for (long i{depth} = 0; i{depth} < {n}; i{depth}++) {{")
        pad = "    " * len(outer)
        if not self.extents:
            self._strip(pad, "1", scalar=True)
        else:
            n = self.extents[-1]
            if self.in_strips and n > STRIP:
                self.lines.append(f"{pad}for (long s = 0; s < {n}; s += {STRIP}) {{")
                self.lines.append(f"{pad}    const long n = {n} - s < {STRIP} ? {n} - s : {STRIP};")
                self._strip(pad + "    ", "n", start="s")
                self.lines.append(f"{pad}}}")
            else:
                self._strip(pad, str(n))
        for depth in reversed(range(len(outer))):
            self.lines.append(f"{'    ' * depth}}}")

    def _buffers(self) -> None:
        """Room for a strip of each value that crosses from one loop to another.

        What a function makes, and is left in memory in a row, is left there at once.
        """
        self.buffer: dict[int, str] = {}
        self.direct: set[int] = set()
        start = "s" if self.extents and self.in_strips and self.extents[-1] > STRIP else ""
        if not self.extents or self.along(self.stored_strides)[-1] == 1:
            for node in self.nest.nodes:
                if node.kind == "call" and node.value in self.nest.stored:
                    base = self._base(0, self.stored_strides, start)
                    self.buffer[node.value] = f"(w{node.value} + {base})"
                    self.direct.add(node.value)
        size = min(self.extents[-1], STRIP) if self.extents else 1
        last: dict[int, int] = {}
        for node, level in zip(self.nest.nodes, self.levels, strict=True):
            for o in node.operands:
                if o.value in self.crossing and o.value not in self.direct:
                    last[o.value] = max(level, last.get(o.value, level))
        free: dict[str, list[str]] = {}
        ends: dict[int, list[int]] = {}
        made = 0
        made_lines = []
        by_level: dict[int, list[int]] = {}
        for node, level in zip(self.nest.nodes, self.levels, strict=True):
            if node.value in self.crossing and node.value not in self.direct:
                by_level.setdefault(level, []).append(node.value)
        for level in sorted({*by_level, *last.values()}):
            for v in by_level.get(level, ()):
                kind = moved_type(self.types(v).dtype)
                if free.get(kind):
                    name = free[kind].pop()
                else:
                    name, made = f"b{made}", made + 1
                    made_lines.append(f"{kind} {name}[{size}];")
                self.buffer[v] = name
                ends.setdefault(last.get(v, level), []).append(v)
            for v in ends.pop(level, ()):
                free.setdefault(moved_type(self.types(v).dtype), []).append(self.buffer[v])
        self.lines += made_lines

    def _strip(self, pad: str, count: str, start: str = "", scalar: bool = False) -> None:
        levels: dict[int, list[Node]] = {}
        for node, at in zip(self.nest.nodes, self.levels, strict=True):
            levels.setdefault(at, []).append(node)
        for level in range(max(levels, default=-1) + 1):
            nodes = levels.get(level, [])
            for node in nodes:
                if node.kind == "call":
                    self._call(pad, node, count, start)
            self._loop(pad, nodes, count, start)
            for node in nodes:
                if node.kind in _IDENTITY and self.is_run(node):
                    self._reduce(pad, node, count, start)

    # One strip.

    def _call(self, pad: str, node: Node, count: str, start: str) -> None:
        (o,) = node.operands
        suffix = "f" if self.types(node.value).dtype.itemsize == 4 else ""
        target = self.buffer[node.value]
        if o.value >= 0:
            source = self.buffer[o.value]
        elif o.root >= 0 and (not self.extents or self.along(o.strides)[-1] == 1):
            source = f"r{o.root} + {self._base(o.offset, o.strides, start)}"
        else:
            text = self._element(o, start)
            self.lines.append(f"{pad}for (long j = 0; j < {count}; j++) {target}[j] = {text};")
            source = target
        self.lines.append(f"{pad}pg_{node.name}{suffix}({target}, {source}, {count});")

    def _loop(self, pad: str, nodes: Sequence[Node], count: str, start: str) -> None:
        inside: list[str] = []
        here = {n.value for n in nodes if n.kind in ("text", "copy")}
        loaded: dict[int, str] = {}
        for node in nodes:
            if node.kind == "call":
                if node.value in self.nest.stored and node.value not in self.direct:
                    inside.append(self._store(node.value, f"{self.buffer[node.value]}[j]", start))
                continue
            if node.kind in _IDENTITY:
                if not self.is_run(node):
                    inside.append(self._accumulate(node, here, loaded, start))
                elif node.operands[0].value < 0:
                    # A run of what is in memory is reduced where it is, or is one number.
                    continue
                continue
            args = [self._argument(o, here, start) for o in node.operands]
            if node.kind == "put":
                place = self._index(node.offset, node.strides, start)
                inside.append(f"w{node.value}[{place}] = {args[0]};")
                continue
            kind = moved_type(self.types(node.value).dtype)
            if node.kind == "copy":
                text: str | None = args[0]
            else:
                assert node.step is not None
                text = SPELLINGS[node.step.op](args, node.step)
            name = f"v{node.value}"
            inside.append(f"const {kind} {name} = {text};")
            if node.value in self.crossing:
                inside.append(f"{self.buffer[node.value]}[j] = {name};")
            if node.value in self.nest.stored:
                inside.append(self._store(node.value, name, start))
        if not inside:
            return
        if count == "1":
            self.lines.append(f"{pad}{{")
            self.lines.append(f"{pad}    const long j = 0; (void)j;")
        else:
            self.lines.append(f"{pad}for (long j = 0; j < {count}; j++) {{")
        self.lines += [f"{pad}    {line}" for line in inside]
        self.lines.append(f"{pad}}}")

    def _argument(self, o: Operand, here: set[int], start: str) -> str:
        if o.text:
            return o.text
        if o.value >= 0:
            return f"v{o.value}" if o.value in here else f"{self.buffer[o.value]}[j]"
        return self._element(o, start)

    def _element(self, o: Operand, start: str) -> str:
        if o.text:
            return o.text
        return f"r{o.root}[{self._index(o.offset, o.strides, start)}]"

    def _base(self, offset: int, strides: Sequence[int], start: str) -> str:
        """The place of the first element of a strip."""
        along = self.along(strides)
        terms = [f"i{d} * {s}" for d, s in enumerate(along[:-1]) if s]
        if start and along and along[-1]:
            terms.append(start if along[-1] == 1 else f"{start} * {along[-1]}")
        if offset or not terms:
            terms.append(str(offset))
        return " + ".join(terms)

    def _index(self, offset: int, strides: Sequence[int], start: str) -> str:
        base, along = self._base(offset, strides, start), self.along(strides)
        if not along or not along[-1]:
            return base
        step = "j" if along[-1] == 1 else f"j * {along[-1]}"
        return step if base == "0" else f"{base} + {step}"

    def _store(self, value: int, text: str, start: str) -> str:
        return f"w{value}[{self._index(0, self.stored_strides, start)}] = {text};"

    def _accumulate(self, node: Node, here: set[int], loaded: dict[int, str], start: str) -> str:
        """A reduction across strips: an element of the result for each of a strip."""
        text = self._argument(node.operands[0], here, start)
        target = f"w{node.value}[{self._index(0, node.strides, start)}]"
        return _combined(node.kind, target, text)

    def _reduce(self, pad: str, node: Node, count: str, start: str) -> None:
        (o,) = node.operands
        type = self.types(node.value)
        kind = moved_type(type.dtype)
        target = f"w{node.value}[{self._base(0, node.strides, start)}]"
        if o.value >= 0:
            source, by = self.buffer[o.value], 1
        elif o.root >= 0:
            by = self.along(o.strides)[-1] if self.extents else 1
            source = f"r{o.root} + {self._base(o.offset, o.strides, start)}"
        else:
            self.lines.append(f"{pad}const {kind} one{node.value} = {o.text};")
            source, by = f"&one{node.value}", 0
        name = _RUNS[type.dtype.kind + str(type.dtype.itemsize)]
        if node.kind == "prod":
            self.lines.append(f"{pad}{target} = pg_prod_{name}({source}, {by}, {count}, {target});")
            return
        value = f"pg_{node.kind}_{name}({source}, {by}, {count})"
        self.lines.append(
            f"{pad}{{ const {kind} part = {value}; {_combined(node.kind, target, 'part')} }}"
        )


_RUNS = {
    "f8": "f64", "f4": "f32", "i8": "i64", "i4": "i32", "i2": "i16", "i1": "i8",
    "u8": "u64", "u4": "u32", "u2": "u16", "u1": "u8",
}  # fmt: skip


def _combined(kind: str, target: str, text: str) -> str:
    match kind:
        case "sum":
            return f"{target} += {text};"
        case "prod":
            return f"{target} *= {text};"
        case _:
            sign = ">" if kind == "max" else "<"
            # A NaN wins, and stays.
            return f"if ({text} {sign} {target} || {text} != {text}) {target} = {text};"


def _least(type: TensorType, kind: str) -> str:
    bits, signed = 8 * type.dtype.itemsize, type.dtype.kind == "i"
    if kind == "max":
        return f"INT{bits}_MIN" if signed else "0"
    return f"INT{bits}_MAX" if signed else f"UINT{bits}_MAX"


def _loop_order(nest: Nest) -> list[int]:
    """The axes of a nest from the outermost loop to the innermost one.

    Memory is best read in its order; but a short loop inside costs more than what it saves.
    """
    order = list(range(len(nest.domain)))
    if len(order) > 1 and nest.domain[-1] < _SHORT:
        rows = [o.strides for n in nest.nodes for o in n.operands if o.root >= 0]
        longest = max(order, key=lambda i: nest.domain[i])
        whole = all(r == row_major(nest.domain) or not any(r) for r in rows)
        whole = whole and not any(n.strides for n in nest.nodes)
        if not whole and nest.domain[longest] >= _SHORT:
            order.remove(longest)
            order.append(longest)
    return order


def statements(
    nest: Nest, types: Callable[[int], TensorType], place: Callable[[int], str]
) -> Iterator[str]:
    """The lines of a nest; nothing where there are no indices."""
    if prod(nest.domain):
        yield from Body(nest, types, place).text()
    else:
        body = Body(nest, types, place)
        body.fill_results()
        yield from body.lines
