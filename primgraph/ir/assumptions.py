"""What cannot be decided about sizes while a graph is built, and is assumed until arrays are fed.

Rules ask here whether an extent is what it has to be. The answer is computed for known extents,
decided for those of which it holds for all sizes or for none, and else assumed to be yes. Nothing
is kept: the assumptions of a graph are what its type rules ask again. For the sizes of arrays that
are fed they are all checked, before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import gcd
from typing import final

from primgraph.ir.dims import Dim, bounds, remainder


@final
@dataclass(frozen=True, slots=True)
class Condition:
    """That `difference` is zero, or, where it is a `lower` bound, not negative."""

    difference: Dim
    lower: bool

    @property
    def names(self) -> frozenset[str]:
        return self.difference.names

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Whether it is so for these sizes, which have all names."""
        found = self.difference.at(sizes)
        return found >= 0 if self.lower else found == 0

    def sides(self) -> tuple[int, int]:
        """What is added, and what is taken away: the first is as large as the second, or larger."""
        above = sum(Dim(((m, c),)) if m else c for m, c in self.difference.terms if c > 0)
        below = sum(Dim(((m, -c),)) if m else -c for m, c in self.difference.terms if c < 0)
        return above, below

    def __str__(self) -> str:
        found = None if self.lower else remainder(self.difference)
        if found is not None:
            left, right = (str(x) if str(x).isidentifier() else f"({x})" for x in found[:2])
            return f"{left} % {found[1] if type(found[1]) is int else right} == 0"
        above, below = self.sides()
        if type(above) is Dim:
            return f"{above} {'>=' if self.lower else '=='} {below}"
        return f"{below} {'<=' if self.lower else '=='} {above}"


_noted: ContextVar[dict[Condition, None] | None] = ContextVar("assumptions", default=None)


@contextmanager
def noting() -> Iterator[dict[Condition, None]]:
    """A context that gives what is assumed within it, in order, once each."""
    found: dict[Condition, None] = {}
    before = _noted.get()
    try:
        _noted.set(found)
        yield found
    finally:
        _noted.set(before)


def note(conditions: Mapping[Condition, None]) -> None:
    """Assume again what was assumed when something was worked out that is known by now."""
    noted = _noted.get()
    if noted is not None:
        noted.update(conditions)


def _assumed(difference: Dim, lower: bool) -> bool:
    noted = _noted.get()
    if noted is not None:
        noted[Condition(_reduced(difference, lower), lower)] = None
    return True


def _reduced(difference: Dim, lower: bool) -> Dim:
    """The same condition without a common factor, so that equal ones are written alike."""
    terms = [(m, c) for m, c in difference.terms if m]
    factor = gcd(*(c for _, c in terms))
    number = dict(difference.terms).get((), 0)
    if lower:
        return Dim((*[(m, c // factor) for m, c in terms], *_number(number // factor)))
    if number % factor:
        factor = gcd(factor, number)
    sign = -1 if terms[0][1] < 0 else 1
    reduced = [(m, sign * c // factor) for m, c in terms]
    return Dim((*reduced, *_number(sign * number // factor)))


def _number(number: int) -> tuple[tuple[tuple[()], int], ...]:
    """The term without sizes, if there is one."""
    return (((), number),) if number else ()


def equal(x: int, y: int) -> bool:
    """Whether two extents are equal; assumed where that depends on sizes."""
    if x is y or (type(x) is int and type(y) is int):
        return x == y
    difference = x - y
    low, high = bounds(difference)
    if type(difference) is not Dim or low > 0 or high < 0:
        return low == high == 0
    return _assumed(difference, lower=False)


def at_least(x: int, y: int) -> bool:
    """Whether `x >= y`; assumed where that depends on sizes."""
    if type(x) is int and type(y) is int:
        return x >= y
    difference = x - y
    low, high = bounds(difference)
    if type(difference) is not Dim or low >= 0 or high < 0:
        return low >= 0
    return _assumed(difference, lower=True)


def is_at_least(x: int, y: int) -> bool:
    """Whether `x >= y` for all sizes; nothing is assumed."""
    if type(x) is int and type(y) is int:
        return x >= y
    return bounds(x - y)[0] >= 0
