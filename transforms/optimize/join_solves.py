"""Merging of linear solves with one matrix, so that it is factored once."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from primgraph.ir.builder import Builder
from primgraph.ir.facts.passes import SOLVES
from primgraph.ir.graph import Equation, Graph, Value, map_bodies
from primgraph.ir.rebuild import NOWHERE, copy, rebuild
from primgraph.ir.types import INT64
from primgraph.primitives.constants import iota
from primgraph.primitives.elementwise import cast
from primgraph.primitives.linear_algebra.systems import solve
from primgraph.primitives.logic import equal
from primgraph.primitives.shapes import broadcast, concat, slice_
from primgraph.transforms.dataflow.contract import primitives_only, transform


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def join_solves(graph: Graph) -> Graph:
    """Merge equations that solve with the same matrix and do not depend on each other.

    An inverse is a solve for the identity, and is merged with other solves.
    """
    if not (graph.has_bodies or any(e.op.fact(SOLVES) for e in graph.body)):
        return graph
    graph = _in_bodies(graph)
    joined = _groups(graph)
    return _rebuilt(graph, joined) if joined else graph


def _in_bodies(graph: Graph) -> Graph:
    if not graph.has_bodies:
        return graph
    body = [map_bodies(e, join_solves) for e in graph.body]
    if all(a is b for a, b in zip(body, graph.body, strict=True)):
        return graph
    return Graph(graph.inputs, body, graph.outputs, graph.name)


def _groups(graph: Graph) -> dict[Equation, list[Equation]]:
    """Return the group of each equation to be merged.

    A stage counts the solves on the longest path to an equation. Equations of one stage do not
    depend on each other, and neither do groups of one stage.
    """
    stage: dict[Value, int] = defaultdict(int)
    found: dict[tuple[Value, int], list[Equation]] = {}
    for eqn in graph.body:
        here = max(map(stage.__getitem__, eqn.inputs), default=0)
        if eqn.op.fact(SOLVES):
            found.setdefault((eqn.inputs[0], here), []).append(eqn)
            here += 1
        for value in eqn.outputs:
            stage[value] = here
    several = [group for group in found.values() if len(group) > 1]
    return {eqn: group for group in several for eqn in group}


def _rebuilt(graph: Graph, joined: Mapping[Equation, list[Equation]]) -> Graph:
    builder, moved = rebuild(graph)
    with builder:
        for group in _ordered_groups(graph, joined):
            if len(group) == 1:
                copy(builder, group[0], moved)
            else:
                _solve_together(builder, group, moved)
    return builder.graph([moved[v] for v in graph.outputs])


def _ordered_groups(
    graph: Graph, joined: Mapping[Equation, list[Equation]]
) -> Iterator[Sequence[Equation]]:
    """Yield groups and single equations in topological order, close to the original order."""
    place = {eqn: k for k, eqn in enumerate(graph.body)}
    groups = {place[g[0]]: g for g in ([*joined.get(e, (e,))] for e in graph.body)}
    made = {v: k for k, group in groups.items() for e in group for v in e.outputs}
    readers: dict[int, list[int]] = defaultdict(list)
    missing: Counter[int] = Counter()
    for k, group in groups.items():
        needed = {made[v] for e in group for v in e.inputs if v in made}
        missing[k] = len(needed)
        for maker in needed:
            readers[maker].append(k)
    ready = [k for k in groups if not missing[k]]
    while ready:
        k = heapq.heappop(ready)
        yield groups[k]
        for reader in readers[k]:
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, reader)


def _identity(like: Value) -> Value:
    lead, shape = tuple(range(len(like.shape) - 2)), like.shape[-2:]
    row, column = (iota(shape=shape, axis=k, dtype=INT64) for k in (0, 1))
    one = cast(equal(row, column), dtype=like.dtype)
    return broadcast(one, shape=like.shape, new_axes=lead) if lead else one


def _solve_together(builder: Builder, group: Sequence[Equation], moved: dict[Value, Value]) -> None:
    builder.source = group[0].source or NOWHERE
    matrix = moved[group[0].inputs[0]]
    sides = [moved[e.inputs[1]] if len(e.inputs) > 1 else _identity(matrix) for e in group]
    last = len(matrix.shape) - 1
    solved = solve(matrix, concat(*sides, axis=last))
    starts = accumulate((side.shape[-1] for side in sides), initial=0)
    for eqn, side, start in zip(group, sides, starts, strict=False):
        builder.source = eqn.source or NOWHERE
        moved[eqn.output] = slice_(
            solved,
            starts=(*(0,) * last, start),
            sizes=side.shape,
            steps=(1,) * (last + 1),
        )
