"""Interface of the function being written, for nests, products and routines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from primgraph.base.user_lines import Source
from primgraph.codegen.ir.expressions import ADD
from primgraph.codegen.targets.export.identifiers import Names
from primgraph.codegen.targets.export.nests.formulas import kind_of
from primgraph.codegen.targets.export.places import Place
from primgraph.codegen.targets.export.scope import Scope
from primgraph.ir.types import TensorType


class Page(Protocol):
    """The function that an item is written into.

    `loops` are names of loop variables, outermost first; `scope` is the enclosing body.
    """

    blas: bool
    loops: list[str]
    names: Names
    scope: Scope

    def line(self, text: str) -> None:
        """Write a statement."""

    def open(self, head: str) -> None:
        """Open a block."""

    def open_for(self, variable: str, count: int) -> None:
        """Open a loop with that variable, and so many iterations."""

    def fail(self) -> None:
        """Let the function return a status, as a statement does."""

    def close(self, tail: str = "}") -> None:
        """Close the innermost block."""

    def write_source_comment(self, source: Source | None) -> None:
        """Write the user's source line, if it differs from the previous one."""

    def place(self, value: int) -> Place:
        """Return the place of a value."""

    def use(self, name: str) -> str:
        """Return a name that the file declares elsewhere."""

    def size(self, n: int, rank: int = ADD) -> str:
        """Return the text of a size, in parentheses if its precedence is below `rank`."""

    def index(self, offset: int, variables: Sequence[str], strides: Sequence[int]) -> str:
        """Return the index expression of an element, from loop variables and their strides."""

    def null(self) -> Place:
        """Return the place of an array without elements."""

    def type(self, value: int) -> TensorType:
        """Return the type of a value."""

    def hint(self, value: int) -> str:
        """Return the user's name of a value."""

    def name(self, hint: str) -> str:
        """Return a unique name."""

    def allocate_workspace(self, type: TensorType, last: int = -1) -> str:
        """Allocate workspace until item `last`, by default the current one."""


def declare(page: Page, place: Place, type: TensorType, begin: str = "") -> None:
    """Declare a scalar that several statements assign."""
    if place.is_number and not place.is_declared:
        place.is_declared = True
        page.line(f"{kind_of(type.dtype)} {place.text}{begin};")
