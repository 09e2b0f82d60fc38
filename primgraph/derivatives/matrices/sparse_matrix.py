"""Sparse derivative matrix: computed values at known positions."""

from __future__ import annotations

import numbers
import sys
from contextlib import nullcontext
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, final

import numpy as np

from primgraph.base.array_functions import MEMBERS
from primgraph.base.providers import provider
from primgraph.errors import ArgumentError, OptionError, ShapeError, unknown_attribute
from primgraph.ir.frontend.containers import registered
from primgraph.ir.primitive import recording
from primgraph.operators.handle import Handle
from primgraph.operators.index.indexing import take
from primgraph.operators.linear_algebra.sparse_products import multiply_entries
from primgraph.operators.shape.joining import concatenate
from primgraph.operators.shape.shaping import reshape
from primgraph.operators.variable import Variable
from primgraph.sparsity.coloring import Coloring
from primgraph.sparsity.pattern import Indices, Pattern, is_scipy_sparse, scipy_sparse

FORMATS = ("csr", "csc", "coo")
TRIANGLES = ("lower", "upper")
_OTHER = {"lower": "upper", "upper": "lower"}


@final
@dataclass(frozen=True, slots=True, eq=False)
class SparseMatrix:
    """A sparse matrix of derivatives: `data`, and the places of its elements.

    `data` is an array, a tensor or a variable of shape `(nnz,)`, row by row in the formats "csr"
    and "coo", column by column in "csc". `indptr` and `indices` are as in SciPy; `rows` and `cols`
    have the place of each element. They are int64 arrays that never change. `pattern` is the
    pattern of the stored elements; a symmetric matrix may store one `triangle`, "lower" or "upper",
    with the diagonal. `coloring` describes the products that computed it, and `note` says why it
    may have more elements than necessary.

    Use it as a matrix: `m @ x` and `x @ m` with arrays, tensors and variables, with derivatives;
    `m.T`, `m.toarray()`, `np.asarray(m)`, and products and quotients with numbers, as in `2 * m`. A
    symmetric matrix that stores one triangle stands for the whole matrix.

        import numpy as np
        import primgraph as pg

        m = pg.sparse_hessian(lambda x: pg.sum(x[1:] * x[:-1]))(np.ones(3))
        print(m @ np.array([1.0, 2.0, 3.0]))  # [2. 4. 2.]

    Where SciPy is installed, a matrix of numbers is a sparse array of SciPy: its functions, such as
    `scipy.sparse.linalg.spsolve(m, b)`, take it, `scipy.sparse.issparse(m)` is true, and it has the
    methods of `scipy.sparse.csr_array`, such as `m.diagonal()`. Sums, indexing and products with
    other sparse arrays return arrays of SciPy. A matrix that stores one triangle is not one, since
    SciPy would take the other triangle for zeros: `m.to_scipy()` returns the triangle.

    It counts as a container of one array: traced, compiled and differentiated functions may take
    and return it.

    >>> matrix = pg.sparse_jacobian(lambda x: x[1:] * x[:-1])(np.ones(3))
    >>> matrix.toarray()
    array([[1., 1., 0.],
           [0., 1., 1.]])
    """

    # NumPy arrays defer operators to this class.
    __array_ufunc__ = None

    data: Any
    format: str
    pattern: Pattern
    coloring: Coloring
    triangle: str | None = None
    note: str = ""

    # SciPy checks for an instance of its classes; this avoids importing SciPy.
    @property  # type: ignore[misc]
    def __class__(self) -> type[Any]:
        module = sys.modules.get("scipy.sparse")
        if module is None or not self._is_scipys:
            return type(self)
        kind: type[Any] = getattr(module, f"{self.format}_array", type(self))
        return kind

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return an attribute of the SciPy array with these values."""
            private = name.startswith("_")
            if name.startswith("__") or not self._is_scipys or name in _IN_PLACE:
                raise unknown_attribute(self, name, {**MEMBERS, **_HINTS})
            if private and "scipy.sparse" not in sys.modules:
                raise unknown_attribute(self, name, {})
            try:
                found = self.to_scipy()
            except OptionError as error:
                raise unknown_attribute(self, name, {f"SparseMatrix.{name}": error.hint}) from None
            if not hasattr(found, name):
                known = [n for n in dir(found) if not n.startswith("_")]
                raise unknown_attribute(self, name, MEMBERS, known)
            return getattr(found, name)

    @property
    def _is_scipys(self) -> bool:
        """Return whether `data` has all nonzero elements, as SciPy assumes."""
        return self.triangle is None and isinstance(self.data, np.ndarray)

    def __reduce__(self) -> tuple[Any, ...]:
        return SparseMatrix, tuple([getattr(self, f.name) for f in fields(SparseMatrix)])

    def _with(self, **changes: Any) -> SparseMatrix:
        """Return a copy with other values of some fields."""
        known = {f.name: getattr(self, f.name) for f in fields(SparseMatrix)}
        return SparseMatrix(**(known | changes))

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix."""
        return self.pattern.shape

    @property
    def nnz(self) -> int:
        """Number of stored elements."""
        return self.pattern.nnz

    @property
    def dtype(self) -> Any:
        """Dtype of the elements."""
        return self.data.dtype

    @property
    def indptr(self) -> Indices:
        """Start of each row in `data`; in the format "csc", of each column."""
        self._require_compressed("indptr")
        return self._compressed_pattern.indptr

    @property
    def indices(self) -> Indices:
        """Column of each element, or in the format "csc" its row."""
        self._require_compressed("indices")
        return self._compressed_pattern.indices

    @property
    def rows(self) -> Indices:
        """Row of each element."""
        return self._compressed_pattern.indices if self.format == "csc" else self.pattern.rows

    @property
    def cols(self) -> Indices:
        """Column of each element."""
        return self._compressed_pattern.rows if self.format == "csc" else self.pattern.indices

    @property
    def _compressed_pattern(self) -> Pattern:
        return self.pattern.T if self.format == "csc" else self.pattern

    def _require_compressed(self, name: str) -> None:
        if self.format == "coo":
            raise OptionError(
                f"a matrix in the format coo has no {name}", hint="it has rows and cols"
            )

    @property
    def ndim(self) -> int:
        """Number of axes, 2."""
        return 2

    @property
    def T(self) -> SparseMatrix:
        """Transposed matrix, in the format that keeps the order of `data`, or in "coo"."""
        pattern, triangle = self.pattern.T, self.triangle and _OTHER[self.triangle]
        if self.format != "coo":
            format = "csr" if self.format == "csc" else "csc"
            return self._with(format=format, pattern=pattern, triangle=triangle)
        order = np.argsort(self.cols, kind="stable")
        data = _take_first_axis(self.data, order)
        return self._with(data=data, pattern=pattern, triangle=triangle)

    def __matmul__(self, other: Any) -> Any:
        if _is_sparse(other):
            return _in_full(self) @ _in_full(other)
        return _product(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        if _is_sparse(other):
            return _in_full(other) @ _in_full(self)
        if len(np.shape(other)) < 2:
            return _product(self.T, other)
        return _transpose(_product(self.T, _transpose(other)))

    def __mul__(self, number: Any) -> SparseMatrix:
        if _is_sparse(number):
            found: SparseMatrix = _in_full(self) * _in_full(number)
            return found
        return self._with(data=self.data * number) if _is_number(number) else NotImplemented

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Any:
        return _in_full(self) + _in_full(other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return _in_full(self) - _in_full(other)

    def __rsub__(self, other: Any) -> Any:
        return _in_full(other) - _in_full(self)

    def __getitem__(self, index: Any) -> Any:
        return _in_full(self)[index]

    def __truediv__(self, number: Any) -> SparseMatrix:
        return self._with(data=self.data / number) if _is_number(number) else NotImplemented

    def __neg__(self) -> SparseMatrix:
        return self._with(data=-self.data)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if isinstance(self.data, Variable):
            raise OptionError(
                f"{self!r} has no numbers yet", hint="matrix.to_dense() is a variable"
            )
        if copy is False:
            raise ValueError("the dense elements of a SparseMatrix are always a copy")
        found = self.to_dense()
        return np.asarray(found.detach() if hasattr(found, "numpy") else found, dtype)

    def toarray(self) -> Any:
        """Return the dense matrix, under SciPy's name: see `to_dense`."""
        return self.to_dense()

    def to_dense(self) -> Any:
        """Return the dense matrix: an array, a variable or a tensor of shape `(m, n)`.

        Both triangles are filled, even if one is stored.
        """
        places = np.full(self.shape, self.nnz, np.int64)
        places[self.rows, self.cols] = np.arange(self.nnz)
        if self.triangle is not None:
            places[self.cols, self.rows] = np.arange(self.nnz)
        if not isinstance(self.data, Handle):
            return np.append(self.data, np.zeros(1, self.dtype))[places]
        with recording(self.data.recorder) if isinstance(self.data, Variable) else nullcontext():
            padded = concatenate([self.data, np.zeros(1, self.dtype)])
            return reshape(take(padded, places.ravel()), self.shape)

    def to_scipy(self, data: Any = None) -> Any:
        """Return a `scipy.sparse` array of that format with these values, by default its own.

        `data` is the value that a program has computed for `self.data`. Of a symmetric matrix only
        the stored part is returned. Raises `OptionError` if SciPy cannot be imported, and if `data`
        is a variable, which has no numbers yet.
        """
        module = scipy_sparse("to_scipy")
        values = self.data if data is None else data
        if isinstance(values, Variable):
            raise OptionError(
                f"{values!r} has no numbers yet", hint="pass what a run has computed for it"
            )
        array = np.asarray(values.detach() if hasattr(values, "numpy") else values)
        if array.shape != (self.nnz,):
            raise ArgumentError(f"{self!r} has {self.nnz} values, not {array.shape}")
        if self.format == "coo":
            return module.coo_array((array, (self.rows, self.cols)), shape=self.shape)
        kind = module.csr_array if self.format == "csr" else module.csc_array
        return kind((array, self.indices.copy(), self.indptr.copy()), shape=self.shape)

    def _repr_svg_(self) -> str:
        """Draw the positions of the elements, for notebooks; see `pg.spy`."""
        picture: str = provider("pictures of patterns").spy(self)._repr_svg_()
        return picture

    def __repr__(self) -> str:
        rows, columns = self.shape
        part = f", {self.triangle} triangle" if self.triangle else ""
        note = f"; {self.note}" if self.note else ""
        return f"<SparseMatrix {self.format} {rows} x {columns}, {self.nnz} values{part}{note}>"


def _product(matrix: SparseMatrix, x: Any) -> Any:
    """Return the product of a matrix with the vector or matrix `x`."""
    shape = x.shape if isinstance(x, Handle) else np.shape(x)
    if len(shape) not in (1, 2) or shape[0] != matrix.shape[1]:
        raise ShapeError(
            f"a matrix of shape {matrix.shape} has no product with an array of shape {tuple(shape)}"
        )
    rows, cols, data = entries_of(matrix)
    if isinstance(data, Handle) or isinstance(x, Handle):
        return multiply_entries(rows, cols, data, x, matrix.shape[0])
    terms = (data[:, None] if len(shape) == 2 else data) * np.asarray(x)[cols]
    found = np.zeros((matrix.shape[0], *shape[1:]), terms.dtype)
    np.add.at(found, rows, terms)
    return found


def entries_of(matrix: SparseMatrix) -> tuple[Indices, Indices, Any]:
    """Return rows, columns and values of all elements, with both triangles."""
    rows, cols, data = matrix.rows, matrix.cols, matrix.data
    if matrix.triangle is None:
        return rows, cols, data
    off = np.flatnonzero(rows != cols)
    mirrored = _take_first_axis(data, off)
    if isinstance(data, Handle):
        data = concatenate([data, mirrored])
    else:
        data = np.concatenate([data, mirrored])
    return np.append(rows, cols[off]), np.append(cols, rows[off]), data


def _is_number(value: Any) -> bool:
    if isinstance(value, Handle):
        return value.shape == ()
    return isinstance(value, numbers.Number) or (isinstance(value, np.ndarray) and value.ndim == 0)


def _is_sparse(value: Any) -> bool:
    """Return whether this is a sparse matrix, of SciPy or of primgraph."""
    return isinstance(value, SparseMatrix) or is_scipy_sparse(value)


def _in_full(matrix: Any) -> Any:
    """Return a full matrix with both triangles: SciPy's sparse array, or dense handles.

    Other operands are returned as they are.
    """
    if not isinstance(matrix, SparseMatrix):
        return matrix
    if isinstance(matrix.data, Handle):
        return matrix.to_dense()
    if matrix.triangle is None:
        return matrix.to_scipy()
    rows, cols, data = entries_of(matrix)
    found = scipy_sparse("a sum or an index").coo_array((data, (rows, cols)), shape=matrix.shape)
    return found.asformat("csc" if matrix.format == "csc" else "csr")


# In-place methods of SciPy, which would change only the temporary SciPy array.
_IN_PLACE = ("eliminate_zeros", "resize", "setdiag")
_HINTS = {
    f"SparseMatrix.{name}": "m.to_scipy() is an array of SciPy that can be changed"
    for name in _IN_PLACE
}


def _take_first_axis(x: Any, places: Indices) -> Any:
    """Return elements along the first axis."""
    return take(x, places, axis=0) if isinstance(x, Handle) else np.asarray(x)[places]


def _transpose(x: Any) -> Any:
    return x.T if isinstance(x, Handle) else np.asarray(x).T


def _flatten(matrix: SparseMatrix) -> tuple[dict[str, Any], Any]:
    rest = (matrix.format, matrix.pattern, matrix.coloring, matrix.triangle, matrix.note)
    return {"data": matrix.data}, rest


def _unflatten(rest: Any, parts: list[Any]) -> SparseMatrix:
    return SparseMatrix(parts[0], *rest)


registered[SparseMatrix] = _flatten, _unflatten


def with_data(matrix: SparseMatrix, data: Any) -> SparseMatrix:
    """Return a matrix with the same positions and other values."""
    return matrix._with(data=data)
