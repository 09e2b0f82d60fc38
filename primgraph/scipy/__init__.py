"""SciPy's names, for programs: `from primgraph.scipy import special` for `from scipy import`.

What is not here is SciPy's own.
"""

import importlib
import importlib.util
from typing import Any

from primgraph.errors import unknown_name
from primgraph.scipy import special

__all__ = ["integrate", "linalg", "optimize", "signal", "special", "stats"]

# Rooms that are loaded when they are first asked for.
_LATER = {
    "integrate": "primgraph.scipy.integrate",
    "linalg": "primgraph.scipy.linalg",
    "optimize": "primgraph.scipy.optimize",
    "signal": "primgraph.scipy.signal",
    "stats": "primgraph.scipy.stats",
}


def __getattr__(name: str) -> Any:
    if name in _LATER and importlib.util.find_spec(_LATER[name]) is not None:
        return importlib.import_module(_LATER[name])
    try:
        return getattr(importlib.import_module("scipy"), name)
    except (ImportError, AttributeError):
        raise unknown_name("primgraph.scipy", name, __all__) from None


def __dir__() -> list[str]:
    return sorted(__all__)
