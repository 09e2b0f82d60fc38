"""Import arrays of other libraries by the DLPack protocol."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.errors import ArgumentError


def is_exchanged(value: Any) -> bool:
    """Return whether `value` is an array by the DLPack protocol only, which NumPy does not use."""
    kind = type(value)
    return hasattr(kind, "__dlpack__") and not hasattr(kind, "__array__")


def convert_foreign_array(value: Any) -> Any:
    """Convert an array of another library to a NumPy array on the same memory; return others as is.

    Raises `ArgumentError` for an array that is not in CPU memory, or of a dtype that NumPy lacks.
    """
    return from_protocol(value) if is_exchanged(value) else value


def from_protocol(value: Any) -> np.ndarray[Any, Any]:
    """Return a NumPy array on the memory that `value` exports by `__dlpack__`."""
    name = type(value).__name__
    if not hasattr(value, "__dlpack__"):
        raise ArgumentError(
            f"from_dlpack takes an array with the method __dlpack__, not {name}",
            hint="pg.tensor(x) takes arrays of NumPy, numbers and lists",
        )
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"{name} hands out no array that NumPy can read: {error}",
            hint="copy it to the memory of the processor first, to a dtype that NumPy has",
        ) from None
