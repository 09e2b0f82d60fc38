"""A sparse matrix of derivatives: values, which are computed, and places, which are known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from primgraph.errors import ArgumentError, OptionError
from primgraph.ir.form import registered
from primgraph.ir.primitive import recording
from primgraph.operators.handle import Handle
from primgraph.operators.indexing import take
from primgraph.operators.joining import concatenate
from primgraph.operators.shaping import reshape
from primgraph.operators.variable import Variable
from primgraph.sparsity.coloring import Coloring
from primgraph.sparsity.pattern import Indices, Pattern, scipy_sparse

FORMATS = ("csr", "csc", "coo")
TRIANGLES = ("lower", "upper")


@final
@dataclass(frozen=True, slots=True, eq=False)
class SparseMatrix:
    """The elements of a matrix that may be other than zero: `data`, and where they stand.

    `data` is an array, a tensor or a variable of shape `(nnz,)`. In the formats "csr" and "coo" it
    has the elements row by row, in "csc" column by column. `indptr` and `indices` are as in SciPy,
    and `rows` and `cols` have the place of each element of `data`. All of them are arrays of int64
    that never change. `pattern` is what is stored; of a symmetric matrix that may be one
    `triangle`, "lower" or "upper", with the diagonal. `coloring` says by which products it was had,
    and `note`, if anything, why there may be more elements than need be.

    It counts as a container of one array: functions that are traced, compiled or differentiated
    may take and return it.
    """

    data: Any
    format: str
    pattern: Pattern
    coloring: Coloring
    triangle: str | None = None
    note: str = ""

    @property
    def shape(self) -> tuple[int, int]:
        """The extents of the matrix."""
        return self.pattern.shape

    @property
    def nnz(self) -> int:
        """How many elements are stored."""
        return self.pattern.nnz

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.data.dtype

    @property
    def indptr(self) -> Indices:
        """Where each row begins in `data`, or in the format "csc" each column."""
        self._require_compressed("indptr")
        return self._turned.indptr

    @property
    def indices(self) -> Indices:
        """The column of each element, or in the format "csc" its row."""
        self._require_compressed("indices")
        return self._turned.indices

    @property
    def rows(self) -> Indices:
        """The row of each element."""
        return self._turned.indices if self.format == "csc" else self.pattern.rows

    @property
    def cols(self) -> Indices:
        """The column of each element."""
        return self._turned.rows if self.format == "csc" else self.pattern.indices

    @property
    def _turned(self) -> Pattern:
        return self.pattern.T if self.format == "csc" else self.pattern

    def _require_compressed(self, name: str) -> None:
        if self.format == "coo":
            raise OptionError(
                f"a matrix in the format coo has no {name}", hint="it has rows and cols"
            )

    def to_dense(self) -> Any:
        """All elements, in an array, a variable or a tensor of shape `(m, n)`.

        Both triangles are there, also where one is stored.
        """
        numbers = np.full(self.shape, self.nnz, np.int64)
        numbers[self.rows, self.cols] = np.arange(self.nnz)
        if self.triangle is not None:
            numbers[self.cols, self.rows] = np.arange(self.nnz)
        if not isinstance(self.data, Handle):
            return np.append(self.data, np.zeros(1, self.dtype))[numbers]
        if isinstance(self.data, Variable):
            with recording(self.data.recorder):
                return self._spread(numbers)
        return self._spread(numbers)

    def _spread(self, numbers: Indices) -> Any:
        padded = concatenate([self.data, np.zeros(1, self.dtype)])
        return reshape(take(padded, numbers.ravel()), self.shape)

    def to_scipy(self, data: Any = None) -> Any:
        """A `scipy.sparse` array of that format with these numbers, by default its own.

        `data` is what a program has computed for `self.data`. Of a symmetric matrix what is stored
        is given. Raises `OptionError` where SciPy cannot be imported, and where `data` is a
        variable, which has no numbers yet.
        """
        module = scipy_sparse("to_scipy")
        values = self.data if data is None else data
        if isinstance(values, Variable):
            raise OptionError(
                f"{values!r} has no numbers yet", hint="pass what a run has computed for it"
            )
        array = np.asarray(values.numpy() if hasattr(values, "numpy") else values)
        if array.shape != (self.nnz,):
            raise ArgumentError(f"{self!r} has {self.nnz} values, not {array.shape}")
        if self.format == "coo":
            return module.coo_array((array, (self.rows, self.cols)), shape=self.shape)
        kind = module.csr_array if self.format == "csr" else module.csc_array
        return kind((array, self.indices.copy(), self.indptr.copy()), shape=self.shape)

    def __repr__(self) -> str:
        rows, columns = self.shape
        part = f", {self.triangle} triangle" if self.triangle else ""
        note = f"; {self.note}" if self.note else ""
        return f"<SparseMatrix {self.format} {rows} x {columns}, {self.nnz} values{part}{note}>"


def _flatten(matrix: SparseMatrix) -> tuple[dict[str, Any], Any]:
    rest = (matrix.format, matrix.pattern, matrix.coloring, matrix.triangle, matrix.note)
    return {"data": matrix.data}, rest


def _unflatten(rest: Any, parts: list[Any]) -> SparseMatrix:
    return SparseMatrix(parts[0], *rest)


registered[SparseMatrix] = _flatten, _unflatten


def with_data(matrix: SparseMatrix, data: Any) -> SparseMatrix:
    """The same places with other values."""
    return replace(matrix, data=data)
