"""Lines of C that know the user's line that they compute, and functions of them.

Compile time grows with a file. A long one has its functions in units of about equal length. Without
`UNIT` it is compiled as a whole; with `-DUNIT=k` only the functions of unit `k` are, so that all
processors can compile. Functions of other units are declared, and hidden outside the library.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, final

from primgraph.codegen.ir.schedule import Step

# Maximum number of lines of a file that is compiled as a whole, and approximate length of a unit.
_WHOLE, _LINES = 6000, 3000

_SOURCE = re.compile(r"/\* (.*) \*/$")

_LINKAGE = (
    "#ifdef UNIT",
    '#define LOCAL __attribute__((visibility("hidden")))',
    "#else",
    "#define LOCAL static",
    "#endif",
)


def with_source(line: str, step: Step | None) -> str:
    """Return the line, with the user's line of a step in a comment, if it has one."""
    source = None if step is None else step.eqn.source
    if source is None:
        return line
    return f"{line} /* {f'{source}   {source.text}'.rstrip().replace('*/', '* /')} */"


def source_at(text: str, line: int) -> str:
    """Return the user's line in the comment of a line of C; empty if there is none."""
    found = _SOURCE.search(text.split("\n")[line - 1])
    return "" if found is None else found[1]


def indented(pad: str, lines: Iterable[str]) -> list[str]:
    """Return the lines behind `pad`."""
    return [f"{pad}{line}" for line in lines]


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
