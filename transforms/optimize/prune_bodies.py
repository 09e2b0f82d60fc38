"""Dead code elimination through branches and loops: unread results, carries and operands."""

from __future__ import annotations

from collections.abc import Collection
from operator import is_

from primgraph.ir.graph import Equation, Graph, Value, map_bodies
from primgraph.ir.slices import backward_slice
from primgraph.primitives.control import REGIONS, Regions
from primgraph.transforms.dataflow.activity import live_values
from primgraph.transforms.optimize.loop_parts import Loop


def prune_bodies(graph: Graph, *, deep: bool = False) -> Graph:
    """Eliminate dead equations, and dead results, carries and operands of loops and branches.

    With `deep`, also in bodies, at every depth.
    """
    return Graph(graph.inputs, live_equations(graph, deep), graph.outputs, graph.name)


def live_equations(graph: Graph, deep: bool = False) -> list[Equation]:
    """Return the equations that outputs depend on, without dead results; see `prune_bodies`."""
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
    if eqn.op.fact(REGIONS) is None:
        return eqn
    regions = Regions.from_equation(eqn)
    places = (regions.body_result(i) for i, v in enumerate(eqn.outputs) if v in live)
    ends = {k for k in places if k is not None}
    return (_prune_loop if regions.is_loop else _prune_branches)(eqn, regions, ends)


def _prune_branches(eqn: Equation, regions: Regions, ends: Collection[int]) -> Equation:
    """Return a branch or a checkpoint with the results at `ends`, and what they depend on."""
    read = sorted(live_values(regions, ends)[0])
    if len(ends) == len(eqn.outputs) and len(read) == len(regions.bodies[0].inputs):
        return eqn

    def part(body: Graph) -> Graph:
        wanted = [v for k, v in enumerate(body.outputs) if k in ends]
        inputs = [body.inputs[i] for i in read]
        return Graph(inputs, backward_slice(body.body, wanted), wanted, body.name)

    inputs = (*eqn.inputs[: regions.lead], *[eqn.inputs[regions.lead + i] for i in read])
    outputs = tuple([v for k, v in enumerate(eqn.outputs) if k in ends])
    return Equation(eqn.op, inputs, map_bodies(eqn, part).params, outputs, eqn.source)


def _prune_loop(eqn: Equation, regions: Regions, ends: Collection[int]) -> Equation:
    loop = Loop.from_equation(eqn)
    consts, states, xs = loop.inputs
    count = len(states)
    live, asked = set(ends), set[Value]()
    if loop.test is not None:
        read = {v for e in loop.test.body for v in e.inputs}.union(loop.test.outputs)
        live |= {k for k in range(count) if loop.test.inputs[len(consts) + k] in read}
        asked = {c for c, v in zip(consts, loop.test.inputs, strict=False) if v in read}
    # A loop that only counts its iterations keeps one carry.
    needed, kept = live_values(regions, live or {0})
    stacks = [k - count for k in sorted(kept) if k >= count]
    part = backward_slice(loop.body.body, [loop.body.outputs[k] for k in sorted(kept)])
    used = {loop.body.inputs[i] for i in needed}
    fixed = [(v, c) for v, c in zip(loop.consts, consts, strict=True) if c in used or c in asked]
    rows = [(v, x) for v, x in zip(loop.xs, xs, strict=True) if x in used]
    return loop.with_operands(fixed, kept, rows, stacks, part).equation()
