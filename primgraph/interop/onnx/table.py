"""The table of operators: a function for each, by the version from which its meaning holds."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from primgraph.interop.onnx.node import Node

Meaning = Callable[..., Any]

# For each operator the versions in order, and the functions from them on.
_TABLE: dict[str, tuple[list[int], list[Meaning]]] = {}


def means(*names: str, since: int = 1) -> Callable[[Meaning], Meaning]:
    """Declare a function `f(node, *inputs)` as the meaning of operators from a version on.

    Optional inputs that are absent are None; the function returns a value or a tuple of values.
    """

    def declare(function: Meaning) -> Meaning:
        for name in names:
            versions, functions = _TABLE.setdefault(name, ([], []))
            place = bisect_right(versions, since)
            versions.insert(place, since)
            functions.insert(place, function)
        return function

    return declare


def means_each(functions: dict[str, Callable[..., Any]]) -> None:
    """Declare functions of the inputs alone, by operator."""

    def ignoring_node(function: Callable[..., Any]) -> Meaning:
        def call(node: Node, *inputs: Any) -> Any:
            return function(*inputs)

        return call

    for name, function in functions.items():
        means(name)(ignoring_node(function))


def find_meaning(name: str, version: int) -> Meaning | None:
    """Return the function of an operator in a version of the operator set, or None."""
    versions, functions = _TABLE.get(name, ([], []))
    place = bisect_right(versions, version)
    return functions[place - 1] if place else None


def known_operators() -> list[str]:
    """Return the names of all operators that have a function."""
    return sorted(_TABLE)
