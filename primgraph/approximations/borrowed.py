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
