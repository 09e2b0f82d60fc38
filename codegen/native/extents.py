"""Extents as C has them: numbers, and expressions in variables for sizes that calls tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from primgraph.ir.dims import FLOOR, MAX, Atom, Dim, Monomial, bounds

# Before the name of a size, so that no variable of functions has it.
PREFIX = "n_"

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


def is_few(n: int, most: int) -> bool:
    """Whether an extent is known to be at most that."""
    return type(n) is int and n <= most
