"""Source lines of the user's code for equations."""

from __future__ import annotations

import inspect
import linecache
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from primgraph.base.records import dataclass

# IPython's file name of a cell; notebook kernels use other names.
_NAMED = re.compile(r"<ipython-input-(\d+)-")
_NUMBER = re.compile(r"\[(\d+)\]")
_CELL = "Cell In["

# File names known not to be cells, and the maximum number of these.
ordinary: set[str] = set()
_MOST = 4096
# The function that returns the shell, and its last result: calling it is the slowest part of
# finding a line.
_asked: list[Any] = [None, None]


def shell() -> Any:
    """Return the shell of IPython in which this runs, or None."""
    found = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return None if found is None else found()


def notebook() -> Any:
    """Return the shell if it is that of a notebook, which can show HTML, else None."""
    found = shell()
    return found if getattr(found, "kernel", None) is not None else None


def cell_of(file: str) -> str:
    """Return the name of the cell whose code has the file name `file`, as `Cell In[3]`, else empty.

    For a cell that was run repeatedly without changes, it is the last run.
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
    """Return the shell, cached once there is one."""
    source = getattr(sys.modules.get("IPython"), "get_ipython", None)
    if source is not _asked[0] or _asked[1] is None:
        _asked[:] = [source, shell()]
    return _asked[1]


def is_cell(file: str) -> bool:
    """Return whether `file` is a cell name of `cell_of`."""
    return file.startswith(_CELL)


PACKAGE = __name__.partition(".")[0]
_PASSED = (PACKAGE + ".", PACKAGE + " kernel")

# Folders of code that is not the user's: the standard library, scripts of the interpreter, and
# installed packages.
_FOLDERS = tuple(os.path.dirname(file) + os.sep for file in (os.__file__, sys.executable) if file)
_INSTALLED = ("site-packages", "dist-packages")

# Longer source lines are cut.
_LONGEST = 500

# Names of roles for readers.
_SPOKEN = {"tangent": "gradient", "cotangent": "gradient"}
# The role of optimizer updates.
UPDATE = "update"


@dataclass(frozen=True, slots=True)
class Source:
    """Line of the user's code, with the role of the equations created from it.

    `file` is its path, or the name of a notebook cell, such as `Cell In[3]`. `role` is "tangent" or
    "cotangent" in a derivative, by the last transform, "update" in an optimizer's update, and else
    empty. `order` is the number of differentiations, and `operator` the operator that was
    decomposed into primitives. `scope` is the path of the layer being called, such as
    `network.body.0`. `text` is the line itself, read when it was executed; it is empty if the line
    could not be read. Sources may come from files of others, so no file is ever opened because a
    source names it.
    """

    file: str
    line: int
    role: str = ""
    operator: str = ""
    text: str = ""
    scope: str = ""
    order: int = 0

    def mark_derivative(self, role: str) -> Source:
        """Return the line marked as a derivative; the last mark counts."""
        return _annotate_source(self, role, self.operator, self.scope, self.order + 1)

    def mark_cotangent(self) -> Source:
        """Return the line marked as a cotangent instead of a tangent."""
        if self.role == "cotangent":
            return self
        return _annotate_source(self, "cotangent", self.operator, self.scope, max(self.order, 1))

    def before_derivative(self) -> Source:
        """Return the line as it was before the last differentiation.

        The values that a derivative needs, and not the derivative, are computed by it.
        """
        order = max(self.order - 1, 0)
        return _annotate_source(self, self.role if order else "", self.operator, self.scope, order)

    def mark_operator(self, operator: str) -> Source:
        """Return the line marked with the operator it was part of; the first mark stays."""
        if self.operator:
            return self
        return _annotate_source(self, self.role, operator, self.scope, self.order)

    @property
    def is_derived(self) -> bool:
        """Return whether it is the line of a derivative."""
        return self.role not in ("", UPDATE)

    @property
    def is_readable(self) -> bool:
        """Return whether it is in a file that a reader can open."""
        return not self.file.startswith("<") and self.file != "graph text"

    @property
    def place(self) -> Source:
        """Return the line with only the mark of a derivative."""
        role = _SPOKEN.get(self.role, self.role) if self.is_derived else ""
        if role == self.role and not (self.operator or self.scope or self.order):
            return self
        return _annotate_source(self, role, "", "", 0)

    @property
    def drop_marks(self) -> Source:
        """Return the line without marks."""
        return _annotate_source(self, "", "", "", 0)

    @property
    def spot(self) -> str:
        """Location of the line: `model.py:27`, or `Cell In[3], line 2`."""
        if is_cell(self.file):
            return f"{self.file}, line {self.line}"
        # Names such as `<stdin>` are not paths; Python 3.13 numbers the input there.
        if self.file.startswith("<stdin>-"):
            return f"<stdin>:{self.line}"
        name = self.file if self.file.startswith("<") else self.file.rpartition("/")[2]
        return f"{name}:{self.line}"

    def __str__(self) -> str:
        if self.is_derived:
            return f"in the {_SPOKEN.get(self.role, self.role)} of {self.spot}"
        return self.spot


@lru_cache(maxsize=65536)
def _annotate_source(source: Source, role: str, operator: str, scope: str, order: int) -> Source:
    made = replace(source, role=role, operator=operator, scope=scope, order=order)
    return source if made == source else made


@lru_cache(maxsize=65536)
def _make_source(code: CodeType, file: str, cell: str, line: int, marks: tuple[str, str]) -> Source:
    """Return a line of `code`; equal code may come from several files, or cells."""
    role, scope = marks
    lines = lines_of(code, file)
    text = message_text(lines[line - 1]) if 0 < line <= len(lines) else ""
    return Source(cell or file, line, role, text=text, scope=scope)


@lru_cache(maxsize=1024)
def lines_of(code: CodeType, file: str) -> list[str]:
    """Return the lines of the file that `code` was compiled from."""
    return lines_in(file)


def lines_in(file: str) -> list[str]:
    """Return the lines of a source file, from `linecache`; none for a pipe or a device."""
    try:
        # `linecache` may know names that are not files, such as those of cells.
        is_special = os.path.exists(file) and not os.path.isfile(file)
        return [] if is_special else linecache.getlines(file)
    except ValueError:
        # File names cannot contain null characters or lone surrogates.
        return []


def message_text(text: str) -> str:
    """Return `text` for a message: on one line, printable, and not very long."""
    short = text.strip()[:_LONGEST]
    return short if short.isprintable() else "".join(c if c.isprintable() else "?" for c in short)


# Role and scope of the lines being executed.
_marks: ContextVar[tuple[str, str]] = ContextVar("marks", default=("", ""))


def scope() -> str:
    """Return the path of the layer being called; empty outside of layers."""
    return _marks.get()[1]


@contextmanager
def mark_lines(scope: str, role: str = "") -> Iterator[None]:
    """Mark the user's lines within a context with a layer, or as an update."""
    before = _marks.get()
    try:
        _marks.set((role, scope))
        yield
    finally:
        _marks.set(before)


# Maximum number of decorator lines above a definition.
_DECORATORS = 20

# The name that a module defines if it extends primgraph.
_EXTENSION = "__primgraph_extension__"


@lru_cache(maxsize=65536)
def is_library(file: str) -> bool:
    """Return whether a file belongs to the standard library, or to an installed package."""
    if file.startswith(("<frozen ", "<__array_function__", *_FOLDERS)):
        return True
    return not set(_INSTALLED).isdisjoint(file.replace("\\", "/").split("/"))


def is_own_name(name: str | None) -> bool:
    """Return whether a module of that name belongs to primgraph, or is a kernel.

    Classes that are made at run time may have None for the name of their module.
    """
    return name is not None and (name == PACKAGE or name.startswith(_PASSED))


def is_own(frame: FrameType) -> bool:
    """Return whether a frame belongs to primgraph, to a kernel, or to a module that extends
    primgraph."""
    name = frame.f_globals.get("__name__", "")
    return name in _own_names or is_own_name(name) or _EXTENSION in frame.f_globals


def user_frame(depth: int = 1) -> FrameType:
    """Return the user's innermost frame: outside of primgraph, the standard library and installed
    packages.

    Modules that set `__primgraph_extension__` count as part of primgraph. If all frames belong to
    installed packages, it is the innermost one outside of primgraph. The innermost `depth` frames
    are known to be inside.
    """
    frame = sys._getframe(depth)
    outside: FrameType | None = None
    while True:
        # This is `not is_own(frame)`, without calls: every operation passes about ten frames.
        names = frame.f_globals
        name = names.get("__name__", "")
        if name in _own_names:
            pass
        elif name == PACKAGE or name.startswith(_PASSED[0]):
            _own_names.add(name)
        elif not name.startswith(_PASSED[1]) and _EXTENSION not in names:
            if not is_library(frame.f_code.co_filename):
                return frame
            outside = outside or frame
        if frame.f_back is None:
            return outside or frame
        frame = frame.f_back


def name_of(value: object) -> str:
    """Return the name by which the user's line being executed has a value, or an empty string.

    >>> import numpy as np
    >>> weights = np.ones(3)
    >>> def name_it():
    ...     return name_of(weights)
    >>> name_it()
    'weights'
    """
    frame = user_frame()
    found = _local_name(frame, value)
    if found:
        return found
    names = frame.f_globals
    for name in frame.f_code.co_names:
        try:
            # The names of a traced function may be in a dictionary that looks further.
            if names[name] is value:
                return name
        except KeyError:
            continue
    return ""


def _local_name(frame: FrameType, value: object) -> str:
    """Return the name of a local variable of a function that has a value, or an empty string."""
    code = frame.f_code
    if not code.co_flags & inspect.CO_OPTIMIZED:
        return ""
    known = frame.f_locals
    names = (*code.co_varnames, *code.co_freevars, *code.co_cellvars)
    found = next((name for name in names if known.get(name) is value), "")
    # Before Python 3.13 this is a copy, which the frame keeps: it would keep deleted arrays alive.
    # It is emptied unless somebody else refers to it, as the result of `locals()`.
    if known.__class__ is dict and sys.getrefcount(known) <= _UNSHARED:
        known.clear()
    return found


# References to the variables of a frame: by the frame, a local variable, and an argument.
_UNSHARED = 3


def definition_line(function: Callable[..., object]) -> Source | None:
    """Return the line of a user's function definition, below its decorators, or None."""
    plain = inspect.unwrap(function)
    code = getattr(getattr(plain, "__func__", plain), "__code__", None)
    if not isinstance(code, CodeType):
        return None
    file, line = code.co_filename, code.co_firstlineno
    for number, text in enumerate(lines_of(code, file)[line - 1 :][:_DECORATORS], line):
        if not text.lstrip().startswith("@"):
            line = number
            break
    return _make_source(code, file, "" if file in ordinary else cell_of(file), line, ("", ""))


def caller(depth: int = 1) -> Source:
    """Return the user's line being executed; see `user_frame`."""
    frame = user_frame(depth + 1)
    code = frame.f_code
    key = id(code), frame.f_lasti, _marks.get()
    known = _known_places.get(key)
    if known is None:
        known = code, _line(code, frame.f_lineno)
        # The name of a cell may change, as it is that of its last run.
        if code.co_filename in ordinary:
            if len(_known_places) >= _MOST_LINES:
                _known_places.clear()
            _known_places[key] = known
    return known[1]


def instruction(depth: int = 2) -> tuple[CodeType, int] | None:
    """Return code and offset of the instruction in the innermost frame outside of primgraph.

    This is fast, for calls whose result is rarely shown; `source_at` returns the line. The
    innermost `depth` frames are known to be inside.
    """
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if name in _other_names:
            return frame.f_code, frame.f_lasti
        if name not in _own_names:
            if name is None or not (name == PACKAGE or name.startswith(_PASSED[0])):
                if len(_other_names) < _MOST:
                    _other_names.add(name)
                return frame.f_code, frame.f_lasti
            _own_names.add(name)
        frame = frame.f_back
    return None


# Names of modules of primgraph, and of others, that were seen so far.
_own_names: set[str] = set()
_other_names: set[str | None] = set()


def source_at(code: CodeType, instruction: int) -> Source:
    """Return the line of an instruction of `code`, by its offset."""
    found = (line for start, end, line in code.co_lines() if start <= instruction < end)
    return _line(code, next(found, None) or code.co_firstlineno)


def _line(code: CodeType, line: int) -> Source:
    file, marks = code.co_filename, _marks.get()
    cell = "" if file in ordinary else cell_of(file)
    key = (id(code), line, cell, marks)
    known = _lines.get(key)
    if known is None:
        if len(_lines) >= _MOST_LINES:
            _lines.clear()
        known = _lines[key] = code, _make_source(code, file, cell, line, marks)
    return known[1]


# The sources of instructions, as finding the line of one takes time in long functions.
_known_places: dict[tuple[int, int, tuple[str, str]], tuple[CodeType, Source]] = {}

# The sources of lines by the id of the code, which is kept: to hash code takes as long as it has
# constants.
_lines: dict[tuple[int, int, str, tuple[str, str]], tuple[CodeType, Source]] = {}
_MOST_LINES = 65536
