"""Objects that generated code refers to by name: runners of bodies, arrays, and user functions."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, final

from primgraph.base.providers import late, provider
from primgraph.base.records import dataclass
from primgraph.codegen.compiled import Compiled, compile_planned
from primgraph.codegen.ir.limits import Limits, Options
from primgraph.codegen.ir.schedule import Form, Step
from primgraph.codegen.targets.text.fallback import caller_of
from primgraph.ir.graph import Equation, Graph

if TYPE_CHECKING:
    from primgraph.codegen import loops as loop_runners
else:
    loop_runners = late("primgraph.codegen.loops")

# The modules of functions and classes of the runtime that planned code may refer to.
_RUNTIME = {
    "share": "primgraph.codegen.runtime.threads",
    "Growing": "primgraph.codegen.runtime.growing",
}


def runtime_object(name: str) -> Any:
    """Return the function or class of the runtime that code of this name refers to."""
    return getattr(import_module(_RUNTIME[name]), name)


def step_of(eqn: Equation) -> Step:
    """Return the step of an equation, whose values have no numbers."""
    form = Form(eqn)
    return Step(eqn, (), (), form, form.op)


def object_of(step: Step, compiler: Bodies, spare: list[loop_runners.Spare]) -> Any:
    """Return what a name stands for: the array of a constant, or a function that runs the step."""
    if step.op.has_bodies:
        return loop_runners.runner_of(step, compiler, spare)
    return caller_of(step) if step.eqn.array is None else step.eqn.array


@final
@dataclass(frozen=True, slots=True)
class Bodies:
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
        entries = provider("code entries")
        key = entries.key_of_trips(body, consts, carries, test)
        found = None if key is None else entries.recall_trips(key)
        if found is None:
            loaded = provider("planned code").generate_trips(body, consts, carries, test, key)
        else:
            loaded = found[0]
        return None if loaded is None else loaded.function("numbers")

    def _compile_body(self, body: Graph, trip: tuple[int, int] | None) -> Compiled:
        options = Options(given=tuple(range(len(body.outputs))), trip=trip)
        found = compile_planned(body, (), options, self.limits)
        self.made.append(found)
        return found
