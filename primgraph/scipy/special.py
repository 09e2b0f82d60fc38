"""Special functions by SciPy's names: SciPy's own on arrays, recorded with variables and tensors.

A function that is called with a variable or a tensor is that of `primgraph.special`, and SciPy
need not be there for it. What has no counterpart says so.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import wraps
from typing import Any

from primgraph.errors import ArgumentError, unknown_name
from primgraph.operators.lazy_loading import named_function
from primgraph.operators.numpy_calls import missing
from primgraph.operators.numpy_names import SPECIAL, SPECIAL_FUNCTIONS
from primgraph.operators.variable import handles

_NAMES = SPECIAL | SPECIAL_FUNCTIONS


def _original(name: str) -> Any:
    """Return SciPy's function of that name; None without SciPy."""
    try:
        return getattr(importlib.import_module("scipy.special"), name, None)
    except ImportError:
        return None


def recording(name: str, original: Callable[..., Any] | None) -> Callable[..., Any]:
    """The function of that name, SciPy's on arrays where there is SciPy."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if handles((*args, *kwargs.values())):
            if name not in _NAMES:
                raise missing(f"scipy.special.{name}")
            return named_function(_NAMES[name])(*args, **kwargs)
        if original is None:
            raise ArgumentError(
                f"scipy.special.{name} of arrays is SciPy's, which is not installed",
                hint="pip install scipy, or call it with variables or tensors",
            )
        return original(*args, **kwargs)

    if original is not None:
        return wraps(original)(call)
    call.__name__ = call.__qualname__ = name
    return call


def __getattr__(name: str) -> Any:
    original = None if name.startswith("__") else _original(name)
    if original is None and name not in _NAMES:
        raise unknown_name("primgraph.scipy.special", name, list(_NAMES))
    if original is not None and (isinstance(original, type) or not callable(original)):
        return original
    return globals().setdefault(name, recording(name, original))


def __dir__() -> list[str]:
    return sorted(_NAMES)
