"""Segment lengths of checkpointed loops."""

from __future__ import annotations

from math import isqrt, prod
from typing import Any

from primgraph.errors import ArgumentError
from primgraph.ir.dims import Dim
from primgraph.ir.types import integer

SQUARE_ROOT = "sqrt"


def segments(operator: str, trips: int | None, checkpoint: Any) -> tuple[int, ...]:
    """Return the segment lengths of checkpoints, for each level of nested loops, outermost first.

    A segment has as many steps as the product of the counts of all inner levels. "sqrt" uses two
    levels of about equal counts, which is minimal for one more call (T. Chen, B. Xu, C. Zhang, C.
    Guestrin, Training deep nets with sublinear memory cost, 2016). A number k uses the fewest
    levels whose counts add up to at most k. With r levels each step runs r times, the last time
    with residuals, and k = r T^(1/r). The binomial schedule of A. Griewank, A. Walther, Algorithm
    799: revolve, ACM TOMS 26, 2000, needs (r! T)^(1/r), but its segments all differ, so that each
    would be a body of its own.

    Raises `ArgumentError` for another value, for a number that is too small, and if the number of
    steps is unknown.
    """
    if checkpoint is None:
        return ()
    if trips is None or isinstance(trips, Dim):
        raise ArgumentError(
            f"{operator}: where checkpoints are depends on how many trips there are, "
            + ("and that is not known" if trips is None else f"which {trips} does not say"),
            hint="give max_trips" if trips is None else _BLOCKS,
        )
    if isinstance(checkpoint, str) and checkpoint == SQUARE_ROOT:
        length = isqrt(max(trips - 1, 0)) + 1
        return (length,) if 1 < length < trips else ()
    try:
        most = integer(checkpoint)
    except TypeError:
        most = 0
    if most < 1 or isinstance(most, Dim):
        raise ArgumentError(
            f"{operator}: checkpoint is 'sqrt' or how many trips may be kept, "
            f"not {checkpoint!r:.60}"
        )
    counts = _counts(trips, most)
    if sum(counts) > most:
        raise ArgumentError(
            f"{operator}: {trips} trips cannot be computed again from {most}: {sum(counts)} is the "
            "least"
        )
    return tuple([prod(counts[k:]) for k in range(1, len(counts))])


_BLOCKS = "scan over blocks of rows, in a function that scans a block, as pg.checkpoint(function)"


def _counts(trips: int, most: int) -> list[int]:
    """Return the fewest counts that add up to at most `most`; else those with the least sum."""
    best = [max(trips, 1)]
    while sum(best) > most:
        counts = _factors(trips, len(best) + 1)
        if counts[-1] < 2:
            break
        best = counts
    return (
        best
        if sum(best) <= most
        else min((_factors(trips, n) for n in range(1, len(best) + 1)), key=sum)
    )


def _factors(trips: int, levels: int) -> list[int]:
    """Return nearly equal numbers with a product of at least `trips`, larger ones first."""
    base = max(round(trips ** (1 / levels)), 1)
    while base**levels > trips:
        base -= 1
    while (base + 1) ** levels <= trips:
        base += 1
    larger = next(n for n in range(levels + 1) if (base + 1) ** n * base ** (levels - n) >= trips)
    return [base + 1] * larger + [base] * (levels - larger)
