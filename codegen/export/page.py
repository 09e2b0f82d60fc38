"""What statements are written into: a function, as nests, products and routines know it."""

from __future__ import annotations

from typing import Protocol

from primgraph.base.user_lines import Source
from primgraph.codegen.export.identifiers import Names
from primgraph.codegen.export.nests.formulas import kind_of
from primgraph.codegen.export.places import Place
from primgraph.codegen.export.scope import Scope
from primgraph.ir.types import TensorType


class Page(Protocol):
    """The function that an item is written into.

    `loops` are names for the variables of loops, outermost first; `scope` is the body around.
    """

    blas: bool
    loops: list[str]
    names: Names
    scope: Scope

    def line(self, text: str) -> None:
        """Write a statement."""

    def open(self, head: str) -> None:
        """Begin a block."""

    def close(self, tail: str = "}") -> None:
        """End the block that was begun last."""

    def say(self, source: Source | None) -> None:
        """Tell the user's line, where it is another one than before."""

    def place(self, value: int) -> Place:
        """Where a value is."""

    def type(self, value: int) -> TensorType:
        """The type of a value."""

    def hint(self, value: int) -> str:
        """What the user calls a value."""

    def name(self, hint: str) -> str:
        """A name that nothing else has."""

    def held(self, type: TensorType, last: int = -1) -> str:
        """Memory of the workspace up to an item, by default the current one."""


def declare(page: Page, place: Place, type: TensorType, begin: str = "") -> None:
    """The declaration of a number that several statements give a value."""
    if place.is_number and not place.is_declared:
        place.is_declared = True
        page.line(f"{kind_of(type.dtype)} {place.text}{begin};")
