"""Graph between inputs and outputs, from which derivatives are computed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from primgraph.base.locks import cached_property
from primgraph.base.providers import late
from primgraph.base.records import dataclass
from primgraph.ir.builder import Builder
from primgraph.ir.facts.ranges import Range
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import recording
from primgraph.ir.slices import backward_slice, forward_slice
from primgraph.primitives.elementwise import as_another
from primgraph.primitives.shapes import concat, reshape
from primgraph.transforms.dataflow.activity import dependent_values, is_diagonal, relevant_values
from primgraph.transforms.linearize import linearize_with_map
from primgraph.transforms.lower import lower
from primgraph.transforms.pipeline import LEAST_OF_LOOP, may_have_loops
from primgraph.transforms.transpose import transpose

if TYPE_CHECKING:
    from primgraph.transforms import vectorize_stacks as vectorizing
    from primgraph.transforms.dataflow import value_bounds
else:
    vectorizing = late("primgraph.transforms.vectorize_stacks")
    value_bounds = late("primgraph.transforms.dataflow.value_bounds")


@dataclass(frozen=True)
class Path:
    """Dependence of outputs on inputs, lowered to primitives.

    All other values needed are inputs of `graph`, too: `free` has the value for each input, and
    `given` the value of `builder` for it, which differs in the call of a function. The last inputs
    stand for the floats that `graph` computes as `inner`. Derivatives use them instead, so that
    they are functions of the builder's own values. `wrt` are the inputs that some output depends
    on, without duplicates; `moved` are these in `graph`. `reached` says which outputs depend on any
    of them. `ends` are the outputs in the builder. `needs` are the indices in `free` of what they
    depend on differentiably. `definition` maps a free value to its equation.
    """

    builder: Builder
    graph: Graph
    free: list[Value]
    given: list[Value]
    inner: list[Value]
    wrt: list[Value]
    moved: list[Value]
    reached: list[bool]
    ends: list[Value]
    needs: list[int]
    definition: Callable[[Value], Equation | None]

    @staticmethod
    def from_builder(
        builder: Builder,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        constants: Collection[Value] = (),
        *,
        apart: bool = False,
    ) -> Path:
        """Return the path from `inputs` to `outputs` that avoids `constants`; with `apart`, it
        passes no input on the way to another."""
        needed = [
            eqn
            for eqn in builder.between(inputs, outputs, constants, apart=apart)
            if not is_held_constant(builder, eqn)
        ]
        return Path.from_equations(builder, needed, inputs, outputs, constants)

    @staticmethod
    def from_equations(
        builder: Builder,
        equations: Sequence[Equation],
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        constants: Collection[Value] = (),
        *,
        placed: Mapping[Value, Value] | None = None,
    ) -> Path:
        """Return the path through `equations` of `builder`.

        If these are of a call, `placed` maps their values to those of the builder. Independent
        equations are kept then.
        """
        cut, ends, stands_for = _cut_constants(equations, outputs, constants)
        needed = backward_slice(cut, ends)
        distinct = [v for v in dict.fromkeys(inputs) if v not in constants]
        active = dependent_values(Graph((), needed, ()), distinct)
        relevant = relevant_values(needed, ends)
        wrt = [v for v in distinct if v in relevant]
        body = _dependent_equations(needed, distinct) if placed is None else needed
        made = {v for e in body for v in e.outputs}
        used = dict.fromkeys(v for e in body for v in e.inputs)
        entries = [v for v in dict.fromkeys((*used, *wrt, *ends)) if v not in made]
        floats = [v for e in body if e.inputs for v in e.outputs if v.type.is_inexact]
        lowered = lower(Graph(entries, body, (*ends, *wrt, *floats), builder.name))
        first, last = len(ends), len(ends) + len(wrt)
        others = {e.inputs[1]: e.output for e in reversed(body) if e.op is as_another}
        inner = _places(lowered, lowered.outputs[last:], [others.get(v, v) for v in floats])
        moved = list(lowered.outputs[first:last])
        plain, inner = _vectorize_stacks(builder, lowered, first, moved, inner, placed or {})
        inputs = [*plain.inputs, *(Value(v.type) for v in inner)]
        free = [*(stands_for.get(v, v) for v in entries), *inner.values()]
        given, final, definition = free, list(outputs), builder.definition
        if placed is not None:
            given, final = [placed.get(v, v) for v in free], [placed.get(v, v) for v in outputs]
            definition = {v: e for e in equations for v in e.outputs}.get
        return Path(
            builder,
            Graph(inputs, plain.body, plain.outputs, builder.name),
            free,
            given,
            list(inner),
            wrt,
            moved,
            [v in active for v in ends],
            final,
            [i for i, v in enumerate(entries) if v in relevant],
            definition,
        )

    @cached_property
    def is_diagonal(self) -> bool:
        """Whether each output element depends on the element of the only input at its index."""
        return len(self.moved) == 1 and is_diagonal(self.graph, self.moved)

    @property
    def outside(self) -> int:
        """Number of free values from outside the path."""
        return len(self.free) - len(self.inner)

    def jvp(self) -> Graph:
        """Return the graph from free values and tangents of `wrt` to tangents of the outputs."""
        return self._from_known("tangent")

    def vjp(self, *, whole: bool = False) -> Graph:
        """Return the graph from free values and cotangents of the outputs to cotangents of `wrt`.

        With `whole`, it recomputes intermediate values of the path, and takes only the first
        `outside` free values.
        """
        if not whole:
            return transpose(self.jvp_to_transpose(), self.seeds())
        vjp = transpose(self.linear("cotangent")[0], self.seeds())
        inputs = [*vjp.inputs[: self.outside], *vjp.inputs[len(self.free) :]]
        return Graph(inputs, vjp.body, vjp.outputs, vjp.name)

    def jvp_to_transpose(self) -> Graph:
        """Like `jvp`, but ready to be transposed."""
        return self._from_known("cotangent")

    def _from_known(self, role: str) -> Graph:
        """Return a `jvp` that takes the intermediate values of the path as inputs."""
        if any(op.own_slope for op in self.graph.ops):
            # Marks of derivatives are replaced by what computes their operands.
            return self.from_inside(*self.linear(role))
        # The values of the builder itself, so that equations of derivatives can be shared.
        places = self.given if len(set(self.given)) == len(self.given) else self.graph.inputs
        known = dict(zip(self.graph.inputs, places, strict=True))
        known.update(zip(self.inner, places[self.outside :], strict=True))
        jvp, _ = linearize_with_map(
            self.graph, self.moved, role=role, given=self.ranges, known=known
        )
        tangents = jvp.outputs[len(self.graph.outputs) :]
        return Graph(jvp.inputs, backward_slice(jvp.body, tangents), tangents, jvp.name)

    def linear(self, role: str) -> tuple[Graph, list[Value]]:
        """Return a `jvp` that recomputes intermediate values of the path, and these values in
        it."""
        jvp, moved = linearize_with_map(self.graph, self.moved, role=role, given=self.ranges)
        tangents = jvp.outputs[len(self.graph.outputs) :]
        return jvp.with_outputs(tangents), [moved[v] for v in self.inner]

    def from_inside(self, graph: Graph, inner: Sequence[Value]) -> Graph:
        """Return `graph`, which computes `inner`, with the last free inputs in their place."""
        places = self.graph.inputs[self.outside :]
        moved = dict(zip(inner, places, strict=True))
        gone, outputs = moved.keys(), [moved.get(v, v) for v in graph.outputs]
        wanted, kept = set(outputs), []
        for eqn in reversed(graph.body):
            if wanted.isdisjoint(eqn.outputs):
                continue
            if not gone.isdisjoint(eqn.inputs):
                inputs = tuple([moved.get(v, v) for v in eqn.inputs])
                eqn = Equation(eqn.op, inputs, eqn.params, eqn.outputs, eqn.source)
            wanted.update(eqn.inputs)
            kept.append(eqn)
        return Graph(graph.inputs, reversed(kept), outputs, graph.name)

    def ranges(self) -> dict[Value, Range]:
        """Return known value ranges of the inputs of `graph`, from their equations."""
        others = [(v, f) for v, f in zip(self.graph.inputs[: self.outside], self.free, strict=False)
                  if v.type.is_inexact and f not in self.wrt]  # fmt: skip
        known = value_bounds.ranges_near([f for _, f in others], self.definition)
        return {v: known[f] for v, f in others}

    def ranges_inside(self) -> dict[int, Range]:
        """Return value ranges of the free values computed inside `graph`, by index."""
        found = value_bounds.ranges_of(self.graph, self.ranges())
        return {self.outside + i: found[v] for i, v in enumerate(self.inner)}

    def seeds(self) -> range:
        """Positions of the tangents among the inputs of `jvp`."""
        return range(len(self.free), len(self.free) + len(self.wrt))


def is_held_constant(builder: Builder, eqn: Equation) -> bool:
    """Return whether `eqn` is a constant that the user holds as a variable to differentiate by."""
    if eqn.inputs or not eqn.outputs[0].type.is_inexact:
        return False
    return any(map(builder.is_held, eqn.outputs))


def reached_by(
    builder: Builder,
    inputs: Iterable[Value],
    outputs: Sequence[Value],
    constants: Collection[Value] = (),
) -> list[bool]:
    """Return which `outputs` depend on `inputs` other than through `constants`."""
    sources = set(inputs)
    cut = set(constants) - sources
    needed, ends, _ = _cut_constants(builder.between(list(sources), outputs, cut), outputs, cut)
    active = dependent_values(Graph((), needed, ()), list(sources))
    return [v in active for v in ends]


def _cut_constants(
    equations: Sequence[Equation], outputs: Sequence[Value], constants: Collection[Value]
) -> tuple[list[Equation], list[Value], dict[Value, Value]]:
    """Replace `constants` by new values wherever they are used.

    The third result maps the new values to the constants.
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


def _dependent_equations(equations: Sequence[Equation], inputs: Iterable[Value]) -> list[Equation]:
    """Return the equations that depend on `inputs`, constants, and all conditions and indices.

    Views of a condition decide where the guarded value matters, and index arithmetic decides which
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


def _vectorize_stacks(
    builder: Builder,
    graph: Graph,
    count: int,
    moved: Sequence[Value],
    inner: dict[Value, Value],
    placed: Mapping[Value, Value],
) -> tuple[Graph, dict[Value, Value]]:
    """Return the graph of the first outputs, with vectors in place of numbers that are computed
    alike, and the values of `inner` that it still computes.

    Vectors that derivatives by `moved` use are recorded as stacks of the numbers in the builder, so
    that derivatives are functions of these.
    """
    graph = Graph(graph.inputs, graph.body, graph.outputs[:count], graph.name)
    if len(graph.body) < LEAST_OF_LOOP or not may_have_loops(graph):
        return graph, inner
    plain, columns = vectorizing.vectors_of_stacks(graph, moved, in_order=False)
    if not columns:
        return graph, inner
    made = {v for eqn in plain.body for v in eqn.outputs}
    left = {v: w for v, w in inner.items() if v in made}
    used = _values_in_derivatives(plain, columns, moved)
    with recording(builder):
        for vector, numbers in columns.items():
            if vector in used and all(v in inner for v in numbers):
                found = [placed.get(w, w) for w in (inner[v] for v in numbers)]
                left[vector] = concat(*[reshape(v, shape=(1,)) for v in found], axis=0)
    return plain, left


def _values_in_derivatives(
    graph: Graph, values: Collection[Value], moved: Sequence[Value]
) -> set[Value]:
    """Return those of `values` that occur in derivatives of the equations that compute them."""
    body = [eqn for eqn in graph.body if eqn.outputs[0] in values]
    made = [eqn.output for eqn in body]
    inputs = dict.fromkeys(v for eqn in body for v in eqn.inputs if v not in values)
    dependent = forward_slice(graph.body, moved)
    active = [v for v in inputs if v in dependent and v.type.is_inexact]
    used = set[Value]()
    for role in ("tangent", "cotangent"):
        jvp, places = linearize_with_map(Graph(list(inputs), body, made), active, role=role)
        needed = backward_slice(jvp.body, jvp.outputs[len(made) :])
        reads = {v for eqn in needed for v in eqn.inputs}
        used |= {v for v in made if places[v] in reads}
    return used


def _places(graph: Graph, places: Sequence[Value], values: Sequence[Value]) -> dict[Value, Value]:
    """Map each of `places`, computed by `graph`, to the first of `values` that it computes."""
    found: dict[Value, Value] = {}
    inputs = set(graph.inputs)
    for place, value in zip(places, values, strict=True):
        if place not in inputs:
            found.setdefault(place, value)
    return found
