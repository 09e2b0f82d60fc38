"""Arrays for results: those that nobody has any more are written to once more.

To make large arrays anew in each step of a training loop, and to copy results into them, takes
longer than much of what is computed.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from sys import getrefcount, implementation
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.eager.node import lock
from primgraph.ir.types import TensorType

Array: TypeAlias = np.ndarray[Any, Any]

# Smaller arrays are made as fast as they would be found here, in bytes.
LEAST = 32_768
# So many bytes are on a shelf at most, and arrays of a type that were asked for at one of so many
# times last.
_MOST = 1 << 28
_TIMES = 64


@final
class Shelf:
    """Arrays that were lent, and that are lent again when nobody else refers to them.

    A view of an array refers to it, as does all else that can read its elements. What is lent is
    nobody else's until the caller lets go of it. Many threads may take from one shelf.
    """

    def __init__(self, most: int = _MOST) -> None:
        # By type, those that were lent longest ago first, and when one was asked for last.
        self._rows: dict[TensorType, deque[Array]] = {}
        self._asked: dict[TensorType, int] = {}
        self._most = most
        # The bytes of all arrays that are known here.
        self.held = 0
        self._time = 0

    def take(self, types: Sequence[TensorType]) -> list[Array]:
        """An array of each of these types, which holds anything."""
        with lock:
            self._time += 1
            if self._time % _TIMES == 0:
                self._tidy()
            counts = Counter(types)
            return [self._one(type, counts[type]) for type in types]

    def _one(self, type: TensorType, count: int) -> Array:
        """An array of that type, of which `count` are taken at once."""
        row = self._rows.get(type)
        if row is None:
            row = self._rows[type] = deque()
        self._asked[type] = self._time
        # A step holds its results of the step before, and those of the one before that are free:
        # what is still held after so many are lent is held for long.
        most = 4 * count + 4
        for _ in range(min(len(row), 2 * count + 2)):
            if _are_alone(row, 0):
                row.rotate(-1)
                return row[-1]
            if len(row) > most:
                row.popleft()
                self.held -= type.nbytes
            else:
                row.rotate(-1)
        made = np.empty(type.shape, type.dtype)
        self.held += type.nbytes
        if self.held > self._most:
            self._rows.clear()
            self._asked.clear()
            self.held = 0
        else:
            row.append(made)
        return made

    def _tidy(self) -> None:
        """Let go of types that nobody asks for any more."""
        for type, time in list(self._asked.items()):
            if time + _TIMES < self._time:
                del self._asked[type]
                self.held -= len(self._rows.pop(type)) * type.nbytes


def _counter() -> Callable[[Sequence[Array], int], bool]:
    """What tells whether an element of a row is nowhere else; it never is where nobody counts."""
    if implementation.name != "cpython":
        return lambda row, place: False

    def references(row: Sequence[Array], place: int) -> int:
        return getrefcount(row[place])

    # How many the row itself and looking there make, which differs from version to version.
    own = references(deque([np.empty(0)]), 0)
    return lambda row, place: references(row, place) == own


_are_alone = _counter()
shelf = Shelf()
