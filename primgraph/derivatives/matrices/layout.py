"""What a matrix of derivatives is: how arrays lie in its rows and columns, and what it is asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from primgraph.derivatives.matrices.matrix_index import Selection
from primgraph.errors import OptionError
from primgraph.ir.dims import names_in
from primgraph.ir.types import DType, Shape, TensorType


@dataclass(frozen=True, slots=True)
class Passes:
    """How many rows were evaluated by reverse mode, and how many columns by forward mode."""

    reverse: int = 0
    forward: int = 0


@dataclass(frozen=True, slots=True)
class Layout:
    """How arrays lie one after the other in one vector, or in one for each of `batch` samples."""

    shapes: tuple[Shape, ...]
    batch: int | None

    def extents(self) -> list[int]:
        """How many elements, of one sample if there are samples, each array has."""
        return [prod(self.sample(i)) for i in range(len(self.shapes))]

    def sample(self, place: int) -> Shape:
        """The shape of array `place`, of one sample if there are samples."""
        return self.shapes[place] if self.batch is None else self.shapes[place][1:]

    def offsets(self) -> list[int]:
        """Where each array begins, and the whole extent."""
        return list(accumulate(self.extents(), initial=0))

    def lead(self) -> Shape:
        return () if self.batch is None else (self.batch,)

    @property
    def names(self) -> frozenset[str]:
        """The sizes that extents are made of."""
        return names_in(self.shapes)


class Matrix(ABC):
    """A matrix of derivatives, of which parts are evaluated when they are asked."""

    outputs: Layout
    inputs: Layout
    dtype: DType
    passes: Passes
    # "forward" for columns, "reverse" for rows, None for whichever takes fewer passes.
    mode: str | None
    # The one of both that there is, where numbers are complex on one side only.
    only: str | None

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is a matrix of."""

    def choose(self, mode: str | None) -> None:
        """Let rows, or columns, be evaluated. Raises `OptionError` where they are not numbers."""
        if mode is not None and self.only not in (None, mode):
            raise OptionError(
                f"{mode} mode gives no derivatives of real numbers by complex ones, or the other "
                "way round",
                hint=f"{self.only} mode does",
            )
        self.mode = self.only or mode

    @abstractmethod
    def block(self, rows: Sequence[int], columns: Sequence[int]) -> Any:
        """The elements in `rows` and `columns`, in the order in which they are wanted."""

    @abstractmethod
    def arranged(self, block: Any, selection: Selection) -> Any:
        """What an index gives, of the block of its rows and columns."""

    @abstractmethod
    def zeros(self, type: TensorType) -> Any:
        """Zeros of that type."""

    def whole(self, rows: tuple[int, int], columns: tuple[int, int]) -> Any:
        """So many rows from a first one on, and columns, where their number depends on sizes."""
        raise NotImplementedError

    def is_by_columns(self, rows: int, columns: int) -> bool:
        """Whether to evaluate so many columns rather than so many rows."""
        wide = self.inputs.offsets()[-1] >= self.outputs.offsets()[-1]
        return rows > columns or (rows == columns and not wide)


def owned(numbers: Sequence[int], layout: Layout, kept: Sequence[bool]) -> list[int]:
    """The `numbers` of elements of the arrays that are kept."""
    owners = np.searchsorted(layout.offsets(), numbers, side="right") - 1
    return [n for n, owner in zip(numbers, owners.tolist(), strict=True) if kept[owner]]


def only_mode(inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> str | None:
    """The mode that alone gives the derivatives, where they are of complex numbers by real ones,
    or the other way round; None for either."""
    by, of = (any(t.is_complex for t in types) for types in (inputs, outputs))
    if by == of:
        return None
    return "reverse" if by else "forward"
