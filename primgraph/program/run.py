"""Executor: select the equations that fetches need, compile once, feed, run and store state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Never, TypeAlias, final, overload

import numpy as np

from primgraph.base.interpreter_limits import uncollected
from primgraph.base.journal import compiling
from primgraph.codegen import Kernel
from primgraph.codegen.kernel import is_for_all_sizes
from primgraph.codegen.run.feeds import as_feed
from primgraph.errors import ArgumentError, FeedError, OptionError, RunError, near_matches
from primgraph.ir.frontend.containers import leaves_for, put_together, taken_apart
from primgraph.ir.frontend.gradient_names import titles_of
from primgraph.ir.frontend.result_names import UNTITLED, Title
from primgraph.ir.frontend.signature import checked_methods
from primgraph.ir.graph import Graph, Value
from primgraph.ir.sizes import Fitting, at_sizes
from primgraph.ir.types import TensorType
from primgraph.operators.variable import Variable
from primgraph.program.compile import Pipeline, pipeline, simplified_early, target_of
from primgraph.program.finite import check_finite
from primgraph.program.program import Program, State, default_main_program
from primgraph.program.scope import Changes, Reading, Scope, Version, changes_of, storing, taker
from primgraph.program.sized import GENERIC, KEPT, BySizes, Policy
from primgraph.transforms.rewrite.rule import check_level

Array: TypeAlias = "np.ndarray[Any, Any]"
Fetch: TypeAlias = Variable | str | Sequence["Variable | str"]


# Maximum number of restarts of a run whose states are changed by runs inside it.
_TRIES = 10


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """Compiled execution of one list of fetches, with the sources of its inputs.

    The inputs of the kernel are the feeds in `names`, the constant states that `still` reads from a
    dict, and the states in `changed`, ordered by `arranged`; results of the early kernel follow.
    `written` is the user's graph, before passes. The first `fetched` outputs are the fetches; the
    others are the new values of `changed` states. `states` are all that need a value. With symbolic
    sizes, a plan is specialised for `sizes`; `written` stays symbolic.
    """

    written: Graph
    sizes: Mapping[str, int]
    pipeline: Pipeline
    kernel: Kernel
    early: _Early | None
    names: list[str]
    types: list[TensorType]
    needed: frozenset[str]
    states: list[State]
    fetched: int
    changed: Changes
    still: Callable[[Mapping[str, Array]], Sequence[Array]]
    arranged: Callable[[Sequence[Any]], Sequence[Any]]

    @property
    def graph(self) -> Graph:
        """Return the user's graph at these sizes."""
        return at_sizes(self.written, self.sizes) if self.sizes else self.written

    def given(self, out: Sequence[Any] | None) -> list[Any] | None:
        """Extend `out`, with an array or None per fetch, to all outputs of the kernel."""
        if out is None:
            return None
        if not isinstance(out, Sequence):
            raise ArgumentError(f"out is a list of arrays, one for each fetch, not {out!r:.60}")
        if len(out) != self.fetched:
            raise ArgumentError(f"out has {len(out)} arrays for {self.fetched} fetches")
        return [*out, *[None] * len(self.changed)]

    def fed(self, given: Mapping[str, Any]) -> list[Any]:
        """Return the feeds. Before updates they are converted here, so that they are validated
        first."""
        if not self.changed:
            return [given[name] for name in self.names]
        return [as_feed(given[n], t, n) for n, t in zip(self.names, self.types, strict=True)]

    def arguments(self, fed: Sequence[Any], held: Version) -> Sequence[Any]:
        """Return the kernel's arguments: feeds, arrays of a scope, and results of the early
        kernel."""
        if held.setting.changes is self.changed:
            found = self.arranged((*fed, *self.still(held.setting.rest), *held.new))
        else:
            arrays = held.arrays
            found = self.arranged((*fed, *self.still(arrays), *self.changed.taken(arrays)))
        return found if self.early is None else (*found, *self.early.results(held))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _SizedPlan:
    """Plans of one list of fetches of a program with symbolic sizes, by sizes.

    `names` are the inputs to be fed.
    """

    names: list[str]
    needed: frozenset[str]
    plans: BySizes[_Plan]

    def at(self, program: Program, given: Mapping[str, Any], *, own: bool = False) -> _Plan:
        """Return the plan for the sizes of the feeds; with `own`, the specialised one."""
        arrays = [given[name] for name in self.names]
        try:
            return self.plans.at([np.shape(a) for a in arrays]) if own else self.plans.of(arrays)
        except FeedError as error:
            named = [n for n, type in self.plans.fitting.inputs if type.names]
            raise error.located(_declaration_lines(program, named)) from None


@final
class _Early:
    """Values that depend on constant states only, recomputed when one of these changes."""

    def __init__(self, kernel: Kernel, names: Sequence[str]) -> None:
        self.kernel = kernel
        self.names = names
        self._latest: tuple[list[int], list[Array]] = ([], [])

    def results(self, held: Version) -> list[Array]:
        """Return the results for the arrays of a scope version, which must be held by a reading."""
        # Other threads may read other scopes or versions concurrently.
        latest = self._latest
        known = held.numbers
        numbers = [known[name] for name in self.names]
        if latest[0] != numbers:
            arrays = [held.arrays[name] for name in self.names]
            self._latest = latest = (numbers, self.kernel(*arrays))
        return latest[1]


@final
@checked_methods("run")
class Executor:
    """Runner of programs. Kernels are kept with the program they come from.

    `scope` is where states are read and written, by default each program's own. `math` is "exact",
    "signs", "finite" or "fast", and `target` "numpy" or "c", as for `compile`. New symbolic sizes
    run code for all sizes. Sizes that come again get a kernel of their own, kept for the last
    `kept_sizes` sets; `new_sizes="compile"` compiles for new sizes at once.

    >>> with pg.Program() as program:
    ...     y = 2.0 * pg.data("x", (2,))
    >>> pg.Executor().run(program, {"x": [1.0, 2.0]}, [y])
    [array([2., 4.])]
    """

    def __init__(
        self,
        scope: Scope | None = None,
        *,
        math: str = "exact",
        target: str | None = None,
        kept_sizes: int = KEPT,
        new_sizes: str = GENERIC,
    ) -> None:
        check_level(math)
        self.scope = scope
        self.math = math
        self.target = target_of(target)
        self._policy = Policy.checked(kept_sizes, new_sizes)

    def __repr__(self) -> str:
        where = "of each program" if self.scope is None else repr(self.scope)
        return f"<Executor: scope {where}, math {self.math!r}>"

    @overload
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
    ) -> list[np.ndarray[Any, Any]]: ...
    @overload
    def run(
        self,
        program: Program | None = None,
        feed: Mapping[str, Any] | None = None,
        fetch_list: Mapping[str, Any] = ...,
        *,
        update: bool = True,
        out: Any = None,
        borrow: bool = False,
        debug: str | None = None,
        **unknown: Never,
    ) -> dict[str, Any]: ...
    def run(
        self,
        program: Program | None = None,
        feed: Mapping[str, Any] | None = None,
        fetch_list: Sequence[Fetch] | Mapping[str, Any] | None = None,
        *,
        update: bool = True,
        out: Any = None,
        borrow: bool = False,
        debug: str | None = None,
        **unknown: Never,
    ) -> list[np.ndarray[Any, Any]] | dict[str, Any]:
        """Compute what `fetch_list` names from the arrays in `feed`, and update the states.

        `program` is the default main program unless given. `feed` maps names of inputs to arrays of
        exactly the declared shapes, of dtypes that convert safely. `fetch_list` has variables, or
        names of inputs and named variables; nested lists are flattened. It may be a dict of these,
        of lists and of dicts: then results and `out` are dicts with the same keys. Only what the
        fetches and the program's updates need is computed, and has to be fed. The first run for a
        list of fetches compiles a kernel; later ones reuse it. The run of a startup program resets
        the states that were created under it to their initial values.

        A program with updates, such as those of an optimizer, makes them in every run. To compute
        without training, use `update=False`, or `program.clone(for_test=True)`, in which dropout
        and normalization are off too. Results, views of states included, are from before the
        updates; a state that is fetched by its own handle or name is from after. All updates become
        visible at once, or none if the run fails or is interrupted. Runs that update one scope wait
        for each other.

        Return one new array for each fetch. `out` has an array of exactly the fetch's type, or
        None, for each, to write the result into. With `borrow`, the next run in this thread that
        borrows the same fetches overwrites the arrays, unless it is given them.

        With `debug="nan"` the equations are first evaluated one by one, as written. The first that
        makes a NaN or an infinity from finite operands ends the run with a `NumericalError`, before
        anything is stored; see `check_finite`. This takes the time of one more, slow run.

        Raises `FeedError` for a missing, unknown or unfitting feed and for an unknown fetch,
        `ArgumentError` for other objects.
        """
        if fetch_list.__class__ is not list and isinstance(fetch_list, Mapping):
            tree, listed = taken_apart(fetch_list, lambda item: item is None)
            if out is not None:
                out = leaves_for(tree, out)
            found = self.run(
                program,
                feed,
                listed,
                update=update,
                out=out,
                borrow=borrow,
                debug=debug,
                **unknown,
            )
            named: dict[str, Any] = put_together(tree, iter(found))
            return named
        if unknown or debug is not None:
            _require_options(unknown, debug)
        if update is not True or borrow is not False:
            _require_flags(update=update, borrow=borrow)
        program = default_main_program() if program is None else program
        if not isinstance(program, Program):
            raise ArgumentError(
                f"run takes a Program, not {type(program).__name__}",
                hint="write run(program, feed, fetch_list)",
            )
        given = {} if feed is None else feed
        if given.__class__ is not dict and not isinstance(given, Mapping):
            raise ArgumentError(f"feed is a mapping of names, not {type(feed).__name__}")
        if program.starts:
            program.start(self.scope)
        plan = self._plan(program, fetch_list, update)
        if given.keys() != plan.needed:
            check_names(program, given, plan.names)
            if isinstance(plan, _SizedPlan):
                _check_sizes(program, given)
        if isinstance(plan, _SizedPlan):
            plan = plan.at(program, given)
        scope = program.scope if self.scope is None else self.scope
        wanted = (None if out is None else plan.given(out), bool(borrow), debug is not None)
        try:
            if not plan.changed:
                return _read_only(program, plan, given, scope, *wanted)
            with scope.turn():
                return _run_plan(program, plan, given, scope, *wanted)
        except FeedError as error:
            raise error.located(_misfit(program, plan, given)) from None

    def kernel(
        self,
        program: Program,
        fetch_list: Sequence[Fetch],
        *,
        update: bool = True,
        sizes: Mapping[str, int] | None = None,
    ) -> Kernel:
        """Return a kernel that computes what `run` does for these fetches.

        Its inputs are the feeds and the states; new values of states follow the fetches in its
        results. `run` computes values that depend only on unchanged states once, by a separate
        kernel; here they are part of the kernel.

        Of a program with sizes it is the kernel for `sizes`, which names them all; without these
        the one for all sizes, which takes arrays of sizes that fit each other.

        Raises `UnknownSizeError` where code for all sizes would have to know more of them.
        """
        return self._plan_at(program, fetch_list, update, sizes).pipeline.whole

    def repeated_kernel(
        self,
        program: Program,
        fetch_list: Sequence[Fetch] | None = None,
        *,
        update: bool = True,
        sizes: Mapping[str, int] | None = None,
    ) -> Kernel:
        """Return the kernel that each run for these fetches calls.

        Where something depends on states only that stay as they are, that is an input of it. Of a
        program with sizes it is the kernel for `sizes`, as in `kernel`.
        """
        return self._plan_at(program, fetch_list, update, sizes).kernel

    def general_kernel(
        self, program: Program, fetch_list: Sequence[Fetch] | None = None, *, update: bool = True
    ) -> Kernel | None:
        """Return the size-generic kernel that runs for these fetches start with; None for a program
        without symbolic sizes.

        Raises `UnknownSizeError` if its code would need a size as a number.
        """
        plan = self._plan(program, fetch_list, update)
        return plan.plans.whole.kernel if isinstance(plan, _SizedPlan) else None

    def sizes(
        self,
        program: Program,
        feed: Mapping[str, Any],
        fetch_list: Sequence[Fetch] | None = None,
        *,
        update: bool = True,
    ) -> Mapping[str, int]:
        """Return the sizes of a feed for these fetches, by name; empty without symbolic sizes."""
        plan = self._plan(program, fetch_list, update)
        check_names(program, feed, plan.names)
        return plan.at(program, feed, own=True).sizes if isinstance(plan, _SizedPlan) else {}

    def arguments(
        self,
        program: Program,
        feed: Mapping[str, Any],
        fetch_list: Sequence[Fetch] | None = None,
        *,
        update: bool = True,
    ) -> list[Any]:
        """Return the arguments of a run for the kernel of `kernel`, with copies of states.

        For a program with symbolic sizes, the kernel is that for the sizes of the feed.
        """
        plan = self._plan(program, fetch_list, update)
        check_names(program, feed, plan.names)
        if isinstance(plan, _SizedPlan):
            plan = plan.at(program, feed, own=True)
        scope = program.scope if self.scope is None else self.scope
        reading = read_states(program, scope, plan.states)
        fed = plan.fed(feed)
        arrays = plan.arguments(fed, reading.version)
        given = set(map(id, fed))
        return [a if id(a) in given else a.copy() for a in arrays]

    def close(self) -> None:
        """Do nothing; exists for code that closes its executor."""

    def _plan_at(
        self,
        program: Program,
        fetch_list: Sequence[Fetch] | None,
        update: bool,
        sizes: Mapping[str, int] | None,
    ) -> _Plan:
        plan = self._plan(program, fetch_list, update)
        if not isinstance(plan, _SizedPlan):
            return plan
        return plan.plans.whole if sizes is None else plan.plans.given(sizes)

    def _plan(
        self, program: Program, fetch_list: Sequence[Fetch] | None, update: bool = True
    ) -> _Plan | _SizedPlan:
        values = _values(program, fetch_list)
        updates = program.updates if update else _NONE
        how = self.math, self.target
        key = (values, update, how, self._policy)
        known: tuple[dict[Value, Value], _Plan | _SizedPlan] | None = program.kernels.get(key)
        if known is None or known[0] != updates:
            known = (dict(updates), _build_plan(program, values, updates, how, self._policy))
            program.kernels[key] = known
        return known[1]


# Empty updates, for runs with `update=False`.
_NONE: dict[Value, Value] = {}


def _read_only(
    program: Program,
    plan: _Plan,
    given: Mapping[str, Any],
    scope: Scope,
    out: list[Any] | None,
    borrow: bool,
    debug: bool,
) -> list[Array]:
    """Run a plan that changes no state."""
    reading = read_states(program, scope, plan.states)
    try:
        arrays = plan.arguments(plan.fed(given), reading.version)
        if debug:
            check_finite(plan.graph, *arrays[: len(plan.graph.inputs)])
        results: list[Array] = plan.kernel(*arrays, out=out, borrow=borrow)
        return results
    finally:
        # An exception that the user keeps refers to this frame, and would keep the arrays
        # read-only.
        del reading


@storing
def _run_plan(
    program: Program,
    plan: _Plan,
    given: Mapping[str, Any],
    scope: Scope,
    out: list[Any] | None,
    borrow: bool,
    debug: bool,
) -> list[Array]:
    """Run a plan, store all updated states, and return the results.

    It restarts if a nested run, in a function that the program calls or in a signal handler, has
    changed the scope meanwhile.
    """
    changed, fed = plan.changed, plan.fed(given)
    for _ in range(_TRIES):
        before, first = scope.begin()
        if before.setting.seen is not plan.states:
            read_states(program, scope, plan.states)
            before, first = scope.begin()
        arrays = plan.arguments(fed, before)
        if debug:
            check_finite(plan.graph, *arrays[: len(plan.graph.inputs)])
        new = scope.spare(changed)
        results = plan.kernel.fill(arrays, new, out=out, borrow=borrow)
        if scope.store(before, first, changed, new):
            del results[plan.fetched :]
            return results
    raise RunError(
        f"the states of {program.name} change in every run, before it ends",
        hint="a function that the program calls, or a handler of signals, must not train it",
    )


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


def _require_options(unknown: Mapping[str, Any], debug: Any) -> None:
    """Raise for unknown arguments of `run`, and for unknown debug modes."""
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
    """Return the fetched values. A fast path handles lists of variables."""
    builder, values = program.builder, []
    if fetch_list.__class__ is list:
        for item in fetch_list or ():
            if item.__class__ is not Variable or item.recorder is not builder:
                break
            values.append(item.value)
        else:
            return tuple(values)
    return tuple(_fetched_value(program, item) for item in _flat(fetch_list))


@uncollected
def _build_plan(
    program: Program,
    values: tuple[Value, ...],
    updates: Mapping[Value, Value],
    how: tuple[str, str],
    policy: Policy,
) -> _Plan | _SizedPlan:
    """Plan the computation of these values and `updates`."""
    builder = program.builder
    fetched = [updates.get(v, v) for v in values]
    body, outputs = builder.computing([*fetched, *updates.values()])
    used = {v for e in body for v in e.inputs}.union(outputs)
    inputs = [v for v in builder.inputs if v in used]
    new = tuple([Title(state=v.hint) for v in updates])
    titles = (titles_of(builder, fetched) or (UNTITLED,) * len(fetched)) + new
    graph = Graph(inputs, body, outputs, program.name, titles=titles)
    sizes = graph.sizes
    if not sizes:
        return _plan_of(program, graph, graph, {}, len(fetched), updates, how)
    inputs = _required_inputs(builder.inputs, inputs, sizes)
    graph = Graph(inputs, body, outputs, program.name, titles=titles)
    early = simplified_early(graph)

    def made(known: Mapping[str, int]) -> _Plan:
        plain = at_sizes(early, known)
        return _plan_of(program, graph, plain, known, len(fetched), updates, how)

    def whole() -> _Plan:
        return _plan_of(program, graph, early, {}, len(fetched), updates, how)

    fed = [v for v in inputs if v not in program.states]
    fitting = Fitting([(v.hint, v.type) for v in fed], sizes)
    names = [v.hint for v in fed]
    plans = BySizes(graph, fitting, made, whole, policy, lambda plan: is_for_all_sizes(plan.kernel))
    return _SizedPlan(names, frozenset(names), plans)


def _required_inputs(
    declared: Sequence[Value], used: Sequence[Value], sizes: Sequence[str]
) -> list[Value]:
    """Return the inputs that are `used`, and those that must be fed because only they determine a
    size."""
    kept, known = set(used), set().union(*(v.type.names for v in used))
    for value in declared:
        if not value.type.names.isdisjoint(set(sizes) - known):
            kept.add(value)
            known |= value.type.names
    return [v for v in declared if v in kept]


def _plan_of(
    program: Program,
    written: Graph,
    graph: Graph,
    sizes: Mapping[str, int],
    fetched: int,
    updates: Mapping[Value, Value],
    how: tuple[str, str],
) -> _Plan:
    """Return the plan of a graph, which is `written` at `sizes`, at a math level and for a target.

    A graph with symbolic sizes gets a size-generic plan.
    """
    inputs = written.inputs
    known = dict(zip(inputs, graph.input_types, strict=True))
    fed = [v for v in inputs if v not in program.states]
    still = [v for v in inputs if v in program.states and v not in updates]
    at = {v: i for i, v in enumerate([*fed, *still, *updates])}
    places = [i for i, v in enumerate(inputs) if len(fed) <= at[v] < len(fed) + len(still)]
    handed = range(fetched, len(graph.outputs))
    math, target = how
    listed = ", ".join([f"{v.hint} {known[v]}" for v in fed])
    with compiling(
        f"program {graph.name or 'main'}", f"{fetched} results for {listed or 'no feeds'}"
    ):
        compiled = pipeline(graph, math, places, handed, target)
    early = None
    if compiled.early is not None:
        early = _Early(compiled.early, [v.hint for v in still])
    changed = [program.states[v] for v in updates]
    return _Plan(
        written=written,
        sizes=sizes,
        pipeline=compiled,
        kernel=compiled.kernel,
        early=early,
        names=[v.hint for v in fed],
        types=[known[v] for v in fed],
        needed=frozenset([v.hint for v in fed]),
        states=[*(program.states[v] for v in still), *changed],
        fetched=fetched,
        changed=changes_of({s.name: s.type for s in changed}),
        still=taker([v.hint for v in still]),
        arranged=taker([at[v] for v in inputs]),
    )


def _flat(items: Sequence[Any] | None) -> Iterable[Any]:
    """Yield the items of a fetch list, with nested lists flattened.

    The result of `minimize`, a tuple that begins with a list, stands for the optimizer step, which
    every run takes, and yields nothing; its pairs can be fetched as a list.
    """
    if isinstance(items, Variable | str):
        given = repr(items) if isinstance(items, str) else items.value.hint or "y"
        raise ArgumentError(
            f"fetch_list is a list of variables or names, not {items!r:.60}",
            hint=f"write fetch_list=[{given}]",
        )
    if isinstance(items, Mapping | Set) or not isinstance(items, Iterable | None):
        raise ArgumentError(f"fetch_list is a list of variables or names, not {items!r:.60}")
    for item in () if items is None else items:
        if isinstance(item, tuple) and item and isinstance(item[0], list):
            continue
        if isinstance(item, list | tuple):
            yield from item
        else:
            yield item


def _fetched_value(program: Program, item: Any) -> Value:
    if isinstance(item, Variable):
        if item.recorder is not program.builder:
            raise FeedError(
                f"cannot fetch {item!r}: it belongs to another program, "
                f"{getattr(item.recorder, 'title', 'a graph')}, not to {program.builder.title}",
                hint=f"fetch it by its name, {item.name!r}, if this program is a clone of that one",
            )
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
        lines = _declaration_lines(program, missing)
        hints = [h for n in unknown if (h := near_matches(n, declared))]
        names = [n for n in unknown if not isinstance(n, str)]
        if names:
            hints.append("keys of a feed are names of inputs, such as {'x': array}")
        elif unknown and not hints:
            hints.append(f"the program has the inputs {', '.join(map(repr, declared))}")
        raise FeedError(f"feed: {'; '.join(faults)}", origin=lines, hint="; ".join(hints))


def _check_sizes(program: Program, given: Mapping[str, Any]) -> None:
    """Raise for sizes that contradict each other in any fed array, needed or not."""
    fed = [(name, variable.type) for name, variable in program.inputs.items() if name in given]
    fitting = Fitting(fed)
    shapes = [np.shape(given[name]) for name, _ in fed]
    try:
        fitting.key(shapes)
        fitting.sizes(shapes)
    except FeedError as error:
        raise error.located(_declaration_lines(program, [n for n, t in fed if t.names])) from None


def _misfit(program: Program, plan: _Plan, given: Mapping[str, Any]) -> list[str]:
    """Return the lines of the first feed that does not fit; empty if all fit."""
    for name, type in zip(plan.names, plan.types, strict=True):
        try:
            as_feed(given[name], type, name)
        except FeedError:
            return _declaration_lines(program, [name])
    return []


def _declaration_lines(program: Program, names: Sequence[str]) -> list[str]:
    """Return the lines for an error: where these inputs are declared."""
    places = [program.builder.declared_at[program.inputs[n].value] for n in names]
    return [f"{n!r} is declared at {p}   {p.text}" for n, p in zip(names, places, strict=True)]
