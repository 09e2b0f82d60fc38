"""Printer of one C function, item by item; bodies of branches and loops are inline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeAlias, final

from primgraph.base.user_lines import Source
from primgraph.codegen.ir.c_extents import is_few, is_one, is_zero
from primgraph.codegen.ir.extents import MUL
from primgraph.codegen.ir.statements import (
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
from primgraph.codegen.ops.c.spellings import may_fail
from primgraph.codegen.targets.export.calls import product, routine
from primgraph.codegen.targets.export.elements import nest
from primgraph.codegen.targets.export.page import (
    Page,
    Part,
    declare,
    fill,
    use_code,
    write_source_comment,
)
from primgraph.codegen.targets.export.places import Place, kind_of
from primgraph.codegen.targets.export.scope import hints_of, reads, scope_of
from primgraph.codegen.targets.export.sizes import offset_address
from primgraph.codegen.targets.text.flow import Loop, is_flag, loop_of, write_flow
from primgraph.errors import CompileError
from primgraph.ir.dims import is_open
from primgraph.ir.types import TensorType
from primgraph.primitives.control import COUNT

# Maximum number of steps in one function: compile time is superlinear in its length.
CHUNK = 400


def write_function(page: Page, places: Mapping[int, Place]) -> None:
    """Write the function; `places` are those of inputs and results."""
    plan = page.top.plan
    page.top.places.update(places)
    groups = _groups(plan)
    page.crossing = _crossing_values(plan, groups) - places.keys()
    for k, group in enumerate(groups):
        page.parts.append(Part(f"{page.own}_part{k + 1}" if len(groups) > 1 else page.own))
        page.said = None
        for at in group:
            _write(page, at)


def _write(page: Page, at: int) -> None:
    """Write an item of the scope."""
    item = page.scope.items[at]
    page.scope.at = at
    if item is None:
        page.give(at)
        return
    if isinstance(item, HostCall):
        raise _unsupported_error(_unsupported(page.scope.items), page.own)
    write_source_comment(page, _source(item))
    page.take(at)
    if isinstance(item, Nest):
        some = not is_zero(prod(item.domain))
        if some and any(node.reach or may_fail(node.step) for node in item.nodes):
            page.watch()
        use_code(page, *(node.step for node in item.nodes))
        nest(page, item)
    elif isinstance(item, Product):
        product(page, item)
    elif isinstance(item, Control):
        control(page, item)
    elif isinstance(item, Routine):
        use_code(page, item.step)
        routine(page, item)
    page.give(at)


def _unsupported(items: Sequence[Item | None]) -> HostCall:
    """Return the host call to name: one that is no elementwise or linear function, if any.

    Complex numbers are pairs of real ones if all functions of them are in C, so that one that is
    not leaves complex numbers to all.
    """
    found = [item for item in items if isinstance(item, HostCall)]
    ops = [h.step.op for h in found]
    hard = [not op.elementwise and op.linear not in (True, "each") for op in ops]
    return found[hard.index(True) if any(hard) else 0]


def _unsupported_error(item: HostCall, name: str) -> CompileError:
    source = item.step.eqn.source
    hint = "compute it outside and make it an input, or save NumPy source: kernel.save('{}.py')"
    if any(is_open(t.shape) for t in (*item.step.operands, *item.step.results)):
        hint = "give the loop max_trips; or take derivatives forward, which keep nothing"
    return CompileError(
        f"{item.reason}, so {name} cannot be saved as C",
        origin=() if source is None else (f"{source}   {source.text}",),
        hint=hint.format(name),
    )


def _write_body(page: Page, plan: Nests, places: Mapping[int, Place]) -> None:
    """Write the items of a body at the current position."""
    around = page.scope
    page.scope = scope_of(plan, places)
    for at in range(len(plan.items)):
        _write(page, at)
    for at in list(page.scope.given):
        page.give(at)
    page.scope = around


def _source(item: Item) -> Source | None:
    """Return the user's source line of an item's first step."""
    if not isinstance(item, Nest):
        return None if isinstance(item, Blocks) else item.step.source
    steps = [n.step for n in item.nodes if n.step is not None]
    told = [s.source for s in steps if s.source is not None and s.source.is_readable]
    return told[0] if told else None


def _groups(plan: Nests) -> list[list[int]]:
    """Return the indices of items, in groups that become one function each."""
    groups: list[list[int]] = [[]]
    size = 0
    for at, item in enumerate(plan.items):
        weight = len(item.nodes) if isinstance(item, Nest) else 1
        if isinstance(item, Control):
            weight += sum(len(body.items) for body in item.bodies)
        if size and size + weight > CHUNK:
            groups.append([])
            size = 0
        size += weight
        groups[-1].append(at)
    return groups


def _crossing_values(plan: Nests, groups: Sequence[Sequence[int]]) -> set[int]:
    """Return values that one group writes, and another one reads or accumulates into."""
    group_of = {at: k for k, group in enumerate(groups) for at in group}
    first: dict[int, int] = {}
    found = set()
    for at, item in enumerate(plan.items):
        for v in values_written(item):
            begin = group_of[first.setdefault(v, at)]
            last = max(plan.last.get(v, at), at)
            if {begin, group_of[at], group_of.get(last, begin)} != {begin}:
                found.add(v)
    return found


# A value of the enclosing scope, or its place.
Value: TypeAlias = "int | Place"


def control(page: Page, item: Control) -> None:
    """Write a branch or a loop."""
    write_source_comment(page, item.step.source)
    # Carries, and the iteration count, are declared with their initial values.
    regions = item.step.regions
    assert regions is not None
    for v in item.values[regions.carries + regions.counts :]:
        declare(page, page.place(v), page.type(v))
    words, most = _Words(page, item), item.step.most_trips
    if most is not None and is_zero(most):
        words.begin(loop_of(item.step, item.operands, item.values))
    else:
        write_flow(words, item.step, item.operands, item.values)
    for v in item.values:
        place = page.place(v)
        if v not in page.scope.read and place.name != "NULL" and place.name.isidentifier():
            page.line(f"(void){place.text};")


@final
class _Words:
    """C for one branch or loop; values are numbers of the enclosing scope, or places."""

    def __init__(self, page: Page, item: Control) -> None:
        self.page, self.item = page, item
        self.heads: list[str] = []
        # The index of the row of an iteration.
        self.row = ""

    def place(self, value: Value) -> Place:
        return self.page.place(value) if isinstance(value, int) else value

    def choose(self, index: Value) -> Sequence[int]:
        count = len(self.item.bodies)
        chosen = self.place(index).element("0") if count > 1 else ""
        if is_flag(self.item.step):
            self.heads = [f"if ({chosen})", ""]
            return (1, 0)
        self.heads = [f"if ({chosen} <= {k})" for k in range(count - 1)] + [""]
        return range(count)

    def case(self, at: int) -> None:
        if at:
            self.page.close(f"}} else {self.heads[at]} {{".replace("  ", " "))
            self.page.reopen()
        else:
            self.page.open(self.heads[0])

    def body(self, k: int, given: Sequence[Value], made: Sequence[Value]) -> None:
        plan = self.item.bodies[k]
        used = reads(plan).union(plan.outputs)
        places = [*given, *made]
        pairs = zip([*range(plan.schedule.inputs), *plan.outputs], places, strict=True)
        around = [*pairs, *self.item.constants[k].items()]
        # Tables of unused constants would be written to the file.
        _write_body(self.page, plan, {v: self.place(p) for v, p in around if v in used})

    def close(self) -> None:
        self.page.close()

    def begin(self, loop: Loop[Value]) -> Sequence[Value]:
        page = self.page
        if loop.number is not None or loop.count is not None:
            for v, t in zip(loop.stacks, loop.stacked_kinds, strict=True):
                write_zeros(page, self.place(v), t)
        for v, first, type in zip(loop.ends, loop.state, loop.kinds, strict=True):
            same = page.scope.same(first) if isinstance(first, int) else ""
            if same and not is_few(type.size, 1):
                fill(page, self.place(v), same, type)
            else:
                write_copy(page, self.place(v), self.place(first), type)
        if loop.number is not None:
            trips = self.place(loop.number)
            if trips.is_declared:
                page.line(f"{trips.text} = 0;")
            declare(page, trips, COUNT, " = 0")
        return loop.ends

    def repeat(self, loop: Loop[Value]) -> Sequence[Value]:
        page, most = self.page, loop.step.most_trips
        if loop.number is not None:
            self.row = self.place(loop.number).text
            page.open("for (;;)" if most is None else f"while ({self.row} < {page.size(most)})")
            return []
        bound = page.size(most)
        if loop.count is not None:
            told, bound, size = (
                self.place(loop.count).element("0"),
                page.names.fresh("steps"),
                bound,
            )
            page.line(f"const long {bound} = {told} < {size} ? (long){told} : {size};")
        self.row = page.open_loop("step", bound)
        begin = len(loop.fixed) + len(loop.ends)
        plan, used = self.item.bodies[-1], reads(self.item.bodies[-1])
        pairs = [*zip(loop.scanned, loop.scanned_kinds, strict=True)]
        read = [pair if begin + k in used else None for k, pair in enumerate(pairs)]
        if loop.params["reverse"]:
            back = page.names.fresh("row")
            last = f"{bound} - 1" if loop.count is not None else page.size(most - 1)
            rows = [*filter(None, read), *zip(loop.stacks, loop.stacked_kinds, strict=True)]
            if any(_has_row(self.place(v), t, most) for v, t in rows):
                page.line(f"const long {back} = {last} - {self.row};")
            self.row = back
        hints = hints_of(plan)
        return [
            self.row_place(*pair, hints.get(begin + k, "row"), const=True)
            if pair
            else page.tables.null
            for k, pair in enumerate(read)
        ]

    def row_place(self, stack: Value, type: TensorType, hint: str, *, const: bool) -> Place:
        most = self.item.step.most_trips
        return _row(self.page, self.place(stack), type, most, self.row, hint, const=const)

    def test(self, loop: Loop[Value], given: Sequence[Value]) -> None:
        again = Place(self.page.names.fresh("again"), True, is_declared=False)
        self.body(0, given, [again])
        self.page.open(f"if (!{again.text})")
        self.page.line("break;")
        self.page.close()

    def trip(self, loop: Loop[Value], given: Sequence[Value]) -> None:
        page, hints = self.page, hints_of(self.item.bodies[-1])
        names = [hints.get(len(loop.fixed) + k, "") for k, _ in enumerate(loop.ends)]
        following = [
            page.new(t, f"next_{name}" if name else "next")
            for t, name in zip(loop.kinds, names, strict=True)
        ]
        pairs = zip(loop.stacks, loop.stacked_kinds, strict=True)
        rows = [self.row_place(v, t, "out", const=False) for v, t in pairs]
        self.body(-1, given, [*following, *rows])
        for v, place, type in zip(loop.ends, following, loop.kinds, strict=True):
            write_copy(page, self.place(v), place, type)
        if loop.number is not None:
            page.line(f"{self.row} += 1;")

    def end(self, loop: Loop[Value]) -> None:
        # The carries are in the places of the results.
        pass


def write_copy(page: Page, target: Place, source: Place, type: TensorType) -> None:
    """Write statements that copy an array."""
    if is_zero(type.size):
        return
    if target.is_number:
        page.store(target, "0", source.element("0"), type.dtype)
    else:
        size = f"{_count(page, type)} * sizeof *{target.text}"
        page.line(f"{page.use('memcpy')}({target.text}, {source.pointer}, {size});")


def _has_row(stack: Place, type: TensorType, count: int) -> bool:
    """Return whether `_row` depends on the trip."""
    return not is_zero(0 if is_zero(count) else prod(type.shape[1:])) and not stack.is_number


def _row(
    page: Page, stack: Place, type: TensorType, count: int, trip: str, hint: str, *, const: bool
) -> Place:
    """Return the place of a row of a stack."""
    size = 0 if is_zero(count) else prod(type.shape[1:])
    if is_zero(size):
        return page.tables.null
    if stack.is_number:
        return stack
    if is_one(size):
        return Place(stack.element(trip), True)
    name = page.names.fresh(hint if hint not in page.names.taken else f"{hint}_row")
    row = offset_address(stack.text, page.index(0, [trip], [size]))
    page.line(f"{'const ' if const else ''}{kind_of(type.dtype)} *const {name} = {row};")
    return Place(name, False)


def _count(page: Page, type: TensorType) -> str:
    """Return the number of elements of an array, as a factor of a product."""
    return page.size(type.size, MUL)


def write_zeros(page: Page, place: Place, type: TensorType) -> None:
    if is_zero(type.size):
        return
    if place.is_number:
        page.line(f"{place.text} = 0;")
    else:
        size = f"{_count(page, type)} * sizeof *{place.text}"
        page.line(f"{page.use('memset')}({place.text}, 0, {size});")
