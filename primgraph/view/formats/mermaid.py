"""Pictures as Mermaid flowcharts, which many Markdown renderers draw."""

from __future__ import annotations

from primgraph.base.plain_text import plain, shorten_text
from primgraph.view.folding import LIMIT, fold_groups, groups_to_fold
from primgraph.view.picture import Box, Picture
from primgraph.view.shades import LIGHT, PARTS, paint, shade_of, styles_of

_MOST = 60
# Mermaid's default limits, which the text cannot change: maxEdges and maxTextSize.
_MOST_ARROWS, _MOST_LETTERS = 500, 50_000
# Characters without a meaning in a quoted label.
_SAFE = frozenset(" .,:+-=/()·×…" + "0123456789_")

_SHAPES = {
    "input": ('(["', '"])'),
    "output": ('(["', '"])'),
    "tangent": ('{{"', '"}}'),
    "cotangent": ('>"', '"]'),
}
_LINES = {
    "constant": ",stroke-dasharray:4 3",
    "tangent": ",stroke-dasharray:8 3",
    "output": ",stroke-width:3px",
}


def to_mermaid(picture: Picture, *, limit: int = LIMIT) -> str:
    """Return the flowchart of `picture`, with groups folded above `limit` boxes.

    Groups are also folded if Mermaid's limits are exceeded, unless `limit` is above the default:
    then the renderer's limits must be raised.
    """
    shown = fold_groups(picture, groups_to_fold(picture, limit))
    text = _flowchart(shown)
    while 0 < limit <= LIMIT and (len(shown.arrows) > _MOST_ARROWS or len(text) > _MOST_LETTERS):
        limit //= 2
        shown = fold_groups(picture, groups_to_fold(picture, limit))
        text = _flowchart(shown)
    return text


def _flowchart(picture: Picture) -> str:
    lines = ["flowchart TB", *(_node(box) for box in picture.boxes)]
    lines += [f"  b{a.tail} --> b{a.head}" for a in picture.arrows]
    parts = {(b.part, shade_of(b.order)) for b in picture.boxes}
    ordered = sorted(parts, key=lambda p: (PARTS.index(p[0]), p[1]))
    lines += [f"  classDef {_class(*part)} {_style(*part)}" for part in ordered]
    return "\n".join([*lines, ""])


def escape_label(text: str) -> str:
    """Escape `text` for a quoted label; all text is inserted by this.

    All characters but letters, digits and safe signs become numbered entities of Mermaid.
    """
    short = shorten_text(plain(text), _MOST)
    return "".join(c if c in _SAFE or c.isalpha() else f"#{ord(c)};" for c in short)


def _node(box: Box) -> str:
    left, right = _SHAPES.get(box.part, ('["', '"]'))
    text = f"{escape_label(box.label)}<br/>{escape_label(box.note)}"
    return f"  b{box.id}{left}{text}{right}:::{_class(box.part, box.order)}"


def _class(part: str, order: int) -> str:
    """Return the name of the class of a part: `cotangent`, or `cotangent2` of order 2."""
    return styles_of(part, order).replace(" o", "")


def _style(part: str, order: int) -> str:
    stroke, fill, _ = paint(part, order, LIGHT)
    return f"fill:{fill},stroke:{stroke},color:{LIGHT['ink']}{_LINES.get(part, '')}"
