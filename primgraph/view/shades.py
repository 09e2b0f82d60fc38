"""Colours of the parts of a picture, and a shade of them for each order of derivative."""

from __future__ import annotations

from typing import NamedTuple

PARTS = ("input", "constant", "forward", "tangent", "cotangent", "update", "output", "mixed")
# Derivatives of this order and of all higher ones have the same shade.
LAST_SHADE = 4

# Paper, ink, muted ink and arrows, and a colour for each part: forward, tangent and cotangent are
# blue, orange and bluish green of Okabe and Ito (2008), darker where they stand on white, and
# updates their reddish purple.
LIGHT = {
    "paper": "#ffffff", "ink": "#1b1f24", "muted": "#57606a", "arrow": "#8c959f",
    "input": "#57606a", "constant": "#8c959f", "forward": "#0072b2", "tangent": "#b86e00",
    "cotangent": "#00835f", "update": "#8a3d8f", "output": "#1b1f24", "mixed": "#57606a",
}  # fmt: skip
DARK = {
    "paper": "#0f1318", "ink": "#e6edf3", "muted": "#9aa5b1", "arrow": "#66717d",
    "input": "#9aa5b1", "constant": "#7d8894", "forward": "#56b4e9", "tangent": "#e69f00",
    "cotangent": "#2fc79b", "update": "#d48fd8", "output": "#e6edf3", "mixed": "#9aa5b1",
}  # fmt: skip
# How much of the colour of a part is in its boxes, and how much more for each further order; and
# how much of the ink is in its lines for each further order. Pages have the same in page.css.
_TINTS = {LIGHT["paper"]: (0.09, 0.10), DARK["paper"]: (0.15, 0.08)}
_INK = 0.2


class Paint(NamedTuple):
    """The colours of a part: of lines and titles, of boxes, and of its column."""

    stroke: str
    fill: str
    lane: str


def shade_of(order: int) -> int:
    """Return the number of the shade of a derivative of that order, from 1 to `LAST_SHADE`."""
    return min(max(order, 1), LAST_SHADE)


def styles_of(part: str, order: int) -> str:
    """Return the names of the styles of a part of that order, as `cotangent o2`."""
    return part if order < 2 else f"{part} o{shade_of(order)}"


def paint(part: str, order: int, colours: dict[str, str]) -> Paint:
    """Return the colours of a part of that order, from those of light or of dark ground."""
    paper, further = colours["paper"], shade_of(order) - 1
    tint, step = _TINTS[paper]
    stroke = mix_colours(colours["ink"], colours[part], _INK * further)
    share = tint + step * further
    return Paint(stroke, mix_colours(stroke, paper, share), mix_colours(stroke, paper, share / 3))


def mix_colours(colour: str, ground: str, share: float) -> str:
    """Return `share` of a colour on a ground, both as #rrggbb."""
    pairs = [(int(colour[i : i + 2], 16), int(ground[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(share * a + (1 - share) * b):02x}" for a, b in pairs)
