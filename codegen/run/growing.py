"""Stacks of planned code whose rows are counted while a loop runs."""

from __future__ import annotations

from typing import Any, TypeAlias, final

import numpy as np

from primgraph.ir.types import DType, Shape

Array: TypeAlias = "np.ndarray[Any, Any]"

# The rows for which there is room at first.
_FIRST = 16


@final
class Growing:
    """A stack of rows of one type: where there is no room for one more, room doubles.

    It keeps its room from run to run, so that runs of so many trips as there have been allocate
    nothing. `rows` has as many rows as there is room for, of which loops know how many they use.
    """

    __slots__ = ("rows",)

    def __init__(self, shape: Shape, dtype: DType) -> None:
        self.rows: Array = np.empty((0, *shape), dtype)

    def row(self, k: int) -> Array:
        """The place of row `k`, behind those that have been written."""
        if k >= len(self.rows):
            self._grow(max(2 * k, _FIRST))
        return self.rows[k, ...]

    def go_on(self, count: int) -> Array:
        """Room for `count` rows in all, of which those that there are hold what they held."""
        if count > len(self.rows):
            self._grow(max(2 * len(self.rows), count))
        return self.rows

    def _grow(self, count: int) -> None:
        old = self.rows
        self.rows = np.empty((count, *old.shape[1:]), old.dtype)
        self.rows[: len(old)] = old

    def room(self, count: int) -> Array:
        """Room for `count` rows, which hold anything."""
        if count > len(self.rows):
            self.rows = np.empty((count, *self.rows.shape[1:]), self.rows.dtype)
        return self.rows
