"""C source of a kernel: functions of loop nests for segments of items, and their calls."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Any, NamedTuple, final

from primgraph.base.debug_mode import debugging
from primgraph.base.user_lines import Source as UserLine
from primgraph.codegen.ir.access import Access, row_major
from primgraph.codegen.ir.c_extents import HELPERS, Memory, Place, extent, index_text, is_zero
from primgraph.codegen.ir.statements import (
    POINTER,
    Blocks,
    Control,
    HostCall,
    Item,
    Nest,
    Nests,
    Product,
    Routine,
    values_written,
)
from primgraph.codegen.ir.verify import Room, verify_memory
from primgraph.codegen.lower.nests.routines import routine
from primgraph.codegen.ops.c.call_lines import Call
from primgraph.codegen.ops.c.spellings import ITEM_SIZES, c_type, codes_of, type_name
from primgraph.codegen.targets.c.blocks import blocks
from primgraph.codegen.targets.c.body import statements
from primgraph.codegen.targets.c.control import FUNCTIONS, Body, Places, control, wrapper_function
from primgraph.codegen.targets.c.lines import Function, in_units, indented, one_unit, sources_of
from primgraph.codegen.targets.c.parts import required_parts
from primgraph.codegen.targets.c.shared_nests import Address, SharedNests
from primgraph.codegen.targets.c.size_arguments import SIZES, SizeArguments
from primgraph.ir.dims import is_open
from primgraph.ir.types import TensorType

# Maximum number of nodes in a C function: compile time is superlinear in its length.
_CHUNK = 250


@final
class Segment(NamedTuple):
    """A C function: its name, the values whose arrays it takes, in order, and those it writes.

    Its last argument is the workspace. It returns 0, a positive number if NumPy is to raise the
    error, or a negative one if it was interrupted. The value `SIZES` stands for the numbers of
    `SizeArguments`.
    """

    name: str
    arrays: tuple[int, ...]
    written: tuple[int, ...]


@final
class Source(NamedTuple):
    """The text of a file, and its schedule: C functions and host calls in order.

    `arena` is the size in bytes of the shared workspace. `sources` has the user's line of lines of
    the text, by their numbers. The text can be compiled in so many `units`.
    """

    text: str
    order: tuple[Segment | HostCall, ...]
    arena: int
    sources: Mapping[int, UserLine]
    units: int


def source(
    plan: Nests, name: str, told: SizeArguments | None = None, *, is_traced: bool = False
) -> Source:
    """Generate the C of `plan`, with the symbolic sizes of `told`; with `sources` if traced."""
    writer = _Writer(plan, name, told, is_traced)
    writer.write()
    return _assemble(writer)


@final
class _Writer:
    """Generator of the items of one plan: of a graph, or of a body."""

    def __init__(self, plan: Nests, name: str, told: SizeArguments | None, is_traced: bool) -> None:
        self.plan, self.name, self.told, self.is_traced = plan, name, told, is_traced
        self.order: list[Segment | HostCall] = []
        self.functions: list[Function] = []
        self.declared = list(_user_code(plan))
        # The C library functions that are called.
        self.called: set[str] = set()
        # Macros of bodies.
        self.macros: list[str] = []
        self.arena = Memory(name)
        self.offset: dict[int, Place] = {}
        # Values that are NumPy arrays: inputs, constants, results, operands of host calls.
        self.arrays = {SIZES, *range(plan.schedule.inputs), *plan.constants, *plan.outputs}
        for item in plan.items:
            if isinstance(item, HostCall):
                self.arrays.update(item.values)
                self.arrays.update(item.operands)
        self.ends: dict[int, list[int]] = {}
        self.arrays.update(_crossing_values(plan))
        self.given: dict[int, int] = {}
        self.written: dict[int, None] = {}
        self.count = 0
        # Offsets and sizes of the workspace of the current item.
        self.rooms: list[tuple[Place, int]] = []
        # Growing stacks, whose pointers live during the whole call.
        made = [v for item in plan.items for v in values_written(item)]
        self.stacks = [v for v in made if is_open(plan.types[v].shape)]
        self.offset.update({v: self.arena.take(POINTER) for v in self.stacks})
        self.all_rooms: list[Room] = []
        self.at = 0
        # Lines with the user's lines stay in place.
        self.shared = SharedNests(name, plan, partial(_statements, plan), active=not is_traced)

    def write(self) -> None:
        """Write the functions of all items."""
        run: list[tuple[int, Item]] = []
        for at, item in enumerate(self.plan.items):
            if isinstance(item, HostCall):
                self.segment(run)
                run = []
                self.order.append(item)
            else:
                run.append((at, item))
        self.segment(run)
        if debugging.get():
            written = [values_written(item) for item in self.plan.items]
            verify_memory(self.plan, written, self.offset, self.all_rooms)

    def segment(self, items: Sequence[tuple[int, Item]]) -> None:
        if not items:
            return
        self.given, self.written = {}, {}
        name = f"{self.name}_{len(self.order)}"
        parts: list[list[str]] = [[]]
        size = 0
        for run, period in self.runs(items):
            for steps in [run] if period else [[step] for step in run]:
                weight = sum([_weight(item) for _, item in steps[: period or 1]])
                if size and size + weight > _CHUNK:
                    parts.append([])
                    size = 0
                size += weight
                # Functions of bodies come first.
                lines = list(self.loop(steps, period) if period else self.item(*steps[0]))
                parts[-1] += ["    {", *indented("        ", lines), "    }"]
        if self.told is not None:
            for part in parts:
                part.insert(0, f"    {self.sizes(str)}")
        places = [self.place(v) for v in self.stacks]
        self.functions += self.shared.take_functions()
        self.functions += _functions(f"{name}_within" if places else name, parts)
        if places:
            self.declared.append(FUNCTIONS)
            self.functions.append(wrapper_function(name, f"{name}_within", _ARGUMENTS, places))
        self.order.append(Segment(name, tuple(self.given), tuple(self.written)))

    def runs(self, items: Sequence[tuple[int, Item]]) -> Iterable[tuple[Any, int]]:
        """Return the items in runs, with the period of those that are loops, and 0 of others."""
        return [(items, 0)] if self.told else self.shared.runs(items, self.arrays)

    def item(self, at: int, item: Item) -> Iterator[str]:
        """Yield the lines of an item."""
        self.take(at, item)
        yield from self.lines(item)
        self.give(at)

    def loop(self, run: Sequence[tuple[int, Item]], period: int) -> Iterator[str]:
        """Yield the loop over a run of items."""
        rows: list[list[Address]] = []
        for k, (at, item) in enumerate(run):
            self.take(at, item)
            if k % period == 0:
                rows.append([])
            rows[-1] += self.shared.addresses(item, self)
            self.give(at)
        yield from self.shared.loop([item for _, item in run[:period]], rows)

    def sizes_place(self) -> Iterator[str]:
        if self.told is not None:
            yield self.place(SIZES)

    def sizes(self, address: Callable[[str], str]) -> str:
        """Return the declaration of the sizes, if any, read from their place's address."""
        return "" if self.told is None else self.told.declaration(address(self.place(SIZES)))

    # Memory.

    def take(self, at: int, item: Item) -> None:
        self.at = at
        for v in values_written(item):
            if v in self.arrays:
                self.place(v)
                self.written[v] = None
            elif v not in self.offset:
                self.offset[v] = self.arena.take(self.type(v).nbytes)
                # Values without a reader are freed at once.
                self.ends.setdefault(max(self.plan.last.get(v, at), at), []).append(v)

    def give(self, at: int) -> None:
        for offset, size in self.rooms:
            self.arena.give(offset, size)
        self.rooms.clear()
        for v in self.ends.pop(at, ()):
            self.arena.give(self.offset[v], self.type(v).nbytes)

    def place(self, value: int) -> str:
        """Return the memory of a value."""
        if value in self.arrays:
            k = self.given.setdefault(value, len(self.given))
            return f"a[{k}]"
        place = self.within(self.offset[value])
        return f"(*(char **){place})" if is_open(self.type(value).shape) else place

    def within(self, offset: Place) -> str:
        """Return the memory of an offset in the workspace."""
        return f"(w + {self.arena.text(offset)})"

    def address(self, value: int) -> Address:
        if value in self.arrays:
            return self.given.setdefault(value, len(self.given)), 0
        return _in_workspace(self.offset[value])

    def type(self, value: int) -> TensorType:
        return self.plan.types[value]

    # Items.

    def lines(self, item: Item) -> Iterator[str]:
        if isinstance(item, Nest | Product | Routine):
            yield from self.shared.lines(item, self)
        elif isinstance(item, Control):
            yield from control(self, item)
        elif isinstance(item, Blocks):
            yield from blocks(self, item)

    def use(self, function: str) -> str:
        """Return the name of a C library function, which the file then includes."""
        self.called.add(function)
        return function

    def room(self, size: int) -> str:
        """Allocate workspace for the current item only."""
        return "w" if is_zero(size) else self.within(self.take_room(size))

    def take_room(self, size: int) -> Place:
        offset = self.arena.take(size)
        self.rooms.append((offset, size))
        self.all_rooms.append((self.at, offset, size))
        return offset

    def allocate(self, size: int) -> Address:
        return _in_workspace(self.take_room(size))

    def body(self, plan: Nests, constants: Mapping[int, int]) -> Body:
        """Add a function for a body."""
        self.count += 1
        writer = _Writer(plan, f"{self.name}_b{self.count}", self.told, self.is_traced)
        writer.write()
        order = writer.order
        self.functions += writer.functions
        self.called |= writer.called
        self.declared += writer.declared
        self.macros += [*writer.macros, *writer.arena.macros()]
        if not order:
            return Body(plan, "", (), constants, 0)
        (segment,) = order
        assert isinstance(segment, Segment)
        return Body(plan, segment.name, segment.arrays, constants, writer.arena.size)

    def function(self, lines: Sequence[str]) -> str:
        """Add a function for a group of blocks; return its name."""
        self.count += 1
        name = f"{self.name}_g{self.count}"
        head = f"int {name}(void *const *a, char *w, long g)"
        body = ["    (void)w; (void)g;", *(f"    {x}" for x in lines), "    return 0;"]
        self.functions.append(Function(head, body))
        return name


@final
class _Call(Call):
    """Names of a routine: arrays and workspace are bytes."""

    is_checked = True

    def __init__(self, writer: Places, item: Routine) -> None:
        super().__init__(item.step)
        self.writer = writer
        self.places = [writer.place(v) for v in (*item.operands, *item.values)]

    def array(self, k: int, kind: str, *, const: bool = False) -> str:
        return f"({'const ' if const else ''}{kind} *){self.places[k]}"

    def room(self, kind: str, count: int) -> str:
        return f"({kind} *){self.writer.room(count * ITEM_SIZES[kind])}"

    def size(self, n: int) -> str:
        return extent(n)

    def use(self, function: str) -> str:
        return self.writer.use(function)

    def fail(self) -> None:
        pass


def _in_workspace(offset: Place) -> Address:
    # Programs of symbolic sizes have no loops over tables of addresses.
    assert isinstance(offset, int)
    return -1, offset


def _assemble(writer: _Writer) -> Source:
    """Return the file of a plan, of the functions that were written."""
    declared = sorted(dict.fromkeys(writer.declared))
    parts = required_parts(writer.called)
    opening = list(_OPENING)
    if writer.told is not None:
        # More functions of symbolic sizes follow, so that the file is compiled as a whole.
        opening += [*HELPERS.values(), "", *writer.macros, *writer.arena.macros(), ""]
        lines, units = one_unit(writer.functions), 1
    else:
        lines, units = in_units(writer.functions)
    pieces = [*opening, *declared, "", parts, "", *lines, ""]
    sources = sources_of(pieces) if writer.is_traced else {}
    return Source("\n".join(pieces), tuple(writer.order), writer.arena.size, sources, units)


def _statements(
    plan: Nests, item: Nest | Product | Routine, places: Places, added: Set[int]
) -> Iterator[str]:
    """Yield the statements of an item of `plan`; some of its values are `added` to."""
    if isinstance(item, Product):
        return _products(places, item, _product(plan.is_block, item, added))
    if isinstance(item, Routine):
        lines = routine(item.step)
        assert lines is not None
        return iter(lines(_Call(places, item)))
    return statements(item, places, added) if item.nodes else iter(())


def _weight(item: Item) -> int:
    return len(item.nodes) if isinstance(item, Nest) else 1


def _products(places: Places, item: Product, name: str) -> Iterator[str]:
    """Yield loops over matrix products, each a call of a function of `products.c`."""
    x, type = item.step.operands[0], item.step.results[0]
    if is_zero(type.size):
        return
    kind = c_type(type.dtype)
    function = places.use(f"{name}_{type_name(type.dtype)}")
    *batch, m, n = type.shape
    k = x.shape[-1]
    yield f"{kind} *restrict o = ({kind} *){places.place(item.value)};"
    yield f"const {kind} *x = (const {kind} *){places.place(item.left.root)};"
    yield f"const {kind} *y = (const {kind} *){places.place(item.right.root)};"
    pad = ""
    for d, rows in enumerate(batch):
        yield f"{pad}for (long i{d} = 0; i{d} < {extent(rows)}; i{d}++)"
        pad += "    "
    indices = [f"i{d}" for d, _ in enumerate(batch)]
    arrays = Access(item.value, 0, row_major(type.shape)), item.left, item.right
    out, left, right = (index_text(a.offset, zip(indices, a.strides, strict=False)) for a in arrays)
    (a0, a1), (b0, b1) = (tuple(map(extent, v.strides[-2:])) for v in (item.left, item.right))
    yield (
        f"{pad}{function}(o + {out}, x + {left}, {a0}, {a1}, "
        f"y + {right}, {b0}, {b1}, {extent(m)}, {extent(n)}, {extent(k)});"
    )


_ARGUMENTS = "void *const *restrict a, char *restrict w"


def _functions(name: str, parts: Sequence[Sequence[str]]) -> list[Function]:
    """Return a function of that name; with several parts it calls one function per part."""
    unused, end = "    (void)a; (void)w;", "    return 0;"
    head, is_public = f"int {name}({_ARGUMENTS})", not name.endswith("_within")
    if len(parts) == 1:
        return [Function(head, [unused, *parts[0], end], is_public)]
    found = [
        Function(f"__attribute__((noinline)) int {name}_{k}({_ARGUMENTS})", [unused, *part, end])
        for k, part in enumerate(parts)
    ]
    calls = [f"    if ((failed = {name}_{k}(a, w))) return failed;" for k in range(len(parts))]
    return [*found, Function(head, ["    int failed;", *calls, end], is_public)]


def _product(is_block: bool, item: Product, added: Set[int]) -> str:
    """Return the function of a product; in blocks not BLAS, whose bits depend on its threads."""
    if not is_block:
        return "pg_onto" if item.is_added else "pg_matmul"
    return "pg_added" if item.is_added or item.value in added else "pg_product"


def _crossing_values(plan: Nests) -> Iterator[int]:
    """Yield values that one C function writes and another one reads."""
    outside = [at for at, item in enumerate(plan.items) if isinstance(item, HostCall)]
    for at, item in enumerate(plan.items):
        following = bisect_right(outside, at)
        if following == len(outside):
            return
        for v in values_written(item):
            if plan.last.get(v, -1) > outside[following]:
                yield v


_OPENING = (
    "#include <math.h>",
    "#include <stdint.h>",
    "#include <string.h>",
    "",
    "typedef struct { float first, second; } pg_floats;",
    "typedef struct { double first, second; } pg_pair;",
    "",
)


def _user_code(plan: Nests) -> Iterator[str]:
    """Yield the user's C of the steps of a plan, except in its bodies."""
    for item in plan.items:
        if isinstance(item, Nest):
            yield from codes_of([node.step for node in item.nodes])
        elif isinstance(item, Routine):
            yield from codes_of([item.step])
