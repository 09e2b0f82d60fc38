"""Lines of C that know the user's line that they compute."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import final

from primgraph.base.user_lines import Source
from primgraph.codegen.ir.schedule import Step


@final
class Line(str):
    """A line of C, of the user's line `source`."""

    __slots__ = ("source",)

    source: Source

    def __new__(cls, text: str, source: Source) -> Line:
        made = super().__new__(cls, text)
        made.source = source
        return made


def lines_of(step: Step | None, lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines with the user's line of a step, if it has one."""
    source = None if step is None else step.eqn.source
    if source is None:
        yield from lines
    else:
        yield from (Line(line, source) for line in lines)


def indented(pad: str, lines: Iterable[str]) -> list[str]:
    """Return the lines behind `pad`."""
    return [Line(f"{pad}{x}", x.source) if isinstance(x, Line) else f"{pad}{x}" for x in lines]


def sources_of(pieces: Sequence[str]) -> Mapping[int, Source]:
    """Return the user's line of each line of a text, whose pieces are joined by line ends."""
    found, at = {}, 1
    for piece in pieces:
        if isinstance(piece, Line):
            found[at] = piece.source
        at += 1 + piece.count("\n")
    return found
