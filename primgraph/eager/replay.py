"""Replay a graph with tensors: each equation becomes a step."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from primgraph.base.user_lines import instruction
from primgraph.eager.derivatives.recording import is_tracked
from primgraph.eager.node import Node, array_node
from primgraph.eager.run import compute, debugging
from primgraph.eager.steps import Step, Traced
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import bits

# Constants of up to this many elements are inputs; larger ones are part of the structure.
_SMALL = 4096


def replay_graph(graph: Graph, inputs: Sequence[Node]) -> list[Node]:
    """Apply `graph` to `inputs`, and return lazy nodes of its results.

    Small constants become inputs, so that graphs that differ in them share a structure.
    """
    known: dict[Value, Node] = dict(zip(graph.inputs, inputs, strict=True))
    line = instruction()
    for eqn in graph.body:
        operands = tuple([known[v] for v in eqn.inputs])
        if not operands and eqn.outputs[0].type.size <= _SMALL:
            found = eqn.op.evaluate((), eqn.kwargs)
            known.update((v, array_node(a)) for v, a in zip(eqn.outputs, found, strict=True))
            continue
        for value, step in zip(eqn.outputs, _steps(eqn), strict=True):
            tracked = is_tracked(step, operands)
            known[value] = Node(step.type, step, operands, tracked, line)
    results = [known[v] for v in graph.outputs]
    if debugging.get():
        compute(results)
    return results


_KEPT = 4096
_made: dict[Hashable, Sequence[Step]] = {}


def _steps(eqn: Equation) -> Sequence[Step]:
    """Return one step per result of an equation; equal equations on equal types share steps."""
    key = (eqn.op, bits(eqn.params), tuple([v.type for v in eqn.inputs]))
    found = _made.get(key)
    if found is None:
        builder = Builder(eqn.op.name)
        results = builder.emit(eqn.op, [builder.input(v.type) for v in eqn.inputs], eqn.kwargs)
        found = _made[key] = [Traced(builder.part(builder.inputs, [v])) for v in results]
        if len(_made) > _KEPT:
            del _made[next(iter(_made))]
    return found
