"""Loop IR of native code: nests, matrix products, routines, control flow, and host calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

from primgraph.codegen.ir.access import Access
from primgraph.codegen.ir.schedule import Schedule, Step
from primgraph.ir.assumptions import is_at_least
from primgraph.ir.dims import is_open
from primgraph.ir.types import Shape, TensorType
from primgraph.primitives.control import Flow


@final
@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of a node: a number, a value of the nest, or memory.

    `text` is a number in C, or with `strides` a cast applied to the index expression. `value` is
    computed by the nest at the same index. `strides` are along the axes of the nest.
    """

    text: str = ""
    value: int = -1
    root: int = -1
    offset: int = 0
    strides: tuple[int, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Node:
    """The elements of one value, as one operation per index.

    "text" is an expression of `operands`, or the function `name` of the first one; "call" a runtime
    function; "copy" the operand. "put" stores an operand at `offset` and `strides` of a larger
    value. A reduction has its result in memory at `strides`. "take" gathers from its first operand
    at the indices in the others; `reach` has size and stride of each indexed axis. "add" scatters
    into the value at such indices. "inner" is its first operand where each index operand is
    `within` a range (first index, count), else the constant `name`.
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


# Size in bytes of a pointer to a growing stack.
POINTER = 8

# Kinds whose result is a loop variable, stored to memory only on demand.
PLAIN = ("text", "call", "copy", "take", "inner")


@final
@dataclass(slots=True)
class Nest:
    """A loop nest: `nodes` for all indices in `domain`; `stored` values are written to memory."""

    domain: Shape
    nodes: list[Node] = field(default_factory=list)
    stored: dict[int, None] = field(default_factory=dict)

    def indexed_sizes(self) -> list[int]:
        """Return the sizes of indexed axes that may be zero, so that no index is valid."""
        found = [n for node in self.nodes for n, _ in node.reach if not is_at_least(n, 1)]
        return list(dict.fromkeys(found))


@final
@dataclass(frozen=True, slots=True)
class Product:
    """A product of two stacks of matrices, which may be accumulated into its value."""

    step: Step
    value: int
    left: Access
    right: Access
    is_added: bool = False


@final
@dataclass(frozen=True, slots=True)
class Control:
    """A branch or loop, with the items of its bodies.

    `operands` are in memory as a whole, and so are the inputs and outputs of the bodies.
    `constants` maps the constants of each body to values here.
    """

    step: Step
    values: tuple[int, ...]
    operands: tuple[int, ...]
    bodies: tuple[Nests, ...]
    constants: tuple[Mapping[int, int], ...]

    @property
    def is_loop(self) -> bool:
        return self.step.flow in (Flow.ROWS, Flow.TEST)


@final
@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a value: the first begins at `offset` of `root`, the next ones `step` apart."""

    root: int
    offset: int
    step: int


@final
@dataclass(frozen=True, slots=True)
class Blocks:
    """Items that run block by block, over `rows` of `extent` rows.

    The first of the `bodies` is for `rows` rows, the second, if present, for the remainder. `given`
    has input rows by input number. The outputs are `totals`, which are accumulated, and rows of the
    values `kept`. Groups of blocks accumulate their own totals. `constants` maps the constants of
    each body to values here.
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
        """Return the number of blocks."""
        return (self.extent + (self.rows - 1)) // self.rows


@final
@dataclass(frozen=True, slots=True)
class Routine:
    """A step that calls a C function on whole arrays, or loops over calls."""

    step: Step
    values: tuple[int, ...]
    operands: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class HostCall:
    """A host call: a step that NumPy runs. `lacking` are steps of its bodies that C cannot do."""

    step: Step
    values: tuple[int, ...]
    operands: tuple[int, ...]
    lacking: tuple[Step, ...] = ()


Item: TypeAlias = Nest | Product | Control | Blocks | Routine | HostCall


@final
@dataclass(frozen=True, slots=True)
class Nests:
    """The items that compute the outputs of a schedule, in order.

    `constants` are arrays by value; `outputs` are in memory as a whole. `last` has the last item
    that reads each value in memory. A block of rows sets `is_block`, and accumulates into the
    values `added`.
    """

    schedule: Schedule
    items: tuple[Item, ...]
    constants: Mapping[int, Any]
    outputs: tuple[int, ...]
    types: Mapping[int, TensorType]
    last: Mapping[int, int]
    is_block: bool = False
    added: frozenset[int] = frozenset()


def stays_inside(plan: Nests) -> bool:
    """Return whether all growing stacks are only passed between loops in C; true without any."""
    if not any(is_open(type.shape) for type in plan.schedule.types):
        return True
    for item in plan.items:
        loops = isinstance(item, Control) and item.is_loop
        if isinstance(item, HostCall):
            return False
        steps = [item.step] if isinstance(item, Control) else []
        types = [t for step in steps for t in (*step.operands, *step.results)]
        if not loops and any(is_open(t.shape) for t in types):
            return False
    return True
