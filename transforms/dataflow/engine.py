"""Engine of dataflow analyses: lattices and transfer functions, with fixed points of loops.

An analysis says how an equation transfers facts, and how facts from several paths are joined. The
engine visits each equation of a graph once, enters the bodies of branches, loops and checkpoints,
and repeats the body of a loop until the facts on its carries no longer change. (G. A. Kildall, A
unified approach to global program optimization, POPL 1973.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar, final

from primgraph.ir.graph import Equation, Graph, Value
from primgraph.primitives.control import REGIONS, Regions

T = TypeVar("T")
# The fact about each value; None, the bottom of the lattice, if there is none.
Facts: TypeAlias = "list[T | None]"


class Fault(Exception):
    """Failure of an analysis at `equation`, which may be in a body; `cause` is the reason."""

    def __init__(self, cause: str, equation: Equation | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.equation = equation


@final
class Flow(Generic[T]):
    """Facts about the values of a graph; `scope` is what the analysis keeps for this graph."""

    __slots__ = ("_made", "facts", "graph", "scope")

    def __init__(self, graph: Graph, facts: dict[Value, T]) -> None:
        self.graph = graph
        self.facts = facts
        self.scope: Any = None
        self._made: dict[Value, Equation] | None = None

    def definition(self, value: Value) -> Equation | None:
        """Return the equation that computes `value`; None for an input."""
        if self._made is None:
            self._made = {v: eqn for eqn in self.graph.body for v in eqn.outputs}
        return self._made.get(value)


class Analysis(ABC, Generic[T]):
    """Dataflow analysis with facts of type T.

    It goes forward, from operands to results, or `backward`. A sparse analysis visits the equations
    that a fact reaches, a `dense` one all of them. It `enters` the bodies of branches, loops and
    checkpoints, or transfers facts through the whole equation.
    """

    __slots__ = ()

    backward = False
    dense = False
    enters = True
    # The cause of the fault where paths disagree.
    differs = "differs between paths"

    @abstractmethod
    def transfer(self, eqn: Equation, given: Facts[T], flow: Flow[T]) -> Sequence[T | None]:
        """Return the facts about results by those about operands; backward, the other way round."""

    def join(self, value: Value, facts: Sequence[T | None]) -> T | None:
        """Return the fact that holds on all paths: by default that on which all agree."""
        known = [x for x in facts if x is not None]
        if any(x != known[0] for x in known):
            raise Fault(self.differs)
        return known[0] if known else None

    def update(self, value: Value, old: T, new: T) -> T | None:
        """Return the fact about a value that has one when its equation is visited."""
        return self.join(value, [old, new])

    def row(self, fact: T, stack: Value, row: Value) -> T | None:
        """Return the fact about each row of a stack."""
        return fact

    def stack(self, fact: T, row: Value, stack: Value) -> T | None:
        """Return the fact about a stack of rows."""
        return fact

    def count(self) -> T | None:
        """Return the fact about the number of steps of a loop."""
        return None

    def same(self, one: T | None, other: T | None) -> bool:
        """Return whether two facts are equal."""
        return one == other

    def widen(self, values: Sequence[Value], state: Facts[T], step: int) -> Facts[T]:
        """Return weaker facts on carries, so that few steps reach the fixed point.

        `step` counts the visits of the body so far.
        """
        return state

    def advance(
        self, values: Sequence[Value], state: Facts[T], found: Facts[T]
    ) -> Sequence[T | None]:
        """Return the facts on carries, of the body, at the beginning of the next step.

        `state` has those at the beginning of this step, and `found` those behind it.
        """
        return [self.join(v, [x, y]) for v, x, y in zip(values, state, found, strict=True)]

    def key(self) -> str | None:
        """Return the name under which results are noted on bodies, if they are.

        Facts are hashable then, and nothing but the facts that enter a body matters in it.
        """
        return None

    def scope(self, flow: Flow[T], eqn: Equation | None, outer: Flow[T] | None) -> Any:
        """Return what the analysis keeps for a graph, a body of `eqn` if that is given."""
        return None

    def regions(self, eqn: Equation, flow: Flow[T] | None) -> Regions:
        """Return the layout of an equation with bodies, and the bodies that may run."""
        return Regions.from_equation(eqn)

    def visit(self, eqn: Equation, given: Facts[T], flow: Flow[T]) -> Sequence[T | None]:
        """Transfer the facts through an equation, or through its bodies; called if it `enters`."""
        if eqn.op.has_bodies and eqn.op.fact(REGIONS) is not None:
            return self.analyze_bodies(eqn, given, flow)
        return self.transfer(eqn, given, flow)

    # The engine.

    def run(
        self,
        graph: Graph,
        starts: Mapping[Value, T],
        eqn: Equation | None = None,
        outer: Flow[T] | None = None,
    ) -> Flow[T]:
        """Return the facts about all values of `graph`, given those about inputs or outputs."""
        facts = dict(starts)
        flow = Flow(graph, facts)
        flow.scope = self.scope(flow, eqn, outer)
        backward, dense, get = self.backward, self.dense, facts.get
        visit = self.visit if self.enters else self.transfer
        apart = facts.keys().isdisjoint
        for eqn in reversed(graph.body) if backward else graph.body:
            near, far = (eqn.outputs, eqn.inputs) if backward else (eqn.inputs, eqn.outputs)
            if not dense and apart(near):
                continue
            try:
                found = visit(eqn, [*map(get, near)], flow)
            except Fault as fault:
                fault.equation = fault.equation or eqn
                raise
            for value, fact in zip(far, found, strict=True):
                if fact is None:
                    continue
                if value in facts:
                    joined = self.update(value, facts[value], fact)
                    if joined is not None:
                        facts[value] = joined
                else:
                    facts[value] = fact
        return flow

    def follow(
        self,
        body: Graph,
        given: Facts[T],
        eqn: Equation | None = None,
        outer: Flow[T] | None = None,
    ) -> Facts[T]:
        """Return the facts on outputs of a body by those on its inputs, or the other way round."""
        name = self.key()
        key = name and (name, *given)
        results: Facts[T] | None = body.noted(key) if key else None
        if results is None:
            near, far = self._ends(body)
            starts = {v: x for v, x in zip(near, given, strict=True) if x is not None}
            facts = self.run(body, starts, eqn, outer).facts
            results = [facts.get(v) for v in far]
            if key:
                body.note(key, results)
        return list(results)

    def analyze_bodies(self, eqn: Equation, given: Facts[T], flow: Flow[T] | None) -> Facts[T]:
        """Return the facts behind an equation with bodies."""
        regions = self.regions(eqn, flow)
        found = self.settle(regions, self.entry_facts(eqn, regions, given), eqn, flow)[1]
        inputs, outputs = self._interface_values(eqn, regions)
        outer, first = (inputs, regions.consts) if self.backward else (outputs, 0)
        first += regions.carries
        if regions.is_loop:
            far = self._ends(regions.bodies[0])[1]
            for i in range(first, len(found)):
                fact = found[i]
                found[i] = None if fact is None else self.stack(fact, far[i], outer[i])
        if self.backward:
            return [*[None] * regions.lead, *found]
        return [*found[:first], *[self.count()] * regions.counts, *found[first:]]

    def entry_facts(self, eqn: Equation, regions: Regions, given: Facts[T]) -> Facts[T]:
        """Return the facts on body inputs before the first step; backward, on body outputs."""
        inputs, outputs = self._interface_values(eqn, regions)
        if self.backward:
            outer, first = outputs, regions.carries
            facts = [x for k, x in enumerate(given) if regions.body_result(k) is not None]
        else:
            outer, first = inputs, regions.consts + regions.carries
            facts = given[regions.lead :]
        if regions.is_loop:
            near = self._ends(regions.bodies[0])[0]
            for i in range(first, len(facts)):
                fact = facts[i]
                facts[i] = None if fact is None else self.row(fact, outer[i], near[i])
        return facts

    def settle(
        self,
        regions: Regions,
        state: Facts[T],
        eqn: Equation | None = None,
        flow: Flow[T] | None = None,
    ) -> tuple[Facts[T], Facts[T]]:
        """Return the facts on inputs of the bodies in each step, and on their outputs.

        `state` has those before the first step. Backward it is the other way round. Facts on
        carries are those of the fixed point.
        """
        bodies = regions.bodies
        near, far = self._ends(bodies[0])
        if not regions.is_loop:
            paths = [self.follow(body, state, eqn, flow) for body in bodies]
            joined = zip(far, zip(*paths, strict=True), strict=True)
            return state, [self.join(v, facts) for v, facts in joined]
        begin, end = (0, regions.consts) if self.backward else (regions.consts, 0)
        inner, outer = (slice(i, i + regions.carries) for i in (begin, end))
        carried, step = near[inner], 0
        state[inner] = self.widen(carried, state[inner], step)
        while True:
            found = self.follow(bodies[0], state, eqn, flow)
            after = [*self.advance(carried, state[inner], found[outer])]
            if all(map(self.same, after, state[inner])):
                found[outer] = state[inner]
                return state, found
            step += 1
            state[inner] = self.widen(carried, after, step)

    @staticmethod
    def _interface_values(
        eqn: Equation, regions: Regions
    ) -> tuple[Sequence[Value], Sequence[Value]]:
        """Return the operands and results that belong to inputs and outputs of the bodies."""
        outputs = [v for k, v in enumerate(eqn.outputs) if regions.body_result(k) is not None]
        return eqn.inputs[regions.lead :], outputs

    def _ends(self, body: Graph) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
        """Return the values of a body where facts enter, and where they leave."""
        return (body.outputs, body.inputs) if self.backward else (body.inputs, body.outputs)
