"""Ways to have other threads take part even in loops that are over in microseconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import primgraph as pg
from primgraph.codegen.runtime import threads


@contextmanager
def threads_at_work(count: int) -> Iterator[None]:
    """Kernels run in up to `count` threads; callers wait for another thread to take a block."""
    before, call, interval = pg.get_num_threads(), threads._ThreadPool.call, sys.getswitchinterval()

    def patient(crew: Any, job: Any, helpers: int) -> None:
        call(crew, job, helpers)
        end = time.monotonic() + 10
        while job.next == 0 and time.monotonic() < end:
            time.sleep(0)

    pg.set_num_threads(count)
    sys.setswitchinterval(1e-6)
    threads._ThreadPool.call = patient  # type: ignore[method-assign]
    try:
        yield
    finally:
        threads._ThreadPool.call = call  # type: ignore[method-assign]
        sys.setswitchinterval(interval)
        pg.set_num_threads(before)
