"""Arrays that a scope has in common with somebody outside: whoever brings another one, both see it.

Nobody is called when something changes. Guests note that they bring an array, and the scope looks
at these notes when it is read; what the scope stores is looked up when somebody asks a guest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar, final
from weakref import ref

import numpy as np

from primgraph.base.atomic import Call

Array: TypeAlias = "np.ndarray[Any, Any]"

# Under what a version has the one that came after it.
NEXT: Final = "next"


class Guest(Protocol):
    """Somebody outside who has an array of a scope, too, and may bring another one."""

    def brought(self) -> Array | None:
        """The array that the scope is to hold from now on; None where it has that already."""

    def is_settled(self) -> bool:
        """Note that the scope holds what was brought; whether there is nothing newer by now."""


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

    def desk(self) -> Desk[Any]: ...

    def reading(self) -> object: ...


@final
class _Lent(ref["Array"]):
    """A reference to an array, which as such has no hash."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__


@final
class Desk(Generic[V]):
    """Where a scope and its guests meet. It outlives the scope, whose last version it has.

    `waiting` are guests that have brought something; `scattered` ones have to be asked each time,
    as they are guests of several scopes.
    """

    __slots__ = ("_lent", "guests", "scattered", "version", "waiting")

    def __init__(self, version: V) -> None:
        self.version = version
        self.guests: dict[str, Guest] = {}
        self.waiting: dict[str, Guest] = {}
        self.scattered: dict[str, Guest] = {}
        # Arrays that guests read, as long as there are such.
        self._lent: set[_Lent] = set()

    def follow(self) -> V:
        """The newest version. Older ones are let go."""
        version = self.version
        if version.later:
            while version.later:
                version = version.later[NEXT]
            self.version = version
        return version

    def lend(self, array: Array) -> None:
        """Note that a guest reads `array`: nobody is to write to it."""
        # The callback is written in C: an interrupt in one of Python's would be lost.
        self._lent.add(_Lent(array, self._lent.discard))

    def lends(self, arrays: Any) -> bool:
        """Whether a guest reads one of `arrays`."""
        lent = {id(reference()) for reference in list(self._lent)}
        return not lent.isdisjoint(map(id, arrays))

    def brought(self) -> dict[str, Array]:
        """What guests bring, by name."""
        found: dict[str, Array] = {}
        for name, guest in [*self.waiting.items(), *self.scattered.items()]:
            array = guest.brought()
            if array is not None:
                found[name] = array
        return found

    def settle(self) -> None:
        """Note that the scope holds what was brought."""
        for name, guest in [*self.waiting.items(), *self.scattered.items()]:
            self.waiting.pop(name, None)
            if not guest.is_settled():
                self.waiting[name] = guest


@final
class News(NamedTuple):
    """An array that the guest is to have, and the calls that note that it has, for `call_all`."""

    array: Array
    calls: tuple[Call, ...]


@final
class Share:
    """An array that a scope and a guest have in common, until one of them has another one.

    `agreed` is what the guest calls the array.
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
        """Whether `scope` has the array."""
        return self._scope() is scope

    @property
    def is_alive(self) -> bool:
        """Whether the scope is still there."""
        return self._scope() is not None

    def hand(self, array: Array) -> None:
        """Note that the scope is to hold `array`, which the guest goes on to read."""
        self._array = array
        self.desk.lend(array)

    def news(self) -> News | None:
        """The array that the scope holds, where that is another one by now."""
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
        # Nobody could begin to overwrite the array before it was lent.
        del reading
        calls = ((setattr, self, "_compared", version.number), (setattr, self, "_array", array))
        return News(array, calls)
