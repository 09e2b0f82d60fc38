"""What lies between inputs and outputs, as a graph of its own that derivatives are made from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.slices import backward_slice, forward_slice
from primgraph.primitives.elementwise import as_another
from primgraph.transforms.dataflow.activity import depending
from primgraph.transforms.dataflow.ranges import Range
from primgraph.transforms.dataflow.value_bounds import ranges_near, ranges_of
from primgraph.transforms.linearize import linearized
from primgraph.transforms.lower import lower
from primgraph.transforms.transpose import transpose


@dataclass(frozen=True, slots=True)
class Path:
    """How outputs depend on inputs, lowered to primitives.

    Whatever else is needed is an input of `graph` too: `free` has the value of the builder that
    each input stands for. The last inputs stand for the floats that `graph` computes as `inner`,
    for derivatives to use instead: so these are functions of the builder's own values, however
    else a number could be computed. `wrt` are the inputs asked for that matter to some output,
    each once; `moved` are their places in `graph`. `reached` tells the outputs that depend on any
    of them. `ends` are the outputs as they were given, and `needs` the places in `free` of what
    they depend on in a differentiable way. `definition` gives the equation that a value of the
    builder comes from.
    """

    graph: Graph
    free: list[Value]
    inner: list[Value]
    wrt: list[Value]
    moved: list[Value]
    reached: list[bool]
    ends: list[Value]
    needs: list[int]
    definition: Callable[[Value], Equation | None]

    @staticmethod
    def between(
        builder: Builder,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        constants: Collection[Value] = (),
        *,
        apart: bool = False,
    ) -> Path:
        """The path from `inputs` to `outputs`; nothing goes through values in `constants`, nor,
        with `apart`, through one of `inputs` to another."""
        needed = [
            eqn
            for eqn in builder.between(inputs, outputs, constants, apart=apart)
            if not is_held_constant(builder, eqn)
        ]
        name, definition = builder.name, builder.definition
        return Path.of(needed, inputs, outputs, constants, name, definition=definition)

    @staticmethod
    def of(
        equations: Sequence[Equation],
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        constants: Collection[Value] = (),
        name: str = "f",
        *,
        whole: bool = False,
        definition: Callable[[Value], Equation | None] | None = None,
    ) -> Path:
        """The path through `equations`, of which the independent ones stay too if `whole`."""
        cut, ends, stands_for = _cut(equations, outputs, constants)
        needed = backward_slice(cut, ends)
        distinct = [v for v in dict.fromkeys(inputs) if v not in constants]
        active = depending(Graph((), needed, ()), distinct)
        relevant = _relevant(needed, ends)
        wrt = [v for v in distinct if v in relevant]
        body = needed if whole else _kept(needed, distinct)
        made = {v for e in body for v in e.outputs}
        used = dict.fromkeys(v for e in body for v in e.inputs)
        entries = [v for v in dict.fromkeys((*used, *wrt, *ends)) if v not in made]
        floats = [v for e in body if e.inputs for v in e.outputs if v.type.is_inexact]
        lowered = lower(Graph(entries, body, (*ends, *wrt, *floats), name))
        first, last = len(ends), len(ends) + len(wrt)
        others = {e.inputs[1]: e.output for e in reversed(body) if e.op is as_another}
        inner = _places(lowered, lowered.outputs[last:], [others.get(v, v) for v in floats])
        inputs = [*lowered.inputs, *(Value(v.type) for v in inner)]
        return Path(
            Graph(inputs, lowered.body, lowered.outputs[:first], name),
            [*(stands_for.get(v, v) for v in entries), *inner.values()],
            list(inner),
            wrt,
            list(lowered.outputs[first:last]),
            [v in active for v in ends],
            list(outputs),
            [i for i, v in enumerate(entries) if v in relevant],
            definition or {v: e for e in equations for v in e.outputs}.get,
        )

    @property
    def outside(self) -> int:
        """How many of the free values come from outside the path."""
        return len(self.free) - len(self.inner)

    def jvp(self) -> Graph:
        """From free values and tangents of `wrt` to tangents of the outputs."""
        return self.from_inside(*self.linear("tangent"))

    def vjp(self, *, whole: bool = False) -> Graph:
        """From free values and cotangents of the outputs to cotangents of `wrt`.

        If `whole`, it computes for itself what it needs from inside the path, and takes only the
        first of the free values, those `outside`.
        """
        if not whole:
            return transpose(self.to_be_turned(), self.seeds())
        vjp = transpose(self.linear("cotangent")[0], self.seeds())
        inputs = [*vjp.inputs[: self.outside], *vjp.inputs[len(self.free) :]]
        return Graph(inputs, vjp.body, vjp.outputs, vjp.name)

    def to_be_turned(self) -> Graph:
        """As `jvp`, for what is made of it to be transposed."""
        return self.from_inside(*self.linear("cotangent"))

    def linear(self, role: str) -> tuple[Graph, list[Value]]:
        """`jvp` that computes for itself what it needs from inside the path, and as what."""
        jvp, moved = linearized(self.graph, self.moved, role=role, given=self.ranges)
        tangents = jvp.outputs[len(self.graph.outputs) :]
        return jvp.with_outputs(tangents), [moved[v] for v in self.inner]

    def from_inside(self, graph: Graph, inner: Sequence[Value]) -> Graph:
        """`graph`, which computes `inner`, with the last free values in the place of these."""
        places = self.graph.inputs[self.outside :]
        moved = dict(zip(inner, places, strict=True))
        body = []
        for eqn in graph.body:
            inputs = tuple([moved.get(v, v) for v in eqn.inputs])
            body.append(Equation(eqn.op, inputs, eqn.params, eqn.outputs, eqn.source))
        outputs = [moved.get(v, v) for v in graph.outputs]
        return Graph(graph.inputs, backward_slice(body, outputs), outputs, graph.name)

    def ranges(self) -> dict[Value, Range]:
        """What is known of the inputs of `graph` from the equations that they come from."""
        others = [(v, f) for v, f in zip(self.graph.inputs[: self.outside], self.free, strict=False)
                  if v.type.is_inexact and f not in self.wrt]  # fmt: skip
        known = ranges_near([f for _, f in others], self.definition)
        return {v: known[f] for v, f in others}

    def ranges_inside(self) -> dict[int, Range]:
        """The ranges of the free values that are computed inside `graph`, by their places."""
        found = ranges_of(self.graph, self.ranges())
        return {self.outside + i: found[v] for i, v in enumerate(self.inner)}

    def seeds(self) -> range:
        """The positions, among the inputs of `jvp`, of the tangents."""
        return range(len(self.free), len(self.free) + len(self.wrt))


def is_held_constant(builder: Builder, eqn: Equation) -> bool:
    """Whether `eqn` gives a constant that is a variable of the user's, to differentiate by."""
    if eqn.inputs or not eqn.outputs[0].type.is_inexact:
        return False
    return any(map(builder.is_held, eqn.outputs))


def reached_by(
    builder: Builder,
    inputs: Iterable[Value],
    outputs: Sequence[Value],
    constants: Collection[Value] = (),
) -> list[bool]:
    """Which of `outputs` depend on `inputs` other than through `constants`."""
    sources = set(inputs)
    cut = set(constants) - sources
    needed, ends, _ = _cut(builder.between(list(sources), outputs, cut), outputs, cut)
    active = depending(Graph((), needed, ()), list(sources))
    return [v in active for v in ends]


def _cut(
    equations: Sequence[Equation], outputs: Sequence[Value], constants: Collection[Value]
) -> tuple[list[Equation], list[Value], dict[Value, Value]]:
    """The same computation with other values in the place of `constants` wherever they are used.

    The third result maps these to what they stand for.
    """
    if not constants:
        return list(equations), list(outputs), {}
    used = {v for e in equations for v in e.inputs}.union(outputs)
    placed = {v: Value(v.type) for v in used if v in constants}
    ends = [placed.get(v, v) for v in outputs]
    cut: list[Equation] = []
    for eqn in equations:
        if not placed.keys().isdisjoint(eqn.inputs):
            operands = tuple(placed.get(v, v) for v in eqn.inputs)
            eqn = Equation(eqn.op, operands, eqn.params, eqn.outputs, eqn.source)
        cut.append(eqn)
    return cut, ends, {p: v for v, p in placed.items()}


def _kept(equations: Sequence[Equation], inputs: Iterable[Value]) -> list[Equation]:
    """What depends on `inputs` in any way, constants, and all conditions and indices.

    How a condition was moved tells where what it guards matters, and what an index counts which
    element is read.
    """
    dependent = forward_slice(equations, inputs)
    return [
        eqn
        for eqn in equations
        if not eqn.inputs
        or not eqn.outputs[0].type.is_inexact
        or not dependent.isdisjoint(eqn.inputs)
    ]


def _places(graph: Graph, places: Sequence[Value], values: Sequence[Value]) -> dict[Value, Value]:
    """Which of `values`, the first one of several, is what `graph` computes in each of `places`."""
    found: dict[Value, Value] = {}
    inputs = set(graph.inputs)
    for place, value in zip(places, values, strict=True):
        if place not in inputs:
            found.setdefault(place, value)
    return found


def _relevant(equations: Sequence[Equation], outputs: Iterable[Value]) -> set[Value]:
    """The float values that `outputs` depend on in a differentiable way."""
    relevant = set(outputs)
    for eqn in reversed(equations):
        if not relevant.isdisjoint(eqn.outputs) and not eqn.op.stops:
            relevant.update(v for v in eqn.inputs if v.type.is_inexact)
    return relevant
