"""Colours of columns by their number modulo few, or by their place in a grid: where that is best.

The columns of banded matrices, of blocks along the diagonal and of stencils on grids are coloured
with as few colours as any row has elements, at once, whatever their number (Curtis, Powell and
Reid 1974 for bands; perfect Lee codes for stencils: Golomb and Welch 1970).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import numpy as np

from primgraph.sparsity.pattern import Indices, Pattern

# Differences of columns in the rows are told by so many diagonals at most.
_DIAGONALS = 48
# Of how many rows colours are tried before all are looked at, and how many moduli are tried.
_TRIED = 512
_MODULI = 4
# More colours than these are not had by number alone, nor for a grid of three axes.
_MOST, _MOST_DEEP = 64, 12
# What has fewer columns is no grid.
_FEWEST = 16


def lattice_colors(pattern: Pattern, most: int) -> Indices | None:
    """Colours of the columns, none twice in a row, hardly more than the fullest row has elements.

    None where no such colours are found with at most `most` of them.
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
    """Colours that are right in a sample of the rows."""
    if is_proper(sample, columns % modulus, modulus):
        yield columns % modulus
    seen = sample.indices
    for widths in strides:
        if len(widths) > 1 and modulus > _MOST_DEEP:
            continue
        digits = _digits(seen, widths)
        for weights in product(range(modulus), repeat=len(widths)):
            factors = (1, *weights)
            inner = _weighted(digits, factors) % modulus
            if _distinct(sample.rows, inner, sample.shape[0], modulus):
                yield _weighted(_digits(columns, widths), factors) % modulus
                break


def _digits(numbers: Indices, widths: tuple[int, ...]) -> list[Indices]:
    """The places of elements of a grid, of these widths but for the last axis, fastest first."""
    digits = []
    for width in widths:
        numbers, rest = np.divmod(numbers, width)
        digits.append(rest)
    return [*digits, numbers]


def _weighted(digits: list[Indices], factors: tuple[int, ...]) -> Indices:
    found: Indices = sum(d * f for d, f in zip(digits, factors, strict=True))  # type: ignore[assignment]
    return found


def _strides(pattern: Pattern) -> Iterator[tuple[int, ...]]:
    """Widths of grids, of two and three axes, that the diagonals of `pattern` hint at."""
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
    """Some of the rows, from all over the matrix."""
    height = pattern.shape[0]
    if height <= _TRIED:
        return pattern
    runs = np.linspace(0, height - _TRIED // 8, 8).astype(np.int64)
    kept = np.unique(np.concatenate([np.arange(r, r + _TRIED // 8) for r in runs]))
    return rows_of(pattern, kept)


def rows_of(pattern: Pattern, kept: Indices) -> Pattern:
    """The pattern of these rows alone, in this order."""
    counts = np.diff(pattern.indptr)[kept]
    starts = np.zeros(kept.size + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    places = np.arange(starts[-1]) + np.repeat(pattern.indptr[kept] - starts[:-1], counts)
    return Pattern((kept.size, pattern.shape[1]), starts, pattern.indices[places])


def fullest(pattern: Pattern) -> int:
    """How many elements the fullest row has: no fewer colours of columns tell them apart."""
    return int(np.diff(pattern.indptr).max(initial=0))


def is_proper(pattern: Pattern, colors: Indices, count: int) -> bool:
    """Whether no row has two elements in columns of one colour; of a colour below 0 it has none."""
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
