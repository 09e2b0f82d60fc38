"""Dtypes, the default one, devices: what belongs to no single function."""

from __future__ import annotations

import builtins
import re
from dataclasses import dataclass
from typing import Any

from primgraph.compat.dtypes import LibraryDType, dtypes_of
from primgraph.errors import ArgumentError, DTypeError, OptionError
from primgraph.ir.types import FLOAT32, DType, as_dtype

_DTYPES = dtypes_of("torch")
bool = _DTYPES["bool"]
cfloat = complex64 = _DTYPES["complex64"]
cdouble = complex128 = _DTYPES["complex128"]
double = float64 = _DTYPES["float64"]
float = float32 = _DTYPES["float32"]
half = float16 = _DTYPES["float16"]
int = int32 = _DTYPES["int32"]
int8 = _DTYPES["int8"]
int16 = short = _DTYPES["int16"]
int64 = long = _DTYPES["int64"]
uint8 = _DTYPES["uint8"]
uint16 = _DTYPES["uint16"]
uint32 = _DTYPES["uint32"]
uint64 = _DTYPES["uint64"]

_default_dtype: list[DType] = [FLOAT32]


# Types of devices that torch has in a build for the processor, and their errors.
_DEVICES = ("cpu", "cuda", "ipu", "xpu", "mps", "meta", "hpu", "mtia", "xla", "vulkan")


class MissingDeviceError(OptionError, AssertionError):
    """Error for tensors on CUDA; torch raises an AssertionError for it."""


@dataclass(frozen=True, init=False, repr=False)
class device:
    """Place of tensors: `torch.device("cpu")` is the processor's memory.

    Others have names, but no tensors: these raise an `OptionError`.

    >>> torch.zeros(2, device=torch.device("cpu")).device
    device(type='cpu')
    """

    type: str = "cpu"
    index: Any = None

    def __init__(self, type: Any = "cpu", index: Any = None) -> None:
        if isinstance(type, device):
            type, index = type.type, type.index
        found = re.fullmatch(r"(\w+)(?::(\d+))?", str(type))
        if found is None or found[1] not in _DEVICES:
            raise OptionError(
                f"Expected one of {', '.join(_DEVICES)} device type at start of device string: "
                f"{type!r:.60}",
                hint="tensors are on the 'cpu'",
            )
        object.__setattr__(self, "type", found[1])
        object.__setattr__(self, "index", index if found[2] is None else builtins.int(found[2]))

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __enter__(self) -> device:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def checked_device(given: Any) -> None:
    """Raise `OptionError` for another device than the processor."""
    if given is None:
        return
    wanted = given if isinstance(given, device) else device(given)
    if wanted.type == "cpu":
        return
    message = f"there is no device {str(wanted)!r}: tensors are on the 'cpu'"
    hint = "torch.cuda.is_available() is False"
    if wanted.type == "cuda":
        raise MissingDeviceError(f"Torch not compiled with CUDA enabled: {message}", hint=hint)
    raise OptionError(message, hint=hint)


def get_default_dtype() -> LibraryDType:
    """Return the dtype of floats without one, initially float32; primgraph's own is separate.

    >>> torch.get_default_dtype()
    torch.float32
    """
    return LibraryDType("torch", _default_dtype[0])


def set_default_dtype(d: Any) -> None:
    """Set the dtype of floats without one. Raises `DTypeError` for a dtype that is not a float.

    >>> torch.set_default_dtype(torch.float64)
    >>> torch.ones(2).dtype
    torch.float64
    """
    found = as_dtype(d)
    if found.kind != "f":
        raise DTypeError(f"the default dtype is a float dtype, not {found}")
    _default_dtype[0] = found


def get_default_device() -> device:
    """Return the device of new tensors: the processor.

    >>> torch.get_default_device()
    device(type='cpu')
    """
    return device()


def set_default_device(device: Any) -> None:
    """Check that `device` is the processor, where all tensors are.

    >>> torch.set_default_device("cpu")
    """
    checked_device(device)


def dtype_or_default(dtype: Any) -> DType:
    """Return NumPy's dtype of `dtype`; the default one for None. Raises `ArgumentError` for text.

    >>> torch.framework.dtype_or_default(torch.int64)
    dtype('int64')
    """
    if isinstance(dtype, str):
        raise ArgumentError(
            f"dtype= must be torch.dtype, not str {dtype!r:.60}", hint="write torch.float32"
        )
    return _default_dtype[0] if dtype is None else as_dtype(dtype)
