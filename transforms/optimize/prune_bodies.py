"""Dead code elimination through branches and loops: unread results, carries and operands."""

from __future__ import annotations

from collections.abc import Collection
from operator import is_

from primgraph.ir.graph import Equation, Graph, Value, map_bodies
from primgraph.ir.params import freeze_all
from primgraph.ir.slices import backward_slice
from primgraph.primitives.control import Flow, flow_of
from primgraph.transforms.optimize.loop_parts import Loop


def pruned(graph: Graph, *, deep: bool = False) -> Graph:
    """Eliminate dead equations, and dead results, carries and operands of loops and branches.

    With `deep`, also in bodies, at every depth.
    """
    return Graph(graph.inputs, live_equations(graph, deep), graph.outputs, graph.name)


def live_equations(graph: Graph, deep: bool = False) -> list[Equation]:
    """Return the equations that outputs depend on, without dead results; see `pruned`."""
    kept: list[Equation] = []
    live = set(graph.outputs)
    for eqn in reversed(graph.body):
        if live.isdisjoint(eqn.outputs):
            continue
        plain = _prune_equation(eqn, live) if eqn.op.has_bodies else eqn
        again = map_bodies(plain, _pruned_body) if deep else plain
        if again is not plain:
            # Operands that the bodies no longer read are removed from the equation, too.
            plain = _prune_equation(again, live)
        live.update(plain.inputs)
        kept.append(plain)
    kept.reverse()
    return kept


def _pruned_body(graph: Graph) -> Graph:
    """Return the body without dead equations; itself if nothing changes."""
    body = live_equations(graph, deep=True)
    same = len(body) == len(graph.body) and all(map(is_, body, graph.body))
    return graph if same else Graph(graph.inputs, body, graph.outputs, graph.name)


def _prune_equation(eqn: Equation, live: Collection[Value]) -> Equation:
    """Return the equation without results that are not `live` and their dependencies."""
    match flow_of(eqn):
        case None:
            return eqn
        case Flow.ONCE:
            return _prune_checkpoint(eqn, live)
        case Flow.CHOICE:
            return _prune_branches(eqn, live)
        case _:
            return _prune_loop(eqn, live)


def _prune_checkpoint(eqn: Equation, live: Collection[Value]) -> Equation:
    (body,) = eqn.bodies
    ends = [k for k, v in enumerate(eqn.outputs) if v in live]
    wanted = [body.outputs[k] for k in ends]
    part = Graph(body.inputs, backward_slice(body.body, wanted), wanted, body.name)
    read = _used_values(part)
    stays = [i for i, v in enumerate(body.inputs) if v in read]
    if len(ends) == len(eqn.outputs) and len(stays) == len(eqn.inputs):
        return eqn
    plain = Graph([body.inputs[i] for i in stays], part.body, wanted, body.name)
    inputs = tuple([eqn.inputs[i] for i in stays])
    outputs = tuple([eqn.outputs[k] for k in ends])
    return Equation(eqn.op, inputs, freeze_all([("body", plain)]), outputs, eqn.source)


def _prune_branches(eqn: Equation, live: Collection[Value]) -> Equation:
    ends = [k for k, v in enumerate(eqn.outputs) if v in live]
    branches = []
    for branch in eqn.kwargs["branches"]:
        wanted = [branch.outputs[k] for k in ends]
        part = backward_slice(branch.body, wanted)
        branches.append(Graph(branch.inputs, part, wanted, branch.name))
    used = [_used_values(branch) for branch in branches]
    count = len(eqn.inputs) - 1
    stays = [
        i
        for i in range(count)
        if any(b.inputs[i] in read for b, read in zip(branches, used, strict=True))
    ]
    if len(ends) == len(eqn.outputs) and len(stays) == count:
        return eqn
    plain = [Graph([b.inputs[i] for i in stays], b.body, b.outputs, b.name) for b in branches]
    inputs = (eqn.inputs[0], *[eqn.inputs[1 + i] for i in stays])
    outputs = tuple([eqn.outputs[k] for k in ends])
    params = freeze_all([("branches", tuple(plain))])
    return Equation(eqn.op, inputs, params, outputs, eqn.source)


def _prune_loop(eqn: Equation, live: Collection[Value]) -> Equation:
    loop = Loop.of(eqn)
    consts, states, xs = loop.inputs
    outputs = loop.body.outputs
    stacks = [k for k, v in enumerate(loop.stacked) if v in live]
    carries = {k for k, v in enumerate(loop.carried) if v in live}
    asked: set[Value] = set()
    if loop.test is not None:
        read = _used_values(loop.test)
        carries |= {k for k in range(len(states)) if loop.test.inputs[len(consts) + k] in read}
        asked = {c for c, v in zip(consts, loop.test.inputs, strict=False) if v in read}
    count = len(states)
    if not carries and not stacks:
        # A loop that only counts its iterations keeps one carry.
        carries = {0}
    while True:
        ends = [*[outputs[k] for k in sorted(carries)], *[outputs[count + k] for k in stacks]]
        part = backward_slice(loop.body.body, ends)
        read = {v for e in part for v in e.inputs}.union(ends)
        more = {k for k, v in enumerate(states) if v in read}
        if more <= carries:
            break
        carries |= more
    fixed = [(v, c) for v, c in zip(loop.consts, consts, strict=True) if c in read or c in asked]
    rows = [(v, x) for v, x in zip(loop.xs, xs, strict=True) if x in read]
    return loop.taking(fixed, carries, rows, stacks, part).equation()


def _used_values(graph: Graph) -> set[Value]:
    return {v for e in graph.body for v in e.inputs}.union(graph.outputs)
