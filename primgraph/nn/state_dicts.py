"""Values of the parameters and buffers of a layer by dotted name: read, stored and shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from primgraph.base.atomic import Call
from primgraph.errors import BuildError, FeedError
from primgraph.ir.frontend.html_tables import Row, Sheet
from primgraph.nn.parameter import Parameter
from primgraph.program.program import Program, program_of
from primgraph.program.scope import Scope, copy_for_scope, put_all, require_known

# Dotted names and states of a layer and of all within.
States: TypeAlias = list[tuple[str, Parameter]]


def values_of(owner: str, listed: States, scope: Scope | None) -> dict[str, np.ndarray[Any, Any]]:
    """Return copies of the values of states by dotted name; see `Layer.state_dict`."""
    if scope is not None and listed:
        program, names = _names_in_program(owner, listed)
        found = program.state_dict(scope)
        return {name: found[inner] for name, inner in names.items()}
    programs: dict[Program, dict[str, np.ndarray[Any, Any]]] = {}
    values = {}
    for name, parameter in listed:
        home = parameter.home
        if home is None:
            values[name] = parameter.tensor._array().copy()
        else:
            program = program_of(home)
            if program not in programs:
                programs[program] = program.state_dict()
            values[name] = programs[program][home.name]
    return values


def store_values(
    owner: str, listed: States, values: Mapping[str, Any], scope: Scope | None
) -> None:
    """Store copies of `values` by dotted name; see `Layer.set_state_dict`."""
    known = dict(listed)
    require_known(values, known, f"{owner} has no parameters or buffers named")
    if scope is not None:
        if values:
            program, inner = _names_in_program(owner, listed)
            program.set_state_dict({inner[n]: v for n, v in values.items()}, scope)
        return
    arrays = {n: copy_for_scope(n, value, known[n].type) for n, value in values.items()}
    homes: dict[Scope, dict[str, np.ndarray[Any, Any]]] = {}
    calls: list[Call] = []
    # A parameter that has several names is changed once.
    changed = {known[n].identity: (known[n], array) for n, array in arrays.items()}
    for parameter, array in changed.values():
        home = parameter.home
        if home is None:
            calls += parameter.hold_calls(array)
        else:
            homes.setdefault(program_of(home).scope, {})[home.name] = array
    put_all(homes, calls)


def require_all(owner: str, known: Sequence[str], values: Mapping[str, Any]) -> None:
    """Raise `FeedError` for names that `values` lacks, unless it has unknown ones, too."""
    missing = [name for name in known if name not in values]
    if missing and set(values) <= set(known):
        raise FeedError(
            f"there is nothing for {', '.join(map(repr, missing))} of {owner}",
            hint="with strict=False what is not named keeps its value",
        )


def _names_in_program(owner: str, listed: States) -> tuple[Program, dict[str, str]]:
    """Return a program of which a layer is part, and the names of its states by dotted name."""
    program = listed[0][1].latest
    names: dict[str, str] = {}
    for name, parameter in listed:
        state = None if program is None else parameter.state_in(program)
        if state is not None:
            names[name] = state.name
    if program is None or len(names) < len(listed):
        raise BuildError(
            f"the parameters of this {owner} are in no program",
            hint="call it in a program first, or leave out the scope",
        )
    return program, names


def html_of(title: str, states: States) -> str:
    """Return a table of the parameters and buffers of a layer, by name."""
    rows = [Row((name, str(p.type), "" if p.trainable else "buffer")) for name, p in states]
    count = sum(p.type.size for _, p in states if p.trainable)
    note = f"{count:,} trainable numbers"
    head = ("name", "type", "")
    return Sheet(title, "cct", head, rows, len(rows), (note,)).html()
