"""Linear algebra, by the names of the standard: the extension `linalg`, and what is in its core."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph import operators as ops
from primgraph.eager.tensor import Tensor
from primgraph.operators.handle import Handle
from primgraph.operators.linear_algebra import spectra
from primgraph.operators.names import define

_ROWS = """
cholesky(x, /, *, upper=False): linalg.cholesky
Compute the triangular factors of positive definite matrices.
>>> xp.linalg.cholesky(xp.asarray([[4.0, 2.0], [2.0, 5.0]]))
tensor([[2., 0.],
        [1., 2.]])

cross(x1, x2, /, *, axis: int = -1): cross
Compute the cross products of vectors of three elements along an axis.
>>> xp.linalg.cross(xp.asarray([1.0, 0.0, 0.0]), xp.asarray([0.0, 1.0, 0.0]))
tensor([0., 0., 1.])

det(x, /): linalg.det
Compute the determinants.
>>> xp.linalg.det(xp.asarray([[2.0, 0.0], [0.0, 4.0]]))
tensor(8.)

diagonal(x, /, *, offset: int = 0): linalg.diagonal
Return the diagonals of matrices.
>>> xp.linalg.diagonal(xp.asarray([[1.0, 2.0], [3.0, 4.0]]))
tensor([1., 4.])

eigh(x, /): linalg.eigh
Compute the eigenvalues and eigenvectors of symmetric matrices.
>>> values, vectors = xp.linalg.eigh(xp.asarray([[2.0, 0.0], [0.0, 1.0]]))
>>> values
tensor([1., 2.])

eigvalsh(x, /): linalg.eigvalsh
Compute the eigenvalues of symmetric matrices.
>>> xp.linalg.eigvalsh(xp.asarray([[2.0, 0.0], [0.0, 1.0]]))
tensor([1., 2.])

inv(x, /): linalg.inv
Compute the inverses of square matrices.
>>> xp.linalg.inv(xp.asarray([[2.0, 0.0], [0.0, 4.0]]))
tensor([[0.5 , 0.  ],
        [0.  , 0.25]])

matmul(x1, x2, /): matmul
Multiply matrices.
>>> xp.matmul(xp.asarray([[1.0, 2.0], [3.0, 4.0]]), xp.asarray([1.0, 1.0]))
tensor([3., 7.])

matrix_norm(x, /, *, keepdims=False, ord='fro'): linalg.matrix_norm
Compute the norms of matrices.
>>> xp.linalg.matrix_norm(xp.asarray([[3.0, 0.0], [0.0, 4.0]]))
tensor(5.)

matrix_power(x, n: int, /): linalg.matrix_power
Compute the powers of square matrices.
>>> xp.linalg.matrix_power(xp.asarray([[1.0, 1.0], [0.0, 1.0]]), 3)
tensor([[1., 3.],
        [0., 1.]])

matrix_transpose(x, /): matrix_transpose
Transpose each matrix in a stack.
>>> xp.matrix_transpose(xp.asarray([[1.0, 2.0], [3.0, 4.0]]))
tensor([[1., 3.],
        [2., 4.]])

outer(x1, x2, /): outer
Compute the outer product of two vectors.
>>> xp.linalg.outer(xp.asarray([1.0, 2.0]), xp.asarray([3.0, 4.0]))
tensor([[3., 4.],
        [6., 8.]])

qr(x, /, *, mode='reduced'): linalg.qr
Compute the factors Q and R.
>>> q, r = xp.linalg.qr(xp.ones((4, 2)))
>>> q.shape, r.shape
((4, 2), (2, 2))

slogdet(x, /): linalg.slogdet
Compute the signs of determinants, and the logarithms of their magnitudes.
>>> xp.linalg.slogdet(xp.asarray([[0.0, 1.0], [1.0, 0.0]])).sign
tensor(-1.)

solve(x1, x2, /): linalg.solve
Solve linear systems `x1 @ x = x2`.
>>> xp.linalg.solve(xp.asarray([[2.0, 0.0], [0.0, 4.0]]), xp.asarray([2.0, 2.0]))
tensor([1. , 0.5])

svd(x, /, *, full_matrices=True): linalg.svd
Compute the singular value decompositions.
>>> u, s, vh = xp.linalg.svd(xp.asarray([[3.0, 0.0], [0.0, 4.0]]))
>>> s
tensor([4., 3.])

svdvals(x, /): linalg.svdvals
Compute the singular values.
>>> xp.linalg.svdvals(xp.asarray([[3.0, 0.0], [0.0, 4.0]]))
tensor([4., 3.])

tensordot(x1, x2, /, *, axes=2): tensordot
Compute sums of products over pairs of axes.
>>> xp.tensordot(xp.ones((2, 3)), xp.ones((3, 4)), axes=1).shape
(2, 4)

vecdot(x1, x2, /, *, axis: int = -1): vecdot
Compute the products of vectors along an axis.
>>> xp.vecdot(xp.asarray([1.0, 2.0]), xp.asarray([3.0, 4.0]))
tensor(11.)

vector_norm(x, /, *, axis=None, keepdims=False, ord=2): linalg.vector_norm
Compute the norms of vectors along axes.
>>> xp.linalg.vector_norm(xp.asarray([3.0, 4.0]))
tensor(5.)

trace(x, /, *, offset: int = 0, dtype=None): handles.trace(axis1=-2, axis2=-1)
Compute the sums along diagonals of matrices.
>>> xp.linalg.trace(xp.asarray([[1.0, 2.0], [3.0, 4.0]]))
tensor(5.)
"""

__all__ = [*define("array_api.linalg", globals(), _ROWS), "matrix_rank", "pinv"]


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


def __dir__() -> list[str]:
    return sorted(__all__)
