"""Rows and columns that an index of a Jacobian selects, computed with NumPy's own indexing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, BoundsError, IndexKindError
from primgraph.ir.types import Shape

Numbers = np.ndarray[Any, np.dtype[np.int64]]


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
    def of(shapes: Sequence[Shape], index: Any) -> Selection:
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
            count = np.arange(math.prod(shape), dtype=np.int64).reshape(
                (*(1,) * before, *shape, *(1,) * (len(whole) - before - len(shape)))
            )
            numbers.append(_indexed(np.broadcast_to(count, whole), index))
            before += len(shape)
        return _arranged(numbers)


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


def _indexed(array: Numbers, index: Any) -> Numbers:
    try:
        return np.asarray(array[index])
    except IndexError as error:
        raise BoundsError(str(error)) from None
    except (TypeError, ValueError) as error:
        raise ArgumentError(str(error)) from None


def _arranged(numbers: Sequence[Numbers]) -> Selection:
    """Return the selection with these sample, row and column numbers, which have one shape."""
    shape = numbers[0].shape
    if 0 in shape:
        return Selection(shape, [], [], [])
    reduced = [_reduced(n) for n in numbers]
    axes = [[a for a, n in enumerate(r.shape) if n != 1] for r in reduced]
    joined = [a for varying in axes for a in varying]
    if joined == sorted(set(joined)) and math.prod(r.size for r in reduced) == math.prod(shape):
        samples, rows, columns = (r.reshape(-1).tolist() for r in reduced)
        return Selection(shape, samples, rows, columns)
    distinct, inverse = zip(*(np.unique(r, return_inverse=True) for r in reduced), strict=True)
    extents = tuple(len(d) for d in distinct)
    local = [i.reshape(r.shape) for i, r in zip(inverse, reduced, strict=True)]
    places = np.ravel_multi_index(np.broadcast_arrays(*local), extents)
    samples, rows, columns = (d.tolist() for d in distinct)
    return Selection(shape, samples, rows, columns, np.broadcast_to(places, shape))


def _reduced(numbers: Numbers) -> Numbers:
    """Reduce `numbers` to size 1 along each axis along which they are constant."""
    still = [a for a, stride in enumerate(numbers.strides) if stride == 0]
    numbers = numbers[tuple(slice(1) if a in still else slice(None) for a in range(numbers.ndim))]
    for axis in range(numbers.ndim):
        first = numbers.take([0], axis=axis)
        if bool(np.all(numbers == first)):
            numbers = first
    return numbers
