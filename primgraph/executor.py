"""Runs programs: picks what the fetches need, compiles it once, feeds, fetches, keeps state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import is_
from typing import Any, Never, TypeAlias, final

import numpy as np

from primgraph.codegen import Kernel, compile_graph
from primgraph.codegen.feeds import as_feed
from primgraph.compiler import optimized
from primgraph.errors import ArgumentError, FeedError, OptionError, near_matches
from primgraph.ir.collection import uncollected
from primgraph.ir.graph import Graph, Value
from primgraph.ir.signature import checked_methods
from primgraph.numerics import check_finite
from primgraph.operators.variable import Variable
from primgraph.program import Program, State, default_main_program
from primgraph.scope import Scope
from primgraph.transforms.hoist import hoist
from primgraph.transforms.rules import check_level

Fetch: TypeAlias = Variable | str | Sequence["Variable | str"]


@dataclass(frozen=True, slots=True)
class _Plan:
    """How one list of fetches is run: the kernel, and where its inputs come from.

    `feeds` are the inputs to be fed, by position in the kernel, and `states` those taken from
    the scope; `early`, where there is one, computes the inputs that follow these. `graph` is
    what the user wrote, before any pass, without those.

    The first `fetched` outputs are the fetches; the others are new values of states, which the
    kernel leaves in the arrays of the scope where it has read them, and which are to be stored
    under the names in `stored` where it has not.
    """

    graph: Graph
    kernel: Kernel
    early: _Early | None
    names: list[str]
    feeds: list[tuple[int, str]]
    states: list[tuple[int, State]]
    fetched: int
    stored: list[tuple[int, str]]

    def given(self, out: Sequence[Any] | None) -> list[Any] | None:
        """`out` for all outputs of the kernel: what is stored must be new or the state's own."""
        count = len(self.kernel.graph.outputs)
        if not isinstance(out, Sequence | None):
            raise ArgumentError(f"out is a list of arrays, one for each fetch, not {out!r:.60}")
        if out is not None and len(out) != self.fetched:
            raise ArgumentError(f"out has {len(out)} arrays for {self.fetched} fetches")
        given = list(out) if out is not None else [None] * self.fetched
        new = dict(self.stored)
        types = self.kernel.graph.output_types
        rest = [
            np.empty(types[k].shape, types[k].dtype) if k in new else None
            for k in range(self.fetched, count)
        ]
        return [*given, *rest]

    def computed(self, arrays: Sequence[Any], scope: Scope) -> list[Any]:
        """What is computed from the states among `arrays`, which are those of `scope`."""
        if self.early is None:
            return []
        return self.early.results(scope.version, [arrays[place] for place, _ in self.states])


@final
class _Early:
    """What of `graph` depends on states only, computed again when the scope has changed."""

    def __init__(self, kernel: Kernel, graph: Graph) -> None:
        self.kernel = kernel
        self._graph = graph
        self._latest: tuple[int, Sequence[Any], list[np.ndarray[Any, Any]]] = (-1, [], [])

    def results(
        self, version: int, states: Sequence[np.ndarray[Any, Any]]
    ) -> list[np.ndarray[Any, Any]]:
        """The results for `states`, which are those of a scope at `version`."""
        latest = self._latest
        # Another thread may have stored other arrays after these were read, and before the version.
        if latest[0] != version or not all(map(is_, latest[1], states)):
            self._latest = latest = (version, states, self.kernel(*states))
        return latest[2]

    @cached_property
    def whole(self) -> Kernel:
        """One kernel for all of the graph."""
        return compile_graph(self._graph)


@final
@checked_methods("run")
class Executor:
    """Runs programs. Kernels are kept with the program they come from.

    `scope` is where states are read and written; by default each program's own. `math` is the
    level at which programs are compiled, "exact", "finite" or "fast", as for `compile`.
    """

    def __init__(self, scope: Scope | None = None, *, math: str = "exact") -> None:
        check_level(math)
        self.scope = scope
        self.math = math

    def run(
        self,
        program: Program | None = None,
        feed: Mapping[str, Any] | None = None,
        fetch_list: Sequence[Fetch] | None = None,
        *,
        out: Sequence[np.ndarray[Any, Any] | None] | None = None,
        borrow: bool = False,
        debug: str | None = None,
        **unknown: Never,
    ) -> list[np.ndarray[Any, Any]]:
        """Compute what `fetch_list` names from the arrays in `feed`, and update the state.

        `program` is the default main program unless given. `feed` maps names of inputs to
        arrays of exactly the declared shapes, of dtypes that convert safely. `fetch_list` has
        variables, or names of inputs and of named variables, or lists of these, which are
        flattened. Only what the fetches and the program's updates need is computed and has to
        be fed. A fetched state that the run updates is fetched as it is afterwards. The first
        run for a list of fetches compiles a kernel, later ones reuse it. The run of a startup
        program gives the states that were created under it their first values again.

        Returns one new array for each fetch. With `out`, which has an array or None for each, it
        is written into that array, of exactly the fetch's type; with `borrow` the arrays are
        overwritten by the next run in this thread that borrows the same fetches, unless it is
        given them.

        With `debug="nan"` the equations are first evaluated one by one, as they were written. The
        first that makes a NaN or an infinity of numbers that were none, in the program or in
        derivatives, ends the run with a `NumericalError`, before anything is stored; see
        `check_finite`. It takes the time of a slow run more.

        Raises `FeedError` for a missing, unknown or unfitting feed and for an unknown fetch,
        `ArgumentError` for other objects.
        """
        if unknown or debug is not None:
            _require_options(unknown, debug)
        program = default_main_program() if program is None else program
        if not isinstance(program, Program):
            raise ArgumentError(f"run takes a Program, not {type(program).__name__}")
        given = {} if feed is None else feed
        if given.__class__ is not dict and not isinstance(given, Mapping):
            raise ArgumentError(f"feed is a mapping of names, not {type(feed).__name__}")
        if program.starts:
            program.start(self.scope)
        plan = self._plan(program, fetch_list)
        scope = program.scope if self.scope is None else self.scope
        arrays = _arrays(program, plan, given, scope)
        try:
            if debug is not None:
                check_finite(plan.graph, *arrays)
            arrays += plan.computed(arrays, scope)
            if out is None and borrow is False:
                results: list[np.ndarray[Any, Any]] = plan.kernel(*arrays)
            else:
                _require_flag(borrow)
                results = plan.kernel(*arrays, out=plan.given(out), borrow=borrow)
        except FeedError as error:
            raise error.located(_misfit(program, plan, given)) from None
        finally:
            if program.updates:
                scope.changed()
        for place, name in plan.stored:
            scope.hold(name, results[place])
        return results[: plan.fetched]

    def kernel(self, program: Program, fetch_list: Sequence[Fetch]) -> Kernel:
        """One kernel that computes what `run` does for these fetches.

        `run` itself computes what depends on states only once, and again when these change, by
        a kernel of its own; here it is part of the whole.
        """
        plan = self._plan(program, fetch_list)
        return plan.kernel if plan.early is None else plan.early.whole

    def repeated_kernel(
        self, program: Program, fetch_list: Sequence[Fetch] | None = None
    ) -> Kernel:
        """The kernel that each run for these fetches calls.

        Where something depends on states only, that is an input of it.
        """
        return self._plan(program, fetch_list).kernel

    def arguments(
        self, program: Program, feed: Mapping[str, Any], fetch_list: Sequence[Fetch] | None = None
    ) -> list[Any]:
        """What a run would call that kernel with; states, and what they give, as copies."""
        scope = program.scope if self.scope is None else self.scope
        plan = self._plan(program, fetch_list)
        arrays = _arrays(program, plan, feed, scope)
        computed = [array.copy() for array in plan.computed(arrays, scope)]
        for place, _ in plan.states:
            arrays[place] = arrays[place].copy()
        return arrays + computed

    def close(self) -> None:
        """Nothing has to be released; kept for programs that say when they are done."""

    def _plan(self, program: Program, fetch_list: Sequence[Fetch] | None) -> _Plan:
        values = _values(program, fetch_list)
        key = (values, tuple(program.updates.items()) if program.updates else (), self.math)
        found: _Plan | None = program.kernels.get(key)
        if found is None:
            found = program.kernels[key] = _planned(program, values, self.math)
        return found


def _arrays(program: Program, plan: _Plan, given: Mapping[str, Any], scope: Scope) -> list[Any]:
    """What is fed and the states: arguments of a kernel but for what is computed from these."""
    check_names(program, given, plan.names)
    arrays: list[Any] = [None] * (len(plan.feeds) + len(plan.states))
    for place, name in plan.feeds:
        arrays[place] = given[name]
    for place, state in plan.states:
        arrays[place] = state_value(program, scope, state)
    return arrays


def _require_options(unknown: Mapping[str, Any], debug: Any) -> None:
    """Refuse arguments that `run` does not have, and kinds of debugging that it does not know."""
    if unknown:
        name = next(iter(unknown))
        known = ("program", "feed", "fetch_list", "out", "borrow", "debug")
        raise ArgumentError(
            f"run: there is no argument {name!r}",
            hint=f"{near_matches(name, known)} it takes {', '.join(known)}".strip(),
        )
    if debug != "nan":
        raise OptionError(f"debug={debug!r:.60} is not known", hint="choose 'nan', or None")


def _require_flag(borrow: Any) -> None:
    if not isinstance(borrow, bool | np.bool_):
        raise ArgumentError(f"run: borrow is True or False, not {borrow!r:.60}")


def _values(program: Program, fetch_list: Sequence[Any] | None) -> tuple[Value, ...]:
    """What is fetched. Lists of variables, which are the rule, take a short way."""
    builder, values = program.builder, []
    if fetch_list.__class__ is list:
        for item in fetch_list or ():
            if item.__class__ is not Variable or item.recorder is not builder:
                break
            values.append(item.value)
        else:
            return tuple(values)
    return tuple(_fetched(program, item) for item in _flat(fetch_list))


@uncollected
def _planned(program: Program, values: tuple[Value, ...], math: str) -> _Plan:
    builder, updates = program.builder, program.updates
    fetched = [updates.get(v, v) for v in values]
    outputs = [*fetched, *updates.values()]
    body = builder.slice(outputs)
    used = {v for e in body for v in e.inputs}.union(outputs)
    inputs = [v for v in builder.inputs if v in used]
    place_of = {v: j for j, v in enumerate(inputs)}
    new = [(len(fetched) + k, v) for k, v in enumerate(updates)]
    donated = {k: place_of[v] for k, v in new if v in place_of}
    stored = [(k, program.states[v].name) for k, v in new if v not in place_of]
    feeds, states = [], []
    for place, value in enumerate(inputs):
        state = program.states.get(value)
        if state is None:
            feeds.append((place, value.hint))
        else:
            states.append((place, state))
    names = [name for _, name in feeds]
    graph = Graph(inputs, body, outputs, program.name)
    plain = optimized(graph, math)
    first, rest = hoist(plain, [] if updates else [place for place, _ in states])
    early = _Early(compile_graph(first), plain) if first.outputs else None
    kernel = compile_graph(rest, donated=donated)
    return _Plan(graph, kernel, early, names, feeds, states, len(fetched), stored)


def state_value(program: Program, scope: Scope, state: State) -> np.ndarray[Any, Any]:
    """The value of `state` in `scope`; its first value if it has none there yet."""
    array = scope.held(state.name)
    if array is None:
        array = program.first_value(state)
        scope.hold(state.name, array)
    if array.shape != state.type.shape or array.dtype != state.type.dtype:
        raise FeedError(
            f"the scope holds {array.dtype} of shape {array.shape} for {state.name!r}, "
            f"which is {state.type}",
            hint="two programs with different parameters of one name need a scope each",
        )
    return array


def _flat(items: Sequence[Any] | None) -> Iterable[Any]:
    """The items of a fetch list, with lists in it opened.

    What `minimize` returned, a tuple that begins with a list, asks for the step, which every run
    takes, and for no results; its pairs can be fetched as a list.
    """
    if isinstance(items, Variable | str):
        raise ArgumentError("fetch_list is a list of variables or names")
    if not isinstance(items, Iterable | None):
        raise ArgumentError(f"fetch_list is a list of variables or names, not {items!r:.60}")
    for item in () if items is None else items:
        if isinstance(item, tuple) and item and isinstance(item[0], list):
            continue
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
            names = program.builder.names
            there = ", ".join(map(repr, list(names)[:20])) + (", ..." if len(names) > 20 else "")
            hint = near_matches(item, names) or f"it has {there or 'no names yet'}"
            raise FeedError(f"cannot fetch {item!r}: the program has no such name", hint=hint)
        return variable.value
    if item is None:
        raise ArgumentError(
            "cannot fetch None",
            hint="a derivative is None where there is no path to the input: pg.explain(y, x) tells "
            "why; leave it out",
        )
    raise ArgumentError(
        f"cannot fetch a {type(item).__name__}: only variables and names",
        hint="lists in fetch_list are opened once, not twice"
        if isinstance(item, list | tuple)
        else "",
    )


def check_names(program: Program, given: Mapping[str, Any], needed: Sequence[str]) -> None:
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
        lines = _declared(program, missing)
        hints = [h for n in unknown if (h := near_matches(n, declared))]
        raise FeedError(f"feed: {'; '.join(faults)}", origin=lines, hint="; ".join(hints))


def _misfit(program: Program, plan: _Plan, given: Mapping[str, Any]) -> list[str]:
    """Where the first feed that does not fit is declared; nothing if all fit."""
    for place, name in plan.feeds:
        try:
            as_feed(given[name], plan.kernel.graph.inputs[place].type, name)
        except FeedError:
            return _declared(program, [name])
    return []


def _declared(program: Program, names: Sequence[str]) -> list[str]:
    """Lines for an error: where the inputs of these names are declared."""
    places = [program.builder.declared_at[program.inputs[n].value] for n in names]
    return [f"{n!r} is declared at {p}   {p.text}" for n, p in zip(names, places, strict=True)]
