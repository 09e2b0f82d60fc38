"""Notebook cells: the shell that runs them, and their names.

IPython is never imported here: if it runs, it is imported already.
"""

from __future__ import annotations

import re
import sys
from typing import Any

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
