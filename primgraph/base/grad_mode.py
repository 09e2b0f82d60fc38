"""Gradient mode: whether derivatives go through computations, per thread and task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Set by `pg.no_grad()` and similar; read by tensors and builders.
is_on: ContextVar[bool] = ContextVar("primgraph_grad_enabled", default=True)


@contextmanager
def enable_tracking() -> Iterator[None]:
    """Enable gradients in a context, for functions being traced.

    Whether derivatives go through a call of the traced function is decided at the call.
    """
    before = is_on.get()
    try:
        is_on.set(True)
        yield
    finally:
        is_on.set(before)
