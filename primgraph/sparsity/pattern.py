"""Sparsity patterns of matrices in compressed rows, as NumPy arrays."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from math import prod
from operator import index
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.base.locks import cached_property
from primgraph.base.providers import provider
from primgraph.errors import ArgumentError, BoundsError, OptionError, ShapeError

Array = np.ndarray[Any, Any]
Indices: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

# Bits of a positive int64.
_WORD = 63


@final
class Pattern:
    """Pattern of a matrix of shape `(m, n)`: the elements that may be nonzero.

    Those of row i are in the columns `indices[indptr[i]:indptr[i + 1]]`, ascending and without
    duplicates; both are read-only int64 arrays. All other elements are structural zeros. Patterns
    are equal if shape and elements are.

    Raises `ShapeError` where `indptr` or `indices` do not fit `shape`, and `BoundsError` for
    columns outside it.

    >>> pattern = pg.Pattern.from_dense(np.tri(3))
    >>> pattern.shape, pattern.density
    ((3, 3), 0.6666666666666666)
    """

    shape: tuple[int, int]
    indptr: Indices
    indices: Indices

    def __init__(self, shape: Sequence[int], indptr: Any, indices: Any) -> None:
        size = _size(shape)
        starts, columns = _integers("indptr", indptr), _integers("indices", indices)
        if starts.size != size[0] + 1 or starts[0] != 0 or starts[-1] != columns.size:
            raise ShapeError(
                f"indptr of a pattern of {size[0]} rows has {size[0] + 1} numbers, from 0 to the "
                f"number of indices, which is {columns.size}"
            )
        if np.any(np.diff(starts) < 0):
            raise ShapeError("indptr of a pattern never descends")
        _require_within("column", columns, size[1])
        rising = np.diff(columns) > 0
        rising[starts[(starts > 0) & (starts < columns.size)] - 1] = True
        if not np.all(rising):
            raise ShapeError(
                "the columns of each row of a pattern ascend, and none stands there twice",
                hint="Pattern.from_coo(rows, columns, shape) takes them in any order",
            )
        self._hold(size, starts, columns)

    def _hold(self, shape: tuple[int, int], indptr: Indices, indices: Indices) -> None:
        for array in (indptr, indices):
            array.setflags(write=False)
        for name, value in (("shape", shape), ("indptr", indptr), ("indices", indices)):
            object.__setattr__(self, name, value)

    @staticmethod
    def _from_arrays(shape: tuple[int, int], indptr: Indices, indices: Indices) -> Pattern:
        """Return a pattern of trusted arrays with no other owner."""
        made = Pattern.__new__(Pattern)
        made._hold(shape, indptr, indices)
        return made

    @staticmethod
    def from_coo(rows: Any, columns: Any, shape: Sequence[int]) -> Pattern:
        """Return the pattern with an element at each `rows[k], columns[k]`, in any order, with
        duplicates.

        Raises `ShapeError` for lists of different lengths, `BoundsError` for an element outside of
        `shape`.
        """
        size = _size(shape)
        down, across = _integers("rows", rows), _integers("columns", columns)
        if down.shape != across.shape:
            raise ShapeError(f"there are {down.size} rows and {across.size} columns of elements")
        _require_within("row", down, size[0])
        _require_within("column", across, size[1])
        return _from_keys(down * size[1] + across, size)

    @staticmethod
    def from_dense(matrix: Any) -> Pattern:
        """Return the pattern of the nonzero elements of a 2-d array, NaN included."""
        array = np.asarray(matrix)
        if array.ndim != 2 or array.dtype.kind not in "biufc":
            raise ShapeError(
                f"a pattern is that of a matrix of numbers, not of {array.dtype} {array.shape}"
            )
        rows, columns = np.nonzero(array)
        counts = np.bincount(rows, minlength=array.shape[0])
        return Pattern._from_arrays(_size(array.shape), _starts(counts), columns.astype(np.int64))

    @staticmethod
    def from_scipy(matrix: Any) -> Pattern:
        """Return the pattern of the stored elements of a SciPy sparse matrix, explicit zeros
        included."""
        found = matrix.tocoo()
        return Pattern.from_coo(found.row, found.col, found.shape)

    @property
    def nnz(self) -> int:
        """Number of elements that may be nonzero."""
        return int(self.indices.size)

    @property
    def density(self) -> float:
        """Fraction of elements that may be nonzero; 0 for a matrix without elements."""
        return self.nnz / prod(self.shape) if prod(self.shape) else 0.0

    @cached_property
    def rows(self) -> Indices:
        """Row of each element, in the order of `indices`."""
        found = np.repeat(np.arange(self.shape[0], dtype=np.int64), np.diff(self.indptr))
        found.setflags(write=False)
        return found

    @property
    def cols(self) -> Indices:
        """Column of each element: `indices`."""
        return self.indices

    @cached_property
    def T(self) -> Pattern:
        """Pattern of the transposed matrix."""
        starts = _starts(np.bincount(self.indices, minlength=self.shape[1]))
        found = Pattern._from_arrays(self.shape[::-1], starts, self.rows[self._column_order])
        found.__dict__["T"] = self
        return found

    @cached_property
    def _column_order(self) -> Indices:
        """Numbers of the elements in column order: in a symmetric pattern, of the mirror
        elements."""
        bits = self.nnz.bit_length()
        if self.shape[1].bit_length() + bits < _WORD:
            # Sorting numbers with the position in the low bits is much faster than argsort.
            both = np.sort(self.indices << bits | np.arange(self.nnz, dtype=np.int64))
            found: Indices = both & ((1 << bits) - 1)
        else:
            found = np.argsort(self.indices, kind="stable")
        found.setflags(write=False)
        return found

    def union(self, other: Pattern) -> Pattern:
        """Return the union of both patterns; raises `ShapeError` for another shape."""
        if not isinstance(other, Pattern):
            raise ArgumentError(f"a pattern is joined with another one, not with {other!r:.60}")
        if self.shape != other.shape:
            raise ShapeError(f"a pattern of shape {self.shape} is joined with one of {other.shape}")
        return _from_keys(np.concatenate([self._keys(), other._keys()]), self.shape)

    def missing(self, other: Pattern) -> Pattern:
        """Return the elements of `other` that this one lacks; raises `ShapeError` for another
        shape."""
        if self.shape != other.shape:
            raise ShapeError(f"patterns of shapes {self.shape} and {other.shape} differ in all")
        return _from_keys(np.setdiff1d(other._keys(), self._keys(), True), self.shape)

    def to_dense(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return a boolean mask of shape `(m, n)`."""
        mask = np.zeros(self.shape, np.bool_)
        mask[self.rows, self.indices] = True
        return mask

    def to_scipy(self) -> Any:
        """Return a `scipy.sparse.csr_array` of ones, with copied arrays.

        Raises `OptionError` if SciPy cannot be imported.
        """
        module = scipy_sparse("Pattern.to_scipy")
        data = np.ones(self.nnz, np.bool_)
        return module.csr_array((data, self.indices.copy(), self.indptr.copy()), shape=self.shape)

    def _keys(self) -> Indices:
        """Return one number per element, ascending."""
        keys: Indices = self.rows * self.shape[1] + self.indices
        return keys

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a pattern stays as it is: {name!r} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a pattern stays as it is: {name!r} cannot be deleted")

    def __reduce__(self) -> tuple[Any, ...]:
        return Pattern, (self.shape, self.indptr, self.indices)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pattern):
            return NotImplemented
        return (
            self.shape == other.shape
            and np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.indices, other.indices)
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.nnz, self.indices[:64].tobytes()))

    def _repr_svg_(self) -> str:
        """Draw the positions of the elements, for notebooks; see `pg.spy`."""
        picture: str = provider("pictures of patterns").spy(self)._repr_svg_()
        return picture

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<Pattern {rows} x {columns}, {self.nnz} nonzeros ({100 * self.density:.3g} %)>"


def scipy_sparse(what: str) -> Any:
    """Import `scipy.sparse`; raises `OptionError` if SciPy is not installed."""
    try:
        return import_module("scipy.sparse")
    except ImportError:
        raise OptionError(
            f"{what} gives a matrix of SciPy, which cannot be imported here",
            hint="install SciPy, or use values, rows and cols, which are arrays of NumPy",
        ) from None


def is_scipy_sparse(x: Any) -> bool:
    """Return whether this is a sparse matrix of SciPy, or stands for one, without importing it."""
    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(x))


def _size(shape: Any) -> tuple[int, int]:
    if not isinstance(shape, tuple | list) or len(shape) != 2:
        raise ShapeError(f"a pattern has two extents, not {shape!r:.60}")
    try:
        rows, columns = map(index, shape)
    except TypeError:
        raise ShapeError(f"a pattern has two extents, not {shape!r:.60}") from None
    if rows < 0 or columns < 0:
        raise ShapeError(f"no extent of a pattern is negative, as in {shape!r:.60}")
    return rows, columns


def _integers(name: str, numbers: Any) -> Indices:
    array = np.asarray(numbers)
    if array.ndim != 1 or (array.dtype.kind not in "biu" and array.size):
        raise ShapeError(f"{name} of a pattern is a list of integers, not {numbers!r:.60}")
    return array.astype(np.int64)


def _require_within(name: str, indices: Indices, extent: int) -> None:
    if indices.size and (indices.min() < 0 or indices.max() >= extent):
        wrong = int(indices[np.argmax((indices < 0) | (indices >= extent))])
        raise BoundsError(f"{name} {wrong} lies outside a pattern of {extent} {name}s")


def _starts(counts: Array) -> Indices:
    found = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, out=found[1:])
    return found


def _from_keys(keys: Indices, shape: tuple[int, int]) -> Pattern:
    """Return the pattern of elements by row-major number, in any order, with duplicates."""
    if not np.all(keys[1:] > keys[:-1]):
        keys = np.sort(keys)
        keys = keys[np.append(True, keys[1:] != keys[:-1])] if keys.size else keys
    rows, columns = np.divmod(keys, max(shape[1], 1))
    counts = np.bincount(rows, minlength=shape[0])
    return Pattern._from_arrays(shape, _starts(counts), columns)
