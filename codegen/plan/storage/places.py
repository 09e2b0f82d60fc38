"""Places: where the values of a plan are. They have numbers; names are the back end's."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, TypeAlias, final

from primgraph.codegen.plan.schedule import Step
from primgraph.codegen.plan.storage.views import Cut, How, Repeat
from primgraph.ir.types import DType, Shape, TensorType
from primgraph.ir.views import Expand, Reshape


class Life(Enum):
    """How long an array is the same one, with other elements in it from time to time.

    What is FIXED never changes. What is KEPT is made in the first call. What belongs to a CALL is
    made in each, and what belongs to a TURN in each turn of a loop. What belongs to a BLOCK is
    kept too, but for each thread, and in two sizes: for a block, and for the last one.
    """

    FIXED = 0
    KEPT = 1
    CALL = 2
    BLOCK = 3
    TURN = 4


@dataclass(frozen=True, eq=False, slots=True)
class _OfCall:
    """A whole array, with all elements in row-major order, that is made in each call."""

    number: int
    type: TensorType
    life: ClassVar[Life] = Life.CALL

    @property
    def shape(self) -> Shape:
        return self.type.shape


@final
@dataclass(frozen=True, eq=False, slots=True)
class Argument(_OfCall):
    """An array that the caller gives."""


@final
@dataclass(frozen=True, eq=False, slots=True)
class Result(_OfCall):
    """An array that the caller gets; one that the caller has handed over is `given`."""

    given: bool


@final
@dataclass(frozen=True, eq=False, slots=True)
class Held(_OfCall):
    """A copy that is kept to the end of a call."""


@final
@dataclass(frozen=True, eq=False, slots=True)
class Buffer:
    """Bytes of an arena that belong to one value, and then to those that take over from it.

    Those of a `loop` lie in the arena of a thread, and have rows of a block along `axis`, or its
    share of a total. Buffers of one `number` are one array at different times.
    """

    number: int
    type: TensorType
    offset: int
    loop: int = -1
    axis: int | None = None

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def life(self) -> Life:
        return Life.KEPT if self.loop < 0 else Life.BLOCK


@final
@dataclass(frozen=True, eq=False, slots=True)
class Stack:
    """A stack that grows, which one loop fills and others go along; it lies in no arena."""

    number: int
    type: TensorType
    life: ClassVar[Life] = Life.KEPT

    @property
    def shape(self) -> Shape:
        return self.type.shape


@final
@dataclass(frozen=True, eq=False, slots=True)
class Number:
    """One number, which stands for an array that is full of it."""

    number: int
    value: Any
    dtype: DType
    life: ClassVar[Life] = Life.FIXED
    shape: ClassVar[Shape] = ()


@final
@dataclass(frozen=True, eq=False, slots=True)
class Ones:
    """A vector of ones; in a `loop` one for each row of a block."""

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
    """What a step without operands gives, as far as broadcasting does not repeat it."""

    number: int
    step: Step
    shape: Shape
    life: ClassVar[Life] = Life.FIXED


@final
@dataclass(frozen=True, eq=False, slots=True)
class View:
    """An array that has its elements from another; views of one `number` are one array."""

    number: int
    of: Place
    how: How
    shape: Shape
    life: Life


Place: TypeAlias = Argument | Result | Held | Buffer | Stack | Number | Ones | Constant | View
Fixed: TypeAlias = Number | Ones | Constant

# What a view of an array that lives so long is itself.
_OF_VIEW = {
    Life.FIXED: Life.KEPT,
    Life.KEPT: Life.KEPT,
    Life.CALL: Life.CALL,
    Life.BLOCK: Life.BLOCK,
    Life.TURN: Life.TURN,
}


def life_of_view(of: Place, how: How) -> Life:
    return Life.TURN if isinstance(how, Cut) else _OF_VIEW[of.life]


def is_repeated(place: Place) -> bool:
    """Whether several elements of a view may be one number in memory."""
    while isinstance(place, View) and not isinstance(place.how, Reshape):
        if isinstance(place.how, Expand | Repeat) and place.shape != place.of.shape:
            return True
        place = place.of
    return False


def root_of(place: Place) -> Place:
    """The array whose elements these are."""
    while isinstance(place, View):
        place = place.of
    return place


def loop_of(place: Place) -> int:
    """The loop that an array belongs to; -1 for none."""
    while isinstance(place, View):
        if isinstance(place.how, Cut):
            return place.how.loop
        place = place.of
    return place.loop if isinstance(place, Buffer | Ones) else -1


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
    """What a place is called, in texts and in NumPy code."""
    return f"{_LETTERS[place.__class__]}{place.number}"
