"""Debug mode: verification of all graphs and plans."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

debugging: ContextVar[bool] = ContextVar(
    "primgraph_debug", default=os.environ.get("PRIMGRAPH_DEBUG", "0") not in ("", "0")
)


@contextmanager
def debug(on: bool = True) -> Iterator[None]:
    """Verify the graphs that enter and leave each transform in this context, and all plans.

    The environment variable PRIMGRAPH_DEBUG=1 does the same for a whole process.

    >>> with pg.transforms.debug():
    ...     graph = pg.transforms.lower(pg.trace(pg.softmax, pg.spec(3)))
    """
    before = debugging.get()
    try:
        debugging.set(on)
        yield
    finally:
        debugging.set(before)
