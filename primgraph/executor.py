"""Runs programs: picks what the fetches need, compiles it once, feeds and fetches."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.codegen import Kernel
from primgraph.codegen.feeds import as_feed
from primgraph.compiler import compile
from primgraph.errors import ArgumentError, FeedError
from primgraph.ir.graph import Graph, Value
from primgraph.operators.variable import Variable
from primgraph.program import Program, default_main_program

Fetch: TypeAlias = Variable | str | Sequence["Variable | str"]


@final
class Executor:
    """Runs programs. It holds nothing: kernels are kept with the program they come from."""

    def run(
        self,
        program: Program | None = None,
        feed: Mapping[str, Any] | None = None,
        fetch_list: Sequence[Fetch] | None = None,
    ) -> list[np.ndarray[Any, Any]]:
        """Compute what `fetch_list` names from the arrays in `feed`.

        `program` is the default main program unless given. `feed` maps names of inputs to
        arrays of exactly the declared shapes, of dtypes that convert safely. `fetch_list` has
        variables, or names of inputs and of named variables, or lists of these, which are
        flattened. Only what the fetches need is computed and has to be fed. The first run for a
        list of fetches compiles a kernel, later ones reuse it.

        Returns one new array for each fetch. Raises `FeedError` for a missing, unknown or
        unfitting feed and for an unknown fetch, `ArgumentError` for other objects.
        """
        program = default_main_program() if program is None else program
        if not isinstance(program, Program):
            raise ArgumentError(f"run takes a Program, not {type(program).__name__}")
        given = {} if feed is None else feed
        if not isinstance(given, Mapping):
            raise ArgumentError(f"feed is a mapping of names, not {type(feed).__name__}")
        values = tuple(_fetched(program, item) for item in _flat(fetch_list))
        kernel, names = self._kernel(program, values)
        _check_names(program, given, names)
        arrays = [
            as_feed(given[n], v.type, n) for n, v in zip(names, kernel.graph.inputs, strict=True)
        ]
        return kernel(*arrays)

    def kernel(self, program: Program, fetch_list: Sequence[Fetch]) -> Kernel:
        """The kernel that `run` uses for these fetches."""
        values = tuple(_fetched(program, item) for item in _flat(fetch_list))
        return self._kernel(program, values)[0]

    def close(self) -> None:
        """Nothing has to be released; kept for programs that say when they are done."""

    def _kernel(self, program: Program, values: tuple[Value, ...]) -> tuple[Kernel, list[str]]:
        found: tuple[Kernel, list[str]] | None = program.kernels.get(values)
        if found is None:
            builder = program.builder
            body = builder.slice(values)
            used = {v for e in body for v in e.inputs}.union(values)
            inputs = [v for v in builder.inputs if v in used]
            kernel = compile(Graph(inputs, body, values, program.name))
            found = program.kernels[values] = kernel, [v.hint for v in inputs]
        return found


def _flat(items: Sequence[Any] | None) -> Iterable[Any]:
    """The items of a fetch list, with lists in it opened."""
    if isinstance(items, Variable | str):
        raise ArgumentError("fetch_list is a list of variables or names")
    for item in () if items is None else items:
        if isinstance(item, list | tuple):
            yield from item
        else:
            yield item


def _fetched(program: Program, item: Any) -> Value:
    if isinstance(item, Variable):
        if item.recorder is not program.builder:
            raise FeedError(f"cannot fetch {item!r}: it belongs to another program")
        return item.value
    if isinstance(item, str):
        variable = program.variable(item)
        if variable is None:
            hint = _near(item, program.builder.names)
            raise FeedError(f"cannot fetch {item!r}: the program has no such name", hint=hint)
        return variable.value
    if item is None:
        raise ArgumentError(
            "cannot fetch None",
            hint="a derivative is None where there is no path to the input; leave it out",
        )
    raise ArgumentError(f"cannot fetch a {type(item).__name__}: only variables and names")


def _check_names(program: Program, given: Mapping[str, Any], needed: Sequence[str]) -> None:
    """Refuse missing and unknown names, and say which known ones are near."""
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
        builder = program.builder
        places = [builder.declared_at[declared[n].value] for n in missing]
        lines = [f"{n!r} is declared at {p}   {p.text}" for n, p in zip(missing, places, strict=True)]
        hints = [h for n in unknown if (h := _near(n, declared))]
        raise FeedError(f"feed: {'; '.join(faults)}", origin=lines, hint="; ".join(hints))


def _near(name: Any, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(str(name), list(known), n=2)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else ""


