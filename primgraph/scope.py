"""Scopes: where the values of parameters live between runs.

What a scope holds at one time is a version of it, in which nothing changes. A run computes new
values into arrays that belong to no version, and makes them one by a single step that cannot be
interrupted half-way. The arrays of the version before are those that the next run but one writes
to, unless somebody still reads them.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias, final
from weakref import WeakSet, ref

import numpy as np

from primgraph.errors import FeedError, near_matches
from primgraph.ir.signature import checked_methods
from primgraph.ir.types import TensorType

Array: TypeAlias = "np.ndarray[Any, Any]"

_numbers = itertools.count()
_NEXT: Final = "next"


@final
class Version:
    """The arrays of a scope at one time, by name, and a number for each that no other ever has.

    `later` has the version that came after it, once there is one.
    """

    __slots__ = ("arrays", "later", "numbers")

    def __init__(self, arrays: dict[str, Array], numbers: dict[str, int]) -> None:
        self.arrays = arrays
        self.numbers = numbers
        self.later: dict[str, Version] = {}


@final
class Reading:
    """Somebody reads a version of a scope: while this object lives, its arrays stay as they are."""

    __slots__ = ("__weakref__", "thread", "version")

    version: Version

    def __init__(self) -> None:
        self.thread = threading.get_ident()


@final
@checked_methods("read", "spare", "store", "put")
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
        self.turn = threading.RLock()
        self._newest = Version({}, {})
        self._spares: dict[str, Array] = {}
        self._readings: set[ref[Reading]] = set()
        _scopes.add(self)

    def __contains__(self, name: str) -> bool:
        return name in self.newest.arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self.newest.arrays)

    def __len__(self) -> int:
        return len(self.newest.arrays)

    # For runs.

    @property
    def newest(self) -> Version:
        """What the scope holds now. Its arrays may be read only during a `Reading`."""
        version = self._newest
        while version.later:
            version = version.later[_NEXT]
        return version

    def read(self) -> Reading:
        """The newest version, whose arrays nobody overwrites while what is returned lives."""
        reading = Reading()
        # Noted before the version is looked up: who stores another one looks here afterwards.
        self._readings.add(ref(reading, self._readings.discard))
        reading.version = self.newest
        return reading

    def spare(self, name: str, type: TensorType) -> Array:
        """An array to compute the next value of that name into, which nobody else has."""
        array = self._spares.pop(name, None)
        if array is None or array.shape != type.shape or array.dtype != type.dtype:
            return np.empty(type.shape, type.dtype)
        return array

    def store(self, reading: Reading, new: Mapping[str, Array]) -> bool:
        """Let the scope hold `new` beside the other arrays of the version that was read.

        They are taken as they are, and are the scope's from then on. All of them are there at
        once, for everybody. Returns False, and does nothing, if the scope holds another version
        by now.
        """
        before = reading.version
        numbers = {**before.numbers, **dict.fromkeys(new, next(_numbers))}
        after = Version({**before.arrays, **new}, numbers)
        # One call of a function in C: it is done or not, in all threads and whatever interrupts.
        if before.later.setdefault(_NEXT, after) is not after:
            return False
        self._newest = after
        if len(self._readings) == 1:
            # Nobody but the caller, who has done with them, has the arrays that were replaced.
            old = before.arrays
            self._spares.update({n: old[n] for n in new if n in old and old[n].flags.carray})
        return True

    def put(self, new: Mapping[str, Array]) -> None:
        """Hold `new`, arrays that nobody else has, all at once."""
        with self.turn:
            while not self.store(self.read(), new):
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
        """In a child process nobody stores or reads but the thread that has forked."""
        self.turn = threading.RLock()
        here = threading.get_ident()
        alive = ((r, r()) for r in list(self._readings))
        gone = [r for r, reading in alive if reading is None or reading.thread != here]
        self._readings.difference_update(gone)


def copied(name: str, value: Any, type: TensorType | None = None) -> Array:
    """A copy of `value` for a scope, in which it is to be called `name`; see `Scope.set`."""
    known = repr(name) if type is None else f"{name!r} is {type}, and"
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise FeedError(f"{known} cannot be set to {value!r:.60}: {error}") from None
    if array.dtype.kind not in "biuf":
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
