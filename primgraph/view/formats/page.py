"""HTML page of a graph: one self-contained file that draws itself."""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, final

from primgraph.base.plain_text import plain
from primgraph.errors import ArgumentError
from primgraph.view.formats.json_packing import Texts, packed_lines, packed_picture
from primgraph.view.picture import Picture

_ASSETS = Path(__file__).parents[1] / "assets"
# Concatenated in this order to the only script of the page.
_SCRIPTS = (
    "drawing.js",
    "folding.js",
    "placing.js",
    "difference.js",
    "camera.js",
    "search.js",
    "card.js",
    "rows.js",
    "unpacking.js",
    "main.js",
    "texts.js",
    "events.js",
)
# JSON needs these letters only in strings, where they can be escaped.
_SPELLED = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&"}


@final
@dataclass(frozen=True, slots=True)
class Step:
    """State of a program during compilation: its picture, and its text.

    `boxes[i]` is the id of the box of line i of the text, -1 if there is none. `note` briefly
    describes the step.
    """

    name: str
    picture: Picture
    lines: tuple[str, ...] = ()
    boxes: tuple[int, ...] = ()
    note: str = ""


def page(steps: Sequence[Step]) -> str:
    """Return one HTML file that shows the pictures of `steps`, and their texts side by side.

    The file loads nothing: its content security policy admits its own script and style by their
    hashes, and no request. Names of the user are inserted as escaped text or as JSON. Equal steps
    give equal bytes. Raises `ArgumentError` without a step, or for a step without one box for each
    line.
    """
    if not steps:
        raise ArgumentError("a page needs at least one step")
    for step in steps:
        if len(step.boxes) != len(step.lines):
            raise ArgumentError(
                f"step {step.name!r} has {len(step.lines)} lines and {len(step.boxes)} boxes"
            )
    style, script, template = _parts()
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    text: str = template.render(
        title=plain(steps[0].picture.title),
        policy=policy,
        style=style,
        script=script,
        blocks=[_json([plain(step.name) for step in steps]), *_blocks(steps)],
    )
    return text


def _blocks(steps: Sequence[Step]) -> Iterator[str]:
    """Yield the steps as JSON; a step with the picture of an earlier step has its number
    instead."""
    first: dict[int, int] = {}
    for i, step in enumerate(steps):
        number = Texts()
        known = first.setdefault(id(step.picture), i)
        data = {
            "picture": packed_picture(step.picture, number) if known == i else known,
            "lines": packed_lines(step.lines, number),
            "places": step.boxes,
            "note": plain(step.note),
        }
        yield _json({"texts": number.printable_texts(), **data})


def _json(data: Any) -> str:
    """Return `data` as ASCII JSON that can be embedded in a script element."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.translate(_SPELLED)


def _digest(text: str) -> str:
    """Return the hash of a script or style for a content security policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _parts() -> tuple[str, str, Any]:
    """Return style, script and template of the page."""
    jinja2 = importlib.import_module("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_ASSETS), undefined=jinja2.StrictUndefined, autoescape=True
    )
    script = "\n".join(_read_asset(name) for name in _SCRIPTS)
    return (
        _read_asset("page.css"),
        f'"use strict";\n{script}',
        environment.get_template("page.html.j2"),
    )


def _read_asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")
