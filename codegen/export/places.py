"""Where values are in a file of C: variables, arrays on the stack, workspace, tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from primgraph.codegen.export.formulas import kind_of
from primgraph.codegen.export.words import Names
from primgraph.codegen.native.spellings import literal
from primgraph.codegen.plan.arena import Arena
from primgraph.ir.types import DType, TensorType

_WIDTH = 100


@final
@dataclass(slots=True)
class Place:
    """Memory by an expression: of a number, or of an array whose elements stand behind it.

    A number that is not `declared` yet gets a declaration from what computes it.
    """

    text: str
    is_number: bool
    is_declared: bool = True

    def element(self, index: str) -> str:
        return self.text if self.is_number else f"{self.text}[{index}]"

    @property
    def pointer(self) -> str:
        """The address of the first element."""
        if not self.is_number:
            return self.text
        return self.text[1:] if self.text.startswith("*") else f"&{self.text}"


class Room(NamedTuple):
    """A stretch of an array of the workspace: where it begins in it, and in its bytes."""

    member: str
    first: int
    offset: int
    nbytes: int


@final
class Workspace:
    """A struct of one array for each type of elements, so that none is read as another type."""

    def __init__(self) -> None:
        self.arenas: dict[str, tuple[DType, Arena]] = {}

    def take(self, type: TensorType) -> Room:
        """Memory for an array."""
        is_flag = type.dtype.kind == "b"
        member = "flags" if is_flag else f"{type.dtype.kind}{8 * type.dtype.itemsize}"
        _, arena = self.arenas.setdefault(member, (type.dtype, Arena()))
        offset = arena.take(type.nbytes)
        return Room(member, offset // type.dtype.itemsize, offset, type.nbytes)

    def give(self, room: Room) -> None:
        self.arenas[room.member][1].give(room.offset, room.nbytes)

    @property
    def members(self) -> list[tuple[str, str, int]]:
        """The type, name and length of each array, those first that have to be aligned most."""
        listed = sorted(self.arenas.items(), key=lambda item: (-item[1][0].itemsize, item[0]))
        return [(kind_of(d), name, arena.size // d.itemsize) for name, (d, arena) in listed]

    @property
    def nbytes(self) -> int:
        """The size of the struct where numbers lie at multiples of their size."""
        size = sum(arena.size for _, arena in self.arenas.values())
        largest = max((d.itemsize for d, _ in self.arenas.values()), default=1)
        return -(-size // largest) * largest


@final
class Tables:
    """Arrays of constants, each once, as `static const` arrays."""

    def __init__(self) -> None:
        self.known: dict[tuple[Any, ...], str] = {}
        self.lines: dict[str, list[str]] = {}

    def place(self, array: np.ndarray[Any, Any], hint: str, names: Names) -> Place:
        """The place of a constant, which is an array, or a number by itself."""
        if array.size == 0:
            return Place("NULL", False)
        if array.size == 1:
            return Place(number(array.reshape(())[()], array.dtype), True)
        key = (array.dtype.str, array.size, array.tobytes())
        name = self.known.get(key)
        if name is None:
            name = self.known[key] = names.fresh(hint, "table", lasting=True)
            shape = " * ".join(map(str, array.shape))
            head = f"static const {kind_of(array.dtype)} {name}[{shape}] = {{"
            self.lines[name] = [head, *_rows(array), "};", ""]
        return Place(name, False)


def assigned(place: Place, text: str, dtype: DType, *, constant: bool) -> str:
    """A statement that gives a number, with its declaration if there is none yet."""
    if place.is_declared:
        return f"{place.text} = {text};"
    place.is_declared = True
    return f"{'const ' if constant else ''}{kind_of(dtype)} {place.text} = {text};"


def number(value: Any, dtype: DType) -> str:
    """A number, in parentheses if it has a sign."""
    if dtype.kind == "b":
        return "true" if value else "false"
    return literal(value, dtype)


def _rows(array: np.ndarray[Any, Any]) -> Iterator[str]:
    """The numbers of a table in lines, in which rows of a matrix begin anew."""
    width = array.shape[-1] if array.ndim > 1 else array.size
    flat = array.reshape(-1)
    for begin in range(0, flat.size, width):
        yield from filled(bare(number(x, array.dtype)) for x in flat[begin : begin + width])


def bare(text: str) -> str:
    """A number without the parentheses around its sign."""
    return text[1:-1] if text.startswith("(-") and text.count("(") == 1 else text


def filled(words: Iterable[str], indent: str = "    ", ends: str = ",") -> Iterator[str]:
    """Words in lines, with commas behind all; `ends` stands behind the last."""
    line = indent
    listed = list(words)
    for k, word in enumerate(listed):
        word += "," if k + 1 < len(listed) else ends
        if len(line) + len(word) >= _WIDTH and line.strip():
            yield line.rstrip()
            line = indent
        line += f"{word} "
    if line.strip():
        yield line.rstrip()
