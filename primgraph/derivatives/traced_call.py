"""Call of a user's function of variables on distinct arguments, recorded in the same program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primgraph.base.grad_mode import enable_tracking
from primgraph.base.interpreter_limits import uncollected
from primgraph.base.records import dataclass
from primgraph.derivatives.subgraph import Path, is_held_constant
from primgraph.errors import ArgumentError, BuildError
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.gradient_names import note_moved
from primgraph.ir.frontend.signature import call_user_function
from primgraph.ir.graph import Equation, Value
from primgraph.ir.primitive import recording
from primgraph.operators.call import common_program
from primgraph.operators.promotion import lift
from primgraph.operators.variable import Variable, handle_of
from primgraph.program.program import program_of


@dataclass(frozen=True, slots=True)
class Call:
    """Recorded call of a function of variables.

    `inputs` are the values that the function was called on. In `equations`, `arguments` stand for
    them, one each: a value passed twice counts as two, and a captured one differs from the
    argument. `results` are the outputs there, `outputs` those in the program. `moved` maps
    arguments and flagged values to the program's.
    """

    builder: Builder
    inputs: list[Value]
    arguments: list[Value]
    equations: list[Equation]
    results: list[Value]
    outputs: list[Value]
    moved: dict[Value, Value]
    constants: set[Value]
    single: bool

    @staticmethod
    def trace_function(name: str, function: Any, inputs: Sequence[Variable]) -> Call:
        """Call `function` once, and record its equations on `inputs` in the program.

        Handles that the function stores elsewhere do not belong to the program. Raises
        `ArgumentError` if it is not a function, or returns anything but variables, arrays and
        numbers, or a tuple or list of them.
        """
        if not callable(function):
            raise ArgumentError(f"{name} takes a function, not {type(function).__name__}")
        builder, inputs = common_program(inputs)
        assert isinstance(builder, Builder)
        values = [v.value for v in inputs]
        with builder.scratch() as equations:
            arguments = [builder.argument(v) for v in values]
            flagged = (a for a, v in zip(arguments, values, strict=True) if v in builder.stopped)
            builder.stopped.update(list(flagged))
            with recording(builder), enable_tracking():
                result = call_user_function(function, *(handle_of(builder, a) for a in arguments))
                listed = result if isinstance(result, list | tuple) else (result,)
                if not listed or any(r is None for r in listed):
                    raise ArgumentError(
                        f"{name}: the function returned {result!r:.80}, not variables"
                    )
                results = [lift(r).value for r in listed]
        if not builder.in_call:
            builder.begin_call()
        moved = _record_equations(builder, equations, dict(zip(arguments, values, strict=True)))
        constants = builder.stopped & moved.keys()
        builder.stopped |= {moved[v] for v in constants}
        builder.stopped -= constants
        return Call(
            builder,
            values,
            arguments,
            equations,
            results,
            [moved.get(v, v) for v in results],
            moved,
            constants,
            not isinstance(result, list | tuple),
        )

    def path(self) -> Path:
        """Return the path from the arguments to the results."""
        made = {v for e in self.equations for v in e.outputs}
        used = dict.fromkeys(v for e in self.equations for v in e.inputs if v not in made)
        known = [e for v in used if (e := self.builder.definition(v)) is not None]
        constants = [e for e in known if not e.inputs and not is_held_constant(self.builder, e)]
        equations, ends = [*constants, *self.equations], (self.arguments, self.results)
        return Path.from_equations(
            self.builder, equations, *ends, self.constants, placed=self.moved
        )


@uncollected
def _record_equations(
    builder: Builder, equations: Sequence[Equation], moved: dict[Value, Value]
) -> dict[Value, Value]:
    """Record `equations` on mapped values, and return the map extended by their results.

    Names and state updates are moved, too.
    """
    if any(v.hint or v in builder.stopped for eqn in equations for v in eqn.outputs):
        for eqn in equations:
            distinct = any(v.hint or v in builder.stopped for v in eqn.outputs)
            copied = builder.copy_distinct if distinct else builder.copy
            results = copied(eqn, tuple([moved.get(v, v) for v in eqn.inputs]))
            moved.update(zip(eqn.outputs, results, strict=True))
    else:
        builder.add_all(equations, moved)
    for eqn in equations:
        for value in eqn.outputs:
            if value.hint:
                builder.rename(moved[value], value.hint)
            note_moved(builder, value, moved)
    _move_updates(builder, moved)
    return moved


def _move_updates(builder: Builder, moved: dict[Value, Value]) -> None:
    """Map the values of state updates that the function requested."""
    if not moved:
        return
    try:
        updates = program_of(Variable(builder, next(iter(moved)))).updates
    except BuildError:
        return
    updates.update({s: moved[v] for s, v in updates.items() if v in moved})
