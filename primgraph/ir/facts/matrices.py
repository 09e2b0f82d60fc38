"""Facts about the structure of matrices, and about signs of their elements.

They hold in exact arithmetic: a positive definite matrix may be singular after rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Flag, auto
from typing import TypeAlias

from primgraph.ir.graph import Equation
from primgraph.ir.primitive import Fact
from primgraph.ir.value import Value

Definition: TypeAlias = Callable[[Value], Equation | None]


class Structure(Flag):
    """Facts about matrices in the last two axes; the last two facts are about all elements."""

    NOTHING = 0
    LOWER = auto()
    UPPER = auto()
    SYMMETRIC = auto()
    SEMIDEFINITE = auto()
    DEFINITE = auto()
    NOT_NEGATIVE = auto()
    POSITIVE = auto()

    def transpose_facts(self) -> Structure:
        """Return the facts of the transposed matrix."""
        kept = self & ~DIAGONAL
        if Structure.LOWER in self:
            kept |= Structure.UPPER
        if Structure.UPPER in self:
            kept |= Structure.LOWER
        return kept


NOTHING = Structure.NOTHING
DIAGONAL = Structure.LOWER | Structure.UPPER
PSD = Structure.SYMMETRIC | Structure.SEMIDEFINITE
DEFINITE = PSD | Structure.DEFINITE
NOT_NEGATIVE = Structure.NOT_NEGATIVE
POSITIVE = Structure.NOT_NEGATIVE | Structure.POSITIVE
SHAPES = DIAGONAL | Structure.SYMMETRIC

# What holds of results, by number, for all operands. Of complex results only zeros count.
ALWAYS: Fact[Mapping[int, Structure]] = Fact("structure", {})
# The rule `rule(eqn, definition, *structures)` for what holds of a real result by the structure of
# the operands. Without a rule a result has the structure that follows from index maps, and is
# symmetric behind elementwise functions of symmetric matrices.
STRUCTURE: Fact[Callable[..., Structure] | None] = Fact("structure by operands", None)


# Rules of arithmetic.


def is_uniform(value: Value, definition: Definition) -> bool:
    """Return whether all elements of each matrix are one number."""
    eqn, rank = definition(value), value.type.ndim
    if eqn is None:
        return False
    return eqn.number is not None or {rank - 2, rank - 1} <= {*eqn.repeated_axes}


def sum_structure(eqn: Equation, definition: Definition, *facts: Structure) -> Structure:
    """Return the facts of a sum of two matrices."""
    one, other = facts
    found = one & other
    if PSD in one and PSD in other and Structure.DEFINITE in one | other:
        found |= Structure.DEFINITE
    if Structure.NOT_NEGATIVE in one and Structure.NOT_NEGATIVE in other:
        found |= Structure.POSITIVE & (one | other)
    return found


def product_structure(eqn: Equation, definition: Definition, *facts: Structure) -> Structure:
    """Return the facts of a multiple or a Schur product, definite if both factors are."""
    one, other = facts
    found = one & other & (Structure.SYMMETRIC | POSITIVE)
    if PSD in one and PSD in other:
        found |= one & other & DEFINITE
    if eqn.inputs[0] is eqn.inputs[1]:
        found |= Structure.NOT_NEGATIVE
    for number, fact, factor in ((0, one, other), (1, other, one)):
        if is_uniform(eqn.inputs[number], definition):
            found |= factor & SHAPES
            if Structure.POSITIVE in fact:
                found |= factor & DEFINITE
            elif Structure.NOT_NEGATIVE in fact:
                found |= factor & PSD
    return found


def quotient_structure(eqn: Equation, definition: Definition, *facts: Structure) -> Structure:
    """Return the facts of an elementwise quotient."""
    one, other = facts
    found = one & other & Structure.SYMMETRIC
    sign = one & POSITIVE if Structure.POSITIVE in other else NOTHING
    if is_uniform(eqn.inputs[1], definition):
        found |= one & SHAPES
        if Structure.POSITIVE in other:
            found |= one & DEFINITE
    return found | sign
