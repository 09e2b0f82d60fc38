"""How cards write a primitive: expressions, and statements of planned code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from primgraph.codegen.plan.card import Site
from primgraph.codegen.plan.extents import written
from primgraph.codegen.plan.schedule import Step
from primgraph.codegen.plan.storage.places import Number, Place

# How tightly the outermost operator of an expression binds, as in Python's grammar; but `@`,
# which binds like `*`, is kept apart from it by parentheses.
COMPARE, OR, XOR, AND, ADD, MATMUL, MUL, UNARY, POWER, ATOM = range(10)

# Operands in one display; statements naming very many variables compile slowly.
WIDEST = 100


class Text(NamedTuple):
    """An expression, and how tightly its outermost operator binds."""

    code: str
    rank: int = ATOM

    def within(self, rank: int) -> str:
        """The expression, in parentheses if it binds less tightly than `rank`."""
        return self.code if self.rank >= rank else f"({self.code})"


# The ranks of expressions of extents.
_RANKS = (ADD, MUL, POWER, ATOM)


def extent(n: int) -> Text:
    """An extent, which may be an expression in sizes."""
    code, rank = written(n)
    return Text(code, UNARY if code.isdigit() is False and type(n) is int else _RANKS[rank])


class Target(Protocol):
    """What a planned statement is written for: operands by name, and the buffer to fill."""

    @property
    def step(self) -> Step: ...
    @property
    def args(self) -> list[str]: ...
    @property
    def out(self) -> str: ...
    @property
    def taken(self) -> int | None:
        """The operand whose buffer `out` is, if it was taken over."""

    @property
    def new(self) -> bool:
        """Whether `out` was made for this statement."""

    @property
    def replaced(self) -> bool:
        """Whether all of operand 0 is replaced before anybody reads it."""

    @property
    def parts(self) -> list[str]:
        """What the card has asked for beside these, in that order."""

    def np(self, name: str) -> str:
        """A local name for `np.<name>`."""

    def number(self, position: int) -> Any:
        """The number that all elements of an operand equal, if it is a constant."""


def number_of(place: Place) -> Any:
    """The number that all elements of a place equal, if it is a constant."""
    return place.value if isinstance(place, Number) else None


Read: TypeAlias = Callable[[Sequence[Text], Step], Text]
Write: TypeAlias = Callable[[Target], list[str]]
Amend: TypeAlias = Callable[[str, Sequence[Text], Step], str]
Needs: TypeAlias = Callable[[Site], Sequence[Place]]
