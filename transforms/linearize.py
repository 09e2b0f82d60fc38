"""Forward mode: from a graph to the graph of its values and directional derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import chain
from typing import Any, final

from primgraph.errors import BuildError, MissingRuleError, NotDifferentiable
from primgraph.ir.builder import Builder
from primgraph.ir.contract import primitives_only, transform
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Primitive
from primgraph.ir.rebuild import (
    copy,
    derived_source,
    input_positions,
    rebuild,
    require_primitive,
    written,
)
from primgraph.primitives.constants import zeros_like
from primgraph.primitives.elementwise import add
from primgraph.primitives.logic import select
from primgraph.transforms.analysis.guards import Guards
from primgraph.transforms.analysis.masks import Masks, masks_of
from primgraph.transforms.analysis.ranges import Range


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def linearize(
    graph: Graph,
    wrt: Sequence[int | Value] | None = None,
    *,
    role: str = "tangent",
    given: Callable[[], Mapping[Value, Range]] = dict,
) -> Graph:
    """Turn `f(x) -> y` into `f_jvp(x, dx) -> (y, dy)`, linear in `dx`.

    `wrt` names what `dx` are the tangents of: positions of inputs, or values of the graph;
    by default all float inputs. A value inside the graph gets its tangent in addition to what
    reaches it from others. `dy` has one tangent for each float output, zeros where no tangent
    reaches it. An equation whose operands carry no tangent is copied and costs nothing more.
    New equations are marked as tangents, or with `role` "cotangent" as parts of reverse mode,
    where the result is to be transposed. `given` tells the ranges of inputs of which more is
    known, or less, than that they are finite.

    Raises `NotDifferentiable` for an integer in `wrt`, `MissingRuleError` where a primitive has
    no jvp rule.
    """
    seeds = differentiated(graph, wrt)
    builder, moved = rebuild(graph)
    tangents = {v: builder.input(v.type) for v in seeds}
    with builder:
        push_forward(builder, graph, moved, tangents, role, given)
        outputs = [v for v in graph.outputs if v.type.is_float]
        found = [tangents[v] if v in tangents else zeros_like(v) for v in outputs]
    return builder.graph([*(moved[v] for v in graph.outputs), *found], f"{graph.name}_jvp")


def differentiated(graph: Graph, wrt: Sequence[int | Value] | None) -> list[Value]:
    """The values that `wrt` names; all of a float dtype."""
    if wrt is None:
        return [v for v in graph.inputs if v.type.is_float]
    input_positions(graph, [v for v in wrt if not isinstance(v, Value)])
    values = [graph.inputs[v] if isinstance(v, int) else v for v in wrt]
    for value in values:
        if not value.type.is_float:
            raise NotDifferentiable(f"{value.type} has no derivatives: only floats have")
    if len(set(values)) != len(values):
        raise BuildError("a value is listed twice among those to differentiate by")
    return values


def depending(graph: Graph, sources: Sequence[Value]) -> set[Value]:
    """The float values that depend on `sources` in a differentiable way, and those themselves."""
    active = set(sources)
    for eqn in graph.body:
        if not active.isdisjoint(eqn.inputs) and not eqn.op.stops:
            active.update(v for v in eqn.outputs if v.type.is_float)
    return active


def push_forward(
    builder: Builder,
    graph: Graph,
    moved: dict[Value, Value],
    tangents: dict[Value, Value],
    role: str = "tangent",
    given: Callable[[], Mapping[Value, Range]] = dict,
) -> None:
    """Record values and tangents of all equations of `graph`.

    `moved` maps inputs to values of `builder`, `tangents` maps those to differentiate by; both
    are extended. A value without an entry in `tangents` has a tangent that is zero everywhere.
    """
    seeds = dict(tangents)
    masks = masks_of(graph, depending(graph, list(tangents)), list(tangents), given)
    conditions = _Needed(builder, graph, moved, masks)
    for eqn in graph.body:
        outputs = copy(builder, eqn, moved)
        found: Sequence[Value | None] = (None,) * len(outputs)
        if any(v in tangents for v in eqn.inputs):
            conditions.copy_ahead(eqn)
            builder.source = derived_source(eqn, role)
            found = _jvp(eqn, moved, tangents, masks)
        for value, tangent in zip(eqn.outputs, found, strict=True):
            if tangent is not None and value in seeds:
                tangents[value] = add(seeds[value], tangent)
            elif tangent is not None:
                tangents[value] = tangent


@final
class _Needed:
    """Copies the conditions of masks when they are needed: they may be defined after that."""

    def __init__(
        self, builder: Builder, graph: Graph, moved: dict[Value, Value], masks: Masks
    ) -> None:
        self.builder = builder
        self.moved = moved
        self.masks = masks
        self.definitions = dict(masks.made)
        if masks.tangents or masks.factors or masks.results:
            self.definitions.update((v, e) for e in graph.body for v in e.outputs)

    def copy_ahead(self, eqn: Equation) -> None:
        """Copy what the conditions of the masks of `eqn` need now."""
        guards = chain(self.masks.tangents.get(eqn, ()), self.masks.factors.get(eqn, ()))
        waiting = [g.condition for g in chain.from_iterable(guards)]
        waiting += [c for c in self.masks.results.get(eqn, ()) if c is not None]
        while waiting:
            if waiting[-1] in self.moved:
                waiting.pop()
                continue
            needed = self.definitions[waiting[-1]]
            missing = [v for v in needed.inputs if v not in self.moved]
            if missing:
                waiting += missing
            else:
                copy(self.builder, needed, self.moved)


def _jvp(
    eqn: Equation, moved: dict[Value, Value], tangents: dict[Value, Value], masks: Masks
) -> Sequence[Value | None]:
    """Tangents of the outputs of `eqn`; None for one that is zero everywhere."""
    op = require_primitive(eqn)
    if op.constant or not any(v.type.is_float for v in eqn.outputs):
        return (None,) * len(eqn.outputs)
    incoming = [tangents.get(v) for v in eqn.inputs]
    if eqn in masks.tangents:
        incoming = [
            d if d is None else _masked(d, g, moved)
            for d, g in zip(incoming, masks.tangents[eqn], strict=True)
        ]
    contributions = [
        *_linear_part(eqn, op, moved, incoming, masks),
        *_rules(eqn, op, moved, incoming, masks),
    ]
    if op.multiple:
        return contributions[0]  # type: ignore[return-value]
    present = [c for c in contributions if c is not None]
    return (reduce(add, present),) if present else (None,)


def _masked(tangent: Value, guards: Guards, moved: dict[Value, Value]) -> Value:
    """`tangent`, or a factor, with zeros where the guards say that it does not matter."""
    for guard in guards:
        zero = zeros_like(tangent)
        sides = (tangent, zero) if guard.side else (zero, tangent)
        tangent = select(moved[guard.condition], *sides)
    return tangent


def _held(
    eqn: Equation, position: int, found: Value | None, moved: dict[Value, Value], masks: Masks
) -> Value | None:
    """What one operand contributes, with zeros where its tangent has zeros by its structure."""
    if found is None or eqn not in masks.results:
        return found
    condition = masks.results[eqn][position]
    if condition is None:
        return found
    result: Value = select(moved[condition], found, zeros_like(found))
    return result


def _linear_part(
    eqn: Equation,
    op: Primitive[Any],
    moved: dict[Value, Value],
    incoming: Sequence[Value | None],
    masks: Masks,
) -> list[Value | None]:
    """What comes through the operands in which the primitive is linear: itself on tangents."""
    linear = [i for i in op.linear_operands(len(incoming)) if eqn.inputs[i].type.is_float]
    present = [i for i in linear if incoming[i] is not None]
    if not present:
        return []
    inputs = [moved[v] for v in eqn.inputs]
    if op.linear == "each":
        guards = masks.factors.get(eqn, [()] * len(inputs))
        factors = [_masked(v, g, moved) for v, g in zip(inputs, guards, strict=True)]
        results = [(i, op(*_with(factors, {i: incoming[i]}), **eqn.kwargs)) for i in present]
        return [_held(eqn, i, d, moved, masks) for i, d in results]
    if len(present) < len(linear) and all(op.jvp_rule(i) for i in present):
        return [_apply_rule(eqn, op, i, moved, incoming[i]) for i in present]
    filled = {i: incoming[i] or zeros_like(inputs[i]) for i in linear}
    result = op(*_with(inputs, filled), **eqn.kwargs)
    return [_held(eqn, present[0], result, moved, masks) if len(present) == 1 else result]


def _with(inputs: Sequence[Value], others: Mapping[int, Value | None]) -> list[Any]:
    """`inputs` with those at some places replaced by `others`."""
    return [others.get(i, v) for i, v in enumerate(inputs)]


def _rules(
    eqn: Equation,
    op: Primitive[Any],
    moved: dict[Value, Value],
    incoming: Sequence[Value | None],
    masks: Masks,
) -> list[Value | None]:
    """What comes through the other operands: the rule of each that has a tangent."""
    linear = op.linear_operands(len(incoming))
    places = [i for i, d in enumerate(incoming) if d is not None and i not in linear]
    results = [(i, _apply_rule(eqn, op, i, moved, incoming[i])) for i in places]
    return [_held(eqn, i, d, moved, masks) for i, d in results]


def _apply_rule(
    eqn: Equation,
    op: Primitive[Any],
    position: int,
    moved: dict[Value, Value],
    tangent: Value | None,
) -> Value | None:
    rule = op.jvp_rule(position)
    if rule is None:
        raise MissingRuleError(
            f"primitive {op.name} has no jvp rule for operand {position}",
            origin=written(eqn),
            hint=f"declare one with @{op.name}.jvp({position})",
        )
    inputs = [moved[v] for v in eqn.inputs]
    result: Value | None = rule(moved[eqn.outputs[0]], *inputs, tangent, **eqn.kwargs)
    return result
