"""Keeps Python's garbage collector from following graphs while they are being made.

Passes make many small objects that live on and have no cycles. The collector would look through
all that was made so far again and again, which takes as long as the passes themselves.
"""

from __future__ import annotations

import gc
from contextlib import ContextDecorator
from threading import Lock
from typing import final


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
                gc.enable()


uncollected = _Pause()
