"""Cells of notebooks: the shell that runs them, and what it calls the files that it makes of them.

IPython is never imported: where it runs, it is there.
"""

from __future__ import annotations

import re
import sys
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
