"""Scopes: where the values of parameters live between runs.

What a scope holds at one time is a version of it, in which nothing changes. A run computes new
values into arrays that belong to no version, and makes them one by a single step that cannot be
interrupted half-way. The arrays of the version before are those that the next run but one writes
to, unless somebody still reads them.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from operator import itemgetter
from types import CodeType
from typing import Any, TypeAlias, TypeVar, final
from weakref import WeakSet, WeakValueDictionary, ref

import numpy as np

from primgraph.base.atomic import Call, call_all
from primgraph.base.locks import make_lock
from primgraph.errors import FeedError, near_matches
from primgraph.ir.frontend.html_tables import Row, Sheet
from primgraph.ir.frontend.signature import checked_methods
from primgraph.ir.types import TensorType
from primgraph.program.sharing import NEXT, Desk, Guest
from primgraph.tables import quantity

Array: TypeAlias = "np.ndarray[Any, Any]"
Lock: TypeAlias = "AbstractContextManager[bool]"
F = TypeVar("F", bound=Callable[..., Any])

_numbers = itertools.count()

# Seconds after which somebody who waits looks whether there is anybody to wait for.
_PATIENCE = 0.5

# The code of functions that run while their thread has its turn to store.
_storing: set[CodeType] = set()


def storing(function: F) -> F:
    """Tell that `function`, which is called in `with scope.turn():`, is what takes time there."""
    _storing.add(function.__code__)
    return function


def _stores(thread: int) -> bool:
    """Whether a thread is at work in such a function."""
    frame = sys._current_frames().get(thread)
    while frame is not None and frame.f_code not in _storing:
        frame = frame.f_back
    return frame is not None


@final
class Changes:
    """Which arrays of a scope runs of some kind replace, by name, and their types."""

    __slots__ = ("__weakref__", "names", "taken", "types")

    def __init__(self, names: tuple[str, ...], types: tuple[TensorType, ...]) -> None:
        self.names = names
        self.types = types
        self.taken = taker(names)

    def __len__(self) -> int:
        return len(self.names)


def changes_of(types: Mapping[str, TensorType]) -> Changes:
    """The changes of these arrays: one object for all runs that replace the same."""
    names, listed = tuple(types), tuple(types.values())
    return _changes.setdefault((names, listed), Changes(names, listed))


_changes: WeakValueDictionary[tuple[Any, ...], Changes] = WeakValueDictionary()


def taker(keys: Sequence[Any]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that takes the items of `keys`, in this order."""
    if len(keys) > 1:
        return itemgetter(*keys)
    return lambda items: tuple([items[key] for key in keys])


@final
class Setting:
    """What versions have in common that follow one another and replace the same arrays.

    `rest` are the arrays that stay, by name, and `numbers` a number for each that is never used
    again for another array of that name. `seen` are states that have been compared with all of
    the arrays.
    """

    __slots__ = ("changes", "numbers", "rest", "seen")

    def __init__(self, changes: Changes, rest: dict[str, Array], numbers: dict[str, int]) -> None:
        self.changes = changes
        self.rest = rest
        self.numbers = numbers
        self.seen: Sequence[object] | None = None


@final
class Version:
    """The arrays of a scope at one time: those that stay, and `new` ones, of one `number`.

    `later` has the version that came after it, once there is one. `used` tells that a run has
    begun to compute that one.
    """

    __slots__ = ("_arrays", "later", "new", "number", "setting", "used")

    def __init__(self, setting: Setting, new: Sequence[Array]) -> None:
        self.setting = setting
        self.new = new
        self.number = next(_numbers)
        self.later: dict[str, Version] = {}
        self.used = False
        self._arrays: dict[str, Array] | None = None

    @property
    def arrays(self) -> dict[str, Array]:
        """All arrays by name."""
        found = self._arrays
        if found is None:
            new = zip(self.setting.changes.names, self.new, strict=True)
            found = self._arrays = {**self.setting.rest, **dict(new)}
        return found

    @property
    def numbers(self) -> dict[str, int]:
        """The numbers of all arrays, by name."""
        new = dict.fromkeys(self.setting.changes.names, self.number)
        return {**self.setting.numbers, **new}

    def followed_by(self, changes: Changes, new: Sequence[Array]) -> Version:
        """A version with `new` in the place of the arrays that `changes` names."""
        if changes is self.setting.changes:
            return Version(self.setting, new)
        gone = frozenset(changes.names)
        rest = {name: array for name, array in self.arrays.items() if name not in gone}
        numbers = {name: number for name, number in self.numbers.items() if name not in gone}
        return Version(Setting(changes, rest, numbers), new)


@final
class Reading:
    """Somebody reads a version of a scope: while this object lives, its arrays stay as they are."""

    __slots__ = ("__weakref__", "thread", "version")

    version: Version

    def __init__(self) -> None:
        self.thread = threading.get_ident()


@final
@checked_methods(
    "begin",
    "desk",
    "latest",
    "put",
    "read",
    "reading",
    "replace",
    "spare",
    "store",
    "turn",
)
class Scope:
    """Arrays by name: the state that runs of a program read and write.

    Each program has one of its own; an executor with a scope uses that one instead, so that two
    executors with two scopes do not see each other. What is stored is the scope's alone: it is
    copied on the way in, and `get` gives copies out.

    All that a run stores is seen at once, or nothing of it if the run fails or is interrupted,
    wherever that may be. Runs that store something wait for one another, those that only read do
    not wait, and see what the scope held at one moment.
    """

    def __init__(self) -> None:
        # Whoever stores holds it. It can be taken again by the thread that has it, which may be
        # interrupted by a signal, so it is no more than a courtesy: `store` relies on nothing.
        self._turn = make_lock()
        self._newest = Version(Setting(Changes((), ()), {}, {}), ())
        self._spares: dict[Changes, Sequence[Array]] = {}
        self._readings: set[ref[Reading]] = set()
        self._desk: Desk[Version] | None = None
        _scopes.add(self)

    def __contains__(self, name: str) -> bool:
        return name in self.newest.arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self.newest.arrays)

    def __len__(self) -> int:
        return len(self.newest.arrays)

    def __repr__(self) -> str:
        arrays = self.newest.arrays
        size = quantity(sum(a.nbytes for a in arrays.values()), "B")
        return f"<Scope of {len(arrays)} arrays, {size}>"

    def _repr_html_(self) -> str:
        """Names and types; the elements stay where they are."""
        arrays = self.newest.arrays
        rows = (
            Row((name, str(a.dtype), str(a.shape), quantity(a.nbytes, "B")))
            for name, a in arrays.items()
        )
        head = ("name", "dtype", "shape", "size")
        return Sheet(repr(self)[1:-1], "cccn", head, rows, len(arrays)).html()

    # For runs.

    def turn(self) -> Lock:
        """What to hold while something is computed and stored, once it is free.

        Where an exception came between taking and giving it back, as debuggers can bring about,
        nobody would ever have his turn again: then it is another lock.
        """
        lock = self._turn
        while not lock.acquire(timeout=_PATIENCE):
            if lock is self._turn and not any(map(_stores, sys._current_frames())):
                self._turn = make_lock()
            lock = self._turn
        lock.release()
        turn: Lock = lock
        return turn

    @property
    def newest(self) -> Version:
        """What the scope holds now. Its arrays may be read only during a `Reading`."""
        if self._desk is not None:
            self._take_in(self._desk)
        return self.latest()

    def latest(self) -> Version:
        """The newest version, whatever guests have brought since."""
        version = self._newest
        while version.later:
            version = version.later[NEXT]
        return version

    def read(self) -> Reading:
        """The newest version, whose arrays nobody overwrites while what is returned lives."""
        if self._desk is not None:
            self._take_in(self._desk)
        return self.reading()

    def reading(self) -> Reading:
        """`read`, whatever guests have brought since."""
        reading = Reading()
        # Noted before the version is looked up: who stores another one looks here afterwards.
        self._readings.add(ref(reading, self._readings.discard))
        reading.version = self.latest()
        return reading

    def desk(self) -> Desk[Version]:
        """Where guests are, who have arrays of the scope, too."""
        if self._desk is None:
            self._desk = Desk(self.latest())
        return self._desk

    def guest(self, name: str) -> Guest | None:
        """Who has the array of that name, too."""
        return None if self._desk is None else self._desk.guests.get(name)

    def _take_in(self, desk: Desk[Version]) -> None:
        """Hold what guests have brought since they were asked last."""
        desk.follow()
        if desk.waiting or desk.scattered:
            new = desk.brought()
            if new:
                self._put(new)
            desk.settle()

    def begin(self) -> tuple[Version, bool]:
        """The newest version, for a run that is to replace it, and whether it is the first one.

        Another one is within a run that has begun with the same version, in the same thread.
        """
        version = self.newest
        first = not version.used
        version.used = True
        return version, first

    def spare(self, changes: Changes) -> Sequence[Array]:
        """Arrays to compute new values into, which nobody else has."""
        found = self._spares.pop(changes, None)
        if found is None:
            found = [np.empty(t.shape, t.dtype) for t in changes.types]
        return found

    def store(self, before: Version, first: bool, changes: Changes, new: Sequence[Array]) -> bool:
        """`replace` by what was computed into arrays that `spare` gave, after `begin`."""
        if not self._replaced(before, before.followed_by(changes, new)):
            return False
        if first and not self._readings:
            # Nobody but the caller, who has done with them, has the arrays that were replaced.
            same = before.setting.changes is changes
            old = before.new if same else changes.taken(before.arrays)
            if self._desk is None or not self._desk.lends(old):
                self._spares[changes] = old
        return True

    def replace(self, before: Version, new: Mapping[str, Array]) -> bool:
        """Let the scope hold `new` beside the other arrays of `before`.

        They are taken as they are, and are the scope's from then on. All of them are there at
        once, for everybody. Returns False, and does nothing, if the scope holds another version
        by now.
        """
        return self._replaced(before, before.followed_by(Changes(tuple(new), ()), [*new.values()]))

    def _replaced(self, before: Version, after: Version) -> bool:
        # One call of a function in C: it is done or not, in all threads and whatever interrupts.
        if before.later.setdefault(NEXT, after) is not after:
            return False
        self._newest = after
        return True

    def put(self, new: Mapping[str, Array]) -> None:
        """Hold `new`, arrays that nobody else has, all at once."""
        if self._desk is not None:
            # What they have brought before is older.
            self._take_in(self._desk)
        with self.turn():
            self._put(new)

    @storing
    def _put(self, new: Mapping[str, Array]) -> None:
        while not self.replace(self.latest(), new):
            pass

    # For users.

    def get(self, name: str) -> Array:
        """A copy of the array of that name. Raises `FeedError` if there is none."""
        reading = self.read()
        arrays = reading.version.arrays
        if name not in arrays:
            raise FeedError(f"the scope holds no {name!r}", hint=near_matches(name, arrays))
        return arrays[name].copy()

    def snapshot(self) -> dict[str, Array]:
        """Copies of all arrays, by name, as they were together at one moment."""
        reading = self.read()
        return {name: array.copy() for name, array in reading.version.arrays.items()}

    def set(self, name: str, value: Any, type: TensorType | None = None) -> None:
        """Store a copy of `value`, which must have that type if one is given.

        Raises `FeedError` for another shape, or a dtype that does not convert within its kind.
        """
        self.put({name: copied(name, value, type)})

    def after_fork(self) -> None:
        """In a child process nobody reads but the thread that has forked."""
        here = threading.get_ident()
        alive = ((r, r()) for r in list(self._readings))
        gone = [r for r, reading in alive if reading is None or reading.thread != here]
        self._readings.difference_update(gone)


@storing
def put_all(new: Mapping[Scope, Mapping[str, Array]], calls: Iterable[Call] = ()) -> None:
    """Hold `new`, arrays that nobody else has, in several scopes, and make `calls`, all at once."""
    with ExitStack() as turns:
        for scope in sorted(new, key=id):
            # What guests have brought before is older.
            scope.read()
            turns.enter_context(scope.turn())
        stored = []
        for scope, arrays in new.items():
            before = scope.latest()
            after = before.followed_by(Changes(tuple(arrays), ()), [*arrays.values()])
            stored.append((scope, before, after))
        call_all([*calls, *[(old.later.setdefault, NEXT, after) for _, old, after in stored]])
        for scope, before, after in stored:
            # Whoever stores without waiting for a turn may have come first.
            if before.later[NEXT] is not after:
                scope.put(new[scope])


def copied(name: str, value: Any, type: TensorType | None = None) -> Array:
    """A copy of `value` for a scope, in which it is to be called `name`; see `Scope.set`."""
    known = repr(name) if type is None else f"{name!r} is {type}, and"
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise FeedError(f"{known} cannot be set to {value!r:.60}: {error}") from None
    if array.dtype.kind not in "biufc":
        raise FeedError(f"{known} cannot be set to {value!r:.60} of dtype {array.dtype}")
    if type is not None:
        same_kind = np.can_cast(array.dtype, type.dtype, "same_kind")
        if array.shape != type.shape or not same_kind:
            raise FeedError(
                f"{name!r} is {type}; an array of shape {array.shape} and dtype "
                f"{array.dtype} is given"
            )
        array = array.astype(type.dtype)
    return np.array(array, order="C")


_scopes: WeakSet[Scope] = WeakSet()


def _after_fork() -> None:
    for scope in list(_scopes):
        scope.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
