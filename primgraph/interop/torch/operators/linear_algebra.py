"""Functions of matrix products and of linear algebra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primgraph.interop.torch.table import Site, means, means_each, names
from primgraph.operators.variable import Variable

means_each({
    f"aten.{name}": getattr(names, name)
    for name in ("addmm", "addmv", "baddbmm", "bmm", "dot", "einsum", "matmul", "mm", "mv", "outer")
})  # fmt: skip
means_each(
    {
        "aten.linalg_matrix_exp": names.linalg.matrix_exp,
        "aten.linalg_cross": lambda x, y, *, dim=-1: names.linalg.cross(x, y, dim=dim),
    }
)


@means("aten._cdist_forward")
def _cdist(site: Site, x: Variable, y: Variable, p: float, mode: Any) -> Any:
    return names.cdist(x, y, p)


@means("aten._trilinear")
def _trilinear(
    site: Site,
    x: Variable,
    y: Variable,
    z: Variable,
    new_x: Sequence[int],
    new_y: Sequence[int],
    new_z: Sequence[int],
    axes: Sequence[int],
    unroll: int = 1,
) -> Any:
    """Multiply three arrays, with new axes each, and sum over axes."""
    for axis in sorted(new_x):
        x = names.unsqueeze(x, axis)
    for axis in sorted(new_y):
        y = names.unsqueeze(y, axis)
    for axis in sorted(new_z):
        z = names.unsqueeze(z, axis)
    return names.sum(x * y * z, tuple(axes))


# Factorizations return information for errors, which no result depends on.


@means("aten.linalg_inv_ex")
def _inv(site: Site, a: Variable, **kwargs: Any) -> Any:
    return names.linalg.inv(a), None


@means("aten._linalg_solve_ex")
def _solve(site: Site, a: Variable, b: Variable, *, left: bool = True, **kwargs: Any) -> Any:
    return names.linalg.solve(a, b, left=left), None, None, None


@means("aten.linalg_cholesky_ex")
def _cholesky(site: Site, a: Variable, *, upper: bool = False, **kwargs: Any) -> Any:
    return names.linalg.cholesky(a, upper=upper), None


@means("aten._linalg_det")
def _det(site: Site, a: Variable) -> Any:
    return names.linalg.det(a), None, None


@means("aten._linalg_slogdet")
def _slogdet(site: Site, a: Variable) -> Any:
    return (*names.linalg.slogdet(a), None, None)


@means("aten._linalg_eigh")
def _eigh(site: Site, a: Variable, uplo: str = "L", compute_v: bool = True) -> Any:
    return tuple(names.linalg.eigh(a, uplo))


@means("aten._linalg_svd")
def _svd(
    site: Site, a: Variable, full_matrices: bool = False, compute_uv: bool = True, **kwargs: Any
) -> Any:
    return tuple(names.linalg.svd(a, full_matrices))


@means("aten.linalg_qr")
def _qr(site: Site, a: Variable, mode: str = "reduced") -> Any:
    return tuple(names.linalg.qr(a, mode))


@means("aten.linalg_solve_triangular", "aten.triangular_solve")
def _solve_triangular(site: Site, a: Variable, b: Variable, **kwargs: Any) -> Any:
    if site.name.startswith("aten.triangular"):
        site.refuse("the arguments of an older function")
    return names.linalg.solve_triangular(a, b, **kwargs)
