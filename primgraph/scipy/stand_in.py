"""Modules with SciPy's names: SciPy's own on arrays, the functions of rows on handles.

SciPy need not be installed for calls with variables or tensors.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import wraps
from typing import Any

from primgraph.base.providers import provider
from primgraph.errors import ArgumentError, unknown_name
from primgraph.operators.names import rows
from primgraph.operators.numpy_calls import missing_error
from primgraph.operators.variable import handles


def stand_in(
    world: str, own: dict[str, Any], ignored: frozenset[str] = frozenset()
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of the module for a module of SciPy's.

    `own` has the globals of the module, which keep each object after its first use. Arguments named
    in `ignored` have no effect on handles.
    """

    def find(name: str) -> Any:
        original = None if name.startswith("__") else scipy_function(world, name)
        if original is None and name not in rows(world):
            raise unknown_name(f"primgraph.{world}", name, sorted(rows(world)))
        if original is not None and (isinstance(original, type) or not callable(original)):
            return original
        return own.setdefault(name, _recording(world, name, original, ignored))

    return sorted(rows(world)), find, lambda: sorted(rows(world))


def scipy_function(world: str, name: str) -> Any:
    """Return SciPy's function of that name; None without SciPy."""
    try:
        return getattr(importlib.import_module(world), name, None)
    except ImportError:
        return None


def _recording(
    world: str, name: str, original: Callable[..., Any] | None, ignored: frozenset[str]
) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if handles((*args, *kwargs.values())):
            law = provider("scipy.stats").ufuncs.get(name) if name not in rows(world) else None
            if law is not None and world == "scipy.special":
                return law(*args, **kwargs)
            if name not in rows(world):
                raise missing_error(f"{world}.{name}")
            kept = {n: value for n, value in kwargs.items() if n not in ignored}
            return rows(world)[name].load()(*args, **kept)
        if original is None:
            raise ArgumentError(
                f"{world}.{name} of arrays is SciPy's, which is not installed",
                hint="pip install scipy, or call it with variables or tensors",
            )
        return original(*args, **kwargs)

    if original is not None:
        return wraps(original)(call)
    call.__name__ = call.__qualname__ = name
    return call
