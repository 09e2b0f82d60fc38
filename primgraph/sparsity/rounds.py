"""Colouring of very many vertices in parallel rounds.

The vertices of a random batch are coloured independently. Among those in conflict the first keeps
its colour, and the others take part in the next round (Gebremedhin and Manne, Concurrency: Practice
and Experience 12, 2000). Batches are small enough for few conflicts, and each round is a few NumPy
operations.
"""

from __future__ import annotations

from typing import Any, TypeAlias, final

import numpy as np

from primgraph.sparsity.pattern import Indices, Pattern

Words: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"

# Colours per word, and minimum and maximum number of batches.
_BITS = 64
_FEWEST, _MOST = 16, 512
_ONE = np.uint64(1)
_ALL = np.uint64(2**64 - 1)


@final
class _Sets:
    """Sets of colours for `count` items, as bits of words, which are added as needed."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.words: list[Words] = []

    def word(self, number: int) -> Words:
        while len(self.words) <= number:
            self.words.append(np.zeros(self.count, np.uint64))
        return self.words[number]

    def add(self, places: Indices, colors: Indices, *, once: bool = False) -> None:
        """Add colours to the sets at `places`; some may be there already.

        With `once`, no place gets a colour twice.
        """
        for number in range(int(colors.max(initial=-1)) // _BITS + 1):
            own = colors // _BITS == number
            bits = _ONE << (colors[own] % _BITS).astype(np.uint64)
            word, at = self.word(number), places[own]
            # If each new bit is added once, addition is much faster than bitwise or.
            fresh = bits & ~word[at]
            np.add.at(word, at, fresh) if once else np.bitwise_or.at(word, at, fresh)


def first_free(sets: _Sets, places: Indices, starts: Indices) -> Indices:
    """Return, for each run of `places` that begins at one of `starts`, the first colour in none of
    its sets."""
    found = np.full(starts.size, -1, np.int64)
    number = 0
    while True:
        left = found < 0
        if not left.any():
            return found
        used = np.bitwise_or.reduceat(sets.word(number)[places], starts)
        free = left & (used != _ALL)
        bit = ~used & (used + _ONE)
        exponent = np.frexp(bit.astype(np.float64))[1].astype(np.int64) - 1
        found[free] = number * _BITS + exponent[free]
        number += 1


def column_colors(pattern: Pattern) -> Indices:
    """Colour the columns so that no row has two elements of one colour."""
    turned = pattern.T
    taken = _Sets(pattern.shape[0])
    colors = np.zeros(pattern.shape[1], np.int64)
    filled = np.flatnonzero(np.diff(turned.indptr))
    for batch in _batches(pattern, filled):
        waiting = batch
        while waiting.size:
            rows, starts = _gather_rows(turned, waiting)
            found = first_free(taken, rows, starts)
            owner = np.repeat(np.arange(waiting.size), np.diff(np.append(starts, rows.size)))
            lost = _later(rows * (int(found.max()) + 1) + found[owner], owner, waiting.size)
            colors[waiting[~lost]] = found[~lost]
            kept = ~lost[owner]
            taken.add(rows[kept], found[owner[kept]], once=True)
            waiting = waiting[lost]
    return colors


def star_colors(pattern: Pattern, first: int = 0) -> Indices:
    """Return star colours of a symmetric pattern, from `first` on; see `greedy.star_colors`."""
    size = pattern.shape[0]
    colors = np.full(size, -1, np.int64)
    # Colours of the neighbours, and those that a further neighbour must not take.
    around, barred = _Sets(size), _Sets(size)
    beside = pattern.rows != pattern.indices
    ends = np.concatenate([[0], np.cumsum(beside)])
    links = Pattern._from_arrays(pattern.shape, ends[pattern.indptr], pattern.indices[beside])
    alone = np.diff(links.indptr) == 0
    colors[alone] = 0
    for batch in _batches(links, np.flatnonzero(~alone)):
        waiting = batch
        while waiting.size:
            others, starts = _gather_rows(links, waiting)
            found = first_free(barred, others, starts)
            owner = np.repeat(np.arange(waiting.size), np.diff(np.append(starts, others.size)))
            color = found[owner]
            # If a vertex between two others has no colour yet, or a higher one, these two must
            # differ.
            strict = (colors[others] < 0) | (color < colors[others])
            place = np.concatenate([others[strict], waiting])
            who = np.concatenate([owner[strict], np.arange(waiting.size)])
            lost = _later(place * (int(found.max()) + 1) + found[who], who, waiting.size)
            won, kept = waiting[~lost], ~lost[owner]
            colors[won] = found[~lost]
            around.add(others[kept], color[kept])
            below = kept & ((colors[others] < 0) | (color < colors[others]))
            barred.add(others[below], color[below])
            _bar_below(around, barred, won, colors[won])
            waiting = waiting[lost]
    colors[~alone] += first
    colors[alone] = first
    return colors


def _bar_below(around: _Sets, barred: _Sets, vertices: Indices, colors: Indices) -> None:
    """Bar the colours of newly coloured vertices, and lower colours of their neighbours."""
    for number in range(max(len(around.words), int(colors.max(initial=0)) // _BITS + 1)):
        rank = np.clip(colors - number * _BITS, -1, _BITS)
        bit = np.where(
            (rank >= 0) & (rank < _BITS), _ONE << np.clip(rank, 0, 63).astype(np.uint64), 0
        ).astype(np.uint64)
        below = np.where(rank >= _BITS, _ALL, np.where(rank < 0, np.uint64(0), bit - _ONE))
        barred.word(number)[vertices] = bit | (around.word(number)[vertices] & below)


def _batches(pattern: Pattern, vertices: Indices) -> list[Indices]:
    """Return `vertices` in random batches, in which few share a row of `pattern`."""
    counts = np.diff(pattern.indptr).astype(np.float64)
    near = float(np.sum(counts**2)) / max(vertices.size, 1)
    number = int(np.clip(near, _FEWEST, _MOST))
    shuffled = np.random.default_rng(0).permutation(vertices)
    return [np.sort(part) for part in np.array_split(shuffled, number) if part.size]


def _gather_rows(pattern: Pattern, rows: Indices) -> tuple[Indices, Indices]:
    """Return the columns of these nonempty rows, and the start of each row in them."""
    counts = pattern.indptr[rows + 1] - pattern.indptr[rows]
    starts = np.cumsum(counts) - counts
    places = np.arange(counts.sum()) + np.repeat(pattern.indptr[rows] - starts, counts)
    return pattern.indices[places], starts


def _later(keys: Indices, owner: Indices, count: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which of `count` owners have a key that an earlier one has, too."""
    bits = count.bit_length()
    both = np.sort(keys << bits | owner)
    again = both[1:] >> bits == both[:-1] >> bits
    lost = np.zeros(count, np.bool_)
    lost[both[1:][again] & ((1 << bits) - 1)] = True
    return lost
