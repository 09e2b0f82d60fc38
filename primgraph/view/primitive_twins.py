"""A graph in which nothing stands twice: no operator beside its primitives, no loop beside itself.

Derivatives are built from primitives, so that a program with derivatives holds the operators that
the user wrote and, beside each, what it decomposes into, cleaned up. Both compute one value. The
same goes for loops: the derivative of a loop has the loop again, which keeps what is needed of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.slices import backward_slice
from primgraph.operators.call import Operator
from primgraph.transforms.lower import lower
from primgraph.transforms.optimize.clean_up import clean_up

# An operator with a larger decomposition is drawn as its primitives.
_MOST = 200


def drop_twins(graph: Graph) -> tuple[Graph, Mapping[Value, Value]]:
    """Return the graph with each value once, and a map from values of the given graph.

    An operator stays where nothing but its result is used of what it decomposes into; where
    derivatives use more of it, what it decomposes into stands in its place. Equal loops become one.
    A graph without derivatives, or without operators and loops, is given back as it is.
    """
    doubled = any(isinstance(e.op, Operator) or e.op.has_bodies for e in graph.body)
    if not doubled or not any(map(_is_derived, graph.body)):
        return graph, {}
    values = [v for e in graph.body for v in e.outputs]
    lowered = clean_up(lower(graph.with_outputs(values)))
    moved = dict(zip(values, lowered.outputs, strict=True))
    outputs = [moved.get(v, v) for v in graph.outputs]
    body = backward_slice(lowered.body, outputs)
    written = [e for e in graph.body if not _is_derived(e) and len(e.outputs) == 1]
    equations = backward_slice(_contract_decompositions(body, written, moved, outputs), outputs)
    return Graph(graph.inputs, equations, outputs, graph.name), moved


def _is_derived(eqn: Equation) -> bool:
    return eqn.is_derived


def _is_constant(eqn: Equation | None) -> bool:
    return eqn is not None and eqn.is_known


def _contract_decompositions(
    body: Sequence[Equation],
    written: Sequence[Equation],
    moved: Mapping[Value, Value],
    outputs: Sequence[Value],
) -> list[Equation]:
    """Replace decompositions in `body` by their operators if no inner value is used elsewhere."""
    made = {v: e for e in body for v in e.outputs}
    uses = dict.fromkeys(made, 0)
    for value in (*outputs, *(v for e in body for v in e.inputs)):
        if value in uses:
            uses[value] += 1
    replaced: dict[Equation, Equation | None] = {}
    for eqn in written:
        result = moved[eqn.output]
        inputs = tuple(moved.get(v, v) for v in eqn.inputs)
        inner = _inner(result, inputs, made)
        if len(inner) == 1 and made[result].op is eqn.op:
            continue
        if not inner or any(e in replaced for e in inner):
            continue
        own: dict[Value, int] = {}
        for value in (v for e in inner for v in e.inputs):
            own[value] = own.get(value, 0) + 1
        hidden = {v for e in inner for v in e.outputs if v is not result}
        outer = {v for v in own if v not in hidden and not _is_constant(made.get(v))}
        alike = outer == {v for v in inputs if not _is_constant(made.get(v))}
        if alike and all(own.get(v, 0) == uses[v] for v in hidden):
            last = made[result]
            replaced.update(dict.fromkeys(inner))
            replaced[last] = Equation(eqn.op, inputs, eqn.params, last.outputs, eqn.source)
    found = (replaced.get(e, e) for e in body)
    return [e for e in found if e is not None]


def _inner(result: Value, inputs: Sequence[Value], made: Mapping[Value, Equation]) -> set[Equation]:
    """Return the equations that compute `result` from `inputs`, without constants."""
    found: set[Equation] = set()
    waiting = [result]
    ends = set(inputs)
    while waiting and len(found) <= _MOST:
        value = waiting.pop()
        eqn = None if value in ends else made.get(value)
        if eqn is not None and eqn not in found and not _is_constant(eqn):
            found.add(eqn)
            waiting += eqn.inputs
    return found if len(found) <= _MOST else set()
