"""Options of generated code, and limits that decide about blocks, their sizes, and threads."""

from __future__ import annotations

import os
from functools import cache
from typing import final

from primgraph.base.records import dataclass


@cache
def cache_bytes() -> int:
    """Return the size of the second-level cache of one core; 1 MiB if it is unknown."""
    try:
        size = os.sysconf("SC_LEVEL2_CACHE_SIZE")
    except (AttributeError, OSError, ValueError):
        size = 0
    return size if size > 0 else 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds for blocking and for threads.

    A region begins at a step whose result has at least `least_bytes`. It runs in blocks if its
    values exceed `cache` bytes in total. A block has the rows that fit, but at least so many that
    its steps move `least_block` bytes each on average: with less, calls cost more than the cache
    gains.

    With several `processors`, a region may also run in threads. Each of them gets work for at least
    `least_share` nanoseconds, to outweigh waking it. A step of a block takes at least `least_call`
    nanoseconds on average, as passing the interpreter's lock between threads takes as long; for
    cheap steps on float64 that is 85,000 elements.

    A region has at least `least_steps` computing steps; a single one gains from blocks only if
    calls are free. `rows` sets the number of rows explicitly, for tests. With `blas`, products are
    calls of BLAS.
    """

    cache: int
    least_bytes: int = 1 << 17
    least_block: int = 1 << 18
    processors: int = 1
    least_share: int = 500_000
    least_call: int = 12_000
    rows: int | None = None
    least_steps: int = 2
    blas: bool = True


@cache
def default_limits() -> Limits:
    """Return the limits of this machine; they affect bits, so that no setting changes them."""
    return Limits(cache_bytes(), processors=os.cpu_count() or 1)


@final
@dataclass(frozen=True, slots=True)
class Options:
    """Options of the code's interface.

    `donated` pairs outputs with inputs whose arrays they overwrite. `alone`: the only result is
    returned itself, not in a list. `given` are outputs written into arrays of the caller. The last
    `kept` inputs are arrays of the kernel. A loop body has a `trip`: its numbers of constants and
    of carries. `poisoned` fills dead memory with ones, which are NaNs, so that faults show. `loose`
    native code has functions accurate to four units in the last place, and rounds in any way.
    """

    donated: tuple[tuple[int, int], ...] = ()
    given: tuple[int, ...] = ()
    alone: bool = False
    kept: int = 0
    trip: tuple[int, int] | None = None
    poisoned: bool = False
    loose: bool = False
