"""Scopes: storage of parameter values between runs.

The content of a scope at one time is an immutable version. A run writes new values into arrays of
no version, and publishes them as a new version by one atomic step. The arrays of the previous
version are reused by the next run but one, unless they are being read.
"""

from __future__ import annotations

import itertools
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from operator import itemgetter
from types import CodeType
from typing import Any, TypeAlias, TypeVar, final
from weakref import WeakSet, WeakValueDictionary

import numpy as np

from primgraph.base.atomic import Call, call_all
from primgraph.base.locks import make_lock
from primgraph.base.records import dataclass
from primgraph.errors import ArgumentError, FeedError, near_matches
from primgraph.initializers import Initializer, first_array
from primgraph.ir.frontend.html_tables import Row, Sheet
from primgraph.ir.frontend.signature import checked_methods
from primgraph.ir.types import TensorType
from primgraph.program.sharing import NEXT, Observer, SharedStorage
from primgraph.tables import quantity

Array: TypeAlias = "np.ndarray[Any, Any]"
Lock: TypeAlias = "AbstractContextManager[bool]"
F = TypeVar("F", bound=Callable[..., Any])

_numbers = itertools.count()

# Seconds after which a waiting thread checks whether the lock's holder still runs.
_PATIENCE = 0.5

# Code of functions that run while their thread holds the lock for storing.
_storing: set[CodeType] = set()


def register_storing(function: F) -> F:
    """Register `function` as the one that runs inside `with scope.turn():`."""
    _storing.add(function.__code__)
    return function


def _stores(thread: int) -> bool:
    """Return whether a thread is running such a function."""
    frame = sys._current_frames().get(thread)
    while frame is not None and frame.f_code not in _storing:
        frame = frame.f_back
    return frame is not None


@final
class Changes:
    """Names and types of the arrays of a scope that some runs replace."""

    __slots__ = ("__weakref__", "names", "taken", "types")

    def __init__(self, names: tuple[str, ...], types: tuple[TensorType, ...]) -> None:
        self.names = names
        self.types = types
        self.taken = taker(names)

    def __len__(self) -> int:
        return len(self.names)


def changes_of(types: Mapping[str, TensorType]) -> Changes:
    """Return the unique `Changes` object of these arrays."""
    names, listed = tuple(types), tuple(types.values())
    return _changes.setdefault((names, listed), Changes(names, listed))


_changes: WeakValueDictionary[tuple[Any, ...], Changes] = WeakValueDictionary()


def taker(keys: Sequence[Any]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that reads the items of `keys`, in this order."""
    if len(keys) > 1:
        return itemgetter(*keys)
    return lambda items: tuple([items[key] for key in keys])


@final
class Setting:
    """Common part of successive versions that replace the same arrays.

    `rest` are the unchanged arrays, by name. `numbers` has a number for each of them that is never
    reused for another array of that name. `seen` are states already validated against the arrays.
    """

    __slots__ = ("changes", "numbers", "rest", "seen")

    def __init__(self, changes: Changes, rest: dict[str, Array], numbers: dict[str, int]) -> None:
        self.changes = changes
        self.rest = rest
        self.numbers = numbers
        self.seen: Sequence[object] | None = None


_NOTHING: tuple[None, tuple[Array, ...]] = (None, ())


@final
class Version:
    """Arrays of a scope at one time: the unchanged ones, and `new` ones, of one `number`.

    `later` has the next version, once it exists. `used` says that a run has started to compute it.
    `taken` has the arrays that a reader took last, after that reader.
    """

    __slots__ = ("_arrays", "later", "new", "number", "setting", "taken", "used")

    def __init__(self, setting: Setting, new: Sequence[Array]) -> None:
        self.setting = setting
        self.new = new
        self.number = next(_numbers)
        self.later: dict[str, Version] = {}
        self.used = False
        self.taken: tuple[object, Sequence[Array]] = _NOTHING
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
        """Numbers of all arrays, by name."""
        new = dict.fromkeys(self.setting.changes.names, self.number)
        return {**self.setting.numbers, **new}

    def followed_by(self, changes: Changes, new: Sequence[Array]) -> Version:
        """Return a version with `new` in place of the arrays that `changes` names."""
        if changes is self.setting.changes:
            return Version(self.setting, new)
        gone = frozenset(changes.names)
        rest = {name: array for name, array in self.arrays.items() if name not in gone}
        numbers = {name: number for name, number in self.numbers.items() if name not in gone}
        return Version(Setting(changes, rest, numbers), new)


@final
class Reading:
    """Read lock of a version: while this object lives, its arrays are not overwritten."""

    __slots__ = ("_token", "version")

    def __init__(self, scope: Scope) -> None:
        # Taken before the version is looked up: a thread that stores another version counts the
        # readings afterwards.
        self._token = scope.token
        self.version = scope.latest()


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
    """Arrays by name: the states that runs of a program read and write.

    Each program has its own scope. An executor with a scope uses that one instead, so that two
    executors with two scopes are independent. Arrays are copied on the way in, and `get` returns
    copies.

    All that a run stores is seen at once, or nothing of it if the run fails or is interrupted,
    wherever that may be. Runs that store something wait for one another, those that only read do
    not wait, and see what the scope held at one moment.

    >>> scope = pg.Scope()
    >>> len(list(scope))
    0
    """

    def __init__(self) -> None:
        # Held while storing. A signal may interrupt the thread that holds it, and take it again, so
        # it only avoids wasted work: correctness of `store` does not depend on it.
        self._turn = make_lock()
        self._newest = Version(Setting(Changes((), ()), {}, {}), ())
        self._spares: dict[Changes, Sequence[Array]] = {}
        # Whoever refers to this object reads arrays, which are not overwritten meanwhile. Without
        # readings, it has as many references as now.
        self.token = object()
        self._unread = self._token_references()
        self._desk: SharedStorage[Version] | None = None
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
        """Return an HTML table of names and types, without elements."""
        arrays = self.newest.arrays
        rows = (
            Row((name, str(a.dtype), str(a.shape), quantity(a.nbytes, "B")))
            for name, a in arrays.items()
        )
        head = ("name", "dtype", "shape", "size")
        return Sheet(repr(self)[1:-1], "cccn", head, rows, len(arrays)).html()

    # For runs.

    def turn(self) -> Lock:
        """Return the lock to hold while computing and storing, once it is free.

        If an exception came between acquiring and releasing it, as debuggers can cause, it would
        stay locked forever: then it is replaced.
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
        """Return the current version. Its arrays may be read only during a `Reading`."""
        if self._desk is not None:
            self._take_in(self._desk)
        version = self._newest
        return self.latest() if version.later else version

    def latest(self) -> Version:
        """Return the newest version, without changes by observers."""
        version = self._newest
        while version.later:
            version = version.later[NEXT]
        return version

    def read(self) -> Reading:
        """Return a reading of the newest version, whose arrays are not overwritten while it
        lives."""
        if self._desk is not None:
            self._take_in(self._desk)
        return self.reading()

    def reading(self) -> Reading:
        """Like `read`, without changes by observers."""
        return Reading(self)

    def desk(self) -> SharedStorage[Version]:
        """Shared storage: the observers that share arrays with this scope."""
        if self._desk is None:
            self._desk = SharedStorage(self.latest())
        return self._desk

    def guest(self, name: str) -> Observer | None:
        """Return the array's observer, if any."""
        return None if self._desk is None else self._desk.guests.get(name)

    def _take_in(self, desk: SharedStorage[Version]) -> None:
        """Store the arrays that observers have changed since the last check."""
        desk.follow()
        if desk.waiting or desk.scattered:
            new = desk.changed_arrays()
            if new:
                self._store_states(new)
            desk.settle()

    def begin(self) -> tuple[Version, bool]:
        """Return the newest version, for a run that will replace it, and whether this run is the
        first.

        A nested run in the same thread may start from the same version.
        """
        version = self.newest
        first = not version.used
        version.used = True
        return version, first

    def spare(self, changes: Changes) -> Sequence[Array]:
        """Return unused arrays to compute new values into."""
        found = self._spares.pop(changes, None)
        if found is None:
            found = [np.empty(t.shape, t.dtype) for t in changes.types]
        return found

    def store(self, before: Version, first: bool, changes: Changes, new: Sequence[Array]) -> bool:
        """Like `replace`, for values computed into arrays of `spare`, after `begin`."""
        if not self._publish_version(before, before.followed_by(changes, new)):
            return False
        if first and self._token_references() == self._unread:
            # Only the caller, which has finished with them, refers to the replaced arrays.
            same = before.setting.changes is changes
            old = before.new if same else changes.taken(before.arrays)
            if self._desk is None or not self._desk.lends(old):
                self._spares[changes] = old
        return True

    def replace(self, before: Version, new: Mapping[str, Array]) -> bool:
        """Store `new` on top of the other arrays of `before`.

        The arrays are not copied and belong to the scope from then on. They become visible all at
        once. Returns False, without effect, if the scope holds another version now.
        """
        return self._publish_version(
            before, before.followed_by(Changes(tuple(new), ()), [*new.values()])
        )

    def _publish_version(self, before: Version, after: Version) -> bool:
        # A single C call is atomic with respect to threads and interrupts.
        if before.later.setdefault(NEXT, after) is not after:
            return False
        self._newest = after
        return True

    def _token_references(self) -> int:
        return sys.getrefcount(self.token)

    def put(self, new: Mapping[str, Array]) -> None:
        """Store `new`, arrays with no other owner, all at once."""
        if self._desk is not None:
            # Changes by observers are older than these values.
            self._take_in(self._desk)
        with self.turn():
            self._store_states(new)

    @register_storing
    def _store_states(self, new: Mapping[str, Array]) -> None:
        while not self.replace(self.latest(), new):
            pass

    # For users.

    def get(self, name: str) -> Array:
        """Return a copy of the array of that name. Raises `FeedError` if there is none."""
        reading = self.read()
        arrays = reading.version.arrays
        if name not in arrays:
            raise FeedError(f"the scope holds no {name!r}", hint=near_matches(name, arrays))
        return arrays[name].copy()

    def snapshot(self) -> dict[str, Array]:
        """Return copies of all arrays, by name, as a consistent snapshot."""
        reading = self.read()
        return {name: array.copy() for name, array in reading.version.arrays.items()}

    def set(self, name: str, value: Any, type: TensorType | None = None) -> None:
        """Store a copy of `value`, which must have that type if one is given.

        Raises `FeedError` for another shape, or a dtype that does not convert within its kind.
        """
        self.put({name: copy_for_scope(name, value, type)})

    def after_fork(self) -> None:
        """Drop the readings of other threads in a forked child."""
        # Readings of this thread may go on: what they may read is not reused.
        self.token = object()
        self.latest().used = True


@register_storing
def put_all(new: Mapping[Scope, Mapping[str, Array]], calls: Iterable[Call] = ()) -> None:
    """Store `new`, arrays with no other owner, in several scopes, and make `calls`, all at once."""
    with ExitStack() as turns:
        for scope in sorted(new, key=id):
            # Changes by observers are older than these values.
            scope.read()
            turns.enter_context(scope.turn())
        stored = []
        for scope, arrays in new.items():
            before = scope.latest()
            after = before.followed_by(Changes(tuple(arrays), ()), [*arrays.values()])
            stored.append((scope, before, after))
        call_all([*calls, *[(old.later.setdefault, NEXT, after) for _, old, after in stored]])
        for scope, before, after in stored:
            # A thread that did not wait for the lock may have stored first.
            if before.later[NEXT] is not after:
                scope.put(new[scope])


@dataclass(frozen=True, slots=True)
class State:
    """Value that a scope keeps between runs: a parameter, or its auxiliary state.

    By default optimizers change the `trainable` ones.
    """

    name: str
    type: TensorType
    initializer: Initializer
    trainable: bool


def initial_value(state: State, seed: int) -> Array:
    """Return the initial value of `state`, a function of seed, name, shape and dtype.

    Raises `ArgumentError` if its initializer returns another shape or another kind of dtype.
    """
    key = (seed % 2**64, zlib.crc32(state.name.encode()))
    rng = np.random.Generator(np.random.Philox(key=np.array(key, np.uint64)))
    try:
        return first_array(state.initializer, state.type.shape, state.type.dtype, rng)
    except ArgumentError as error:
        raise ArgumentError(
            f"the initializer of {state.name!r} does not fit {state.type}: {error.message}",
            hint=error.hint,
        ) from None


def require_known(values: Iterable[str], known: Iterable[str], fault: str) -> None:
    """Raise `FeedError`, with `fault` before the names, for names that are not known."""
    names = set(known)
    unknown = [n for n in values if n not in names]
    if unknown:
        listed = ", ".join(map(repr, unknown))
        raise FeedError(f"{fault} {listed}", hint=near_matches(unknown[0], names))


def copy_for_scope(name: str, value: Any, type: TensorType | None = None) -> Array:
    """Return a copy of `value` for a scope, under that name; see `Scope.set`."""
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


def _reset_after_fork() -> None:
    for scope in list(_scopes):
        scope.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def first_free_name(names: Iterable[str], stem: str) -> str:
    """Return the first of `stem`, `stem_1`, ... that is no name, nor one up to a dot."""
    taken = {part for n in names for part in (n, n.partition(".")[0])}
    name, count = stem, 0
    while name in taken:
        count += 1
        name = f"{stem}_{count}"
    return name
