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
    """Return whether `value` is of that kind, where an argument of a traced function is an array.

    An argument that is one number is a float, too.

    >>> from primgraph.compat.autograd import builtins
    >>> builtins.isinstance(np.ones(2), np.ndarray)
    True
    """
    if builtins.isinstance(value, kind):
        return True
    return builtins.isinstance(value, Handle) and issubclass(type(value), kind)


def type(value: Any) -> Any:
    """Return the class of a value; for an argument of a traced function, that of arrays or numbers.

    >>> from primgraph.compat.autograd import builtins
    >>> builtins.type(pg.ones(2))
    <class 'numpy.ndarray'>
    """
    if not builtins.isinstance(value, Handle):
        return builtins.type(value)
    return np.ndarray if value.ndim else value.dtype.type
