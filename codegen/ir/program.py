"""The plan of a kernel: a program of instructions on typed places, for back ends to print."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, final

from primgraph.base.user_lines import Source
from primgraph.codegen.ir.axis_semantics import Role
from primgraph.codegen.ir.card import Cards
from primgraph.codegen.ir.places import (
    Argument,
    Buffer,
    Constant,
    Fixed,
    Held,
    Number,
    Ones,
    Place,
    Result,
    Stack,
    View,
    name_of,
)
from primgraph.codegen.ir.schedule import Schedule, Step
from primgraph.codegen.ir.views import view_text
from primgraph.ir.text import brief_text
from primgraph.ir.types import DType


@final
@dataclass(frozen=True, slots=True)
class Options:
    """Options of the code's interface.

    `donated` pairs outputs with inputs whose arrays they overwrite. `alone`: the only result is
    returned itself, not in a list. `given` are outputs written into arrays of the caller. The last
    `kept` inputs are arrays of the kernel. A loop body has a `trip`: its numbers of constants and
    of carries. `poisoned` fills dead memory with ones, which are NaNs, so that faults show. `loose`
    native code has functions accurate to four units in the last place, and rounds in any way.
    """

    donated: tuple[tuple[int, int], ...] = ()
    given: tuple[int, ...] = ()
    alone: bool = False
    kept: int = 0
    trip: tuple[int, int] | None = None
    poisoned: bool = False
    loose: bool = False


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


# Instructions. Each has the number of its step.


class Compute(NamedTuple):
    """The operation of `step` on `operands`, written to `out`, which exists or is `new`.

    `taken` is the operand whose place `out` takes over; `parts` are further places of the back end.
    If `replaced`, operand 0 is overwritten entirely, and need not be written.
    """

    at: int
    step: Step
    operands: tuple[Place, ...]
    out: Place
    taken: int | None = None
    parts: tuple[Place, ...] = ()
    new: bool = False
    replaced: bool = False


class Put(NamedTuple):
    """The operation of `step`, written to `part` of `out`, which then is `value`."""

    at: int
    step: Step
    operands: tuple[Place, ...]
    out: Place
    part: Place
    value: int


class Create(NamedTuple):
    """The operation of `step`, which allocates `out` itself."""

    at: int
    step: Step
    operands: tuple[Place, ...]
    out: Result


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
    Compute | Put | Create | Call | See | Make | Fill | Copy | Combine | Release | Loop | Return
)


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """Instructions of a kernel; it prints as a listing.

    `constants` and kept `arrays` are in the order of first use, `buffers` in the order of
    allocation. `arena` is the size of the workspace in bytes; `least` is the peak of live bytes, a
    lower bound of it. `space` is the size of a second arena for buffers of blocks, one per thread.
    `cards` are the back end's. For a native kernel, `native` lists what C and what NumPy computes.
    """

    schedule: Schedule
    options: Options
    arguments: tuple[Argument, ...]
    constants: tuple[Fixed, ...]
    arrays: tuple[Buffer | Stack | View | Ones, ...]
    buffers: tuple[Buffer, ...]
    body: tuple[Instruction, ...]
    loops: tuple[Loop, ...]
    arena: int
    least: int
    space: int
    cards: Cards
    bodies: tuple[Plan, ...] = ()
    native: tuple[str, ...] = ()

    @property
    def regions(self) -> tuple[Region, ...]:
        """Return the regions that run in blocks."""
        return tuple(loop.region for loop in self.loops)

    def flat(self) -> Iterator[Instruction]:
        """Yield all instructions in order, with those of loops in place of the loops."""
        for instruction in self.body:
            if isinstance(instruction, Loop):
                yield from instruction.body
                yield from instruction.totals
            else:
                yield instruction

    def __str__(self) -> str:
        given = ", ".join([f"{text_of(x)}: {x.type}" for x in self.arguments])
        outputs = self.schedule.outputs
        types = ", ".join([str(self.schedule.types[v]) for v in outputs]) or "nothing"
        space = f", and {self.space} in each thread" if self.space else ""
        head = f"plan {self.schedule.name}({given}) -> {types}"
        arena = f"  arena of {self.arena} bytes, {self.least} in use at most{space}"
        text = "\n".join([head, arena, *_Listing(self.schedule).lines(self.body, "  ")])
        first = ["\n".join(self.native), "where that does not run:"] if self.native else []
        return "\n\n".join([*first, text, *map(str, self.bodies)])


# Listing.


@final
class _Listing:
    """Printer of instructions, grouped by the user's source line."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.said: Source | None = None

    def lines(self, body: Sequence[Instruction], indent: str) -> Iterator[str]:
        for x in body:
            if isinstance(x, Compute | Put | Create | Call):
                yield from self.comment(x.step.source, indent)
            yield indent + text_of(x)
            if isinstance(x, Loop):
                yield from self.lines(x.body, indent + "  ")
                if x.totals:
                    yield f"{indent}  in turn:"
                yield from self.lines(x.totals, indent + "    ")

    def comment(self, source: Source | None, indent: str) -> Iterator[str]:
        """Yield the source line if it differs from the previous one."""
        if source is not None and source != self.said and source.is_readable:
            self.said = source
            yield f"{indent}# {source}  {'' if source.is_derived else source.text}".rstrip()


def text_of(x: Instruction | Place) -> str:
    """Return the text of an instruction or a place in a listing."""
    match x:
        case Buffer(offset=offset):
            return f"{name_of(x)}@{offset}"
        case Number(value=value):
            return repr(value)
        case Ones(count=count):
            return f"ones({count})"
        case View(of=of, how=how):
            return view_text(how, text_of(of))
        case Argument() | Result() | Held() | Stack() | Constant():
            return name_of(x)
        case Compute(step=step, operands=operands, out=out, parts=parts):
            more = f" with {', '.join(map(text_of, parts))}" if parts else ""
            more += ", all replaced" if x.replaced else ""
            sign = "=" if x.taken is None else "<-"
            what = f"{text_of(out)}: {step.results[0]} {sign} {_operation(step, operands)}{more}"
            return f"new {what}" if x.new else what
        case Put(step=step, operands=operands, part=part):
            return f"{text_of(part)}: {step.results[0]} = {_operation(step, operands)}"
        case Create(step=step, operands=operands, out=out):
            return f"new {text_of(out)}: {out.type} = {_operation(step, operands)}"
        case Call(step=step, operands=operands, outs=outs):
            return f"{', '.join(map(text_of, outs))} = call {_operation(step, operands)}"
        case See(view=view):
            return f"see {text_of(view)}"
        case Make(out=out):
            return f"make {text_of(out)}: {out.type}"
        case Fill(out=out, value=value):
            return f"fill {text_of(out)} with {value!r}"
        case Copy(source=source, out=out, new=new):
            return f"{'new ' if new else ''}{text_of(out)} = copy {text_of(source)}"
        case Combine(how=how, part=part, total=total):
            return f"{text_of(total)} = {how} {text_of(total)}, {text_of(part)}"
        case Release(buffer=buffer):
            return f"release {text_of(buffer)}"
        case Loop(region=r):
            threads = f", in up to {r.threads} threads" if r.threads > 1 else ""
            return f"for each block of {r.rows} of {r.extent} rows{threads}:"
        case Return(number=number, place=place):
            return f"return {text_of(place)} as result {number}"


def _operation(step: Step, operands: Sequence[Place]) -> str:
    brief = brief_text if step.op.has_bodies else str
    params = ", ".join([f"{k}={brief(v)}" for k, v in step.params.items()])
    places = ", ".join(map(text_of, operands))
    return f"{step.op.name} {places}" + (f" ({params})" if params else "")
