"""Rows and columns of a matrix that are there already, in parts of variables."""

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
    """Rows or columns that are there already: which variable has them, at which place."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.axis = 0
        self.known: dict[int, tuple[Variable, int]] = {}

    def missing(self, numbers: Sequence[int]) -> list[int]:
        """Those among `numbers` that are not there, in order, each once.

        What was recorded in a scratch of the builder is gone with it.
        """
        return sorted(
            n
            for n in set(numbers)
            if n not in self.known or self.known[n][0].value not in self.builder
        )

    def add(self, numbers: Sequence[int], found: Variable, axis: int) -> None:
        """Note that `found` has these, in order, along `axis`."""
        self.axis = axis
        self.known.update((n, (found, i)) for i, n in enumerate(numbers))

    def joined(self, numbers: Sequence[int]) -> Variable:
        """These, in this order, along `axis` of one variable."""
        with recording(self.builder):
            values = {self.known[n][0].value: self.known[n][0] for n in numbers}
            starts = accumulate((v.shape[self.axis] for v in values.values()), initial=0)
            start = dict(zip(values, starts, strict=False))
            parts = list(values.values())
            whole = concatenate(parts, axis=self.axis) if len(parts) > 1 else parts[0]
        places = [start[self.known[n][0].value] + self.known[n][1] for n in numbers]
        return picked(whole, self.axis, places)


def picked(x: Variable, axis: int, places: Sequence[int] | np.ndarray[Any, Any]) -> Variable:
    """The entries of `axis` at `places`, by a slice if they are evenly spaced.

    The axes of `places` stand in the place of `axis`.
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
    """Zeros in `builder`."""
    with recording(builder):
        return wrap(filled(0, type))
