"""How cards write a primitive: expressions, and statements of planned code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from primgraph.codegen.ir.card import Site
from primgraph.codegen.ir.extents import Text
from primgraph.codegen.ir.places import Number, Place
from primgraph.codegen.ir.schedule import Step

# Maximum number of operands in one display; statements with very many variables compile slowly.
WIDEST = 100


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
