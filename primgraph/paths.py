"""What lies between inputs and outputs, as a graph of its own that derivatives are made from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.types import BOOL
from primgraph.transforms.batch import batch
from primgraph.transforms.bind import bind
from primgraph.transforms.bounds import ranges_near
from primgraph.transforms.clean_up import clean_up
from primgraph.transforms.linearize import depending, linearize
from primgraph.transforms.lower import lower
from primgraph.transforms.ranges import Range
from primgraph.transforms.transpose import transpose


@dataclass(frozen=True, slots=True)
class Path:
    """How outputs depend on inputs, lowered to primitives.

    Whatever else is needed is an input of `graph` too: `free` has the value of the builder that
    each input stands for. `wrt` are the inputs asked for that matter to some output, each once;
    `moved` are their places in `graph`. `reached` tells the outputs that depend on any of them.
    `definition` gives the equation that a value of the builder comes from.
    """

    graph: Graph
    free: list[Value]
    wrt: list[Value]
    moved: list[Value]
    reached: list[bool]
    definition: Callable[[Value], Equation | None]

    @staticmethod
    def between(
        builder: Builder,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        constants: Collection[Value] = (),
    ) -> Path:
        """The path from `inputs` to `outputs`; nothing goes through values in `constants`."""
        needed = builder.slice(outputs, cut=constants)
        return Path.of(needed, inputs, outputs, constants, builder.name)

    @staticmethod
    def of(
        equations: Sequence[Equation],
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        constants: Collection[Value] = (),
        name: str = "f",
        *,
        whole: bool = False,
    ) -> Path:
        """The path through `equations`, of which the independent ones stay too if `whole`."""
        cut, ends, stands_for = _cut(equations, outputs, constants)
        needed = _needed(cut, ends)
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
            {v: e for e in equations for v in e.outputs}.get,
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
    needed, ends, _ = _cut(builder.slice(outputs, cut=cut), outputs, cut)
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


def _needed(equations: Sequence[Equation], outputs: Iterable[Value]) -> list[Equation]:
    """The equations that `outputs` depend on."""
    needed = set(outputs)
    kept = []
    for eqn in reversed(equations):
        if not needed.isdisjoint(eqn.outputs):
            needed.update(eqn.inputs)
            kept.append(eqn)
    kept.reverse()
    return kept


def _kept(equations: Sequence[Equation], inputs: Iterable[Value]) -> list[Equation]:
    """What depends on `inputs` in any way, constants, and all conditions.

    How a condition was moved tells where what it guards matters.
    """
    dependent = set(inputs)
    kept = []
    for eqn in equations:
        depends = not dependent.isdisjoint(eqn.inputs)
        if depends:
            dependent.update(eqn.outputs)
        if depends or not eqn.inputs or eqn.outputs[0].dtype == BOOL:
            kept.append(eqn)
    return kept


def _relevant(equations: Sequence[Equation], outputs: Iterable[Value]) -> set[Value]:
    """The float values that `outputs` depend on in a differentiable way."""
    relevant = set(outputs)
    for eqn in reversed(equations):
        if not relevant.isdisjoint(eqn.outputs) and eqn.op.name != "stop_gradient":
            relevant.update(v for v in eqn.inputs if v.type.is_float)
    return relevant


def record(
    builder: Builder,
    derivative: Graph,
    given: Sequence[Value | None],
    *,
    count: int | None = None,
    batched: Collection[int] = (),
    replaced: Mapping[Value, Value] | None = None,
) -> list[Value]:
    """Clean `derivative` up and record it on `given`, of which None stands for ones.

    With `count`, the inputs at the positions in `batched` have a leading axis of that extent,
    and so have all results. `replaced` maps values in `given` to those to use instead.
    """
    graph = clean_up(bind(derivative, {i: 1.0 for i, v in enumerate(given) if v is None}))
    present = [(i, v) for i, v in enumerate(given) if v is not None]
    if count is not None:
        graph = clean_up(batch(graph, count, [0 if i in batched else None for i, _ in present]))
    values = [v if replaced is None else replaced.get(v, v) for _, v in present]
    return builder.inline(graph, values, shared=True)


def called(role: str, value: Value) -> str:
    """What an error message calls a value: by its name, if it has one."""
    return f"{role} {value.hint!r}" if value.hint else f"an {role}"
