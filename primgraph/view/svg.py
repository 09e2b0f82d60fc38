"""A picture as SVG: one file that needs nothing else, readable on light and on dark ground."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence

from primgraph.figures import percent
from primgraph.view.folding import LIMIT, folded, shut_groups
from primgraph.view.layout import Point, layout
from primgraph.view.picture import Box, Picture
from primgraph.view.plain import plain, shortened, width_of

LABEL_SIZE, NOTE_SIZE = 13.0, 11.0
HEIGHT = 42.0
NARROWEST, PADDING = 56.0, 28.0
_MOST_LABEL, _MOST_NOTE = 34, 40
_CORNER = 9.0
_LEGEND = 34.0
# The colour of what takes time, vermilion of Okabe and Ito, and how much of it the hottest box has.
_WARM, _WARMEST = "#d55e00", 0.7

PARTS = ("input", "constant", "forward", "tangent", "cotangent", "output", "mixed")

# Paper, ink, muted ink and arrows, and a colour for each part: forward, tangent and cotangent are
# blue, orange and bluish green of Okabe and Ito (2008), darker where they stand on white.
_LIGHT = {
    "paper": "#ffffff", "ink": "#1b1f24", "muted": "#57606a", "arrow": "#8c959f",
    "input": "#57606a", "constant": "#8c959f", "forward": "#0072b2", "tangent": "#b86e00",
    "cotangent": "#00835f", "output": "#1b1f24", "mixed": "#57606a",
}  # fmt: skip
_DARK = {
    "paper": "#0f1318", "ink": "#e6edf3", "muted": "#9aa5b1", "arrow": "#66717d",
    "input": "#9aa5b1", "constant": "#7d8894", "forward": "#56b4e9", "tangent": "#e69f00",
    "cotangent": "#2fc79b", "output": "#e6edf3", "mixed": "#9aa5b1",
}  # fmt: skip
_TINT_ON_LIGHT, _TINT_ON_DARK = 0.09, 0.15


def to_svg(picture: Picture, *, limit: int = LIMIT) -> str:
    """The drawing of `picture`; groups are shut where it has more boxes than `limit`.

    Colour and outline tell the parts apart; the colours follow what the viewer prefers, light or
    dark. Each box has a title with its equation and the user's line. Where times are known, boxes
    tell their share of the time, and the warmer they are the greater it is.
    """
    shown = folded(picture, shut_groups(picture, limit))
    hottest = max((box.heat or 0.0 for box in shown.boxes), default=0.0)
    faces = [_face(box) for box in shown.boxes]
    edges = [(a.tail, a.head) for a in shown.arrows]
    plan = layout([(width, HEIGHT) for _, _, width in faces], edges)
    body = []
    for arrow, route in zip(shown.arrows, plan.routes, strict=True):
        body += [_arrow(route, arrow.label)] if route else []
    for box, face, corner in zip(shown.boxes, faces, plan.corners, strict=True):
        body.append(_box(box, face, corner, hottest))
    legend, width = _legend(picture, shown, plan.height)
    title = f"{plain(picture.title)}: {_summary(picture, shown)}"
    return document([*body, *legend], max(plan.width, width), plan.height + _LEGEND, title)


def document(body: Iterable[str], width: float, height: float, title: str) -> str:
    """An SVG file of this size with the styles of pictures, and `body` on paper."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="primgraph" role="img" '
        f'width="{number(width)}" height="{number(height)}" '
        f'viewBox="0 0 {number(width)} {number(height)}">'
    )
    paper = f'<rect class="paper" width="{number(width)}" height="{number(height)}"/>'
    lines = [head, f"<title>{escaped(title)}</title>", f"<style>{_style()}</style>", paper]
    return "\n".join([*lines, *body, "</svg>", ""])


def escaped(text: str) -> str:
    """`text` as the content of an element or an attribute; the one way that text comes in."""
    return html.escape(plain(text))


def number(value: float) -> str:
    """A coordinate, to a hundredth of a pixel."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _style() -> str:
    """The rules; every selector begins with the class, for the file may stand inside a page."""
    fixed = (
        ".primgraph text{text-anchor:middle}"
        f".primgraph .label{{font:600 {LABEL_SIZE:g}px system-ui,sans-serif}}"
        f".primgraph .note{{font:{NOTE_SIZE:g}px ui-monospace,monospace}}"
        ".primgraph .left{text-anchor:start}.primgraph .right{text-anchor:end}"
        ".primgraph .frame{fill:none;stroke-width:1}.primgraph .grid{stroke-opacity:.45}"
        ".primgraph .curve{fill:none;stroke-width:2}"
        ".primgraph .arrow{fill:none;stroke-width:1.3}"
        ".primgraph .shape{stroke-width:1.5}"
        f".primgraph .warm{{fill:{_WARM}}}"
        ".primgraph .constant .shape{stroke-dasharray:4 3}"
        ".primgraph .tangent .shape{stroke-dasharray:8 3}"
        ".primgraph .output .shape{stroke-width:2.6}"
    )
    light, dark = _colours(_LIGHT, _TINT_ON_LIGHT), _colours(_DARK, _TINT_ON_DARK)
    return f"{fixed}{light}@media (prefers-color-scheme:dark){{{dark}}}"


def _colours(colours: dict[str, str], tint: float) -> str:
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
    for part in PARTS:
        fill = _mixed(colours[part], colours["paper"], tint)
        rules.append(f".primgraph .{part} .shape{{fill:{fill};stroke:{colours[part]}}}")
    return "".join(rules)


def _mixed(colour: str, ground: str, share: float) -> str:
    """So much of a colour on a ground, both as #rrggbb."""
    pairs = [(int(colour[i : i + 2], 16), int(ground[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(share * a + (1 - share) * b):02x}" for a, b in pairs)


def _face(box: Box) -> tuple[str, str, float]:
    """The two lines of text in a box, and its width."""
    label = shortened(plain(box.label), _MOST_LABEL)
    note = shortened(plain(box.note if box.heat is None else percent(box.heat)), _MOST_NOTE)
    text = max(width_of(label, LABEL_SIZE), width_of(note, NOTE_SIZE, fixed=True))
    return label, note, max(NARROWEST, float(int(text + PADDING)))


def _box(box: Box, face: tuple[str, str, float], corner: Point, hottest: float) -> str:
    label, note, width = face
    x, y = corner
    shapes = [_shape(box.part, x, y, width, HEIGHT)]
    if box.details and box.details[0][0] == "group":
        shapes = [_shape(box.part, x + d, y + d, width, HEIGHT) for d in (6, 3)] + shapes
    if box.heat is not None and hottest > 0:
        share = _WARMEST * math.sqrt(box.heat / hottest)
        style = f'class="warm" fill-opacity="{number(share)}"'
        shapes.append(_shape(box.part, x, y, width, HEIGHT, style))
    small = "note" if box.heat is None else "note ink"
    told = "\n".join(escaped(text) for _, text in box.details) or escaped(f"{box.label} {box.note}")
    return (
        f'<g class="{box.part}"><title>{told}</title>{"".join(shapes)}'
        f"{label_text('label', x + width / 2, y + 18, label)}"
        f"{label_text(small, x + width / 2, y + 33, note)}</g>"
    )


def label_text(style: str, x: float, y: float, text: str) -> str:
    """Text of one of the styles, whose base line is at `y`."""
    return f'<text class="{style}" x="{number(x)}" y="{number(y)}">{escaped(text)}</text>'


def _shape(part: str, x: float, y: float, w: float, h: float, style: str = 'class="shape"') -> str:
    """The outline: round ends, cut corners, notched ends, or a plain rectangle."""
    a = min(_CORNER, h / 3)
    if part == "tangent":
        points = [(a, 0), (w - a, 0), (w, a), (w, h - a), (w - a, h), (a, h), (0, h - a), (0, a)]
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


def _arrow(route: Sequence[Point], label: str) -> str:
    """A line with a tip; it ends a little before the tip does."""
    (x, y), (_, before) = route[-1], route[-2]
    back = 6.0 if y > before else -6.0
    points = [*route[:-1], (x, y - back)]
    steps = [f"M{number(points[0][0])} {number(points[0][1])}"]
    for i in range(1, len(points)):
        (px, py), (qx, qy) = points[i - 1], points[i]
        half = number((py + qy) / 2)
        curve = f"C{number(px)} {half} {number(qx)} {half} "
        steps.append(f"{curve if i % 2 else 'L'}{number(qx)} {number(qy)}")
    tip = f"{number(x)},{number(y)} {number(x - 3.5)},{number(y - 7 * back / 6)} "
    tip += f"{number(x + 3.5)},{number(y - 7 * back / 6)}"
    return (
        f'<g><title>{escaped(label)}</title><path class="arrow" d="{"".join(steps)}"/>'
        f'<polygon class="tip" points="{tip}"/></g>'
    )


def _summary(picture: Picture, shown: Picture) -> str:
    equations = sum(b.part not in ("input", "output") for b in picture.boxes)
    text = f"{equations} equation{'' if equations == 1 else 's'}"
    kinds = [b.details[0][1] for b in shown.boxes if b.details and b.details[0][0] == "group"]
    return f"{text}, folded by {kinds[0]}" if kinds else text


def _legend(picture: Picture, shown: Picture, top: float) -> tuple[list[str], float]:
    """What the outlines mean, of those that occur, and how much is shown; and its width."""
    x, y = 16.0, top + 4
    drawn = []
    for part in PARTS:
        if any(b.part == part for b in shown.boxes):
            drawn.append(f'<g class="{part}">{_shape(part, x, y, 26, 14)}</g>')
            drawn.append(label_text("note left", x + 32, y + 11, part))
            x += 32 + width_of(part, NOTE_SIZE, fixed=True) + 18
    text = _summary(picture, shown)
    if any(b.heat for b in shown.boxes):
        text = f"{text}; the warmer, the larger the share of the time"
    drawn.append(label_text("note left", x, y + 11, text))
    return drawn, x + width_of(text, NOTE_SIZE, fixed=True) + 16
