"""C code for blocks of rows: functions for a block and for a group, and their calls.

Each group has its own totals; those of the first group are the values themselves. Groups may run in
threads; their totals are added in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from math import prod

from primgraph.codegen.ir.c_extents import extent, is_one, is_zero
from primgraph.codegen.ir.statements import Blocks
from primgraph.codegen.ops.c.spellings import moved_type
from primgraph.codegen.targets.c.control import Body, Writer
from primgraph.codegen.targets.c.reductions import accumulation_statement, first_of
from primgraph.codegen.targets.c.size_arguments import SIZES
from primgraph.ir.types import larger


def blocks(writer: Writer, item: Blocks) -> Iterator[str]:
    """Yield the lines of the loop over all blocks."""
    pairs = zip(item.bodies, item.constants, strict=True)
    bodies = [writer.body(plan, constants) for plan, constants in pairs]
    arena = reduce(larger, [body.arena for body in bodies])
    group = _Group(writer, item)
    name = writer.function(group.lines(bodies))
    room = writer.room(arena)
    yield f"void *const c[] = {{{', '.join(group.places) or '0'}}};"
    if is_one(item.groups):
        yield f"const int failed = {name}(c, {room}, 0); if (failed) return failed;"
    else:
        groups, size = extent(item.groups), extent(arena)
        yield f"const int failed = {writer.use('pg_share')}({name}, c, {room}, {groups}, {size});"
        yield "if (failed) return failed;"
        yield from group.sums()


class _Group:
    """Generator of the function for a group; its arguments are the pointers in `places`."""

    def __init__(self, writer: Writer, item: Blocks) -> None:
        self.writer, self.item = writer, item
        self.places: dict[str, int] = {}
        self.parts: dict[int, str] = {}

    def address_of(self, place: str) -> str:
        k = self.places.setdefault(f"(void *){place}", len(self.places))
        return f"(char *)a[{k}]"

    def lines(self, bodies: list[Body]) -> list[str]:
        item = self.item
        count, groups = extent(item.count), extent(item.groups)
        found = [*self.totals()]
        found.append(f"const long last = {count} * (g + 1) / {groups};")
        found.append("int failed;")
        found.append(f"for (long k = {count} * g / {groups}; k < last; k++) {{")
        if len(bodies) == 1:
            found.append(f"    {self.call(bodies[0])}")
        else:
            found.append(f"    if (k < {extent(item.extent // item.rows)}) {self.call(bodies[0])}")
            found.append(f"    else {self.call(bodies[1])}")
        found.append("    if (failed) return failed;")
        found += [f"    if ({self.writer.use('pg_stop')} && pg_stop()) return -1;", "}"]
        declared = self.writer.sizes(self.address_of)
        return [declared, *found] if declared else found

    def totals(self) -> Iterator[str]:
        for k, (v, kind) in enumerate(self.item.totals.items()):
            type = self.writer.type(v)
            place, others = self.writer.place(v), self.item.groups - 1
            if not is_zero(others):
                self.parts[v] = self.writer.room(others * type.nbytes)
                part = f"{self.address_of(self.parts[v])} + (g - 1) * {type.nbytes}"
                yield f"char *const t{k} = g ? {part} : {self.address_of(place)};"
            else:
                yield f"char *const t{k} = {self.address_of(place)};"
            start, c = first_of(kind, type), moved_type(type.dtype)
            yield f"for (long i = 0; i < {extent(type.size)}; i++) (({c} *)t{k})[i] = {start};"

    def call(self, body: Body) -> str:
        where = self.arrays(body)
        given = ", ".join([f"(void *)({where[v]})" for v in body.arrays]) or "0"
        return f"{{ void *const b[] = {{{given}}}; failed = {body.name}(b, w); }}"

    def arrays(self, body: Body) -> Mapping[int, str]:
        """Return expressions for the arrays of a body, for block `k`."""
        item, place = self.item, self.writer.place
        where = {v: self.address_of(place(own)) for v, own in body.constants.items()}
        if SIZES in body.arrays:
            where[SIZES] = self.address_of(place(SIZES))
        outputs = body.plan.outputs
        for k, v in enumerate(outputs[: len(item.totals)]):
            where[v] = f"t{k}"
        rows = [*item.given.items(), *zip(outputs[len(item.totals) :], item.kept, strict=True)]
        for v, of in rows:
            size = self.writer.type(of.root).dtype.itemsize
            terms = [self.address_of(place(of.root))]
            if not is_zero(of.offset):
                terms.append(extent(of.offset * size))
            (step,) = of.strides
            if not is_zero(step):
                terms.append(f"k * {extent(step * item.rows * size)}")
            where[v] = " + ".join(terms)
        return where

    def sums(self) -> Iterator[str]:
        for v, kind in self.item.totals.items():
            type = self.writer.type(v)
            c, n = moved_type(type.dtype), prod(type.shape)
            yield f"{{ {c} *restrict t = ({c} *){self.writer.place(v)};"
            yield f"  const {c} *restrict p = (const {c} *){self.parts[v]};"
            yield f"  for (long g = 0; g < {extent(self.item.groups - 1)}; g++, p += {extent(n)})"
            added = accumulation_statement(kind, "t[i]", "p[i]")
            yield f"    for (long i = 0; i < {extent(n)}; i++) {{ {added} }} }}"
