"""The card of a primitive: all that the back end and the tools know of it, in one place."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import final

from primgraph.codegen.cards.spelling.complex_step import ComplexStep
from primgraph.codegen.cards.spelling.notation import Amend, Needs, Read, Write
from primgraph.codegen.cards.spelling.scalar import Scalar
from primgraph.codegen.plan.axis_semantics import Blocking
from primgraph.codegen.plan.cost_model import Time


@final
class Marks(Enum):
    """Where NaNs and infinities of operands are in the result, as `debug="nan"` follows them."""

    # At the same places.
    EACH = "each"
    # Where the condition is bad, or what it chooses.
    CHOSEN = "chosen"
    # Where the elements are moved to; what stands at a bad index is anybody's guess.
    MOVED = "moved"
    # At each element that comes from a bad one over some axes.
    REDUCED = "reduced"
    # Nowhere: they have only been compared with something.
    ENDED = "ended"
    # Anywhere: the search ends here.
    UNKNOWN = "unknown"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What the back end and the tools know of a primitive. No part has a default.

    Its text: `read` gives the expression of the result, `write` the statements that fill `out`,
    for which it may have asked for more places by `needs`. With an `amend` there is an in-place
    statement behind the expression, written for the name of the result. `inline` ones may become
    a part of a longer expression. `repeated` gives the expression where several elements of the
    last operand may be one number in memory, for a function that NumPy computes in another way
    then. A result that is handed out comes to a `zeroed` one full of zeros.
    `helper` is the function of the support file that `repeated`, or else `read`, calls.

    What planning asks: `broadcasts` tells operands that may have a smaller shape than declared,
    because NumPy's broadcasting repeats them; `in_place` those whose buffer `out` may be. A
    `ufunc` returns a fresh array by itself where `out` is left away; one that is `spaced` is right
    with gaps between the elements of `out`, too, as NumPy's have to be, and are but for faults
    of theirs. A `fallible` one may raise an error when it runs. `blocking` says how it runs in
    blocks, if it does; `nanoseconds` how long it takes; `blas` whether that library may do it.

    What tools ask: `scalar` has the expressions of its elements, where Python's own floats are
    faster than arrays; `complex_step` what it makes of complex numbers; `marks` where it leaves
    NaNs and infinities; `advice` says what to do against those that it makes, if there is
    something to say.
    """

    read: Read
    write: Write
    needs: Needs | None
    amend: Amend | None
    repeated: Read | None
    helper: str
    inline: bool
    broadcasts: tuple[int, ...]
    in_place: tuple[int, ...]
    ufunc: str
    spaced: bool
    zeroed: bool
    fallible: bool
    blocking: Blocking | None
    nanoseconds: Time
    blas: bool
    scalar: Scalar | None
    complex_step: ComplexStep | None
    marks: Marks
    advice: str

    @property
    def fresh(self) -> str:
        """The function of NumPy that makes the array of a result that is handed out."""
        return "zeros" if self.zeroed else "empty"

    @property
    def itself(self) -> bool:
        """Whether NumPy makes an array of the result where none is given."""
        return bool(self.ufunc)


def plain(
    *,
    read: Read,
    write: Write,
    needs: Needs | None,
    blocking: Blocking | None,
    nanoseconds: Time,
    scalar: Scalar | None,
    complex_step: ComplexStep | None,
    marks: Marks,
) -> Card:
    """The card of what NumPy alone makes, without a fault, into an array apart from its operands.

    These have the shapes that are declared, and are in memory as they are: nothing is in place,
    nothing repeated by broadcasting, nothing part of a longer expression. Of what is more than
    that, `dataclasses.replace` says how.
    """
    return Card(
        read=read,
        write=write,
        needs=needs,
        amend=None,
        repeated=None,
        helper="",
        inline=False,
        broadcasts=(),
        in_place=(),
        ufunc="",
        spaced=True,
        zeroed=False,
        fallible=False,
        blocking=blocking,
        nanoseconds=nanoseconds,
        blas=False,
        scalar=scalar,
        complex_step=complex_step,
        marks=marks,
        advice="",
    )
