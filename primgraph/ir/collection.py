"""Keeps Python's garbage collector from following graphs while they are being made.

Passes make many small objects that live on and have no cycles. The collector would look through
all that was made so far again and again, which takes as long as the passes themselves.
"""

from __future__ import annotations

import gc
from contextlib import ContextDecorator
from threading import Lock
from typing import final

# New objects that the collector is spared from looking through.
_MANY = 10_000


@final
class _Pause(ContextDecorator):
    """A context, and a decorator, in which the collector waits; in any thread, at any depth.

    Where it was off already, it stays off afterwards.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._depth = 0
        self._was_on = False

    def __enter__(self) -> None:
        with self._lock:
            if self._depth == 0:
                self._was_on = gc.isenabled()
                gc.disable()
            self._depth += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._was_on:
                _let_live()
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
