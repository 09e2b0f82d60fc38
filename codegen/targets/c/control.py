"""C code for branches and loops: calls of functions generated from their bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from math import prod
from typing import NamedTuple, Protocol

from primgraph.codegen.ir.c_extents import extent
from primgraph.codegen.ir.statements import Control, Nests
from primgraph.codegen.ops.c.spellings import moved_type
from primgraph.codegen.targets.c.dynamic_stack import one_more, reallocation
from primgraph.codegen.targets.c.size_arguments import SIZES
from primgraph.ir.dims import TRIPS, is_open, single_row_size, typical
from primgraph.ir.graph import Graph
from primgraph.ir.types import TensorType, larger
from primgraph.primitives.control import Flow, flops_of, split_operands


class Body(NamedTuple):
    """A body: its plan, its C function, the values whose arrays it takes, and its workspace.

    The name is empty if the function does nothing. `constants` maps its constants to outer values.
    """

    plan: Nests
    name: str
    arrays: tuple[int, ...]
    constants: Mapping[int, int]
    arena: int


class Places(Protocol):
    """Memory and types of the values of a nest; traced lines know the user's lines."""

    is_traced: bool

    def place(self, value: int) -> str:
        """Return the memory of a value."""

    def room(self, size: int) -> str:
        """Allocate workspace for the current item only."""

    def type(self, value: int) -> TensorType:
        """Return the type of a value."""


class Writer(Places, Protocol):
    """Interface of the generator of the enclosing items."""

    def sizes(self, address: Callable[[str], str]) -> str:
        """Return the declaration of the symbolic sizes, if any, read from their place's address."""

    def function(self, lines: Sequence[str]) -> str:
        """Add a function for a group of blocks; return its name."""

    def body(self, plan: Nests, constants: Mapping[int, int]) -> Body:
        """Add a function for a body."""


def control(writer: Writer, item: Control) -> Iterator[str]:
    """Yield the lines of a branch or a loop, and add functions for its bodies."""
    pairs = zip(item.bodies, item.constants, strict=True)
    bodies = [writer.body(plan, constants) for plan, constants in pairs]
    match item.step.flow:
        case Flow.CHOICE:
            yield from _branches(writer, item, bodies)
        case Flow.ROWS:
            yield from _scan(writer, item, bodies[0])
        case Flow.TEST:
            yield from _while(writer, item, *bodies)
        case _:
            places = [writer.place(v) for v in (*item.operands, *item.values)]
            yield from _call(writer, bodies[0], places, writer.room(bodies[0].arena))


def _call(writer: Writer, body: Body, places: Sequence[str], room: str) -> Iterator[str]:
    """Yield a call of a body with its inputs and outputs, in order, at `places`."""
    if not body.name:
        return
    inputs = range(body.plan.schedule.inputs)
    where = dict(zip([*inputs, *body.plan.outputs], places, strict=True))
    where.update({v: writer.place(own) for v, own in body.constants.items()})
    where[SIZES] = writer.place(SIZES) if SIZES in body.arrays else ""
    given = ", ".join([f"(void *){where[v]}" for v in body.arrays]) or "0"
    yield f"{{ void *const b[] = {{{given}}};"
    yield f"  const int failed = {body.name}(b, {room}); if (failed) return failed; }}"


def _branches(writer: Writer, item: Control, bodies: Sequence[Body]) -> Iterator[str]:
    index, *operands = item.operands
    kind = moved_type(item.step.operands[0].dtype)
    room = writer.room(reduce(larger, [body.arena for body in bodies]))
    places = [writer.place(v) for v in (*operands, *item.values)]
    yield f"const {kind} index = *(const {kind} *){writer.place(index)};"
    for k, body in enumerate(bodies):
        last = k + 1 == len(bodies)
        test = "else" if last and k else f"{'else ' if k else ''}if (index <= {k})"
        yield "{" if last and not k else f"{test} {{"
        yield from (f"    {line}" for line in _call(writer, body, places, room))
        yield "}"


def _init_state(writer: Writer, types: Sequence[TensorType], begin: Sequence[int]) -> Iterator[str]:
    """Declare double buffers for the carries: pointers to the current and the next state."""
    for i, (type, v) in enumerate(zip(types, begin, strict=True)):
        first, second = writer.room(type.nbytes), writer.room(type.nbytes)
        yield f"const char *now{i} = (const char *){writer.place(v)};"
        yield f"char *next{i} = {first}, *other{i} = {second};"


def _turn(writer: Writer, count: int) -> Iterator[str]:
    for i in range(count):
        yield f"now{i} = next{i}; next{i} = other{i}; other{i} = (char *)now{i};"


def _row(stack: TensorType) -> str:
    """Return the size in bytes of one row of a stack."""
    return extent(prod(stack.shape[1:]) * stack.dtype.itemsize)


def _copy_state(writer: Writer, types: Sequence[TensorType], outs: Sequence[int]) -> Iterator[str]:
    """Yield copies of the final carries to their own memory."""
    for i, (type, v) in enumerate(zip(types, outs, strict=True)):
        yield f"memcpy({writer.place(v)}, now{i}, {extent(type.nbytes)});"


# Approximate number of operations between two checks for interrupts.
_UNWATCHED = 2**15


def _check_interrupts(bodies: Sequence[Graph]) -> str:
    """Return the end of an iteration `t`: periodically check for interrupts."""
    cost = max(_LEAST, typical(single_row_size(sum(map(flops_of, bodies)))))
    trips = 1 << (max(_UNWATCHED // cost, 1).bit_length() - 1)
    return f"if (!(++t & {trips - 1}) && pg_stop && pg_stop()) return -1;"


# Minimum cost of an iteration.
_LEAST = 20


def _scan(writer: Writer, item: Control, body: Body) -> Iterator[str]:
    p = item.step.params
    given, types = item.operands[p["counted"] :], item.step.operands[p["counted"] :]
    fixed, state, xs = split_operands(given, p["consts"], p["carries"])
    _, kinds, stacks = split_operands(types, p["consts"], p["carries"])
    count, length = len(state), p["length"]
    rows = [_row(t) for t in stacks]
    ys = list(zip(item.values[count:], item.step.results[count:], strict=True))
    steps = [_row(t) for _, t in ys]
    yield f"long trips = {'INT64_MAX' if length is TRIPS else extent(length)};"
    if p["counted"]:
        yield f"{{ const int64_t n = *(const int64_t *){writer.place(item.operands[0])};"
        yield "  trips = n < 0 ? 0 : n < trips ? n : trips; }"
        for (v, t), row in zip(ys, steps, strict=True):
            if is_open(t.shape):
                yield reallocation(writer.place(v), "trips", row)
            else:
                yield f"memset({writer.place(v)}, 0, {extent(t.nbytes)});"
    yield from _init_state(writer, kinds, state)
    yield "for (long t = 0; t < trips;) {"
    yield f"    const long k = {'trips - 1 - t' if p['reverse'] else 't'}; (void)k;"
    places = [writer.place(v) for v in fixed]
    places += [f"now{i}" for i in range(count)]
    places += [f"((char *){writer.place(v)} + k * {n})" for v, n in zip(xs, rows, strict=True)]
    places += [f"next{i}" for i in range(count)]
    places += [
        f"((char *){writer.place(v)} + k * {n})" for (v, _), n in zip(ys, steps, strict=True)
    ]
    inside = [*_call(writer, body, places, writer.room(body.arena)), *_turn(writer, count)]
    inside.append(_check_interrupts(item.step.eqn.bodies))
    yield from (f"    {line}" for line in inside)
    yield "}"
    yield from _copy_state(writer, kinds, item.values[:count])


def _while(writer: Writer, item: Control, test: Body, body: Body) -> Iterator[str]:
    p = item.step.params
    consts = p["consts"]
    fixed, state = item.operands[:consts], item.operands[consts:]
    kinds, count = item.step.operands[consts:], len(item.operands) - consts
    ys = list(zip(item.values[count + 1 :], item.step.results[count + 1 :], strict=True))
    limit = p["limit"]
    grown = [(writer.place(v), _row(t)) for v, t in ys if is_open(t.shape)]
    for v, t in ys if not grown else ():
        yield f"memset({writer.place(v)}, 0, {extent(t.nbytes)});"
    yield from _init_state(writer, kinds, state)
    yield "int64_t t = 0;"
    if grown:
        yield "int64_t room = 0;"
    yield "for (;;) {" if limit is None else f"while (t < {extent(limit)}) {{"
    yield "    uint8_t again;"
    known = [writer.place(v) for v in fixed] + [f"now{i}" for i in range(count)]
    room = writer.room(larger(test.arena, body.arena))
    inside = [*_call(writer, test, [*known, "&again"], room), "if (!again) break;"]
    inside += one_more([place for place, _ in grown], [row for _, row in grown])
    places = [*known, *(f"next{i}" for i in range(count))]
    places += [f"((char *){writer.place(v)} + t * {_row(t)})" for v, t in ys]
    inside += [*_call(writer, body, places, room), *_turn(writer, count)]
    inside.append(_check_interrupts((p["test"], p["body"])))
    yield from (f"    {line}" for line in inside)
    yield "}"
    yield from _copy_state(writer, kinds, item.values[:count])
    yield f"*(int64_t *){writer.place(item.values[count])} = t;"
