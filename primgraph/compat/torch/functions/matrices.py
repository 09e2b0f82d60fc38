"""Functions of matrices that torch has at the top: inverses, determinants, decompositions."""

from __future__ import annotations

from typing import Any

from primgraph import linalg as ours
from primgraph import operators as pg
from primgraph.compat.torch import linalg
from primgraph.compat.torch.functions.results import computed
from primgraph.compat.torch.linalg import cholesky, inv, pinv
from primgraph.compat.torch.return_types import named_result

__all__ = [
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "det",
    "inverse",
    "logdet",
    "lu_solve",
    "matrix_exp",
    "matrix_power",
    "pinverse",
    "qr",
    "slogdet",
    "svd",
    "triangular_solve",
]

inverse, pinverse = inv, pinv
det, matrix_exp, matrix_power = (getattr(linalg, n) for n in ("det", "matrix_exp", "matrix_power"))


def cholesky_inverse(L: Any, upper: bool = False) -> Any:
    """Compute the inverse of a matrix from its Cholesky factor.

    >>> torch.cholesky_inverse(torch.tensor([[2.0, 0.0], [0.0, 1.0]])).diagonal()
    tensor([0.2500, 1.0000])
    """
    turned = pg.conj(pg.swapaxes(L, -1, -2))
    return computed(ours.inv(pg.matmul(turned, L) if upper else pg.matmul(L, turned)))


def cholesky_solve(B: Any, L: Any, upper: bool = False) -> Any:
    """Solve linear equations by the Cholesky factor of their matrix.

    >>> torch.cholesky_solve(torch.ones(2, 1), torch.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([[0.2500],
            [1.0000]])
    """
    turned = pg.conj(pg.swapaxes(L, -1, -2))
    low, high = (turned, L) if upper else (L, turned)
    half = ours.solve_triangular(low, B, lower=True)
    return ours.solve_triangular(high, half, lower=False)


def logdet(input: Any) -> Any:
    """Compute logarithms of determinants; NaN for negative ones.

    >>> torch.logdet(torch.eye(2))
    tensor(0.)
    """
    sign, size = ours.slogdet(input)
    return pg.where(sign < 0, pg.full_like(size, float("nan")), size)


def lu_solve(b: Any, LU_data: Any, LU_pivots: Any) -> Any:
    """Solve linear equations by the result of `linalg.lu_factor`.

    >>> LU, pivots = torch.linalg.lu_factor(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    >>> torch.lu_solve(torch.tensor([[2.0], [4.0]]), LU, pivots)
    tensor([[1.],
            [1.]])
    """
    return linalg.lu_solve(LU_data, LU_pivots, b)


def qr(input: Any, some: bool = True) -> Any:
    """Compute decompositions into an orthogonal matrix and a triangular one.

    >>> torch.qr(torch.ones(3, 2)).Q.shape
    torch.Size([3, 2])
    """
    return named_result("qr", *ours.qr(input, "reduced" if some else "complete"))


def slogdet(input: Any) -> Any:
    """Compute signs and logarithms of absolute values of determinants.

    >>> torch.slogdet(torch.eye(2)).sign
    tensor(1.)
    """
    return named_result("slogdet", *ours.slogdet(input))


def svd(input: Any, some: bool = True, compute_uv: bool = True) -> Any:
    """Compute singular value decompositions `U @ diag(S) @ V.T`.

    >>> torch.svd(torch.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    U, S, Vh = ours.svd(input, not some)
    if not compute_uv:
        U, Vh = pg.zeros_like(U), pg.zeros_like(Vh)
    return named_result("svd", U, S, pg.conj(pg.swapaxes(Vh, -1, -2)))


def triangular_solve(
    b: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """Solve linear equations with a triangular matrix.

    >>> torch.triangular_solve(torch.ones(2, 1), torch.eye(2)).solution
    tensor([[1.],
            [1.]])
    """
    found = ours.solve_triangular(
        A, b, trans=int(transpose), lower=not upper, unit_diagonal=unitriangular
    )
    return named_result("triangular_solve", found, A)
