"""Compiled code and its workspaces; the code of equal graphs is shared."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, final
from weakref import WeakValueDictionary

import numpy as np

from primgraph.base.debug_mode import debugging
from primgraph.base.journal import FROM_EQUAL, note_source
from primgraph.base.locks import make_lock
from primgraph.base.providers import late, provider
from primgraph.base.records import dataclass
from primgraph.codegen.ir.limits import Limits
from primgraph.codegen.ir.program import Options, Plan
from primgraph.codegen.ir.schedule import CHUNK, Schedule, Step, schedule
from primgraph.codegen.ir.statements import Call
from primgraph.codegen.load import Loaded
from primgraph.codegen.lower.arrays.fusion_groups import arrange_regions
from primgraph.codegen.lower.arrays.planner import load_copy_elision, plan_schedule
from primgraph.codegen.ops.table import CARDS
from primgraph.codegen.targets.inplace.entry import add_check
from primgraph.codegen.targets.inplace.function import print_plan
from primgraph.codegen.targets.scalar.function import scalar_function, scalar_trips
from primgraph.codegen.targets.text.module import Function, Module
from primgraph.codegen.targets.text.render import render
from primgraph.ir.graph import Equation, Graph
from primgraph.primitives.control import Flow

if TYPE_CHECKING:
    from primgraph.codegen import calls as bound_calls
    from primgraph.codegen import constant_prefix
    from primgraph.codegen import loops as loop_runners
    from primgraph.codegen.ir import verify as plan_verifier
    from primgraph.codegen.runtime import blas
    from primgraph.codegen.targets.text import clocks as timing
else:
    bound_calls = late("primgraph.codegen.calls")
    constant_prefix = late("primgraph.codegen.constant_prefix")
    plan_verifier = late("primgraph.codegen.ir.verify")
    loop_runners = late("primgraph.codegen.loops")
    blas = late("primgraph.codegen.runtime.blas")
    timing = late("primgraph.codegen.targets.text.clocks")


Array: TypeAlias = "np.ndarray[Any, Any]"

# Held while code that may be shared is generated.
_writing = make_lock()

_shared: WeakValueDictionary[Any, Compiled] = WeakValueDictionary()


@final
class Compiled:
    """The code of a graph, and the workspaces that have been made for it.

    `run(workspace, arrays)` returns the results, in a list unless the options say otherwise. Lines
    of the code belong to steps, one per entry of `equations`, which are in the body of `graph`.
    `scalar(*arrays)`, if any, is faster, and returns None for unsupported arguments; native code
    takes buffers for results after the inputs. `fit(*arrays)` returns whether arrays can be used
    without conversion.

    `bodies` is the code of branches and loop bodies. With `in_trips`, `run` runs all iterations of
    a loop. `numbers` is the code of a branch whose results are returned, not written to given
    arrays.

    `once` is the code of the part that is computed only once, and `kept` its results; `run` and
    `scalar` take them after the other arrays.

    With `scalar` the rest is a fallback for other arguments, and generated when first needed.
    """

    __slots__ = (
        "__weakref__",
        "_write",
        "bodies",
        "equations",
        "fit",
        "graph",
        "in_trips",
        "is_native",
        "kept",
        "loaded",
        "numbers",
        "once",
        "pool",
        "run",
        "scalar",
        "start",
        "users",
    )

    equations: list[Equation]
    loaded: Loaded
    run: Callable[..., Any]
    start: Callable[[], Any]
    fit: Callable[..., bool]
    bodies: list[Compiled]
    in_trips: bool

    def __init__(self, graph: Graph, write: Callable[[Compiled], None] | None = None) -> None:
        self.graph = graph
        self.scalar: Callable[..., Any] | None = None
        self.pool: list[tuple[Context, Any]] = []
        self.users = False
        self.is_native = False
        self.once: Compiled | None = None
        self.kept: list[Array] | None = None
        self.numbers: Compiled | None = None
        self._write = write

    def set_text(self, steps: Schedule, module: Module) -> Compiled:
        """Set the text of the code, and return the code."""
        self.equations = [s.eqn for s in steps.steps]
        self.loaded = Loaded(module, render(module))
        self.run = self.loaded.function(module.entry)
        self.start = _no_workspace
        self.fit = _unknown
        self.users = bool(module.users)
        self.bodies = []
        self.in_trips = module.entry == "trips"
        return self

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Generate the code that is still missing, at the first access."""
            with _writing:
                while self._write is not None and not _has(self, name):
                    # An interruption leaves nothing that is half written.
                    made = Compiled(self.graph)
                    self._write(made)
                    for part in filter(partial(_has, made), _LATE):
                        setattr(self, part, getattr(made, part))
                    self._write = made._write
            return object.__getattribute__(self, name)

    @property
    def is_checked(self) -> bool:
        """Return whether `fit` can tell that arrays need no conversion."""
        return self.fit is not _unknown

    def new_workspace(self) -> tuple[Context, Any]:
        """Return an unused workspace, and the context to run in, to be added to `pool` later."""
        return _quiet_context(), self.start()

    def find_failing_line(self, error: Exception) -> tuple[int, int]:
        """Return the line that raised `error`, and the index of its equation; -1 for none."""
        line, i = self.loaded.find_failing_line(error)
        return line, self.positions()[i] if i >= 0 else -1

    def lines(self) -> list[tuple[str, int]]:
        """Return the lines of the text, each with the index of its equation; -1 for none."""
        # The last index is for lines without a step.
        place = [*self.positions(), -1]
        rows = zip(self.loaded.source.splitlines(), self.loaded.steps[1:], strict=True)
        return [(text, place[i]) for text, i in rows]

    def positions(self) -> list[int]:
        """Return the index in the graph's body of the equation of each step."""
        place = {id(eqn): i for i, eqn in enumerate(self.graph.body)}
        return [place[id(eqn)] for eqn in self.equations]


# Parts of code that may be generated late.
_LATE = ("bodies", "equations", "fit", "in_trips", "loaded", "run", "start")


def _has(code: Compiled, name: str) -> bool:
    """Return whether an attribute is there, without generating it."""
    try:
        object.__getattribute__(code, name)
    except AttributeError:
        return False
    return True


class Job(NamedTuple):
    """A part of a graph to compile, and where clocks are collected, if there are any."""

    part: Graph
    options: Options
    limits: Limits
    clocks: list[timing.Clocks] | None = None

    def native(self) -> Callable[..., Any] | None:
        """Return the function of native code, if there is any."""
        home = importlib.import_module("primgraph.codegen.native")
        by_numpy = provider("kernels").compile_graph
        found: Callable[..., Any] | None = home.native_function(*self[:3], by_numpy)
        return found

    def numbers(self, steps: Schedule) -> tuple[list[str], Function] | None:
        """Return the function of scalar code with the lines that it needs, if there is any."""
        options = self.options
        if options.donated or options.given:
            return None
        return scalar_function(steps, options.alone, nested=self.clocks is None)


def compile_planned(
    graph: Graph,
    once: Sequence[int],
    options: Options,
    limits: Limits,
    clocks: list[timing.Clocks] | None = None,
    *,
    native: bool = False,
) -> Compiled:
    """Compile planned code for `graph`; equal graphs share it as long as a kernel uses it.

    `once` are the indices of equations that are computed only at the first call. Equal graphs may
    come from other source lines and have other names; planned code has neither. Equations of
    derivatives are distinguished, where the sign of a zero is free. Code that calls user functions
    is not shared. Nor is code with clocks, which are appended to `clocks`. With `native` it also
    has C code.
    """
    key = (graph, _derived_equations(graph), tuple(once), options, limits, native)
    found = _shared.get(key) if clocks is None else None
    if found is not None:
        note_source(FROM_EQUAL)
        return found
    job = Job(graph, options, limits, clocks)
    if not once:
        made = _compiled_part(graph, job, native=native)
    else:
        first, rest = constant_prefix.split_constant_prefix(graph, once)
        options = replace(options, kept=len(first.outputs))
        made = _compiled_part(graph, job._replace(part=rest, options=options), native=native)
        made.once = _compiled_part(graph, Job(first, Options(), limits), native=False)
    alone = made.users or clocks is not None or (made.once is not None and made.once.users)
    return made if alone else _shared.setdefault(key, made)


def _derived_equations(graph: Graph) -> tuple[Any, ...]:
    """Return for each equation whether it is of a derivative, and the same for its bodies."""
    return tuple(
        [
            (e.source is not None and e.source.is_derived, *map(_derived_equations, e.bodies))
            for e in graph.body
        ]
    )


def _compiled_part(graph: Graph, job: Job, *, native: bool) -> Compiled:
    """Compile planned code for a part of `graph`, to which its lines belong."""
    scalar = job.native() if native and job.clocks is None else None
    is_native = scalar is not None
    steps = None if is_native else schedule(job.part)
    numbers = None if steps is None else job.numbers(steps)
    if job.clocks is None and numbers is not None:
        opening, function = numbers
        module = Module(["import numpy as np", *opening], [], [function], function.name, {})
        scalar = Loaded(module, render(module)).function(function.name)
    if scalar is not None and not debugging.get():
        made = Compiled(graph, lambda code: _write_planned(code, job, numbers))
        made.users = _has_users(job.part)
    else:
        made = Compiled(graph)
        _write_planned(made, job, numbers, steps)
    if scalar is not None:
        made.scalar, made.is_native = scalar, is_native
    return made


def _write_planned(
    made: Compiled,
    job: Job,
    scalar: tuple[list[str], Function] | None,
    steps: Schedule | None = None,
) -> None:
    """Generate the planned code of a job and its schedule, with its scalar code, if any."""
    part, options, limits, clocks = job
    plan = plan_for(part, options, limits, steps)
    if scalar is None and clocks is None and _runs_as_calls(plan):
        bind_calls(made, job, plan)
    else:
        _print_text(made, job, scalar, plan)


def _print_text(
    made: Compiled, job: Job, scalar: tuple[list[str], Function] | None, plan: Plan
) -> None:
    """Generate code as text."""
    steps, module = plan.schedule, print_plan(plan)
    if scalar is not None:
        module.opening += scalar[0]
        module.functions.append(scalar[1])
    if job.clocks is not None:
        job.clocks.append(timing.with_clocks(module, len(steps.steps)))
    bodies = add_body_runners(module, job.limits)
    made.set_text(steps, module)
    made.bodies = bodies
    made.start = made.loaded.function("workspace")
    if any(region.products for region in plan.regions):
        made.run = blas.single_threaded(made.run)
    made.fit = made.loaded.namespace.get("fit", _unknown)
    if scalar is not None and job.clocks is not None:
        made.scalar = made.loaded.function(scalar[1].name)


def _runs_as_calls(plan: Plan) -> bool:
    """Return whether a plan runs without text: a long one, without loops over blocks.

    Failed calls run again as text, which must not call functions of the user twice.
    """
    if len(plan.schedule.steps) <= CHUNK or plan.loops:
        return False
    return not any(x.__class__ is Call and _is_of_user(x.step.eqn) for x in plan.body)


def bind_calls(made: Compiled, job: Job, plan: Plan) -> None:
    """Make a plan run as calls; its text is generated for those who look, and for errors."""
    text, bodies = _Text(made.graph, job), list[Compiled]()
    compiler, spare = _Bodies(job.limits, bodies), list[Any]()

    def runner(step: Step) -> loop_runners.Runner:
        return loop_runners.runner_of(step, compiler, spare)

    calls = bound_calls.Calls(plan, runner, text.write)
    functions = list[Function]()
    opening = add_check(plan, functions)
    made.equations = [s.eqn for s in plan.schedule.steps]
    made.run, made.start, made.bodies, made.in_trips = calls.run, calls.start, bodies, False
    made.fit = _unknown
    if functions:
        module = Module(["import numpy as np", *opening], [], functions, "fit", {})
        made.fit = Loaded(module, render(module)).function("fit")
    made._write = text.show


@final
class _Text:
    """The text of code that runs as calls."""

    __slots__ = ("_code", "_graph", "_job")

    def __init__(self, graph: Graph, job: Job) -> None:
        self._graph, self._job = graph, job
        self._code: Compiled | None = None

    def show(self, made: Compiled) -> None:
        """Give the lines to the code that runs as calls."""
        made.loaded = self.write().loaded

    def write(self) -> Compiled:
        """Return the code that has the text."""
        with _writing:
            if self._code is None:
                part, options, limits, _ = self._job
                code = Compiled(self._graph)
                _print_text(code, self._job, None, plan_for(part, options, limits))
                self._code = code
            return self._code


def _has_users(graph: Graph) -> bool:
    """Return whether user functions are called."""
    return any(map(_is_of_user, graph.body))


def _is_of_user(eqn: Equation) -> bool:
    """Return whether an equation calls a function of the user."""
    if eqn.op.has_bodies:
        return any(map(_has_users, eqn.bodies))
    return CARDS.get(eqn.op) is None


def add_body_runners(module: Module, limits: Limits) -> list[Compiled]:
    """Add to `module` the runners of its branches and loops; return the code of their bodies."""
    bodies: list[Compiled] = []
    spare: list[loop_runners.Spare] = []
    for name, step in module.loops.items():
        module.table[name] = loop_runners.runner_of(step, _Bodies(limits, bodies), spare)
    return bodies


@final
@dataclass(frozen=True, slots=True)
class _Bodies:
    """Compiler of branches and loop bodies, which are appended to `made`."""

    limits: Limits
    made: list[Compiled]

    def code(self, body: Graph) -> loop_runners.Code:
        found = self._compile_body(body, None)
        # Kept alive with the first one: an outer body needs both again.
        found.numbers = compile_planned(body, (), Options(), self.limits)
        return loop_runners.Code(found.run, found.start, found.numbers.scalar)

    def trips(self, body: Graph, consts: int, carries: int) -> loop_runners.Code:
        found = self._compile_body(body, (consts, carries))
        if found.in_trips:
            return loop_runners.Code(None, found.start, trips=found.run)
        return loop_runners.Code(found.run, found.start)

    def numbers(
        self, body: Graph, consts: int, carries: int, test: Graph | None = None
    ) -> Callable[..., Any] | None:
        asking = None if test is None else schedule(test)
        module = scalar_trips(schedule(body), consts, carries, asking)
        return None if module is None else Loaded(module, render(module)).function("numbers")

    def _compile_body(self, body: Graph, trip: tuple[int, int] | None) -> Compiled:
        options = Options(given=tuple(range(len(body.outputs))), trip=trip)
        found = compile_planned(body, (), options, self.limits)
        self.made.append(found)
        return found


def plan_for(graph: Graph, options: Options, limits: Limits, steps: Schedule | None = None) -> Plan:
    """Return the plan of the planned code for `graph`, whose schedule may be known."""
    steps = schedule(graph) if steps is None else steps
    found = load_copy_elision(steps)
    if found is not None:
        apart = {k for k, _ in options.donated}.union(options.given)
        outputs = [v for k, v in enumerate(steps.outputs) if k not in apart]
        steps = found.sink_parts(steps, CARDS, outputs)
    steps, regions = arrange_regions(steps, limits, CARDS)
    plan = plan_schedule(steps, regions, options, CARDS)
    return plan_verifier.verify(plan) if debugging.get() else plan


def plan_with_bodies(graph: Graph, options: Options, limits: Limits) -> Plan:
    """Return the plan, with the plans of branches and loop bodies."""
    found: dict[Any, Plan] = {}
    plan = plan_for(graph, options, limits)
    for step in plan.schedule.steps:
        for body in step.eqn.bodies if step.op.has_bodies else ():
            regions, trip = step.regions, None
            if regions is not None and regions.flow is Flow.ROWS:
                trip = regions.consts, regions.carries
            given = Options(given=tuple(range(len(body.outputs))), trip=trip)
            found.setdefault((body, trip), plan_with_bodies(body, given, limits))
    return replace(plan, bodies=tuple(found.values()))


def _no_workspace() -> None:
    """Return None: the readable style has no workspace."""


def _unknown(*arrays: Any) -> bool:
    """Return False: nothing is known about the arrays."""
    return False


def _quiet_context() -> Context:
    """Return a context in which NumPy ignores floating-point errors, whatever the caller's does.

    Entering it costs a small fraction of `np.errstate`, and changes nothing outside.
    """
    context = Context()
    context.run(np.seterr, all="ignore")
    return context
