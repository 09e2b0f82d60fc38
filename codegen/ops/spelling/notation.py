"""How cards write a primitive: expressions, and statements of planned code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from primgraph.codegen.ir.card import Site
from primgraph.codegen.ir.extents import size_text
from primgraph.codegen.ir.places import Number, Place
from primgraph.codegen.ir.schedule import Step

# Precedence of the outermost operator of an expression, as in Python's grammar. `@` binds like `*`,
# but parentheses keep them apart.
COMPARE, OR, XOR, AND, ADD, MATMUL, MUL, UNARY, POWER, ATOM = range(10)

# Maximum number of operands in one display; statements with very many variables compile slowly.
WIDEST = 100


class Text(NamedTuple):
    """An expression, and the precedence of its outermost operator."""

    code: str
    rank: int = ATOM

    def operand_code(self, rank: int) -> str:
        """Return the expression, in parentheses if its precedence is below `rank`."""
        return self.code if self.rank >= rank else f"({self.code})"


# The precedence of expressions of sizes.
_RANKS = (ADD, MUL, POWER, ATOM)


def extent(n: int) -> Text:
    """Return a size, which may be a symbolic expression."""
    code, rank = size_text(n)
    return Text(code, UNARY if code.isdigit() is False and type(n) is int else _RANKS[rank])


class Target(Protocol):
    """The context of a planned statement: operands by name, and the buffer to fill."""

    @property
    def step(self) -> Step: ...
    @property
    def args(self) -> list[str]: ...
    @property
    def out(self) -> str: ...
    @property
    def reused_operand(self) -> int | None:
        """Return the operand whose buffer `out` takes over, or None."""

    @property
    def new(self) -> bool:
        """Return whether `out` was allocated for this statement."""

    @property
    def is_overwritten(self) -> bool:
        """Return whether operand 0 is overwritten entirely before it is read."""

    @property
    def parts(self) -> list[str]:
        """Return the names of the places that the card requested, in that order."""

    def np(self, name: str) -> str:
        """Return a local name for `np.<name>`."""

    def number(self, position: int) -> Any:
        """Return the number that all elements of an operand equal, if it is a constant."""


def number_of(place: Place) -> Any:
    """Return the number that all elements of a place equal, if it is a constant."""
    return place.value if isinstance(place, Number) else None


Read: TypeAlias = Callable[[Sequence[Text], Step], Text]
Write: TypeAlias = Callable[[Target], list[str]]
Amend: TypeAlias = Callable[[str, Sequence[Text], Step], str]
Needs: TypeAlias = Callable[[Site], Sequence[Place]]
