"""Registration of implementations of NumPy functions on handles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primgraph.errors import ArgumentError

# Registered implementations of NumPy functions, which precede the table of names.
implemented: dict[Callable[..., Any], Callable[..., Any]] = {}


def implements(original: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function as a NumPy function's implementation on variables and
    tensors.

    It takes the same arguments, and is composed of existing functions. For a ufunc it implements
    calls. Raises `ArgumentError` if `original` is not a function.
    """
    if not callable(original):
        raise ArgumentError(f"implements takes a function of NumPy's, not {original!r:.60}")

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        implemented[original] = function
        return function

    return declare
