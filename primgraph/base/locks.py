"""Locks of the package, which are free in a forked process."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import ref

T = TypeVar("T")

_locks: set[ref[Any]] = set()


def make_lock() -> Any:
    """Create a reentrant lock for `with`.

    In a forked child it is free, unless the thread that forked holds it, as a signal handler may:
    another thread that held it does not exist there. All locks of the package are created here, so
    that none can block a child forever.
    """
    made = threading.RLock()
    _locks.add(ref(made, _locks.discard))
    return made


def _reset() -> None:
    for known in list(_locks):
        lock = known()
        if lock is not None and not lock._is_owned():
            # The modules `threading` and `logging` do the same with their locks.
            lock._at_fork_reinit()


def after_fork(reset: Callable[[], None]) -> Callable[[], None]:
    """Call `reset` in each forked child; a decorator."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=reset)
    return reset


after_fork(_reset)


class cached_property(functools.cached_property[T]):
    """`functools.cached_property`, whose lock (in Python 3.11) is free in a forked child."""

    def __init__(self, func: Callable[[Any], T]) -> None:
        super().__init__(func)
        if hasattr(self, "lock"):
            self.lock = make_lock()
