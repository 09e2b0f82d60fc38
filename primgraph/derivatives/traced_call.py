"""Call of a user's function of variables on distinct arguments, recorded in the same program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from primgraph.base.grad_mode import tracked
from primgraph.base.user_lines import caller
from primgraph.derivatives.modes import record
from primgraph.derivatives.request import require_floats
from primgraph.derivatives.subgraph import Path, is_held_constant
from primgraph.errors import ArgumentError, BuildError
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.signature import applied
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import recording
from primgraph.operators.call import brought_together, handed_out
from primgraph.operators.promotion import lift
from primgraph.operators.variable import Variable, handle_of
from primgraph.primitives.constants import zeros_like
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
    def of(name: str, function: Any, inputs: Sequence[Variable]) -> Call:
        """Call `function` once, and record its equations on `inputs` in the program.

        Handles that the function stores elsewhere do not belong to the program. Raises
        `ArgumentError` if it is not a function, or returns anything but variables, arrays and
        numbers, or a tuple or list of them.
        """
        if not callable(function):
            raise ArgumentError(f"{name} takes a function, not {type(function).__name__}")
        builder, inputs = brought_together(inputs)
        assert isinstance(builder, Builder)
        values = [v.value for v in inputs]
        with builder.scratch() as equations:
            arguments = [builder.argument(v) for v in values]
            flagged = (a for a, v in zip(arguments, values, strict=True) if v in builder.stopped)
            builder.stopped.update(list(flagged))
            with recording(builder), tracked():
                result = applied(function, *(handle_of(builder, a) for a in arguments))
                listed = result if isinstance(result, list | tuple) else (result,)
                if not listed or any(r is None for r in listed):
                    raise ArgumentError(
                        f"{name}: the function returned {result!r:.80}, not variables"
                    )
                results = [lift(r).value for r in listed]
        if not builder.in_call:
            builder.begin_call()
        moved = _recorded(builder, equations, dict(zip(arguments, values, strict=True)))
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

    def require_floats(self, name: str) -> None:
        """Raise `NotDifferentiable` unless all inputs and outputs are floats."""
        require_floats(name, "input", self.inputs, self.origin)
        require_floats(name, "output", self.outputs, self.origin)

    def origin(self) -> list[str]:
        """Return the lines for an error: where the function was called, and its inputs."""
        return self.builder.origin(caller(), self.inputs)

    def path(self, outputs: Sequence[Value] | None = None) -> Path:
        """Return the path from the arguments to `outputs`, by default to all results."""
        ends = self.results if outputs is None else list(outputs)
        made = {v for e in self.equations for v in e.outputs}
        used = dict.fromkeys(v for e in self.equations for v in e.inputs if v not in made)
        known = [e for v in used if (e := self.builder.definition(v)) is not None]
        constants = [e for e in known if not e.inputs and not is_held_constant(self.builder, e)]
        equations = [*constants, *self.equations]
        name = self.builder.name
        return Path.of(equations, self.arguments, ends, self.constants, name, whole=True)

    def tangents(self, path: Path, seeds: Sequence[Value | None]) -> list[Value]:
        """Return tangents of the outputs of `path`, from those of all arguments; None stands for
        ones."""
        known = dict(zip(self.arguments, seeds, strict=True))
        if path.wrt:
            return self.record(path, path.jvp(), [known[v] for v in path.wrt])
        with recording(self.builder):
            return [zeros_like(v) for v in path.graph.outputs]

    def cotangents(self, path: Path, seeds: Sequence[Value | None]) -> list[Value]:
        """Return cotangents of all arguments, from those of the outputs of `path`; None stands for
        ones."""
        found = self.record(path, path.vjp(), seeds) if path.wrt else []
        known = dict(zip(path.wrt, found, strict=True))
        with recording(self.builder):
            return [known[v] if v in known else zeros_like(v) for v in self.arguments]

    def record(self, path: Path, derivative: Graph, seeds: Sequence[Value | None]) -> list[Value]:
        """Record `derivative`, taken along `path`, on the inputs and `seeds`."""
        ends = [self.moved.get(v, v) for v in path.ends]
        given = [*path.free, *seeds]
        return record(self.builder, path, derivative, given, ends=ends, replaced=self.moved)


def _recorded(
    builder: Builder, equations: Sequence[Equation], moved: dict[Value, Value]
) -> dict[Value, Value]:
    """Record `equations` on mapped values, and return the map extended by their results.

    Names and state updates are moved, too.
    """
    for eqn in equations:
        distinct = any(v.hint or v in builder.stopped for v in eqn.outputs)
        copied = builder.copy_distinct if distinct else builder.copy
        results = copied(eqn, tuple(moved.get(v, v) for v in eqn.inputs))
        moved.update(zip(eqn.outputs, results, strict=True))
    for eqn in equations:
        for value in eqn.outputs:
            if value.hint:
                builder.rename(moved[value], value.hint)
            builder.note_moved(value, moved)
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


def in_form(builder: Builder, values: Sequence[Value], single: bool) -> Variable | list[Variable]:
    """Return `values` as distinct variables: alone if `single`, else in a list."""
    handles = handed_out([Variable(builder, v) for v in values])
    return handles[0] if single else handles
