"""Pictures as Mermaid flowcharts, which many Markdown renderers draw."""

from __future__ import annotations

from primgraph.base.plain_text import plain, shortened
from primgraph.view.folding import LIMIT, folded, shut_groups
from primgraph.view.picture import Box, Picture

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
_CLASSES = {
    "input": "fill:#f0f0f1,stroke:#57606a,color:#1b1f24",
    "constant": "fill:#f5f5f6,stroke:#8c959f,color:#1b1f24,stroke-dasharray:4 3",
    "forward": "fill:#e8f2f8,stroke:#0072b2,color:#1b1f24",
    "tangent": "fill:#f9f2e8,stroke:#b86e00,color:#1b1f24,stroke-dasharray:8 3",
    "cotangent": "fill:#e8f4f0,stroke:#00835f,color:#1b1f24",
    "output": "fill:#ebebeb,stroke:#1b1f24,color:#1b1f24,stroke-width:3px",
    "mixed": "fill:#f0f0f1,stroke:#57606a,color:#1b1f24",
}


def to_mermaid(picture: Picture, *, limit: int = LIMIT) -> str:
    """Return the flowchart of `picture`, with groups folded above `limit` boxes.

    Groups are also folded if Mermaid's limits are exceeded, unless `limit` is above the default:
    then the renderer's limits must be raised.
    """
    shown = folded(picture, shut_groups(picture, limit))
    text = _flowchart(shown)
    while 0 < limit <= LIMIT and (len(shown.arrows) > _MOST_ARROWS or len(text) > _MOST_LETTERS):
        limit //= 2
        shown = folded(picture, shut_groups(picture, limit))
        text = _flowchart(shown)
    return text


def _flowchart(picture: Picture) -> str:
    lines = ["flowchart TB", *(_node(box) for box in picture.boxes)]
    lines += [f"  b{a.tail} --> b{a.head}" for a in picture.arrows]
    parts = {b.part for b in picture.boxes}
    lines += [f"  classDef {name} {style}" for name, style in _CLASSES.items() if name in parts]
    return "\n".join([*lines, ""])


def escaped(text: str) -> str:
    """Escape `text` for a quoted label; all text is inserted by this.

    All characters but letters, digits and safe signs become numbered entities of Mermaid.
    """
    short = shortened(plain(text), _MOST)
    return "".join(c if c in _SAFE or c.isalpha() else f"#{ord(c)};" for c in short)


def _node(box: Box) -> str:
    left, right = _SHAPES.get(box.part, ('["', '"]'))
    text = f"{escaped(box.label)}<br/>{escaped(box.note)}"
    return f"  b{box.id}{left}{text}{right}:::{box.part}"
