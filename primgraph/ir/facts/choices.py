"""Facts of primitives about conditions: what they choose, join and move, and their algebra."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import Enum
from typing import Any, final

from primgraph.base.records import dataclass
from primgraph.ir.primitive import Fact


@final
@dataclass(frozen=True, slots=True)
class Choice:
    """How a primitive chooses among elements of its operands; it discards all others.

    The boolean operand `by` may decide: an element of the operand at a position in `sides` is taken
    where `by` has that truth value. Or values decide: `lost(record, position, inputs, outputs,
    **params)` records by `record(op, *operands, **params)` where an element of the operand is not
    taken. Without both, places decide, as the index map says.
    """

    by: int | None = None
    sides: Mapping[int, bool] = field(default_factory=dict)
    lost: Callable[..., Any] | None = None


@final
class Logic(Enum):
    """Operation of the algebra of conditions: on elements, or on all along some axes (`SOME`)."""

    NOT = "not"
    AND = "and"
    OR = "or"
    SOME = "some"

    @property
    def dual(self) -> Logic:
        return Logic.OR if self is Logic.AND else Logic.AND


CHOICE: Fact[Choice | None] = Fact("choice", None)
LOGIC: Fact[Logic | None] = Fact("logic", None)
# Whether results consist of elements of several operands, or of an operand and zeros.
JOINS: Fact[bool] = Fact("joins", False)
# Whether a comparison is false for every NaN.
FALSE_AT_NAN: Fact[bool] = Fact("false at NaN", False)
# The position of an operand of which a NaN, and nothing else, makes the derivative NaN.
NAN_OF: Fact[int | None] = Fact("NaN of", None)
# Whether the index map moves conditions from results to operands, and from operands to results, for
# a primitive that is no view.
MOVES_BACK: Fact[bool] = Fact("moves conditions back", False)
MOVES_FORTH: Fact[bool] = Fact("moves conditions forth", False)
# Whether some operand values make it raise, such as a place out of range or a singular matrix.
# `reorder` looks places up and does not raise: its places are those of an argsort.
RAISES: Fact[bool] = Fact("raises", False)
# Whether it is a plain sum of its operands.
ADDS: Fact[bool] = Fact("adds", False)
