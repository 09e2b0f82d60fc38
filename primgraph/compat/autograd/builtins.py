"""Python's containers and questions about them, which take arrays of primgraph as they are."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from primgraph.operators.handle import Handle

# Containers of tensors are Python's own.
dict = builtins.dict
list = builtins.list
tuple = builtins.tuple


def isinstance(value: Any, kind: Any) -> bool:
    """Python's, for which what a function is called with is an array, or a float where it is one
    number."""
    kinds = kind if builtins.isinstance(kind, builtins.tuple) else (kind,)
    if builtins.isinstance(value, kinds):
        return True
    return builtins.isinstance(value, Handle) and any(
        k in (np.ndarray, float, np.float64) and type(value) is k for k in kinds
    )


def type(value: Any) -> Any:
    """The class of a value: that of arrays, or of numbers, for what a function is called with."""
    if not builtins.isinstance(value, Handle):
        return builtins.type(value)
    return np.ndarray if value.ndim else value.dtype.type
