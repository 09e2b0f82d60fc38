"""C functions of a kernel, in one file that can be compiled in several parts.

Compile time grows with the file. A long file has its functions in units of about equal length.
Without `UNIT` it is compiled as a whole; with `-DUNIT=k` only the functions of unit `k` are, so
that all processors can compile. Functions of other units are declared, and hidden outside the
library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, final

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
