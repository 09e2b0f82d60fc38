"""Plans of runs: the equations that a list of fetches needs, compiled, and sources of inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.base.interpreter_limits import uncollected
from primgraph.base.journal import log_compilation
from primgraph.base.records import dataclass
from primgraph.codegen import Kernel
from primgraph.codegen.kernel import direct, is_for_all_sizes
from primgraph.codegen.runtime.feeds import as_feed
from primgraph.errors import ArgumentError, FeedError
from primgraph.ir.frontend.gradient_names import titles_of
from primgraph.ir.frontend.result_names import UNTITLED, Title
from primgraph.ir.graph import Graph, Value
from primgraph.ir.sizes import Fitting, specialize_graph
from primgraph.ir.types import TensorType
from primgraph.program.compile import Pipeline, pipeline, simplify_symbolic
from primgraph.program.inputs import declaration_lines
from primgraph.program.program import Program
from primgraph.program.scope import Changes, Scope, State, Version, changes_of, taker
from primgraph.program.sized import BySizes, Policy

Array: TypeAlias = "np.ndarray[Any, Any]"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Compiled execution of one list of fetches, with the sources of its inputs.

    The inputs of the kernel are the feeds in `names`, which `taken` reads from a dict, the constant
    states that `still` reads from one, and the states in `changed`, ordered by `arranged`; results
    of the early kernel follow.
    `written` is the user's graph, before passes. The first `fetched` outputs are the fetches; the
    others are the new values of `changed` states. `states` are all that need a value, and `direct`
    is the kernel's fast path. With symbolic sizes, a plan is specialised for `sizes`; `written`
    stays symbolic.
    """

    written: Graph
    sizes: Mapping[str, int]
    pipeline: Pipeline
    kernel: Kernel
    direct: Callable[..., list[Array] | None] | None
    early: Early | None
    names: list[str]
    types: list[TensorType]
    taken: Callable[[Mapping[str, Any]], Sequence[Any]]
    needed: frozenset[str]
    states: list[State]
    fetched: int
    changed: Changes
    still: Callable[[Mapping[str, Array]], Sequence[Array]]
    arranged: Callable[[Sequence[Any]], Sequence[Any]]

    @property
    def graph(self) -> Graph:
        """Return the user's graph at these sizes."""
        return specialize_graph(self.written, self.sizes) if self.sizes else self.written

    def extend_out(self, out: Sequence[Any] | None) -> list[Any] | None:
        """Extend `out`, with an array or None per fetch, to all outputs of the kernel."""
        if out is None:
            return None
        if not isinstance(out, Sequence):
            raise ArgumentError(f"out is a list of arrays, one for each fetch, not {out!r:.60}")
        if len(out) != self.fetched:
            raise ArgumentError(f"out has {len(out)} arrays for {self.fetched} fetches")
        return [*out, *[None] * len(self.changed)]

    def plain_results(self, fed: Mapping[str, Any], scope: Scope) -> list[Array] | None:
        """Return the results for feeds that need no conversion, if no state changes.

        Otherwise return None; also if `fed` has other names than those in `names`, and if the scope
        has states that are not known to be valid.
        """
        if self.direct is None or self.changed.names or len(fed) != len(self.names):
            return None
        try:
            arrays = self.taken(fed)
        except KeyError:
            return None
        if not self.states:
            return self.direct(*arrays)
        # A reading of the newest version.
        token = scope.token
        try:
            held = scope.newest
            if held.setting.seen is not self.states:
                return None
            reader, others = held.taken
            if reader is not self or self.early is not None:
                return self.direct(*self.arguments(arrays, held))
            return self.direct(*self.arranged((*arrays, *others)))
        finally:
            # An exception that the user keeps refers to this frame, and would keep the arrays
            # read-only.
            del token

    def feed_arrays(self, given: Mapping[str, Any]) -> Sequence[Any]:
        """Return the feeds. Before updates they are converted here, so that they are validated
        first."""
        if not self.changed.names:
            return self.taken(given)
        return [as_feed(given[n], t, n) for n, t in zip(self.names, self.types, strict=True)]

    def arguments(self, fed: Sequence[Any], held: Version) -> Sequence[Any]:
        """Return the kernel's arguments: feeds, arrays of a scope, and results of the early
        kernel."""
        reader, arrays = held.taken
        if reader is not self:
            if held.setting.changes is self.changed:
                arrays = (*self.still(held.setting.rest), *held.new)
            else:
                known = held.arrays
                arrays = (*self.still(known), *self.changed.taken(known))
            held.taken = (self, arrays)
        found = self.arranged((*fed, *arrays))
        return found if self.early is None else (*found, *self.early.results(held))


@final
@dataclass(frozen=True, slots=True, eq=False)
class SizedPlan:
    """Plans of one list of fetches of a program with symbolic sizes, by sizes.

    `names` are the inputs to be fed.
    """

    names: list[str]
    needed: frozenset[str]
    plans: BySizes[Plan]

    def plan_for(self, program: Program, given: Mapping[str, Any], *, own: bool = False) -> Plan:
        """Return the plan for the sizes of the feeds; with `own`, the specialised one."""
        arrays = [given[name] for name in self.names]
        try:
            return (
                self.plans.for_shapes([np.shape(a) for a in arrays])
                if own
                else self.plans.for_arrays(arrays)
            )
        except FeedError as error:
            named = [n for n, type in self.plans.fitting.inputs if type.names]
            raise error.located(declaration_lines(program, named)) from None


@final
class Early:
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


@uncollected
def build_plan(
    program: Program,
    values: tuple[Value, ...],
    updates: Mapping[Value, Value],
    how: tuple[str, str],
    policy: Policy,
) -> Plan | SizedPlan:
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
    early = simplify_symbolic(graph)

    def build_sized(known: Mapping[str, int]) -> Plan:
        plain = specialize_graph(early, known)
        return _plan_of(program, graph, plain, known, len(fetched), updates, how)

    def whole() -> Plan:
        return _plan_of(program, graph, early, {}, len(fetched), updates, how)

    fed = [v for v in inputs if v not in program.states]
    fitting = Fitting([(v.hint, v.type) for v in fed], sizes)
    names = [v.hint for v in fed]
    plans = BySizes(
        graph, fitting, build_sized, whole, policy, lambda plan: is_for_all_sizes(plan.kernel)
    )
    return SizedPlan(names, frozenset(names), plans)


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
) -> Plan:
    """Return the plan of a graph, which is `written` at `sizes`, at a math level and for a target.

    A graph with symbolic sizes gets a size-generic plan.
    """
    inputs = written.inputs
    known = dict(zip(inputs, graph.input_types, strict=True))
    fed = [v for v in inputs if v not in program.states]
    still = [v for v in inputs if v in program.states and v not in updates]
    at = {v: i for i, v in enumerate([*fed, *still, *updates])}
    order = [at[v] for v in inputs]
    places = [i for i, v in enumerate(inputs) if len(fed) <= at[v] < len(fed) + len(still)]
    handed = range(fetched, len(graph.outputs))
    math, target = how
    listed = ", ".join([f"{v.hint} {known[v]}" for v in fed])
    with log_compilation(
        f"program {graph.name or 'main'}", f"{fetched} results for {listed or 'no feeds'}"
    ):
        compiled = pipeline(graph, math, places, handed, target)
    early = None
    if compiled.early is not None:
        early = Early(compiled.early, [v.hint for v in still])
    changed = [program.states[v] for v in updates]
    return Plan(
        written=written,
        sizes=sizes,
        pipeline=compiled,
        kernel=compiled.kernel,
        direct=direct(compiled.kernel),
        early=early,
        names=[v.hint for v in fed],
        types=[known[v] for v in fed],
        taken=taker([v.hint for v in fed]),
        needed=frozenset([v.hint for v in fed]),
        states=[*(program.states[v] for v in still), *changed],
        fetched=fetched,
        changed=changes_of({s.name: s.type for s in changed}),
        still=taker([v.hint for v in still]),
        arranged=tuple if order == [*range(len(at))] else taker(order),
    )
