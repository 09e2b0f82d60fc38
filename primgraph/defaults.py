"""Default dtype."""

from __future__ import annotations

from typing import Any

from primgraph.errors import DTypeError
from primgraph.ir.types import FLOAT64, DType, as_dtype

# The default dtype is the only item.
current: list[DType] = [FLOAT64]


def get_default_dtype() -> DType:
    """Return the dtype of inputs declared without one and of Python floats; float64 at the start.

    >>> pg.get_default_dtype()
    dtype('float64')
    """
    return current[0]


def set_default_dtype(dtype: Any) -> None:
    """Set the default dtype for all programs built from now on.

    Raises `DTypeError` for anything but a float dtype.

    >>> pg.set_default_dtype("float32")
    >>> pg.zeros(2).dtype
    dtype('float32')
    >>> pg.set_default_dtype("float64")
    """
    found = as_dtype(dtype)
    if found.kind != "f":
        raise DTypeError(f"the default dtype is a float dtype, not {found}")
    current[0] = found
