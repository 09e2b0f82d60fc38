"""Registration of implementations of NumPy functions on handles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primgraph.errors import ArgumentError

# Registered implementations of NumPy functions, which precede the table of names.
implemented: dict[Callable[..., Any], Callable[..., Any]] = {}


def implements(original: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare the decorated function as the meaning of a NumPy function on variables and tensors.

    It takes the same arguments, and calls operators. For a ufunc it defines what calls of it mean.
    Raises `ArgumentError` for an argument that is not a function.

    >>> from primgraph.extend import implements
    >>> @implements(np.emath.sqrt)
    ... def complex_sqrt(x):
    ...     return pg.sqrt(pg.astype(x, "complex128"))
    >>> np.emath.sqrt(pg.tensor([-4.0]))
    tensor([0.+2.j], dtype=complex128)
    """
    if not callable(original):
        raise ArgumentError(f"implements takes a function of NumPy's, not {original!r:.60}")

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        implemented[original] = function
        return function

    return declare
