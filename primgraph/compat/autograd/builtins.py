"""Python's containers and questions about them, which take arrays of primgraph as they are."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from primgraph.operators.handle import Handle

# Containers of tensors are Python's own.
dict = builtins.dict
list = builtins.list
tuple = builtins.tuple  # type: ignore[type-arg]


def isinstance(value: Any, kind: Any) -> bool:
    """Python's, for which what a function is called with is an array, or a float where it is one
    number."""
    if builtins.isinstance(value, kind):
        return True
    return builtins.isinstance(value, Handle) and issubclass(type(value), kind)


def type(value: Any) -> Any:
    """The class of a value: that of arrays, or of numbers, for what a function is called with."""
    if not builtins.isinstance(value, Handle):
        return builtins.type(value)
    return np.ndarray if value.ndim else value.dtype.type
