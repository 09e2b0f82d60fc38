"""Expectations about C before anything is measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

# Number of calls within which a compilation must pay off.
RUNS = 10_000


class Prior(NamedTuple):
    """Expectations for a graph, in nanoseconds.

    `cost` is the time that compiling takes, and `rough` what C saves in a call by a rough estimate.
    `saving()` is a closer one, which takes long.
    """

    cost: int
    rough: float
    saving: Callable[[], float]
