"""Wrappers of SciPy functions, copied into generated code like the NumPy implementations."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.approximations.gamma import in_chunks


def real_result(function: Any, name: str, part: int, operands: Any) -> Any:
    """Return the result of a function, and NaN where that is complex."""
    found = function(*operands, part) if name == "lambertw" else function(*operands)
    found = np.asarray(found[part] if name == "sici" else found)
    return np.where(found.imag == 0.0, found.real, np.nan)


def by_scipy(name: str, part: int, xs: Any, out: Any = None) -> Any:
    """A function of scipy.special, in double precision; SciPy has to be installed for it.

    Of several results it is the one that `part` says, of several branches that branch. For real
    numbers, what is complex is NaN.
    """
    try:
        special = __import__("scipy.special", fromlist=["special"])
    except ImportError:
        message = (
            f"{name} is SciPy's, which is not installed: pip install 'primgraph[scipy]'"
        )
        raise ImportError(message) from None
    function = getattr(special, name)
    if np.asarray(xs[0]).dtype.kind == "c":
        found = function(*[np.asarray(x, complex) for x in xs])
        if out is None:
            return np.asarray(found, xs[0].dtype)
        out[...] = found
        return out
    return in_chunks(lambda *parts: real_result(function, name, part, parts), xs, out)


def sparse_triangular_solve(
    data: Any, b: Any, rows: Any, columns: Any, reverse: bool, out: Any = None
) -> Any:
    """Solve with triangular matrices of elements `data` at `rows` and `columns`; `out` may be `b`.

    SciPy solves, if it is installed, for a diagonal that is stored or is ones.
    """
    x, on_diagonal = np.array(b) if out is None else out, rows == columns
    if out is not None and out is not b:
        out[...] = b
    if not np.all(data[..., on_diagonal]):
        raise np.linalg.LinAlgError("Singular matrix")
    try:
        sparse = __import__("scipy.sparse.linalg").sparse
    except ImportError:
        sparse = None
    known = rows.size and x.size and np.sum(on_diagonal) in (0, x.shape[-2])
    for place in np.ndindex(data.shape[:-1]):
        if sparse is None or not known:
            x[place] = substitute(data[place], x[place], rows, columns, reverse)
        else:
            x[place] = by_scipys_factors(sparse, data[place], x[place], rows, columns)
    return x


def by_scipys_factors(sparse: Any, data: Any, b: Any, rows: Any, columns: Any) -> Any:
    """Return SciPy's solutions, in double precision."""
    kind = np.result_type(data, np.float64)
    matrix = sparse.csr_array(
        (data.astype(kind), (rows, columns)), shape=(len(b), len(b))
    )
    lower, unit = np.all(rows >= columns), not np.any(rows == columns)
    return sparse.linalg.spsolve_triangular(
        matrix, b.astype(kind), lower, unit_diagonal=unit
    )


def substitute(data: Any, b: Any, rows: Any, columns: Any, reverse: Any) -> Any:
    """Return solutions, element by element of the matrix."""
    order = slice(None, None, -1) if reverse else slice(None)
    entries = zip(*[v[order].tolist() for v in (data, rows, columns)], strict=True)
    # Numbers of Python are faster than arrays of one element.
    found = b[:, 0].tolist() if b.shape[1] == 1 else np.array(b)
    for a, i, j in entries:
        found[i] = found[i] / a if i == j else found[i] - a * found[j]
    return np.reshape(found, b.shape)
