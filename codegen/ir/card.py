"""Interfaces between planning and the cards of a back end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from primgraph.base.records import dataclass
from primgraph.codegen.ir.axis_semantics import Blocking
from primgraph.codegen.ir.places import Place
from primgraph.codegen.ir.schedule import Step
from primgraph.ir.primitive import Op
from primgraph.ir.types import DType
from primgraph.ir.views import Reshape, Slice


class Site(Protocol):
    """A step during planning: the places of its operands and result.

    Methods allocate more places, which the back end finds at the instruction.
    """

    step: Step
    operands: Sequence[Place]
    out: Place
    # The operand whose buffer `out` takes over, or None.
    taken: int | None

    @property
    def is_lasting(self) -> bool:
        """Return whether views of `out` are made once, or for all iterations of a loop."""

    def number(self, value: Any, dtype: DType) -> Place:
        """Return a read-only 0-d array."""

    def scratch(self) -> Place:
        """Allocate a buffer like the result, for this step only."""

    def part(self, *hows: Reshape | Slice | None) -> Place:
        """Return a view of `out`, or a view of a view; `out` itself for None."""

    def operand_part(self, position: int, how: Reshape | Slice | None) -> Place:
        """Return a view of an operand."""

    def is_repeated(self, position: int) -> bool:
        """Return whether several elements of an operand may share memory."""

    def sum_operands(self, axes: Sequence[int]) -> list[Place]:
        """Return ones, result and operand 0 as matrices whose product sums over `axes`, or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The properties of a primitive that planning uses: a part of its card.

    `broadcasts` has operands that may be smaller than declared, as the back end broadcasts them.
    `in_place` has operands whose buffer the result may take over. A `ufunc` can allocate its
    result, and may overwrite any of its operands elementwise; if `spaced`, also with strides.
    `fallible`: it may raise at run time. `needs` allocates more places. `blocking` describes how it
    runs in blocks, if it does. `nanoseconds` is its cost; with `blas`, BLAS may run it.
    """

    broadcasts: tuple[int, ...]
    in_place: tuple[int, ...]
    ufunc: str
    spaced: bool
    fallible: bool
    needs: Callable[[Site], Sequence[Place]] | None
    blocking: Blocking | None
    nanoseconds: Callable[[Step], float]
    blas: bool

    @property
    def itself(self) -> bool:
        """Return whether the operation allocates its result if no array is given."""
        return bool(self.ufunc)


Cards: TypeAlias = Mapping[Op, Facts]
