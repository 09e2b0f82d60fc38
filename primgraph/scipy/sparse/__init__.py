"""Sparse matrices by SciPy's names: SciPy's own, and triangular systems with derivatives."""

import importlib
from typing import Any

from primgraph.errors import unknown_name
from primgraph.scipy.sparse import linalg

__all__ = ["linalg"]


def __getattr__(name: str) -> Any:
    try:
        return getattr(importlib.import_module("scipy.sparse"), name)
    except (ImportError, AttributeError):
        raise unknown_name("primgraph.scipy.sparse", name, __all__) from None
