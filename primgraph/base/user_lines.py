"""Where in the user's own code an equation comes from."""

from __future__ import annotations

import inspect
import linecache
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

# The name that IPython compiles a cell under, unless a kernel of notebooks has other ones.
_NAMED = re.compile(r"<ipython-input-(\d+)-")
_NUMBER = re.compile(r"\[(\d+)\]")
_CELL = "Cell In["

# Names of code that runs and is of no cell, which it never becomes; so many are remembered.
ordinary: set[str] = set()
_MOST = 4096
# The function that gives the shell, and the last shell that it gave: to ask it takes longer than
# all else that is done to find a line.
_asked: list[Any] = [None, None]


def shell() -> Any:
    """The shell of IPython in which this runs; None where there is none."""
    found = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return None if found is None else found()


def notebook() -> Any:
    """The shell, if it is that of a notebook, which shows more than text; else None."""
    found = shell()
    return found if getattr(found, "kernel", None) is not None else None


def cell_of(file: str) -> str:
    """What a cell is called whose code runs under the name `file`: `Cell In[3]`; else nothing.

    Of a cell that was run again as it is, this is where it was run last.
    """
    if file in ordinary:
        return ""
    named = _NAMED.match(file)
    if named is None:
        told = getattr(getattr(_known_shell(), "compile", None), "format_code_name", None)
        label = None if told is None else told(file)
        named = None if label is None else _NUMBER.search(str(label[-1]))
    if named is not None:
        return f"{_CELL}{named[1]}]"
    if len(ordinary) >= _MOST:
        ordinary.clear()
    ordinary.add(file)
    return ""


def _known_shell() -> Any:
    """The shell, asked for only until there is one."""
    source = getattr(sys.modules.get("IPython"), "get_ipython", None)
    if source is not _asked[0] or _asked[1] is None:
        _asked[:] = [source, shell()]
    return _asked[1]


def is_cell(file: str) -> bool:
    """Whether `file` is what `cell_of` calls a cell."""
    return file.startswith(_CELL)


PACKAGE = __name__.partition(".")[0]
_PASSED = (PACKAGE + ".", PACKAGE + " kernel")

# Folders of code that is not the user's: the standard library, the scripts that start programs,
# and whatever is installed.
_FOLDERS = tuple(os.path.dirname(file) + os.sep for file in (os.__file__, sys.executable) if file)
_INSTALLED = ("site-packages", "dist-packages")

# Lines of code that are longer are cut.
_LONGEST = 500

# What a reader of text is told of either mode.
_SPOKEN = {"tangent": "gradient", "cotangent": "gradient"}
# The role of what changes the parameters.
UPDATE = "update"


@dataclass(frozen=True, slots=True)
class Source:
    """A line of the user's code, and what was made of it.

    `file` is its path, or what a notebook calls the cell, such as `Cell In[3]`.
    `role` is "tangent" or "cotangent" in a derivative, as the last transform made it, "update" in
    what an optimizer does, and else empty; `order` is how often it was differentiated, and
    `operator` the name of the operator that was rewritten into primitives. `scope` is the path of
    the layer that it was written within, such as `network.body.0`. `text` is the line itself, read
    when it was executed: no file is ever opened because a source names it, as sources come from
    files of others, too. It is empty where the line could not be read.
    """

    file: str
    line: int
    role: str = ""
    operator: str = ""
    text: str = ""
    scope: str = ""
    order: int = 0

    def derived(self, role: str) -> Source:
        """The same line, marked as a derivative of what is there; the last mark counts."""
        return _marked(self, role, self.operator, self.scope, self.order + 1)

    def turned(self) -> Source:
        """The same line, marked as a cotangent in the place of a tangent."""
        if self.role == "cotangent":
            return self
        return _marked(self, "cotangent", self.operator, self.scope, max(self.order, 1))

    def undone(self) -> Source:
        """Return the line as it was before the last differentiation.

        The values that a derivative needs, and not the derivative, are computed by it.
        """
        order = max(self.order - 1, 0)
        return _marked(self, self.role if order else "", self.operator, self.scope, order)

    def within(self, operator: str) -> Source:
        """The same line, marked with the operator it was part of; the first mark stays."""
        if self.operator:
            return self
        return _marked(self, self.role, operator, self.scope, self.order)

    @property
    def is_derived(self) -> bool:
        """Whether it is that of a derivative."""
        return self.role not in ("", UPDATE)

    @property
    def is_told(self) -> bool:
        """Whether it is in a file that a reader can open."""
        return not self.file.startswith("<") and self.file != "graph text"

    @property
    def place(self) -> Source:
        """The line and whether it is that of a derivative, all else left out."""
        role = _SPOKEN.get(self.role, self.role) if self.is_derived else ""
        if role == self.role and not (self.operator or self.scope or self.order):
            return self
        return _marked(self, role, "", "", 0)

    @property
    def written(self) -> Source:
        """The line alone."""
        return _marked(self, "", "", "", 0)

    @property
    def spot(self) -> str:
        """Where the line is: `model.py:27`, or `Cell In[3], line 2`."""
        if is_cell(self.file):
            return f"{self.file}, line {self.line}"
        # Names such as `<stdin>` are no paths; Python 3.13 counts what is typed there.
        if self.file.startswith("<stdin>-"):
            return f"<stdin>:{self.line}"
        name = self.file if self.file.startswith("<") else self.file.rpartition("/")[2]
        return f"{name}:{self.line}"

    def __str__(self) -> str:
        if self.is_derived:
            return f"in the {_SPOKEN.get(self.role, self.role)} of {self.spot}"
        return self.spot


@lru_cache(maxsize=65536)
def _marked(source: Source, role: str, operator: str, scope: str, order: int) -> Source:
    made = replace(source, role=role, operator=operator, scope=scope, order=order)
    return source if made == source else made


@lru_cache(maxsize=65536)
def _at(code: CodeType, file: str, cell: str, line: int, marks: tuple[str, str]) -> Source:
    """A line of `code`, which is being executed; equal code may be from several files, or cells."""
    role, scope = marks
    lines = lines_of(code, file)
    text = shown(lines[line - 1]) if 0 < line <= len(lines) else ""
    return Source(cell or file, line, role, text=text, scope=scope)


@lru_cache(maxsize=1024)
def lines_of(code: CodeType, file: str) -> list[str]:
    """The lines of the file from which `code`, which is being executed, was made."""
    return lines_in(file)


def lines_in(file: str) -> list[str]:
    """Return the lines of a source file, as `linecache` has them; none of a pipe or a device."""
    try:
        # A name that is no file's may be known to `linecache` itself, as those of cells are.
        is_special = os.path.exists(file) and not os.path.isfile(file)
        return [] if is_special else linecache.getlines(file)
    except ValueError:
        # No file has such a name, with a null character or a lone surrogate in it.
        return []


def shown(text: str) -> str:
    """`text` as part of one line of a message: printable, and not very long."""
    short = text.strip()[:_LONGEST]
    return short if short.isprintable() else "".join(c if c.isprintable() else "?" for c in short)


# The role and the scope of the lines that are being executed.
_marks: ContextVar[tuple[str, str]] = ContextVar("marks", default=("", ""))


def scope() -> str:
    """The path of the layer that is being called; empty outside of any."""
    return _marks.get()[1]


@contextmanager
def marked(scope: str, role: str = "") -> Iterator[None]:
    """A context in which the user's lines are those of a layer, or of an update."""
    before = _marks.get()
    try:
        _marks.set((role, scope))
        yield
    finally:
        _marks.set(before)


# So many decorators are looked for above a definition.
_DECORATORS = 20

# What a module has among its names to say that it extends primgraph.
_EXTENSION = "__primgraph_extension__"


@lru_cache(maxsize=65536)
def is_library(file: str) -> bool:
    """Whether a file belongs to the standard library, or to what is installed."""
    if file.startswith(("<frozen ", "<__array_function__", *_FOLDERS)):
        return True
    return not set(_INSTALLED).isdisjoint(file.replace("\\", "/").split("/"))


def is_own_name(name: str) -> bool:
    """Whether a module of that name is primgraph's, or a kernel."""
    return name == PACKAGE or name.startswith(_PASSED)


def is_own(frame: FrameType) -> bool:
    """Whether a frame is of primgraph, of a kernel, or of a module that extends primgraph."""
    name = frame.f_globals.get("__name__", "")
    return is_own_name(name) or _EXTENSION in frame.f_globals


def user_frame() -> FrameType:
    """The innermost frame of the user's: outside primgraph, and what is installed with Python.

    Modules that extend primgraph count as part of it if they set `__primgraph_extension__`. Where
    all frames are of installed packages, it is the innermost outside primgraph.
    """
    frame = sys._getframe(1)
    outside: FrameType | None = None
    while True:
        if not is_own(frame):
            if not is_library(frame.f_code.co_filename):
                return frame
            outside = outside or frame
        if frame.f_back is None:
            return outside or frame
        frame = frame.f_back


def declared(function: Callable[..., object]) -> Source | None:
    """The line where a function of the user's is defined, below its decorators, if it has one."""
    plain = inspect.unwrap(function)
    code = getattr(getattr(plain, "__func__", plain), "__code__", None)
    if not isinstance(code, CodeType):
        return None
    file, line = code.co_filename, code.co_firstlineno
    for number, text in enumerate(lines_of(code, file)[line - 1 :][:_DECORATORS], line):
        if not text.lstrip().startswith("@"):
            line = number
            break
    return _at(code, file, "" if file in ordinary else cell_of(file), line, ("", ""))


def caller() -> Source:
    """The user's line that is being executed; see `user_frame`."""
    frame = user_frame()
    return _line(frame.f_code, frame.f_lineno)


def instruction(depth: int = 2) -> tuple[CodeType, int] | None:
    """The code and the offset of the instruction, in the innermost frame outside primgraph.

    Quick, for what is asked for often and told seldom; `source_at` has the line. As many frames
    as `depth` says are known to be inside.
    """
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if name not in _own_names:
            if name is None or not (name == PACKAGE or name.startswith(_PASSED[0])):
                return frame.f_code, frame.f_lasti
            _own_names.add(name)
        frame = frame.f_back
    return None


# Names of modules of primgraph that have been met on the way to a user's line.
_own_names: set[str] = set()


def source_at(code: CodeType, instruction: int) -> Source:
    """The line of an instruction of `code`, by its offset there."""
    found = (line for start, end, line in code.co_lines() if start <= instruction < end)
    return _line(code, next(found, None) or code.co_firstlineno)


def _line(code: CodeType, line: int) -> Source:
    file = code.co_filename
    cell = "" if file in ordinary else cell_of(file)
    return _at(code, file, cell, line, _marks.get())
