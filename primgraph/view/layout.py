"""Where boxes stand and how edges run: a layered layout, from top to bottom.

The steps are those of Sugiyama, Tagawa and Toda (1981): edges against the flow are turned, boxes
are put on layers, long edges become chains of dummy nodes, sweeps over the layers bring each node
near the mean place of its neighbours, and last come coordinates. These are least-squares fits to
the neighbours' that keep the order and the distances of a layer, found by pooling adjacent
violators (Ayer et al. 1955), where dummy nodes pull more strongly so that long edges run straight.

Everything is plain arithmetic on lists in fixed order: the same input gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias, final

Point: TypeAlias = tuple[float, float]

# Distances, in pixels: between boxes of a layer, beside an edge that passes, between layers.
BOX_GAP = 28.0
EDGE_GAP = 14.0
LAYER_GAP = 46.0
MARGIN = 16.0
# How far apart arrows reach a box.
PORT_GAP = 14.0

ORDER_SWEEPS = 12
PLACE_SWEEPS = 8
# How strongly a dummy node pulls at another, and at a box; boxes pull at each other with 1.
STRAIGHT = 8.0
BENT = 2.0
# How strongly a node without neighbours on a side stays where it is.
FREE = 0.5
INFINITE = 1e300


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """The upper left corner of each box, the points that each edge passes, and the whole extent.

    An edge curves from its first point to the second, runs straight to the third, curves to the
    fourth, and so on; curves leave and arrive vertically. An edge from a box to itself has none.
    """

    corners: tuple[Point, ...]
    routes: tuple[tuple[Point, ...], ...]
    width: float
    height: float


def layout(sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]]) -> Layout:
    """Places for boxes of these widths and heights, and routes for the edges between them.

    An edge is a tail and a head, as positions in `sizes`. Edges point down, except for those that
    had to be turned because they close a cycle. Takes n log n time in boxes and dummy nodes.
    """
    flow = _flow(len(sizes), edges)
    rank = [0] * len(sizes)
    for place, v in enumerate(flow):
        rank[v] = place
    turned = [rank[tail] > rank[head] for tail, head in edges]
    downward = [(h, t) if back else (t, h) for (t, h), back in zip(edges, turned, strict=True)]
    net = _Net(sizes, _layers(flow, downward))
    chains = [net.chain(u, v, back) for (u, v), back in zip(downward, turned, strict=True)]
    order = _ordered(net)
    x = _placed(net, order)
    top, height = _bands(net, order)
    middle = [top[net.layer[v]] + height[net.layer[v]] / 2 for v in range(len(sizes))]
    routes = _routes(net, chains, x, middle, top, height)
    routes = [r[::-1] if back else r for r, back in zip(routes, turned, strict=True)]
    corners = [(x[v] - w / 2, middle[v] - h / 2) for v, (w, h) in enumerate(sizes)]
    return _in_view(corners, routes, sizes)


def _flow(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """All boxes, each after those with edges to it; in a cycle the first one goes first."""
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


def _layers(flow: Sequence[int], edges: Sequence[tuple[int, int]]) -> list[int]:
    """The layer of each box: as high as its operands allow, then lower where that shortens edges.

    Layers without a box do not count.
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
        if len(below[v]) > len(above[v]):
            layer[v] = min(layer[head] for head in below[v]) - 1
    used = {n: i for i, n in enumerate(sorted(set(layer)))}
    return [used[n] for n in layer]


@final
class _Net:
    """Boxes and dummy nodes, with links between neighbouring layers only.

    Edges that leave one box in one direction share their dummy nodes, for they carry one value.
    """

    def __init__(self, sizes: Sequence[tuple[float, float]], layer: list[int]) -> None:
        self.sizes = sizes
        self.layer = list(layer)
        self.above: list[list[int]] = [[] for _ in layer]
        self.below: list[list[int]] = [[] for _ in layer]
        self.trunks: dict[tuple[int, bool], list[int]] = {}

    def chain(self, upper: int, lower: int, turned: bool) -> list[int]:
        """The nodes from one box down to another; none from a box to itself."""
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

    def width(self, v: int) -> float:
        return self.sizes[v][0] if self.is_box(v) else 0.0

    def height(self, v: int) -> float:
        return self.sizes[v][1] if self.is_box(v) else 0.0


def _ordered(net: _Net) -> list[list[int]]:
    """The nodes of each layer from left to right; of all that the sweeps try, the best."""
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


def _crossings(net: _Net, layers: Sequence[Sequence[int]], place: Sequence[int]) -> int:
    """How many pairs of links cross, counted layer by layer in a Fenwick tree."""
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


def _placed(net: _Net, layers: Sequence[Sequence[int]]) -> list[float]:
    """The middle of each node, from left to right."""
    x = [0.0] * len(net.layer)
    for nodes in layers:
        for v, offset in zip(nodes, _offsets(net, nodes), strict=True):
            x[v] = offset
    for sweep in range(PLACE_SWEEPS):
        down = sweep % 2 == 0
        for nodes in layers if down else layers[::-1]:
            _fit(net, nodes, x, (net.above if down else net.below,))
    for nodes in layers:
        _fit(net, nodes, x, (net.above, net.below))
    _straighten(net, layers, x)
    return x


def _straighten(net: _Net, layers: Sequence[Sequence[int]], x: list[float]) -> None:
    """Let long edges run straight down as far as the room between their neighbours allows."""
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
    """Put all nodes of `run` at one place, the mean of theirs if that lies within the bounds."""
    total = 0.0
    for v in run:
        total += x[v]
    for v in run:
        x[v] = min(max(total / len(run), low), high)


def _offsets(net: _Net, nodes: Sequence[int]) -> list[float]:
    """How far each node of a layer is from the first one, at least."""
    offsets = [0.0] * len(nodes)
    for i in range(1, len(nodes)):
        offsets[i] = offsets[i - 1] + _distance(net, nodes[i - 1], nodes[i])
    return offsets


def _distance(net: _Net, left: int, right: int) -> float:
    """The least distance of the middles of two neighbours in a layer."""
    boxes = int(net.is_box(left)) + int(net.is_box(right))
    gap = EDGE_GAP + (BOX_GAP - EDGE_GAP) * boxes / 2
    return (net.width(left) + net.width(right)) / 2 + gap


def _fit(
    net: _Net, nodes: Sequence[int], x: list[float], sides: Sequence[Sequence[Sequence[int]]]
) -> None:
    """Bring the nodes of a layer as near to their neighbours as order and distances allow.

    With offsets taken off, what is sought is the least-squares fit that never falls: as long as
    the last run of nodes lies left of the one before it, both become one with the common mean.
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


def _pull(net: _Net, u: int, v: int) -> float:
    """How strongly neighbours pull at each other."""
    if net.is_box(u) and net.is_box(v):
        return 1.0
    return BENT if net.is_box(u) or net.is_box(v) else STRAIGHT


def _bands(net: _Net, layers: Sequence[Sequence[int]]) -> tuple[list[float], list[float]]:
    """The upper edge and the height of each layer."""
    top: list[float] = []
    height: list[float] = []
    y = MARGIN
    for nodes in layers:
        tallest = 0.0
        for v in nodes:
            tallest = max(tallest, net.height(v))
        top.append(y)
        height.append(tallest)
        y += tallest + LAYER_GAP
    return top, height


def _routes(
    net: _Net,
    chains: Sequence[Sequence[int]],
    x: Sequence[float],
    middle: Sequence[float],
    top: Sequence[float],
    height: Sequence[float],
) -> list[tuple[Point, ...]]:
    """The points of each edge, downward; those that end at one box reach it side by side."""
    ends: dict[int, list[tuple[float, int]]] = {}
    for number, chain in enumerate(chains):
        if chain:
            ends.setdefault(chain[-1], []).append((x[chain[-2]], number))
    port = [0.0] * len(chains)
    for v, arriving in ends.items():
        arriving.sort()
        gap = min(PORT_GAP, 0.8 * net.width(v) / len(arriving))
        for i, (_, number) in enumerate(arriving):
            port[number] = x[v] + (i - (len(arriving) - 1) / 2) * gap
    routes = []
    for number, chain in enumerate(chains):
        points: list[Point] = []
        if chain:
            first, last = chain[0], chain[-1]
            points.append((x[first], middle[first] + net.height(first) / 2))
            for v in chain[1:-1]:
                above = top[net.layer[v]]
                points += [(x[v], above), (x[v], above + height[net.layer[v]])]
            points.append((port[number], middle[last] - net.height(last) / 2))
        routes.append(tuple(points))
    return routes


def _in_view(
    corners: Sequence[Point],
    routes: Sequence[Sequence[Point]],
    sizes: Sequence[tuple[float, float]],
) -> Layout:
    """The same, moved so that everything lies inside the margin."""
    left, right, bottom = 0.0, 0.0, 0.0
    points = [p for route in routes for p in route]
    if corners:
        left = min(px for px, _ in (*corners, *points))
        right = max(
            *(px + w for (px, _), (w, _) in zip(corners, sizes, strict=True)),
            *(px for px, _ in points), left,
        )  # fmt: skip
        bottom = max(py + h for (_, py), (_, h) in zip(corners, sizes, strict=True))
    shift = MARGIN - left
    return Layout(
        tuple((px + shift, py) for px, py in corners),
        tuple(tuple((px + shift, py) for px, py in route) for route in routes),
        right - left + 2 * MARGIN,
        bottom + MARGIN,
    )
