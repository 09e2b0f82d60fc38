"""Forward mode: transform a graph into its values and directional derivatives (JVP)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias, final

from primgraph.base.providers import late
from primgraph.base.user_lines import Source
from primgraph.errors import BuildError, MissingRuleError, NotDifferentiable
from primgraph.ir.builder import Builder
from primgraph.ir.facts.passes import PUSHFORWARD_AROUND
from primgraph.ir.facts.ranges import Range
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Primitive, recording
from primgraph.ir.rebuild import (
    NOWHERE,
    RuleCache,
    derived_source,
    input_positions,
    keep,
    origin_lines,
    require_primitive,
)
from primgraph.primitives.constants import zeros_like
from primgraph.primitives.elementwise import add
from primgraph.transforms.dataflow.contract import primitives_only, transform
from primgraph.transforms.dataflow.masks.masks import Masking, masks_of

if TYPE_CHECKING:
    from primgraph.primitives.linear_algebra import ties
    from primgraph.transforms.dataflow import region_interface
    from primgraph.transforms.jacobians import spectral_probes
else:
    ties = late("primgraph.primitives.linear_algebra.ties")
    region_interface = late("primgraph.transforms.dataflow.region_interface")
    spectral_probes = late("primgraph.transforms.jacobians.spectral_probes")


# One tangent per value; None for zero everywhere.
Tangents: TypeAlias = Sequence[Value | None]


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def linearize(
    graph: Graph,
    wrt: Sequence[int | Value] | None = None,
    *,
    role: str = "tangent",
    given: Callable[[], Mapping[Value, Range]] = dict,
    closed: bool = True,
) -> Graph:
    """Turn `f(x) -> y` into `f_jvp(x, dx) -> (y, dy)`, linear in `dx`.

    `wrt` lists the values whose tangents are `dx`: positions of inputs, or values of the graph; by
    default all float inputs. The tangent of a value inside the graph is added to the tangent that
    it gets from its operands. `dy` has one tangent for each float output, zeros where no tangent
    reaches it. An equation whose operands carry no tangent is copied.

    Raises `NotDifferentiable` for an integer in `wrt`, `MissingRuleError` where a primitive has
    no jvp rule.

    >>> print(pg.transforms.linearize(pg.trace(pg.sin, pg.spec(3))))
    graph sin_jvp(%x: f64[3], %0: f64[3]) {
      %1: f64[3] = sin(%x)
      %2: f64[3] = cos(%x)
      %3: f64[3] = mul(%0, %2)
      return %1, %3
    }
    """
    return linearize_with_map(graph, wrt, role=role, given=given, closed=closed)[0]


def linearize_with_map(
    graph: Graph,
    wrt: Sequence[int | Value] | None = None,
    *,
    role: str = "tangent",
    given: Callable[[], Mapping[Value, Range]] = dict,
    closed: bool = True,
    known: Mapping[Value, Value] | None = None,
) -> tuple[Graph, dict[Value, Value]]:
    """Return the graph of `linearize`, and the map from values of `graph` to its values.

    `known` maps inputs, and values that need no equations, to the inputs of the result.
    """
    seeds = differentiable_values(graph, wrt)
    moved = dict(known or {v: v for v in graph.inputs})
    builder = Builder(graph.name, source=NOWHERE)
    for value in graph.inputs:
        builder.share_input(moved[value])
    tangents = {v: builder.input(v.type) for v in seeds}
    with recording(builder):
        push_forward(builder, graph, moved, tangents, role, given, closed=closed)
        floats = [v for v in graph.outputs if v.type.is_inexact]
        found = [tangents[v] if v in tangents else zeros_like(v) for v in floats]
    outputs = [*(moved[v] for v in graph.outputs), *found]
    return builder.graph(outputs, f"{graph.name}_jvp"), moved


def differentiable_values(graph: Graph, wrt: Sequence[int | Value] | None) -> list[Value]:
    """Return the values that `wrt` names; raise unless all have an inexact dtype."""
    if wrt is None:
        return [v for v in graph.inputs if v.type.is_inexact]
    input_positions(graph, [v for v in wrt if not isinstance(v, Value)])
    values = [graph.inputs[v] if isinstance(v, int) else v for v in wrt]
    for value in values:
        if not value.type.is_inexact:
            raise NotDifferentiable(f"{value.type} has no derivatives: only floats have")
    if len(set(values)) != len(values):
        raise BuildError("a value is listed twice among those to differentiate by")
    return values


def push_forward(
    builder: Builder,
    graph: Graph,
    moved: dict[Value, Value],
    tangents: dict[Value, Value],
    role: str = "tangent",
    given: Callable[[], Mapping[Value, Range]] = dict,
    probes: spectral_probes.Probes | None = None,
    *,
    closed: bool = False,
) -> None:
    """Record values and tangents of all equations of `graph`.

    `moved` maps inputs to values of `builder`, and `tangents` maps the differentiated values to
    tangents; both are extended. A value without an entry in `tangents` has a zero tangent. `closed`
    is as in `linearize`; `probes` are those of the enclosing graph.
    """
    seeds = dict(tangents)
    sources = list(seeds)
    masks = Masking(masks_of(graph, sources, given), graph, moved)
    line: Source | None = None
    cache = RuleCache(builder)
    for eqn in _iter_active(builder, graph, moved, tangents, masks):
        if line is None or eqn.source is not line:
            line, builder.source = eqn.source, derived_source(eqn, role)
        dx = {i: tangents[v] for i, v in enumerate(eqn.inputs) if v in tangents}
        rule = eqn.op.fact(PUSHFORWARD_AROUND)
        if rule is not None:
            probes = probes or spectral_probes.Probes(graph, closed=closed)
            x, around = [moved[v] for v in eqn.inputs], _Around(builder, moved, probes)
            found: Tangents = rule(eqn, x, masks.tangents(eqn, dx), around)
        else:
            found = _tangents(cache, eqn, moved, dx, masks, turned=role == "cotangent")
        for value, dz in zip(eqn.outputs, found, strict=True):
            if dz is not None:
                tangents[value] = add(seeds[value], dz) if value in seeds else dz


@final
class _Around:
    """Questions about the graph around an equation, for rules that depend on it."""

    def __init__(
        self, builder: Builder, moved: Mapping[Value, Value], probes: spectral_probes.Probes
    ) -> None:
        self.builder = builder
        self.moved = moved
        self.probes = probes
        self.is_summed = probes.is_summed
        self.is_even = probes.is_even

    def probe(self, values: Value, gradient: Value) -> ties.Probe | None:
        """Return a function that pushes another tangent from `values` to their gradient."""
        probes, sources = self.probes, self.probes.sources(values)

        def probe(direction: Value, at_zero: bool) -> Value:
            key = (values, gradient, at_zero)
            if key not in probes.found:
                tangents = dict.fromkeys(sources, direction)
                part = probes.cut_subgraph(sources, gradient)
                push_forward(self.builder, part, dict(self.moved), tangents, probes=probes)
                zeros = zeros_like(self.moved[gradient])
                probes.found[key] = tangents.get(gradient, zeros)
            return probes.found[key]

        return probe if sources else None


def _iter_active(
    builder: Builder,
    graph: Graph,
    moved: dict[Value, Value],
    tangents: Mapping[Value, Value],
    masks: Masking,
) -> Iterator[Equation]:
    """Record the values of `graph` in order, and yield the equations that `tangents` reach.

    Before an equation is yielded, the conditions of its masks are recorded, also those that the
    graph computes later.
    """
    reached = tangents.keys()
    for eqn in graph.body:
        if eqn.outputs[0] not in moved or len(eqn.outputs) > 1:
            keep(builder, eqn, moved)
        if not reached.isdisjoint(eqn.inputs):
            if masks.definitions:
                for condition in masks.conditions(eqn):
                    keep(builder, condition, moved)
            yield eqn
        if eqn.op.own_slope and region_interface.is_mark(eqn):
            # A mark changes the tangent only; the value is that of its operand.
            held = builder.definition(moved[eqn.inputs[0]])
            assert held is not None
            moved[eqn.output] = held.inputs[0]


def _tangents(
    cache: RuleCache,
    eqn: Equation,
    moved: Mapping[Value, Value],
    dx: Mapping[int, Value],
    masks: Masking,
    *,
    turned: bool,
) -> Tangents:
    """Return the tangents of the results of `eqn`, from the operand tangents by position."""
    op = require_primitive(eqn)
    if op.constant or True not in [v.type.is_inexact for v in eqn.outputs]:
        return [None] * len(eqn.outputs)
    x = [moved[v] for v in eqn.inputs]
    dx = masks.tangents(eqn, dx)
    if op.pushforward_rule is not None:
        eqn, places = masks.open_bodies(eqn)
        x, dx = [moved[v] for v in eqn.inputs], {places[i]: d for i, d in dx.items()}
        found: Tangents = op.pushforward_rule(x, dx, turned, **eqn.kwargs)
        return found
    results = [moved[v] for v in eqn.outputs]

    def contribute(builder: Builder) -> Tangents:
        return _contributions(builder, eqn, op, x, results, dx, masks)

    key = None
    if not masks.definitions:
        key = (op.name, id(eqn.params), *dx, *[v.type for v in eqn.inputs])
    return cache.apply(key, [*x, *results, *dx.values()], contribute)


def _contributions(
    builder: Builder,
    eqn: Equation,
    op: Primitive[Any],
    x: Sequence[Value],
    results: Sequence[Value],
    dx: Mapping[int, Value],
    masks: Masking,
) -> Tangents:
    """Return the sums of the contributions of operand tangents to the tangents of `results`.

    Along linear operands a primitive is its own tangent; each other operand has a JVP rule.
    """
    terms: dict[tuple[int, ...], Tangents] = {}
    linear = _linear(eqn, op, x, dx)
    for group, along in linear.items():
        terms[group] = _apply_op(builder, eqn, x, along, masks)
    if len(linear) < len(dx):
        taken = set(chain.from_iterable(linear))
        for i in dx:
            if i not in taken:
                operands: Sequence[Any] = results if op.multiple else results[0], *x, dx[i]
                terms[i,] = _apply_rule(eqn, op, i, operands)
    return _sum_terms([*masks.terms(eqn, terms)] if masks.definitions else [*terms.values()])


def _sum_terms(terms: Sequence[Tangents]) -> Tangents:
    """Return the sum of the contributions to each result."""
    if len(terms) == 1:
        return terms[0]
    return [_sum(contributions) for contributions in zip(*terms, strict=True)]


def _sum(contributions: Iterable[Value | None]) -> Value | None:
    present = [c for c in contributions if c is not None]
    return reduce(add, present) if present else None


def _linear(
    eqn: Equation, op: Primitive[Any], x: Sequence[Value], dx: Mapping[int, Value]
) -> dict[tuple[int, ...], dict[int, Value]]:
    """Group the linear operands to which `op` is applied at once; return tangents per group.

    Operands of a product form one group each, other linear operands a single group. If only some of
    the latter have tangents, and these have rules, the rules are cheaper than zeros for the rest.
    """
    if op.linear is None:
        return {}
    places = [i for i in op.linear_operands(len(x)) if eqn.inputs[i].type.is_inexact]
    present = [i for i in places if i in dx]
    if op.linear == "each":
        return {(i,): {i: dx[i]} for i in present}
    if not present or (len(present) < len(places) and all(map(op.jvp_rule, present))):
        return {}
    return {tuple(present): {i: dx[i] if i in dx else zeros_like(x[i]) for i in places}}


def _apply_op(
    builder: Builder,
    eqn: Equation,
    x: Sequence[Value],
    dx: Mapping[int, Value],
    masks: Masking,
) -> Tangents:
    """Apply the op itself, with `dx` in place of some operands."""
    operands = [dx.get(i, v) for i, v in enumerate(masks.factors(eqn, x))]
    return builder.emit(eqn.op, operands, eqn.kwargs)


def _apply_rule(
    eqn: Equation, op: Primitive[Any], position: int, given: Sequence[Value]
) -> Tangents:
    """Apply the JVP rule of one operand to the result, the operands and the tangent."""
    rule = op.jvp_rule(position)
    if rule is None:
        raise MissingRuleError(
            f"primitive {op.name} has no jvp rule for operand {position}",
            origin=origin_lines(eqn),
            hint=f"declare one with @{op.name}.jvp({position})",
        )
    found = rule(*given, **eqn.kwargs)
    return found if op.multiple else (found,)
