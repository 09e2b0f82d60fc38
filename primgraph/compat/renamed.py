"""Names and docstrings of functions that wrap an operator for another library's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Named = TypeVar("Named", bound=Callable[..., Any])


def renamed(call: Named, name: str, function: Callable[..., Any]) -> Named:
    """Return `call` with that name and the docstring of `function`."""
    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    return call
