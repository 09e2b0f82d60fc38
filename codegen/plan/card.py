"""What planning asks of a primitive, and what a back end may ask of planning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from primgraph.codegen.plan.axis_semantics import Blocking
from primgraph.codegen.plan.schedule import Step
from primgraph.codegen.plan.storage.places import Place
from primgraph.ir.primitive import Op
from primgraph.ir.types import DType
from primgraph.ir.views import Reshape, Slice


class Site(Protocol):
    """A step that is being planned: where its operands and its result are, and what more it takes.

    Its methods ask for places beside those, which the back end finds at the instruction.
    """

    step: Step
    operands: Sequence[Place]
    out: Place
    # The operand whose buffer `out` is, if it was taken over.
    taken: int | None

    @property
    def lasting(self) -> bool:
        """Whether views of `out` are made once, or for all trips of a loop."""

    def number(self, value: Any, dtype: DType) -> Place:
        """A read-only array without axes."""

    def scratch(self) -> Place:
        """A buffer like the result, for this step alone."""

    def part(self, *hows: Reshape | Slice | None) -> Place:
        """A view of `out`, or a view of that, and so on; itself for None."""

    def operand_part(self, position: int, how: Reshape | Slice | None) -> Place:
        """A view of an operand."""

    def is_repeated(self, position: int) -> bool:
        """Whether several elements of an operand may be one number in memory."""

    def summed(self, axes: Sequence[int]) -> list[Place]:
        """Ones, the result and operand 0 as matrices, whose product sums over `axes`, if it may."""


class Facts(Protocol):
    """What planning asks of a primitive: a part of its card.

    `broadcasts` tells operands that may have a smaller shape than declared, as the back end
    repeats them; `in_place` those whose buffer the result may be. `itself` tells an operation that
    can make a new array of its result, and that may write over any of its operands, element by
    element; if it is `spaced`, to elements with others between them as well. One that is
    `fallible` may raise an error. `needs` asks for more places.

    `blocking` says how it runs in blocks, None that it does not. It takes `nanoseconds`; with
    `blas`, that library may do the work.
    """

    @property
    def broadcasts(self) -> tuple[int, ...]: ...
    @property
    def in_place(self) -> tuple[int, ...]: ...
    @property
    def itself(self) -> bool: ...
    @property
    def spaced(self) -> bool: ...
    @property
    def fallible(self) -> bool: ...
    @property
    def needs(self) -> Callable[[Site], Sequence[Place]] | None: ...
    @property
    def blocking(self) -> Blocking | None: ...
    @property
    def nanoseconds(self) -> Callable[[Step], float]: ...
    @property
    def blas(self) -> bool: ...


Cards: TypeAlias = Mapping[Op, Facts]
