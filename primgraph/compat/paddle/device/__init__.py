"""Devices of Paddle: the processor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from primgraph.compat.absent import absent
from primgraph.compat.paddle.device import cuda
from primgraph.compat.paddle.framework import CPUPlace
from primgraph.errors import OptionError

__all__ = [
    "CUDAPinnedPlace",
    "CUDAPlace",
    "cuda",
    "device_count",
    "get_all_device_type",
    "get_available_device",
    "get_cudnn_version",
    "get_device",
    "is_compiled_with_cinn",
    "is_compiled_with_cuda",
    "is_compiled_with_distribute",
    "is_compiled_with_ipu",
    "is_compiled_with_rocm",
    "is_compiled_with_xpu",
    "set_device",
    "synchronize",
]


def get_device() -> str:
    """Return "cpu".

    >>> paddle.get_device()
    'cpu'
    """
    return "cpu"


def set_device(device: Any) -> CPUPlace:
    """Return the place of a device. Raises `OptionError` for another one than the processor.

    >>> paddle.set_device("cpu") == paddle.CPUPlace()
    True
    """
    if not isinstance(device, CPUPlace) and device != "cpu":
        raise OptionError(f"The device should not be {device!r:.60}: tensors are on the 'cpu'")
    return CPUPlace()


class CUDAPlace:
    """Place of CUDA, which there is none of: making one raises `OptionError`.

    >>> paddle.is_compiled_with_cuda() and paddle.CUDAPlace(0)
    False
    """

    def __init__(self, id: int = 0) -> None:
        raise OptionError(
            f"{type(self).__name__}: there is no CUDA, tensors are in the memory of the CPU",
            hint="paddle.CPUPlace()",
        )


class CUDAPinnedPlace(CUDAPlace):
    """Place of pinned memory, which there is none of: making one raises `OptionError`.

    >>> paddle.is_compiled_with_cuda() and paddle.CUDAPinnedPlace()
    False
    """


def is_compiled_with_cuda() -> bool:
    """Return False.

    >>> paddle.is_compiled_with_cuda()
    False
    """
    return False


is_compiled_with_cinn = is_compiled_with_distribute = is_compiled_with_cuda
is_compiled_with_ipu = is_compiled_with_rocm = is_compiled_with_xpu = is_compiled_with_cuda


def device_count() -> int:
    """Return 0, the number of devices other than the processor."""
    return 0


def get_all_device_type() -> list[str]:
    """Return an empty list: there are no devices other than the processor."""
    return []


get_available_device = get_all_device_type


def get_cudnn_version() -> None:
    """Return None: there is no cuDNN.

    >>> paddle.get_cudnn_version() is None
    True
    """


def synchronize(device: Any = None) -> None:
    """Do nothing: results are computed when they are read."""


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
