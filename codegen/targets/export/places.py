"""Storage of values in C: variables, stack arrays, workspace, and constant tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np

from primgraph.codegen.ir.arena import Arena
from primgraph.codegen.ops.c.spellings import c_type, literal
from primgraph.codegen.targets.export.identifiers import Names, fill_lines
from primgraph.ir.assumptions import is_at_least
from primgraph.ir.dims import typical
from primgraph.ir.types import DType, Shape, TensorType


@final
@dataclass(slots=True)
class Place:
    """The C expression of a scalar or of an array's first element.

    A scalar that is not declared yet is declared by the statement that computes it. `use` is called
    whenever the expression is written.
    """

    name: str
    is_number: bool
    is_declared: bool = True
    use: Callable[[], object] | None = None

    @property
    def text(self) -> str:
        if self.use is not None:
            self.use()
        return self.name

    def element(self, index: str) -> str:
        return self.text if self.is_number else f"{self.text}[{index}]"

    @property
    def pointer(self) -> str:
        """Return the address of the first element."""
        if not self.is_number:
            return self.text
        return self.text.removeprefix("*") if self.name[0] == "*" else f"&{self.text}"


def kind_of(dtype: DType) -> str:
    """Return the C type of elements, as in a declaration."""
    return "bool" if dtype.kind == "b" else c_type(dtype) or ""


class Room(NamedTuple):
    """A range of a workspace array: its first element, and its offset and size in bytes."""

    member: str
    first: int
    offset: int
    nbytes: int


@final
class Pool:
    """Allocator of arrays of symbolic sizes, in elements.

    An array reuses a free one that is never smaller, else it is placed at the end.
    """

    def __init__(self) -> None:
        self.size = 0
        self.free: list[tuple[int, int]] = []
        self.taken: list[tuple[int, int]] = []

    def take(self, size: int) -> int:
        fitting = [room for room in self.free if is_at_least(room[1], size)]
        if fitting:
            room = min(fitting, key=lambda room: typical(room[1]))
            self.free.remove(room)
        else:
            room = self.size, size
            self.size = self.size + size
        self.taken.append(room)
        return room[0]

    def give(self, offset: int) -> None:
        room = next(room for room in self.taken if room[0] is offset or room[0] == offset)
        self.taken.remove(room)
        self.free.append(room)


@final
class Workspace:
    """Workspace arrays, one per element type, so that no memory is accessed as two types.

    They are members of a struct. With symbolic sizes they are consecutive, and arrays of `known_`
    sizes are separate.
    """

    def __init__(self, sized: bool) -> None:
        self.known = "known_" if sized else ""
        self.arenas: dict[str, tuple[DType, Arena]] = {}
        self.pools: dict[str, tuple[DType, Pool]] = {}

    def take(self, type: TensorType) -> Room:
        """Allocate an array."""
        is_flag = type.dtype.kind == "b"
        member = "flags" if is_flag else f"{type.dtype.kind}{8 * type.dtype.itemsize}"
        if type.names:
            _, pool = self.pools.setdefault(member, (type.dtype, Pool()))
            first = pool.take(type.size)
            return Room(member, first, first, 0)
        member = f"{self.known}{member}"
        _, arena = self.arenas.setdefault(member, (type.dtype, Arena()))
        offset = arena.take(type.nbytes)
        return Room(member, offset // type.dtype.itemsize, offset, type.nbytes)

    def give(self, room: Room) -> None:
        if room.member in self.pools:
            self.pools[room.member][1].give(room.offset)
        else:
            self.arenas[room.member][1].give(room.offset, room.nbytes)

    @property
    def members(self) -> list[tuple[str, str, int]]:
        """Return the type, name and length of each array, the most strictly aligned ones first."""
        return [(kind_of(d), name, length) for d, name, length in self._arrays()]

    def _arrays(self) -> list[tuple[DType, str, int]]:
        found = [(d, name, pool.size) for name, (d, pool) in self.pools.items()]
        found += [(d, name, a.size // d.itemsize) for name, (d, a) in self.arenas.items()]
        return sorted(found, key=lambda row: (-row[0].itemsize, row[1]))

    def offsets(self) -> dict[str, int]:
        """Return the offset in bytes of each array, by name."""
        found, begin = {}, 0
        for d, name, length in self._arrays():
            found[name] = begin
            begin = begin + length * d.itemsize
        return found

    @property
    def nbytes(self) -> int:
        """Return the total size, with arrays aligned to the size of their elements."""
        arrays = self._arrays()
        largest = max((d.itemsize for d, _, _ in arrays), default=1)
        size = sum([n * d.itemsize for d, _, n in arrays])
        return size if self.pools else -(-size // largest) * largest


@final
class Tables:
    """Constant arrays as `static const` tables, without duplicates.

    `used` has the names that are declared for all functions of a file, and used by one.
    """

    def __init__(self) -> None:
        self.known: dict[tuple[Any, ...], str] = {}
        self.lines: dict[str, list[str]] = {}
        self.used: set[str] = set()

    @property
    def null(self) -> Place:
        """Return the place of arrays without elements."""
        return Place("NULL", False, use=partial(self.used.add, "NULL"))

    def place(self, array: np.ndarray[Any, Any], hint: str, names: Names) -> Place:
        """Return the place of a constant: a table, or a literal for one element."""
        if array.size == 0:
            return self.null
        if array.size == 1:
            return Place(number(array.reshape(())[()], array.dtype), True)
        key = (array.dtype.str, array.size, array.tobytes())
        name = self.known.get(key)
        if name is None:
            name = self.known[key] = names.fresh(hint, "table", lasting=True, shared=True)
            shape = extents_product(array.shape)
            head = f"static const {kind_of(array.dtype)} {name}[{shape}] = {{"
            self.lines[name] = [head, *_rows(array), "};", ""]
        return Place(name, False, use=partial(self.used.add, name))


def extents_product(shape: Shape) -> str:
    """Return the product of sizes other than 1."""
    return " * ".join(str(n) for n in shape if n != 1) or "1"


def number(value: Any, dtype: DType) -> str:
    """Return a number in C, in parentheses if it has a sign."""
    if dtype.kind == "b":
        return "true" if value else "false"
    return literal(value, dtype)


def _rows(array: np.ndarray[Any, Any]) -> Iterator[str]:
    """Yield the lines of a table; each row of a matrix begins a new line."""
    width = array.shape[-1] if array.ndim > 1 else array.size
    flat = array.reshape(-1)
    for begin in range(0, flat.size, width):
        words = [bare(number(x, array.dtype)) for x in flat[begin : begin + width]]
        yield from fill_lines("    ", words, "    ", ",")


def bare(text: str) -> str:
    """Return a number without the parentheses around its sign."""
    return text[1:-1] if text.startswith("(-") and text.count("(") == 1 else text
