"""Interface of derivative matrices, and the layout of arrays in their rows and columns."""

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
    """Numbers of rows evaluated by reverse mode, and of columns evaluated by forward mode."""

    reverse: int = 0
    forward: int = 0


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of arrays concatenated into one vector, or into one for each of `batch` samples."""

    shapes: tuple[Shape, ...]
    batch: int | None

    def extents(self) -> list[int]:
        """Return the number of elements of each array, per sample if batched."""
        return [prod(self.sample(i)) for i in range(len(self.shapes))]

    def sample(self, place: int) -> Shape:
        """Return the shape of array `place`, per sample if batched."""
        return self.shapes[place] if self.batch is None else self.shapes[place][1:]

    def offsets(self) -> list[int]:
        """Return the offset of each array, and the total number of elements."""
        return list(accumulate(self.extents(), initial=0))

    def lead(self) -> Shape:
        return () if self.batch is None else (self.batch,)

    @property
    def names(self) -> frozenset[str]:
        """Symbolic sizes in the shapes."""
        return names_in(self.shapes)


class Matrix(ABC):
    """Derivative matrix of which requested parts are evaluated."""

    outputs: Layout
    inputs: Layout
    dtype: DType
    passes: Passes
    # "forward" for columns, "reverse" for rows, None for the mode that takes fewer passes.
    mode: str | None
    # The only valid mode, if just inputs or just outputs are complex.
    only: str | None

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the derivative, for messages."""

    def choose(self, mode: str | None) -> None:
        """Set the mode: rows or columns. Raises `OptionError` if it is not valid for complex
        numbers."""
        if mode is not None and self.only not in (None, mode):
            raise OptionError(
                f"{mode} mode gives no derivatives of real numbers by complex ones, or the other "
                "way round",
                hint=f"{self.only} mode does",
            )
        self.mode = self.only or mode

    @abstractmethod
    def block(self, rows: Sequence[int], columns: Sequence[int]) -> Any:
        """Return the elements in `rows` and `columns`, in the given order."""

    @abstractmethod
    def arranged(self, block: Any, selection: Selection) -> Any:
        """Arrange the block of rows and columns as the index requires."""

    @abstractmethod
    def zeros(self, type: TensorType) -> Any:
        """Return zeros of that type."""

    def whole(self, rows: tuple[int, int], columns: tuple[int, int]) -> Any:
        """Return ranges of rows and columns (start and number) whose numbers are symbolic."""
        raise NotImplementedError

    def is_by_columns(self, rows: int, columns: int) -> bool:
        """Return whether evaluating these columns is cheaper than these rows."""
        wide = self.inputs.offsets()[-1] >= self.outputs.offsets()[-1]
        return rows > columns or (rows == columns and not wide)


def owned(numbers: Sequence[int], layout: Layout, kept: Sequence[bool]) -> list[int]:
    """Return the `numbers` of elements that belong to kept arrays."""
    owners = np.searchsorted(layout.offsets(), numbers, side="right") - 1
    return [n for n, owner in zip(numbers, owners.tolist(), strict=True) if kept[owner]]


def only_mode(inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> str | None:
    """Return the only valid mode if just inputs or just outputs are complex; None otherwise."""
    by, of = (any(t.is_complex for t in types) for types in (inputs, outputs))
    if by == of:
        return None
    return "reverse" if by else "forward"
