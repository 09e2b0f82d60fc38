"""Dynamic stacks of planned code, whose rows are counted while a loop runs."""

from __future__ import annotations

from typing import Any, TypeAlias, final

import numpy as np

from primgraph.ir.types import DType, Shape

Array: TypeAlias = "np.ndarray[Any, Any]"

# Initial capacity in rows.
_FIRST = 16


@final
class Growing:
    """A stack of rows of one type, whose capacity doubles when it is full.

    It keeps its capacity between runs, so that runs with as many iterations allocate nothing.
    `rows` has all rows of the capacity; loops know how many they use.
    """

    __slots__ = ("rows",)

    def __init__(self, shape: Shape, dtype: DType) -> None:
        self.rows: Array = np.empty((0, *shape), dtype)

    def row(self, k: int) -> Array:
        """Return row `k`, growing if needed; earlier rows keep their contents."""
        if k >= len(self.rows):
            self._grow(max(2 * k, _FIRST))
        return self.rows[k, ...]

    def go_on(self, count: int) -> Array:
        """Return at least `count` rows; existing rows keep their contents."""
        if count > len(self.rows):
            self._grow(max(2 * len(self.rows), count))
        return self.rows

    def _grow(self, count: int) -> None:
        old = self.rows
        self.rows = np.empty((count, *old.shape[1:]), old.dtype)
        self.rows[: len(old)] = old

    def room(self, count: int) -> Array:
        """Return at least `count` rows with undefined contents."""
        if count > len(self.rows):
            self.rows = np.empty((count, *self.rows.shape[1:]), self.rows.dtype)
        return self.rows
