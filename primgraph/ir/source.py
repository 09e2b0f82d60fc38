"""Where in the user's own code an equation comes from."""

from __future__ import annotations

import linecache
import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from types import CodeType

_PACKAGE = __name__.partition(".")[0]
_PASSED = (_PACKAGE + ".", "functools", "contextlib")


@dataclass(frozen=True, slots=True)
class Source:
    """A line of the user's code; `role` says what was derived from it, if anything was."""

    file: str
    line: int
    role: str = ""

    def derived(self, role: str) -> Source:
        """The same line, marked as what it was derived for; the first mark stays."""
        return self if self.role else _derived(self, role)

    @property
    def text(self) -> str:
        """The line itself, or nothing where the file cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        place = f"{self.file.rpartition('/')[2]}:{self.line}"
        return f"in the {self.role} of {place}" if self.role else place


@lru_cache(maxsize=65536)
def _derived(source: Source, role: str) -> Source:
    return replace(source, role=role)


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
