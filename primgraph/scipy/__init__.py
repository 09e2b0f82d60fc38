"""SciPy's names, for programs: `from primgraph.scipy import special` for `from scipy import`.

What is not here is SciPy's own.
"""

import importlib
import importlib.util
from typing import Any

from primgraph.errors import unknown_name
from primgraph.scipy import special

__all__ = ["integrate", "linalg", "signal", "special", "stats"]

# Rooms that are loaded when they are first asked for.
_LATER = ("integrate", "linalg", "signal", "stats")


def __getattr__(name: str) -> Any:
    if name in _LATER and importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return importlib.import_module(f"{__name__}.{name}")
    try:
        return getattr(importlib.import_module("scipy"), name)
    except (ImportError, AttributeError):
        raise unknown_name("primgraph.scipy", name, __all__) from None


def __dir__() -> list[str]:
    return sorted(__all__)
