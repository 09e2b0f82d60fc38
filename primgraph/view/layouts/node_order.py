"""Order of nodes in each layer: sweeps that move each near the mean of its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from primgraph.view.layouts.net import Net

ORDER_SWEEPS = 12


def order_nodes(net: Net) -> list[list[int]]:
    """Return the nodes of each layer from left to right, the best of all sweeps."""
    layers: list[list[int]] = [[] for _ in range(max(net.layer, default=-1) + 1)]
    for v, n in enumerate(net.layer):
        layers[n].append(v)
    place = [0] * len(net.layer)
    for nodes in layers:
        for i, v in enumerate(nodes):
            place[v] = i
    best = [list(nodes) for nodes in layers]
    fewest = _crossings(net, layers, place)
    for sweep in range(ORDER_SWEEPS):
        if fewest == 0:
            break
        down = sweep % 2 == 0
        near = net.above if down else net.below
        for nodes in layers if down else layers[::-1]:
            key = {v: _mean([place[u] for u in near[v]], place[v]) for v in nodes}
            nodes.sort(key=key.__getitem__)
            for i, v in enumerate(nodes):
                place[v] = i
        found = _crossings(net, layers, place)
        if found < fewest:
            fewest, best = found, [list(nodes) for nodes in layers]
    return best


def _mean(places: Sequence[int], default: int) -> float:
    total = 0.0
    for n in places:
        total += n
    return total / len(places) if places else float(default)


def _crossings(net: Net, layers: Sequence[Sequence[int]], place: Sequence[int]) -> int:
    """Count the crossings of links, layer by layer, with a Fenwick tree."""
    crossings = 0
    for upper, lower in pairwise(layers):
        tree = [0] * (len(lower) + 1)
        seen = 0
        for v in upper:
            ends = [place[u] for u in net.below[v]]
            for end in ends:
                crossings += seen
                i = end + 1
                while i > 0:
                    crossings -= tree[i]
                    i -= i & -i
            for end in ends:
                seen += 1
                i = end + 1
                while i <= len(lower):
                    tree[i] += 1
                    i += i & -i
    return crossings
