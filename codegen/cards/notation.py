"""What a row of the table of spellings consists of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from primgraph.codegen.plan.places import Number, Place
from primgraph.codegen.plan.program import Site
from primgraph.codegen.plan.schedule import Step
from primgraph.codegen.plan.views import How

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
    def parts(self) -> list[str]:
        """What the row has asked for beside these, in that order."""

    def np(self, name: str) -> str:
        """A local name for `np.<name>`."""

    def number(self, position: int) -> Any:
        """The number that all elements of an operand equal, if it is a constant."""


def number_of(place: Place) -> Any:
    """The number that all elements of a place equal, if it is a constant."""
    return place.value if isinstance(place, Number) else None


Read: TypeAlias = Callable[[Sequence[Text], Step], Text]
Write: TypeAlias = Callable[[Target], list[str]]
View: TypeAlias = Callable[[Step, int], How | None]
Needs: TypeAlias = Callable[[Site], Sequence[Place]]


@dataclass(frozen=True, slots=True)
class Spelling:
    """One row. `read` gives the expression of the result, `write` the statements that fill `out`,
    for which it may have asked for more places by `needs`.

    `statement` rows have an in-place statement behind the expression that `read` gives, which
    `amend` writes for the name of the result. `broadcasts` tells operands that may have a
    smaller shape than declared, because NumPy's broadcasting repeats them; `in_place` those
    whose buffer `out` may be; `inline` rows may become a part of a longer expression. A `ufunc`
    returns a fresh array by itself where `out` is left away. `view` rows compute nothing, but
    say how an array is seen. A `fallible` row may raise an
    error when it runs. `repeated` gives the expression where several elements of the last operand
    may be one number in memory, for a function that NumPy computes in another way then, and
    `helper` is the function of the support file that it calls.
    """

    read: Read
    write: Write
    broadcasts: tuple[int, ...] = ()
    in_place: tuple[int, ...] = ()
    inline: bool = False
    ufunc: str = ""
    view: View | None = None
    amend: Callable[[str, Sequence[Text], Step], str] | None = None
    fallible: bool = False
    repeated: Read | None = None
    helper: str = ""
    needs: Needs | None = None

    @property
    def itself(self) -> bool:
        """Whether NumPy makes an array of the result where none is given."""
        return bool(self.ufunc)
