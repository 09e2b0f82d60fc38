"""Repeated runs of tokens, preferably consecutive ones."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

Place: TypeAlias = tuple[int, int]

# Minimum length of a pattern.
SHORTEST = 2


class _Repeat(NamedTuple):
    """`times` runs of `length` tokens, `step` apart; the best one sorts first."""

    uncovered: int
    length: int
    start: int
    step: int
    times: int


def repeats(tokens: Sequence[int], longest: int) -> list[list[Place]]:
    """Return the runs of at most `longest` tokens that occur at least twice, without overlaps.

    Each entry has the positions, start and length, of one run, in order. Among competing runs those
    that cover most win, and then the shortest, so that ten equal layers are ten runs and not two of
    five layers. Takes n log² n time.
    """
    taken: list[Place] = []
    for repeat in sorted(set(_candidates(tokens, longest))):
        for i in range(repeat.times):
            place = (repeat.start + i * repeat.step, repeat.length)
            if _is_free(taken, place):
                insort(taken, place)
    places: dict[tuple[int, ...], list[Place]] = {}
    for start, length in taken:
        places.setdefault(tuple(tokens[start : start + length]), []).append((start, length))
    return [found for found in places.values() if len(found) > 1]


def _is_free(taken: Sequence[Place], place: Place) -> bool:
    """Return whether `place` overlaps none of those in `taken`, which are sorted."""
    start, length = place
    i = bisect_left(taken, place)
    if i < len(taken) and taken[i][0] < start + length:
        return False
    return i == 0 or sum(taken[i - 1]) <= start


def _candidates(tokens: Sequence[int], longest: int) -> list[_Repeat]:
    """Return candidate repeats, from the last occurrences of runs of 2, 4, 8, … tokens.

    Equal runs of a length have equal numbers (Karp, Miller and Rosenberg 1972). While the distance
    to the last equal run is constant, the tokens repeat at this distance.
    """
    found = []
    names, width = list(tokens), 1
    while len(names) > 1 and width <= longest:
        last: dict[int, int] = {}
        begun, distance = 0, 0
        for i, name in enumerate([*names, -1]):
            before = i - last.get(name, i)
            if before != distance:
                if distance >= SHORTEST:
                    same = i - begun + width - 1
                    found += _find_repeats(begun - distance, distance, same, longest)
                begun, distance = i, before
            last[name] = i
        pairs: dict[tuple[int, int], int] = {}
        joined = zip(names, names[width:], strict=False)
        names = [pairs.setdefault(pair, len(pairs)) for pair in joined]
        width *= 2
    return found


def _find_repeats(start: int, distance: int, same: int, longest: int) -> list[_Repeat]:
    """Return the repeat of `same` tokens from `start` on at `distance`."""
    length = min(distance, same)
    if not SHORTEST <= length <= longest:
        return []
    times = (same + distance) // distance if same >= distance else 2
    return [_Repeat(-times * length, length, start, distance, times)]
