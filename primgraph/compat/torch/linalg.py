"""Linear algebra by the names that it has in `torch.linalg`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph import linalg
from primgraph import operators as pg
from primgraph.compat.absent import absent
from primgraph.compat.torch.functions.reductions import Dims
from primgraph.compat.torch.functions.results import (
    array_like,
    computed,
    define_functions,
    takes_out,
)
from primgraph.compat.torch.return_types import named_result
from primgraph.errors import ArgumentError, LinAlgError, ShapeError
from primgraph.ir.types import complex_dtype

_ROWS = """
cross(input, other, *, dim=-1): linalg.cross(input, other, axis=dim)
Compute cross products along `dim`.
>>> torch.linalg.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]))
tensor([0., 0., 1.])

det(A): linalg.det(A)
Compute determinants of matrices.
>>> torch.linalg.det(torch.tensor([[2.0, 0.0], [0.0, 3.0]]))
tensor(6.)

diagonal(A, *, offset=0, dim1=-2, dim2=-1): diagonal(A, offset, dim1, dim2)
Return the diagonals of matrices.
>>> torch.linalg.diagonal(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
tensor([1., 4.])

eigvalsh(A, UPLO='L'): linalg.eigvalsh(A, UPLO)
Compute eigenvalues of symmetric or Hermitian matrices, in ascending order.
>>> torch.linalg.eigvalsh(torch.tensor([[2.0, 0.0], [0.0, 3.0]]))
tensor([2., 3.])

matmul(input, other): matmul(input, other)
Compute products of matrices.
>>> torch.linalg.matmul(torch.ones(2, 3), torch.ones(3))
tensor([3., 3.])

matrix_exp(A): linalg.expm(A)
Compute exponentials of matrices.
>>> torch.linalg.matrix_exp(torch.zeros(2, 2))
tensor([[1., 0.],
        [0., 1.]])

matrix_power(A, n): linalg.matrix_power(A, n)
Compute integer powers of matrices.
>>> torch.linalg.matrix_power(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
tensor([[1., 3.],
        [0., 1.]])

svdvals(A, *, driver=None): linalg.svdvals(A)
Compute singular values, in descending order.
>>> torch.linalg.svdvals(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
tensor([4., 3.])

tensorinv(A, ind=2): linalg.tensorinv(A, ind)
Compute the inverse of a tensor as a linear map between tensors.
>>> torch.linalg.tensorinv(torch.eye(4).reshape(2, 2, 2, 2)).shape
torch.Size([2, 2, 2, 2])

tensorsolve(A, B, dims=None): linalg.tensorsolve(A, B, axes=dims)
Solve linear equations of tensors.
>>> torch.linalg.tensorsolve(torch.eye(4).reshape(2, 2, 4), torch.ones(2, 2))
tensor([1., 1., 1., 1.])

vecdot(x, y, *, dim=-1): linalg.vecdot(x, y, dim)
Compute sums of products along `dim`, with conjugates of `x`.
>>> torch.linalg.vecdot(torch.ones(2, 3), torch.ones(2, 3))
tensor([3., 3.])
"""

__all__ = [
    *define_functions(globals(), _ROWS, "torch.linalg"),
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "eig",
    "eigh",
    "eigvals",
    "inv",
    "inv_ex",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_solve",
    "matrix_norm",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "vander",
    "vector_norm",
]


@takes_out
def cholesky(A: Any, *, upper: bool = False) -> Any:
    """Compute Cholesky factors of symmetric positive definite matrices.

    Raises `LinAlgError` for others.

    >>> torch.linalg.cholesky(torch.tensor([[4.0, 0.0], [0.0, 9.0]]))
    tensor([[2., 0.],
            [0., 3.]])
    """
    return computed(linalg.cholesky(_require_square("cholesky", A), upper=upper))


def cholesky_ex(A: Any, *, upper: bool = False, check_errors: bool = False) -> Any:
    """Compute Cholesky factors, with zeros for the error codes.

    >>> torch.linalg.cholesky_ex(torch.eye(2)).info
    tensor(0, dtype=torch.int32)
    """
    return named_result("linalg_cholesky_ex", cholesky(A, upper=upper), _no_error(A))


def _no_error(A: Any) -> Any:
    return pg.astype(pg.zeros_like(A[..., 0, 0]), np.int32)


def _require_square(name: str, A: Any) -> Any:
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ShapeError(
            f"linalg.{name}: A must be batches of square matrices, but they are of shape "
            f"{tuple(A.shape)}"
        )
    return A


@takes_out
def inv(A: Any) -> Any:
    """Compute inverses of matrices. Raises `LinAlgError` for singular ones.

    >>> torch.linalg.inv(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return computed(linalg.inv(_require_square("inv", A)))


def inv_ex(A: Any, *, check_errors: bool = False) -> Any:
    """Compute inverses, with zeros for the error codes.

    >>> torch.linalg.inv_ex(torch.eye(2)).info
    tensor(0, dtype=torch.int32)
    """
    return named_result("linalg_inv_ex", inv(A), _no_error(A))


@takes_out
def solve(A: Any, B: Any, *, left: bool = True) -> Any:
    """Solve `A @ X = B`, or `X @ A = B` without `left`. `B` is a vector or a matrix.

    >>> torch.linalg.solve(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.tensor([2.0, 4.0]))
    tensor([1., 1.])
    """
    _require_square("solve", A)
    is_vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])
    if not left:
        return pg.swapaxes(solve(pg.swapaxes(A, -1, -2), pg.swapaxes(B, -1, -2)), -1, -2)
    if is_vector:
        return computed(linalg.solve(A, B[..., None])[..., 0])
    return computed(linalg.solve(A, B))


def solve_ex(A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> Any:
    """Solve linear equations, with zeros for the error codes.

    >>> torch.linalg.solve_ex(torch.eye(2), torch.ones(2)).info
    tensor(0, dtype=torch.int32)
    """
    return named_result("linalg_solve_ex", solve(A, B, left=left), _no_error(A))


@takes_out
def solve_triangular(
    A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    """Solve `A @ X = B`, or `X @ A = B` without `left`, for triangular matrices.

    >>> A = torch.tensor([[2.0, 1.0], [0.0, 4.0]])
    >>> torch.linalg.solve_triangular(A, torch.tensor([[3.0], [4.0]]), upper=True)
    tensor([[1.],
            [1.]])
    """
    options = {"unit_diagonal": unitriangular}
    if left:
        return linalg.solve_triangular(A, B, lower=not upper, **options)
    turned = pg.swapaxes(A, -1, -2), pg.swapaxes(B, -1, -2)
    return pg.swapaxes(linalg.solve_triangular(*turned, lower=upper, **options), -1, -2)


def slogdet(A: Any) -> Any:
    """Compute signs and logarithms of absolute values of determinants.

    >>> torch.linalg.slogdet(torch.eye(2)).sign
    tensor(1.)
    """
    return named_result("linalg_slogdet", *linalg.slogdet(A))


def eig(A: Any) -> Any:
    """Compute eigenvalues and eigenvectors, which are complex.

    >>> torch.linalg.eig(torch.tensor([[2.0, 0.0], [0.0, 3.0]])).eigenvalues
    tensor([2.+0.j, 3.+0.j])
    """
    return named_result("linalg_eig", *linalg.eig(_as_complex(A)))


def eigvals(A: Any) -> Any:
    """Compute eigenvalues, which are complex.

    >>> torch.linalg.eigvals(torch.tensor([[2.0, 0.0], [0.0, 3.0]]))
    tensor([2.+0.j, 3.+0.j])
    """
    return linalg.eigvals(_as_complex(A))


def _as_complex(A: Any) -> Any:
    return pg.astype(_require_square("eig", A), complex_dtype(A.type.dtype))


def eigh(A: Any, UPLO: str = "L") -> Any:
    """Compute eigenvalues and eigenvectors of symmetric or Hermitian matrices.

    >>> torch.linalg.eigh(torch.tensor([[2.0, 0.0], [0.0, 3.0]])).eigenvalues
    tensor([2., 3.])
    """
    return named_result("linalg_eigh", *linalg.eigh(A, UPLO))


def svd(A: Any, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """Compute singular value decompositions `U @ diag(S) @ Vh`.

    >>> torch.linalg.svd(torch.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    return named_result("linalg_svd", *linalg.svd(A, full_matrices))


def qr(A: Any, mode: str = "reduced") -> Any:
    """Compute decompositions into an orthogonal matrix and a triangular one.

    `mode` is "reduced", "complete", or "r", without the first.

    >>> torch.linalg.qr(torch.ones(3, 2)).Q.shape
    torch.Size([3, 2])
    """
    if mode == "r":
        return named_result("linalg_qr", pg.flatten(A)[:0], linalg.qr(A, "r"))
    return named_result("linalg_qr", *linalg.qr(A, mode))


def lu(A: Any, *, pivot: bool = True) -> Any:
    """Compute decompositions into a permutation and two triangular matrices, `P @ L @ U`.

    >>> torch.linalg.lu(torch.tensor([[0.0, 1.0], [2.0, 3.0]])).P
    tensor([[0., 1.],
            [1., 0.]])
    """
    _require_pivots(pivot)
    return named_result("linalg_lu", *linalg.lu(A))


def lu_factor(A: Any, *, pivot: bool = True) -> Any:
    """Compute both triangular factors in one matrix, and the exchanged rows, counted from 1.

    >>> torch.linalg.lu_factor(torch.tensor([[0.0, 1.0], [2.0, 3.0]])).pivots
    tensor([2, 2], dtype=torch.int32)
    """
    _require_pivots(pivot)
    factors, order = linalg.lu_factor(A)
    pivots = np.apply_along_axis(_exchanges_of, -1, np.asarray(order)).astype(np.int32)
    return named_result("linalg_lu_factor", factors, array_like(A, pivots))


def _require_pivots(pivot: bool) -> None:
    if not pivot:
        raise ArgumentError("linalg.lu: LU without pivoting is not implemented on the CPU")


def _exchanges_of(order: np.ndarray[Any, Any]) -> list[int]:
    """Return the exchanges of rows, counted from 1, that make an order of rows."""
    now = [*range(len(order))]
    found = []
    for i, wanted in enumerate(order.tolist()):
        j = now.index(wanted, i)
        now[i], now[j] = now[j], now[i]
        found.append(j + 1)
    return found


def _order_of(exchanges: np.ndarray[Any, Any]) -> list[int]:
    """Return the order of rows after exchanges, which are counted from 1."""
    now = [*range(len(exchanges))]
    for i, j in enumerate(exchanges.tolist()):
        now[i], now[j - 1] = now[j - 1], now[i]
    return now


def lu_solve(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    """Solve linear equations by the result of `lu_factor`.

    >>> LU, pivots = torch.linalg.lu_factor(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    >>> torch.linalg.lu_solve(LU, pivots, torch.tensor([[2.0], [4.0]]))
    tensor([[1.],
            [1.]])
    """
    known = (LU, np.apply_along_axis(_order_of, -1, np.asarray(pivots)))
    if left:
        return linalg.lu_solve(known, B, trans=2 if adjoint else 0)
    turned = pg.swapaxes(B, -1, -2)
    return pg.swapaxes(linalg.lu_solve(known, turned, trans=0 if adjoint else 1), -1, -2)


def lstsq(A: Any, B: Any, rcond: Any = None, *, driver: str | None = None) -> Any:
    """Solve least squares problems; of full rank, unless `driver` is "gelsd", "gelss" or "gelsy".

    >>> torch.linalg.lstsq(torch.eye(2), torch.ones(2, 1)).solution
    tensor([[1.],
            [1.]])
    """
    known = linalg.lstsq(A, B, rcond)
    rows, columns = A.shape[-2:]
    nothing = pg.flatten(A)[:0]
    rest = pg.subtract(pg.matmul(A, known[0]), B)
    is_given = rows > columns and driver not in (None, "gelsy")
    residuals = pg.sum(pg.square(pg.abs(rest)), -2) if is_given else nothing
    singular = known[3] if driver in ("gelsd", "gelss") else nothing
    rank = pg.astype(nothing, np.int64) if driver == "gels" else known[2]
    return named_result("linalg_lstsq", known[0], residuals, rank, singular)


@takes_out
def matrix_rank(
    A: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Any:
    """Compute the number of singular values above the tolerances.

    >>> torch.linalg.matrix_rank(torch.ones(2, 2))
    tensor(1)
    """
    least = tol if atol is None else atol
    if least is None:
        return linalg.matrix_rank(A, None, hermitian, rtol=rtol)
    values = linalg.svdvals(A)
    bound = least if rtol is None else pg.maximum(least, values[..., :1] * rtol)
    return pg.sum(values > bound, -1)


@takes_out
def pinv(
    A: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Any:
    """Compute pseudoinverses of matrices.

    >>> torch.linalg.pinv(torch.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    if atol is not None:
        largest = pg.stop_gradient(linalg.svdvals(A)[..., 0])
        relative = pg.divide(atol, largest)
        rtol = relative if rtol is None else pg.maximum(rtol, relative)
    return linalg.pinv(A, rcond if rtol is None else rtol, hermitian)


def cond(A: Any, p: Any = None) -> Any:
    """Compute condition numbers by a norm of matrices, the largest singular value by default.

    >>> torch.linalg.cond(torch.eye(2))
    tensor(1.)
    """
    return linalg.cond(A, p)


def multi_dot(tensors: Sequence[Any]) -> Any:
    """Compute the product of several matrices, in the order of fewest operations.

    >>> torch.linalg.multi_dot([torch.ones(1, 2), torch.ones(2, 3), torch.ones(3, 1)])
    tensor([[6.]])
    """
    return linalg.multi_dot(list(tensors))


def _in_dtype(x: Any, dtype: Any) -> Any:
    return x if dtype is None else pg.astype(x, dtype)


@takes_out
def vector_norm(
    x: Any, ord: Any = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """Compute norms of vectors along `dim`, or of all elements as one vector.

    >>> torch.linalg.vector_norm(torch.tensor([[3.0, 4.0]]))
    tensor(5.)
    """
    over = tuple(dim) if isinstance(dim, list) else dim
    return linalg.vector_norm(_in_dtype(x, dtype), axis=over, keepdims=keepdim, ord=ord)


@takes_out
def matrix_norm(
    A: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """Compute norms of matrices, along the axes `dim`.

    >>> torch.linalg.matrix_norm(torch.ones(2, 2))
    tensor(2.)
    """
    return linalg.norm(_in_dtype(A, dtype), ord, tuple(dim), keepdim)


@takes_out
def norm(
    A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """Compute norms of vectors for one axis, and of matrices for two; of all without `ord`.

    >>> torch.linalg.norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    x = _in_dtype(A, dtype)
    if ord is None:
        return vector_norm(x, 2, dim, keepdim)
    if dim is None:
        dim = tuple(range(x.ndim))
    if isinstance(dim, int) or len(dim) == 1:
        return vector_norm(x, ord, dim, keepdim)
    return matrix_norm(x, ord, dim, keepdim)


def vander(x: Any, *, N: int | None = None) -> Any:
    """Return matrices of powers from zero up.

    >>> torch.linalg.vander(torch.tensor([1.0, 2.0]), N=3)
    tensor([[1., 1., 1.],
            [1., 2., 4.]])
    """
    count = x.shape[-1] if N is None else N
    ones = pg.ones_like(x)
    powers = [ones]
    for _ in range(count - 1):
        powers.append(pg.multiply(powers[-1], x))
    return pg.stack(powers, -1)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
