"""The code that makes a workspace: an arena with buffers in it, and views that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from primgraph.codegen.ir.places import (
    Argument,
    Buffer,
    Life,
    Ones,
    Place,
    Result,
    Stack,
    View,
    loop_of,
    name_of,
)
from primgraph.codegen.ir.program import Plan
from primgraph.codegen.ir.statements import Loop
from primgraph.codegen.ir.views import rowwise_view, tuple_text, view_text
from primgraph.codegen.ops.spelling.literals import dtype_text, shape_text
from primgraph.codegen.targets.text.module import MANY, Function, Line
from primgraph.ir.types import TensorType
from primgraph.ir.views import Reshape

# Maximum number of lines of a function that makes a workspace.
_SETUP = 1000


@final
class Table:
    """Objects that are made once, in the order of their slots, and their arena."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._lines: list[str] = []
        # By constructor text: slots and offsets of the buffers that it makes.
        self._buffers: dict[str, list[tuple[int, int]]] = {}
        self._count = 0

    def slot(self, text: str) -> int:
        """Return the slot of a new object, which `text` makes."""
        self._lines.append(f"w[{self._count}] = {text}")
        self._count += 1
        return self._count - 1

    def array(self, type: TensorType, offset: int) -> int:
        """Return the slot of a new array in the arena."""
        text = f"np.ndarray({shape_text(type.shape)}, {dtype_text(type.dtype)}, a, o)"
        self._buffers.setdefault(text, []).append((self._count, offset))
        self._count += 1
        return self._count - 1

    def functions(
        self, name: str, groups: str, more: Sequence[str], poisoned: bool
    ) -> list[Function]:
        """Return functions, the last of which, `name()`, makes all objects and returns groups.

        The groups are the list `groups`, and then each of `more`.
        """
        made = (f"groups.append({text})" for text in more)
        lines = [*self._buffer_lines(), *self._lines, *made]
        functions = []
        entry = Function(name, "")
        entry.line(f"a = aligned({self.size})")
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
        entry.returns(["groups"])
        return [*functions, entry]

    def _buffer_lines(self) -> list[str]:
        """Return loops that make the buffers, which compile faster than one line each."""
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
    """The objects of a workspace: names by slot, and the lines that make them.

    Blocks of loops work in a `space`, as each thread needs its own; a workspace begins with the
    space of the calling thread.
    """

    def __init__(self, plan: Plan) -> None:
        self.whole, self.space = Table(plan.arena), Table(plan.space)
        self.slots: dict[str, int] = {}
        # For each loop, its objects in two sizes: for a full block, and for the last one.
        self.blocks: list[dict[str, tuple[int, int]]] = [{} for _ in plan.loops]
        self.loops = [""] * len(self.blocks)
        self.groups: list[list[str]] = []
        regions = plan.regions
        # The number of rows in the last block of each loop.
        self._rest = [r.extent % r.rows or r.rows for r in regions]
        self._rows = [r.rows for r in regions]
        for place in plan.arrays:
            if place.life is Life.KEPT:
                self.slots[name_of(place)] = self._allocate_slot(place)
            else:
                loop = loop_of(place)
                self.blocks[loop][name_of(place)] = self._in_two_sizes(place, loop)

    def _allocate_slot(self, place: Buffer | Stack | View | Ones) -> int:
        if isinstance(place, Buffer):
            return self.whole.array(place.type, place.offset)
        if isinstance(place, Stack):
            row = place.type.shape[1:], place.type.dtype
            return self.whole.slot(f"Growing({shape_text(row[0])}, {dtype_text(row[1])})")
        assert isinstance(place, View)
        name = name_of(place.of)
        of = f"w[{self.slots[name]}]" if name in self.slots else name
        return self.whole.slot(view_text(place.how, of))

    def _in_two_sizes(self, place: Buffer | Stack | View | Ones, loop: int) -> tuple[int, int]:
        rows, rest, space = self._rows[loop], self._rest[loop], self.space
        match place:
            case Buffer(type=type, offset=offset, axis=axis):
                one = other = space.array(type, offset)
                if axis is not None and rest != rows:
                    less = (*type.shape[:axis], rest, *type.shape[axis + 1 :])
                    other = space.array(type.with_shape(less), offset)
            case View(of=of, how=how):
                slots = self.blocks[loop][name_of(of)]
                one, other = (space.slot(view_text(how, f"w[{k}]")) for k in slots)
            case Ones(dtype=dtype):
                texts = (f"np.ones({n}, {dtype_text(dtype)})" for n in (rows, rest))
                one, other = map(space.slot, texts)
        return one, other

    # Interface to the steps.

    def unpack(self, names: Sequence[str]) -> list[str]:
        """Return lines that bind local names to objects of the workspace."""
        lines = []
        for start in range(0, len(names), MANY):
            group = list(names[start : start + MANY])
            lines.append(f"{tuple_text(group)[1:-1]} = w[{len(self.loops) + len(self.groups)}]")
            self.groups.append(group)
        return lines

    def loop_header(self, loop: Loop, blocks: str) -> list[Line]:
        """Return the first lines of a loop, which bind the names of its block's objects."""
        things, region = self.blocks[loop.number], loop.region
        names = list(things)
        groups = [names[i : i + MANY] for i in range(0, len(names), MANY)]
        simple = len(groups) <= 1
        ones, others = (
            tuple_text([f"w[{things[n][k]}]" for n in names])
            if simple
            else tuple_text([tuple_text([f"w[{things[n][k]}]" for n in g]) for g in groups])
            for k in (0, 1)
        )
        self.loops[loop.number] = f"blocks({region.extent}, {region.rows}, {ones}, {others})"
        if simple:
            return [Line(f"for s, {tuple_text(names) if names else '_'} in {blocks}:")]
        lines = [Line(f"{tuple_text(g)[1:-1]} = g[{k}]", -1, 1) for k, g in enumerate(groups)]
        return [Line(f"for s, g in {blocks}:"), *lines]

    def setup(self, poisoned: bool) -> list[Function]:
        """Return the functions that make a workspace: all its objects and groups of them."""
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


def row_view(plan: Plan, trip: tuple[int, int] | None, place: Place) -> str | None:
    """Return the view of a stack whose rows are `place` in each iteration, or None.

    Iterating over a view of a stack takes half of the time of making a view of each row.
    """
    if trip is None:
        return None
    if isinstance(place, View):
        of = row_view(plan, trip, place.of)
        if of is None or (isinstance(place.how, Reshape) and isinstance(place.of, View)):
            return None
        if not place.shape and _is_part_of_result(place):
            # Iteration over numbers copies them, before the iteration writes its results.
            return None
        how = rowwise_view(place.how)
        return None if how is None else view_text(how, of)
    begin, carries = sum(trip), trip[1]
    if isinstance(place, Argument) and place.number >= begin:
        found = place.number - begin
    elif isinstance(place, Result) and place.number >= carries:
        found = len(plan.arguments) - begin + place.number - carries
    else:
        return None
    # Stacks of scalars are iterated as 0-d arrays.
    return f"rows[{2 + found}]" if place.shape else None


def _is_part_of_result(place: Place) -> bool:
    """Return whether a place is a view of a result."""
    while isinstance(place, View):
        place = place.of
    return isinstance(place, Result)
