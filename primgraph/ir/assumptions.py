"""Assumptions about symbolic sizes that cannot be decided while a graph is built.

Type rules ask here whether a size fulfils a condition. The answer is computed for known sizes, and
decided if it is the same for all values of symbolic sizes. Otherwise it is assumed to be yes.
Assumptions are not stored: running the type rules again collects them. They are all checked for the
sizes of the fed arrays, before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from math import gcd
from typing import final

from primgraph.base.records import dataclass
from primgraph.ir.dims import Dim, bounds, remainder


@final
@dataclass(frozen=True, slots=True)
class Condition:
    """Condition that `difference` is zero or, with `lower`, not negative."""

    difference: Dim
    lower: bool

    @property
    def names(self) -> frozenset[str]:
        return self.difference.names

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Return whether the condition holds for these sizes, which cover all names."""
        found = self.difference.at(sizes)
        return found >= 0 if self.lower else found == 0

    def sides(self) -> tuple[int, int]:
        """Split the difference into its positive and negative terms: the first is (at least) the
        second."""
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
def record_assumptions() -> Iterator[dict[Condition, None]]:
    """Yield the conditions assumed inside the context, in order, without duplicates."""
    found: dict[Condition, None] = {}
    before = _noted.get()
    try:
        _noted.set(found)
        yield found
    finally:
        _noted.set(before)


def note(conditions: Mapping[Condition, None]) -> None:
    """Repeat the assumptions of a cached result."""
    noted = _noted.get()
    if noted is not None:
        noted.update(conditions)


def _note_assumption(difference: Dim, lower: bool) -> bool:
    noted = _noted.get()
    if noted is not None:
        noted[Condition(_normalize_condition(difference, lower), lower)] = None
    return True


def _normalize_condition(difference: Dim, lower: bool) -> Dim:
    """Normalise a condition: divide by common factors, so that equal ones compare equal."""
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
    """Return the constant term, if it is not zero."""
    return (((), number),) if number else ()


def equal(x: int, y: int) -> bool:
    """Return whether two sizes are equal; assume so if it depends on symbolic sizes."""
    if x is y or (type(x) is int and type(y) is int):
        return x == y
    difference = x - y
    low, high = bounds(difference)
    if type(difference) is not Dim or low > 0 or high < 0:
        return low == high == 0
    return _note_assumption(difference, lower=False)


def assume_at_least(x: int, y: int) -> bool:
    """Return whether `x >= y`; assume so if it depends on symbolic sizes."""
    if type(x) is int and type(y) is int:
        return x >= y
    difference = x - y
    low, high = bounds(difference)
    if type(difference) is not Dim or low >= 0 or high < 0:
        return low >= 0
    return _note_assumption(difference, lower=True)


def is_at_least(x: int, y: int) -> bool:
    """Return whether `x >= y` for all values of symbolic sizes, without assumptions."""
    if type(x) is int and type(y) is int:
        return x >= y
    return bounds(x - y)[0] >= 0
