"""Makes one of a checkpoint and that of its tangents, which computes the same values."""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import freeze_all
from primgraph.ir.rebuild import NOWHERE
from primgraph.primitives.control import checkpoint

# So many checkpoints that take the same operand are looked at.
CANDIDATES = 8


def joined_checkpoints(graph: Graph) -> Graph:
    """The same graph, where tangents of a checkpoint are computed with what they are tangents of.

    Those of reverse mode stay apart, as they would keep memory for what is needed late. Where
    two wait for each other when made one, all stay as they were.
    """
    pairs = _pairs(graph.body)
    if not pairs:
        return graph
    body = _ordered(graph.body, pairs)
    return graph if body is None else Graph(graph.inputs, body, graph.outputs, graph.name)


def _pairs(body: Sequence[Equation]) -> dict[Equation, Equation]:
    """What takes the place of checkpoints that become one."""
    taking: dict[Value, list[Equation]] = {}
    made: dict[Equation, Equation] = {}
    for eqn in body:
        if eqn.op is not checkpoint:
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
    """Both in one equation; None where nothing that costs is computed by both."""
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
    return Equation(checkpoint, tuple(operands), params, outputs, first.source)


def _costs(body: Sequence[Equation]) -> int:
    return sum(bool(eqn.inputs) for eqn in body)


def _ordered(body: Sequence[Equation], made: dict[Equation, Equation]) -> list[Equation] | None:
    """The equations with those that are `made` in their places, each behind what it needs."""
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
