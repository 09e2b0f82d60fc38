"""Runs programs: picks what the fetches need, compiles it once, feeds, fetches, keeps state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Never, TypeAlias, final

import numpy as np

from primgraph.codegen import Kernel
from primgraph.codegen.feeds import as_feed
from primgraph.compiler import Pipeline, pipeline
from primgraph.errors import ArgumentError, FeedError, OptionError, RunError, near_matches
from primgraph.ir.collection import uncollected
from primgraph.ir.graph import Graph, Value
from primgraph.ir.signature import checked_methods
from primgraph.numerics import check_finite
from primgraph.operators.variable import Variable
from primgraph.program import Program, State, default_main_program
from primgraph.scope import Reading, Scope, Version
from primgraph.transforms.rules import check_level

Array: TypeAlias = "np.ndarray[Any, Any]"
Fetch: TypeAlias = Variable | str | Sequence["Variable | str"]


# How often a run begins again because runs that it contains change the states it has read.
_TRIES = 10


@dataclass(frozen=True, slots=True)
class _Plan:
    """How one list of fetches is run: what is compiled, and where its inputs come from.

    `feeds` are the inputs to be fed, by position in the kernel, and `states` those taken from
    the scope; what is computed early follows these. `graph` is what the user wrote, before any
    pass.

    The first `fetched` outputs are the fetches; the others are new values of the states in
    `changed`, in this order.
    """

    graph: Graph
    pipeline: Pipeline
    early: _Early | None
    names: list[str]
    feeds: list[tuple[int, str]]
    states: list[tuple[int, State]]
    fetched: int
    changed: list[State]

    @property
    def kernel(self) -> Kernel:
        return self.pipeline.kernel

    def given(self, out: Sequence[Any] | None) -> list[Any] | None:
        """`out`, which has an array or None for each fetch, for all outputs of the kernel."""
        if out is None:
            return None
        if not isinstance(out, Sequence):
            raise ArgumentError(f"out is a list of arrays, one for each fetch, not {out!r:.60}")
        if len(out) != self.fetched:
            raise ArgumentError(f"out has {len(out)} arrays for {self.fetched} fetches")
        return [*out, *[None] * len(self.changed)]

    def arguments(self, given: Mapping[str, Any], held: Version) -> list[Any]:
        """What the kernel is called with: feeds, arrays of a scope, and what these give."""
        arrays: list[Any] = [None] * (len(self.feeds) + len(self.states))
        for place, name in self.feeds:
            arrays[place] = given[name]
        for place, state in self.states:
            arrays[place] = _fitting(state, held.arrays[state.name])
        return arrays

    def computed(self, held: Version) -> list[Array]:
        """What depends on states only, for those of a scope."""
        return [] if self.early is None else self.early.results(held)


@final
class _Early:
    """What of a program depends on states only, computed again when one of them has changed."""

    def __init__(self, kernel: Kernel, names: Sequence[str]) -> None:
        self.kernel = kernel
        self.names = names
        self._latest: tuple[list[int], list[Array]] = ([], [])

    def results(self, held: Version) -> list[Array]:
        """The results for the arrays that a scope holds, which must be being read."""
        # Other threads may read other scopes, or versions, at the same time.
        latest = self._latest
        numbers = [held.numbers[name] for name in self.names]
        if latest[0] != numbers:
            arrays = [held.arrays[name] for name in self.names]
            self._latest = latest = (numbers, self.kernel(*arrays))
        return latest[1]


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
        update: bool = True,
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
        be fed. The first run for a list of fetches compiles a kernel, later ones reuse it. The
        run of a startup program gives the states that were created under it their first values
        again.

        A program with updates, such as those of an optimizer, makes them in every run: to look at
        results without training, use `update=False`, or run a `program.clone(for_test=True)`,
        in which dropout and normalisation are off too. What is computed, views of states
        included, is of before the updates; a state that is fetched by its own handle or name is
        as they leave it. All of them are seen at once, by whoever reads the scope, or none if the
        run fails or is interrupted. Runs that update one scope wait for each other.

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
        if update is not True or borrow is not False:
            _require_flags(update=update, borrow=borrow)
        program = default_main_program() if program is None else program
        if not isinstance(program, Program):
            raise ArgumentError(f"run takes a Program, not {type(program).__name__}")
        given = {} if feed is None else feed
        if given.__class__ is not dict and not isinstance(given, Mapping):
            raise ArgumentError(f"feed is a mapping of names, not {type(feed).__name__}")
        if program.starts:
            program.start(self.scope)
        plan = self._plan(program, fetch_list, update)
        check_names(program, given, plan.names)
        scope = program.scope if self.scope is None else self.scope
        call = _Call(program, plan, given, scope, plan.given(out), bool(borrow), debug is not None)
        if not plan.changed:
            return call.results()
        with scope.turn:
            return call.results()

    def kernel(
        self, program: Program, fetch_list: Sequence[Fetch], *, update: bool = True
    ) -> Kernel:
        """One kernel that computes what `run` does for these fetches.

        Its inputs are what is fed and the states; new values of states follow the fetches in its
        results. `run` itself computes what depends on states that stay as they are only once, and
        again when these change, by a kernel of its own; here it is part of the whole.
        """
        return self._plan(program, fetch_list, update).pipeline.whole

    def repeated_kernel(
        self,
        program: Program,
        fetch_list: Sequence[Fetch] | None = None,
        *,
        update: bool = True,
    ) -> Kernel:
        """The kernel that each run for these fetches calls.

        Where something depends on states only that stay as they are, that is an input of it.
        """
        return self._plan(program, fetch_list, update).kernel

    def arguments(
        self,
        program: Program,
        feed: Mapping[str, Any],
        fetch_list: Sequence[Fetch] | None = None,
        *,
        update: bool = True,
    ) -> list[Any]:
        """What a run would call that kernel with; states, and what they give, as copies."""
        plan = self._plan(program, fetch_list, update)
        check_names(program, feed, plan.names)
        scope = program.scope if self.scope is None else self.scope
        reading = read_states(program, scope, [state for _, state in plan.states])
        arrays = plan.arguments(feed, reading.version)
        for place, _ in plan.states:
            arrays[place] = arrays[place].copy()
        return arrays + [array.copy() for array in plan.computed(reading.version)]

    def close(self) -> None:
        """Nothing has to be released; kept for programs that say when they are done."""

    def _plan(
        self, program: Program, fetch_list: Sequence[Fetch] | None, update: bool = True
    ) -> _Plan:
        values = _values(program, fetch_list)
        updates = tuple(program.updates.items()) if update and program.updates else ()
        key = (values, updates, self.math)
        found: _Plan | None = program.kernels.get(key)
        if found is None:
            found = program.kernels[key] = _planned(program, values, dict(updates), self.math)
        return found


@final
@dataclass(frozen=True, slots=True)
class _Call:
    """One run of a program in a scope, with what was given for it."""

    program: Program
    plan: _Plan
    given: Mapping[str, Any]
    scope: Scope
    out: list[Any] | None
    borrow: bool
    debug: bool

    def results(self) -> list[Array]:
        """The results, when all that the run changes has been stored."""
        for _ in range(_TRIES):
            found = self._tried()
            if found is not None:
                return found
        raise RunError(
            f"the states of {self.program.name} change in every run, before it ends",
            hint="a function that the program calls, or a handler of signals, must not train it",
        )

    def _tried(self) -> list[Array] | None:
        """The results, unless the scope is another one now than the one that was read."""
        plan, scope = self.plan, self.scope
        reading = read_states(self.program, scope, [state for _, state in plan.states])
        try:
            held = reading.version
            arrays = plan.arguments(self.given, held)
            if self.debug:
                check_finite(plan.graph, *arrays)
            if plan.early is not None:
                arrays += plan.computed(held)
            new = [scope.spare(state.name, state.type) for state in plan.changed]
            results = plan.kernel.fill(arrays, new, out=self.out, borrow=self.borrow)
            if new:
                names = [state.name for state in plan.changed]
                if not scope.store(reading, dict(zip(names, new, strict=True))):
                    return None
                del results[plan.fetched :]
            return results
        except FeedError as error:
            raise error.located(_misfit(self.program, plan, self.given)) from None
        finally:
            # An error that somebody keeps has this frame, and the arrays would stay as they are.
            del reading


def _fitting(state: State, array: Array) -> Array:
    """`array`, if it is of the type of `state`."""
    type = state.type
    if array.shape != type.shape or array.dtype != type.dtype:
        raise FeedError(
            f"the scope holds {array.dtype} of shape {array.shape} for {state.name!r}, "
            f"which is {type}",
            hint="two programs with different parameters of one name need a scope each",
        )
    return array


def read_states(program: Program, scope: Scope, states: Iterable[State]) -> Reading:
    """The newest version of `scope`, in which `states` that had no value have their first one."""
    while True:
        reading = scope.read()
        arrays = reading.version.arrays
        missing = [state for state in states if state.name not in arrays]
        if not missing:
            return reading
        scope.store(reading, {state.name: program.first_value(state) for state in missing})


def state_values(program: Program, scope: Scope, states: Sequence[State]) -> list[Array]:
    """Copies of the values of `states` in `scope`, all of one moment."""
    reading = read_states(program, scope, states)
    return [_fitting(s, reading.version.arrays[s.name]).copy() for s in states]


def input_values(program: Program, values: Sequence[Value], feed: Mapping[str, Any]) -> list[Array]:
    """Copies of what is fed, or else of what the program's scope holds, for some of its inputs."""
    states = [program.states[v] for v in values if v in program.states]
    held = dict(zip(states, state_values(program, program.scope, states), strict=True))
    found = []
    for value in values:
        state = program.states.get(value)
        if state is not None:
            found.append(held[state])
        else:
            found.append(as_feed(feed[value.hint], value.type, value.hint).copy())
    return found


def _require_options(unknown: Mapping[str, Any], debug: Any) -> None:
    """Refuse arguments that `run` does not have, and kinds of debugging that it does not know."""
    if unknown:
        name = next(iter(unknown))
        known = ("program", "feed", "fetch_list", "update", "out", "borrow", "debug")
        raise ArgumentError(
            f"run: there is no argument {name!r}",
            hint=f"{near_matches(name, known)} it takes {', '.join(known)}".strip(),
        )
    if debug != "nan":
        raise OptionError(f"debug={debug!r:.60} is not known", hint="choose 'nan', or None")


def _require_flags(**flags: Any) -> None:
    for name, flag in flags.items():
        if not isinstance(flag, bool | np.bool_):
            raise ArgumentError(f"run: {name} is True or False, not {flag!r:.60}")


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
def _planned(
    program: Program, values: tuple[Value, ...], updates: Mapping[Value, Value], math: str
) -> _Plan:
    builder = program.builder
    fetched = [updates.get(v, v) for v in values]
    outputs = [*fetched, *updates.values()]
    body = builder.slice(outputs)
    used = {v for e in body for v in e.inputs}.union(outputs)
    inputs = [v for v in builder.inputs if v in used]
    feeds, states = [], []
    for place, value in enumerate(inputs):
        state = program.states.get(value)
        if state is None:
            feeds.append((place, value.hint))
        else:
            states.append((place, state))
    graph = Graph(inputs, body, outputs, program.name)
    still = [place for place, _ in states if inputs[place] not in updates]
    compiled = pipeline(graph, math, still, range(len(fetched), len(outputs)))
    early = None
    if compiled.early is not None:
        early = _Early(compiled.early, [inputs[place].hint for place in still])
    return _Plan(
        graph=graph,
        pipeline=compiled,
        early=early,
        names=[name for _, name in feeds],
        feeds=feeds,
        states=states,
        fetched=len(fetched),
        changed=[program.states[v] for v in updates],
    )


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
            hint = near_matches(item, program.builder.names)
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
