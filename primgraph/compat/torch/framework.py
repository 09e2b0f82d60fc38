"""Dtypes, the default one, devices: what belongs to no single function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from primgraph.errors import DTypeError, OptionError
from primgraph.ir.types import FLOAT32, DType, as_dtype

bool = np.dtype("bool")
cfloat = complex64 = np.dtype("complex64")
cdouble = complex128 = np.dtype("complex128")
double = float64 = np.dtype("float64")
float = float32 = np.dtype("float32")
half = float16 = np.dtype("float16")
int = int32 = np.dtype("int32")
int8 = np.dtype("int8")
int16 = short = np.dtype("int16")
int64 = long = np.dtype("int64")
uint8 = np.dtype("uint8")

_default_dtype: list[DType] = [FLOAT32]


@dataclass(frozen=True, slots=True)
class device:
    """Place of tensors: the processor's memory.

    >>> torch.zeros(2, device=torch.device("cpu")).device
    device(type='cpu')
    """

    type: str = "cpu"

    def __post_init__(self) -> None:
        if self.type != "cpu":
            raise OptionError(f"there is no device {self.type!r:.60}: tensors are on the 'cpu'")


def checked_device(given: Any) -> None:
    """Raise `OptionError` for another device than the processor."""
    if given is not None and not isinstance(given, device):
        device(given)


def get_default_dtype() -> DType:
    """Return the dtype of floats without one, initially float32; primgraph's own is separate.

    >>> torch.get_default_dtype()
    dtype('float32')
    """
    return _default_dtype[0]


def set_default_dtype(d: Any) -> None:
    """Set the dtype of floats without one. Raises `DTypeError` for a dtype that is not a float.

    >>> torch.set_default_dtype(torch.float64)
    >>> torch.ones(2).dtype
    dtype('float64')
    """
    found = as_dtype(d)
    if found.kind != "f":
        raise DTypeError(f"the default dtype is a float dtype, not {found}")
    _default_dtype[0] = found


def dtype_or_default(dtype: Any) -> DType:
    """The dtype that `dtype` names; the default one for None."""
    return _default_dtype[0] if dtype is None else as_dtype(dtype)
