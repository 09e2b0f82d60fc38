"""Calls that are made together: no interrupt comes between them.

Python handles signals between instructions, and never within a function that is written in C. So
whoever has to change several things at once, so that Ctrl-C leaves all of them changed or none,
first computes what they become, and then makes all changes by one call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import starmap
from operator import call
from typing import Any, TypeAlias

# A function that is written in C, and its arguments.
Call: TypeAlias = tuple[Any, ...]


def call_all(calls: Iterable[Call]) -> None:
    """Make all of the calls, in order, or none where an interrupt comes first.

        call_all([(setattr, one, "size", 3), (setitem, other, "size", 3)])

    The functions have to be written in C, must not fail, and must not run Python code: `setattr`
    on classes without a `__setattr__` of their own and on names that are no properties, methods of
    dicts, `ContextVar.set`. What is replaced has to live until all calls are made, as its
    finalizers may be written in Python.
    """
    deque(starmap(call, calls), 0)
