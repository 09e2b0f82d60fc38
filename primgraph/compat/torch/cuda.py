"""`torch.cuda` of a machine without such devices: there are none, and streams do nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from primgraph.compat.absent import absent

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "memory_allocated",
    "reset_peak_memory_stats",
    "synchronize",
]


def is_available() -> bool:
    """Return False.

    >>> torch.cuda.is_available()
    False
    """
    return False


def is_initialized() -> bool:
    """Return False.

    >>> torch.cuda.is_initialized()
    False
    """
    return False


def is_bf16_supported() -> bool:
    """Return False.

    >>> torch.cuda.is_bf16_supported()
    False
    """
    return False


def device_count() -> int:
    """Return the number of devices: none.

    >>> torch.cuda.device_count()
    0
    """
    return 0


def memory_allocated(device: Any = None) -> int:
    """Return 0, the bytes on a device that there is not.

    >>> torch.cuda.memory_allocated()
    0
    """
    return 0


max_memory_allocated = memory_allocated


def empty_cache() -> None:
    """Do nothing: there is no device whose memory could be freed.

    >>> torch.cuda.empty_cache()
    """


reset_peak_memory_stats = empty_cache


def manual_seed(seed: int) -> None:
    """Do nothing: no numbers are drawn on a device.

    >>> torch.cuda.manual_seed(0)
    """


manual_seed_all = manual_seed


def synchronize(device: Any = None) -> None:
    """Do nothing: no device computes.

    >>> torch.cuda.synchronize()
    """


def current_device() -> int:
    """Raise `UnknownNameError`: there is no device.

    >>> torch.cuda.device_count() and torch.cuda.current_device()
    0
    """
    absent(__name__)("current_device")


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
