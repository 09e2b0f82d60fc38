"""Linear algebra, by the names of the standard: the extension `linalg`, and what is in its core."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph import operators as ops
from primgraph.eager.tensor import Tensor
from primgraph.operators.handle import Handle
from primgraph.operators.linear_algebra import matrices, spectra, systems
from primgraph.operators.reduce import norms
from primgraph.operators.shape import matrix_building

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def cholesky(x: Any, /, *, upper: Any = False) -> Any:
    """The triangular factors of positive definite matrices."""
    return systems.cholesky(x, upper=upper)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The cross products of vectors of three elements along an axis."""
    return ops.cross(x1, x2, axis=axis)


def det(x: Any, /) -> Any:
    """The determinants."""
    return systems.det(x)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonals of matrices."""
    return ops.diagonal(x, offset, -2, -1)


def eigh(x: Any, /) -> Any:
    """The eigenvalues and eigenvectors of symmetric matrices."""
    return spectra.eigh(x)


def eigvalsh(x: Any, /) -> Any:
    """The eigenvalues of symmetric matrices."""
    return spectra.eigvalsh(x)


def inv(x: Any, /) -> Any:
    """The inverses."""
    return systems.inv(x)


def matmul(x1: Any, x2: Any, /) -> Any:
    """The products of matrices."""
    return ops.matmul(x1, x2)


def matrix_norm(x: Any, /, *, keepdims: Any = False, ord: Any = "fro") -> Any:
    """The norms of matrices."""
    return norms.matrix_norm(x, keepdims=keepdims, ord=ord)


def matrix_power(x: Any, n: int, /) -> Any:
    """The powers of square matrices."""
    return matrices.matrix_power(x, n)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Any:
    """The ranks of matrices: how many singular values are above `rtol` times the largest one."""
    if not isinstance(rtol, Handle):
        return spectra.matrix_rank(x, rtol=rtol)
    values = spectra.svdvals(x)
    if values.shape[-1] == 0:
        return ops.zeros(values.shape[:-1], "int64")
    limits = ops.expand_dims(rtol, -1) * ops.max(values, -1, True)
    return ops.count_nonzero(values > limits, -1)


def matrix_transpose(x: Any, /) -> Any:
    """The transposes of matrices."""
    return ops.matrix_transpose(x)


def outer(x1: Any, x2: Any, /) -> Any:
    """The outer product of two vectors."""
    return ops.outer(x1, x2)


def pinv(x: Any, /, *, rtol: Any = None) -> Any:
    """The pseudo-inverses; singular values up to `rtol` times the largest one count as zero."""
    if rtol is None:
        rtol = max(x.shape[-2:]) * float(np.finfo(x.dtype).eps)
    elif isinstance(rtol, Tensor) and rtol.ndim == 0:
        rtol = rtol.item()
    if not isinstance(rtol, Handle):
        return spectra.pinv(x, rtol=rtol)
    left, values, right = spectra.svd(x, full_matrices=False)
    limits = ops.expand_dims(rtol, -1) * ops.max(values, -1, True)
    inverted = ops.where(values > limits, 1.0 / ops.where(values > limits, values, 1.0), 0.0)
    product = ops.matmul(ops.matrix_transpose(right) * ops.expand_dims(inverted, -2),
                         ops.matrix_transpose(left))  # fmt: skip
    return ops.astype(product, x.dtype)


def qr(x: Any, /, *, mode: Any = "reduced") -> Any:
    """The factors Q and R."""
    return spectra.qr(x, mode)


def slogdet(x: Any, /) -> Any:
    """The signs of determinants, and the logarithms of their magnitudes."""
    return systems.slogdet(x)


def solve(x1: Any, x2: Any, /) -> Any:
    """The solutions of linear systems."""
    return systems.solve(x1, x2)


def svd(x: Any, /, *, full_matrices: Any = True) -> Any:
    """The singular value decompositions."""
    return spectra.svd(x, full_matrices)


def svdvals(x: Any, /) -> Any:
    """The singular values."""
    return spectra.svdvals(x)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """Sums of products over pairs of axes."""
    return ops.tensordot(x1, x2, axes)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sums along diagonals of matrices."""
    return matrix_building.trace(x, offset, -2, -1, dtype=dtype)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The products of vectors along an axis."""
    return ops.vecdot(x1, x2, axis=axis)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Any:
    """The norms of vectors along axes."""
    return norms.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)


def __dir__() -> list[str]:
    return sorted(__all__)
