"""Symbolic sizes in C: numbers, and expressions in size variables, known at call time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias, final

from primgraph.codegen.ir.arena import Arena
from primgraph.codegen.ir.extents import ATOM, SizeWriter
from primgraph.ir.dims import FLOOR, MAX, MIN, Dim, bounds

# Prefix of size variables, so that no other variable has the same name.
PREFIX = "n_"

# Helper functions that size expressions call.
HELPERS = {
    "pg_floor": """static inline long pg_floor(long x, long y) {
    const long q = y ? x / y : 0;
    return q - (y && x % y && (x < 0) != (y < 0));
}""",
    "pg_most": "static inline long pg_most(long x, long y) { return x > y ? x : y; }",
    "pg_least": "static inline long pg_least(long x, long y) { return x < y ? x : y; }",
}

FUNCTIONS = {FLOOR: "pg_floor({}, {})", MAX: "pg_most({}, {})", MIN: "pg_least({}, {})"}
_WRITER = SizeWriter(FUNCTIONS, divide="/", name=f"{PREFIX}{{}}")


def extent(n: int) -> str:
    """Return a size, stride or offset as a C operand."""
    return _WRITER.text(n).operand_code(ATOM) if type(n) is Dim else str(n)


def index_text(offset: int, along: Iterable[tuple[str, int]]) -> str:
    """Return the index of an element: an offset, and variables times strides.

    >>> index_text(4, [("i", 12), ("j", 1), ("k", 0)])
    'i * 12 + j + 4'
    """
    terms = [name if is_one(s) else f"{name} * {extent(s)}" for name, s in along if not is_zero(s)]
    return " + ".join(terms if terms and is_zero(offset) else [*terms, extent(offset)])


def divisors(extents: Iterable[int]) -> Iterator[int]:
    """Yield the divisors in sizes that may be zero."""
    for n in extents:
        for monomial, _ in n.terms if type(n) is Dim else ():
            for atom, _ in monomial:
                if isinstance(atom, str):
                    continue
                kind, x, y = atom
                yield from divisors((x, y))
                if kind == FLOOR and bounds(y)[0] < 1:
                    yield y


def is_zero(n: int) -> bool:
    """Return whether a size is known to be zero."""
    return type(n) is int and n == 0


def is_one(n: int) -> bool:
    """Return whether a size is known to be one."""
    return type(n) is int and n == 1


def is_few(n: int, most: int) -> bool:
    """Return whether a size is known to be at most `most`."""
    return type(n) is int and n <= most


# Size in bytes of a cache line, and of the widest vectors; of a page; and of a few lines, an odd
# number of them.
_LINE, _PAGE, _STAGGER = 64, 4096, 5 * 64

# A memory location: its first byte, or the size and index of a slot whose size is symbolic.
Place: TypeAlias = "int | tuple[Dim, int]"


@final
class Memory:
    """The workspace that functions share: an arena, followed by slots of symbolic size.

    Among the latter, only slots of equal size are reused for each other.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.arena = Arena()
        # By size: the number of slots, and the free ones.
        self.counts: dict[Dim, int] = {}
        self.free: dict[Dim, list[int]] = {}

    def take(self, size: int) -> Place:
        """Allocate `size` bytes."""
        if type(size) is not Dim:
            return self.arena.take(_staggered(size))
        whole = _round_to_line(size)
        if type(whole) is not Dim:
            return self.arena.take(_staggered(whole))
        free = self.free.setdefault(whole, [])
        if free:
            return whole, free.pop()
        count = self.counts.get(whole, 0)
        self.counts[whole] = count + 1
        return whole, count

    def give(self, place: Place, size: int) -> None:
        """Free the location that `take(size)` returned."""
        if isinstance(place, tuple):
            self.free[place[0]].append(place[1])
        else:
            whole = size if type(size) is not Dim else _round_to_line(size)
            self.arena.give(place, _staggered(whole))

    def text(self, place: Place) -> str:
        """Return the offset of a location, in terms of sizes and `macros`."""
        if not isinstance(place, tuple):
            return str(place)
        return f"{self.name}_at{list(self.counts).index(place[0])}({place[1]})"

    @property
    def size(self) -> int:
        """Return the total size in bytes."""
        return sum([size * count for size, count in self.counts.items()], self.arena.size)

    def macros(self) -> Iterator[str]:
        """Yield the macros that compute offsets."""
        begin: int = self.arena.size
        for k, (size, count) in enumerate(self.counts.items()):
            yield f"#define {self.name}_at{k}(k) ({extent(begin)} + (k) * {extent(size)})"
            begin = begin + size * count


def _staggered(size: int) -> int:
    """Return the bytes of a location: arrays of whole pages do not begin at equal cache lines.

    A loop along many such arrays would need more ways of the cache than there are.
    """
    return size + _STAGGER if size and size % _PAGE == 0 else size


def _round_to_line(size: int) -> int:
    return (size + (_LINE - 1)) // _LINE * _LINE
