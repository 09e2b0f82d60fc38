"""The public functions, and those of families that are loaded when one of them is first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from primgraph.base.providers import provider

# The public functions by name, filled where they are defined; methods of handles call them.
functions: dict[str, Callable[..., Any]] = {}

# The module of each function that is loaded late, filled by `primgraph.operators.families`.
family_of: dict[str, str] = {}


def function_named(name: str) -> Callable[..., Any] | None:
    """The public function of that name, whose family is loaded if it is not yet; None for none.

    A name such as "linear_algebra.systems.solve" is that of a function in a file of operators.
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
    """The public function of that name, which there is."""
    found = function_named(name)
    assert found is not None, name
    return found


def all_functions() -> Mapping[str, Callable[..., Any]]:
    """All public functions by name, with every family loaded."""
    for name in family_of:
        function_named(name)
    return functions
