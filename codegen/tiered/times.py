"""Times of NumPy and of C for a graph, kept in the cache for later processes."""

from __future__ import annotations

import contextlib
import json
from typing import NamedTuple

from primgraph.codegen.runtime.toolchain import cache


class Times(NamedTuple):
    """Nanoseconds of a call by NumPy and by C; None if not measured."""

    numpy: int | None = None
    c: int | None = None

    @property
    def are_known(self) -> bool:
        """Return whether both were measured."""
        return self.numpy is not None and self.c is not None

    @property
    def is_c_faster(self) -> bool:
        """Return whether both were measured, and C takes less time."""
        return self.numpy is not None and self.c is not None and self.c < self.numpy

    def __str__(self) -> str:
        known = [(name, ns) for name, ns in zip(("NumPy", "C"), self, strict=True) if ns]
        return ", ".join([f"{name} takes {ns / 1000:.4g} us a call" for name, ns in known])


def recall_times(key: str) -> Times:
    """Return the times that the cache has under the key of a graph's C."""
    with contextlib.suppress(OSError, ValueError, TypeError), cache.usable_folder() as folder:
        content = cache.recall(folder, f"{key}{cache.TIMES}")
        if content is not None:
            found = Times(*json.loads(content))
            if all(ns is None or type(ns) is int for ns in found):
                return found
    return Times()


def keep_times(key: str, times: Times) -> None:
    """Store the times under the key of a graph's C, if possible."""
    with contextlib.suppress(OSError), cache.usable_folder() as folder:
        cache.keep(folder, f"{key}{cache.TIMES}", json.dumps(times).encode())
