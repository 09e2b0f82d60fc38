"""Merging a checkpoint with the checkpoint of its tangents, which recomputes the same values."""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import freeze_all
from primgraph.ir.rebuild import NOWHERE
from primgraph.primitives.control import Flow, flow_of

# Maximum number of checkpoints with a common operand that are compared.
CANDIDATES = 8


def merge_checkpoints(graph: Graph) -> Graph:
    """Merge checkpoints with those of their forward-mode tangents.

    Checkpoints of reverse mode stay separate, as merging would keep values alive until they are
    needed. If merging creates a cycle, return the graph unchanged.
    """
    pairs = _pairs(graph.body)
    if not pairs:
        return graph
    body = _sort_topologically(graph.body, pairs)
    return graph if body is None else Graph(graph.inputs, body, graph.outputs, graph.name)


def _pairs(body: Sequence[Equation]) -> dict[Equation, Equation]:
    """Map checkpoints to the merged equations that replace them."""
    taking: dict[Value, list[Equation]] = {}
    made: dict[Equation, Equation] = {}
    for eqn in body:
        if flow_of(eqn) is not Flow.ONCE:
            continue
        known = [taking[v][-CANDIDATES:] for v in eqn.inputs if v in taking]
        if known and eqn.source is not None and eqn.source.role == "tangent":
            for first in reversed(min(known, key=len)):
                both = None if first in made else _as_one(first, eqn)
                if both is not None:
                    made[first] = made[eqn] = both
                    break
        for value in eqn.inputs:
            taking.setdefault(value, []).append(eqn)
    return made


def _as_one(first: Equation, last: Equation) -> Equation | None:
    """Return both as one equation; None if they share no computation."""
    one, other = first.bodies[0], last.bodies[0]
    if one.name != other.name:
        return None
    builder = Builder(one.name, source=NOWHERE)
    operands = [*dict.fromkeys((*first.inputs, *last.inputs))]
    made = {v: builder.input(v.type) for v in operands}
    ends = builder.inline(one, [made[v] for v in first.inputs])
    before = len(builder.body)
    ends = [*ends, *builder.inline(other, [made[v] for v in last.inputs])]
    if _costs(builder.body[before:]) >= _costs(other.body):
        return None
    params = freeze_all([("body", builder.graph(ends))])
    outputs = (*first.outputs, *last.outputs)
    return Equation(first.op, tuple(operands), params, outputs, first.source)


def _costs(body: Sequence[Equation]) -> int:
    return sum(bool(eqn.inputs) for eqn in body)


def _sort_topologically(
    body: Sequence[Equation], made: dict[Equation, Equation]
) -> list[Equation] | None:
    """Return the equations with those `made` in place, topologically ordered; None for a cycle."""
    plain = [made.get(eqn, eqn) for eqn in body]
    defined = {v: eqn for eqn in plain for v in eqn.outputs}
    found: list[Equation] = []
    done: set[Equation] = set()
    open: set[Equation] = set()
    for eqn in plain:
        waiting = [eqn]
        while waiting:
            top = waiting[-1]
            if top in done:
                waiting.pop()
                continue
            behind = [defined[v] for v in top.inputs if v in defined]
            behind = [e for e in behind if e not in done]
            if not behind:
                found.append(waiting.pop())
                done.add(top)
                continue
            open.add(top)
            if not open.isdisjoint(behind):
                return None
            waiting += behind
    return found
