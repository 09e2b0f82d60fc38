"""Pictures as self-contained SVG, readable on light and dark backgrounds."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import final

from primgraph.base.plain_text import escape_html, plain, shorten_text, width_of
from primgraph.view.folding import Node, first_kind, open_groups, tree_of
from primgraph.view.layers import Part, part_title
from primgraph.view.layouts.layout import Point
from primgraph.view.picture import Picture
from primgraph.view.scene import (
    LABEL_SIZE,
    NOTE_SIZE,
    STACK,
    TITLE,
    Column,
    Port,
    Scene,
    scene_of,
)
from primgraph.view.shades import DARK, LIGHT, PARTS, paint, shade_of, styles_of

# Default maximum number of boxes.
SHOWN = 60
_MOST_TYPES = 8
_CORNER, _ROUND = 9.0, 7.0
_LEGEND = 34.0
# The colour for time, vermilion of Okabe and Ito, and its share in the hottest box.
_WARM, _WARMEST = "#d55e00", 0.7


def to_svg(
    picture: Picture,
    *,
    limit: int = SHOWN,
    loops: bool | None = None,
    operators: bool = False,
    equations: int | None = None,
) -> str:
    """The drawing of `picture`; groups are unfolded level by level while `limit` boxes are enough.

    `loops` and `operators` tell whether the bodies of loops, and what operators became, are open.

    Parts stand side by side, and reverse mode runs upward beside what it is the derivative of.
    Colour and outline tell the parts apart; the colours follow what the viewer prefers, light or
    dark. Each box has a title with its equation and the user's line. Where times are known, boxes
    tell their share of the time, and the warmer they are the greater it is. `equations` is the
    number of equations of a picture whose boxes stand for groups.
    """
    root = tree_of(picture, first_kind(picture))
    unfolded = open_groups(root, limit, loops, operators)
    drawing = _Drawing(picture, root, unfolded, scene_of(picture, root, unfolded), equations)
    drawing.draw()
    body, (width, height) = drawing.body, drawing.size
    legend, least = _legend(drawing.shown, drawing.summary, height)
    title = f"{plain(picture.title)}: {drawing.summary}"
    columns = drawing.scene.insides[root].columns
    derived = {(c.part, c.order) for c in columns} | {(n.part, n.order) for n in drawing.drawn}
    size = max(width, least), height + _LEGEND
    return document([*body, *legend], *size, title, sorted(derived))


@final
class _Drawing:
    """Builder of the elements of one drawing."""

    def __init__(
        self,
        picture: Picture,
        root: Node,
        unfolded: Collection[Node],
        scene: Scene,
        equations: int | None,
    ) -> None:
        self.picture = picture
        self.equations = equations
        self.root = root
        self.unfolded = unfolded
        self.scene = scene
        self.size = scene.insides[root].plan.width, scene.insides[root].plan.height
        self.body: list[str] = []
        # All nodes, and those that are not open.
        self.drawn: list[Node] = []
        self.shown: list[Node] = []
        self.hottest = 0.0

    @property
    def summary(self) -> str:
        """How many equations there are, and by what they are folded."""
        if self.equations is not None:
            return f"{self.equations} equations, folded"
        count = sum(b.part not in ("input", "output") for b in self.picture.boxes)
        text = f"{count} equation{'' if count == 1 else 's'}"
        shut = [n for n in self.shown if n.children]
        kind = next((n.kind for n in shut if n.kind != "run"), "run") if shut else ""
        return f"{text}, folded by {kind}" if kind else text

    def draw(self) -> None:
        """Draw all visible nodes, frames before their content."""
        waiting = [(self.root, 0.0, 0.0)]
        places: list[tuple[Node, float, float]] = []
        while waiting:
            group, left, top = waiting.pop()
            inside = self.scene.insides[group]
            for child, (x, y) in zip(group.children, inside.plan.corners, strict=False):
                places.append((child, left + x, top + y))
                if child in self.unfolded:
                    waiting.append((child, left + x, top + y + TITLE))
        self.drawn = [n for n, _, _ in places]
        self.shown = [n for n in self.drawn if n not in self.unfolded]
        self.hottest = max((n.heat or 0.0 for n in self.shown), default=0.0)
        for column in self.scene.insides[self.root].columns:
            self.body.append(_heading(column, self.size[1]))
        self._inside(self.root, 0.0, 0.0)
        for node, x, y in places:
            if node in self.unfolded:
                width, height = self.scene.insides[node].size
                self.body.append(_frame(node, x, y, width, height))
                self._inside(node, x, y + TITLE)
        for node, x, y in places:
            if node not in self.unfolded:
                self.body.append(self._box(node, x, y))

    def _inside(self, group: Node, left: float, top: float) -> None:
        """Draw the arrows and ports of a group."""
        inside = self.scene.insides[group]
        plan = inside.plan
        for i, (edge, route) in enumerate(zip(inside.edges, plan.routes, strict=True)):
            if route:
                moved = [(x + left, y + top) for x, y in route]
                self.body.append(arrow(moved, edge.labels, i in plan.wires))
        corners = plan.corners[len(group.children) :]
        for port, (x, y) in zip(inside.ports, corners, strict=True):
            self.body.append(_port(port, x + left, y + top))

    def _box(self, node: Node, x: float, y: float) -> str:
        face = self.scene.faces[node]
        width, height = face.size
        shapes = []
        if node.children:
            width, height = width - STACK, height - STACK
            shapes = [outline(node.part, x + d, y + d, width, height) for d in (STACK, STACK / 2)]
        shapes.append(outline(node.part, x, y, width, height))
        if node.heat is not None and self.hottest > 0:
            share = _WARMEST * math.sqrt(node.heat / self.hottest)
            style = f'class="warm" fill-opacity="{number(share)}"'
            shapes.append(outline(node.part, x, y, width, height, style))
        if node.order > 1:
            shapes.append(label_text("note right", x + width - 9, y + 12, _order(node.order)))
        small = "note" if node.heat is None else "note ink"
        return (
            f'<g class="{styles_of(node.part, node.order)}"><title>{self._tooltip(node)}</title>'
            f"{''.join(shapes)}"
            f"{label_text('label', x + width / 2, y + 18, face.label)}"
            f"{label_text(small, x + width / 2, y + 33, face.note)}</g>"
        )

    def _tooltip(self, node: Node) -> str:
        """Return the tooltip of a box."""
        if node.children:
            return (
                escape_html(f"{node.label}: {len(node.boxes)} boxes")
                + f"\n{escape_html(node.note)}"
            )
        details = self.picture.boxes[node.boxes[0]].details
        found = "\n".join(escape_html(text) for _, text in details)
        return found or escape_html(f"{node.label} {node.note}")


def _heading(column: Column, height: float) -> str:
    """Return the name of a part above its lane, and a line in its colour."""
    lane = column.lane
    x = (lane.left + lane.right) / 2
    text = part_title(column.part, column.order)
    return (
        f'<g class="{styles_of(column.part, column.order)} column">'
        f'<rect class="lane" x="{number(lane.left - 12)}" y="4" '
        f'width="{number(lane.right - lane.left + 24)}" height="{number(height - 8)}" rx="10"/>'
        f"{label_text('heading', x, 22, text)}</g>"
    )


def _frame(node: Node, x: float, y: float, width: float, height: float) -> str:
    """Return the frame of an open group, with its title."""
    title = shorten_text(plain(node.label), max(int((width - 16) / 9), 2))
    return (
        f'<g class="{styles_of(node.part, node.order)} open">'
        f'<rect class="border" x="{number(x)}" y="{number(y)}" '
        f'width="{number(width)}" height="{number(height)}" rx="8"/>'
        f"{label_text('title left', x + 10, y + 17, title)}</g>"
    )


def _port(port: Port, x: float, y: float) -> str:
    """Return the port at which values enter a group, or the dot at which they leave it."""
    width, height = port.size
    shape = (
        f'<rect class="port" x="{number(x)}" y="{number(y)}" width="{number(width)}" '
        f'height="{number(height)}" rx="{number(height / 2)}"/>'
    )
    if not port.label:
        return f'<g class="end">{shape}</g>'
    return f'<g class="end">{shape}{label_text("note", x + width / 2, y + 12.5, port.label)}</g>'


def _order(order: int) -> str:
    """Return the sign of a derivative of that order."""
    return "∂" + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(order))


def document(
    body: Iterable[str], width: float, height: float, title: str, parts: Iterable[Part] = ()
) -> str:
    """Return an SVG file of this size with the styles of pictures, and `body` on paper.

    There are styles for the first order of each part, and for those in `parts`.
    """
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="primgraph" role="img" '
        f'width="{number(width)}" height="{number(height)}" '
        f'viewBox="0 0 {number(width)} {number(height)}">'
    )
    paper = f'<rect class="paper" width="{number(width)}" height="{number(height)}"/>'
    lines = [head, f"<title>{escape_html(title)}</title>", f"<style>{_style(parts)}</style>", paper]
    return "\n".join([*lines, *body, "</svg>", ""])


def number(value: float) -> str:
    """Format a coordinate, to a hundredth of a pixel."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _style(parts: Iterable[Part]) -> str:
    """The rules; every selector begins with the class, for the file may stand inside a page."""
    fixed = (
        ".primgraph text{text-anchor:middle}"
        f".primgraph .label{{font:600 {LABEL_SIZE:g}px system-ui,sans-serif}}"
        f".primgraph .note{{font:{NOTE_SIZE:g}px ui-monospace,monospace}}"
        ".primgraph .left{text-anchor:start}.primgraph .right{text-anchor:end}"
        ".primgraph .frame{fill:none;stroke-width:1}.primgraph .grid{stroke-opacity:.45}"
        ".primgraph .curve{fill:none;stroke-width:2}"
        ".primgraph .arrow{fill:none;stroke-width:1.3}"
        ".primgraph .wire{stroke-width:1;stroke-opacity:.75}"
        ".primgraph .shape{stroke-width:1.5}"
        f".primgraph .heading,.primgraph .title{{font:600 {LABEL_SIZE:g}px system-ui,sans-serif}}"
        ".primgraph .border{stroke-width:1;stroke-opacity:.6}"
        ".primgraph .port{stroke-width:1}"
        f".primgraph .warm{{fill:{_WARM}}}"
        ".primgraph .constant .shape{stroke-dasharray:4 3}"
        ".primgraph .tangent .shape{stroke-dasharray:8 3}"
        ".primgraph .output .shape{stroke-width:2.6}"
    )
    shades = sorted({(part, shade_of(order)) for part, order in parts if order > 1})
    painted = [*((part, 1) for part in PARTS), *shades]
    light, dark = _colours(LIGHT, painted), _colours(DARK, painted)
    return f"{fixed}{light}@media (prefers-color-scheme:dark){{{dark}}}"


def _colours(colours: dict[str, str], painted: Iterable[Part]) -> str:
    fills = {
        "paper": "paper",
        "label": "ink",
        "note": "muted",
        "ink": "ink",
        "tip": "arrow",
        "dot": "forward",
    }
    strokes = {"arrow": "arrow", "frame": "arrow", "grid": "arrow", "curve": "forward"}
    rules = [f".primgraph .{style}{{fill:{colours[name]}}}" for style, name in fills.items()]
    rules += [f".primgraph .{style}{{stroke:{colours[name]}}}" for style, name in strokes.items()]
    for part, order in painted:
        own = f".primgraph .{styles_of(part, order).replace(' ', '.')}"
        stroke, fill, lane = paint(part, order, colours)
        rules.append(f"{own} .shape{{fill:{fill};stroke:{stroke}}}")
        rules.append(f"{own} .lane{{fill:{lane}}}")
        rules.append(f"{own} .heading,{own} .title{{fill:{stroke}}}")
        rules.append(f"{own} .border{{fill:{colours['paper']};stroke:{stroke}}}")
        if order > 1:
            rules.append(f"{own} .note{{fill:{colours['ink']}}}")
    rules.append(f".primgraph .port{{fill:{colours['paper']};stroke:{colours['arrow']}}}")
    return "".join(rules)


def label_text(style: str, x: float, y: float, text: str) -> str:
    """Return text in one of the styles, with its base line at `y`."""
    return f'<text class="{style}" x="{number(x)}" y="{number(y)}">{escape_html(text)}</text>'


def outline(part: str, x: float, y: float, w: float, h: float, style: str = 'class="shape"') -> str:
    """Return the outline: round ends, cut corners, notched ends, or a plain rectangle."""
    a = min(_CORNER, h / 3)
    if part == "tangent":
        points = [(a, 0), (w - a, 0), (w, a), (w, h - a), (w - a, h), (a, h), (0, h - a), (0, a)]
    elif part == "update":
        points = [(0, 0), (w, 0), (w, h - a), (w - a, h), (a, h), (0, h - a)]
    elif part == "cotangent":
        points = [(0, 0), (w, 0), (w - a, h / 2), (w, h), (0, h), (a, h / 2)]
    else:
        radius = h / 2 if part in ("input", "output") else 4
        return (
            f'<rect {style} x="{number(x)}" y="{number(y)}" width="{number(w)}" '
            f'height="{number(h)}" rx="{number(radius)}"/>'
        )
    joined = " ".join(f"{number(x + px)},{number(y + py)}" for px, py in points)
    return f'<polygon {style} points="{joined}"/>'


def arrow(route: Sequence[Point], labels: Sequence[str], wire: bool) -> str:
    """Return a line with an arrowhead; the line ends a little before its tip."""
    (px, py), (x, y) = route[-2:]
    dx, dy = _sign(x - px) if wire else 0.0, _sign(y - py)
    if dx:
        dy = 0.0
    end = (x - 6 * dx, y - 6 * dy)
    path = _wire([*route[:-1], end]) if wire else _curve([*route[:-1], end])
    corners = [(x, y), (x - 7 * dx - 3.5 * dy, y - 7 * dy - 3.5 * dx)]
    corners.append((x - 7 * dx + 3.5 * dy, y - 7 * dy + 3.5 * dx))
    tip = " ".join(f"{number(a)},{number(b)}" for a, b in corners)
    told = ", ".join(list(dict.fromkeys(labels))[:_MOST_TYPES])
    return (
        f'<g><title>{escape_html(told)}</title><path class="arrow{" wire" if wire else ""}" '
        f'd="{path}"/><polygon class="tip" points="{tip}"/></g>'
    )


def _sign(value: float) -> float:
    return float(value > 0) - float(value < 0)


def _curve(points: Sequence[Point]) -> str:
    """Return the path that curves to the second point, runs straight to the third, and so on."""
    steps = [f"M{number(points[0][0])} {number(points[0][1])}"]
    for i, ((px, py), (qx, qy)) in enumerate(pairwise(points)):
        half = number((py + qy) / 2)
        curve = f"C{number(px)} {half} {number(qx)} {half} "
        steps.append(f"{'L' if i % 2 else curve}{number(qx)} {number(qy)}")
    return "".join(steps)


def _wire(points: Sequence[Point]) -> str:
    """Return the path that is straight between points, with round corners."""
    steps = [f"M{number(points[0][0])} {number(points[0][1])}"]
    for (ax, ay), (x, y), (bx, by) in zip(points, points[1:], points[2:], strict=False):
        before, after = abs(x - ax) + abs(y - ay), abs(bx - x) + abs(by - y)
        r = min(_ROUND, before / 2, after / 2)
        into = (x - r * _sign(x - ax), y - r * _sign(y - ay))
        out = (x + r * _sign(bx - x), y + r * _sign(by - y))
        steps.append(f"L{number(into[0])} {number(into[1])}")
        steps.append(f"Q{number(x)} {number(y)} {number(out[0])} {number(out[1])}")
    return "".join(steps) + f"L{number(points[-1][0])} {number(points[-1][1])}"


def _legend(shown: Sequence[Node], summary: str, top: float) -> tuple[list[str], float]:
    """Return the legend of the outlines in use with the summary, and its width."""
    x, y = 16.0, top + 4
    drawn = []
    kinds = {(n.part, max(n.order, 1)) for n in shown}
    for part, order in sorted(kinds, key=lambda kind: (PARTS.index(kind[0]), kind[1])):
        title = part_title(part, order)
        drawn.append(f'<g class="{styles_of(part, order)}">{outline(part, x, y, 26, 14)}</g>')
        drawn.append(label_text("note left", x + 32, y + 11, title))
        x += 32 + width_of(title, NOTE_SIZE, fixed=True) + 18
    text = summary
    if any(n.heat for n in shown):
        text = f"{text}; the warmer, the larger the share of the time"
    drawn.append(label_text("note left", x, y + 11, text))
    return drawn, x + width_of(text, NOTE_SIZE, fixed=True) + 16
