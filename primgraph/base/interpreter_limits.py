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

# Number of new objects above which they are moved to the oldest generation.
_MANY = 10_000


@final
class _Pause(ContextDecorator):
    """Reentrant context manager and decorator that pauses the collector, in any thread.

    If it was off before, it stays off afterwards.
    """

    def __init__(self) -> None:
        self._lock = make_lock()
        # Nesting depth by thread.
        self._depth: dict[int, int] = {}
        self._was_on = False

    def __enter__(self) -> None:
        # This order is safe against a fork at any time: once a thread is entered, it is known
        # whether to restart the collector.
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

    def reset_after_fork(self) -> None:
        """Drop the entries of other threads in a forked child."""
        waiting, thread = bool(self._depth), get_ident()
        self._depth = {k: n for k, n in self._depth.items() if k == thread}
        if waiting and not self._depth and self._was_on:
            gc.enable()


def _let_live() -> None:
    """Move many new objects to the oldest generation, as most of them are long-lived.

    Freezing and unfreezing moves whole lists without traversing objects. It is skipped if the user
    has frozen objects.
    """
    if gc.get_count()[0] > _MANY and not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


uncollected = _Pause()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=uncollected.reset_after_fork)


# Maximum nesting depth of loops and branches: in built graphs, in text and in files.
DEEPEST = 100

# Below this depth Python's default recursion limit suffices. Passes recurse over nesting, never
# over equations: deeper graphs take up to 40 frames per level.
_SHALLOW, _FRAMES = 8, 6000


def is_too_deep(depth: int) -> bool:
    """Return whether a nesting depth exceeds the limit.

    For a large depth within the limit, raise Python's recursion limit for the process to what a
    pass over `DEEPEST` nested graphs takes.
    """
    if depth > _SHALLOW and sys.getrecursionlimit() < _FRAMES:
        sys.setrecursionlimit(_FRAMES)
    return depth > DEEPEST


def too_deep() -> str:
    """Return the error message for graphs nested beyond the limit."""
    return f"loops and branches are nested more than {DEEPEST} deep"


def require_nesting(depth: int) -> None:
    """Raise `BuildError` if graphs are nested beyond the limit."""
    if is_too_deep(depth):
        raise BuildError(
            too_deep(),
            hint="a loop with a counter does the same at any depth: pg.fori_loop, pg.scan",
        )
