"""Calls that are made together: no interrupt comes between them.

Python handles signals between instructions, and never within a function that is written in C. So
whoever has to change several things at once, so that Ctrl-C leaves all of them changed or none,
first computes what they become, and then makes all changes by one call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import partial
from itertools import starmap
from operator import call
from typing import Any, TypeAlias, final

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


@final
class _Guard:
    """Calls what an instance has as its `__del__`, without arguments, when nobody has it any more.

    The call is made by C: an interrupt that came in a finalizer written in Python would be lost.
    """

    __slots__ = ("__del__",)


@final
class Exit:
    """The `__exit__` of a context that is left also where an interrupt keeps `leave` from running.

    Python handles a signal before the first line of a function that it calls, as of `__exit__`.
    `with` looks that up before it enters the context. So that is when `undoing` gives a function,
    which is called after all, and leads back to the state of then, if it is another one by then.
    """

    def __init__(
        self, leave: Callable[[Any], None], undoing: Callable[[Any], Callable[[], None]]
    ) -> None:
        self._leave = leave
        self._undoing = undoing

    def __get__(self, owner: Any, kind: Any = None) -> Callable[..., None]:
        if owner is None:
            return self._left
        waiting: list[Call] = [(self._undoing(owner),)]
        found = partial(self._left, owner, waiting)
        # Only `with` has it: what runs and may be interrupted, and in a traceback, does not.
        found.guard = guard = _Guard()  # type: ignore[attr-defined]
        guard.__del__ = partial(deque, starmap(call, waiting), 0)  # type: ignore[attr-defined]
        return found

    def _left(self, owner: Any, waiting: Any = None, *_: object) -> None:
        self._leave(owner)
        if isinstance(waiting, list):
            # There is nothing to undo.
            waiting.clear()


class Setting:
    """A context in which a context variable has a value; contexts may be entered within each other.

    It counts for the thread, or the asynchronous task, that has entered it.
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

    def _undoing(self) -> Callable[[], None]:
        return partial(self._back_to, len(self._before), self._variable.get())

    def _back_to(self, depth: int, value: Any) -> None:
        """Leave all contexts of this that were entered after so many."""
        if len(self._before) > depth:
            call_all([(self._variable.set, value), (self._before.__delitem__, slice(depth, None))])

    __exit__ = Exit(_leave, _undoing)
