"""Layout in parallel lanes: values, and beside them their derivatives.

In an upward lane edges point up, as in reverse mode. All lanes share their rows, and a box is not
above its operands in other lanes, so that a derivative is beside the value it belongs to. Edges
within a lane are curves as in `layout`; those between lanes are wires: horizontal in the gaps
between rows, vertical in the gutters between lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from primgraph.view.layouts.layout import (
    LAYER_GAP,
    MARGIN,
    Layout,
    Point,
    bands,
    in_view,
    routes_of,
)
from primgraph.view.layouts.net import Net, levels_of
from primgraph.view.layouts.node_order import order_nodes
from primgraph.view.layouts.node_places import place_nodes

# Distances, in pixels: beside a lane, between wires in a gutter, between wires at one side of a
# box, and between wires in the gap between two rows.
BESIDE = 22.0
WIRE_GAP = 8.0
PIN_GAP = 8.0
LEVEL_GAP = 5.0
# Number of parallel wires in the gap between two rows, before they are reused.
_SIDE_BY_SIDE = 6


@final
@dataclass(frozen=True, slots=True)
class Lane:
    """Horizontal extent of the boxes of a lane, from `left` to `right`."""

    left: float
    right: float


def ladder(
    sizes: Sequence[tuple[float, float]],
    lanes: Sequence[int],
    upward: Sequence[bool],
    edges: Sequence[tuple[int, int]],
    widths: Sequence[float],
) -> tuple[Layout, tuple[Lane, ...]]:
    """Place boxes in lanes, and route the edges; return the layout and the lanes.

    `lanes` has the lane of each box, `upward` the direction of each lane, `widths` the minimum
    width of each. Edges and time are as in `layout`.
    """
    return _Ladder(sizes, lanes, upward, edges, widths).lay_out()


@final
class _Ladder:
    """State of one layout."""

    def __init__(
        self,
        sizes: Sequence[tuple[float, float]],
        lanes: Sequence[int],
        upward: Sequence[bool],
        edges: Sequence[tuple[int, int]],
        widths: Sequence[float],
    ) -> None:
        self.sizes = sizes
        self.lane_of = lanes
        self.edges = edges
        self.widths = widths
        steps = []
        for tail, head in edges:
            if tail != head:
                same = lanes[tail] == lanes[head]
                ends = (head, tail) if same and upward[lanes[tail]] else (tail, head)
                steps.append((*ends, int(same)))
        self.level = levels_of(len(sizes), steps, [upward[n] for n in lanes])
        self.members: list[list[int]] = [[] for _ in upward]
        self.number = [0] * len(sizes)
        for v, n in enumerate(lanes):
            self.number[v] = len(self.members[n])
            self.members[n].append(v)
        self.x = [0.0] * len(sizes)
        self.middle = [0.0] * len(sizes)
        self.routes: list[tuple[Point, ...]] = [()] * len(edges)

    def lay_out(self) -> tuple[Layout, tuple[Lane, ...]]:
        nets, chains, wires = self._nets()
        orders = [order_nodes(net) for net in nets]
        self.top, self.height = bands(nets, orders)
        for v, n in enumerate(self.level):
            self.middle[v] = self.top[n] + self.height[n] / 2
        self.ends = self._ends(nets, orders)
        gutters = self._gutters(wires)
        lanes = []
        right = 0.0
        for n, (net, order) in enumerate(zip(nets, orders, strict=True)):
            left = right + self._gutter_width(gutters[n])
            right = self._place(n, net, order, chains[n], left)
            lanes.append(Lane(left, right))
        self._wire(wires, gutters, lanes)
        corners = [
            (self.x[v] - w / 2, self.middle[v] - h / 2) for v, (w, h) in enumerate(self.sizes)
        ]
        plan = in_view(corners, self.routes, self.sizes, frozenset(wires))
        shift = plan.corners[0][0] - corners[0][0] if corners else 0.0
        return plan, tuple(Lane(lane.left + shift, lane.right + shift) for lane in lanes)

    def _nets(self) -> tuple[list[Net], list[dict[int, tuple[list[int], bool]]], list[int]]:
        """Return the net of each lane with the chains of its edges, and the edges that are
        wires."""
        nets = []
        for members in self.members:
            sizes = [self.sizes[v] for v in members]
            nets.append(Net(sizes, [self.level[v] for v in members]))
        chains: list[dict[int, tuple[list[int], bool]]] = [{} for _ in nets]
        wires = []
        for i, (tail, head) in enumerate(self.edges):
            n, back = self.lane_of[tail], self.level[tail] > self.level[head]
            if n != self.lane_of[head] or (tail != head and self.level[tail] == self.level[head]):
                wires.append(i)
            elif tail != head:
                upper, lower = (head, tail) if back else (tail, head)
                chain = nets[n].chain(self.number[upper], self.number[lower], back)
                chains[n][i] = (chain, back)
        return nets, chains, wires

    def _place(
        self,
        n: int,
        net: Net,
        order: Sequence[Sequence[int]],
        chains: dict[int, tuple[list[int], bool]],
        left: float,
    ) -> float:
        """Place the boxes of lane `n`, route its edges from `left` on, and return its right end."""
        x = place_nodes(net, order)
        ends = [(x[v] - net.width(v) / 2, x[v] + net.width(v) / 2) for v in range(len(x))]
        least = min((a for a, _ in ends), default=0.0)
        width = max((b for _, b in ends), default=0.0) - least
        shift = left - least + max(self.widths[n] - width, 0.0) / 2
        x = [v + shift for v in x]
        middle = [self.middle[v] for v in self.members[n]]
        for v, place in zip(self.members[n], x, strict=False):
            self.x[v] = place
        plans = routes_of(net, [c for c, _ in chains.values()], x, middle, self.top, self.height)
        for (i, (_, back)), route in zip(chains.items(), plans, strict=True):
            self.routes[i] = route[::-1] if back else route
        return left + max(width, self.widths[n])

    # Wires.

    def _ends(
        self, nets: Sequence[Net], orders: Sequence[Sequence[Sequence[int]]]
    ) -> set[tuple[int, int]]:
        """Return boxes with the sides, -1 or 1, on which nothing else is in their row of the
        lane."""
        found = set()
        for members, net, order in zip(self.members, nets, orders, strict=True):
            for nodes in filter(None, order):
                for v, side in ((nodes[0], -1), (nodes[-1], 1)):
                    if net.is_box(v):
                        found.add((members[v], side))
        return found

    def _direction(self, i: int) -> int:
        tail, head = self.edges[i]
        return 1 if self.lane_of[tail] <= self.lane_of[head] else -1

    def _sides(self, i: int) -> tuple[int, int]:
        """Return the sides at which a wire leaves its tail and reaches its head."""
        tail, head = self.edges[i]
        way = self._direction(i)
        return way, 1 if self.lane_of[tail] == self.lane_of[head] else -way

    def _gutters_of(self, i: int) -> tuple[int, int]:
        """Return the gutters that a wire leaves into and arrives from; gutter n is left of lane
        n."""
        tail, head = self.edges[i]
        out, into = self._sides(i)
        return self.lane_of[tail] + (out > 0), self.lane_of[head] + (into > 0)

    def _gutters(self, wires: Sequence[int]) -> list[list[int]]:
        """Return the tails whose wires run in each gutter, from left to right.

        Downward wires from higher boxes are further right, and so are upward wires from lower
        boxes: then they do not cross.
        """
        found: list[dict[int, float]] = [{} for _ in range(len(self.members) + 1)]
        for i in wires:
            tail, head = self.edges[i]
            start, end = self.middle[tail], self.middle[head]
            for gutter in self._gutters_of(i):
                found[gutter].setdefault(tail, start if end < start else -start)
        return [sorted(tails, key=lambda v, t=tails: (t[v], v)) for tails in found]  # type: ignore[misc]

    def _gutter_width(self, tails: Sequence[int]) -> float:
        return 2 * BESIDE + WIRE_GAP * max(len(tails) - 1, 0)

    def _wire(
        self, wires: Sequence[int], gutters: Sequence[Sequence[int]], lanes: Sequence[Lane]
    ) -> None:
        """Route the edges that are wires."""
        lefts = [0.0, *(lane.right for lane in lanes)]
        upright = {
            (n, tail): lefts[n] + BESIDE + k * WIRE_GAP
            for n, tails in enumerate(gutters)
            for k, tail in enumerate(tails)
        }
        pins = self._pins(wires)
        for i in wires:
            tail, _ = self.edges[i]
            first, last = self._gutters_of(i)
            into, arriving = self._arrival(i, pins[i])
            out, level = self._start(i, arriving if first == last else None)
            points = [*out, (upright[first, tail], level)]
            if first != last:
                between = self._gap(self.level[self.edges[i][1]] - 1, tail)
                points += [(upright[first, tail], between), (upright[last, tail], between)]
            points += [(upright[last, tail], arriving), *into]
            self.routes[i] = _remove_detours(points)

    def _pins(self, wires: Sequence[int]) -> dict[int, float]:
        """Return the offset of each wire from the middle of the side at which it reaches its
        head."""
        reaching: dict[tuple[int, int], list[int]] = {}
        for i in wires:
            reaching.setdefault((self.edges[i][1], self._sides(i)[1]), []).append(i)
        found = {}
        for (head, _), numbers in reaching.items():
            numbers.sort(key=lambda i: (self.middle[self.edges[i][0]], i))
            gap = min(PIN_GAP, 0.7 * self.sizes[head][1] / len(numbers))
            for k, i in enumerate(numbers):
                found[i] = (k - (len(numbers) - 1) / 2) * gap
        return found

    def _start(self, i: int, arriving: float | None) -> tuple[list[Point], float]:
        """Return the first points of a wire, and its height when it reaches its gutter.

        If possible, it starts at the height at which it arrives, so that it is straight.
        """
        tail, _ = self.edges[i]
        side = self._sides(i)[0]
        x, (width, height) = self.x[tail], self.sizes[tail]
        if (tail, side) in self.ends:
            level = self.middle[tail]
            if arriving is not None and abs(arriving - level) < height / 3:
                level = arriving
            return [(x + side * width / 2, level)], level
        level = self._gap(self.level[tail], tail)
        place = x + side * width / 4
        return [(place, self.middle[tail] + height / 2), (place, level)], level

    def _arrival(self, i: int, pin: float) -> tuple[list[Point], float]:
        """Return the last points of a wire, and its height when it leaves its gutter."""
        tail, head = self.edges[i]
        side = self._sides(i)[1]
        x, (width, height) = self.x[head], self.sizes[head]
        if (head, side) in self.ends:
            return [(x + side * width / 2, self.middle[head] + pin)], self.middle[head] + pin
        level = self._gap(self.level[head] - 1, tail)
        place = x + side * width / 4 + pin
        return [(place, level), (place, self.middle[head] - height / 2)], level

    def _gap(self, level: int, tail: int) -> float:
        """Return the height of a wire below the row `level`."""
        shift = (tail % _SIDE_BY_SIDE - (_SIDE_BY_SIDE - 1) / 2) * LEVEL_GAP
        if level < 0:
            return MARGIN - LAYER_GAP / 2 + shift
        return self.top[level] + self.height[level] + LAYER_GAP / 2 + shift


def _remove_detours(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return the corners without points on a straight line between neighbours."""
    kept: list[Point] = []
    for point in points:
        if kept and kept[-1] == point:
            continue
        if len(kept) > 1 and any(kept[-2][k] == kept[-1][k] == point[k] for k in (0, 1)):
            kept.pop()
        kept.append(point)
    return tuple(kept)
