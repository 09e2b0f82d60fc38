"""CUDA, which there is none of: programs that ask for it run on the processor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from primgraph.compat.torch.cuda import amp
from primgraph.compat.torch.framework import MissingDeviceError

__all__ = [
    "amp",
    "current_device",
    "device_count",
    "empty_cache",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "seed_all",
    "synchronize",
]


def is_available() -> bool:
    """Return False.

    >>> torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device(type='cpu')
    """
    return False


is_initialized = is_bf16_supported = is_available


def device_count() -> int:
    """Return 0.

    >>> torch.cuda.device_count()
    0
    """
    return 0


def memory_allocated(device: Any = None) -> int:
    """Return 0.

    >>> torch.cuda.memory_allocated()
    0
    """
    return 0


memory_reserved = max_memory_allocated = max_memory_reserved = memory_allocated


def manual_seed(seed: int) -> None:
    """Do nothing: `torch.manual_seed` sets the seed of the processor.

    >>> torch.cuda.manual_seed(0)
    """


manual_seed_all = manual_seed


def empty_cache() -> None:
    """Do nothing.

    >>> torch.cuda.empty_cache()
    """


reset_peak_memory_stats = seed_all = empty_cache


def synchronize(device: Any = None) -> None:
    """Do nothing: no device computes.

    >>> torch.cuda.synchronize()
    """


def current_device() -> NoReturn:
    """Raise `MissingDeviceError`: there is no CUDA.

    >>> torch.cuda.is_available() and torch.cuda.current_device()
    False
    """
    raise _no_cuda("current_device")


def _no_cuda(name: str) -> MissingDeviceError:
    return MissingDeviceError(
        f"torch.cuda.{name}: there is no CUDA, tensors are in the memory of the CPU",
        hint="ask for it where torch.cuda.is_available()",
    )


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

        def call(*args: Any, **kwargs: Any) -> NoReturn:
            raise _no_cuda(name)

        return call
