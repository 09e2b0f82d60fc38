"""Whether derivatives go through what is computed: a state of each thread and task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Set by `pg.no_grad()` and its kind, and looked at by tensors and by all that records.
is_on: ContextVar[bool] = ContextVar("primgraph_grad_enabled", default=True)


@contextmanager
def tracked() -> Iterator[None]:
    """Enter a context in which derivatives go through what is computed.

    For functions that are traced: whether derivatives go through a call of what they become is
    decided where that is called.
    """
    before = is_on.get()
    try:
        is_on.set(True)
        yield
    finally:
        is_on.set(before)
