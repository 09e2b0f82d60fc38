"""The default dtype of Paddle's API, which is apart from primgraph's own."""

from __future__ import annotations

from typing import Any

from primgraph.errors import DTypeError
from primgraph.ir.types import FLOAT32, DType, as_dtype

_default_dtype: list[DType] = [FLOAT32]


def get_default_dtype() -> str:
    """Return the name of the dtype of arrays declared without one, initially float32 as in Paddle.

    It is separate from primgraph's own default dtype, which does not change.

    >>> paddle.get_default_dtype()
    'float32'
    """
    return _default_dtype[0].name


def set_default_dtype(d: Any) -> None:
    """Set the dtype of what is declared through this package without one.

    Raises `DTypeError` for anything but a float dtype.

    >>> paddle.set_default_dtype("float64")
    >>> paddle.ones([2]).dtype
    paddle.float64
    >>> paddle.set_default_dtype("float32")
    """
    found = as_dtype(d)
    if found.kind != "f":
        raise DTypeError(f"the default dtype is a float dtype, not {found}")
    _default_dtype[0] = found


def dtype_or_default(dtype: Any) -> DType:
    """The dtype that `dtype` names; the default one for None."""
    return _default_dtype[0] if dtype is None else as_dtype(dtype)
