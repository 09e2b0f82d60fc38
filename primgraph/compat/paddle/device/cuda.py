"""CUDA, which there is none of."""

from __future__ import annotations

from typing import Any


def device_count() -> int:
    """Return 0."""
    return 0


def memory_allocated(device: Any = None) -> int:
    """Return 0."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def empty_cache() -> None:
    """Do nothing."""
