"""HTML tables for notebooks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import islice
from typing import Any, final

from primgraph.base.plain_text import escape_html, plain, shorten_text
from primgraph.base.records import dataclass

# Maximum numbers of rows, and of characters in each cell and title line.
ROWS = 100
_LONGEST = 200
# Approximate maximum number of characters of a table.
_MOST = 60_000

_TEXT = "text-align:left;vertical-align:top"
# No text or background colours: those of the page apply, light or dark.
_CODE = f"{_TEXT};font-family:monospace;white-space:pre-wrap"
_NUMBER = "text-align:right;vertical-align:top;white-space:nowrap"
_STYLES = {"t": _TEXT, "c": _CODE, "n": _NUMBER}
_TINTS = {"+": "rgba(46,160,67,.18)", "-": "rgba(248,81,73,.18)"}
_BAR = "rgba(213,94,0,.35)"


@final
@dataclass(frozen=True, slots=True)
class Row:
    """Cells of one row. `tint` is "+" for an added row, "-" for a removed one, else empty.

    `share` is the row's fraction of the whole, from 0 to 1, drawn as a bar in the column that the
    sheet chooses; None if there is none.
    """

    cells: tuple[str, ...]
    tint: str = ""
    share: float | None = None


@final
@dataclass(frozen=True, slots=True)
class Sheet:
    """Table: its title, column headings, and rows.

    `kinds` has a letter for each column: "t" for text, "c" for code, "n" for numbers. `notes` are
    lines after the `title`. `count` is the total number of rows, of which `rows` may yield only the
    first; the others are counted.
    """

    title: str
    kinds: str
    head: tuple[str, ...]
    rows: Iterable[Row]
    count: int
    notes: tuple[str, ...] = ()
    bar: int = 0

    def html(self) -> str:
        """Return HTML to embed in a page, in the colours of that page.

        All text is escaped. There are at most `ROWS` rows, and fewer if they are long.
        """
        title, *notes = (
            escape_html(shorten_text(plain(t), _LONGEST)) for t in (self.title, *self.notes)
        )
        told = "".join(f"<br/>{note}" for note in notes)
        top = f"<div><b>{title}</b>{told}</div>"
        parts = [self._line("th", Row(self.head))] if self.head else []
        size = shown = 0
        for row in islice(self.rows, ROWS):
            if size > _MOST:
                break
            parts.append(self._line("td", row))
            size += len(parts[-1])
            shown += 1
        if shown < self.count:
            more = f"{self.count - shown} more"
            parts.append(self._line("td", Row(("",) * (len(self.kinds) - 1) + (more,))))
        table = f"<table>{''.join(parts)}</table>" if parts else ""
        return f'<div style="overflow:auto">{top}{table}</div>'

    def _line(self, element: str, row: Row) -> str:
        cells = []
        for k, (kind, text) in enumerate(zip(self.kinds, row.cells, strict=True)):
            style = _STYLES[kind if element == "td" or kind == "n" else "t"]
            if row.share is not None and k == self.bar:
                end = f"{100 * min(max(row.share, 0.0), 1.0):.1f}%"
                style += f";background:linear-gradient(to right,{_BAR} {end},transparent {end})"
            # Code and arrays keep their line breaks.
            lines = text[:_LONGEST].split("\n") if kind == "c" else [text]
            shown = "\n".join([escape_html(shorten_text(plain(line), _LONGEST)) for line in lines])
            cells.append(f'<{element} style="{style}">{shown}</{element}>')
        tint = f' style="background:{_TINTS[row.tint]}"' if row.tint else ""
        return f"<tr{tint}>{''.join(cells)}</tr>"


class Tabled(ABC):
    """Base class of objects shown as a table in notebooks, and as text in IPython's terminal.

    Its `repr` is one line. IPython uses the first text method it finds, from a class to its bases,
    so subclasses must not define `__repr__`.
    """

    __slots__ = ()

    @abstractmethod
    def _title(self) -> str: ...

    @abstractmethod
    def _sheet(self) -> Sheet: ...

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._title()}>"

    def _repr_html_(self) -> str:
        return self._sheet().html()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self) if cycle else str(self))


def facts(title: str, pairs: Iterable[tuple[str, str]], notes: Iterable[str] = ()) -> Sheet:
    """Return a table of names and values of one object, without empty values."""
    rows = [Row(pair) for pair in pairs if pair[1]]
    return Sheet(title, "tc", (), rows, len(rows), tuple(notes))
