"""Public functions by name, whose modules are imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, final

from primgraph.base.providers import provider
from primgraph.ir.primitive import homes


@final
class _Functions(dict[str, Callable[..., Any]]):
    """The public functions by name, whose modules are imported when they are asked for."""

    def __missing__(self, name: str) -> Callable[..., Any]:
        found = function_named(name)
        if found is None:
            raise KeyError(name)
        return found


# Modules register their functions here; methods of handles call them.
functions = _Functions()


def function_named(name: str) -> Callable[..., Any] | None:
    """Return the public function of that name, and import its module if necessary; None if unknown.

    A name such as "linear_algebra.systems.solve" is that of a function in a module of operators.
    """
    family, point, short = name.rpartition(".")
    if point:
        inner: Callable[..., Any] | None
        inner = getattr(provider(f"operators.{family}"), short, None)
        return inner
    found = functions.get(name)
    if found is None and name in homes:
        import_module(homes[name])
        found = functions.get(name)
    return found


def named_function(name: str) -> Callable[..., Any]:
    """Return the public function of that name, which must exist."""
    found = function_named(name)
    assert found is not None, name
    return found


def all_functions() -> Mapping[str, Callable[..., Any]]:
    """Return all public functions by name, after importing every module."""
    for name in homes:
        function_named(name)
    return functions
