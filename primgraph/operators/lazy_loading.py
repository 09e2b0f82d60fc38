"""The public functions, and those of families that are loaded when one of them is first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from primgraph.base.providers import provider

# The public functions by name, registered by their modules; methods of handles call them.
functions: dict[str, Callable[..., Any]] = {}

# The module of each function that is loaded late, filled by `primgraph.operators.families`.
family_of: dict[str, str] = {}


def function_named(name: str) -> Callable[..., Any] | None:
    """Return the public function of that name, and import its family if necessary; None if unknown.

    A name such as "linear_algebra.systems.solve" is that of a function in a module of operators.
    """
    family, point, short = name.rpartition(".")
    if point:
        inner: Callable[..., Any] | None
        inner = getattr(provider(f"operators.{family}"), short, None)
        return inner
    found = functions.get(name)
    if found is None and name in family_of:
        import_module(family_of[name])
        found = functions[name]
    return found


def named_function(name: str) -> Callable[..., Any]:
    """Return the public function of that name, which must exist."""
    found = function_named(name)
    assert found is not None, name
    return found


def all_functions() -> Mapping[str, Callable[..., Any]]:
    """Return all public functions by name, after importing every family."""
    for name in family_of:
        function_named(name)
    return functions
