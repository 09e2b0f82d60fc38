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
    """Compute the triangular factors of positive definite matrices.

    >>> xp.linalg.cholesky(xp.asarray([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    return systems.cholesky(x, upper=upper)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Compute the cross products of vectors of three elements along an axis.

    >>> xp.linalg.cross(xp.asarray([1.0, 0.0, 0.0]), xp.asarray([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    return ops.cross(x1, x2, axis=axis)


def det(x: Any, /) -> Any:
    """Compute the determinants.

    >>> xp.linalg.det(xp.asarray([[2.0, 0.0], [0.0, 4.0]]))
    tensor(8.)
    """
    return systems.det(x)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """Return the diagonals of matrices.

    >>> xp.linalg.diagonal(xp.asarray([[1.0, 2.0], [3.0, 4.0]]))
    tensor([1., 4.])
    """
    return ops.diagonal(x, offset, -2, -1)


def eigh(x: Any, /) -> Any:
    """Compute the eigenvalues and eigenvectors of symmetric matrices.

    >>> values, vectors = xp.linalg.eigh(xp.asarray([[2.0, 0.0], [0.0, 1.0]]))
    >>> values
    tensor([1., 2.])
    """
    return spectra.eigh(x)


def eigvalsh(x: Any, /) -> Any:
    """Compute the eigenvalues of symmetric matrices.

    >>> xp.linalg.eigvalsh(xp.asarray([[2.0, 0.0], [0.0, 1.0]]))
    tensor([1., 2.])
    """
    return spectra.eigvalsh(x)


def inv(x: Any, /) -> Any:
    """Compute the inverses of square matrices.

    >>> xp.linalg.inv(xp.asarray([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5 , 0.  ],
            [0.  , 0.25]])
    """
    return systems.inv(x)


def matmul(x1: Any, x2: Any, /) -> Any:
    """Multiply matrices.

    >>> xp.matmul(xp.asarray([[1.0, 2.0], [3.0, 4.0]]), xp.asarray([1.0, 1.0]))
    tensor([3., 7.])
    """
    return ops.matmul(x1, x2)


def matrix_norm(x: Any, /, *, keepdims: Any = False, ord: Any = "fro") -> Any:
    """Compute the norms of matrices.

    >>> xp.linalg.matrix_norm(xp.asarray([[3.0, 0.0], [0.0, 4.0]]))
    tensor(5.)
    """
    return norms.matrix_norm(x, keepdims=keepdims, ord=ord)


def matrix_power(x: Any, n: int, /) -> Any:
    """Compute the powers of square matrices.

    >>> xp.linalg.matrix_power(xp.asarray([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    return matrices.matrix_power(x, n)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Any:
    """Count the singular values of each matrix above `rtol` times the largest one.

    >>> xp.linalg.matrix_rank(xp.ones((2, 2)))
    tensor(1, dtype=int64)
    """
    if not isinstance(rtol, Handle):
        return spectra.matrix_rank(x, rtol=rtol)
    values = spectra.svdvals(x)
    if values.shape[-1] == 0:
        return ops.zeros(values.shape[:-1], "int64")
    limits = ops.expand_dims(rtol, -1) * ops.max(values, -1, True)
    return ops.count_nonzero(values > limits, -1)


def matrix_transpose(x: Any, /) -> Any:
    """Transpose each matrix in a stack.

    >>> xp.matrix_transpose(xp.asarray([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[1., 3.],
            [2., 4.]])
    """
    return ops.matrix_transpose(x)


def outer(x1: Any, x2: Any, /) -> Any:
    """Compute the outer product of two vectors.

    >>> xp.linalg.outer(xp.asarray([1.0, 2.0]), xp.asarray([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    return ops.outer(x1, x2)


def pinv(x: Any, /, *, rtol: Any = None) -> Any:
    """Compute the pseudo-inverses; singular values up to `rtol` times the largest count as zero.

    >>> xp.linalg.pinv(xp.asarray([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5, 0. ],
            [0. , 0. ]])
    """
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
    """Compute the factors Q and R.

    >>> q, r = xp.linalg.qr(xp.ones((4, 2)))
    >>> q.shape, r.shape
    ((4, 2), (2, 2))
    """
    return spectra.qr(x, mode)


def slogdet(x: Any, /) -> Any:
    """Compute the signs of determinants, and the logarithms of their magnitudes.

    >>> xp.linalg.slogdet(xp.asarray([[0.0, 1.0], [1.0, 0.0]])).sign
    tensor(-1.)
    """
    return systems.slogdet(x)


def solve(x1: Any, x2: Any, /) -> Any:
    """Solve linear systems `x1 @ x = x2`.

    >>> xp.linalg.solve(xp.asarray([[2.0, 0.0], [0.0, 4.0]]), xp.asarray([2.0, 2.0]))
    tensor([1. , 0.5])
    """
    return systems.solve(x1, x2)


def svd(x: Any, /, *, full_matrices: Any = True) -> Any:
    """Compute the singular value decompositions.

    >>> u, s, vh = xp.linalg.svd(xp.asarray([[3.0, 0.0], [0.0, 4.0]]))
    >>> s
    tensor([4., 3.])
    """
    return spectra.svd(x, full_matrices)


def svdvals(x: Any, /) -> Any:
    """Compute the singular values.

    >>> xp.linalg.svdvals(xp.asarray([[3.0, 0.0], [0.0, 4.0]]))
    tensor([4., 3.])
    """
    return spectra.svdvals(x)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """Compute sums of products over pairs of axes.

    >>> xp.tensordot(xp.ones((2, 3)), xp.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    return ops.tensordot(x1, x2, axes)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Compute the sums along diagonals of matrices.

    >>> xp.linalg.trace(xp.asarray([[1.0, 2.0], [3.0, 4.0]]))
    tensor(5.)
    """
    return matrix_building.trace(x, offset, -2, -1, dtype=dtype)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Compute the products of vectors along an axis.

    >>> xp.vecdot(xp.asarray([1.0, 2.0]), xp.asarray([3.0, 4.0]))
    tensor(11.)
    """
    return ops.vecdot(x1, x2, axis=axis)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Any:
    """Compute the norms of vectors along axes.

    >>> xp.linalg.vector_norm(xp.asarray([3.0, 4.0]))
    tensor(5.)
    """
    return norms.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)


def __dir__() -> list[str]:
    return sorted(__all__)
