"""The C of a kernel: functions of loop nests, each for a part of the items, and what calls them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

from primgraph.codegen.native.access import Access, row_major
from primgraph.codegen.native.body import statements
from primgraph.codegen.native.nests import Control, Item, Nest, Nests, Outside, Product
from primgraph.codegen.native.spellings import c_type, moved_type
from primgraph.codegen.plan.arena import Arena
from primgraph.ir.types import TensorType
from primgraph.primitives.control import cond, parted, scan, while_loop

# Nodes in one function of C: compilers take more than linear time for longer ones.
_CHUNK = 250


@final
@dataclass(frozen=True, slots=True)
class Segment:
    """A function of C: its name, the values whose arrays it takes, in order, and those of them that
    it writes.

    The last of its arguments is the arena.
    """

    name: str
    arrays: tuple[int, ...]
    written: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class Source:
    """The text of a file, and what is done with it: functions of C and steps of NumPy's in turn.

    `arena` is the size in bytes of what all functions share.
    """

    text: str
    order: tuple[Segment | Outside, ...]
    arena: int


def source(plan: Nests, name: str) -> Source:
    """The C of `plan`."""
    return _Writer(plan, name).made()


class _Body(NamedTuple):
    """A body of a branch or loop, and the function that it is; None where it does nothing."""

    plan: Nests
    segment: Segment | None
    constants: Mapping[int, int]
    arena: int
    number: int


@final
class _Writer:
    def __init__(self, plan: Nests, name: str) -> None:
        self.plan, self.name = plan, name
        self.order: list[Segment | Outside] = []
        self.functions: list[str] = []
        self.declared = list(_declared(plan))
        self.arena = Arena()
        self.offset: dict[int, int] = {}
        # Values that are arrays of NumPy's: what is given, constants, results, what is outside.
        self.arrays = {*range(plan.schedule.inputs), *plan.constants, *plan.outputs}
        for item in plan.items:
            if isinstance(item, Outside):
                self.arrays.update(item.values)
                self.arrays.update(item.operands)
        self.ends: dict[int, list[int]] = {}
        self.arrays.update(_crossing(plan))
        self.given: dict[int, int] = {}
        self.written: dict[int, None] = {}
        self.count = 0
        # Offsets and sizes of the memory of one item alone.
        self.rooms: list[tuple[int, int]] = []

    def made(self) -> Source:
        run: list[tuple[int, Item]] = []
        for at, item in enumerate(self.plan.items):
            if isinstance(item, Outside):
                self.segment(run)
                run = []
                self.order.append(item)
            else:
                run.append((at, item))
        self.segment(run)
        declared = sorted(dict.fromkeys(self.declared))
        text = "\n".join([*_OPENING, *declared, "", *self.functions, ""])
        return Source(text, tuple(self.order), self.arena.size)

    def segment(self, items: Sequence[tuple[int, Item]]) -> None:
        if not items:
            return
        self.given, self.written = {}, {}
        name = f"{self.name}_{len(self.order)}"
        parts: list[list[str]] = [[]]
        size = 0
        for at, item in items:
            weight = len(item.nodes) if isinstance(item, Nest) else 1
            if size and size + weight > _CHUNK:
                parts.append([])
                size = 0
            size += weight
            self.take(at, item)
            # Functions of bodies come first.
            lines = list(self.lines(item))
            parts[-1] += ["    {", *[f"        {line}" for line in lines], "    }"]
            self.give(at)
        args = "void *const *restrict a, char *restrict w"
        unused = "    (void)a; (void)w;"
        if len(parts) == 1:
            self.functions += [f"void {name}({args}) {{", unused, *parts[0], "}", ""]
        else:
            for k, part in enumerate(parts):
                head = f"static __attribute__((noinline)) void {name}_{k}({args}) {{"
                self.functions += [head, unused, *part, "}", ""]
            calls = [f"    {name}_{k}(a, w);" for k in range(len(parts))]
            self.functions += [f"void {name}({args}) {{", *calls, "}", ""]
        self.order.append(Segment(name, tuple(self.given), tuple(self.written)))

    # Memory.

    def take(self, at: int, item: Item) -> None:
        for v in made_by(item):
            if v in self.arrays:
                self.place(v)
                self.written[v] = None
            elif v not in self.offset:
                self.offset[v] = self.arena.take(self.type(v).nbytes)
                # What nobody reads is given back at once.
                self.ends.setdefault(max(self.plan.last.get(v, at), at), []).append(v)

    def give(self, at: int) -> None:
        for offset, size in self.rooms:
            self.arena.give(offset, size)
        self.rooms.clear()
        for v in self.ends.pop(at, ()):
            self.arena.give(self.offset[v], self.type(v).nbytes)

    def place(self, value: int) -> str:
        """The memory of a value."""
        if value in self.arrays:
            k = self.given.setdefault(value, len(self.given))
            return f"a[{k}]"
        return f"(w + {self.offset[value]})"

    def type(self, value: int) -> TensorType:
        return self.plan.types[value]

    # Items.

    def lines(self, item: Item) -> Iterator[str]:
        if isinstance(item, Nest):
            yield from statements(item, self.type, self.place)
        elif isinstance(item, Product):
            yield from self.product(item)
        elif isinstance(item, Control):
            yield from self.control(item)

    def control(self, item: Control) -> Iterator[str]:
        """A branch or a loop: functions of the bodies, and what calls them."""
        p, op = item.step.params, item.step.op
        bodies = []
        for k, (plan, constants) in enumerate(zip(item.bodies, item.constants, strict=True)):
            self.count += 1
            writer = _Writer(plan, f"{self.name}_b{self.count}")
            (body,) = writer.made().order or [None]
            assert body is None or isinstance(body, Segment)
            self.functions += writer.functions
            self.declared += writer.declared
            bodies.append(_Body(plan, body, constants, writer.arena.size, k))
        if op is cond:
            yield from self.branches(item, bodies)
        elif op is scan:
            yield from self.scan(item, bodies[0])
        elif op is while_loop:
            yield from self.while_loop(item, *bodies)
        else:
            places = [self.place(v) for v in (*item.operands, *item.values)]
            yield from self.call(bodies[0], places, self.room(bodies[0].arena))
        del p

    def room(self, size: int) -> str:
        """Memory for the item that is being written, and no other."""
        if not size:
            return "w"
        offset = self.arena.take(size)
        self.rooms.append((offset, size))
        return f"(w + {offset})"

    def call(self, body: _Body, places: Sequence[str], room: str) -> Iterator[str]:
        """A call of a body with what it takes and gives, in order, at `places`."""
        if body.segment is None:
            return
        inputs = range(body.plan.schedule.inputs)
        where = dict(zip([*inputs, *body.plan.outputs], places, strict=True))
        where.update({v: self.place(own) for v, own in body.constants.items()})
        given = ", ".join([f"(void *){where[v]}" for v in body.segment.arrays]) or "0"
        yield f"{{ void *const b[] = {{{given}}}; {body.segment.name}(b, {room}); }}"

    def branches(self, item: Control, bodies: Sequence[_Body]) -> Iterator[str]:
        index, *operands = item.operands
        kind = moved_type(item.step.operands[0].dtype)
        room = self.room(max(body.arena for body in bodies))
        places = [self.place(v) for v in (*operands, *item.values)]
        yield f"const {kind} index = *(const {kind} *){self.place(index)};"
        for k, body in enumerate(bodies):
            last = k + 1 == len(bodies)
            test = "else" if last and k else f"{'else ' if k else ''}if (index <= {k})"
            yield "{" if last and not k else f"{test} {{"
            yield from (f"    {line}" for line in self.call(body, places, room))
            yield "}"

    def carried(self, types: Sequence[TensorType], begin: Sequence[int]) -> Iterator[str]:
        """Pointers to what is carried, and to where the next of it goes, which takes turns."""
        for i, (type, v) in enumerate(zip(types, begin, strict=True)):
            first, second = self.room(type.nbytes), self.room(type.nbytes)
            yield f"const char *now{i} = (const char *){self.place(v)};"
            yield f"char *next{i} = {first}, *other{i} = {second};"

    def turn(self, count: int) -> Iterator[str]:
        for i in range(count):
            yield f"now{i} = next{i}; next{i} = other{i}; other{i} = (char *)now{i};"

    def left(self, types: Sequence[TensorType], values: Sequence[int]) -> Iterator[str]:
        """Leave what is carried at last in memory of its own."""
        for i, (type, v) in enumerate(zip(types, values, strict=True)):
            yield f"memcpy({self.place(v)}, now{i}, {type.nbytes});"

    def scan(self, item: Control, body: _Body) -> Iterator[str]:
        p = item.step.params
        given, types = item.operands[p["counted"] :], item.step.operands[p["counted"] :]
        fixed, state, xs = parted(given, p["consts"], p["carries"])
        _, kinds, stacks = parted(types, p["consts"], p["carries"])
        count, length = len(state), p["length"]
        rows = [t.nbytes // length if length else 0 for t in stacks]
        ys = list(zip(item.values[count:], item.step.results[count:], strict=True))
        steps = [t.nbytes // length if length else 0 for _, t in ys]
        yield f"long trips = {length};"
        if p["counted"]:
            yield f"{{ const int64_t n = *(const int64_t *){self.place(item.operands[0])};"
            yield "  trips = n < 0 ? 0 : n < trips ? n : trips; }"
            for v, t in ys:
                yield f"memset({self.place(v)}, 0, {t.nbytes});"
        yield from self.carried(kinds, state)
        yield "for (long t = 0; t < trips; t++) {"
        yield f"    const long k = {'trips - 1 - t' if p['reverse'] else 't'}; (void)k;"
        places = [self.place(v) for v in fixed]
        places += [f"now{i}" for i in range(count)]
        places += [f"((char *){self.place(v)} + k * {n})" for v, n in zip(xs, rows, strict=True)]
        places += [f"next{i}" for i in range(count)]
        places += [
            f"((char *){self.place(v)} + k * {n})" for (v, _), n in zip(ys, steps, strict=True)
        ]
        inside = [*self.call(body, places, self.room(body.arena)), *self.turn(count)]
        yield from (f"    {line}" for line in inside)
        yield "}"
        yield from self.left(kinds, item.values[:count])

    def while_loop(self, item: Control, test: _Body, body: _Body) -> Iterator[str]:
        p = item.step.params
        consts = p["consts"]
        fixed, state = item.operands[:consts], item.operands[consts:]
        kinds, count = item.step.operands[consts:], len(item.operands) - consts
        ys = list(zip(item.values[count + 1 :], item.step.results[count + 1 :], strict=True))
        limit = p["limit"]
        for v, t in ys:
            yield f"memset({self.place(v)}, 0, {t.nbytes});"
        yield from self.carried(kinds, state)
        yield "int64_t t = 0;"
        yield f"for (; t < {limit}; t++) {{"
        yield "    uint8_t again;"
        known = [self.place(v) for v in fixed] + [f"now{i}" for i in range(count)]
        room = self.room(max(test.arena, body.arena))
        inside = [*self.call(test, [*known, "&again"], room), "if (!again) break;"]
        places = [*known, *(f"next{i}" for i in range(count))]
        places += [
            f"((char *){self.place(v)} + t * {t.nbytes // limit if limit else 0})" for v, t in ys
        ]
        inside += [*self.call(body, places, room), *self.turn(count)]
        yield from (f"    {line}" for line in inside)
        yield "}"
        yield from self.left(kinds, item.values[:count])
        yield f"*(int64_t *){self.place(item.values[count])} = t;"

    def product(self, item: Product) -> Iterator[str]:
        x = item.step.operands[0]
        type = item.step.results[0]
        if not type.size:
            return
        kind = c_type(type.dtype)
        name = "f64" if type.dtype.itemsize == 8 else "f32"
        batch = type.shape[:-2]
        m, n = type.shape[-2:]
        k = x.shape[-1]
        yield f"{kind} *restrict o = ({kind} *){self.place(item.value)};"
        yield f"const {kind} *x = (const {kind} *){self.place(item.left.root)};"
        yield f"const {kind} *y = (const {kind} *){self.place(item.right.root)};"
        pad = ""
        for d, extent in enumerate(batch):
            yield f"{pad}for (long i{d} = 0; i{d} < {extent}; i{d}++)"
            pad += "    "
        out = " + ".join([f"i{d} * {s}" for d, s in enumerate(row_major(type.shape)[:-2])] or ["0"])
        left, right = _start(item.left, len(batch)), _start(item.right, len(batch))
        (a0, a1), (b0, b1) = item.left.strides[-2:], item.right.strides[-2:]
        yield (
            f"{pad}pg_matmul_{name}(o + {out}, x + {left}, {a0}, {a1}, "
            f"y + {right}, {b0}, {b1}, {m}, {n}, {k});"
        )


_PLAIN = ("text", "call", "copy")


def made_by(item: Item) -> list[int]:
    """The values that an item leaves in memory."""
    if isinstance(item, Outside | Control):
        return list(item.values)
    if isinstance(item, Product):
        return [item.value]
    return [*item.stored, *(n.value for n in item.nodes if n.kind not in _PLAIN)]


def _crossing(plan: Nests) -> Iterator[int]:
    """What one function of C makes and another one reads."""
    outside = [at for at, item in enumerate(plan.items) if isinstance(item, Outside)]
    for at, item in enumerate(plan.items):
        following = bisect_right(outside, at)
        if following == len(outside):
            return
        for v in made_by(item):
            if plan.last.get(v, -1) > outside[following]:
                yield v


def _start(access: Access, axes: int) -> str:
    terms = [f"i{d} * {access.strides[d]}" for d in range(axes) if access.strides[d]]
    return " + ".join([*terms, str(access.offset)])


_OPENING = (
    "#include <math.h>",
    "#include <stdint.h>",
    "#include <string.h>",
    "",
    "typedef struct { float first, second; } pg_floats;",
    "typedef struct { double first, second; } pg_pair;",
    "",
)


def _declared(plan: Nests) -> Iterator[str]:
    """The functions of the runtime that a plan calls, but for those of its bodies."""
    for item in plan.items:
        if isinstance(item, Product):
            kind = c_type(plan.types[item.value].dtype)
            yield (
                f"void pg_matmul_f{8 * plan.types[item.value].dtype.itemsize}({kind} *restrict, "
                f"const {kind} *, long, long, const {kind} *, long, long, long, long, long);"
            )
        for node in item.nodes if isinstance(item, Nest) else ():
            dtype = plan.types[node.value].dtype
            kind = c_type(dtype)
            if node.kind == "call":
                name = f"pg_{node.name}{'f' if dtype.itemsize == 4 else ''}"
                yield f"void {name}({kind} *, const {kind} *, long);"
            elif node.kind not in (*_PLAIN, "put"):
                name = f"pg_{node.kind}_{dtype.kind}{8 * dtype.itemsize}"
                first = f", {kind}" if node.kind == "prod" else ""
                yield f"{kind} {name}(const {kind} *, long, long{first});"
