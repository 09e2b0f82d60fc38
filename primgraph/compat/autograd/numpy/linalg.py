"""`numpy.linalg` by NumPy's names, where numbers decide whether eigenvalues are real."""

from __future__ import annotations

from typing import Any

import numpy

from primgraph.compat.autograd.tracer import getval, isbox
from primgraph.numpy import linalg

__all__ = ["eig", "eigvals"]


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


def __getattr__(name: str) -> Any:
    return getattr(linalg, name)


def __dir__() -> list[str]:
    return dir(linalg)
