"""What decides whether steps run in blocks and in threads, and how large the blocks are."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache


@cache
def cache_bytes() -> int:
    """The size of the second-level cache of one core; 1 MiB where the system does not tell."""
    try:
        size = os.sysconf("SC_LEVEL2_CACHE_SIZE")
    except (AttributeError, OSError, ValueError):
        size = 0
    return size if size > 0 else 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """When blocks pay, and how large they are; when threads do.

    A region begins at a step whose result has at least `least_bytes`; it runs in blocks if its
    values do not fit into `cache` bytes together. A block has the rows that do, but so many that
    its steps move `least_block` bytes each, on average: with less, calls cost more than the cache
    gives.

    Where the machine has several `processors`, a region may also run in threads. Each of them
    gets work for `least_share` nanoseconds, or it costs more to wake it. A step takes `least_call`
    nanoseconds for a block, on average, as threads pass the interpreter's lock to each other now
    and then, which takes as long: for cheap steps on float64 that is 85,000 elements.
    Regions have `least_steps` that compute something: one alone gains from blocks if calls cost
    nothing. `rows` sets the number of rows outright, for tests.
    """

    cache: int
    least_bytes: int = 1 << 17
    least_block: int = 1 << 18
    processors: int = 1
    least_share: int = 500_000
    least_call: int = 12_000
    rows: int | None = None
    least_steps: int = 2


@cache
def default_limits() -> Limits:
    """The limits for this machine: they decide about bits, so that no setting changes them."""
    return Limits(cache_bytes(), processors=os.cpu_count() or 1)
