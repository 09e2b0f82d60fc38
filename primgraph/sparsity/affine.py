"""Affine maps from array indices to columns: compact dependences of regular patterns.

An array of any size whose elements depend on a diagonal, a band, a block or on everything needs
only a few of these; `effects.py` transforms them without listing elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import NamedTuple, TypeAlias

Shape: TypeAlias = tuple[int, ...]
# The place along an axis: a start, and variables with their steps.
Terms: TypeAlias = tuple[int, tuple[tuple[int, int], ...]]


class Affine(NamedTuple):
    """Columns of each index from `low` to before `high`: `offset` plus `strides` times the index,
    and multiples of each step in `free`, pairs of a step and a count.

    Steps in `free` are positive and ascending, counts are larger than one.
    """

    offset: int
    strides: Shape
    low: Shape
    high: Shape
    free: tuple[tuple[int, int], ...]

    @property
    def places(self) -> int:
        """Return the number of indices with columns."""
        return prod(b - a for a, b in zip(self.low, self.high, strict=True))

    @property
    def width(self) -> int:
        """Return the maximum number of columns of an index."""
        return prod(count for _, count in self.free)

    @property
    def first(self) -> int:
        """Return the first column of the first index."""
        return self.offset + sum(s * a for s, a in zip(self.strides, self.low, strict=True))


Maps: TypeAlias = "list[Affine]"

# With more maps, elements are listed.
MOST = 40
# Number of latest maps that a new one is compared with.
_NEAR = 12


def diagonal(shape: Shape, offset: int) -> Maps:
    """Map the elements of an array of that shape, in row-major order, to one column each, from
    `offset` on."""
    if 0 in shape:
        return []
    strides = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return [Affine(offset, tuple(reversed(strides)), (0,) * len(shape), shape, ())]


def all_columns(shape: Shape, columns: int) -> Maps:
    """Map each element to all columns."""
    if 0 in shape or not columns:
        return []
    free = ((1, columns),) if columns > 1 else ()
    zeros = (0,) * len(shape)
    return [Affine(0, zeros, zeros, shape, free)]


def merge_maps(maps: Iterable[Affine]) -> Maps:
    """Merge maps: drop contained ones, and join adjacent ones."""
    found: Maps = []
    for new in maps:
        if new.low and any(a >= b for a, b in zip(new.low, new.high, strict=True)):
            continue
        _join(found, new)
    return found


def _join(found: Maps, new: Affine) -> None:
    changed = True
    while changed:
        changed = False
        for i in range(len(found) - 1, max(-1, len(found) - 1 - _NEAR), -1):
            both = _merge_maps(found[i], new)
            if both is found[i]:
                return
            if both is not None:
                del found[i]
                new, changed = both, True
                break
    found.append(new)


def _merge_maps(a: Affine, b: Affine) -> Affine | None:
    """Return one map for both, or None; `a` itself if it contains `b`."""
    if a == b:
        return a
    if _has(a, b):
        return a
    if _has(b, a):
        return b
    if a.low == b.low and a.high == b.high:
        return _side_by_side(a, b)
    return _one_behind_the_other(a, b)


def _same_strides(a: Affine, b: Affine, within: Affine) -> bool:
    """Return whether strides agree along the axes in which `within` has more than one index."""
    return all(
        s == t or hi - lo == 1
        for s, t, lo, hi in zip(a.strides, b.strides, within.low, within.high, strict=True)
    )


def _column(a: Affine, place: Sequence[int]) -> int:
    return a.offset + sum(s * p for s, p in zip(a.strides, place, strict=True))


def _has(a: Affine, b: Affine) -> bool:
    """Return whether `a` obviously contains all columns of `b`."""
    if any(x > y for x, y in zip(a.low, b.low, strict=True)):
        return False
    if any(x < y for x, y in zip(a.high, b.high, strict=True)):
        return False
    if a.free == b.free:
        return _same_strides(a, b, b) and _column(a, b.low) == b.first
    if len(a.free) == 1 and a.free[0][0] == 1 and not any(a.strides):
        low, high = _range(b)
        return a.offset <= low and high < a.offset + a.free[0][1]
    return False


def _range(a: Affine) -> tuple[int, int]:
    """Return the first and the last column of all indices."""
    low = high = a.offset
    for s, lo, hi in zip(a.strides, a.low, a.high, strict=True):
        ends = s * lo, s * (hi - 1)
        low += min(ends)
        high += max(ends)
    return low, high + sum(step * (count - 1) for step, count in a.free)


def _side_by_side(a: Affine, b: Affine) -> Affine | None:
    """Return one map for intervals of columns that are adjacent at every index, or None."""
    if not _same_strides(a, b, a) or len(a.free) > 1 or len(b.free) > 1:
        return None
    if any(step != 1 for step, _ in (*a.free, *b.free)):
        return None
    if b.first < a.first:
        a, b = b, a
    if b.first > a.first + a.width:
        return None
    count = max(a.width, b.first - a.first + b.width)
    return a._replace(free=((1, count),) if count > 1 else ())


def _one_behind_the_other(a: Affine, b: Affine) -> Affine | None:
    """Return one map for two adjacent boxes, or None."""
    if a.free != b.free:
        return None
    apart = [i for i in range(len(a.low)) if (a.low[i], a.high[i]) != (b.low[i], b.high[i])]
    if len(apart) != 1:
        return None
    (axis,) = apart
    if b.low[axis] < a.low[axis]:
        a, b = b, a
    if b.low[axis] > a.high[axis]:
        return None
    single = a.high[axis] - a.low[axis] == 1, b.high[axis] - b.low[axis] == 1
    if single == (True, True):
        # Two single indices fit any stride.
        stride = b.first - a.first
    else:
        stride = b.strides[axis] if single[0] else a.strides[axis]
        if single == (False, False) and b.strides[axis] != stride:
            return None
    for i, (lo, hi) in enumerate(zip(a.low, a.high, strict=True)):
        if i != axis and hi - lo > 1 and a.strides[i] != b.strides[i]:
            return None
    if b.first - a.first != stride * (b.low[axis] - a.low[axis]):
        return None
    strides = replace_number(a.strides, axis, stride)
    offset = a.first - sum(s * lo for s, lo in zip(strides, a.low, strict=True))
    high = replace_number(a.high, axis, max(a.high[axis], b.high[axis]))
    return Affine(offset, strides, a.low, high, a.free)


def replace_number(numbers: Shape, place: int, number: int) -> Shape:
    return (*numbers[:place], number, *numbers[place + 1 :])


def merged_steps(parts: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Sort steps and counts, and merge intervals that continue each other."""
    found: list[tuple[int, int]] = []
    for step, count in sorted(parts):
        if found:
            last, before = found[-1]
            # Steps that fall within, or right behind, the range of a smaller one.
            if step % last == 0 and step <= last * before:
                found[-1] = last, before + (count - 1) * (step // last)
                continue
        found.append((step, count))
    return tuple(found)
