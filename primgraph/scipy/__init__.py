"""SciPy's names, for programs: `from primgraph.scipy import special` for `from scipy import`.

What is not here is SciPy's own.
"""

import importlib
from typing import Any

from primgraph.errors import unknown_name
from primgraph.scipy import linalg, special

__all__ = ["linalg", "special"]


def __getattr__(name: str) -> Any:
    try:
        return getattr(importlib.import_module("scipy"), name)
    except (ImportError, AttributeError):
        raise unknown_name("primgraph.scipy", name, __all__) from None
