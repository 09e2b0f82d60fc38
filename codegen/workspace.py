"""The workspace of a kernel: an arena with buffers in it, and views that are made once and kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

from primgraph.codegen.arena import ALIGN, Arena
from primgraph.codegen.layout import Layout, row_major
from primgraph.codegen.literals import dtype_text, shape_text
from primgraph.codegen.module import MANY, Function, tuple_text
from primgraph.codegen.regions import Region
from primgraph.codegen.schedule import Step
from primgraph.codegen.scratch import object_bytes
from primgraph.ir.types import DType, Shape, TensorType

# Lines in one function that makes a workspace.
_SETUP = 1000

# The places of a thing in the lists of a workspace, and what a block of a loop is noted with.
_SLOT = 16
_BLOCK = 184


@dataclass(slots=True)
class Place:
    """Where a value is: the name of an array, which NumPy's broadcasting may have to repeat.

    `plain` tells an array that is not a view: a feed, a constant, a buffer or a result.
    `scalar` is the number that all elements equal, for a constant. `full` is the name in full
    shape, once that has been asked for. `strides` count elements; None is row-major order.
    """

    name: str
    shape: Shape
    plain: bool = True
    scalar: Any = None
    full: str = ""
    strides: tuple[int, ...] | None = None

    @property
    def layout(self) -> Layout:
        """How the array lies in memory."""
        if self.strides is None:
            return row_major(self.shape)
        return Layout(self.shape, self.strides)


@final
@dataclass(eq=False, slots=True)
class Storage:
    """Bytes of the arena that belong to one value, and then to those that take over from it.

    They are its own from step `start` to step `stop`. `block` tells storage that each turn of a
    loop fills anew, with rows of a block or its share of a total; each thread that works on the
    loop has an arena of its own for these.
    """

    name: str
    type: TensorType
    offset: int
    start: int
    stop: int = -1
    block: bool = False

    @property
    def size(self) -> int:
        return self.type.nbytes


class Share(NamedTuple):
    """What a block adds to a total: the line that does it, for a step, from one buffer to another.

    `total` is None where that is a result.
    """

    line: str
    number: int
    step: Step
    part: Storage
    total: Storage | None


@final
@dataclass(slots=True)
class Loop:
    """The loop of a region while it is written.

    `whole` are the arrays that the loop fills row by row, by value, `totals` those that it adds
    to. Things in `slots` exist in two sizes: for a full block, and for what is left at the end.
    The lines of the `body` name other things too: its own, `inner`, and those `outside`. With
    threads, `shares` are added when all blocks before have added theirs.
    """

    region: Region
    number: int
    body: Function
    whole: dict[int, str] = field(default_factory=dict)
    totals: dict[int, str] = field(default_factory=dict)
    slots: dict[str, tuple[int, int]] = field(default_factory=dict)
    slices: dict[tuple[str, int], str] = field(default_factory=dict)
    touched: dict[int, None] = field(default_factory=dict)
    inner: set[str] = field(default_factory=set)
    outside: dict[str, None] = field(default_factory=dict)
    shares: list[Share] = field(default_factory=list)
    ones: dict[DType, str] = field(default_factory=dict)

    @property
    def rest(self) -> int:
        """The number of rows in the last block."""
        return self.region.extent % self.region.rows or self.region.rows


@final
class Table:
    """Things that are made once, in the order of their slots, and the arena beneath them."""

    def __init__(self) -> None:
        self.arena = Arena()
        # Bytes of arrays that lie elsewhere.
        self.ones = 0
        self._lines: list[str] = []
        # By the text that makes a buffer at some offset, slots and offsets of all such buffers.
        self._buffers: dict[str, list[tuple[int, int]]] = {}
        self._count = 0

    @property
    def kept(self) -> int:
        """About how many bytes all this takes up."""
        return self.arena.size + ALIGN + self._count * (object_bytes(2) + _SLOT) + self.ones

    def slot(self, text: str) -> int:
        """The place of one more thing, which `text` makes."""
        self._lines.append(f"w[{self._count}] = {text}")
        self._count += 1
        return self._count - 1

    def array(self, type: TensorType, offset: int) -> int:
        """The place of one more array, which lies in the arena."""
        text = f"np.ndarray({shape_text(type.shape)}, {dtype_text(type.dtype)}, a, o)"
        self._buffers.setdefault(text, []).append((self._count, offset))
        self._count += 1
        return self._count - 1

    def functions(
        self, name: str, groups: str, more: Sequence[str], poisoned: bool
    ) -> list[Function]:
        """Functions of which the last, `name()`, makes all things and returns them in groups.

        Those are what `groups` gives, and then each of `more`.
        """
        made = (f"groups.append({text})" for text in more)
        lines = [*self._buffer_lines(), *self._lines, *made]
        functions = []
        entry = Function(name, "")
        entry.line(f"a = aligned({self.arena.size})")
        if poisoned:
            entry.line("poison(a)")
        entry.line(f"w = [None] * {self._count}")
        entry.line(f"groups = {groups}")
        for start in range(0, len(lines), _SETUP):
            part = Function(f"{name}_{start // _SETUP}", "a, w, groups")
            for line in lines[start : start + _SETUP]:
                part.line(line)
            entry.line(f"{part.name}(a, w, groups)")
            functions.append(part)
        entry.line("return groups")
        return [*functions, entry]

    def _buffer_lines(self) -> list[str]:
        """Loops that make the buffers, which compile faster than a line for each."""
        lines = []
        for text, places in self._buffers.items():
            for start in range(0, len(places), _SETUP):
                slots, offsets = (
                    tuple_text(list(map(str, numbers)))
                    for numbers in zip(*places[start : start + _SETUP], strict=True)
                )
                lines.append(f"for k, o in zip({slots}, {offsets}): w[k] = {text}")
        return lines


@final
class Workspace:
    """What is made once: names in the order of their slots, and the lines that make them.

    What the blocks of loops are worked on in is a `space` of its own, because each thread needs
    one; a workspace begins with the space of the thread that calls the kernel.
    """

    def __init__(self) -> None:
        self.whole = Table()
        self.space = Table()
        self.slots: dict[str, int] = {}
        self.storages: list[Storage] = []
        self.loops: list[str] = []
        # Of each loop, how often it is gone through.
        self.turns: dict[int, int] = {}
        self.groups: list[list[str]] = []
        self._named: dict[tuple[int, TensorType, int, int | None], str] = {}

    @property
    def kept(self) -> int:
        """About how many bytes a workspace takes up: arenas, and the arrays that are in them."""
        blocks = sum(_BLOCK * count for count in self.turns.values())
        return self.whole.kept + (self.space.kept + blocks if self.loops else 0)

    def add(self, name: str, text: str) -> None:
        self.slots[name] = self.whole.slot(text)

    def view(self, name: str, of: str, template: str) -> None:
        """A view of a thing that is here already."""
        self.add(name, template.format(f"w[{self.slots[of]}]"))

    def block_view(self, loop: Loop, name: str, of: str, template: str) -> None:
        """A view of a thing that a loop has in two sizes."""
        one, other = (self.space.slot(template.format(f"w[{k}]")) for k in loop.slots[of])
        loop.slots[name] = one, other

    def block_ones(self, loop: Loop, name: str, dtype: DType) -> None:
        """A vector of ones, as many as a block has rows."""
        counts = (loop.region.rows, loop.rest)
        self.space.ones += sum(counts) * dtype.itemsize
        one, other = (self.space.slot(f"np.ones({n}, {dtype_text(dtype)})") for n in counts)
        loop.slots[name] = one, other

    # Buffers.

    def buffer(self, type: TensorType, step: int, fresh: str) -> Storage:
        """Storage for a value that step `step` makes; named `fresh` if it has no name yet."""
        offset = self.whole.arena.take(type.nbytes)
        key = (offset, type, -1, None)
        if key not in self._named:
            self._named[key] = fresh
            self.slots[fresh] = self.whole.array(type, offset)
        return self._noted(Storage(self._named[key], type, offset, step))

    def block_buffer(
        self, loop: Loop, type: TensorType, axis: int | None, step: int, fresh: str
    ) -> Storage:
        """Storage for a value in a loop; `axis` is where its rows are, None where it has none."""
        offset = self.space.arena.take(type.nbytes)
        key = (offset, type, loop.number, axis)
        if key not in self._named:
            self._named[key] = fresh
            one = other = self.space.array(type, offset)
            if axis is not None and loop.rest != loop.region.rows:
                less = (*type.shape[:axis], loop.rest, *type.shape[axis + 1 :])
                other = self.space.array(type.with_shape(less), offset)
            loop.slots[fresh] = one, other
        return self._noted(Storage(self._named[key], type, offset, step, block=True))

    def release(self, storage: Storage, step: int) -> None:
        storage.stop = step
        table = self.space if storage.block else self.whole
        table.arena.give(storage.offset, storage.size)

    def _noted(self, storage: Storage) -> Storage:
        self.storages.append(storage)
        return storage

    # How it is handed to the steps.

    def unpack(self, names: Sequence[str]) -> list[str]:
        """Lines that give local names to things of the workspace."""
        lines = []
        for start in range(0, len(names), MANY):
            group = list(names[start : start + MANY])
            lines.append(f"{tuple_text(group)[1:-1]} = w[{len(self.loops) + len(self.groups)}]")
            self.groups.append(group)
        return lines

    def loop_header(self, loop: Loop, blocks: str) -> list[str]:
        """The first lines of a loop; within, the things of its block have their names."""
        names = list(loop.slots)
        groups = [names[i : i + MANY] for i in range(0, len(names), MANY)]
        simple = len(groups) <= 1
        ones, others = (
            tuple_text([f"w[{loop.slots[n][k]}]" for n in names])
            if simple
            else tuple_text([tuple_text([f"w[{loop.slots[n][k]}]" for n in g]) for g in groups])
            for k in (0, 1)
        )
        region = loop.region
        self.turns[loop.number] = -(-region.extent // region.rows)
        self.loops[loop.number] = f"blocks({region.extent}, {region.rows}, {ones}, {others})"
        if simple:
            return [f"for s, {tuple_text(names) if names else '_'} in {blocks}:"]
        lines = [f"    {tuple_text(g)[1:-1]} = g[{k}]" for k, g in enumerate(groups)]
        return [f"for s, g in {blocks}:", *lines]

    def setup(self, poisoned: bool) -> list[Function]:
        """Functions that make a workspace: all its things, and from them the groups."""
        groups = []
        for group in self.groups:
            slots = tuple_text([str(self.slots[name]) for name in group])
            groups.append(f"[w[k] for k in {slots}]")
        if not self.loops:
            return self.whole.functions("workspace", "[]", groups, poisoned)
        return [
            *self.space.functions("space", "[]", self.loops, poisoned),
            *self.whole.functions("workspace", "space()", groups, poisoned),
        ]


def local_shape(shape: Shape, full: Shape, axis: int, rows: int) -> tuple[Shape, int | None]:
    """The shape of a block of what has `shape`, which NumPy repeats to `full`; and where to cut.

    No cut is needed where all rows are the same.
    """
    place = axis - (len(full) - len(shape))
    if place < 0 or shape[place] != full[axis]:
        return shape, None
    return (*shape[:place], rows, *shape[place + 1 :]), place
