"""Facts about the structure of matrices, and about signs of their elements.

They hold in exact arithmetic: a positive definite matrix may be singular after rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Flag, auto

from primgraph.ir.primitive import Fact


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

    def turned(self) -> Structure:
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
