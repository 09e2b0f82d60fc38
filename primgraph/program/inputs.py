"""Inputs of a run: states, which scopes hold, and feeds, with the errors about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from primgraph.codegen.runtime.feeds import as_feed
from primgraph.errors import FeedError, near_matches
from primgraph.ir.graph import Value
from primgraph.ir.sizes import Fitting
from primgraph.ir.types import TensorType
from primgraph.program.program import Program
from primgraph.program.scope import Reading, Scope, State

Array: TypeAlias = "np.ndarray[Any, Any]"

# States.


def read_states(program: Program, scope: Scope, states: Sequence[State]) -> Reading:
    """Return a reading of the newest version of `scope`, in which `states` have valid values."""
    while True:
        reading = scope.read()
        if reading.version.setting.seen is states or _ensure_initialized(
            program, scope, states, reading
        ):
            return reading


def _ensure_initialized(
    program: Program, scope: Scope, states: Sequence[State], reading: Reading
) -> bool:
    """Return whether all `states` have a value; initialise those without one.

    Raises `FeedError` if the scope holds an array of another type under the name of a state.
    """
    version = reading.version
    arrays = version.arrays
    missing = [state for state in states if state.name not in arrays]
    if missing:
        scope.replace(version, {state.name: program.first_value(state) for state in missing})
        return False
    for state in states:
        _check_type(state, arrays[state.name])
    version.setting.seen = states
    return True


def _check_type(state: State, array: Array) -> None:
    """Raise unless `array` is of the type of `state`."""
    type = state.type
    if array.shape != type.shape or array.dtype != type.dtype:
        raise FeedError(
            f"the scope holds {array.dtype} of shape {array.shape} for {state.name!r}, "
            f"which is {type}",
            hint="two programs with different parameters of one name need a scope each",
        )


def state_values(program: Program, scope: Scope, states: Sequence[State]) -> list[Array]:
    """Return copies of the values of `states` in `scope`, as a consistent snapshot."""
    reading = read_states(program, scope, states)
    return [reading.version.arrays[s.name].copy() for s in states]


def input_values(program: Program, values: Sequence[Value], feed: Mapping[str, Any]) -> list[Array]:
    """Return copies of the values of inputs: fed arrays, or states in the program's scope."""
    kept = [v for v in values if v in program.states]
    states = state_values(program, program.scope, [program.states[v] for v in kept])
    held = dict(zip(kept, states, strict=True))
    return [held[v] if v in held else as_feed(feed[v.hint], v.type, v.hint).copy() for v in values]


# Feeds.


def check_names(program: Program, given: Mapping[str, Any], needed: Sequence[str]) -> None:
    """Raise for missing and unknown names, with near matches."""
    missing = [n for n in needed if n not in given]
    if not missing and len(given) == len(needed):
        return
    declared = program.inputs
    unknown = [n for n in given if n not in declared]
    faults = []
    if missing:
        faults.append("missing " + ", ".join(f"{n!r} {declared[n].type}" for n in missing))
    if unknown:
        faults.append("unexpected " + ", ".join(repr(n) for n in unknown))
    if faults:
        lines = declaration_lines(program, missing)
        hints = [h for n in unknown if (h := near_matches(n, declared))]
        names = [n for n in unknown if not isinstance(n, str)]
        if names:
            hints.append("keys of a feed are names of inputs, such as {'x': array}")
        elif unknown and not hints:
            hints.append(f"the program has the inputs {', '.join(map(repr, declared))}")
        raise FeedError(f"feed: {'; '.join(faults)}", origin=lines, hint="; ".join(hints))


def check_sizes(program: Program, given: Mapping[str, Any]) -> None:
    """Raise for sizes that contradict each other in any fed array, needed or not."""
    fed = [(name, variable.type) for name, variable in program.inputs.items() if name in given]
    fitting = Fitting(fed)
    shapes = [np.shape(given[name]) for name, _ in fed]
    try:
        fitting.key(shapes)
        fitting.sizes(shapes)
    except FeedError as error:
        raise error.located(declaration_lines(program, [n for n, t in fed if t.names])) from None


def misfit_lines(
    program: Program, names: Sequence[str], types: Sequence[TensorType], given: Mapping[str, Any]
) -> list[str]:
    """Return the lines of the first feed that does not fit; empty if all fit."""
    for name, type in zip(names, types, strict=True):
        try:
            as_feed(given[name], type, name)
        except FeedError:
            return declaration_lines(program, [name])
    return []


def declaration_lines(program: Program, names: Sequence[str]) -> list[str]:
    """Return the lines for an error: where these inputs are declared."""
    places = [program.builder.declared_at[program.inputs[n].value] for n in names]
    return [f"{n!r} is declared at {p}   {p.text}" for n, p in zip(names, places, strict=True)]
