"""Limits of the interpreter: recursion for nested graphs, and garbage collection."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import ContextDecorator
from threading import get_ident
from typing import final

from primgraph.base.locks import make_lock
from primgraph.errors import BuildError

# New objects that the collector is spared from looking through.
_MANY = 10_000


@final
class _Pause(ContextDecorator):
    """A context, and a decorator, in which the collector waits; in any thread, at any depth.

    Where it was off already, it stays off afterwards.
    """

    def __init__(self) -> None:
        self._lock = make_lock()
        # How deep each thread is in it.
        self._depth: dict[int, int] = {}
        self._was_on = False

    def __enter__(self) -> None:
        # In this order a process may be forked at any time: where a thread is noted, it is known
        # whether the collector is to run again.
        thread = get_ident()
        with self._lock:
            first = not self._depth
            if first:
                self._was_on = gc.isenabled()
            self._depth[thread] = self._depth.get(thread, 0) + 1
            if first:
                gc.disable()

    def __exit__(self, *_: object) -> None:
        thread = get_ident()
        with self._lock:
            if self._depth[thread] > 1:
                self._depth[thread] -= 1
                return
            if len(self._depth) == 1 and self._was_on:
                _let_live()
                gc.enable()
            del self._depth[thread]

    def after_fork(self) -> None:
        """In a child process no thread is in it but perhaps the one that forked."""
        waiting, thread = bool(self._depth), get_ident()
        self._depth = {k: n for k, n in self._depth.items() if k == thread}
        if waiting and not self._depth and self._was_on:
            gc.enable()


def _let_live() -> None:
    """Put what was made among the old objects, where many were: most of it lives on.

    To freeze and unfreeze moves whole lists, and looks at no object; where somebody has frozen
    something, that has to stay so.
    """
    if gc.get_count()[0] > _MANY and not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


uncollected = _Pause()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=uncollected.after_fork)


# Loops and branches stand in each other to this depth: in what is built, in text and in files.
DEEPEST = 100

# Below this depth Python's default recursion limit is enough. Passes recurse over nesting, never
# over equations: above it they take up to 40 frames for a level.
_SHALLOW, _FRAMES = 8, 6000


def is_too_deep(depth: int) -> bool:
    """Whether graphs may not stand in each other to this depth.

    Where they may and are many, Python's recursion limit is raised for the process, if it is lower
    than what a pass over `DEEPEST` graphs takes.
    """
    if depth > _SHALLOW and sys.getrecursionlimit() < _FRAMES:
        sys.setrecursionlimit(_FRAMES)
    return depth > DEEPEST


def too_deep() -> str:
    """The fault of what is nested beyond the limit."""
    return f"loops and branches are nested more than {DEEPEST} deep"


def require_nesting(depth: int) -> None:
    """Raise `BuildError` for graphs that stand in each other beyond the limit."""
    if is_too_deep(depth):
        raise BuildError(
            too_deep(),
            hint="a loop with a counter does the same at any depth: pg.fori_loop, pg.scan",
        )
