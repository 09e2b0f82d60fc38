"""HTML for notebooks: a picture, folded if it is large, and the equations as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from primgraph.base.plain_text import shorten_text
from primgraph.ir.frontend.drawable import Drawn
from primgraph.ir.frontend.html_tables import ROWS, Row, Sheet
from primgraph.ir.graph import Equation, Graph
from primgraph.tables import place_of
from primgraph.view.folding import fold_groups, groups_to_fold
from primgraph.view.formats.svg import to_svg
from primgraph.view.layers import is_user_line, part_title
from primgraph.view.picture import Box, Picture, graph_of, picture_of

# Maximum number of boxes and arrows in a picture, and of equations in a folded one.
_SMALL = 40
_FEW = 160
_MOST_FOLDED = 1000
_MOST_NAME = 80

# Key for counting equations: layer, part and line.
_Kind = tuple[str, str, str]


def to_notebook(drawable: Drawn) -> str:
    """Return HTML to embed in a page, without effect on the page.

    Time is linear in the number of equations, and the size is bounded.
    """
    graph = graph_of(drawable)
    if len(graph) > _MOST_FOLDED:
        return _summary(graph).html()
    picture = picture_of(drawable)
    if _is_small(picture):
        return _render_html(picture)
    table = _summary(graph) if len(graph) > ROWS else _equations(picture)
    shown = fold_groups(picture, groups_to_fold(picture, _SMALL))
    if not _is_small(shown):
        return table.html()
    told = f"<summary>{_format_count(len(graph))}</summary>{table.html()}"
    return f"<div>{_render_html(shown, len(graph))}<details>{told}</details></div>"


def _is_small(picture: Picture) -> bool:
    return len(picture.boxes) <= _SMALL and len(picture.arrows) <= _FEW


def _render_html(picture: Picture, equations: int | None = None) -> str:
    return f'<div style="overflow:auto">{to_svg(picture, equations=equations)}</div>'


def _equations(picture: Picture) -> Sheet:
    """Return a table of all equations, one per row."""
    found = [b for b in picture.boxes if b.part not in ("input", "output")]
    parts = Counter(_part(box) for box in picture.boxes)
    told = ", ".join(f"{n} {part}" for part, n in parts.items())
    title = f"{_short(picture.title)}: {_format_count(len(found))} ({told})"
    rows = (Row(_cells(i, box)) for i, box in enumerate(found))
    return Sheet(title, "nctc", ("", "equation", "part", "line"), rows, len(found))


def _cells(number: int, box: Box) -> tuple[str, ...]:
    details = dict(box.details)
    return str(number), details.get("equation", box.label), _part(box), details.get("source", "")


def _part(box: Box) -> str:
    return part_title(box.part, box.order)


def _summary(graph: Graph) -> Sheet:
    """Return a table of numbers of equations by line and part, or by op for unknown lines."""
    inputs, outputs = len(graph.inputs), len(graph.outputs)
    title = f"{_short(graph.name)}: {_format_count(len(graph))}, {inputs} inputs, {outputs} outputs"
    counts = Counter(map(_kind, graph.body))
    if not any(line for _, _, line in counts):
        ops = Counter(eqn.op.name for eqn in graph.body)
        rows = [Row((str(n), op), share=n / len(graph)) for op, n in ops.most_common()]
        return Sheet(title, "nc", ("equations", "op"), rows, len(rows))
    layers = any(layer for _, layer, _ in counts)
    return Sheet(
        title,
        "ntcc" if layers else "ntc",
        ("equations", "part", *(("layer",) if layers else ()), "line"),
        list(_counts(counts, len(graph), layers)),
        len(counts),
    )


def _counts(counts: Counter[_Kind], total: int, layers: bool) -> Iterator[Row]:
    for (part, layer, line), n in counts.items():
        cells = (str(n), part, layer, line) if layers else (str(n), part, line)
        yield Row(cells, share=n / total)


def _kind(eqn: Equation) -> _Kind:
    source = eqn.source
    if source is None or not is_user_line(source):
        return "", "", ""
    return (
        part_title(source.role or "forward", source.order),
        source.scope,
        place_of(source.drop_marks),
    )


def _format_count(count: int) -> str:
    return "1 equation" if count == 1 else f"{count} equations"


def _short(name: str) -> str:
    return shorten_text(name, _MOST_NAME)
