"""Linear algebra, by the names and arguments of `paddle.linalg`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph import linalg as ours
from primgraph import operators as pg
from primgraph.compat.absent import absent
from primgraph.compat.paddle.core.methods import Methods, is_array
from primgraph.compat.paddle.functions import (
    cross,
    diagonal,
    dist,
    matmul,
    matrix_transpose,
    norm,
    reductions,
    vecdot,
)
from primgraph.compat.paddle.functions.rows import define_functions
from primgraph.eager.node import array_node
from primgraph.errors import ArgumentError
from primgraph.ir.types import complex_dtype as complex_dtype

if TYPE_CHECKING:
    inverse: Any

_ROWS = """
cholesky(x, upper=False): linalg.cholesky
Compute the triangular factors of positive definite matrices. \
| [[4.0, 2.0], [2.0, 5.0]] -> [[2.0, 0.0], [1.0, 2.0]]
cholesky_inverse(x, upper=False) = inverse_of_factor(x, upper)
Compute the inverse of a matrix from its Cholesky factor. \
| [[2.0, 0.0], [0.0, 1.0]] -> [[0.25, 0.0], [0.0, 1.0]]
cholesky_solve(x, y, upper=False) = solved_by_factor(x, y, upper)
Solve systems by the Cholesky factor `y` of their matrix. \
| [[4.0], [2.0]], [[2.0, 0.0], [0.0, 1.0]] -> [[1.0], [2.0]]
cond(x, p=None) = pg.cast(ours.cond(x, p), x.dtype)
Compute condition numbers. | [[2.0, 0.0], [0.0, 4.0]] -> 2.0
corrcoef(x, rowvar=True) = pg.astype(pg.corrcoef(x, rowvar=rowvar), x.dtype)
Compute the coefficients of correlation of rows. \
| [[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]] -> [[1.0, -1.0], [-1.0, 1.0]]
cov(x, rowvar=True, ddof=True, fweights=None, aweights=None) = pg.astype(pg.cov(x, \
rowvar=rowvar, bias=not ddof, fweights=fweights, aweights=aweights), x.dtype)
Compute the covariances of rows. | [[1.0, 3.0], [2.0, 0.0]] -> [[2.0, -2.0], [-2.0, 2.0]]
det(x): linalg.det
Compute determinants. | [[2.0, 0.0], [0.0, 4.0]] -> 8.0
eig(x) = tuple(pg.cast(part, complex_dtype(x.type.dtype)) for part in ours.eig(x))
Compute eigenvalues and eigenvectors. \
| [[2.0, 0.0], [0.0, 1.0]] => [[(2+0j), (1+0j)], [[(1+0j), 0j], [0j, (1+0j)]]]
eigvals(x) = pg.cast(ours.eigvals(x), complex_dtype(x.type.dtype))
Compute eigenvalues. | [[2.0, 0.0], [0.0, 1.0]] -> [(2+0j), (1+0j)]
eigh(x, UPLO="L") = tuple(ours.eigh(x, UPLO))
Compute the eigenvalues and eigenvectors of symmetric matrices. \
| [[1.0, 0.0], [0.0, 2.0]] => [[1.0, 2.0], [[1.0, 0.0], [0.0, 1.0]]]
eigvalsh(x, UPLO="L") = pg.assign(ours.eigh(x, UPLO)[0])
Compute the eigenvalues of symmetric matrices. | [[1.0, 0.0], [0.0, 2.0]] -> [1.0, 2.0]
householder_product(x, tau) = reflections(x, tau)[..., : x.shape[-1]]
Compute the orthogonal matrix of Householder vectors. \
| [[1.0, 0.0], [0.5, 1.0]], [0.5, 0.0] -> [[0.5, -0.25], [-0.25, 0.875]]
inv|inverse(x): linalg.inv
Compute inverses. | [[2.0, 0.0], [0.0, 4.0]] -> [[0.5, 0.0], [0.0, 0.25]]
lstsq(x, y, rcond=None, driver=None) = least_squares(x, y, rcond, driver)
Solve least squares problems; return solutions, residuals, ranks and singular values. \
| [[1.0], [1.0]], [[1.0], [3.0]] => [[[1.9999998807907104]], [], 1, []]
lu_solve(b, lu, pivots, trans="N") = \
ours.lu_solve((lu, rows_in_order(pivots, lu.shape[-2])), b, "NTC".index(trans))
Solve systems by the factors of `lu`. \
| [[2.0], [4.0]], [[2.0, 0.0], [0.0, 4.0]], [1, 2] -> [[1.0], [1.0]]
matrix_exp(x): linalg.expm
Compute the exponentials of matrices. | [[0.0, 1.0], [0.0, 0.0]] -> [[1.0, 1.0], [0.0, 1.0]]
matrix_norm(x, p="fro", axis=(-2, -1), keepdim=False) = reductions.matrix_norm(x, p, axis, keepdim)
Compute norms of matrices. | [[3.0, 0.0], [0.0, 4.0]] -> 5.0
matrix_power(x, n): linalg.matrix_power
Compute powers of matrices. | [[1.0, 1.0], [0.0, 1.0]], 3 -> [[1.0, 3.0], [0.0, 1.0]]
matrix_rank(x, tol=None, hermitian=False, atol=None, rtol=None) = \
ours.matrix_rank(x, tol if atol is None else atol, hermitian, rtol=rtol)
Count the singular values above a tolerance. | [[1.0, 1.0], [1.0, 1.0]] -> 1
multi_dot(x): linalg.multi_dot
Multiply several matrices, in the order that takes fewest products. \
| ([[1.0, 2.0]], [[3.0], [4.0]]) -> [[11.0]]
ormqr(x, tau, y, left=True, transpose=False) = reflected(x, tau, y, left, transpose)
Multiply with the orthogonal matrix of Householder vectors. \
| [[1.0, 0.0], [0.5, 1.0]], [0.5, 0.0], [[1.0], [1.0]] -> [[0.25], [0.625]]
pinv(x, rcond=1e-15, hermitian=False): linalg.pinv(x, rcond, hermitian)
Compute pseudo-inverses. | [[2.0, 0.0], [0.0, 4.0]] -> [[0.5, 0.0], [0.0, 0.25]]
solve(x, y, left=True) = solved(x, y, left)
Solve linear systems. | [[2.0, 0.0], [0.0, 4.0]], [2.0, 4.0] -> [1.0, 1.0]
svd(x, full_matrices=False) = tuple(ours.svd(x, full_matrices))
Compute singular value decompositions. | [[1.0]] => [[[1.0]], [1.0], [[1.0]]]
svdvals(x): linalg.svdvals
Compute singular values. | [[3.0, 0.0], [0.0, 4.0]] -> [4.0, 3.0]
triangular_solve(x, y, upper=True, transpose=False, unitriangular=False) = \
ours.solve_triangular(x, y, int(transpose), not upper, unitriangular)
Solve triangular systems. | [[2.0, 0.0], [0.0, 4.0]], [[2.0], [4.0]] -> [[1.0], [1.0]]
slogdet(x) = pg.stack(list(ours.slogdet(x)), 0)
Compute the signs of determinants, and the logarithms of their magnitudes. \
| [[1.0, 0.0], [0.0, 1.0]] -> [1.0, 0.0]
qr(x, mode="reduced") = ours.qr(x, mode) if mode == "r" else tuple(ours.qr(x, mode))
Compute the factors Q and R. | [[1.0]] => [[[1.0]], [[1.0]]]
vector_norm(x, p=2.0, axis=None, keepdim=False) = vector_norms(x, p, axis, keepdim)
Compute norms over axes, of all elements as one vector by default. | [[3.0, 4.0]] -> 5.0
"""


def inverse_of_factor(x: Any, upper: bool) -> Any:
    """Return the inverse of a matrix from its factor."""
    return solved_by_factor(pg.eye(x.shape[-1], dtype=x.dtype), x, upper)


def solved_by_factor(x: Any, factor: Any, upper: bool) -> Any:
    """Solve systems by a Cholesky factor."""
    return ours.cho_solve((factor, not upper), x)


def vector_norms(x: Any, p: float, axis: Any, keepdim: bool) -> Any:
    """Return norms over one or several axes."""
    axes = tuple(axis) if isinstance(axis, list | tuple) else axis
    if axes is None:
        return reductions.vector_or_matrix_norm(x, p, None, keepdim)
    return ours.vector_norm(x, axis=axes, ord=p, keepdims=keepdim)


def least_squares(x: Any, y: Any, rcond: Any, driver: str | None) -> Any:
    """Solve least squares problems; the default driver, "gelsy", gives solutions and ranks only."""
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise ArgumentError(f"lstsq has no driver {driver!r:.40}")
    solution, residuals, rank, values = ours.lstsq(x, y, rcond)
    none = pg.zeros((0,), x.type.dtype)
    if driver in (None, "gelsy"):
        return solution, none, pg.cast(rank, "int32"), none
    return solution, residuals, pg.cast(rank, "int32"), none if driver == "gels" else values


def solved(x: Any, y: Any, left: bool) -> Any:
    """Solve `x @ z = y`, or `z @ x = y`."""
    if left:
        return ours.solve(x, y)
    turned = ours.solve(pg.matrix_transpose(x), pg.matrix_transpose(y))
    return pg.matrix_transpose(turned)


def reflections(x: Any, tau: Any) -> Any:
    """Return the square orthogonal matrix of Householder vectors."""
    rows, count = x.shape[-2], tau.shape[-1]
    lower = pg.add(pg.tril(x, -1), np.eye(rows, x.shape[-1], dtype=x.type.dtype))
    found: Any = pg.eye(rows, dtype=x.dtype)
    for i in range(count):
        v = lower[..., :, i : i + 1]
        factor = pg.multiply(tau[..., i : i + 1, None], pg.matmul(v, pg.matrix_transpose(v)))
        found = pg.subtract(found, pg.matmul(found, factor))
    return found


def reflected(x: Any, tau: Any, y: Any, left: bool, transpose: bool) -> Any:
    """Multiply with an orthogonal matrix."""
    q = reflections(x, tau)
    q = pg.matrix_transpose(q) if transpose else q
    return pg.matmul(q, y) if left else pg.matmul(y, q)


__all__ = [
    *define_functions(globals(), _ROWS, "paddle.linalg"),
    "cross",
    "diagonal",
    "dist",
    "lu",
    "lu_unpack",
    "matmul",
    "matrix_transpose",
    "norm",
    "pca_lowrank",
    "svd_lowrank",
    "vecdot",
]


def lu(x: Any, pivot: bool = True, get_infos: bool = False, name: str | None = None) -> Any:
    """Compute the factors L and U in one matrix, and the rows exchanged, counted from one.

    >>> factors, pivots = paddle.linalg.lu(paddle.to_tensor([[2.0, 0.0], [0.0, 4.0]]))
    >>> pivots.tolist()
    [1, 2]
    """
    if not pivot:
        raise ArgumentError("lu takes pivot=True on the CPU")
    factors, order = ours.lu_factor(x)
    found = factors, exchanges(order, min(x.shape[-2:]))
    infos = pg.zeros(tuple(x.shape)[:-2], "int32")
    return (*found, infos) if get_infos else found


def lu_unpack(
    x: Any, y: Any, unpack_ludata: bool = True, unpack_pivots: bool = True, name: str | None = None
) -> Any:
    """Return the matrices P, L and U of the result of `lu`.

    >>> found = paddle.linalg.lu(paddle.to_tensor([[0.0, 1.0], [2.0, 0.0]]))
    >>> paddle.linalg.lu_unpack(*found)[0].tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    rows, columns = x.shape[-2:]
    size = min(rows, columns)
    lower = pg.add(pg.tril(x[..., :, :size], -1), np.eye(rows, size, dtype=x.type.dtype))
    upper = pg.triu(x[..., :size, :])
    permutations = rows_in_order(y, rows)
    matrix = np.swapaxes(np.eye(rows, dtype=x.type.dtype)[permutations], -1, -2)
    return pg.add(pg.multiply(x[..., :1, :1], 0), matrix), lower, upper


def rows_in_order(pivots: Any, count: int) -> Any:
    """Return the order of rows after their exchanges."""
    known = np.asarray(pivots.numpy() if is_array(pivots) else pivots) - 1
    found = np.broadcast_to(np.arange(count), (*known.shape[:-1], count)).copy()
    for place in np.ndindex(known.shape[:-1]):
        for i, j in enumerate(known[place]):
            found[place][[i, j]] = found[place][[j, i]]
    return found


def exchanges(order: Any, count: int) -> Any:
    """Return the exchanges of rows that give their order, counted from one."""
    wanted = order.numpy()
    found = np.zeros((*wanted.shape[:-1], count), np.int32)
    for place in np.ndindex(wanted.shape[:-1]):
        rows = list(range(wanted.shape[-1]))
        for i in range(count):
            j = rows.index(wanted[place][i])
            rows[i], rows[j] = rows[j], rows[i]
            found[place][i] = j + 1
    return type(order)(array_node(found))


def svd_lowrank(
    x: Any, q: int | None = None, niter: int = 2, M: Any = None, name: str | None = None
) -> Any:
    """Return the first `q` singular vectors and values, 6 by default: exact ones, not random.

    >>> u, s, v = paddle.linalg.svd_lowrank(paddle.to_tensor([[3.0, 0.0], [0.0, 4.0]]), 1)
    >>> s.tolist()
    [4.0]
    """
    count = min(6, *x.shape[-2:]) if q is None else q
    left, values, right = ours.svd(x if M is None else pg.subtract(x, M), False)
    turned = pg.matrix_transpose(right)
    return left[..., :count], values[..., :count], turned[..., :count]


def pca_lowrank(
    x: Any, q: int | None = None, center: bool = True, niter: int = 2, name: str | None = None
) -> Any:
    """Return the first `q` principal components: `svd_lowrank` of centered columns.

    >>> u, s, v = paddle.linalg.pca_lowrank(paddle.to_tensor([[1.0, 0.0], [3.0, 0.0]]), 1)
    >>> v.shape
    paddle.Size([2, 1])
    """
    return svd_lowrank(pg.subtract(x, pg.mean(x, -2, True)) if center else x, q)


# Functions that are methods of tensors, too.
for _name in (
    "cholesky", "cholesky_inverse", "cholesky_solve", "cond", "corrcoef", "cov", "eig", "eigvals",
    "eigvalsh", "householder_product", "inverse", "lstsq", "lu", "lu_unpack", "matrix_power",
    "multi_dot", "ormqr", "pca_lowrank", "pinv", "qr", "slogdet", "solve", "svd_lowrank",
):  # fmt: skip
    setattr(Methods, _name, globals()[_name])


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
