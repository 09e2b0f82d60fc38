"""Pictures in the DOT language, and files rendered by Graphviz."""

from __future__ import annotations

import shutil
import subprocess

from primgraph.base.plain_text import plain, shorten_text
from primgraph.errors import ArgumentError, RunError
from primgraph.view.picture import Box, Picture
from primgraph.view.shades import LIGHT, paint

# Timeout in seconds; the largest layouts take a few.
_PATIENCE = 120

# Maximum length of a line in a label; tooltips are complete.
_MOST = 60

_SHAPES = {
    "input": 'shape=box style="rounded,filled"',
    "constant": 'shape=box style="dashed,filled"',
    "forward": 'shape=box style="filled"',
    "tangent": 'shape=octagon style="dashed,filled"',
    "cotangent": 'shape=hexagon style="filled"',
    "update": 'shape=box style="diagonals,filled"',
    "output": 'shape=box style="rounded,filled,bold"',
    "mixed": 'shape=box style="filled"',
}


def to_dot(picture: Picture) -> str:
    """Return the whole picture as a digraph: a node for each box, an edge for each arrow."""
    lines = [
        f"digraph {quote_dot(picture.title)} {{",
        '  node [fontname="Helvetica" fontsize=11 margin="0.12,0.05"];',
        '  edge [color="#8c959f" arrowsize=0.7];',
    ]
    lines += [_node(box) for box in picture.boxes]
    lines += [f"  b{a.tail} -> b{a.head} [tooltip={quote_dot(a.label)}];" for a in picture.arrows]
    return "\n".join([*lines, "}", ""])


def quote_dot(*lines: str) -> str:
    """Quote lines of text as one DOT string; all text is inserted by this.

    Backslashes and ampersands are literal, and start no escape or entity. A quoted string is never
    parsed as HTML.
    """
    safe = [plain(t).replace("\\", "\\\\").replace("&", "&amp;") for t in lines]
    text = "\\n".join(t.replace('"', '\\"') for t in safe)
    return f'"{text}"'


def _node(box: Box) -> str:
    label = quote_dot(shorten_text(plain(box.label), _MOST), shorten_text(plain(box.note), _MOST))
    details = [f"{name}: {text}" for name, text in box.details]
    tooltip = quote_dot(*(details or [f"{box.label}: {box.note}"]))
    part = box.part if box.part in _SHAPES else "mixed"
    stroke, fill, _ = paint(part, box.order, LIGHT)
    style = f'{_SHAPES[part]} color="{stroke}" fillcolor="{fill}"'
    return f"  b{box.id} [label={label} tooltip={tooltip} {style}];"


def render_graphviz(picture: Picture, form: str) -> bytes:
    """Render `picture` by Graphviz, in the format "png" or "pdf".

    Raises `ArgumentError` if Graphviz is not installed, `RunError` if it fails.
    """
    program = shutil.which("dot")
    if program is None:
        raise ArgumentError(
            f"a {form} file is made by Graphviz, and its program dot is not on the path",
            hint="save to a name that ends in .svg instead, which needs nothing installed",
        )
    # The text is passed on standard input, so that no name of the user is an argument.
    try:
        made = subprocess.run(
            [program, f"-T{form}"],
            input=to_dot(picture).encode(),
            capture_output=True,
            timeout=_PATIENCE,
            check=True,
        )
    except (subprocess.SubprocessError, OSError) as error:
        raise RunError(
            f"Graphviz made no {form} file: {error}", hint="save to a name that ends in .svg"
        ) from error
    return made.stdout
