"""C code for branches and loops, with their bodies inline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Protocol

from primgraph.codegen.ir.c_extents import is_few, is_one, is_zero
from primgraph.codegen.ir.expressions import MUL
from primgraph.codegen.ir.statements import Control, Nests
from primgraph.codegen.targets.export.extents import offset_address
from primgraph.codegen.targets.export.needed import reads
from primgraph.codegen.targets.export.nests.formulas import kind_of
from primgraph.codegen.targets.export.page import Page, declare
from primgraph.codegen.targets.export.places import Place
from primgraph.codegen.targets.export.scope import hints_of
from primgraph.ir.types import TensorType
from primgraph.primitives.control import Flow, split_operands


class Writer(Page, Protocol):
    """Interface of the generator of the enclosing items."""

    def open_loop(self, hint: str, bound: str) -> str:
        """Open a loop of `bound` iterations; return the unique name of its variable."""

    def reopen(self) -> None:
        """Continue in a block that the closing line of the last one has opened."""

    def new(self, type: TensorType, hint: str) -> Place:
        """Return a place for an array that the current item needs."""

    def body(self, plan: Nests, places: Mapping[int, Place]) -> None:
        """Write the items of a body at the current position."""


def control(page: Writer, item: Control) -> None:
    """Write a branch or a loop."""
    page.write_source_comment(item.step.source)
    # Carries, and the iteration count, are declared with their initial values.
    regions = item.step.regions
    assert regions is not None
    for v in item.values[regions.carries + regions.counts :]:
        declare(page, page.place(v), page.type(v))
    _WRITERS[regions.flow](page, item)
    for v in item.values:
        place = page.place(v)
        if v not in page.scope.read and place.name != "NULL" and place.name.isidentifier():
            page.line(f"(void){place.text};")


def _once(page: Writer, item: Control) -> None:
    _write_body(page, item, 0, [*item.operands, *item.values])


def _write_body(page: Writer, item: Control, which: int, places: Sequence[Place | int]) -> None:
    """Write a body whose inputs and outputs, in order, are at `places` or are outer values."""
    plan = item.bodies[which]
    used = reads(plan).union(plan.outputs)
    pairs = zip([*range(plan.schedule.inputs), *plan.outputs], places, strict=True)
    around = [*pairs, *item.constants[which].items()]
    # Tables of unused constants would be written to the file.
    known = {v: page.place(p) if isinstance(p, int) else p for v, p in around if v in used}
    page.body(plan, known)


def _branches(page: Writer, item: Control) -> None:
    index_, *operands = item.operands
    chosen = page.place(index_).element("0") if len(item.bodies) > 1 else ""
    places = [*operands, *item.values]
    count = len(item.bodies)
    flag = count == 2 and item.step.operands[0].dtype.kind == "b"
    heads = [f"if ({chosen} <= {k})" for k in range(count - 1)] + [""]
    order = [1, 0] if flag else list(range(count))
    if flag:
        heads = [f"if ({chosen})", ""]
    page.open(heads[0])
    for at, k in enumerate(order):
        if at:
            page.close(f"}} else {heads[at]} {{".replace("  ", " "))
            page.reopen()
        _write_body(page, item, k, places)
    page.close()


def _initialise_carries(
    page: Writer, item: Control, begin: Sequence[int], kinds: Sequence[TensorType]
) -> None:
    """Initialise the carries in the places of the loop's results."""
    for v, first, type in zip(item.values, begin, kinds, strict=False):
        same = page.scope.same(first)
        if same and not is_few(type.size, 1):
            write_fill(page, page.place(v), same, type)
        else:
            write_copy(page, page.place(v), page.place(first), type)


def write_fill(page: Writer, target: Place, text: str, type: TensorType) -> None:
    """Write a loop that fills an array with one value."""
    i = page.loops[0]
    page.open(f"for (long {i} = 0; {i} < {page.size(type.size)}; {i}++)")
    page.line(f"{target.element(i)} = {text};")
    page.close()


def write_copy(page: Writer, target: Place, source: Place, type: TensorType) -> None:
    """Write statements that copy an array."""
    if is_zero(type.size):
        return
    if target.is_number:
        kind = "" if target.is_declared else f"{kind_of(type.dtype)} "
        target.is_declared = True
        page.line(f"{kind}{target.text} = {source.element('0')};")
    else:
        size = f"{_count(page, type)} * sizeof *{target.text}"
        page.line(f"{page.use('memcpy')}({target.text}, {source.pointer}, {size});")


def _next(
    page: Writer, plan: Nests, kinds: Sequence[TensorType], hints: Mapping[int, str], start: int
) -> list[Place]:
    """Return places for the next carries."""
    return [
        page.new(t, f"next_{hints[start + k]}" if hints.get(start + k) else "next")
        for k, t in enumerate(kinds)
    ]


def _has_row(stack: Place, type: TensorType, count: int) -> bool:
    """Return whether `_row` depends on the trip."""
    return not is_zero(0 if is_zero(count) else prod(type.shape[1:])) and not stack.is_number


def _row(
    page: Writer, stack: Place, type: TensorType, count: int, trip: str, hint: str, *, const: bool
) -> Place:
    """Return the place of a row of a stack."""
    size = 0 if is_zero(count) else prod(type.shape[1:])
    if is_zero(size):
        return page.null()
    if stack.is_number:
        return stack
    if is_one(size):
        return Place(stack.element(trip), True)
    name = page.name(hint if hint not in page.names.taken else f"{hint}_row")
    row = offset_address(stack.text, page.index(0, [trip], [size]))
    page.line(f"{'const ' if const else ''}{kind_of(type.dtype)} *const {name} = {row};")
    return Place(name, False)


def _scan(page: Writer, item: Control) -> None:
    p, (plan,) = item.step.params, item.bodies
    given, types = item.operands[p["counted"] :], item.step.operands[p["counted"] :]
    fixed, state, xs = split_operands(given, p["consts"], p["carries"])
    _, kinds, stacks = split_operands(types, p["consts"], p["carries"])
    count, length = len(state), p["length"]
    ys = list(zip(item.values[count:], item.step.results[count:], strict=True))
    hints, used = hints_of(plan), reads(plan)
    _initialise_carries(page, item, state, kinds)
    bound = page.size(length)
    if is_zero(length):
        return
    if p["counted"]:
        for v, t in ys:
            write_zeros(page, page.place(v), t)
        told, bound = page.place(item.operands[0]).element("0"), page.name("steps")
        most = page.size(length)
        page.line(f"const long {bound} = {told} < {most} ? (long){told} : {most};")
    trip = page.open_loop("step", bound)
    if p["reverse"]:
        back = page.name("row")
        last = f"{bound} - 1" if p["counted"] else page.size(length - 1)
        read = [
            x for k, x in enumerate(zip(xs, stacks, strict=True)) if k + len(fixed) + count in used
        ]
        if any(_has_row(page.place(v), t, length) for v, t in (*read, *ys)):
            page.line(f"const long {back} = {last} - {trip};")
        trip = back
    places: list[Place | int] = [*fixed, *item.values[:count]]
    begin = len(places)
    for k, (v, t) in enumerate(zip(xs, stacks, strict=True)):
        if begin + k in used:
            hint = hints.get(begin + k, "row")
            places.append(_row(page, page.place(v), t, length, trip, hint, const=True))
        else:
            places.append(page.null())
    following = _next(page, plan, kinds, hints, len(fixed))
    places += following
    for v, t in ys:
        places.append(_row(page, page.place(v), t, length, trip, "out", const=False))
    _write_body(page, item, 0, places)
    for v, place, type in zip(item.values, following, kinds, strict=False):
        write_copy(page, page.place(v), place, type)
    page.close()


def _count(page: Writer, type: TensorType) -> str:
    """Return the number of elements of an array, as a factor of a product."""
    return page.size(type.size, MUL)


def write_zeros(page: Writer, place: Place, type: TensorType) -> None:
    if is_zero(type.size):
        return
    if place.is_number:
        page.line(f"{place.text} = 0;")
    else:
        size = f"{_count(page, type)} * sizeof *{place.text}"
        page.line(f"{page.use('memset')}({place.text}, 0, {size});")


def _while(page: Writer, item: Control) -> None:
    p = item.step.params
    consts, limit = p["consts"], p["limit"]
    fixed, state = item.operands[:consts], item.operands[consts:]
    kinds, count = item.step.operands[consts:], len(item.operands) - consts
    ys = list(zip(item.values[count + 1 :], item.step.results[count + 1 :], strict=True))
    _, plan = item.bodies
    hints = hints_of(plan)
    for v, t in ys:
        write_zeros(page, page.place(v), t)
    _initialise_carries(page, item, state, kinds)
    trips = page.place(item.values[count])
    if trips.is_declared:
        page.line(f"{trips.text} = 0;")
    declare(page, trips, item.step.results[count], " = 0")
    if limit is not None and is_zero(limit):
        return
    page.open("for (;;)" if limit is None else f"while ({trips.text} < {page.size(limit)})")
    known: list[Place | int] = [*fixed, *item.values[:count]]
    again = Place(page.name("again"), True, is_declared=False)
    _write_body(page, item, 0, [*known, again])
    page.open(f"if (!{again.text})")
    page.line("break;")
    page.close()
    following = _next(page, plan, kinds, hints, len(fixed))
    rows = [_row(page, page.place(v), t, limit, trips.text, "out", const=False) for v, t in ys]
    _write_body(page, item, 1, [*known, *following, *rows])
    for v, place, type in zip(item.values, following, kinds, strict=False):
        write_copy(page, page.place(v), place, type)
    page.line(f"{trips.text} += 1;")
    page.close()


_WRITERS = {Flow.ONCE: _once, Flow.CHOICE: _branches, Flow.ROWS: _scan, Flow.TEST: _while}
