"""Where in the user's own code an equation comes from."""

from __future__ import annotations

import linecache
import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from types import CodeType

_PACKAGE = __name__.partition(".")[0]
_PASSED = (_PACKAGE + ".", _PACKAGE + " kernel", "functools", "contextlib")

# What a reader of text is told of either mode.
_SPOKEN = {"tangent": "gradient", "cotangent": "gradient"}


@dataclass(frozen=True, slots=True)
class Source:
    """A line of the user's code, and what was made of it.

    `role` is "tangent" or "cotangent" in a derivative, as the last transform made it; `operator`
    the name of the operator that was rewritten into primitives.
    """

    file: str
    line: int
    role: str = ""
    operator: str = ""

    def derived(self, role: str) -> Source:
        """The same line, marked as what it was derived for; the last mark counts."""
        return self if self.role == role else _marked(self, role, self.operator)

    def within(self, operator: str) -> Source:
        """The same line, marked with the operator it was part of; the first mark stays."""
        return self if self.operator else _marked(self, self.role, operator)

    @property
    def place(self) -> Source:
        """The line and whether it is that of a derivative, all else left out."""
        role = _SPOKEN.get(self.role, self.role)
        return self if self.role == role and not self.operator else _marked(self, role, "")

    @property
    def text(self) -> str:
        """The line itself, or nothing where the file cannot be read."""
        lines = lines_of(self.file)
        return lines[self.line - 1].strip() if 0 < self.line <= len(lines) else ""

    def __str__(self) -> str:
        place = f"{self.file.rpartition('/')[2]}:{self.line}"
        return f"in the {_SPOKEN.get(self.role, self.role)} of {place}" if self.role else place


def lines_of(file: str) -> list[str]:
    """The lines of a file of the user's; none where it cannot be read."""
    try:
        return linecache.getlines(file)
    except ValueError:
        # No file has such a name, with a null character or a lone surrogate in it.
        return []


@lru_cache(maxsize=65536)
def _marked(source: Source, role: str, operator: str) -> Source:
    return replace(source, role=role, operator=operator)


@lru_cache(maxsize=65536)
def _at(code: CodeType, line: int) -> Source:
    return Source(code.co_filename, line)


# What a module has among its names to say that it extends primgraph.
_EXTENSION = "__primgraph_extension__"


def caller() -> Source:
    """The innermost line outside primgraph that is being executed.

    Modules that extend primgraph count as part of it if they set `__primgraph_extension__`.
    Cached properties and the like put frames of the standard library in between; they are passed.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None:
        name = frame.f_globals.get("__name__", "")
        if name != _PACKAGE and not name.startswith(_PASSED) and _EXTENSION not in frame.f_globals:
            break
        frame = frame.f_back
    return _at(frame.f_code, frame.f_lineno)
