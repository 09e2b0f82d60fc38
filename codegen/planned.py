"""Generation of planned code: from a graph to a plan, to text or calls."""

from __future__ import annotations

from dataclasses import replace
from time import process_time
from typing import TYPE_CHECKING, Any, TypeAlias, final

from primgraph.base.debug_mode import debugging
from primgraph.base.providers import late
from primgraph.codegen import code_entries
from primgraph.codegen.bodies import Bodies, object_of
from primgraph.codegen.compiled import Compiled, Job, generate_later, is_of_user, unknown, writing
from primgraph.codegen.ir.limits import Limits, Options
from primgraph.codegen.ir.program import Plan
from primgraph.codegen.ir.schedule import CHUNK, Schedule, Step, schedule
from primgraph.codegen.ir.statements import Call
from primgraph.codegen.load import Loaded, load_module
from primgraph.codegen.lower.arrays.fusion_groups import arrange_regions
from primgraph.codegen.lower.arrays.planner import load_copy_elision, plan_schedule
from primgraph.codegen.ops.table import CARDS
from primgraph.codegen.targets.inplace.entry import add_check
from primgraph.codegen.targets.inplace.function import print_plan
from primgraph.codegen.targets.scalar.function import scalar_function, scalar_trips
from primgraph.codegen.targets.text.module import Function, Module
from primgraph.ir.graph import Graph
from primgraph.primitives.control import Flow

if TYPE_CHECKING:
    from primgraph.codegen import calls as bound_calls
    from primgraph.codegen import loops as loop_runners
    from primgraph.codegen.ir import verify as plan_verifier
    from primgraph.codegen.targets.text import clocks as timing
else:
    bound_calls = late("primgraph.codegen.calls")
    plan_verifier = late("primgraph.codegen.ir.verify")
    loop_runners = late("primgraph.codegen.loops")
    timing = late("primgraph.codegen.targets.text.clocks")

# Lines and a function of scalar code.
Numbers: TypeAlias = tuple[list[str], Function]


def generate(graph: Graph, job: Job, key: str | None) -> Compiled:
    """Return code for a part of `graph`; keep it on disk under `key`, if there is one."""
    start = process_time()
    steps = schedule(job.part)
    numbers = _numbers(job, steps)
    if job.clocks is None and numbers is not None:
        opening, function = numbers
        module = Module(["import numpy as np", *opening], [], [function], function.name, {})
        loaded = load_module(module)
        code_entries.keep(key, job, loaded, module, [], process_time() - start)
        made = generate_later(graph, job, is_scalar=True)
        made.scalar = loaded.function(function.name)
        return made
    made = Compiled(graph)
    written = write_planned(made, job, numbers, steps, key)
    if written is not None:
        seconds = process_time() - start
        code_entries.keep(key, job, made.loaded, written, made.equations, seconds)
    return made


def generate_trips(
    body: Graph, consts: int, carries: int, test: Graph | None, key: str | None
) -> Loaded | None:
    """Return the scalar code of a loop body, if it has any; keep that on disk under `key`."""
    start = process_time()
    asking = None if test is None else schedule(test)
    module = scalar_trips(schedule(body), consts, carries, asking)
    loaded = None if module is None else load_module(module)
    code_entries.keep_trips(key, loaded, module, process_time() - start)
    return loaded


def write_late(code: Compiled, job: Job, *, is_scalar: bool) -> None:
    """Generate the planned code of a job, for which there is native code, or scalar code."""
    write_planned(code, job, _numbers(job, schedule(job.part)) if is_scalar else None)


def _numbers(job: Job, steps: Schedule) -> Numbers | None:
    """Return the function of scalar code with the lines that it needs, if there is any."""
    options = job.options
    if options.donated or options.given:
        return None
    return scalar_function(steps, options.alone, nested=job.clocks is None)


def write_planned(
    made: Compiled,
    job: Job,
    scalar: Numbers | None,
    steps: Schedule | None = None,
    key: str | None = None,
) -> Module | None:
    """Generate the planned code of a job and its schedule, with its scalar code, if any.

    Return the module of code that has a text. That of calls is kept under `key` as soon as it is
    written.
    """
    part, options, limits, clocks = job
    plan = plan_for(part, options, limits, steps)
    if scalar is None and clocks is None and _runs_as_calls(plan):
        bind_calls(made, job, plan, key)
        return None
    return _print_text(made, job, scalar, plan)


def _print_text(made: Compiled, job: Job, scalar: Numbers | None, plan: Plan) -> Module:
    """Generate code as text, and return its module."""
    steps, module = plan.schedule, print_plan(plan)
    if scalar is not None:
        module.opening += scalar[0]
        module.functions.append(scalar[1])
    if job.clocks is not None:
        job.clocks.append(timing.with_clocks(module, len(steps.steps)))
    bodies = bind_objects(module, job.limits)
    made.set_plan(load_module(module), [s.eqn for s in steps.steps], bodies, module)
    if scalar is not None and job.clocks is not None:
        made.scalar = made.loaded.function(scalar[1].name)
    return module


def bind_objects(module: Module, limits: Limits) -> list[Compiled]:
    """Add to the table of `module` the objects that steps stand for; return the code of bodies."""
    compiler, spare = Bodies(limits, []), list[loop_runners.Spare]()
    for name, step in module.objects.items():
        module.table[name] = object_of(step, compiler, spare)
    return compiler.made


def _runs_as_calls(plan: Plan) -> bool:
    """Return whether a plan runs without text: a long one, without loops over blocks.

    Failed calls run again as text, which must not call functions of the user twice.
    """
    if len(plan.schedule.steps) <= CHUNK or plan.loops:
        return False
    return not any(x.__class__ is Call and is_of_user(x.step.eqn) for x in plan.body)


def bind_calls(made: Compiled, job: Job, plan: Plan, key: str | None = None) -> None:
    """Make a plan run as calls; its text is generated for those who look, and for errors."""
    text, compiler, spare = _Text(made.graph, job, key), Bodies(job.limits, []), list[Any]()

    def runner(step: Step) -> loop_runners.Runner:
        return loop_runners.runner_of(step, compiler, spare)

    calls = bound_calls.Calls(plan, runner, text.write)
    functions = list[Function]()
    opening = add_check(plan, functions)
    made.equations = [s.eqn for s in plan.schedule.steps]
    made.run, made.start, made.bodies, made.in_trips = calls.run, calls.start, compiler.made, False
    made.fit = unknown
    if functions:
        module = Module(["import numpy as np", *opening], [], functions, "fit", {})
        made.fit = load_module(module).function("fit")
    made._write = text.show


@final
class _Text:
    """The text of code that runs as calls."""

    __slots__ = ("_code", "_graph", "_job", "_key")

    def __init__(self, graph: Graph, job: Job, key: str | None) -> None:
        self._graph, self._job, self._key = graph, job, key
        self._code: Compiled | None = None

    def show(self, made: Compiled) -> None:
        """Give the lines to the code that runs as calls."""
        made.loaded = self.write().loaded

    def write(self) -> Compiled:
        """Return the code that has the text."""
        with writing:
            if self._code is None:
                start, code, job = process_time(), Compiled(self._graph), self._job
                module = _print_text(code, job, None, plan_for(job.part, job.options, job.limits))
                seconds = process_time() - start
                code_entries.keep(self._key, job, code.loaded, module, code.equations, seconds)
                self._code = code
            return self._code


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
