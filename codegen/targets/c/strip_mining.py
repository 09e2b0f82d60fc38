"""Strip mining: buffers of a nest's values during the loops over one strip.

Within one loop over a strip a value is a variable. A value that is live across loops has a buffer
for a strip, on the stack or in the workspace, unless it is stored contiguously anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from math import prod
from typing import final

from primgraph.codegen.ir.c_extents import extent, index_text, is_few
from primgraph.codegen.ir.statements import Node, Operand
from primgraph.codegen.ops.c.spellings import moved_type
from primgraph.codegen.targets.c.walk import STRIP, Walk
from primgraph.ir.types import TensorType

# Maximum number of elements of stack buffers, and size of the widest element; larger buffers are in
# the workspace.
_MOST_ON_STACK, _WIDEST = 4096, 16


@final
class Strips:
    """C names of the values of a nest: memory is `r` plus a number for reads, `w` for writes.

    `buffer` has the buffer of each value that is live across loops. For a `direct` value this is
    its own memory. A value spread `before` all loops is the same for each strip.
    """

    def __init__(
        self, walk: Walk, types: Callable[[int], TensorType], use: Callable[[str], str]
    ) -> None:
        self.walk, self.types, self.use = walk, types, use
        self.buffer: dict[int, str] = {}
        self.direct: set[int] = set()
        self.before: set[int] = set()

    # Before all loops.

    def buffer_declarations(self, room: Callable[[int], str]) -> Iterator[str]:
        """Yield declarations of strip buffers; those too large for the stack are from `room`."""
        self._leave_at_once()
        extents, strip = self.walk.extents, self.walk.strip
        few = not extents or is_few(extents[-1], strip)
        size = prod(extents[-1:]) if few else strip
        yield from self._spread_before(size)
        crossing = self.walk.crossing - self.direct - self.buffer.keys()
        names, made = _assign_buffers(self.walk, {v: self._kind_of(v) for v in crossing})
        self.buffer.update(names)
        on_stack = is_few(size * len(made), _MOST_ON_STACK)
        for name, kind in made.items():
            if on_stack:
                yield f"{kind} {name}[{size}];"
            else:
                yield f"{kind} *restrict {name} = ({kind} *){room(size * _WIDEST)};"

    def _leave_at_once(self) -> None:
        """Let functions write contiguous stored results directly to their memory."""
        walk = self.walk
        if walk.extents and walk.loop_strides(walk.stored_strides)[-1] != 1:
            return
        for node in walk.nest.nodes:
            if node.kind == "call" and node.value in walk.nest.stored:
                self.buffer[node.value] = f"(w{node.value} + {walk.base(0, walk.stored_strides)})"
                self.direct.add(node.value)

    def _spread_before(self, size: int) -> Iterator[str]:
        """Spread values that are the same for each strip."""
        for node in self.walk.nest.nodes if self.walk.flat is not None else ():
            o = node.operands[0] if node.operands else None
            if node.kind != "spread" or o is None or any(s != 0 for s in o.strides[:-1]):
                continue
            self.before.add(node.value)
            self.buffer[node.value] = f"h{node.value}"
            yield f"{self._kind_of(node.value)} h{node.value}[{size}];"
            yield from self.fill_strip(node, str(size))

    def _kind_of(self, value: int) -> str:
        """Return the C type of a value, or of the source of a spread value."""
        flat = self.walk.flat
        source = value if flat is None else flat.sources.get(value, value)
        return moved_type(self.types(source).dtype)

    def fill_strip(self, node: Node, count: str) -> Iterator[str]:
        """Yield a loop that fills a strip with the elements of an operand, row by row."""
        flat, (o,) = self.walk.flat, node.operands
        assert flat is not None
        n, first = flat.width, self.walk.first_row(o.offset, o.strides)
        place = index_text(0, [(first, 1), ("q", o.strides[flat.row]), ("t", o.strides[-1])])
        yield f"for (long q = 0; q < {count} / {n}; q++)"
        yield f"    for (long t = 0; t < {n}; t++)"
        yield f"        {self.buffer[node.value]}[q * {n} + t] = r{o.root}[{place}];"

    # Within a strip.

    def run(self, o: Operand) -> tuple[str, str] | None:
        """Return a pointer to the elements of an operand and their stride; None if not in memory.

        In a nest without loops there is one element.
        """
        if o.value >= 0:
            return self.buffer[o.value], "1"
        if o.root < 0:
            return None
        apart = extent(self.walk.loop_strides(o.strides)[-1]) if self.walk.extents else "1"
        return f"r{o.root} + {self.walk.base(o.offset, o.strides)}", apart

    def argument(self, o: Operand, here: Set[int]) -> str:
        """Return element `j` of an operand, in a loop that computes the values `here`."""
        if o.value >= 0:
            return f"v{o.value}" if o.value in here else f"{self.buffer[o.value]}[j]"
        return self.element(o)

    def element(self, o: Operand) -> str:
        """Return element `j` of an operand that no loop computes."""
        if o.cast:
            at = self.walk.index(o.offset, o.strides) if o.strides else extent(o.offset)
            return f"(({o.cast})({at}))"
        if o.text:
            return o.text
        return f"r{o.root}[{self.walk.index(o.offset, o.strides)}]"

    def store(self, value: int, text: str) -> str:
        """Return the statement that stores element `j` of a value."""
        return f"w{value}[{self.walk.index(0, self.walk.stored_strides)}] = {text};"


def _assign_buffers(walk: Walk, kinds: Mapping[int, str]) -> tuple[dict[int, str], dict[str, str]]:
    """Assign buffers to values by liveness: names by value, and C types by name.

    A buffer is reused once its value is dead.
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


def call(strips: Strips, node: Node, count: str) -> Iterator[str]:
    """Yield a call that computes `count` elements of a value, of one or two operands."""
    suffix = "f" if strips.types(node.value).dtype.itemsize == 4 else ""
    function, target = strips.use(f"pg_{node.name}{suffix}"), strips.buffer[node.value]
    if len(node.operands) == 1:
        yield from _unary_call(strips, node, function, target, count)
        return
    runs: list[str] = []
    for k, o in enumerate(node.operands):
        run = strips.run(o)
        if run is None:
            name = f"x{node.value}_{k}"
            yield from _fill_run(strips, node, o, name, count)
            run = (name, "1") if o.strides else (f"&{name}", "0")
        runs += run
    yield f"{function}({target}, {', '.join(runs)}, {count});"


def _unary_call(strips: Strips, node: Node, name: str, target: str, count: str) -> Iterator[str]:
    """Yield a unary call, whose input is contiguous and may alias the output."""
    (o,) = node.operands
    source, apart = strips.run(o) or (target, "0")
    if apart != "1":
        yield f"for (long j = 0; j < {count}; j++) {target}[j] = {strips.element(o)};"
        source = target
    yield f"{name}({target}, {source}, {count});"


def _fill_run(strips: Strips, node: Node, o: Operand, name: str, count: str) -> Iterator[str]:
    """Fill a run for an operand that is not in memory: one number, or a strip."""
    kind, text = moved_type(strips.types(node.value).dtype), strips.element(o)
    if not o.strides:
        yield f"const {kind} {name} = {text};"
        return
    yield f"{kind} {name}[{STRIP}];"
    yield f"for (long j = 0; j < {count}; j++) {name}[j] = {text};"
