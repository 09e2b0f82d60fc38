"""Lines of C that know the user's line that they compute, and functions of them.

Compile time grows with a file. A long one has its functions in units of about equal length. Without
`UNIT` it is compiled as a whole; with `-DUNIT=k` only the functions of unit `k` are, so that all
processors can compile. Functions of other units are declared, and hidden outside the library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, final

from primgraph.base.user_lines import Source
from primgraph.codegen.ir.schedule import Step

# Maximum number of lines of a file that is compiled as a whole, and approximate length of a unit.
_WHOLE, _LINES = 6000, 3000

_LINKAGE = (
    "#ifdef UNIT",
    '#define LOCAL __attribute__((visibility("hidden")))',
    "#else",
    "#define LOCAL static",
    "#endif",
)


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


@final
class Function(NamedTuple):
    """A C function: its head without linkage, and its lines; outside code calls a public one."""

    head: str
    lines: Sequence[str]
    is_public: bool = False

    def text(self, linkage: str) -> Iterator[str]:
        """Yield the lines of the definition."""
        yield f"{'' if self.is_public else linkage}{self.head} {{"
        yield from self.lines
        yield from ("}", "")


def one_unit(functions: Iterable[Function]) -> list[str]:
    """Return the lines of functions in a file that is compiled as a whole."""
    return [line for function in functions for line in function.text("static ")]


def in_units(functions: Sequence[Function]) -> tuple[list[str], int]:
    """Return the lines of functions, in units if they are long, and the number of units."""
    if sum([len(function.lines) for function in functions]) <= _WHOLE:
        return one_unit(functions), 1
    lines = [*_LINKAGE, *(f"LOCAL {f.head};" for f in functions if not f.is_public), ""]
    units: list[list[Function]] = [[]]
    size = 0
    for function in functions:
        if size > _LINES:
            units.append([])
            size = 0
        units[-1].append(function)
        size += len(function.lines)
    for k, unit in enumerate(units):
        lines.append(f"#if !defined UNIT || UNIT == {k}")
        lines += [line for function in unit for line in function.text("LOCAL ")]
        lines += ["#endif", ""]
    return lines, len(units)
