"""What lies between inputs and outputs, as a graph of its own that derivatives are made from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.slices import backward_slice, forward_slice
from primgraph.transforms.analysis.bounds import ranges_near
from primgraph.transforms.analysis.ranges import Range
from primgraph.transforms.linearize import depending, linearize
from primgraph.transforms.lower import lower
from primgraph.transforms.transpose import transpose


@dataclass(frozen=True, slots=True)
class Path:
    """How outputs depend on inputs, lowered to primitives.

    Whatever else is needed is an input of `graph` too: `free` has the value of the builder that
    each input stands for. `wrt` are the inputs asked for that matter to some output, each once;
    `moved` are their places in `graph`. `reached` tells the outputs that depend on any of them.
    `ends` are the outputs as they were given, and `needs` the places in `free` of what they
    depend on in a differentiable way. `definition` gives the equation that a value of the builder
    comes from.
    """

    graph: Graph
    free: list[Value]
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
    ) -> Path:
        """The path from `inputs` to `outputs`; nothing goes through values in `constants`."""
        needed = builder.between(inputs, outputs, constants)
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
        lowered = lower(Graph(entries, body, (*ends, *wrt), name))
        return Path(
            lowered.with_outputs(lowered.outputs[: len(ends)]),
            [stands_for.get(v, v) for v in entries],
            wrt,
            list(lowered.outputs[len(ends) :]),
            [v in active for v in ends],
            list(outputs),
            [i for i, v in enumerate(entries) if v in relevant],
            definition or {v: e for e in equations for v in e.outputs}.get,
        )

    def jvp(self) -> Graph:
        """From free values and tangents of `wrt` to tangents of the outputs."""
        return self._linear("tangent")

    def vjp(self) -> Graph:
        """From free values and cotangents of the outputs to cotangents of `wrt`."""
        return transpose(self._linear("cotangent"), self.seeds())

    def _linear(self, role: str) -> Graph:
        jvp = linearize(self.graph, self.moved, role=role, given=self.ranges)
        return jvp.with_outputs(jvp.outputs[len(self.graph.outputs) :])

    def ranges(self) -> dict[Value, Range]:
        """What is known of the inputs of `graph` from the equations that they come from."""
        others = [(v, f) for v, f in zip(self.graph.inputs, self.free, strict=True)
                  if v.type.is_float and f not in self.wrt]  # fmt: skip
        known = ranges_near([f for _, f in others], self.definition)
        return {v: known[f] for v, f in others}

    def seeds(self) -> range:
        """The positions, among the inputs of `jvp`, of the tangents."""
        return range(len(self.free), len(self.free) + len(self.wrt))


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
        or not eqn.outputs[0].type.is_float
        or not dependent.isdisjoint(eqn.inputs)
    ]


def _relevant(equations: Sequence[Equation], outputs: Iterable[Value]) -> set[Value]:
    """The float values that `outputs` depend on in a differentiable way."""
    relevant = set(outputs)
    for eqn in reversed(equations):
        if not relevant.isdisjoint(eqn.outputs) and not eqn.op.stops:
            relevant.update(v for v in eqn.inputs if v.type.is_float)
    return relevant
