"""Buffer pool: reuse result arrays that the caller has dropped.

In a training loop, allocating large arrays and copying results into them costs more than much of
the computation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from sys import getrefcount, implementation
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.eager.node import lock
from primgraph.ir.types import TensorType

Array: TypeAlias = np.ndarray[Any, Any]

# In bytes: smaller arrays are allocated as fast as they are found here.
LEAST = 32_768
# The maximum number of bytes in the pool, and the number of requests after which an unused type is
# evicted.
_MOST = 1 << 28
_TIMES = 64


@final
class BufferPool:
    """Pool of arrays that are lent, and reused when nothing else refers to them.

    A view of an array holds a reference to it. A lent array belongs to the caller until it drops
    it. The pool is thread-safe.
    """

    def __init__(self, most: int = _MOST) -> None:
        # By type: arrays, least recently lent first, and the time of the last request.
        self._rows: dict[TensorType, deque[Array]] = {}
        self._asked: dict[TensorType, int] = {}
        self._most = most
        # The bytes of all arrays in the pool.
        self.held = 0
        self._time = 0

    def take(self, types: Sequence[TensorType]) -> list[Array]:
        """Return an uninitialised array of each of these types."""
        with lock:
            self._time += 1
            if self._time % _TIMES == 0:
                self._tidy()
            return [self._one(type, types.count(type)) for type in types]

    def _one(self, type: TensorType, count: int) -> Array:
        """Return an array of the type, of which `count` are requested at once."""
        row = self._rows.get(type)
        if row is None:
            row = self._rows[type] = deque()
        self._asked[type] = self._time
        # A step holds its results of the previous step, and those of the one before are free. An
        # array held after so many loans is held for long.
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
        """Evict types that were not requested recently."""
        for type, time in list(self._asked.items()):
            if time + _TIMES < self._time:
                del self._asked[type]
                self.held -= len(self._rows.pop(type)) * type.nbytes


def _counter() -> Callable[[Sequence[Array], int], bool]:
    """Return a predicate: whether an element of a row has no other reference (False if unknown)."""
    if implementation.name != "cpython":
        return lambda row, place: False

    def references(row: Sequence[Array], place: int) -> int:
        return getrefcount(row[place])

    # References by the row and by the call itself, which differ between Python versions.
    own = references(deque([np.empty(0)]), 0)
    return lambda row, place: references(row, place) == own


_are_alone = _counter()
shelf = BufferPool()
