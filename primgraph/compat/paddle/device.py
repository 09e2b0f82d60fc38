"""The processor, by the names of `paddle.device`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from primgraph.compat.absent import absent
from primgraph.compat.paddle.framework import CPUPlace, checked_place

__all__ = [
    "get_all_device_type",
    "get_available_device",
    "get_device",
    "is_compiled_with_cuda",
    "is_compiled_with_rocm",
    "is_compiled_with_xpu",
    "set_device",
    "synchronize",
]


def set_device(device: Any) -> CPUPlace:
    """Accept "cpu". Raises `ArgumentError`, a ValueError, for other devices.

    >>> paddle.set_device("cpu")
    Place(cpu)
    """
    checked_place("set_device", device)
    return CPUPlace()


def get_device() -> str:
    """Return the device of tensors.

    >>> paddle.get_device()
    'cpu'
    """
    return "cpu"


def get_all_device_type() -> list[str]:
    """Return the kinds of devices: the CPU."""
    return ["cpu"]


def get_available_device() -> list[str]:
    """Return the devices: the CPU."""
    return ["cpu"]


def synchronize(device: Any = None) -> None:
    """Do nothing: results are there when they are read."""


def is_compiled_with_cuda() -> bool:
    """Return False: there is no GPU.

    >>> paddle.is_compiled_with_cuda()
    False
    """
    return False


def is_compiled_with_rocm() -> bool:
    """Return False: there is no GPU.

    >>> paddle.is_compiled_with_rocm()
    False
    """
    return False


def is_compiled_with_xpu() -> bool:
    """Return False: there is no XPU.

    >>> paddle.is_compiled_with_xpu()
    False
    """
    return False


class cuda:
    """GPUs, of which there are none."""

    @staticmethod
    def device_count() -> int:
        """Return 0."""
        return 0

    @staticmethod
    def is_available() -> bool:
        """Return False."""
        return False

    @staticmethod
    def synchronize(device: Any = None) -> None:
        """Do nothing."""

    @staticmethod
    def empty_cache() -> None:
        """Do nothing."""


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
