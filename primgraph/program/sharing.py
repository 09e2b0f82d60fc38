"""Arrays shared between a scope and outside observers: a replacement by one side shows in both.

There are no callbacks. Observers register their changes, and the scope checks the register when it
is read. An observer checks the scope's version when it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar, final
from weakref import ref

import numpy as np

from primgraph.base.atomic import Call

Array: TypeAlias = "np.ndarray[Any, Any]"

# Key of the next version in `Version.later`.
NEXT: Final = "next"


class Observer(Protocol):
    """Observer outside of a scope that shares an array and may replace it."""

    def changed_array(self) -> Array | None:
        """Return the array that the scope is to store; None if it is unchanged."""

    def is_settled(self) -> bool:
        """Note that the scope has stored it; return whether there is no newer change."""


class AnyVersion(Protocol):
    """The arrays of a scope at one time; `later` has the version that came after it."""

    @property
    def arrays(self) -> Mapping[str, Array]: ...

    @property
    def later(self) -> Mapping[str, Self]: ...

    @property
    def number(self) -> int: ...


V = TypeVar("V", bound=AnyVersion)


class AnyScope(Protocol):
    """A scope, as those see it who have an array in common with it."""

    def desk(self) -> SharedStorage[Any]: ...

    def reading(self) -> object: ...


@final
class _ArrayRef(ref["Array"]):
    """Weak reference to an array, with a hash by identity."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__


@final
class SharedStorage(Generic[V]):
    """Shared storage of a scope and its observers. It outlives the scope, and keeps its last
    version.

    `waiting` are observers with changes; `scattered` ones share with several scopes and must be
    checked each time.
    """

    __slots__ = ("_lent", "guests", "scattered", "version", "waiting")

    def __init__(self, version: V) -> None:
        self.version = version
        self.guests: dict[str, Observer] = {}
        self.waiting: dict[str, Observer] = {}
        self.scattered: dict[str, Observer] = {}
        # Arrays that observers read, held weakly.
        self._lent: set[_ArrayRef] = set()

    def follow(self) -> V:
        """Move to the newest version, and drop older ones."""
        version = self.version
        if version.later:
            while version.later:
                version = version.later[NEXT]
            self.version = version
        return version

    def lend(self, array: Array) -> None:
        """Mark `array` as read by an observer, so that it is not overwritten."""
        # The callback is in C: an interrupt in a Python callback would be lost.
        self._lent.add(_ArrayRef(array, self._lent.discard))

    def lends(self, arrays: Any) -> bool:
        """Return whether an observer reads one of `arrays`."""
        lent = {id(reference()) for reference in list(self._lent)}
        return not lent.isdisjoint(map(id, arrays))

    def changed_arrays(self) -> dict[str, Array]:
        """Return the changes of observers, by name."""
        found: dict[str, Array] = {}
        for name, guest in [*self.waiting.items(), *self.scattered.items()]:
            array = guest.changed_array()
            if array is not None:
                found[name] = array
        return found

    def settle(self) -> None:
        """Note that the scope has stored the changes."""
        for name, guest in [*self.waiting.items(), *self.scattered.items()]:
            self.waiting.pop(name, None)
            if not guest.is_settled():
                self.waiting[name] = guest


@final
class ObserverUpdate(NamedTuple):
    """Array that an observer is to show, and the calls that note it, for `call_all`."""

    array: Array
    calls: tuple[Call, ...]


@final
class Share:
    """Array shared by a scope and an observer, until one of them replaces it.

    `agreed` is the observer's object for the array.
    """

    __slots__ = ("_array", "_compared", "_scope", "agreed", "desk", "name")

    def __init__(self, scope: AnyScope, name: str) -> None:
        self._scope = ref(scope)
        self._compared = -1
        self._array: Array | None = None
        self.agreed: object = None
        self.desk = scope.desk()
        self.name = name

    def is_of(self, scope: AnyScope) -> bool:
        """Return whether this belongs to `scope`."""
        return self._scope() is scope

    @property
    def is_alive(self) -> bool:
        """Return whether the scope still exists."""
        return self._scope() is not None

    def hand(self, array: Array) -> None:
        """Note that the scope is to store `array`, which the observer still reads."""
        self._array = array
        self.desk.lend(array)

    def replaced_array(self) -> ObserverUpdate | None:
        """Return the scope's array if it was replaced, else None."""
        desk = self.desk
        if desk.follow().number == self._compared:
            return None
        scope = self._scope()
        reading = None if scope is None else scope.reading()
        version = desk.follow()
        array = version.arrays.get(self.name)
        if array is None or array is self._array:
            self._compared = version.number
            return None
        desk.lend(array)
        # The reading protected the array from being overwritten until it was lent.
        del reading
        calls = ((setattr, self, "_compared", version.number), (setattr, self, "_array", array))
        return ObserverUpdate(array, calls)
