"""Linear algebra by SciPy's names: SciPy's own on arrays, recorded with variables and tensors.

What has no counterpart with SciPy's arguments says so.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import reduce, wraps
from operator import add
from typing import Any

from primgraph.errors import ShapeError, unknown_name
from primgraph.operators import norms, spectra, systems
from primgraph.operators.building import diag, kron
from primgraph.operators.call import of_namespace
from primgraph.operators.creation import eye
from primgraph.operators.late import functions
from primgraph.operators.numpy_calls import missing
from primgraph.operators.promotion import lift, result_dtype
from primgraph.operators.shaping import reshape, transpose
from primgraph.operators.variable import Variable, handles

# Options of SciPy's that say how something is computed or stored, and not what.
_IGNORED = ("check_finite", "overwrite_a", "overwrite_ab", "overwrite_b", "lapack_driver")


def _cholesky(a: Any, lower: bool = False) -> Variable:
    return systems.cholesky(a) if lower else systems.cholesky(a, upper=True)


@of_namespace
def _solve_sylvester(a: Any, b: Any, q: Any) -> Variable:
    """`x` with `a @ x + x @ b = q`, by one system for all of its elements."""
    dtype = result_dtype(a, b, q)
    left, right, sums = (lift(v, dtype) for v in (a, b, q))
    n, m = sums.shape if sums.ndim == 2 else (-1, -1)
    if left.shape != (n, n) or right.shape != (m, m):
        raise ShapeError(
            f"solve_sylvester takes matrices that fit, not {left.type}, {right.type}, {sums.type}"
        )
    system = kron(left, eye(m, dtype=dtype)) + kron(eye(n, dtype=dtype), transpose(right))
    return reshape(systems.solve(system, reshape(sums, (n * m,))), (n, m))


@of_namespace
def _solve_banded(l_and_u: Sequence[int], ab: Any, b: Any) -> Variable:
    """`x` with `a @ x = b` for the matrix `a` of the diagonals in the rows of `ab`."""
    below, above = l_and_u
    dtype = result_dtype(ab, b)
    rows, right = lift(ab, dtype), lift(b, dtype)
    if rows.ndim != 2 or rows.shape[0] != below + above + 1:
        raise ShapeError(
            f"solve_banded takes {below + above + 1} rows of diagonals, not {rows.type}"
        )
    width = rows.shape[1]
    getitem = functions["getitem"]
    lines = [
        diag(getitem(rows, (above - k, slice(max(k, 0), width + min(k, 0)))), k)
        for k in range(-below, above + 1)
    ]
    return systems.solve(reduce(add, lines), right)


_OWN: dict[str, Callable[..., Any]] = {
    "cholesky": _cholesky,
    "det": systems.det,
    "inv": systems.inv,
    "norm": norms.norm,
    "pinv": spectra.pinv,
    "solve": systems.solve,
    "solve_banded": _solve_banded,
    "solve_sylvester": _solve_sylvester,
    "solve_triangular": systems.solve_triangular,
    "svdvals": spectra.svdvals,
}

__all__ = [*_OWN]


def _recording(name: str, original: Callable[..., Any] | None) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if not handles((*args, *kwargs.values())) and original is not None:
            return original(*args, **kwargs)
        if name not in _OWN:
            raise missing(f"scipy.linalg.{name}")
        meant = {n: v for n, v in kwargs.items() if n not in _IGNORED}
        return _OWN[name](*args, **meant)

    return call if original is None else wraps(original)(call)


def __getattr__(name: str) -> Any:
    original = None
    if not name.startswith("__"):
        try:
            original = getattr(importlib.import_module("scipy.linalg"), name, None)
        except ImportError:
            original = None
    if original is None and name not in _OWN:
        raise unknown_name("primgraph.scipy.linalg", name, [*_OWN])
    if original is not None and (isinstance(original, type) or not callable(original)):
        return original
    return globals().setdefault(name, _recording(name, original))


def __dir__() -> list[str]:
    return sorted(_OWN)
