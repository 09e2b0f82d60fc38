"""Boxes and edges of a layout as a net: layers, and dummy nodes on long edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final


def flow_of(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return all boxes in topological order; a cycle is broken at its first box."""
    below: list[list[int]] = [[] for _ in range(count)]
    missing = [0] * count
    for tail, head in edges:
        if tail != head:
            below[tail].append(head)
            missing[head] += 1
    flow = [v for v in range(count) if missing[v] == 0]
    taken = [n == 0 for n in missing]
    done, first = 0, 0
    while len(flow) < count or done < count:
        if done == len(flow):
            while taken[first]:
                first += 1
            taken[first] = True
            flow.append(first)
        for head in below[flow[done]]:
            missing[head] -= 1
            if missing[head] == 0 and not taken[head]:
                taken[head] = True
                flow.append(head)
        done += 1
    return flow


def layers_of(flow: Sequence[int], edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return the layer of each box: as high as its operands allow, then lowered to shorten edges.

    Layers without a box are skipped.
    """
    above: list[list[int]] = [[] for _ in flow]
    below: list[list[int]] = [[] for _ in flow]
    for tail, head in edges:
        if tail != head:
            below[tail].append(head)
            above[head].append(tail)
    layer = [0] * len(flow)
    for v in flow:
        for head in below[v]:
            layer[head] = max(layer[head], layer[v] + 1)
    for v in reversed(flow):
        if below[v] and len(set(below[v])) >= len(set(above[v])):
            layer[v] = min(layer[head] for head in below[v]) - 1
    used = {n: i for i, n in enumerate(sorted(set(layer)))}
    return [used[n] for n in layer]


def levels_of(
    count: int, steps: Sequence[tuple[int, int, int]], tight: Sequence[bool]
) -> list[int]:
    """Return the row of each box, with `head` at least `span` rows below `tail` for each step.

    Steps are `(tail, head, span)`; one step of each cycle is ignored. Boxes are as high as
    possible, then lowered if that shortens steps; `tight` ones are always lowered. Rows without a
    box are skipped.
    """
    flow = flow_of(count, [(tail, head) for tail, head, _ in steps])
    rank = [0] * count
    for place, v in enumerate(flow):
        rank[v] = place
    above: list[list[tuple[int, int]]] = [[] for _ in flow]
    below: list[list[tuple[int, int]]] = [[] for _ in flow]
    for tail, head, span in dict.fromkeys(steps):
        if rank[tail] < rank[head]:
            below[tail].append((head, span))
            above[head].append((tail, span))
    level = [0] * count
    for v in flow:
        level[v] = max((level[u] + span for u, span in above[v]), default=0)
    for v in reversed(flow):
        if below[v] and (tight[v] or len(below[v]) >= len(above[v])):
            level[v] = min(level[w] - span for w, span in below[v])
    for v in flow:
        level[v] = max([level[v], *(level[u] + span for u, span in above[v])])
    used = {n: i for i, n in enumerate(sorted(set(level)))}
    return [used[n] for n in level]


@final
class Net:
    """Boxes and dummy nodes, with links between neighbouring layers only.

    Edges that leave one box in one direction share their dummy nodes, as they have one value.
    """

    def __init__(self, sizes: Sequence[tuple[float, float]], layer: list[int]) -> None:
        self.sizes = sizes
        self.layer = list(layer)
        self.above: list[list[int]] = [[] for _ in layer]
        self.below: list[list[int]] = [[] for _ in layer]
        self.trunks: dict[tuple[int, bool], list[int]] = {}

    def chain(self, upper: int, lower: int, turned: bool) -> list[int]:
        """Return the nodes from one box down to another; none from a box to itself."""
        if upper == lower:
            return []
        trunk = self.trunks.setdefault((upper, turned), [upper])
        length = self.layer[lower] - self.layer[upper]
        while len(trunk) < length:
            self.layer.append(self.layer[trunk[-1]] + 1)
            self.above.append([])
            self.below.append([])
            self._link(trunk[-1], len(self.layer) - 1)
            trunk.append(len(self.layer) - 1)
        self._link(trunk[length - 1], lower)
        return [*trunk[:length], lower]

    def _link(self, upper: int, lower: int) -> None:
        self.below[upper].append(lower)
        self.above[lower].append(upper)

    def is_box(self, v: int) -> bool:
        return v < len(self.sizes)

    def degree(self, v: int) -> int:
        return len(self.above[v]) + len(self.below[v])

    def width(self, v: int) -> float:
        return self.sizes[v][0] if self.is_box(v) else 0.0

    def height(self, v: int) -> float:
        return self.sizes[v][1] if self.is_box(v) else 0.0
