"""What a row of the table of spellings consists of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from primgraph.codegen.schedule import Step
from primgraph.ir.types import DType

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

    step: Step
    args: list[str]
    out: str
    taken: int | None  # the operand whose buffer `out` is, if it was taken over

    def np(self, name: str) -> str:
        """A local name for `np.<name>`."""

    def helper(self, name: str) -> str:
        """A function of the support file."""

    def scalar(self, value: Any, dtype: DType) -> str:
        """A read-only 0-d array."""

    def part(self, template: str) -> str:
        """A view of `out`, where `{}` in `template` stands for it."""

    def operand_part(self, position: int, template: str) -> str:
        """A view of an operand."""

    def scratch(self) -> str:
        """A buffer like the result, for this step alone."""

    def is_repeated(self, position: int) -> bool:
        """Whether several elements of an operand may be one number in memory."""

    def number(self, position: int) -> bool | int | float | None:
        """The number that all elements of an operand equal, if it is a constant."""

    def summed(self, axes: Sequence[int]) -> str:
        """A statement that sums operand 0 in a faster way than NumPy's own; empty if none does."""


Read: TypeAlias = Callable[[Sequence[Text], Step], Text]
Write: TypeAlias = Callable[[Target], list[str]]
View: TypeAlias = Callable[[Step, int], str]


@dataclass(frozen=True, slots=True)
class Spelling:
    """One row. `read` gives the expression of the result, `write` the statements that fill `out`.

    `statement` rows have an in-place statement behind the expression that `read` gives, which
    `amend` writes for the name of the result. `broadcasts` tells operands that may have a
    smaller shape than declared, because NumPy's broadcasting repeats them; `in_place` those
    whose buffer `out` may be; `inline` rows may become a part of a longer expression. A `ufunc`
    returns a fresh array by itself where `out` is left away. `view` rows compute nothing: it
    gives the expression of the view, with `{}` for the operand. A `fallible` row may raise an
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
