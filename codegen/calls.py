"""Long plans as lists of calls, which are bound to the arrays of a workspace and have no text.

CPython takes ten times as long to compile a line as it takes to bind a call. Equal statements share
a function, whose lines are those of planned code. So calls compute what planned code computes, from
the same plan, in the same buffers. A run of calls takes a little longer than one of text, which
takes over after many runs.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from operator import attrgetter, length_hint
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.base.frames import is_interruption
from primgraph.base.interpreter_limits import uncollected
from primgraph.codegen.ir.extents import Text
from primgraph.codegen.ir.places import (
    Argument,
    Buffer,
    Constant,
    Number,
    Place,
    Result,
    Stack,
    View,
    name_of,
    root_of,
)
from primgraph.codegen.ir.program import Plan
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ir.statements import (
    Call,
    Compute,
    Copy,
    Make,
    Put,
    Release,
    Return,
    See,
)
from primgraph.codegen.ir.views import apply_view
from primgraph.codegen.loops import Runner
from primgraph.codegen.ops.table import CARDS
from primgraph.codegen.runtime import support
from primgraph.codegen.runtime.growing import Growing
from primgraph.codegen.targets.inplace.statements import STATEMENTS, constant_text, print_results

Array: TypeAlias = "np.ndarray[Any, Any]"
Function: TypeAlias = Callable[..., Any]
# A function, the slots of its arguments, and the slots of the new arrays that it returns; None for
# these if a workspace has all arguments from its start.
Row: TypeAlias = tuple[Function, tuple[int, ...], tuple[int, ...] | None]

# Maximum number of functions that are kept for statements of other plans.
_KEPT = 4096

# Number of runs after which text takes over. Calls have then lost, at 0.15 us a step and run, about
# as much time as it takes to plan again, and to write and compile the text: 75 us a step.
_RUNS = 500

# The names that lines use. Functions of NumPy are added when they are first used.
_NAMES: dict[str, Any] = {
    "__builtins__": support.BUILTINS,
    "np": np,
    **{name: getattr(support, name) for name in support.NAMES},
}


@final
class Space:
    """A workspace: arrays by slot, and calls on them; or the workspace `text` of the text."""

    def __init__(self, slots: list[Any], calls: list[Callable[[], Any]]) -> None:
        self.slots, self.calls = slots, calls
        self.text: Any = None

    def take_over(self, text: Any) -> None:
        """Become a workspace of the text."""
        self.slots, self.calls, self.text = [], [], text


@final
class Calls:
    """The calls of a plan without loops over blocks and without functions of the user.

    Arrays that live as long as a workspace have slots from the first one. Arrays of one call have
    slots from the last one, which are negative. `write` returns the code that has the text of the
    plan. It runs after many runs, and again what failed: its errors know their lines.
    """

    def __init__(
        self, plan: Plan, runner: Callable[[Step], Runner], write: Callable[[], Any]
    ) -> None:
        table = Table(plan, runner)
        for statement in plan.body:
            table.add(statement)
        self._write, self._table = write, table
        self._text: Any = None
        self._runs: Iterator[int] = itertools.count(1)
        self._alone, self._arena = plan.options.alone, plan.arena
        self._constants = [_constant(place) for place in plan.constants]
        self._arrays = plan.arrays
        self._outputs = [table.outputs[k] for k in range(len(table.outputs))]

    @uncollected
    def start(self) -> Space:
        """Return a new workspace."""
        arena, slots = support.aligned(self._arena), list[Any](self._constants)
        for place in self._arrays:
            if isinstance(place, Buffer):
                type = place.type
                made: Any = np.ndarray(type.shape, type.dtype, arena, place.offset)
            elif isinstance(place, Stack):
                made = Growing(place.type.shape[1:], place.type.dtype)
            else:
                assert isinstance(place, View)
                made = apply_view(place.how, slots[self._table.slots[place.of]])
            slots.append(made)
        slots += [None] * self._table.slots.count
        at = slots.__getitem__
        calls: list[Callable[[], Any]] = [
            partial(function, *map(at, taken))
            if made is None
            else partial(_assign, function, slots, taken, made)
            for function, taken, made in self._table.rows
        ]
        return Space(slots, calls)

    def run(self, space: Space, arrays: Sequence[Array], *results: Sequence[Array]) -> Any:
        """Return the results for `arrays`, or write them into the arrays `results`."""
        if next(self._runs) % _RUNS == 0 and self._text is None:
            self._text = self._write()
        if self._text is not None:
            if space.text is None:
                space.take_over(self._text.start())
            return self._text.run(space.text, arrays, *results)
        slots, calls = space.slots, space.calls
        given = [*arrays, *(results[0] if results else ())]
        slots[len(slots) - len(given) :] = given[::-1]
        left = iter(calls)
        try:
            for call in left:
                call()
        except Exception as error:
            done = len(calls) - length_hint(left) - 1
            if is_interruption(error) or done >= self._table.settled:
                raise
        else:
            found = [slots[k] for k in self._outputs]
            count = self._table.slots.count
            slots[len(slots) - count :] = [None] * count
            return found[0] if self._alone else found
        text = self._write()
        return text.run(text.start(), arrays, *results)


def _assign(
    function: Function, slots: list[Any], taken: tuple[int, ...], made: tuple[int, ...]
) -> None:
    """Call a function on arrays, some of which are of this call, or which returns new ones."""
    found = function(*[slots[k] for k in taken])
    if made:
        for k, array in zip(made, found if len(made) > 1 else (found,), strict=True):
            slots[k] = array


def _constant(place: Any) -> Array:
    array = place.step.eqn.array if isinstance(place, Constant) else None
    if array is None:
        array = eval(constant_text(place), _NAMES)
        if not isinstance(place, Constant):
            array.setflags(write=False)
    found: Array = array
    return found


@final
class _Slots(dict[Place, int]):
    """The slots of places; places of one number are one array at different times.

    A view of an array of one call is made at its first use, by a row.
    """

    def __init__(self, rows: list[Row]) -> None:
        super().__init__()
        self.rows = rows
        self.count = 0
        self.known: dict[tuple[type[Any], int], int] = {}

    def __missing__(self, place: Place) -> int:
        key = place.__class__, place.number
        found = self.known.get(key)
        if found is None:
            of = (self[place.of],) if isinstance(place, View) else ()
            found = self.known[key] = self.new()
            if isinstance(place, View):
                self.rows.append((partial(apply_view, place.how), of, (found,)))
        self[place] = found
        return found

    def new(self) -> int:
        """Return the slot of another array of one call."""
        self.count += 1
        return -self.count


@final
class Table:
    """The rows of a plan under construction.

    A row from `settled` on may have overwritten an argument when it fails. `outputs` has the slots
    of the results.
    """

    def __init__(self, plan: Plan, runner: Callable[[Step], Runner]) -> None:
        self.rows: list[Row] = []
        self.outputs: dict[int, int] = {}
        self.settled = sys.maxsize
        self._donates = bool(plan.options.donated)
        self._runner = runner
        self._runners: dict[int, Function] = {}
        # Functions of equal computations, with the places that they take.
        self._known: dict[Any, tuple[Function, list[int] | None]] = {}
        self.slots = _Slots(self.rows)
        for k, place in enumerate((*plan.constants, *plan.arrays)):
            self.slots.known[place.__class__, place.number] = k
        self._numbers = {k for k, p in enumerate(plan.constants) if isinstance(p, Number)}
        for argument in plan.arguments:
            self.slots[argument]
        for number in dict.fromkeys(plan.options.given):
            self.slots.known[Result, number] = self.slots.new()

    def add(self, x: Any) -> None:
        """Add the rows of a statement."""
        _ADDED[x.__class__](self, x)
        if self._donates and self.settled > len(self.rows):
            out = getattr(x, "out", None)
            if out is not None and isinstance(root_of(out), Argument):
                self.settled = len(self.rows) - 1

    def _compute(self, x: Compute) -> None:
        if x.itself:
            self._print(x, x.operands, (x.out,))
            return
        if x.new:
            self._allocate(x.out, CARDS[x.step.op].fresh)
        places = (*x.operands, x.out, *x.parts)
        slots = [*map(self.slots.__getitem__, places)]
        # The result is one of the operands if it takes over a buffer.
        different = len({*slots}) == len(slots) - (x.taken is not None)
        key: tuple[Any, ...] = (
            id(x.step.form),
            x.taken,
            x.new,
            x.replaced,
            different or _positions(slots),
        )
        if not self._numbers.isdisjoint(slots):
            key += tuple([k if k in self._numbers else -1 for k in slots])
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _function(x, places, _positions(slots))
        function, taken = found
        self._add_row(function, slots if taken is None else [slots[k] for k in taken])

    def _add_row(
        self, function: Function, taken: Sequence[int], made: tuple[int, ...] = ()
    ) -> None:
        late = made or not taken or min(taken) < 0
        self.rows.append((function, tuple(taken), made if late else None))

    def _print(self, x: Any, places: Sequence[Place], made: Sequence[Place] = ()) -> None:
        """Add the row of a statement on `places`, which binds the places `made` to new arrays."""
        slots = [self.slots[p] for p in places]
        function, taken = _function(x, places, _positions(slots))
        row = slots if taken is None else [slots[k] for k in taken]
        self._add_row(function, row, tuple([self.slots[p] for p in made]))

    def _put(self, x: Put) -> None:
        self._print(x, (*x.operands, x.part))

    def _copy(self, x: Copy) -> None:
        if x.new:
            self._print(x, (x.source,), (x.out,))
        else:
            self._print(x, (x.source, x.out))

    def _call(self, x: Call) -> None:
        """Add a call of a function with several results, or of one that runs bodies."""
        new = [p for p in x.outs if isinstance(p, Result) and not p.given]
        if not x.step.op.has_bodies:
            self._print(x, [*x.operands, *(p for p in x.outs if p not in new)], new)
            return
        for place in new:
            self._allocate(place)
        runner = self._runners.get(id(x.step.form))
        if runner is None:
            made = self._runner(x.step)
            runner = self._runners[id(x.step.form)] = partial(_run, made, len(x.operands))
        self._add_row(runner, [self.slots[p] for p in (*x.operands, *x.outs)])

    def _make(self, x: Make) -> None:
        if isinstance(x.out, Result) and not x.out.given:
            self._allocate(x.out)

    def _allocate(self, place: Place, how: str = "empty") -> None:
        assert isinstance(place, Result)
        made = partial(getattr(np, how), place.type.shape, place.type.dtype)
        self._add_row(made, (), (self.slots[place],))

    def _return(self, x: Return) -> None:
        self.outputs[x.number] = self.slots[x.place]

    def _skip(self, x: Any) -> None:
        """Add nothing for the start or the end of a lifetime."""


_ADDED: dict[Any, Any] = {
    Compute: Table._compute,
    Put: Table._put,
    Copy: Table._copy,
    Call: Table._call,
    Make: Table._make,
    See: Table._skip,
    Release: Table._skip,
    Return: Table._return,
}


def _run(runner: Runner, count: int, *arrays: Array) -> None:
    runner(arrays[:count], arrays[count:])


# Functions of statements.


@final
class _Writer:
    """Writer of the lines of a function for one statement, with names for its places."""

    def __init__(self, names: dict[Place, str]) -> None:
        self.names = names
        self.lines: list[str] = []
        self.bound: list[str] = []

    def np(self, name: str) -> str:
        local = name.replace(".", "_")
        if local not in _NAMES:
            _NAMES[local] = slice(None) if name == "everything" else attrgetter(name)(np)
        return local

    def use(self, place: Place) -> str:
        return self.names[place]

    def line(self, text: str) -> None:
        self.lines.append(text)

    def bind(self, place: Place) -> None:
        self.bound.append(name_of(place))

    def empty(self, place: Place, how: str = "empty") -> str:
        """Return the name of a result, which another row allocates."""
        return self.names[place]


def _positions(slots: Sequence[int]) -> tuple[int, ...]:
    """Return the position of the first equal slot, for each of them."""
    first: dict[int, int] = {}
    return tuple([first.setdefault(slot, k) for k, slot in enumerate(slots)])


def _function(
    x: Any, places: Sequence[Place], same: Sequence[int]
) -> tuple[Function, list[int] | None]:
    """Return the function of a statement on `places`, and which of them it takes; None for all.

    `same` has the position of the first place that is the same array, for each of them.
    """
    names = [f"x{k}" for k in same]
    writer = _Writer(dict(zip(places, names, strict=True)))
    if isinstance(x, Call):
        args = [Text(writer.use(p)) for p in x.operands]
        print_results(writer, x, CARDS[x.step.op].read(args, x.step).code)
    else:
        STATEMENTS[x.__class__](writer, x)
    if isinstance(x, Compute) and CARDS[x.step.op].ufunc:
        # Most functions are called without one of Python around them.
        local = writer.np(CARDS[x.step.op].ufunc)
        if writer.lines == [f"{local}({', '.join(names)})"]:
            return _NAMES[local], None
    taken = sorted(set(same))
    if writer.bound:
        writer.line(f"return {', '.join(writer.bound)}")
    return _compiled(tuple(names[k] for k in taken), tuple(writer.lines)), taken


@lru_cache(_KEPT)
def _compiled(parameters: tuple[str, ...], lines: tuple[str, ...]) -> Function:
    # Statements that compute in place may have nothing to do.
    text = "\n    ".join([f"def call({', '.join(parameters)}):", *(lines or ("pass",))])
    made: dict[str, Function] = {}
    exec(compile(text, "<primgraph call>", "exec", dont_inherit=True), _NAMES, made)
    return made["call"]
