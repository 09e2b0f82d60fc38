"""Notebook HTML of a compiled function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from primgraph.base.plain_text import escape_html, shorten_text
from primgraph.ir.frontend.html_tables import ROWS, Row, Sheet

# Maximum number of characters of source.
_MOST = 20_000


class Compiled(Protocol):
    """Interface of one compilation of a function."""

    @property
    def reasons(self) -> tuple[str, ...]: ...
    @property
    def kernel(self) -> Any: ...
    @property
    def seconds(self) -> float: ...


def render_jit(
    title: str, function: Callable[..., Any], target: str | None, made: Sequence[Compiled]
) -> str:
    """Return HTML with the signature, a row for each compilation, and the last source, folded."""
    try:
        signature = str(inspect.signature(function))
    except (TypeError, ValueError):
        signature = "(...)"
    name = getattr(function, "__name__", "f")
    notes = [f"{name}{signature}", f"target: {target or 'numpy'}"]
    head = ("", "arguments", "why it was compiled", "ms") if made else ()
    rows = (Row(_cells(i, one)) for i, one in enumerate(made[-ROWS:], max(len(made) - ROWS, 0)))
    table = Sheet(title, "nctn", head, rows, len(made), tuple(notes)).html()
    if not made:
        return table
    lines = shorten_text(made[-1].kernel.source, _MOST).split("\n")
    source = "\n".join(map(escape_html, lines))
    code = f"<details><summary>source</summary><pre>{source}</pre></details>"
    return f"<div>{table}{code}</div>"


def _cells(number: int, one: Compiled) -> tuple[str, ...]:
    inputs = ", ".join(map(str, one.kernel.graph.input_types))
    return str(number), inputs, "; ".join(one.reasons), f"{1e3 * one.seconds:.1f}"
