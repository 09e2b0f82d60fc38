"""The arena: one stretch of bytes in which buffers are placed by the time they are needed.

`Arena` places a buffer when it is asked for, and may leave gaps that are too small for what comes.
`Packed` places all buffers of an arena anew, when it is known how long each of them is needed.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias, final

# Buffers start at multiples of this, the length of a line of the cache and of the widest vectors.
ALIGN = 64
# The end of what is not given back.
_NEVER = sys.maxsize
# Savings of fewer bytes, or of a smaller share of what is needed, are not worth planning again.
_LEAST_SAVED, _SHARE_SAVED = 4096, 1 / 32
# The time to pack grows with the square of the number of buffers. Among many, gaps are few: 5 % for
# the 420 of the gradient of an LSTM over 20 steps, where packing leaves 9 %.
_MOST_PACKED = 128


def rounded(size: int) -> int:
    """The bytes that a buffer of `size` bytes takes up."""
    return max(-(-size // ALIGN), 1) * ALIGN


class Stay(NamedTuple):
    """`size` bytes that are taken at the time `start` and given back at `end`."""

    size: int
    start: int
    end: int


@final
class Arena:
    """Hands out offsets: the smallest gap that is large enough, else room at the end.

    Buffers are asked for and given back in the order of the schedule, and neighbouring gaps
    become one. `size` is what the arena needs, `least` the most bytes that were taken at once,
    below which no placement can stay. `stays` has all that was taken, in order.
    """

    def __init__(self) -> None:
        self.size = 0
        self.least = 0
        self.stays: list[Stay] = []
        self._taken = 0
        self._time = 0
        self._stay_at: dict[int, int] = {}
        self._gaps: list[tuple[int, int]] = []
        self._size_at: dict[int, int] = {}
        self._start_of_end: dict[int, int] = {}

    def take(self, size: int) -> int:
        """The offset of `size` bytes that nobody has."""
        size = rounded(size)
        self._taken += size
        self.least = max(self.least, self._taken)
        offset = self._place(size)
        self._stay_at[offset] = len(self.stays)
        self.stays.append(Stay(size, self._time, _NEVER))
        self._time += 1
        return offset

    def _place(self, size: int) -> int:
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
        stay = self._stay_at.pop(offset)
        self.stays[stay] = Stay(size, self.stays[stay].start, self._time)
        self._time += 1
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


@final
class Packed:
    """The same arena once more: hands out offsets for what was taken of `arena`, in that order."""

    def __init__(self, arena: Arena) -> None:
        self.least = arena.least
        self._stays = arena.stays
        self._offsets = packed(arena.stays)
        self._count = 0
        pairs = zip(self._offsets, self._stays, strict=True)
        self.size = max([offset + stay.size for offset, stay in pairs], default=0)

    def take(self, size: int) -> int:
        """The offset of the next buffer, which has to be as large as it was in the arena."""
        k = self._count
        assert self._stays[k].size == rounded(size)
        self._count += 1
        return self._offsets[k]

    def give(self, offset: int, size: int) -> None:
        """Nothing, for it is known how long each buffer stays."""


AnyArena: TypeAlias = Arena | Packed


def packed(stays: Sequence[Stay]) -> list[int]:
    """Offsets of buffers, the largest placed first, each in the smallest gap that holds it.

    Gaps are between those buffers that are there at the same time. This is "greedy by size for
    offset calculation" of Pisarchyk and Lee, "Efficient memory management for deep neural net
    inference" (2020).
    """
    offsets = [0] * len(stays)
    placed: list[tuple[int, Stay]] = []
    for k in sorted(range(len(stays)), key=lambda k: (-stays[k].size, k)):
        offset = offsets[k] = _place_among(placed, stays[k])
        insort(placed, (offset, stays[k]))
    return offsets


def _place_among(placed: Sequence[tuple[int, Stay]], stay: Stay) -> int:
    """The offset of the smallest gap that holds `stay`, else that behind all buffers."""
    size, begin, end = stay
    free, found, smallest = 0, -1, 0
    for offset, (taken, start, stop) in placed:
        if start >= end or begin >= stop:
            continue
        gap = offset - free
        if gap >= size and (found < 0 or gap < smallest):
            found, smallest = free, gap
        free = max(free, offset + taken)
    return free if found < 0 else found


def packing(arena: Arena) -> Packed | None:
    """The arena with its buffers placed anew, if that saves enough to plan with it once more."""
    saved = max(_LEAST_SAVED, arena.least * _SHARE_SAVED)
    if len(arena.stays) > _MOST_PACKED or arena.size - arena.least < saved:
        return None
    found = Packed(arena)
    return found if arena.size - found.size >= saved else None
