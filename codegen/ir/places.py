"""Places: the storage of a plan's values. They are numbered; back ends name them."""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar, TypeAlias, final

from primgraph.base.records import dataclass
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ir.views import Cut, How, Repeat
from primgraph.ir.types import DType, Shape, TensorType
from primgraph.ir.views import Expand, Reshape


class Life(Enum):
    """Lifetime of an array object, whose elements may change.

    FIXED arrays never change. KEPT arrays are created in the first call, CALL arrays in each call,
    TURN arrays in each iteration of a loop. BLOCK arrays are kept per thread and in two sizes: for
    a full block, and for the last one.
    """

    FIXED = 0
    KEPT = 1
    CALL = 2
    BLOCK = 3
    TURN = 4


@dataclass(frozen=True, eq=False, slots=True)
class _Whole:
    """A whole contiguous array."""

    number: int
    type: TensorType

    @property
    def shape(self) -> Shape:
        return self.type.shape


@dataclass(frozen=True, eq=False, slots=True)
class _OfCall(_Whole):
    """An array that is made in each call."""

    life: ClassVar[Life] = Life.CALL


@final
@dataclass(frozen=True, eq=False, slots=True)
class Argument(_OfCall):
    """An array that the caller passes."""


@final
@dataclass(frozen=True, eq=False, slots=True)
class Result(_OfCall):
    """An array returned to the caller; `given` if the caller passed it."""

    given: bool


@final
@dataclass(frozen=True, eq=False, slots=True)
class Held(_OfCall):
    """A copy that is kept until the end of a call."""


@final
@dataclass(frozen=True, eq=False, slots=True)
class Buffer(_Whole):
    """A range of an arena that belongs to one value, and then to those that take it over.

    Buffers of a `loop` are in the arena of a thread. They have the rows of a block along `axis`, or
    its partial result of a total. Buffers with equal `number` are the same array at different
    times.
    """

    offset: int
    loop: int = -1
    axis: int | None = None

    @property
    def life(self) -> Life:
        return Life.KEPT if self.loop < 0 else Life.BLOCK


@final
@dataclass(frozen=True, eq=False, slots=True)
class Stack(_Whole):
    """A growing stack, filled by one loop and read by others; it is outside all arenas."""

    life: ClassVar[Life] = Life.KEPT


@final
@dataclass(frozen=True, eq=False, slots=True)
class Number:
    """A number that represents an array filled with it."""

    number: int
    value: Any
    dtype: DType
    life: ClassVar[Life] = Life.FIXED
    shape: ClassVar[Shape] = ()


@final
@dataclass(frozen=True, eq=False, slots=True)
class Ones:
    """A vector of ones; in a `loop` with one element per row of a block."""

    number: int
    count: int
    dtype: DType
    loop: int = -1

    @property
    def shape(self) -> Shape:
        return (self.count,)

    @property
    def life(self) -> Life:
        return Life.FIXED if self.loop < 0 else Life.BLOCK


@final
@dataclass(frozen=True, eq=False, slots=True)
class Constant:
    """The result of a step without operands, before broadcasting."""

    number: int
    step: Step
    shape: Shape
    life: ClassVar[Life] = Life.FIXED


@final
@dataclass(frozen=True, eq=False, slots=True)
class View:
    """A view of another array; views with equal `number` are one array object."""

    number: int
    of: Place
    how: How
    shape: Shape
    life: Life


Place: TypeAlias = Argument | Result | Held | Buffer | Stack | Number | Ones | Constant | View
Fixed: TypeAlias = Number | Ones | Constant


def life_of_view(of: Place, how: How) -> Life:
    """Return the lifetime of a view, by that of its array; views of constants are created."""
    if isinstance(how, Cut):
        return Life.TURN
    return Life.KEPT if of.life is Life.FIXED else of.life


def is_repeated(place: Place) -> bool:
    """Return whether several elements of a view may share memory."""
    while isinstance(place, View) and not isinstance(place.how, Reshape):
        if isinstance(place.how, Expand | Repeat) and place.shape != place.of.shape:
            return True
        place = place.of
    return False


def root_of(place: Place) -> Place:
    """Return the array that a view is of, through nested views."""
    while isinstance(place, View):
        place = place.of
    return place


def cut_of(place: Place) -> Cut | None:
    """Return the block of rows that a place has only, or None."""
    while isinstance(place, View):
        if isinstance(place.how, Cut):
            return place.how
        place = place.of
    return None


def loop_of(place: Place) -> int:
    """Return the loop that an array belongs to; -1 for none."""
    cut, root = cut_of(place), root_of(place)
    if cut is not None:
        return cut.loop
    return root.loop if isinstance(root, Buffer | Ones) else -1


_LETTERS = {
    Argument: "x",
    Result: "r",
    Held: "held",
    Buffer: "b",
    Stack: "stack",
    Number: "c",
    Ones: "c",
    Constant: "k",
    View: "v",
}


def name_of(place: Place) -> str:
    """Return the name of a place, in listings and in NumPy code."""
    return f"{_LETTERS[place.__class__]}{place.number}"
