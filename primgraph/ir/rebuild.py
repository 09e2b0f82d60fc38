"""Common start of passes: a builder with a graph's inputs, and a map from old to new values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeAlias, final

from primgraph.base.user_lines import Source
from primgraph.errors import BuildError, MissingRuleError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Op, Primitive

NOWHERE = Source("<transform>", 0)


def rebuild(
    graph: Graph, expands: Callable[[Op], bool] = lambda op: False
) -> tuple[Builder, dict[Value, Value]]:
    """Return an empty builder with the inputs of `graph`, and a map from old to new values.

    A pass fills the map as it records equations; `copy` does this for those it leaves alone.

    >>> from primgraph.extend import copy, rebuild
    >>> graph = pg.trace(lambda x: pg.sin(x) * x, pg.spec(3))
    >>> builder, moved = rebuild(graph)
    >>> for eqn in graph.body:
    ...     outputs = copy(builder, eqn, moved)
    >>> builder.graph([moved[v] for v in graph.outputs]) == graph
    True
    """
    builder = Builder(graph.name, source=NOWHERE, expands=expands)
    for value in graph.inputs:
        builder.share_input(value)
    return builder, {v: v for v in graph.inputs}


def copy(builder: Builder, eqn: Equation, moved: dict[Value, Value]) -> tuple[Value, ...]:
    """Record `eqn` on the new inputs, add its outputs to the map `moved`, and return them.

    >>> from primgraph.extend import copy, rebuild
    >>> graph = pg.trace(pg.sin, pg.spec(3))
    >>> builder, moved = rebuild(graph)
    >>> outputs = copy(builder, graph.body[0], moved)
    >>> outputs == (moved[graph.outputs[0]],)
    True
    """
    outputs = builder.share(eqn, tuple([moved[v] for v in eqn.inputs]))
    for value, output in zip(eqn.outputs, outputs, strict=True):
        moved[value] = output
    return outputs


def keep(builder: Builder, eqn: Equation, moved: dict[Value, Value]) -> tuple[Value, ...]:
    """Copy `eqn` once, without merging equal floats.

    Like `copy`, but what is in `moved` stays there, an equation whose outputs all are is not
    recorded again, and each float of a graph stays a variable of its own, by which derivatives can
    be taken.

    >>> from primgraph.extend import keep, rebuild
    >>> graph = pg.trace(pg.sin, pg.spec(3))
    >>> builder, moved = rebuild(graph)
    >>> keep(builder, graph.body[0], moved) == keep(builder, graph.body[0], moved)
    True
    """
    if moved.keys() >= set(eqn.outputs):
        return tuple([moved[v] for v in eqn.outputs])
    operands = tuple([moved[v] for v in eqn.inputs])
    distinct = any(v.type.is_inexact for v in eqn.outputs)
    outputs = builder.share(eqn, operands, distinct=distinct)
    return tuple([moved.setdefault(v, w) for v, w in zip(eqn.outputs, outputs, strict=True)])


# Equations of a pattern, with the places of their inputs among operands and earlier results.
Equations: TypeAlias = tuple[tuple[Equation, tuple[int, ...]], ...]
# Results of a rule; None for those without a value.
Results: TypeAlias = Sequence[Value | None]


@final
class RuleCache:
    """Cache of what rules record: for operands of known types, they record copies of equations.

    Rules that ask the recorder for anything else than equations, such as how an operand was
    computed, are applied each time.
    """

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._known: dict[Hashable, tuple[Equations, list[int]] | None] = {}

    def apply(
        self, key: Hashable, values: list[Value], rule: Callable[[Builder], Results]
    ) -> Results:
        """Return the results of `rule`, which records into the builder that it is given.

        It records the same for equal keys, except that it uses other distinct `values`; a `key` of
        None equals no other.
        """
        builder = self._builder
        if key is None or len(set(values)) < len(values) or builder.outer is not None:
            return rule(builder)
        if key not in self._known:
            with _Watcher(builder, values) as watcher:
                results = rule(builder)
            self._known[key] = watcher.pattern(results)
            return results
        known = self._known[key]
        if known is None:
            return rule(builder)
        equations, places = known
        for eqn, operands in equations:
            values += builder.copy(eqn, tuple([values[i] for i in operands]), builder.source)
        return [None if i < 0 else values[i] for i in places]


@final
class _Watcher:
    """Context manager that notes what is emitted into a builder, as a pattern of `values`.

    There is no pattern if equations are recorded otherwise, or definitions are asked for.
    """

    def __init__(self, builder: Builder, values: Sequence[Value]) -> None:
        self._builder = builder
        self._definition = builder.definition
        self._places = {v: i for i, v in enumerate(values)}
        self._given, self._count = frozenset(values), len(values)
        self._equations: list[tuple[Equation, tuple[int, ...]]] = []
        self._is_decided = True

    def __enter__(self) -> _Watcher:
        vars(self._builder).update(emit=self._emit, definition=self._define)
        return self

    def __exit__(self, *error: object) -> None:
        del vars(self._builder)["emit"]
        self._builder.definition = self._definition

    def _define(self, value: Value) -> Equation | None:
        self._is_decided = False
        return self._definition(value)

    def _emit(self, op: Op, inputs: Sequence[Value], params: dict[str, Any]) -> tuple[Value, ...]:
        results = Builder.emit(self._builder, op, inputs, params)
        eqn, places = self._definition(results[0]), self._places
        if eqn is None or not places.keys() >= set(inputs) or not self._given.isdisjoint(results):
            self._is_decided = False
            return results
        self._equations.append((eqn, tuple([places[v] for v in inputs])))
        for value in results:
            places.setdefault(value, self._count)
            self._count += 1
        return results

    def pattern(self, results: Results) -> tuple[Equations, list[int]] | None:
        """Return the equations, and the places of `results`, -1 for None; None if undecided."""
        wanted = [v for v in results if v is not None]
        if not self._is_decided or not self._places.keys() >= set(wanted):
            return None
        return tuple(self._equations), [-1 if v is None else self._places[v] for v in results]


def input_positions(graph: Graph, given: Sequence[Any]) -> list[int]:
    """Check that `given` holds distinct input positions of `graph`. Raises `BuildError`."""
    count = len(graph.inputs)
    for place in given:
        if not isinstance(place, int) or not 0 <= place < count:
            raise BuildError(f"{graph.name} has {count} inputs, and none at {place!r:.60}")
    if len(set(given)) != len(given):
        raise BuildError(f"an input is listed twice in {tuple(given)}")
    return list(given)


def derived_source(eqn: Equation, role: str) -> Source:
    """Return the source line for a tangent or cotangent derived from `eqn`."""
    return (eqn.source or NOWHERE).mark_derivative(role)


def transposed_source(eqn: Equation) -> Source:
    """Return the source line for the transposition of `eqn`."""
    return (eqn.source or NOWHERE).mark_cotangent()


def require_primitive(eqn: Equation) -> Primitive[Any]:
    """Return the primitive of `eqn`; raises `MissingRuleError` with the user's line for another
    op."""
    if isinstance(eqn.op, Primitive):
        return eqn.op
    raise MissingRuleError(
        f"{eqn.op.name} is an operator, and has no rules of its own",
        origin=origin_lines(eqn),
        hint="lower the graph first",
    )


def origin_lines(eqn: Equation) -> list[str]:
    """Return the line of an error message that says where `eqn` was written."""
    return [f"written here:  {eqn.source}   {eqn.source.text}"] if eqn.source else []


def full_value(builder: Builder, value: Value) -> bool | int | float | None:
    """Return the scalar that all elements of `value` are known to equal, or None."""
    eqn = builder.definition(value)
    # A view of a uniform array is uniform, too.
    while eqn is not None and eqn.op.is_view and not (eqn.op.stops or eqn.op.multiple):
        eqn = builder.definition(eqn.inputs[0])
    return None if eqn is None else eqn.number


def change_graphs(
    value: Any, change: Callable[[Op, Mapping[str, Any]], dict[str, Any] | None]
) -> Any:
    """Return a parameter with other parameters of the equations in its graphs.

    `change` returns those of an equation, or None to leave it alone. What has no graph, and graphs
    that stay the same, are returned themselves.
    """
    if isinstance(value, tuple):
        found = tuple(change_graphs(item, change) for item in value)
        return found if any(a is not b for a, b in zip(found, value, strict=True)) else value
    if not isinstance(value, Graph):
        return value
    changed = [change(eqn.op, eqn.kwargs) for eqn in value.body]
    if all(params is None for params in changed):
        return value
    builder, moved = rebuild(value)
    for eqn, params in zip(value.body, changed, strict=True):
        if params is None:
            copy(builder, eqn, moved)
        else:
            results = builder.emit(eqn.op, [moved[v] for v in eqn.inputs], params, distinct=True)
            moved.update(zip(eqn.outputs, results, strict=True))
    return builder.graph([moved[v] for v in value.outputs])
