"""Functions of NumPy's that somebody else lets mean something on handles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primgraph.errors import ArgumentError

# What was given for functions of NumPy's, which counts before the table of names.
implemented: dict[Callable[..., Any], Callable[..., Any]] = {}


def implements(original: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function of NumPy's mean the decorated one, where it meets variables or tensors.

    That takes the same arguments, and is made of functions that are there. Of a ufunc it is what
    calls of it mean. Raises `ArgumentError` for what is no function.
    """
    if not callable(original):
        raise ArgumentError(f"implements takes a function of NumPy's, not {original!r:.60}")

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        implemented[original] = function
        return function

    return declare
