"""The page of one C function: parameters, statements and workspace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

from primgraph.base.user_lines import Source
from primgraph.codegen.ir.c_extents import is_zero
from primgraph.codegen.ir.extents import ADD
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ir.statements import Nests, values_written
from primgraph.codegen.ops.c.spellings import codes_of, template
from primgraph.codegen.targets.export.identifiers import Names, remark, wrap_statement
from primgraph.codegen.targets.export.places import (
    Place,
    Room,
    Tables,
    Workspace,
    extents_product,
    kind_of,
)
from primgraph.codegen.targets.export.scope import scope_of
from primgraph.codegen.targets.export.sizes import code, index, names_of, offset_address
from primgraph.ir.types import DType, TensorType

# Maximum size in bytes of stack arrays; further ones are in the workspace.
STACK = 2048


@final
@dataclass(slots=True)
class Part:
    """A function for some of the items: its lines, and pointers into the workspace.

    `used` has the names in its lines that are declared elsewhere.
    """

    name: str
    lines: list[str] = field(default_factory=list)
    pointers: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    # The arrays of the workspace that are used.
    members: set[str] = field(default_factory=set)
    stack: int = 0
    # Whether an element may set `bad`, and whether a statement returns.
    is_watched: bool = False
    returns: bool = False

    @property
    def can_fail(self) -> bool:
        return self.is_watched or self.returns


@final
class Page:
    """The statements of a function so far.

    `names` are the free names after parameters are assigned; `tables` are those of the file. It
    calls BLAS only if `blas`. With symbolic sizes the workspace is untyped.
    """

    def __init__(
        self,
        plan: Nests,
        names: Names,
        tables: Tables,
        own: str,
        blas: bool = False,
        sized: bool = False,
    ) -> None:
        self.names, self.tables, self.own, self.blas, self.sized = names, tables, own, blas, sized
        self.workspace = Workspace(sized)
        # The names of pointers to the workspace arrays.
        self.members: dict[str, str] = {}
        self.work = names.fresh("work")
        self.parts: list[Part] = []
        self.depth = 1
        self.said: Source | None = None
        names.taken.add("bad")
        self.loops = names.loops(36)
        names.taken.update(self.loops)
        self.top = self.scope = scope_of(plan, {})
        # Values that are live across parts of the function, and their places.
        self.crossing: set[int] = set()
        # User C for primitives.
        self.codes: dict[str, None] = {}
        self.rooms: dict[int, Room] = {}

    @property
    def can_fail(self) -> bool:
        """Return whether the function returns a status."""
        return any(part.can_fail for part in self.parts)

    # Interface for nests, products and loops.

    def line(self, text: str) -> None:
        self.parts[-1].lines += wrap_statement(text, self.depth)

    def open(self, head: str) -> None:
        self.line(f"{head} {{" if head else "{")
        self.depth += 1
        self.names.open()

    def open_for(self, variable: str, count: int) -> None:
        """Open a loop with that variable, and so many iterations."""
        self.open(f"for (long {variable} = 0; {variable} < {self.size(count)}; {variable}++)")

    def open_loop(self, hint: str, bound: str) -> str:
        """Open a loop of `bound` iterations; return the unique name of its variable."""
        self.names.open()
        name = self.names.fresh(hint)
        self.line(f"for (long {name} = 0; {name} < {bound}; {name}++) {{")
        self.depth += 1
        return name

    def store(
        self, place: Place, at: str, text: str, dtype: DType, *, constant: bool = False
    ) -> None:
        """Write the assignment of an element, which declares a scalar that is not declared yet."""
        kind = "" if place.is_declared else f"{'const ' if constant else ''}{kind_of(dtype)} "
        place.is_declared = True
        self.line(f"{kind}{place.element(at)} = {text};")

    def watch(self) -> None:
        """Declare `bad`, which the elements that follow may set."""
        self.parts[-1].is_watched = True

    def fail(self) -> None:
        """Let the function return a status, as a statement does."""
        self.parts[-1].returns = True

    def close(self, tail: str = "}") -> None:
        self.names.close()
        self.depth -= 1
        self.line(tail)

    def reopen(self) -> None:
        """Continue in a block that the closing line of the last one has opened."""
        self.depth += 1
        self.names.open()

    def place(self, value: int) -> Place:
        if value in self.rooms and self.scope is self.top:
            return self.live_place(value)
        found = self.scope.places.get(value)
        if found is None and is_zero(self.type(value).size):
            return self.tables.null
        if found is None:
            array = self.scope.plan.constants[value]
            found = self.scope.places[value] = self.tables.place(
                array, self.hint(value), self.names
            )
        return found

    def live_place(self, value: int) -> Place:
        """Return the place of a value that is live across parts."""
        room, type = self.rooms[value], self.top.plan.types[value]
        if type.size == 1:
            return Place(f"{self.member(room)}[{self.size(room.first)}]", True)
        name = self.top.places[value].name
        head = f"{kind_of(type.dtype)} *const {name} = "
        self.parts[-1].pointers[name] = f"{head}{self.room(room)};"
        return Place(name, False)

    def type(self, value: int) -> TensorType:
        return self.scope.plan.types[value]

    def hint(self, value: int) -> str:
        return self.scope.names.get(value, "")

    # Memory.

    def take(self, at: int) -> None:
        """Create places for the values that an item stores."""
        scope = self.scope
        item = scope.items[at]
        for v in sorted({*values_written(item)}) if item is not None else ():
            if v in scope.places:
                continue
            type, hint = self.type(v), self.hint(v)
            last = max(scope.plan.last.get(v, at), at)
            if scope is self.top and v in self.crossing and not is_zero(type.size):
                self.rooms[v] = room = self.workspace.take(type)
                scope.given.setdefault(last, []).append(room)
                scope.places[v] = Place(self.names.fresh(hint), False)
            else:
                scope.places[v] = self.new(type, hint, last)

    def new(self, type: TensorType, hint: str, last: int = -1) -> Place:
        """Return a place for an array that is live until item `last`, default the current one."""
        if is_zero(type.size):
            return self.tables.null
        name = self.names.fresh(hint)
        if type.size == 1:
            return Place(name, True, is_declared=False)
        kind, part = kind_of(type.dtype), self.parts[-1]
        if not type.names and part.stack + type.nbytes <= STACK:
            part.stack += type.nbytes
            self.line(f"{kind} {name}[{extents_product(type.shape)}];")
            return Place(name, False)
        self.line(f"{kind} *const {name} = {self.allocate_workspace(type, last)};")
        return Place(name, False)

    def allocate_workspace(self, type: TensorType, last: int = -1) -> str:
        """Allocate workspace until item `last`, by default the current one."""
        room = self.workspace.take(type)
        self.scope.given.setdefault(max(last, self.scope.at), []).append(room)
        return self.room(room)

    def room(self, room: Room) -> str:
        first = "0" if is_zero(room.first) else self.size(room.first)
        return offset_address(self.member(room), first)

    def member(self, room: Room) -> str:
        """Return the workspace array that contains a room."""
        self.use(self.work)
        if not self.sized:
            return f"{self.work}->{room.member}"
        self.parts[-1].members.add(room.member)
        name = self.members.get(room.member) or self.names.fresh(room.member, lasting=True)
        return self.members.setdefault(room.member, name)

    def give(self, at: int) -> None:
        for room in self.scope.given.pop(at, ()):
            self.workspace.give(room)

    # Names of other places.

    def use(self, name: str) -> str:
        """Return a name that the file declares elsewhere, or a call of the user's function."""
        self.parts[-1].used.add(name)
        self.tables.used.add(name)
        return name

    def size(self, n: int, rank: int = ADD) -> str:
        """Return the text of a size, in parentheses if its precedence is below `rank`."""
        for name in names_of(n):
            self.use(name)
        return code(n, rank)

    def index(self, offset: int, variables: Sequence[str], strides: Sequence[int]) -> str:
        """Return the index expression of an element, from loop variables and their strides."""
        for n in (offset, *strides):
            self.size(n)
        return index(offset, variables, strides)

    # Items.


def use_code(page: Page, *steps: Step | None) -> None:
    """Include the user C of these steps."""
    for step in filter(None, steps):
        for own in codes_of([step]):
            page.codes[own] = None
            page.use(template(step) or "")


def fill(page: Page, place: Place, text: str, type: TensorType) -> None:
    """Write assignments of one number to all elements."""
    if place.is_number:
        page.store(place, "0", text, type.dtype)
    elif not is_zero(type.size):
        page.open_for(page.loops[0], type.size)
        page.store(place, page.loops[0], text, type.dtype)
        page.close()


def write_source_comment(page: Page, source: Source | None) -> None:
    """Write a comment with the user's source line, if it differs from the previous one."""
    if source is None or source == page.said or not source.is_readable:
        return
    page.said = source
    line = "" if source.is_derived else source.text
    page.line(remark(f"{source}  {line}".rstrip(), page.depth))


def declare(page: Page, place: Place, type: TensorType, begin: str = "") -> None:
    """Declare a scalar that several statements assign."""
    if place.is_number and not place.is_declared:
        place.is_declared = True
        page.line(f"{kind_of(type.dtype)} {place.text}{begin};")


def pointers(page: Page, part: Part) -> list[str]:
    """Return the declarations of pointers to the arrays of an untyped workspace in a part."""
    found, space, work = [], page.workspace, page.work
    offsets = space.offsets()
    for kind, member, _ in space.members if page.sized else ():
        if member not in part.members:
            continue
        at = offsets[member]
        part.used |= {work, *names_of(at)}
        page.tables.used |= names_of(at)
        place = work if is_zero(at) else f"(void *)((char *){work} + {code(at)})"
        found += wrap_statement(f"{kind} *const {page.members[member]} = {place};", 1)
    return found
