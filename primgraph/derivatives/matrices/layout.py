"""Interface of derivative matrices, the layout of arrays in their rows and columns, and indices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import accumulate
from math import prod
from types import EllipsisType
from typing import Any

import numpy as np

from primgraph.base.records import dataclass
from primgraph.errors import ArgumentError, BoundsError, IndexKindError, OptionError
from primgraph.ir.dims import names_in
from primgraph.ir.types import DType, Shape, TensorType

Numbers = np.ndarray[Any, np.dtype[np.int64]]


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


@dataclass(frozen=True, slots=True)
class Selection:
    """Result of indexing an array with axes for samples, then rows, then columns.

    The elements, in row-major order of `shape`, are all combinations of `samples`, `rows` and
    `columns`; or, if the index does not have this form, those at `places` of the flattened
    combinations.
    """

    shape: Shape
    samples: list[int]
    rows: list[int]
    columns: list[int]
    places: Numbers | None = None

    @staticmethod
    def from_index(shapes: Sequence[Shape], index: Any) -> Selection:
        """Return the selection by `index` from an array of these sample, row and column shapes.

        Raises `BoundsError` if NumPy raises an IndexError, `IndexKindError` for an invalid index,
        `ArgumentError` if NumPy raises a TypeError or ValueError.
        """
        entries = index if isinstance(index, tuple) else (index,)
        for entry in entries:
            _require_kind(entry)
        whole = tuple(n for shape in shapes for n in shape)
        numbers: list[Numbers] = []
        before = 0
        for shape in shapes:
            count = np.arange(prod(shape), dtype=np.int64).reshape(
                (*(1,) * before, *shape, *(1,) * (len(whole) - before - len(shape)))
            )
            numbers.append(_apply_index(np.broadcast_to(count, whole), index))
            before += len(shape)
        return _build_selection(numbers)


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
    def arrange_block(self, block: Any, selection: Selection) -> Any:
        """Arrange the block of rows and columns as the index requires."""

    @abstractmethod
    def zeros(self, type: TensorType) -> Any:
        """Return zeros of that type."""

    def whole(self, rows: tuple[int, int], columns: tuple[int, int]) -> Any:
        """Return ranges of rows and columns (start and number) whose numbers are symbolic."""
        raise NotImplementedError

    def is_by_columns(self, rows: int, columns: int) -> bool:
        """Return whether evaluating these columns is cheaper than these rows."""
        wide = self.inputs.offsets()[-1] > self.outputs.offsets()[-1]
        return rows > columns or (rows == columns and not wide)


def select_kept_numbers(numbers: Sequence[int], layout: Layout, kept: Sequence[bool]) -> list[int]:
    """Return the `numbers` of elements that belong to kept arrays."""
    owners = np.searchsorted(layout.offsets(), numbers, side="right") - 1
    return [n for n, owner in zip(numbers, owners.tolist(), strict=True) if kept[owner]]


def only_mode(inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> str | None:
    """Return the only valid mode if just inputs or just outputs are complex; None otherwise."""
    by, of = (any(t.is_complex for t in types) for types in (inputs, outputs))
    if by == of:
        return None
    return "reverse" if by else "forward"


# Indices.


def _require_kind(entry: Any) -> None:
    """Raise for an object that cannot be part of an index."""
    if entry is None or isinstance(entry, int | np.integer | np.bool_ | slice | EllipsisType):
        return
    if isinstance(entry, list | np.ndarray):
        try:
            array = np.asarray(entry)
        except ValueError:
            array = np.array(None)
        if array.dtype.kind in "iub" or array.size == 0:
            return
    raise IndexKindError(
        f"a Jacobian cannot be indexed by {type(entry).__name__} {entry!r:.60}",
        hint="an index is an integer, a slice, `...`, None, or a list or array of integers",
    )


def _apply_index(array: Numbers, index: Any) -> Numbers:
    try:
        return np.asarray(array[index])
    except IndexError as error:
        raise BoundsError(str(error)) from None
    except (TypeError, ValueError) as error:
        raise ArgumentError(str(error)) from None


def _build_selection(numbers: Sequence[Numbers]) -> Selection:
    """Return the selection with these sample, row and column numbers, which have one shape."""
    shape = numbers[0].shape
    if 0 in shape:
        return Selection(shape, [], [], [])
    reduced = [_reduce_constant_axes(n) for n in numbers]
    axes = [[a for a, n in enumerate(r.shape) if n != 1] for r in reduced]
    joined = [a for varying in axes for a in varying]
    if joined == sorted(set(joined)) and prod(r.size for r in reduced) == prod(shape):
        samples, rows, columns = (r.reshape(-1).tolist() for r in reduced)
        return Selection(shape, samples, rows, columns)
    distinct, inverse = zip(*(np.unique(r, return_inverse=True) for r in reduced), strict=True)
    extents = tuple(len(d) for d in distinct)
    local = [i.reshape(r.shape) for i, r in zip(inverse, reduced, strict=True)]
    places = np.ravel_multi_index(np.broadcast_arrays(*local), extents)
    samples, rows, columns = (d.tolist() for d in distinct)
    return Selection(shape, samples, rows, columns, np.broadcast_to(places, shape))


def _reduce_constant_axes(numbers: Numbers) -> Numbers:
    """Reduce `numbers` to size 1 along each axis along which they are constant."""
    still = [a for a, stride in enumerate(numbers.strides) if stride == 0]
    numbers = numbers[tuple(slice(1) if a in still else slice(None) for a in range(numbers.ndim))]
    for axis in range(numbers.ndim):
        first = numbers.take([0], axis=axis)
        if bool(np.all(numbers == first)):
            numbers = first
    return numbers
