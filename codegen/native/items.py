"""What native code consists of: loop nests, products, functions, control, steps of NumPy's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

from primgraph.codegen.native.lower.access import Access
from primgraph.codegen.plan.schedule import Schedule, Step
from primgraph.ir.assumptions import is_at_least
from primgraph.ir.types import Shape, TensorType


@final
@dataclass(frozen=True, slots=True)
class Operand:
    """What an element of a nest is computed from: a number, a value of the nest, or memory.

    `text` is a number in C, or with `strides` a cast of what indices are with these; `value` is one
    that the nest has computed at the same place; `strides` go with the axes of the nest.
    """

    text: str = ""
    value: int = -1
    root: int = -1
    offset: int = 0
    strides: tuple[int, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Node:
    """The elements of one value.

    `kind` is "text", an expression in `operands`; "call", a function of the runtime; "copy", what
    an operand is; "put", an operand left in memory, at `offset` and `strides` of a larger value; or
    a reduction, whose result, of other axes, is in memory at `strides`. "take" reads its first
    operand at places that the others tell, each along an axis of an extent and stride in `reach`;
    "add" adds it to the value, in memory at `strides`, at such places. "inner" is its first operand
    where each of the others, an index, is `within` so many from a first one on, and else `name`.
    """

    step: Step | None
    value: int
    kind: str
    name: str
    operands: tuple[Operand, ...]
    strides: tuple[int, ...] = ()
    offset: int = 0
    reach: tuple[tuple[int, int], ...] = ()
    within: tuple[tuple[int, int], ...] = ()


# Kinds of what is a number of the loop, and in memory only where it is stored.
PLAIN = ("text", "call", "copy", "take", "inner")


@final
@dataclass(slots=True)
class Nest:
    """`nodes` for all indices in `domain`. `stored` are values that are left in memory."""

    domain: Shape
    nodes: list[Node] = field(default_factory=list)
    stored: dict[int, None] = field(default_factory=dict)

    def reached(self) -> list[int]:
        """Extents that places are told in, which may be zero, so that there is no such place."""
        found = [n for node in self.nodes for n, _ in node.reach if not is_at_least(n, 1)]
        return list(dict.fromkeys(found))


@final
@dataclass(frozen=True, slots=True)
class Product:
    """The product of two stacks of matrices, which may be added to what is there of its value."""

    step: Step
    value: int
    left: Access
    right: Access
    is_added: bool = False


@final
@dataclass(frozen=True, slots=True)
class Control:
    """A branch or loop, with the items of its bodies.

    `operands` are in memory as a whole, and so is what each body takes and gives. `constants` has
    for each body the values here that are its constants.
    """

    step: Step
    values: tuple[int, ...]
    operands: tuple[int, ...]
    bodies: tuple[Nests, ...]
    constants: tuple[Mapping[int, int], ...]


@final
@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a value: the first begins at element `offset` of `root`, each next `step` further."""

    root: int
    offset: int
    step: int


@final
@dataclass(frozen=True, slots=True)
class Blocks:
    """Items that are done for one block after the other, of `rows` of `extent` rows.

    The first of the `bodies` is for `rows` rows, the other one, if there is one, for the rest. They
    are `given` rows by the number of an input. Their outputs are `totals`, which are added to what
    there is, or combined with it in another way, and rows of what is `kept`. Groups of blocks add
    up totals of their own. `constants` has for each body the values here that are its constants.
    """

    extent: int
    rows: int
    groups: int
    bodies: tuple[Nests, ...]
    given: Mapping[int, Rows]
    totals: Mapping[int, str]
    kept: tuple[Rows, ...]
    constants: tuple[Mapping[int, int], ...]

    @property
    def count(self) -> int:
        """How many blocks there are."""
        return (self.extent + (self.rows - 1)) // self.rows


@final
@dataclass(frozen=True, slots=True)
class Routine:
    """A step that is a function of C, or a loop around one, on whole arrays."""

    step: Step
    values: tuple[int, ...]
    operands: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class Outside:
    """A step that NumPy does; a loop or branch, for what its bodies have that C is `lacking`."""

    step: Step
    values: tuple[int, ...]
    operands: tuple[int, ...]
    lacking: tuple[Step, ...] = ()


Item: TypeAlias = Nest | Product | Control | Blocks | Routine | Outside


@final
@dataclass(frozen=True, slots=True)
class Nests:
    """The items that compute the outputs of a schedule, in order.

    `constants` are arrays by the value that they are; `outputs` what is in memory as a whole.
    `last` tells, of what is in memory, the last item that reads it. A block of rows
    tells so; what it has `added` is combined with what is in that memory before.
    """

    schedule: Schedule
    items: tuple[Item, ...]
    constants: Mapping[int, Any]
    outputs: tuple[int, ...]
    types: Mapping[int, TensorType]
    last: Mapping[int, int]
    is_block: bool = False
    added: frozenset[int] = frozenset()
