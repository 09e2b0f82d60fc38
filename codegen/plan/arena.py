"""The arena: one stretch of bytes in which buffers are placed by the time they are needed."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import final

# Buffers start at multiples of this, the length of a line of the cache and of the widest vectors.
ALIGN = 64


def rounded(size: int) -> int:
    """The bytes that a buffer of `size` bytes takes up."""
    return max(-(-size // ALIGN), 1) * ALIGN


@final
class Arena:
    """Hands out offsets: the smallest gap that is large enough, else room at the end.

    Buffers are asked for and given back in the order of the schedule, and neighbouring gaps
    become one. `size` is what the arena needs, `least` the most bytes that were taken at once,
    below which no placement can stay.
    """

    def __init__(self) -> None:
        self.size = 0
        self.least = 0
        self._taken = 0
        self._gaps: list[tuple[int, int]] = []
        self._size_at: dict[int, int] = {}
        self._start_of_end: dict[int, int] = {}

    def take(self, size: int) -> int:
        """The offset of `size` bytes that nobody has."""
        size = rounded(size)
        self._taken += size
        self.least = max(self.least, self._taken)
        place = bisect_left(self._gaps, (size, 0))
        if place < len(self._gaps):
            found, offset = self._gaps[place]
            self._remove(offset)
            if found > size:
                self._add(offset + size, found - size)
            return offset
        offset = self._start_of_end.get(self.size, self.size)
        if offset != self.size:
            self._remove(offset)
        self.size = offset + size
        return offset

    def give(self, offset: int, size: int) -> None:
        """Take back what `take(size)` gave."""
        size = rounded(size)
        self._taken -= size
        before = self._start_of_end.get(offset)
        if before is not None:
            size += self._remove(before)
            offset = before
        if offset + size in self._size_at:
            size += self._remove(offset + size)
        self._add(offset, size)

    def _add(self, offset: int, size: int) -> None:
        insort(self._gaps, (size, offset))
        self._size_at[offset] = size
        self._start_of_end[offset + size] = offset

    def _remove(self, offset: int) -> int:
        size = self._size_at.pop(offset)
        del self._start_of_end[offset + size]
        del self._gaps[bisect_left(self._gaps, (size, offset))]
        return size
