"""Horizontal positions of the nodes of each layer: least-squares fits to their neighbours.

A fit keeps order and distances; it is found by pooling adjacent violators (Ayer et al. 1955). Dummy
nodes have larger weights than boxes, and are aligned at the end, so that long edges are straight.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from primgraph.view.layouts.net import Net

# Distances, in pixels: between boxes of a layer, and beside an edge that passes.
BOX_GAP = 28.0
EDGE_GAP = 14.0

PLACE_SWEEPS = 8
# Weights between two dummy nodes, and between a dummy node and a box; between boxes it is 1.
STRAIGHT = 8.0
BENT = 2.0
# Weight of the current position for a node without neighbours on a side.
FREE = 0.5
# Weight of a link if one of its ends has no other neighbour.
WEAK = 0.01
INFINITE = 1e300


def place_nodes(net: Net, layers: Sequence[Sequence[int]]) -> list[float]:
    """Return the horizontal middle of each node."""
    x = [0.0] * len(net.layer)
    for nodes in layers:
        for v, offset in zip(nodes, _offsets(net, nodes), strict=True):
            x[v] = offset
    for sweep in range(PLACE_SWEEPS):
        down = sweep % 2 == 0
        for nodes in layers if down else layers[::-1]:
            _fit_layer(net, nodes, x, (net.above if down else net.below,))
    for nodes in layers:
        _fit_layer(net, nodes, x, (net.above, net.below))
    _straighten(net, layers, x)
    return x


def _straighten(net: Net, layers: Sequence[Sequence[int]], x: list[float]) -> None:
    """Straighten long edges as far as the room between their neighbours allows."""
    left: list[int] = [-1] * len(x)
    right: list[int] = [-1] * len(x)
    for nodes in layers:
        for u, v in pairwise(nodes):
            right[u], left[v] = v, u
    for trunk in net.trunks.values():
        run: list[int] = []
        low, high = -INFINITE, INFINITE
        for v in trunk[1:]:
            least = -INFINITE if left[v] < 0 else x[left[v]] + _distance(net, left[v], v)
            most = INFINITE if right[v] < 0 else x[right[v]] - _distance(net, v, right[v])
            if max(low, least) > min(high, most):
                _align(run, low, high, x)
                run, low, high = [], -INFINITE, INFINITE
            run.append(v)
            low, high = max(low, least), min(high, most)
        _align(run, low, high, x)


def _align(run: Sequence[int], low: float, high: float, x: list[float]) -> None:
    """Move all nodes of `run` to the mean of their positions, clipped to the bounds."""
    total = 0.0
    for v in run:
        total += x[v]
    for v in run:
        x[v] = min(max(total / len(run), low), high)


def _offsets(net: Net, nodes: Sequence[int]) -> list[float]:
    """Return the minimum distance of each node of a layer from the first one."""
    offsets = [0.0] * len(nodes)
    for i in range(1, len(nodes)):
        offsets[i] = offsets[i - 1] + _distance(net, nodes[i - 1], nodes[i])
    return offsets


def _distance(net: Net, left: int, right: int) -> float:
    """Return the minimum distance of the middles of two neighbours in a layer."""
    boxes = int(net.is_box(left)) + int(net.is_box(right))
    gap = EDGE_GAP + (BOX_GAP - EDGE_GAP) * boxes / 2
    return (net.width(left) + net.width(right)) / 2 + gap


def _fit_layer(
    net: Net, nodes: Sequence[int], x: list[float], sides: Sequence[Sequence[Sequence[int]]]
) -> None:
    """Move the nodes of a layer as near to their neighbours as order and distances allow.

    After subtracting offsets this is isotonic least squares: while the last run of nodes is left of
    the one before it, both are merged with the common mean.
    """
    offsets = _offsets(net, nodes)
    means: list[float] = []
    weights: list[float] = []
    counts: list[int] = []
    for v, offset in zip(nodes, offsets, strict=True):
        weight, total = 0.0, 0.0
        for near in sides:
            for u in near[v]:
                pull = _pull(net, u, v)
                weight += pull
                total += pull * x[u]
        if weight == 0.0:
            weight, total = FREE, FREE * x[v]
        means.append(total / weight - offset)
        weights.append(weight)
        counts.append(1)
        while len(means) > 1 and means[-2] > means[-1]:
            mean, weight, count = means.pop(), weights.pop(), counts.pop()
            together = weights[-1] + weight
            means[-1] = (means[-1] * weights[-1] + mean * weight) / together
            weights[-1] = together
            counts[-1] += count
    i = 0
    for mean, count in zip(means, counts, strict=True):
        for _ in range(count):
            x[nodes[i]] = mean + offsets[i]
            i += 1


def _pull(net: Net, u: int, v: int) -> float:
    """Return the weight of a link; small if one end has no other neighbour."""
    if net.degree(u) == 1 or net.degree(v) == 1:
        return WEAK
    if net.is_box(u) and net.is_box(v):
        return 1.0
    return BENT if net.is_box(u) or net.is_box(v) else STRAIGHT
