"""The plan of a kernel: a program of instructions on typed places, which back ends print."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, final

from primgraph.base.user_lines import Source
from primgraph.codegen.plan.card import Cards
from primgraph.codegen.plan.fusion_groups import Region
from primgraph.codegen.plan.schedule import Schedule, Step
from primgraph.codegen.plan.storage.places import (
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
from primgraph.codegen.plan.storage.views import view_text
from primgraph.ir.text import brief_text
from primgraph.ir.types import DType


@final
@dataclass(frozen=True, slots=True)
class Options:
    """How the code is used: `donated` pairs outputs with inputs in whose arrays they are left.

    `alone` has the only result returned itself, not in a list. `given` are the outputs that are
    written into arrays of the caller's. The last `kept` inputs are arrays of the kernel's own.
    What is done in each `trip` of a loop takes so many constants, and then so many carries.
    `poisoned` fills memory with ones, which are NaNs, when nothing is to be read from it: a fault
    then shows. `loose` native code has functions within four units in the last place, and
    rounds as it likes.
    """

    donated: tuple[tuple[int, int], ...] = ()
    given: tuple[int, ...] = ()
    alone: bool = False
    kept: int = 0
    trip: tuple[int, int] | None = None
    poisoned: bool = False
    loose: bool = False


# Instructions. Each has the number of the step that it belongs to.


class Compute(NamedTuple):
    """The operation of `step` on `operands`, written to `out`: an array that is there, or `new`.

    `taken` is the operand whose place `out` is; `parts` are what else the back end asked for.
    What is `replaced`, all of operand 0, need not be written.
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
    """The operation of `step` on `operands`, written to `part` of `out`, which then is `value`."""

    at: int
    step: Step
    operands: tuple[Place, ...]
    out: Place
    part: Place
    value: int


class Create(NamedTuple):
    """The operation of `step`, which makes `out` itself."""

    at: int
    step: Step
    operands: tuple[Place, ...]
    out: Result


class Call(NamedTuple):
    """A function of the user's; its results are copied into `outs`, or are these."""

    at: int
    step: Step
    operands: tuple[Place, ...]
    outs: tuple[Place, ...]


class See(NamedTuple):
    """From here on `view` is looked at: what a step is that moves no elements."""

    at: int
    step: Step
    view: View


class Make(NamedTuple):
    """From here on `out` is there, and holds anything."""

    at: int
    out: Argument | Result | Buffer


class Fill(NamedTuple):
    """All elements of `out` become one number."""

    at: int
    out: Place
    value: Any
    dtype: DType


class Copy(NamedTuple):
    """The elements of one array, those of `value`, are written to another, or to a `new` one."""

    at: int
    value: int
    source: Place
    out: Place
    new: bool = False


class Combine(NamedTuple):
    """`total` becomes what the ufunc `how` makes of it and of the share of a block, `part`."""

    at: int
    how: str
    part: Buffer
    total: Place


class Release(NamedTuple):
    """Nothing is read from a buffer any more."""

    at: int
    buffer: Buffer


class Loop(NamedTuple):
    """`body`, once for each block of the rows of a region, in turns or in several threads.

    `totals` come at the end of a turn, when all turns before have done theirs.
    """

    at: int
    number: int
    region: Region
    body: tuple[Any, ...]
    totals: tuple[Any, ...]


class Return(NamedTuple):
    """A place is the result of that number."""

    at: int
    number: int
    place: Place


Instruction: TypeAlias = (
    Compute | Put | Create | Call | See | Make | Fill | Copy | Combine | Release | Loop | Return
)


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """What planned code does, instruction by instruction. It prints as a text.

    `constants` and `arrays`, those that are kept, stand in the order in which they are first
    needed, and `buffers` in that in which they are taken. `arena` is the size of the arena in
    bytes, `least` the most that is alive at once, so that no arena could be smaller. `space` is
    the size of a second one, in which the buffers of blocks are: each thread has one. `cards`
    are what the plan goes by. Of a native kernel `native` tells what C does, and what NumPy.
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
        """What runs in blocks."""
        return tuple(loop.region for loop in self.loops)

    def flat(self) -> Iterator[Instruction]:
        """All instructions in order, those of a loop in place of it."""
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


# Text.


@final
class _Listing:
    """Prints instructions, in groups that begin with the user's line that they come from."""

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
        """The line, where it is another one than before."""
        if source is not None and source != self.said and source.is_told:
            self.said = source
            yield f"{indent}# {source}  {'' if source.is_derived else source.text}".rstrip()


def text_of(x: Instruction | Place) -> str:
    """An instruction, or a place, as a plan prints it."""
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
