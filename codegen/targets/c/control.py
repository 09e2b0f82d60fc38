"""C code for branches and loops: calls of functions generated from their bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from math import prod
from typing import NamedTuple, Protocol, final

from primgraph.codegen.ir.c_extents import extent
from primgraph.codegen.ir.statements import Control, Nests
from primgraph.codegen.ops.c.spellings import moved_type
from primgraph.codegen.targets.c.lines import Function
from primgraph.codegen.targets.c.size_arguments import SIZES
from primgraph.codegen.targets.text.flow import Loop, write_flow
from primgraph.ir.dims import TRIPS, is_open, single_row_size, typical
from primgraph.ir.types import TensorType, larger
from primgraph.primitives.control import flops_of


class Body(NamedTuple):
    """A body: its plan, its C function, the values whose arrays it takes, and its workspace.

    The name is empty if the function does nothing. `constants` maps its constants to outer values.
    """

    plan: Nests
    name: str
    arrays: tuple[int, ...]
    constants: Mapping[int, int]
    arena: int


class Places(Protocol):
    """Memory and types of the values of a nest; traced lines know the user's lines."""

    is_traced: bool

    def place(self, value: int) -> str:
        """Return the memory of a value."""

    def use(self, function: str) -> str:
        """Return the name of a C library function, which the file then includes."""

    def room(self, size: int) -> str:
        """Allocate workspace for the current item only."""

    def type(self, value: int) -> TensorType:
        """Return the type of a value."""


class Writer(Places, Protocol):
    """Interface of the generator of the enclosing items."""

    def sizes(self, address: Callable[[str], str]) -> str:
        """Return the declaration of the symbolic sizes, if any, read from their place's address."""

    def function(self, lines: Sequence[str]) -> str:
        """Add a function for a group of blocks; return its name."""

    def body(self, plan: Nests, constants: Mapping[int, int]) -> Body:
        """Add a function for a body."""


def control(writer: Writer, item: Control) -> Iterator[str]:
    """Yield the lines of a branch or a loop, and add functions for its bodies."""
    words = _Words(writer, item)
    places = ([writer.place(v) for v in vs] for vs in (item.operands, item.values))
    write_flow(words, item.step, *places)
    yield from words.lines


# Approximate number of operations between two checks for interrupts, and minimum of an iteration.
_UNWATCHED, _LEAST = 2**15, 20


@final
class _Words:
    """C for one branch or loop, which calls functions of the bodies; values are pointers.

    Carries are in double buffers: `now` is the current one, `next` the one that is written.
    """

    def __init__(self, writer: Writer, item: Control) -> None:
        self.writer, self.item, self.pad = writer, item, ""
        pairs = zip(item.bodies, item.constants, strict=True)
        self.bodies = [writer.body(plan, constants) for plan, constants in pairs]
        self.room = ""
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(f"{self.pad}{text}")

    def open(self, head: str) -> None:
        self.line(f"{head} {{" if head else "{")
        self.pad += "    "

    def close(self) -> None:
        self.pad = self.pad[4:]
        self.line("}")

    def choose(self, index: str) -> Sequence[int]:
        kind = moved_type(self.item.step.operands[0].dtype)
        self.line(f"const {kind} index = *(const {kind} *){index};")
        return range(len(self.bodies))

    def case(self, at: int) -> None:
        if at:
            self.close()
        last = at + 1 == len(self.bodies)
        self.open(
            "" if last and not at else "else" if last else f"{'else ' * (at > 0)}if (index <= {at})"
        )

    def body(self, k: int, given: Sequence[str], made: Sequence[str]) -> None:
        """Write a call of a body; those of one statement share their workspace."""
        body, place = self.bodies[k], self.writer.place
        self.room = self.room or self.writer.room(reduce(larger, [b.arena for b in self.bodies]))
        if not body.name:
            return
        inputs = range(body.plan.schedule.inputs)
        where = dict(zip([*inputs, *body.plan.outputs], [*given, *made], strict=True))
        where.update({v: place(own) for v, own in body.constants.items()})
        where[SIZES] = place(SIZES) if SIZES in body.arrays else ""
        arrays = ", ".join([f"(void *){where[v]}" for v in body.arrays]) or "0"
        self.line(f"{{ void *const b[] = {{{arrays}}};")
        self.line(
            f"  const int failed = {body.name}(b, {self.room}); if (failed) return failed; }}"
        )

    def begin(self, loop: Loop[str]) -> Sequence[str]:
        grown = _growing(loop)
        if loop.number is None:
            most = loop.step.most_trips
            self.line(f"long trips = {'INT64_MAX' if most is TRIPS else extent(most)};")
        if loop.count is not None:
            self.line(f"{{ const int64_t n = *(const int64_t *){loop.count};")
            self.line("  trips = n < 0 ? 0 : n < trips ? n : trips; }")
            for place, row in grown.items():
                self.line(reallocation(place, "trips", row))
        if loop.count is not None or loop.number is not None:
            for place, t in zip(loop.stacks, loop.stacked_kinds, strict=True):
                if not is_open(t.shape):
                    self.line(f"memset({place}, 0, {extent(t.nbytes)});")
        for i, (type, place) in enumerate(zip(loop.kinds, loop.state, strict=True)):
            first, second = self.writer.room(type.nbytes), self.writer.room(type.nbytes)
            self.line(f"const char *now{i} = (const char *){place};")
            self.line(f"char *next{i} = {first}, *other{i} = {second};")
        if loop.number is not None:
            self.line("int64_t t = 0;")
            if grown:
                self.line("int64_t room = 0;")
        return [f"now{i}" for i, _ in enumerate(loop.ends)]

    def repeat(self, loop: Loop[str]) -> Sequence[str]:
        most = loop.step.most_trips
        if loop.number is not None:
            self.open("for (;;)" if most is None else f"while (t < {extent(most)})")
            return []
        self.open("for (long t = 0; t < trips;)")
        self.line(f"const long k = {'trips - 1 - t' if loop.params['reverse'] else 't'}; (void)k;")
        return [_row_at(*pair, "k") for pair in zip(loop.scanned, loop.scanned_kinds, strict=True)]

    def test(self, loop: Loop[str], given: Sequence[str]) -> None:
        self.line("uint8_t again;")
        self.body(0, given, ["&again"])
        self.line("if (!again) break;")
        for line in one_more(_growing(loop)):
            self.line(line)

    def trip(self, loop: Loop[str], given: Sequence[str]) -> None:
        index = "k" if loop.number is None else "t"
        pairs = zip(loop.stacks, loop.stacked_kinds, strict=True)
        rows = [_row_at(place, t, index) for place, t in pairs]
        following = [f"next{i}" for i, _ in enumerate(loop.ends)]
        self.body(-1, given, [*following, *rows])
        for i, _ in enumerate(loop.ends):
            self.line(f"now{i} = next{i}; next{i} = other{i}; other{i} = (char *)now{i};")
        cost = sum(map(flops_of, self.item.step.eqn.bodies))
        cost = max(_LEAST, typical(single_row_size(cost)))
        trips = 1 << (max(_UNWATCHED // cost, 1).bit_length() - 1)
        stop = self.writer.use("pg_stop")
        self.line(f"if (!(++t & {trips - 1}) && {stop} && {stop}()) return -1;")

    def end(self, loop: Loop[str]) -> None:
        for i, (type, place) in enumerate(zip(loop.kinds, loop.ends, strict=True)):
            self.line(f"memcpy({place}, now{i}, {extent(type.nbytes)});")
        if loop.number is not None:
            self.line(f"*(int64_t *){loop.number} = t;")


def _growing(loop: Loop[str]) -> dict[str, str]:
    """Return the stacks that grow, with the sizes of their rows in bytes."""
    pairs = zip(loop.stacks, loop.stacked_kinds, strict=True)
    return {place: _row(t) for place, t in pairs if is_open(t.shape)}


def _row(stack: TensorType) -> str:
    """Return the size in bytes of one row of a stack."""
    return extent(prod(stack.shape[1:]) * stack.dtype.itemsize)


def _row_at(place: str, stack: TensorType, index: str) -> str:
    """Return a pointer to a row of a stack."""
    return f"((char *){place} + {index} * {_row(stack)})"


# Padding in bytes behind the last row.
_BEHIND = 64
# Initial capacity in rows.
_FIRST = 16
# Return code for failed allocation.
_NO_MEMORY = 2

FUNCTIONS = "#include <stdlib.h>"


def wrapper_function(name: str, within: str, arguments: str, places: Sequence[str]) -> Function:
    """Return a function that calls another one, with stack pointers at these places."""
    lines = [
        *(f"    {place} = 0;" for place in places),
        f"    const int failed = {within}(a, w);",
        *(f"    free({place});" for place in places),
        "    return failed;",
    ]
    return Function(f"int {name}({arguments})", lines, is_public=True)


def one_more(stacks: Mapping[str, str]) -> Iterator[str]:
    """Yield statements that ensure space for row `t` of stacks of rows of these sizes.

    `room` is their capacity.
    """
    if stacks:
        yield f"if (t == room) {{ room = room ? 2 * room : {_FIRST};"
        for place, row in stacks.items():
            yield f"    {reallocation(place, 'room', row)}"
        yield "}"


def reallocation(place: str, count: str, row: str) -> str:
    """Return a statement that reallocates a stack for so many rows."""
    size = f"(size_t){count} * {row} + {_BEHIND}"
    return (
        f"{{ char *const more = realloc({place}, {size}); if (!more) return {_NO_MEMORY}; "
        f"{place} = more; }}"
    )
