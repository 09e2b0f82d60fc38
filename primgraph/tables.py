"""Formatting of numbers with units, and of tables."""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.base.user_lines import Source
from primgraph.ir.dims import Dim

_STEPS = (("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0))
_SMALL = (("", 1.0), ("m", 1e-3), ("µ", 1e-6), ("n", 1e-9))
_LONGEST = 60


def quantity(number: float, unit: str) -> str:
    """Format `number` with three digits and a decimal prefix, such as `1.25 MB`; a formula as it
    is."""
    if isinstance(number, Dim):
        return f"{number} {unit}".rstrip()
    steps = _SMALL if unit == "s" else _STEPS
    prefix, size = next((s for s in steps if abs(number) >= s[1]), steps[-1])
    shown = number / size
    if not prefix and float(number).is_integer():
        return f"{int(number)} {unit}".rstrip()
    return f"{shown:#.3g}".rstrip(".") + f" {prefix}{unit}".rstrip()


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def place_of(source: Source | None) -> str:
    """Return location and text of a user's line."""
    if source is None:
        return "(no line)"
    return f"{source}  {source.text}".rstrip()


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table; the last column is left-aligned text, the others are numbers."""
    cells = [[*row[:-1], _cut(row[-1])] for row in (head, *rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(head) - 1)]
    return [
        "  ".join([*(c.rjust(w) for c, w in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in cells
    ]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
