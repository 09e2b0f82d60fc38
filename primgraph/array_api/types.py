"""Dtypes by the names of the standard, and what is asked about them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from primgraph.errors import ArgumentError
from primgraph.ir.types import as_dtype
from primgraph.operators.handle import Handle
from primgraph.operators.shape.creation import astype as converted

__all__ = [
    "astype",
    "bool",
    "can_cast",
    "complex64",
    "complex128",
    "finfo",
    "float32",
    "float64",
    "iinfo",
    "int8",
    "int16",
    "int32",
    "int64",
    "isdtype",
    "result_type",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

bool = np.dtype(np.bool_)
complex64 = np.dtype(np.complex64)
complex128 = np.dtype(np.complex128)
float32 = np.dtype(np.float32)
float64 = np.dtype(np.float64)
int8 = np.dtype(np.int8)
int16 = np.dtype(np.int16)
int32 = np.dtype(np.int32)
int64 = np.dtype(np.int64)
uint8 = np.dtype(np.uint8)
uint16 = np.dtype(np.uint16)
uint32 = np.dtype(np.uint32)
uint64 = np.dtype(np.uint64)


class FloatLimits(NamedTuple):
    """Result of `finfo` for a float dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


class IntegerLimits(NamedTuple):
    """Result of `iinfo` for an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: Any


def dtype_of(given: Any) -> Any:
    """The dtype of an array, or the one that is given."""
    return given.dtype if isinstance(given, Handle | np.ndarray) else as_dtype(given)


def require_cpu(device: Any) -> None:
    """Raise `ArgumentError` for another device than the one that there is."""
    if device not in (None, "cpu"):
        raise ArgumentError(f"there is no device {device!r:.60}", hint="all arrays are on 'cpu'")


def astype(x: Any, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Any:
    """Convert to another dtype; the result is an array of its own if `copy`.

    >>> xp.astype(xp.asarray([1.5, 2.5]), xp.int64)
    tensor([1, 2], dtype=int64)
    """
    require_cpu(device)
    if not copy and x.dtype == dtype:
        return x
    return converted(x, dtype)


def can_cast(from_: Any, to: Any, /) -> Any:
    """Return whether a dtype, or that of an array, promotes to another by the standard's rules.

    >>> bool(xp.can_cast(xp.float64, xp.float32))
    False
    """
    return np.can_cast(dtype_of(from_), dtype_of(to))


def finfo(type: Any, /) -> FloatLimits:
    """Return the limits of a float dtype, or of that of an array.

    >>> xp.finfo(xp.float32).bits
    32
    """
    dtype = dtype_of(type)
    found = np.finfo(dtype)
    eps, high, low = float(found.eps), float(found.max), float(found.min)
    return FloatLimits(found.bits, eps, high, low, float(found.smallest_normal), found.dtype)


def iinfo(type: Any, /) -> IntegerLimits:
    """Return the limits of an integer dtype, or of that of an array.

    >>> xp.iinfo(xp.int16).max
    32767
    """
    dtype = dtype_of(type)
    found = np.iinfo(dtype)
    return IntegerLimits(found.bits, found.max, found.min, dtype)


def isdtype(dtype: Any, kind: Any) -> Any:
    """Return whether a dtype is another, or of a kind such as "real floating", or one of several.

    >>> xp.isdtype(xp.float32, "real floating")
    True
    """
    return np.isdtype(dtype, kind)


def result_type(*arrays_and_dtypes: Any) -> Any:
    """Return the dtype to which arrays, numbers and dtypes are promoted together.

    >>> xp.result_type(xp.float32, xp.float64)
    dtype('float64')
    """
    return np.result_type(*(a.dtype if isinstance(a, Handle) else a for a in arrays_and_dtypes))
