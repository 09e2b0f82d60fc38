"""Calls that are made together, without an interrupt between them.

Python handles signals between instructions, and never within a function written in C. To change
several things atomically with respect to Ctrl-C, compute the new values first, and then make all
changes by one call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import partial
from itertools import starmap
from operator import call
from typing import Any, TypeAlias, final

# A function written in C, and its arguments.
Call: TypeAlias = tuple[Any, ...]


def call_all(calls: Iterable[Call]) -> None:
    """Make all of the calls, in order, or none if an interrupt comes first.

        call_all([(setattr, one, "size", 3), (setitem, other, "size", 3)])

    The functions have to be written in C, must not fail, and must not run Python code: `setattr`
    on classes without a `__setattr__` of their own and on names that are no properties, methods of
    dicts, `ContextVar.set`. What is replaced has to live until all calls are made, as its
    finalizers may be written in Python.
    """
    deque(starmap(call, calls), 0)


@final
class _Guard:
    """Object that calls its `__del__` attribute, without arguments, when it is garbage collected.

    The call is made by C: an interrupt in a Python finalizer would be lost.
    """

    __slots__ = ("__del__",)


@final
class Exit:
    """Descriptor of an `__exit__` that runs even if an interrupt prevents `leave` from running.

    Python handles a signal before the first line of a Python function that it calls, such as
    `__exit__`. `with` looks up `__exit__` before it enters the context. At that time `undoing`
    returns a function, which is always called, and restores the earlier state if that has not
    happened.
    """

    def __init__(
        self, leave: Callable[[Any], None], undoing: Callable[[Any], Callable[[], None]]
    ) -> None:
        self._leave = leave
        self._prepare_restore = undoing

    def __get__(self, owner: Any, kind: Any = None) -> Callable[..., None]:
        if owner is None:
            return self._exit
        waiting: list[Call] = [(self._prepare_restore(owner),)]
        found = partial(self._exit, owner, waiting)
        # Only the `with` statement holds it, and no frame that may be interrupted or kept by a
        # traceback.
        found.guard = guard = _Guard()  # type: ignore[attr-defined]
        guard.__del__ = partial(deque, starmap(call, waiting), 0)  # type: ignore[attr-defined]
        return found

    def _exit(self, owner: Any, waiting: Any = None, *_: object) -> None:
        self._leave(owner)
        if isinstance(waiting, list):
            # The context was left normally.
            waiting.clear()


class Setting:
    """Context manager that sets a context variable; it can be nested.

    It applies to the current thread or asynchronous task.
    """

    def __init__(self, variable: ContextVar[Any], value: Any) -> None:
        self._variable = variable
        self._value = value
        self._before: list[Any] = []

    def __enter__(self) -> None:
        self._before.append(self._variable.get())
        self._variable.set(self._value)

    def _leave(self) -> None:
        call_all([(self._variable.set, self._before[-1]), (self._before.pop,)])

    def _prepare_restore(self) -> Callable[[], None]:
        return partial(self._back_to, len(self._before), self._variable.get())

    def _back_to(self, depth: int, value: Any) -> None:
        """Leave all contexts of this that were entered above a depth."""
        if len(self._before) > depth:
            call_all([(self._variable.set, value), (self._before.__delitem__, slice(depth, None))])

    __exit__ = Exit(_leave, _prepare_restore)
