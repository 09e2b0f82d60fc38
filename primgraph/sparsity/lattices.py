"""Colour columns by number modulo a small modulus, or by position in a grid, if that is optimal.

The columns of banded matrices, block diagonals and stencils on grids get as few colours as the
fullest row has elements, in one vectorised step (Curtis, Powell and Reid 1974 for bands; perfect
Lee codes for stencils: Golomb and Welch 1970).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import numpy as np

from primgraph.sparsity.pattern import Indices, Pattern

# Maximum number of diagonals used to find grid widths.
_DIAGONALS = 48
# Number of sampled rows before all are checked, and number of moduli tried.
_TRIED = 512
_MODULI = 4
# Maximum number of colours by number, and for a grid of three axes.
_MOST, _MOST_DEEP = 64, 12
# Patterns with fewer columns are not checked for grids.
_FEWEST = 16


def lattice_colors(pattern: Pattern, most: int) -> Indices | None:
    """Colour the columns, without repetition in a row, with hardly more colours than the fullest
    row's elements.

    None if no such colouring with at most `most` colours is found.
    """
    count = fullest(pattern)
    if not 0 < count <= min(_MOST, most) or pattern.shape[1] < _FEWEST:
        return None
    columns = np.arange(pattern.shape[1], dtype=np.int64)
    sample = _sample(pattern)
    moduli = range(count, min(count + _MODULI, most, _MOST) + 1)
    strides = list(_strides(pattern))
    for modulus in moduli:
        for colors in _colorings(columns, modulus, strides, pattern, sample):
            if is_proper(pattern, colors, modulus):
                return colors
    return None


def _colorings(
    columns: Indices,
    modulus: int,
    strides: Iterable[tuple[int, ...]],
    pattern: Pattern,
    sample: Pattern,
) -> Iterator[Indices]:
    """Yield colourings that are valid for a sample of the rows."""
    if is_proper(sample, columns % modulus, modulus):
        yield columns % modulus
    seen = sample.indices
    for widths in strides:
        if len(widths) > 1 and modulus > _MOST_DEEP:
            continue
        digits = _digits(seen, widths)
        for weights in product(range(modulus), repeat=len(widths)):
            factors = (1, *weights)
            inner = _weighted_sum(digits, factors) % modulus
            if _distinct(sample.rows, inner, sample.shape[0], modulus):
                yield _weighted_sum(_digits(columns, widths), factors) % modulus
                break


def _digits(numbers: Indices, widths: tuple[int, ...]) -> list[Indices]:
    """Return the grid indices of elements, for these widths of all but the last axis, fastest
    first."""
    digits = []
    for width in widths:
        numbers, rest = np.divmod(numbers, width)
        digits.append(rest)
    return [*digits, numbers]


def _weighted_sum(digits: list[Indices], factors: tuple[int, ...]) -> Indices:
    found: Indices = sum(d * f for d, f in zip(digits, factors, strict=True))  # type: ignore[assignment]
    return found


def _strides(pattern: Pattern) -> Iterator[tuple[int, ...]]:
    """Yield widths of grids, of two and three axes, that the diagonals of `pattern` suggest."""
    height, width = pattern.shape
    if pattern.nnz == 0:
        return
    present = np.bincount(pattern.indices - pattern.rows + height, minlength=height + width)
    offsets = np.flatnonzero(present) - height
    if offsets.size > _DIAGONALS:
        return
    apart = np.unique(np.abs(offsets[:, None] - offsets[None, :]))
    near = np.unique(np.abs(offsets))
    firsts = [int(n) for n in near if n > 2][:8] or [int(n) for n in apart if n > 2][:8]
    for first in firsts:
        yield (first,)
    for first in firsts:
        for second in (int(n) for n in near[:: max(1, near.size // 8)] if n > first):
            if second % first == 0:
                yield first, second // first


def _sample(pattern: Pattern) -> Pattern:
    """Return a sample of the rows, from all over the matrix."""
    height = pattern.shape[0]
    if height <= _TRIED:
        return pattern
    runs = np.linspace(0, height - _TRIED // 8, 8).astype(np.int64)
    kept = np.unique(np.concatenate([np.arange(r, r + _TRIED // 8) for r in runs]))
    return rows_of(pattern, kept)


def rows_of(pattern: Pattern, kept: Indices) -> Pattern:
    """Return the pattern of these rows, in this order."""
    counts = np.diff(pattern.indptr)[kept]
    starts = np.zeros(kept.size + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    places = np.arange(starts[-1]) + np.repeat(pattern.indptr[kept] - starts[:-1], counts)
    return Pattern((kept.size, pattern.shape[1]), starts, pattern.indices[places])


def fullest(pattern: Pattern) -> int:
    """Return the number of elements in the fullest row, a lower bound for the number of column
    colours."""
    return int(np.diff(pattern.indptr).max(initial=0))


def is_proper(pattern: Pattern, colors: Indices, count: int) -> bool:
    """Return whether no row has two elements of one colour, and none of a negative colour."""
    found = colors[pattern.indices]
    if found.min(initial=0) < 0:
        return False
    return _distinct(pattern.rows, found, pattern.shape[0], count)


def _distinct(rows: Indices, colors: Indices, height: int, count: int) -> bool:
    keys: Any = rows * count + colors
    if height * count <= 8 * keys.size + 1024:
        return bool(np.bincount(keys, minlength=1).max(initial=0) <= 1)
    keys = np.sort(keys)
    return not np.any(keys[1:] == keys[:-1])
