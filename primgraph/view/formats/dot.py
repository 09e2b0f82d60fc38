"""A picture in the DOT language, and files made of it by Graphviz where that is installed."""

from __future__ import annotations

import shutil
import subprocess

from primgraph.base.plain_text import plain, shortened
from primgraph.errors import ArgumentError, RunError
from primgraph.view.picture import Box, Picture
from primgraph.view.shades import LIGHT, paint

# Seconds; layouts of what is drawn at most take a few.
_PATIENCE = 120

# Letters in a line of a label; tooltips have all.
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
    """The whole picture as a digraph: a node for each box, an edge for each arrow."""
    lines = [
        f"digraph {quoted(picture.title)} {{",
        '  node [fontname="Helvetica" fontsize=11 margin="0.12,0.05"];',
        '  edge [color="#8c959f" arrowsize=0.7];',
    ]
    lines += [_node(box) for box in picture.boxes]
    lines += [f"  b{a.tail} -> b{a.head} [tooltip={quoted(a.label)}];" for a in picture.arrows]
    return "\n".join([*lines, "}", ""])


def quoted(*lines: str) -> str:
    """Lines of text as one quoted string of DOT; the one way that text comes in.

    Backslashes and ampersands stand for themselves, and begin no escape or entity of a label. A
    string in quotes is never taken for HTML.
    """
    safe = [plain(t).replace("\\", "\\\\").replace("&", "&amp;") for t in lines]
    text = "\\n".join(t.replace('"', '\\"') for t in safe)
    return f'"{text}"'


def _node(box: Box) -> str:
    label = quoted(shortened(plain(box.label), _MOST), shortened(plain(box.note), _MOST))
    details = [f"{name}: {text}" for name, text in box.details]
    tooltip = quoted(*(details or [f"{box.label}: {box.note}"]))
    part = box.part if box.part in _SHAPES else "mixed"
    stroke, fill, _ = paint(part, box.order, LIGHT)
    style = f'{_SHAPES[part]} color="{stroke}" fillcolor="{fill}"'
    return f"  b{box.id} [label={label} tooltip={tooltip} {style}];"


def rendered(picture: Picture, form: str) -> bytes:
    """The file that Graphviz makes of `picture`, in the format "png" or "pdf".

    Raises `ArgumentError` if there is no Graphviz, `RunError` if it fails.
    """
    program = shutil.which("dot")
    if program is None:
        raise ArgumentError(
            f"a {form} file is made by Graphviz, and its program dot is not on the path",
            hint="save to a name that ends in .svg instead, which needs nothing installed",
        )
    # The text goes in on standard input, so that no name of the user is an argument.
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
