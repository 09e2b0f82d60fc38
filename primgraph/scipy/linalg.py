"""Linear algebra by SciPy's names: SciPy's own on arrays, recorded with variables and tensors.

A function that is called with a variable or a tensor is that of `primgraph.linalg`, and SciPy need
not be there for it. What has no counterpart says so.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import wraps
from typing import Any

from primgraph import linalg
from primgraph.errors import ArgumentError, unknown_name
from primgraph.operators.numpy_calls import missing
from primgraph.operators.variable import handles

# Arguments of SciPy's that say how it works with memory, or whether it looks for NaN.
_OF_MEMORY = frozenset(
    ("check_finite", "lapack_driver", "lwork", "overwrite_a", "overwrite_ab", "overwrite_b")
)
_NAMES = {*linalg.__all__} - {"LinAlgError"}


def _original(name: str) -> Any:
    """Return SciPy's function of that name; None without SciPy."""
    try:
        return getattr(importlib.import_module("scipy.linalg"), name, None)
    except ImportError:
        return None


def _solve(a: Any, b: Any, lower: bool = False, assume_a: str = "gen", **kwargs: Any) -> Any:
    """SciPy's `solve`, which is told of what kind the matrix is."""
    known = {"pos": "positive_definite", "positive definite": "positive_definite"}
    known |= {"sym": "symmetric", "symmetric": "symmetric", "diagonal": "diagonal"}
    known |= {"upper triangular": "upper_triangular", "lower triangular": "lower_triangular"}
    matrices = importlib.import_module("primgraph.operators.linear_algebra.matrices")
    # Of complex matrices nothing is told.
    is_complex = getattr(getattr(a, "dtype", None), "kind", "f") == "c"
    told = assume_a in known and not is_complex
    matrix = matrices.assume(a, known[assume_a]) if told else a
    return linalg.solve(matrix, b, **kwargs)


def _cholesky(a: Any, lower: bool = False) -> Any:
    """SciPy's `cholesky`, of which the upper triangle is what is given unless `lower`."""
    return linalg.cholesky(a, upper=not lower)


_OWN: dict[str, Callable[..., Any]] = {"cholesky": _cholesky, "solve": _solve}
# Those that are loaded when one of them is first asked for, by files of this room.
_LATER = {
    name: file
    for file, names in (
        (
            "primgraph.scipy.matrix_factors",
            "eig eigh eigh_tridiagonal eigvals eigvalsh eigvalsh_tridiagonal lstsq null_space orth "
            "orthogonal_procrustes pinv pinvh polar qr schur subspace_angles",
        ),
        (
            "primgraph.scipy.matrix_equations",
            "coshm cosm expm_frechet fractional_matrix_power matmul_toeplitz signm sinhm sinm "
            "solve_circulant solve_continuous_are solve_continuous_lyapunov "
            "solve_discrete_are solve_discrete_lyapunov solve_lyapunov solveh_banded tanhm tanm",
        ),
        (
            "primgraph.scipy.matrix_forms",
            "circulant companion convolution_matrix diagsvd fiedler hankel khatri_rao leslie",
        ),
    )
    for name in names.split()
}
_NAMES |= {*_LATER}
__all__ = sorted(_NAMES)


def _counterpart(name: str) -> Callable[..., Any]:
    if name in _LATER:
        found: Callable[..., Any] = getattr(importlib.import_module(_LATER[name]), name)
        return found
    return _OWN.get(name) or getattr(linalg, name)


def recording(name: str, original: Callable[..., Any] | None) -> Callable[..., Any]:
    """The function of that name, SciPy's on arrays where there is SciPy."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if handles((*args, *kwargs.values())):
            if name not in _NAMES:
                raise missing(f"scipy.linalg.{name}")
            found = _counterpart(name)
            return found(*args, **{k: v for k, v in kwargs.items() if k not in _OF_MEMORY})
        if original is None:
            raise ArgumentError(
                f"scipy.linalg.{name} of arrays is SciPy's, which is not installed",
                hint="pip install scipy, or call it with variables or tensors",
            )
        return original(*args, **kwargs)

    if original is not None:
        return wraps(original)(call)
    call.__name__ = call.__qualname__ = name
    return call


def __getattr__(name: str) -> Any:
    original = None if name.startswith("__") else _original(name)
    if original is None and name not in _NAMES:
        raise unknown_name("primgraph.scipy.linalg", name, sorted(_NAMES))
    if original is not None and (isinstance(original, type) or not callable(original)):
        return original
    return globals().setdefault(name, recording(name, original))


def __dir__() -> list[str]:
    return sorted(_NAMES)
