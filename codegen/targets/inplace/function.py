"""The planned style: a plan printed as NumPy code, with results in buffers or returned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from primgraph.base.providers import late
from primgraph.codegen.ir.extents import Text
from primgraph.codegen.ir.places import (
    Argument,
    Constant,
    Life,
    Place,
    Result,
    Stack,
    View,
    name_of,
    root_of,
)
from primgraph.codegen.ir.program import Plan
from primgraph.codegen.ir.schedule import CHUNK, Step
from primgraph.codegen.ir.statements import (
    Call,
    Loop,
    Make,
    Release,
    Return,
    See,
)
from primgraph.codegen.ir.views import Cut, Repeat, tuple_text, view_text
from primgraph.codegen.ops.spelling.literals import dtype_text, shape_text
from primgraph.codegen.ops.table import CARDS
from primgraph.codegen.targets.inplace.entry import add_check, entries, trips
from primgraph.codegen.targets.inplace.statements import STATEMENTS, constant_text, print_results
from primgraph.codegen.targets.inplace.workspace import Workspace, row_view
from primgraph.codegen.targets.text.module import MANY, Function, Line, Module, Parts

if TYPE_CHECKING:
    from primgraph.codegen.runtime import growing
    from primgraph.codegen.runtime import threads as sharing
else:
    growing = late("primgraph.codegen.runtime.growing")
    sharing = late("primgraph.codegen.runtime.threads")


def print_plan(plan: Plan) -> Module:
    """Print the plan as a module with two entries, `workspace()` and `run(w, arrays)`.

    A workspace holds buffers, and views of buffers and of constants. A workspace must not be used
    by two runs at a time. `run` returns a list of arrays that nothing else refers to. If result
    arrays are passed, it is `run(w, arrays, results)`, and returns these in their positions. A loop
    body is `trips(w, fixed, rows)`, unless it is very long.
    """
    opening, constants = _constants(plan)
    printer, table = Printer(plan), dict[str, Any]()
    results = printer.print()
    arguments = [name_of(x) for x in plan.arguments]
    given = [f"r{k}" for k in dict.fromkeys(plan.options.given)]
    entry, taken = "run", printer.taken
    if printer.trip is not None and len(printer.parts.parts) == 1:
        entry = "trips"
        lines = printer.workspace.unpack(list(taken[0]))
        looks = printer.looks
        functions = [
            trips(printer.parts.current, lines, printer.early, looks, arguments, given, plan)
        ]
    else:
        functions = entries(
            printer.parts, printer.workspace, taken, arguments, given, results, plan.options
        )
    setup = printer.workspace.setup(plan.options.poisoned)
    if printer.functions:
        opening.append("spares = []")
        table["share"] = sharing.share
    if any(isinstance(place, Stack) for place in plan.arrays):
        table["Growing"] = growing.Growing
    opening += add_check(plan, functions)
    return Module(
        ["import numpy as np", *printer.bindings, *opening],
        [],
        [*setup, *printer.functions, *functions],
        entry,
        table,
        [step.op.name for step in printer.users.values()],
        objects={**constants, **printer.users, **printer.loops},
        products=any(region.products for region in plan.regions),
    )


def _constants(plan: Plan) -> tuple[list[str], dict[str, Step]]:
    """Return the lines that create constants, and the steps of arrays outside the code."""
    lines: list[str] = []
    outside: dict[str, Step] = {}
    for place in plan.constants:
        name = name_of(place)
        if isinstance(place, Constant) and place.step.eqn.array is not None:
            outside[name] = place.step
            continue
        lines.append(f"{name} = {constant_text(place)}")
        if not isinstance(place, Constant):
            lines.append(f"{name}.setflags(write=False)")
    return lines, outside


@final
class Printer:
    """Printer of instructions; `taken` has the names of the workspace by part."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.workspace = Workspace(plan)
        self.parts = Parts("w, carried")
        self.taken: list[dict[str, None]] = []
        self.bindings: list[str] = []
        self.users: dict[str, Step] = {}
        self.loops: dict[str, Step] = {}
        # Loops that are functions, as threads may share their blocks.
        self.functions: list[Function] = []
        self.results: dict[int, str] = {}
        # Loop-invariant views are made before all iterations; None if that is not possible.
        whole = plan.options.trip is not None and len(_starts(plan)) == 1
        self.trip = plan.options.trip if whole else None
        self.early: list[Line] = []
        # Views of rows by name, with the views of stacks whose rows they are.
        self.looks: dict[str, str] = {}
        self.at = 0
        self._bound: dict[str, str] = {}
        self._made: set[str] = set()
        self._outside: dict[str, None] | None = None
        self._lines: list[Line] = []
        # Places that the current lines have used, with their names.
        self._known: dict[Place, str] = {}

    def print(self) -> list[str]:
        """Print all instructions; return the names of the results, in order."""
        for argument in self.plan.arguments:
            self.parts.argument(name_of(argument))
        for k in dict.fromkeys(self.plan.options.given):
            self.parts.argument(f"r{k}")
        _, *starts = _starts(self.plan)
        self._begin()
        for x in self.plan.body:
            while starts and x.at >= starts[0]:
                del starts[0]
                self._begin()
            self.at = x.at
            _PRINTERS[x.__class__](self, x)
        return [self.results[k] for k in range(len(self.results))]

    def _begin(self) -> None:
        self.parts.begin()
        self.taken.append({})
        self._go_on(self.parts.current)

    def _go_on(self, function: Function, outside: dict[str, None] | None = None) -> None:
        """Continue in a function; `outside` collects the outer names that a loop function uses."""
        self._lines, self._known, self._outside = function.body, {}, outside

    # Names.

    def np(self, name: str) -> str:
        """Return the local name of a NumPy function, bound on first use."""
        local = self._bound.get(name)
        if local is None:
            local = self._bound[name] = name.replace(".", "_")
            text = "slice(None)" if name == "everything" else f"np.{name}"
            self.bindings.append(f"{local} = {text}")
        return local

    def use(self, place: Place) -> str:
        """Return the name of a place that the current lines read or write."""
        name = self._known.get(place)
        if name is None:
            name = self._known[place] = name_of(place)
            self._note(place, name)
        return name

    def _note(self, place: Place, name: str) -> None:
        life, outside = place.life, self._outside
        if life is Life.KEPT:
            if outside is not None:
                outside[name] = None
            self.taken[-1][name] = None
        elif life is Life.CALL or life is Life.TURN:
            if isinstance(place, View) and name not in self._made:
                self._view(place, name)
            if life is Life.CALL:
                if outside is not None and self.parts.has(name):
                    outside[name] = None
                self.parts.use(name)

    def _view(self, view: View, name: str) -> None:
        """Print a view that is not kept: in each call, or in each turn of a loop."""
        self._made.add(name)
        found = row_view(self.plan, self.trip, view)
        if found is not None:
            self.looks[name] = found
            self.parts.bind(name)
            return
        inner = isinstance(view.how, Cut) or isinstance(view.of, View)
        of = self.use(view.of) if inner else name_of(view.of)
        repeat = self.np("broadcast_to") if isinstance(view.how, Repeat) else ""
        text = f"{name} = {view_text(view.how, of, repeat)}"
        if view.life is Life.TURN:
            self.line(text)
            return
        self.parts.use(of)
        root = root_of(view)
        if self.trip is not None and isinstance(root, Argument) and root.number < self.trip[0]:
            self.early.append(Line(text, self.at))
        else:
            self.parts.current.line(text, self.at)
        self.parts.bind(name)

    def line(self, text: str) -> None:
        self._lines.append(Line(text, self.at))

    def bind(self, place: Place) -> None:
        self.parts.bind(name_of(place))

    # Instructions.

    def _see(self, x: See) -> None:
        self.use(x.view.of)
        self.use(x.view)

    def _make(self, x: Make) -> None:
        if isinstance(x.out, Result) and not x.out.given:
            self.empty(x.out)
        else:
            self.use(x.out)

    def empty(self, place: Place, how: str = "empty") -> str:
        assert isinstance(place, Result)
        name, type = name_of(place), place.type
        dtype = self.np(dtype_text(type.dtype)[3:])
        self.line(f"{name} = {self.np(how)}({shape_text(type.shape)}, {dtype})")
        if self.plan.options.poisoned and how == "empty":
            self.line(f"poison({name})")
        self.bind(place)
        return name

    def _release(self, x: Release) -> None:
        if self.plan.options.poisoned:
            self.line(f"poison({self.use(x.buffer)})")

    # Loops.

    def _return(self, x: Return) -> None:
        self.results[x.number] = self.use(x.place)

    def _print_loop(self, loop: Loop) -> None:
        """Print a loop in the current function, or a function whose blocks threads share."""
        number, threads, outside = loop.number, loop.region.threads, dict[str, None]()
        function = Function(f"loop_{number}", "blocks, turn, outside")
        self._go_on(function, outside)
        lines, header = self._turn(loop), self.workspace.loop_header
        self._go_on(self.parts.current)
        if threads == 1:
            self.parts.current.body += [*header(loop, f"w[{number}]"), *lines]
            return
        names = list(outside)
        groups = [tuple_text(names[i : i + MANY]) for i in range(0, len(names), MANY)]
        function.body = [Line(f"{group[1:-1]} = outside[{k}]") for k, group in enumerate(groups)]
        function.body += [*header(loop, "blocks"), *lines]
        self.functions.append(function)
        blocks = f"w[{number}], {tuple_text(groups)}, {threads}, {number}"
        call = f"share(loop_{number}, {blocks}, space, spares)"
        self.parts.current.body.append(Line(call, shares=True))

    def _turn(self, loop: Loop) -> list[Line]:
        """Return the lines of a turn; names are created in the order of steps."""
        lines, turn = dict[int, list[Line]](), len(loop.body)
        instructions = (*loop.body, *loop.totals)
        for k, x in sorted(enumerate(instructions), key=lambda pair: pair[1].at):
            self.at, self._lines = x.at, []
            _PRINTERS[x.__class__](self, x)
            lines[k] = [Line(line.text, line.step, 1) for line in self._lines]
        body = [line for k in range(turn) for line in lines[k]]
        totals = [line for k in range(turn, len(instructions)) for line in lines[k]]
        return [*body, Line("turn()", -1, 1), *totals] if totals else body


def _print_call(printer: Printer, x: Call) -> None:
    """Print a call; branches and loops write their results in place."""
    args = [printer.use(p) for p in x.operands]
    if not x.step.op.has_bodies:
        print_results(printer, x, _call_text(printer, x.step, args))
        return
    function = f"{x.step.op.name}_{len(printer.loops)}"
    printer.loops[function] = x.step
    outs = [
        printer.empty(p) if isinstance(p, Result) and not p.given else printer.use(p)
        for p in x.outs
    ]
    printer.line(f"{function}({tuple_text(args)}, {tuple_text(outs)})")


def _call_text(printer: Printer, step: Step, args: list[str]) -> str:
    """Return the result expression of a multi-result card, or of a user's `impl`."""
    card = CARDS.get(step.op)
    if card is not None:
        found: str = card.read([Text(a) for a in args], step).code
        return found
    function = f"user_{len(printer.users)}"
    printer.users[function] = step
    return f"{function}({', '.join(args)})"


def _starts(plan: Plan) -> list[int]:
    """Return the first steps of functions; no loop spans two of them."""
    starts, start = [0], CHUNK
    inside = {i for r in plan.regions for i in range(r.start + 1, r.stop)}
    while start < len(plan.schedule.steps):
        while start in inside:
            start -= 1
        starts.append(start)
        start += CHUNK
    return starts


_PRINTERS: dict[Any, Any] = {
    **STATEMENTS,
    Call: _print_call,
    See: Printer._see,
    Make: Printer._make,
    Release: Printer._release,
    Loop: Printer._print_loop,
    Return: Printer._return,
}
