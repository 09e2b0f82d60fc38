"""Cache of evaluated rows and columns of a matrix, stored in variables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, final

import numpy as np

from primgraph.ir.builder import Builder
from primgraph.ir.primitive import recording
from primgraph.ir.types import TensorType
from primgraph.operators.index.indexing import take
from primgraph.operators.promotion import wrap
from primgraph.operators.shape.joining import concatenate, sliced
from primgraph.operators.variable import Variable
from primgraph.primitives.constants import filled


@final
class Pool:
    """Cache of rows or columns: maps a number to a variable and an index in it."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.axis = 0
        self.known: dict[int, tuple[Variable, int]] = {}

    def missing(self, numbers: Sequence[int]) -> list[int]:
        """Return the `numbers` that are not cached, sorted and unique.

        Values recorded in a scratch of the builder are gone with it.
        """
        return sorted(
            n
            for n in set(numbers)
            if n not in self.known or self.known[n][0].value not in self.builder
        )

    def add(self, numbers: Sequence[int], found: Variable, axis: int) -> None:
        """Cache the rows or columns `numbers`, which are `found` along `axis`."""
        self.axis = axis
        self.known.update((n, (found, i)) for i, n in enumerate(numbers))

    def joined(self, numbers: Sequence[int]) -> Variable:
        """Return these rows or columns, in this order, as one variable."""
        with recording(self.builder):
            values = {self.known[n][0].value: self.known[n][0] for n in numbers}
            starts = accumulate((v.shape[self.axis] for v in values.values()), initial=0)
            start = dict(zip(values, starts, strict=False))
            parts = list(values.values())
            whole = concatenate(parts, axis=self.axis) if len(parts) > 1 else parts[0]
        places = [start[self.known[n][0].value] + self.known[n][1] for n in numbers]
        return picked(whole, self.axis, places)


def picked(x: Variable, axis: int, places: Sequence[int] | np.ndarray[Any, Any]) -> Variable:
    """Return the entries of `axis` at `places`, by a slice if they are evenly spaced.

    The axes of `places` replace `axis`.
    """
    numbers = np.asarray(places)
    with recording(x.recorder):
        if numbers.ndim == 1 and len(numbers):
            steps = np.diff(numbers)
            step = int(steps[0]) if len(steps) else 1
            if step != 0 and bool(np.all(steps == step)):
                return sliced(x, axis, int(numbers[0]), len(numbers), step)
        return take(x, numbers, axis=axis)


def zeros_of(builder: Builder, type: TensorType) -> Variable:
    """Return zeros in `builder`."""
    with recording(builder):
        return wrap(filled(0, type))
