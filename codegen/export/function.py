"""Writes one function of C: what it takes, what it computes step by step, and what it needs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import final

import numpy as np

from primgraph.codegen.emit.titles import called
from primgraph.codegen.export.control import control, declare
from primgraph.codegen.export.formulas import formula, kind_of
from primgraph.codegen.export.needed import needed
from primgraph.codegen.export.nest import Loops
from primgraph.codegen.export.places import Place, Room, Tables, Workspace, number
from primgraph.codegen.export.product import product
from primgraph.codegen.export.unspelled import unspelled
from primgraph.codegen.export.words import LIBRARY, Names, behind, remark
from primgraph.codegen.native import parts
from primgraph.codegen.native.call_lines import Call
from primgraph.codegen.native.items import (
    Blocks,
    Control,
    Item,
    Nest,
    Nests,
    Node,
    Outside,
    Product,
    Routine,
)
from primgraph.codegen.native.routines import routine
from primgraph.codegen.native.source import made_by
from primgraph.codegen.native.spellings import C_TYPES, CODES, type_name
from primgraph.codegen.plan.schedule import Step
from primgraph.ir.types import TensorType
from primgraph.source import Source

_WORD = re.compile(r"[A-Za-z_]\w*")
_RETURN, _COMMENT = re.compile(r"\breturn \w"), re.compile(r"/\*.*?\*/")
_CAST = re.compile(r"\((?:const )?(\w+) \*\)(&?[A-Za-z_]\w*)(?![\w\[(.-])")
_DECLARES = re.compile(
    r"(?:\*|\b(?:double|float|int|long|bool|size_t|u?int\d+_t) )([A-Za-z_]\w*) *[=;,\[]"
    r"|, ([A-Za-z_]\w*) = "
)
# Memory that a function of whole arrays asks for, with its type.
_ROOM = re.compile(r"\((?:const )?(\w+) \*\)@(\d+)@")
# Bytes of arrays that a function keeps on the stack; larger ones, and more, are in the workspace.
STACK = 2048
# Steps in one function: compilers take more than linear time for longer ones.
CHUNK = 400
_INDENT = "    "


@final
@dataclass(slots=True)
class Part:
    """A function that does some of the items: its lines, and pointers into the workspace."""

    name: str
    lines: list[str] = field(default_factory=list)
    pointers: dict[str, str] = field(default_factory=dict)
    # The expressions of places that something was written with.
    asked: set[str] = field(default_factory=set)
    stack: int = 0

    @property
    def is_watched(self) -> bool:
        """Whether something in it may find that an element is wrong."""
        return any("&bad" in _COMMENT.sub("", line) for line in self.lines)

    @property
    def can_fail(self) -> bool:
        return self.is_watched or any(_RETURN.search(_COMMENT.sub("", line)) for line in self.lines)


@final
@dataclass(slots=True)
class Scope:
    """The items of a graph, or of a body, and where their values are."""

    plan: Nests
    names: Mapping[int, str]
    places: dict[int, Place]
    items: Sequence[Item | None]
    read: Set[int]
    given: dict[int, list[Room]] = field(default_factory=dict)
    at: int = 0


@final
class Writer:
    """The statements of a function.

    `names` are those that have not been handed out to parameters; `tables` are those of the file,
    which calls BLAS only if `blas`.
    """

    def __init__(
        self, plan: Nests, names: Names, tables: Tables, own: str, blas: bool = False
    ) -> None:
        self.names, self.tables, self.own, self.blas = names, tables, own, blas
        self.workspace = Workspace()
        self.work = names.fresh("work")
        self.parts: list[Part] = []
        self.depth = 1
        self.said: Source | None = None
        names.taken.add("bad")
        self.loops = names.loops(36)
        names.taken.update(self.loops)
        self.top = self.scope = Scope(plan, hints_of(plan), {}, *needed(plan))
        # Values that several parts of the function need, and where these are.
        self.crossing: set[int] = set()
        # C that users have given for primitives of theirs.
        self.codes: dict[str, None] = {}
        self.rooms: dict[int, Room] = {}

    def written(self, places: Mapping[int, Place]) -> None:
        """Write everything; `places` are those of inputs and results."""
        plan = self.top.plan
        self.top.places.update(places)
        groups = _groups(plan)
        self.crossing = _crossing(plan, groups) - places.keys()
        for k, group in enumerate(groups):
            name = f"{self.own}_part{k + 1}" if len(groups) > 1 else self.own
            self.parts.append(Part(name))
            self.said = None
            for at in group:
                self.item(at)

    @property
    def can_fail(self) -> bool:
        """Whether the function returns what tells of a failure."""
        return any(part.can_fail for part in self.parts)

    # What nests, products and loops write with.

    def line(self, text: str) -> None:
        self.parts[-1].lines += _wrapped(text, self.depth)

    def open(self, head: str) -> None:
        self.line(f"{head} {{" if head else "{")
        self.depth += 1
        self.names.open()

    def open_loop(self, hint: str, bound: str) -> str:
        """Open a loop of so many trips; the name of its variable, which is that of no other."""
        self.names.open()
        name = self.names.fresh(hint)
        self.line(f"for (long {name} = 0; {name} < {bound}; {name}++) {{")
        self.depth += 1
        return name

    def mark(self) -> int:
        """Where the next line will be."""
        return len(self.parts[-1].lines)

    def drop_unused(self, mark: int, name: str) -> None:
        """Take back the line before `mark`, which declares a name, if none behind it has that."""
        lines = self.parts[-1].lines
        if not any(re.search(rf"\b{name}\b", line) for line in lines[mark:]):
            del lines[mark - 1]

    def close(self, tail: str = "}") -> None:
        self.names.close()
        self.depth -= 1
        self.line(tail)

    def reopen(self) -> None:
        """Go on in a block that what closed the last one has opened."""
        self.depth += 1
        self.names.open()

    def say(self, source: Source | None) -> None:
        """A comment with the user's line, where it is another one than before."""
        if source is None or source == self.said or not source.is_told:
            return
        self.said = source
        line = "" if source.is_derived else source.text
        self.line(remark(f"{source}  {line}".rstrip()))

    def place(self, value: int) -> Place:
        if value in self.rooms and self.scope is self.top:
            return self.crossed(value)
        found = self.scope.places.get(value)
        if found is not None:
            self.parts[-1].asked.add(found.text)
        if found is None and not self.type(value).size:
            return Place("NULL", False)
        if found is None:
            array = self.scope.plan.constants[value]
            found = self.scope.places[value] = self.tables.place(
                array, self.hint(value), self.names
            )
        return found

    def crossed(self, value: int) -> Place:
        """The place of what several parts of the function need."""
        room, type = self.rooms[value], self.top.plan.types[value]
        if type.size == 1:
            return Place(f"{self.work}->{room.member}[{room.first}]", True)
        name = self.top.places[value].text
        head = f"{kind_of(type.dtype)} *const {name} = "
        self.parts[-1].pointers[name] = f"{head}{self.room(room)};"
        return Place(name, False)

    def type(self, value: int) -> TensorType:
        return self.scope.plan.types[value]

    def same(self, value: int) -> str:
        """The number that all elements of a constant are; empty for anything else."""
        array = self.scope.plan.constants.get(value)
        if array is None or array.size == 0:
            return ""
        first = array.reshape(-1)[:1]
        return (
            number(first[0], array.dtype) if array.tobytes() == first.tobytes() * array.size else ""
        )

    def hints(self, plan: Nests) -> dict[int, str]:
        """What the user calls values of a body."""
        return hints_of(plan)

    def hint(self, value: int) -> str:
        return self.scope.names.get(value, "")

    def name(self, hint: str) -> str:
        return self.names.fresh(hint)

    def function(self, node: Node) -> str:
        """The function of one element that a node calls."""
        dtype = self.type(node.value).dtype
        name = node.name + ("f" if dtype.itemsize == 4 else "")
        if name in LIBRARY:
            return name
        own = f"pg_{node.name}_{type_name(dtype)}"
        if not parts.needed(own):
            assert node.step is not None
            raise unspelled(node.step, self.own)
        return own

    # Memory.

    def take(self, at: int) -> None:
        """Make places for what an item leaves in memory."""
        scope = self.scope
        item = scope.items[at]
        for v in dict.fromkeys(made_by(item)) if item is not None else ():
            if v in scope.places:
                continue
            type, hint = self.type(v), self.hint(v)
            last = max(scope.plan.last.get(v, at), at)
            if scope is self.top and v in self.crossing and type.size:
                self.rooms[v] = room = self.workspace.take(type)
                scope.given.setdefault(last, []).append(room)
                scope.places[v] = Place(self.names.fresh(hint), False)
            else:
                scope.places[v] = self.new(type, hint, last)

    def new(self, type: TensorType, hint: str, last: int = -1) -> Place:
        """A place for an array that is needed up to an item, by default the current one."""
        if type.size == 0:
            return Place("NULL", False)
        name = self.names.fresh(hint)
        if type.size == 1:
            return Place(name, True, is_declared=False)
        kind, part = kind_of(type.dtype), self.parts[-1]
        if part.stack + type.nbytes <= STACK:
            part.stack += type.nbytes
            self.line(f"{kind} {name}[{extents(type)}];")
            return Place(name, False)
        room = self.workspace.take(type)
        self.scope.given.setdefault(max(last, self.scope.at), []).append(room)
        self.line(f"{kind} *const {name} = {self.room(room)};")
        return Place(name, False)

    def room(self, room: Room) -> str:
        return behind(f"{self.work}->{room.member}", room.first)

    def give(self, at: int) -> None:
        for room in self.scope.given.pop(at, ()):
            self.workspace.give(room)

    # Items.

    def item(self, at: int) -> None:
        item = self.scope.items[at]
        self.scope.at = at
        if item is None:
            self.give(at)
            return
        if isinstance(item, Outside):
            raise unspelled(item.step, self.own)
        self.say(_source(item))
        self.take(at)
        if isinstance(item, Nest):
            for node in item.nodes:
                if node.kind == "text" and node.step is not None and formula(node.step) is None:
                    raise unspelled(node.step, self.own)
            self.use(*(node.step for node in item.nodes))
            Loops(self, item).write()
        elif isinstance(item, Product):
            product(self, item)
        elif isinstance(item, Control):
            control(self, item)
        elif isinstance(item, Routine):
            self.routine(item)
        self.give(at)

    def use(self, *steps: Step | None) -> None:
        """Take along what users have given for these steps."""
        self.codes.update(dict.fromkeys([CODES[s.op] for s in steps if s and s.op in CODES]))

    def routine(self, item: Routine) -> None:
        """A call of a function on whole arrays."""
        lines = routine(item.step)
        assert lines is not None
        self.use(item.step)
        for v in item.values:
            declare(self, self.place(v), self.type(v))
        values, count = (*item.operands, *item.values), len(item.operands)
        kinds = [kind_of(self.type(v).dtype) for v in values]
        pointers = [self.address(v) for v in values]
        rooms: list[int] = []

        def written() -> list[str]:
            rooms.clear()
            call = Call(item.step, pointers[:count], pointers[count:], room)
            told = set(zip(pointers, kinds, strict=True))
            return [_uncast(line, told) for line in lines(call)]

        def room(size: int) -> str:
            rooms.append(size)
            return f"@{len(rooms) - 1}@"

        made = written()
        # What such lines declare may have the name of something of the user's.
        names = _declared(made)
        shadowed = [k for k, p in enumerate(pointers) if names.intersection(_WORD.findall(p))]
        if shadowed:
            self.open("")
        for k in shadowed:
            alias = self.names.fresh("given", "given")
            self.line(f"{'const ' if k < count else ''}{kinds[k]} *const {alias} = {pointers[k]};")
            pointers[k] = alias
        made = written() if shadowed else made
        own = len(made) > 1
        if own:
            self.open("")
        for line in made:
            self.line(_ROOM.sub(lambda found: self.scratch(found[1], rooms[int(found[2])]), line))
        for _ in range(own + bool(shadowed)):
            self.close()

    def address(self, value: int) -> str:
        """A pointer to the elements of a value, of a number that is constant to one like it."""
        place = self.place(value)
        if value in self.scope.plan.constants and place.is_number:
            name = self.names.fresh("", "given")
            self.line(f"const {kind_of(self.type(value).dtype)} {name} = {place.text};")
            return f"&{name}"
        return place.pointer

    def scratch(self, kind: str, size: int) -> str:
        """Memory of so many bytes for the current item, for elements of that type of C."""
        dtype = next(
            np.dtype(name) for name, told in C_TYPES.items() if told == kind and name != "b1"
        )
        room = self.workspace.take(TensorType((-(-size // dtype.itemsize),), dtype))
        self.scope.given.setdefault(self.scope.at, []).append(room)
        return self.room(room)

    def body(self, plan: Nests, places: Mapping[int, Place]) -> None:
        """Write the items of a body, between what is written before and behind it."""
        around = self.scope
        self.scope = Scope(plan, hints_of(plan), dict(places), *needed(plan))
        for at in range(len(plan.items)):
            self.item(at)
        for left in self.scope.given.values():
            for room in left:
                self.workspace.give(room)
        self.scope = around


def _uncast(line: str, kinds: Set[tuple[str, str]]) -> str:
    """A line without casts of pointers to what they point to, which is told in pairs."""
    return _CAST.sub(lambda m: m[2] if (m[2], m[1]) in kinds else m[0], line)


def _declared(lines: Sequence[str]) -> set[str]:
    """The names that lines may declare."""
    return {name for line in lines for pair in _DECLARES.findall(line) for name in pair if name}


def extents(type: TensorType) -> str:
    return " * ".join(map(str, type.shape)) or "1"


def hints_of(plan: Nests) -> dict[int, str]:
    """What the user calls values."""
    steps = plan.schedule
    return called(steps, (), ("",) * len(steps.outputs))


def _source(item: Item) -> Source | None:
    """The user's line that an item begins with."""
    if not isinstance(item, Nest):
        return None if isinstance(item, Blocks) else item.step.source
    steps = [n.step for n in item.nodes if n.step is not None]
    told = [s.source for s in steps if s.source is not None and s.source.is_told]
    return told[0] if told else None


def _groups(plan: Nests) -> list[list[int]]:
    """The places of items, in groups that are one function each."""
    groups: list[list[int]] = [[]]
    size = 0
    for at, item in enumerate(plan.items):
        weight = len(item.nodes) if isinstance(item, Nest) else 1
        if isinstance(item, Control):
            weight += sum(len(body.items) for body in item.bodies)
        if size and size + weight > CHUNK:
            groups.append([])
            size = 0
        size += weight
        groups[-1].append(at)
    return groups


def _crossing(plan: Nests, groups: Sequence[Sequence[int]]) -> set[int]:
    """What one group makes and another one reads, or adds to."""
    group_of = {at: k for k, group in enumerate(groups) for at in group}
    first: dict[int, int] = {}
    found = set()
    for at, item in enumerate(plan.items):
        for v in made_by(item):
            begin = group_of[first.setdefault(v, at)]
            last = max(plan.last.get(v, at), at)
            if {begin, group_of[at], group_of.get(last, begin)} != {begin}:
                found.add(v)
    return found


def _wrapped(text: str, depth: int) -> list[str]:
    """A statement, in two lines where one would be too long."""
    line = _INDENT * depth + text
    if len(line) <= 100 or text.startswith("/*") or " = " not in text:
        return [line]
    head, _, rest = text.partition(" = ")
    lines, row = [_INDENT * depth + f"{head} ="], ""
    width = 100 - len(_INDENT) * (depth + 1)
    for word in rest.split(" "):
        if row and len(row) + 1 + len(word) > width:
            lines.append(_INDENT * (depth + 1) + row)
            row = word
        else:
            row = f"{row} {word}" if row else word
    return [*lines, _INDENT * (depth + 1) + row]
