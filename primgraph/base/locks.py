"""Locks of the package: a process that was forked has all of them free."""

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
    """Make a lock for `with`, which a thread that has it may take again.

    In a child process it is free: the thread that had it at the fork is not there. Where the thread
    that forked has it, as a handler of signals may, that goes on to have it. All locks of the
    package are made here, so that none can make a child wait for ever.
    """
    made = threading.RLock()
    _locks.add(ref(made, _locks.discard))
    return made


def _reset() -> None:
    for known in list(_locks):
        lock = known()
        if lock is not None and not lock._is_owned():
            # As the modules `threading` and `logging` do with their own.
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset)


class cached_property(functools.cached_property[T]):
    """`functools.cached_property`, whose lock, which Python 3.11 still has, is free in a child."""

    def __init__(self, func: Callable[[Any], T]) -> None:
        super().__init__(func)
        if hasattr(self, "lock"):
            self.lock = make_lock()
