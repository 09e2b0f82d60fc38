"""`numpy.linalg` by NumPy's names, where numbers decide whether eigenvalues are real."""

from __future__ import annotations

from typing import Any

import numpy

from primgraph.compat.autograd.tracer import getval, isbox
from primgraph.numpy import conj, linalg, swapaxes, tril, triu

__all__ = ["eig", "eigh", "eigvals", "eigvalsh"]


def _promote_to_complex(a: Any) -> Any:
    """A real matrix with complex eigenvalues as a complex one."""
    if not isbox(a) or numpy.iscomplexobj(getval(a)):
        return a
    values = numpy.linalg.eigvals(getval(a))
    return a.astype(values.dtype) if numpy.iscomplexobj(values) else a


def eig(a: Any) -> Any:
    """Eigenvalues and eigenvectors, which are complex where NumPy's are.

    Raises `ShapeError` for matrices that are not square.
    """
    return linalg.eig(_promote_to_complex(a))


def eigvals(a: Any) -> Any:
    """The eigenvalues, which are complex where NumPy's are; see `eig`."""
    return linalg.eigvals(_promote_to_complex(a))


def _mirror_triangle(a: Any, UPLO: str) -> Any:
    """The matrix whose lower triangle is to be read; the gradient of a traced one is triangular."""
    if UPLO != "U" and not (UPLO == "L" and isbox(a)):
        return a
    if UPLO == "U":
        return triu(a) + conj(swapaxes(triu(a, 1), -1, -2))
    return tril(a) + conj(swapaxes(tril(a, -1), -1, -2))


def eigh(a: Any, UPLO: str = "L") -> Any:
    """Eigenvalues and eigenvectors of the Hermitian matrix whose triangle is `UPLO`.

    The gradient is in that triangle, as autograd has it; that of `pg.linalg.eigh` is Hermitian.
    """
    return linalg.eigh(_mirror_triangle(a, UPLO), "L" if UPLO == "U" else UPLO)


def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """The eigenvalues of a Hermitian matrix; see `eigh`."""
    return linalg.eigvalsh(_mirror_triangle(a, UPLO), "L" if UPLO == "U" else UPLO)


def __getattr__(name: str) -> Any:
    return getattr(linalg, name)


def __dir__() -> list[str]:
    return dir(linalg)
