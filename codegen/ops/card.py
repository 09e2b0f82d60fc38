"""The card of a primitive: all its properties for the back end and tools."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import final

from primgraph.base.records import dataclass
from primgraph.codegen.ir.axis_semantics import ROWS, Blocking
from primgraph.codegen.ir.card import Facts
from primgraph.codegen.ops.cost_model import Time
from primgraph.codegen.ops.spelling.complex_step import ComplexStep
from primgraph.codegen.ops.spelling.notation import Amend, Needs, Read, Write
from primgraph.codegen.ops.spelling.scalar import Scalar


@final
class Marks(Enum):
    """How NaNs and infinities of operands propagate to the result, for `debug="nan"`."""

    # To the same elements.
    EACH = "each"
    # From the condition, and from the selected operand.
    CHOSEN = "chosen"
    # To where elements are moved; elements at a bad index are undefined.
    MOVED = "moved"
    # To each result element that is reduced from a bad one.
    REDUCED = "reduced"
    # Nowhere: operands are only compared.
    ENDED = "ended"
    # Unknown: the search stops here.
    UNKNOWN = "unknown"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Card(Facts):
    """Properties of a primitive for the back end and tools. No part has a default.

    Code: `read` returns the expression of the result, `write` the statements that fill `out`, in
    places of which some are those of `needs`. With `amend`, an in-place statement on the result's
    name follows the expression. `inline` expressions may become part of longer ones. `repeated` is
    the expression if the elements of the last operand may share memory, for functions that NumPy
    then computes differently. If `zeroed`, a new result array is allocated with zeros. `helper` is
    the support function that `repeated`, or else `read`, calls; `library` is its name in Python's
    `math` and in `scipy.special`, if they have it. If `aliases`, the expression may be a view of an
    operand.

    Planning: the parts of `Facts`.

    Tools: `scalar` has expressions of its elements, for which Python floats are faster than arrays.
    `complex_step` is its behaviour on complex numbers, `marks` how it propagates NaNs and
    infinities, and `advice` how to avoid those that it creates, if anything.
    """

    read: Read
    write: Write
    amend: Amend | None
    repeated: Read | None
    helper: str
    library: str
    aliases: bool
    inline: bool
    zeroed: bool
    scalar: Scalar | None
    complex_step: ComplexStep | None
    marks: Marks
    advice: str

    @property
    def fresh(self) -> str:
        """Return the NumPy function that allocates a result array."""
        return "zeros" if self.zeroed else "empty"


def array_card(
    read: Read,
    write: Write,
    needs: Needs | None,
    blocking: Blocking | None,
    nanoseconds: Time,
    complex_step: ComplexStep | None,
) -> Card:
    """Return the card of a function of whole arrays, of which results mix many elements.

    It has no special properties: NumPy computes the result, and does not raise. Operands have their
    declared shapes and do not alias the result. Nothing is in place, broadcast, or part of a longer
    expression. Use `dataclasses.replace` to add properties.
    """
    return Card(
        read=read,
        write=write,
        needs=needs,
        amend=None,
        repeated=None,
        helper="",
        library="",
        aliases=False,
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
        scalar=None,
        complex_step=complex_step,
        marks=Marks.UNKNOWN,
        advice="",
    )


def element_card(read: Read, write: Write, nanoseconds: Time) -> Card:
    """Return the card of a function of single elements that scalar mode does not support."""
    made = array_card(read, write, None, ROWS, nanoseconds, None)
    return replace(made, marks=Marks.EACH)


def changed_expression(card: Card, read: Read, helper: str, amend: Amend | None) -> Card:
    """Return the card with another expression, which calls a support function or none."""
    return replace(
        card,
        read=read,
        helper=helper,
        amend=amend,
        repeated=None,
        library="",
        broadcasts=() if card.amend and amend is None else card.broadcasts,
        inline=card.inline and not helper,
    )
