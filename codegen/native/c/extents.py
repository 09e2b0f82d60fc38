"""Extents as C has them: numbers, and expressions in variables for sizes that calls tell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TypeAlias, final

from primgraph.codegen.plan.storage.arena import Arena
from primgraph.ir.dims import FLOOR, MAX, Atom, Dim, Monomial, bounds

# Before the name of a size, so that no variable of functions has it.
PREFIX = "n_"

# The name of a size, or of what begins places.
READS_SIZES = re.compile(rf"\b{PREFIX}\w|_at\d+\(")

# What expressions may call, which the files that have them begin with.
HELPERS = (
    "static inline long pg_floor(long x, long y) {",
    "    const long q = y ? x / y : 0;",
    "    return q - (y && x % y && (x < 0) != (y < 0));",
    "}",
    "static inline long pg_most(long x, long y) { return x > y ? x : y; }",
    "static inline long pg_least(long x, long y) { return x < y ? x : y; }",
    "",
)


def extent(n: int) -> str:
    """An extent, stride or offset as an operand of C."""
    return _written(n) if type(n) is Dim else str(n)


@cache
def _written(dim: Dim) -> str:
    text = ""
    # What is added comes before what is taken away.
    for monomial, coefficient in sorted(dim.terms, key=lambda term: term[1] < 0):
        sign = " - " if coefficient < 0 else " + "
        product = _product(monomial, abs(coefficient))
        text = f"{text}{sign}{product}" if text else f"{'-' if coefficient < 0 else ''}{product}"
    return text if text.isidentifier() else f"({text})"


def _product(monomial: Monomial, number: int) -> str:
    factors = [_factor(atom) for atom, power in monomial for _ in range(power)]
    if number != 1 or not factors:
        factors.insert(0, str(number))
    return " * ".join(factors)


def _factor(atom: Atom) -> str:
    if isinstance(atom, str):
        return f"{PREFIX}{atom}"
    kind, x, y = atom
    if kind == FLOOR:
        plain = bounds(x)[0] >= 0 and bounds(y)[0] > 0
        return f"({extent(x)} / {extent(y)})" if plain else f"pg_floor({extent(x)}, {extent(y)})"
    return f"pg_{'most' if kind == MAX else 'least'}({extent(x)}, {extent(y)})"


def divisors(extents: Iterable[int]) -> Iterator[int]:
    """What extents are divided by that may be zero."""
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
    """Whether that is known to be zero."""
    return type(n) is int and n == 0


def is_one(n: int) -> bool:
    """Whether that is known to be one."""
    return type(n) is int and n == 1


def is_few(n: int, most: int) -> bool:
    """Whether an extent is known to be at most that."""
    return type(n) is int and n <= most


# The bytes of a line of the cache, and of the widest vectors.
_LINE = 64

# Where memory is: its first byte, or a row of places of one size, and which of them.
Place: TypeAlias = "int | tuple[Dim, int]"


@final
class Memory:
    """The memory that functions share: an arena, and behind it places whose size calls tell.

    Among these, only those of equal size follow each other in one place.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.arena = Arena()
        # By size: how many places there are, and those that nobody has.
        self.counts: dict[Dim, int] = {}
        self.free: dict[Dim, list[int]] = {}

    def take(self, size: int) -> Place:
        """A place of so many bytes."""
        if type(size) is not Dim:
            return self.arena.take(size)
        whole = _rounded(size)
        if type(whole) is not Dim:
            return self.arena.take(whole)
        free = self.free.setdefault(whole, [])
        if free:
            return whole, free.pop()
        count = self.counts.get(whole, 0)
        self.counts[whole] = count + 1
        return whole, count

    def give(self, place: Place, size: int) -> None:
        """Take back what `take(size)` gave."""
        if isinstance(place, tuple):
            self.free[place[0]].append(place[1])
        else:
            self.arena.give(place, size if type(size) is not Dim else _rounded(size))

    def text(self, place: Place) -> str:
        """The offset of a place, where sizes are known and `macros` stand before."""
        if not isinstance(place, tuple):
            return str(place)
        return f"{self.name}_at{list(self.counts).index(place[0])}({place[1]})"

    @property
    def size(self) -> int:
        """All bytes."""
        return sum([size * count for size, count in self.counts.items()], self.arena.size)

    def macros(self) -> Iterator[str]:
        """What offsets are made by."""
        begin: int = self.arena.size
        for k, (size, count) in enumerate(self.counts.items()):
            yield f"#define {self.name}_at{k}(k) ({extent(begin)} + (k) * {extent(size)})"
            begin = begin + size * count


def _rounded(size: int) -> int:
    return (size + (_LINE - 1)) // _LINE * _LINE
