"""Devices by the names of `megengine.device`: there is the processor alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from primgraph.compat.absent import absent
from primgraph.compat.megengine.tensor import check_device

__all__ = [
    "coalesce_free_memory",
    "get_default_device",
    "get_device_count",
    "is_atlas_available",
    "is_cambricon_available",
    "is_cuda_available",
    "is_rocm_available",
    "set_default_device",
    "set_prealloc_config",
    "what_is_xpu",
]

_default = ["xpux"]


def is_cuda_available() -> bool:
    """Return False: there are no GPUs.

    >>> megengine.device.is_cuda_available()
    False
    """
    return False


is_atlas_available = is_cambricon_available = is_rocm_available = is_cuda_available


def get_device_count(device_type: str) -> int:
    """Return 1 for "cpu" and "xpu", else 0.

    >>> megengine.device.get_device_count("gpu")
    0
    """
    return int(device_type in ("cpu", "xpu"))


def set_default_device(device: str = "xpux") -> None:
    """Accept the processor, "xpux" or "cpux"; others are an `OptionError`.

    >>> megengine.device.set_default_device("cpux")
    """
    check_device(device)
    _default[0] = device


def get_default_device() -> str:
    """Return the device that was set, "xpux" at first.

    >>> megengine.device.set_default_device("xpux")
    >>> megengine.device.get_default_device()
    'xpux'
    """
    return _default[0]


def what_is_xpu() -> str:
    """Return "cpu".

    >>> megengine.device.what_is_xpu()
    'cpu'
    """
    return "cpu"


def set_prealloc_config(*args: Any, **options: Any) -> None:
    """Do nothing: memory of GPUs is not allocated.

    >>> megengine.device.set_prealloc_config()
    """


def coalesce_free_memory() -> None:
    """Do nothing: Python frees memory.

    >>> megengine.device.coalesce_free_memory()
    """


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
