"""Statements of plans: calls of NumPy on places, and loop nests, products and calls in C.

`text.py` writes them, for people and completely.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, NamedTuple, TypeAlias, final

from primgraph.base.records import dataclass
from primgraph.codegen.ir.access import Access
from primgraph.codegen.ir.axis_semantics import Role
from primgraph.codegen.ir.places import Argument, Buffer, Place, Result, View
from primgraph.codegen.ir.schedule import Schedule, Step
from primgraph.ir.assumptions import is_at_least
from primgraph.ir.types import DType, Shape, TensorType
from primgraph.primitives.control import Flow


@final
@dataclass(frozen=True, slots=True)
class Region:
    """Steps `start` to `stop` of a schedule, in a loop over blocks of `rows` of `extent` rows.

    `roles` has one role per step, `axis` the axis of rows of each value that has rows. `totals` are
    combined over blocks, by the given ufunc. `kept` are values needed as a whole afterwards, and
    `views` are steps with views of these that are needed. Up to `threads` threads may share the
    blocks; with `products`, BLAS may be called.
    """

    start: int
    stop: int
    extent: int
    rows: int
    threads: int
    products: bool
    roles: tuple[Role, ...]
    axis: dict[int, int]
    totals: dict[int, str]
    kept: tuple[int, ...]
    views: tuple[int, ...]

    def __contains__(self, step: int) -> bool:
        return self.start <= step < self.stop


# Statements of whole arrays on places. Each has the number of its step.


class Compute(NamedTuple):
    """The operation of `step` on `operands`, written to `out`, which exists or is `new`.

    `taken` is the operand whose place `out` takes over; `parts` are further places of the back end.
    If `replaced`, operand 0 is overwritten entirely, and need not be written. If `itself`, the
    operation allocates `out`, which is new.
    """

    at: int
    step: Step
    operands: tuple[Place, ...]
    out: Place
    taken: int | None = None
    parts: tuple[Place, ...] = ()
    new: bool = False
    replaced: bool = False
    itself: bool = False


class Put(NamedTuple):
    """The operation of `step`, written to `part` of `out`, which then is `value`."""

    at: int
    step: Step
    operands: tuple[Place, ...]
    out: Place
    part: Place
    value: int


class Call(NamedTuple):
    """A user function; its results are copied into `outs`, or are these arrays."""

    at: int
    step: Step
    operands: tuple[Place, ...]
    outs: tuple[Place, ...]


class See(NamedTuple):
    """The start of the lifetime of `view`, the result of a view step."""

    at: int
    step: Step
    view: View


class Make(NamedTuple):
    """The start of the lifetime of `out`, with undefined contents."""

    at: int
    out: Argument | Result | Buffer


class Fill(NamedTuple):
    """Fill `out` with one number."""

    at: int
    out: Place
    value: Any
    dtype: DType


class Copy(NamedTuple):
    """Copy the elements of `value` from one array to another, or to a `new` one."""

    at: int
    value: int
    source: Place
    out: Place
    new: bool = False


class Combine(NamedTuple):
    """Combine `part`, the partial result of a block, into `total` by the ufunc `how`."""

    at: int
    how: str
    part: Buffer
    total: Place


class Release(NamedTuple):
    """The end of a buffer's lifetime."""

    at: int
    buffer: Buffer


class Loop(NamedTuple):
    """A loop: `body` runs for each block of rows of a region, serially or in several threads.

    `totals` run at the end of each turn, in the order of the turns.
    """

    at: int
    number: int
    region: Region
    body: tuple[Any, ...]
    totals: tuple[Any, ...]


class Return(NamedTuple):
    """Return a place as result `number`."""

    at: int
    number: int
    place: Place


Instruction: TypeAlias = (
    Compute | Put | Call | See | Make | Fill | Copy | Combine | Release | Loop | Return
)


# Statements of elements on values in memory, by number.


@final
@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of a node: a number, an index, a value of the nest, or memory.

    `text` is a number in C. With a `cast` to a C type it is the index `offset` plus `strides` along
    the axes of the nest, and so are the indices of elements of `root`. `value` is computed by the
    nest at the same index.
    """

    text: str = ""
    cast: str = ""
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
    `within` a range (first index, count), else the constant `name`. "parts" is the operand in whose
    range `within` the index along axis `offset` is.
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
PLAIN = ("text", "call", "copy", "take", "inner", "parts")


@final
@dataclass(slots=True)
class Nest:
    """A loop nest: `nodes` for all indices in `domain`; `stored` values are written to memory.

    If `added`, sums begin with what is in their memory. With `pairs`, the loops run over i < j, for
    a square domain in squares of so many rows, without those on the diagonal.
    """

    domain: Shape
    nodes: list[Node] = field(default_factory=list)
    stored: dict[int, None] = field(default_factory=dict)
    added: bool = False
    pairs: int = 0

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

    @property
    def values(self) -> tuple[int, ...]:
        return (self.value,)

    @property
    def operands(self) -> tuple[int, ...]:
        return self.left.root, self.right.root


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
class Blocks:
    """Items that run block by block, over `rows` of `extent` rows.

    The first of the `bodies` is for `rows` rows, the second, if present, for the remainder. `given`
    has the access to input rows by input number, which strides from row to row. The outputs are
    `totals`, which are accumulated, and rows of the values `kept`. Groups of blocks accumulate
    their own totals. `constants` maps the constants of each body to values here.
    """

    extent: int
    rows: int
    groups: int
    bodies: tuple[Nests, ...]
    given: Mapping[int, Access]
    totals: Mapping[int, str]
    kept: tuple[Access, ...]
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
    """A host call: a step that NumPy runs, and the reason: what C has not, or does not faster."""

    step: Step
    values: tuple[int, ...]
    operands: tuple[int, ...]
    reason: str = ""


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


def values_read(item: Item) -> Iterator[int]:
    """Yield the values that an item reads from memory."""
    if isinstance(item, Nest):
        yield from (o.root for node in item.nodes for o in node.operands if o.root >= 0)
    elif isinstance(item, Blocks):
        yield from (rows.root for rows in item.given.values())
    else:
        yield from item.operands
        if isinstance(item, Product) and item.is_added:
            yield item.value


def values_written(item: Item) -> list[int]:
    """Return the values that an item writes to memory."""
    if isinstance(item, HostCall | Control | Routine | Product):
        return list(item.values)
    if isinstance(item, Blocks):
        return [*item.totals, *(rows.root for rows in item.kept)]
    return [*item.stored, *(n.value for n in item.nodes if n.kind not in PLAIN)]
