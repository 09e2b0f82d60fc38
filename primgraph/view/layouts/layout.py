"""Layered layout of boxes and edges, from top to bottom.

The steps are those of Sugiyama, Tagawa and Toda (1981). Edges against the flow are reversed, boxes
are assigned to layers, and long edges become chains of dummy nodes. Sweeps over the layers move
each node near the mean position of its neighbours, and coordinates come last.

Everything is plain arithmetic on lists in fixed order: the same input gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, final

from primgraph.view.layouts.net import Net, flow_of, layers_of
from primgraph.view.layouts.node_order import order_nodes
from primgraph.view.layouts.node_places import place_nodes

Point: TypeAlias = tuple[float, float]

# Distances, in pixels: between layers, at the margin, and between arrows that reach a box.
LAYER_GAP = 46.0
MARGIN = 16.0
PORT_GAP = 14.0


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """Upper left corner of each box, points of each edge, and total size.

    An edge curves from its first point to the second, runs straight to the third, curves to the
    fourth, and so on; curves leave and arrive vertically. An edge from a box to itself has no
    points. Edges numbered in `wires` are straight between points, horizontal or vertical.
    """

    corners: tuple[Point, ...]
    routes: tuple[tuple[Point, ...], ...]
    width: float
    height: float
    wires: frozenset[int] = frozenset()

    def move_down(self, by: float) -> Layout:
        """Return the layout moved down by `by`."""
        return replace(
            self,
            corners=tuple((x, y + by) for x, y in self.corners),
            routes=tuple(tuple((x, y + by) for x, y in r) for r in self.routes),
            height=self.height + by,
        )

    def widen_to(self, least: float) -> Layout:
        """The same in the middle of at least this width."""
        by = (least - self.width) / 2
        if by <= 0:
            return self
        return replace(
            self,
            corners=tuple((x + by, y) for x, y in self.corners),
            routes=tuple(tuple((x + by, y) for x, y in r) for r in self.routes),
            width=least,
        )

    def flip_vertically(self, sizes: Sequence[tuple[float, float]]) -> Layout:
        """Return the layout upside down; `sizes` are those of the boxes."""
        pairs = zip(self.corners, sizes, strict=True)
        return replace(
            self,
            corners=tuple((x, self.height - y - h) for (x, y), (_, h) in pairs),
            routes=tuple(tuple((x, self.height - y) for x, y in r) for r in self.routes),
        )


def layout(
    sizes: Sequence[tuple[float, float]],
    edges: Sequence[tuple[int, int]],
    layers: Sequence[int] | None = None,
) -> Layout:
    """Place boxes of these widths and heights, and route the edges between them.

    An edge is a pair of tail and head, as positions in `sizes`. Edges point down, except for those
    reversed to break a cycle. `layers` fixes the layer of each box, the highest first: no layer is
    empty, and every edge leads to a later one. Takes n log n time in boxes and dummy nodes.
    """
    flow = flow_of(len(sizes), edges)
    rank = [0] * len(sizes)
    for place, v in enumerate(flow):
        rank[v] = place
    turned = [rank[tail] > rank[head] for tail, head in edges]
    downward = [(h, t) if back else (t, h) for (t, h), back in zip(edges, turned, strict=True)]
    net = Net(sizes, layers_of(flow, downward) if layers is None else list(layers))
    chains = [net.chain(u, v, back) for (u, v), back in zip(downward, turned, strict=True)]
    order = order_nodes(net)
    x = place_nodes(net, order)
    top, height = bands([net], [order])
    middle = [top[net.layer[v]] + height[net.layer[v]] / 2 for v in range(len(sizes))]
    routes = routes_of(net, chains, x, middle, top, height)
    routes = [r[::-1] if back else r for r, back in zip(routes, turned, strict=True)]
    corners = [(x[v] - w / 2, middle[v] - h / 2) for v, (w, h) in enumerate(sizes)]
    return in_view(corners, routes, sizes)


def bands(
    nets: Sequence[Net], orders: Sequence[Sequence[Sequence[int]]]
) -> tuple[list[float], list[float]]:
    """Return the upper edge and the height of each layer, common to the nets."""
    count = max((len(layers) for layers in orders), default=0)
    height = [0.0] * count
    for net, layers in zip(nets, orders, strict=True):
        for n, nodes in enumerate(layers):
            for v in nodes:
                height[n] = max(height[n], net.height(v))
    top: list[float] = []
    y = MARGIN
    for tallest in height:
        top.append(y)
        y += tallest + LAYER_GAP
    return top, height


def routes_of(
    net: Net,
    chains: Sequence[Sequence[int]],
    x: Sequence[float],
    middle: Sequence[float],
    top: Sequence[float],
    height: Sequence[float],
) -> list[tuple[Point, ...]]:
    """Return the points of each edge, downward; edges to one box arrive side by side."""
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
            begin = middle[first] + net.height(first) / 2
            bottom = top[net.layer[first]] + height[net.layer[first]]
            points += _upright(x[first], begin, bottom)
            for v in chain[1:-1]:
                above = top[net.layer[v]]
                points += [(x[v], above), (x[v], above + height[net.layer[v]])]
            end = middle[last] - net.height(last) / 2
            points += _upright(port[number], end, top[net.layer[last]])[::-1]
        routes.append(tuple(points))
    return routes


def _upright(x: float, end: float, edge: float) -> list[Point]:
    """Return the points from a box to the edge of its layer: one where these are near each other.

    Beside much higher boxes an edge runs upright, and curves in the gap between layers alone. The
    point at the edge is there twice, so that curves and straight lines still alternate.
    """
    return [(x, end)] if abs(edge - end) < LAYER_GAP / 2 else [(x, end), (x, edge), (x, edge)]


def in_view(
    corners: Sequence[Point],
    routes: Sequence[Sequence[Point]],
    sizes: Sequence[tuple[float, float]],
    wires: frozenset[int] = frozenset(),
) -> Layout:
    """Return the layout, moved so that everything is inside the margin."""
    points = [p for route in routes for p in route]
    ends = [(px + w, py + h) for (px, py), (w, h) in zip(corners, sizes, strict=True)]
    everything = [*corners, *ends, *points]
    left = min((x for x, _ in everything), default=0.0)
    right = max((x for x, _ in everything), default=0.0)
    upper = min((y for _, y in everything), default=MARGIN)
    bottom = max((y for _, y in everything), default=0.0)
    dx, dy = MARGIN - left, max(MARGIN - upper, 0.0)
    return Layout(
        tuple((x + dx, y + dy) for x, y in corners),
        tuple(tuple((x + dx, y + dy) for x, y in route) for route in routes),
        right - left + 2 * MARGIN,
        bottom + dy + MARGIN,
        wires,
    )
