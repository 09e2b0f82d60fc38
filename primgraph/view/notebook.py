"""What a notebook shows: a picture of what is small, otherwise a table of equations."""

from __future__ import annotations

from collections import Counter

from primgraph.view.picture import Box, Picture
from primgraph.view.svg import escaped, to_svg

# The most boxes in a picture, and the most rows in a table.
_SMALL = 40
_ROWS = 100


def to_notebook(picture: Picture) -> str:
    """HTML to stand inside a page, which it leaves alone."""
    if len(picture.boxes) <= _SMALL:
        return f'<div style="overflow:auto">{to_svg(picture)}</div>'
    equations = [b for b in picture.boxes if b.part not in ("input", "output")]
    rows = [_row("th", ["", "equation", "part", "source"])]
    rows += [_row("td", _cells(i, box)) for i, box in enumerate(equations[:_ROWS])]
    if len(equations) > _ROWS:
        rows.append(_row("td", ["", f"{len(equations) - _ROWS} equations more", "", ""]))
    parts = Counter(box.part for box in picture.boxes)
    told = ", ".join(f"{n} {part}" for part, n in parts.items())
    caption = escaped(f"{picture.title}: {len(equations)} equations ({told})")
    return f"<table><caption>{caption}</caption>{''.join(rows)}</table>"


def _cells(number: int, box: Box) -> list[str]:
    details = dict(box.details)
    return [str(number), details.get("equation", box.label), box.part, details.get("source", "")]


def _row(kind: str, cells: list[str]) -> str:
    style = ' style="text-align:left"'
    return f"<tr>{''.join(f'<{kind}{style}>{escaped(c)}</{kind}>' for c in cells)}</tr>"
