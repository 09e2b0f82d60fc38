"""Settings of computation: threads, determinism, precision and the default device."""

from __future__ import annotations

from typing import Any

from primgraph.codegen.run.threads import get_num_threads as get_num_threads
from primgraph.codegen.run.threads import set_num_threads as _set_num_threads
from primgraph.compat.torch.framework import checked_device, device
from primgraph.errors import ArgumentError

_settings: dict[str, Any] = {"deterministic": False, "precision": "highest"}


def set_num_threads(num: int) -> None:
    """Set the number of threads of compiled code.

    >>> torch.set_num_threads(1)
    >>> torch.get_num_threads()
    1
    """
    if not isinstance(num, int) or num < 1:
        raise ArgumentError(f"set_num_threads expects a positive integer, not {num!r:.60}")
    _set_num_threads(num)


def get_num_interop_threads() -> int:
    """Return 1: operators run one after another.

    >>> torch.get_num_interop_threads()
    1
    """
    return 1


def set_num_interop_threads(num: int) -> None:
    """Do nothing: operators run one after another.

    >>> torch.set_num_interop_threads(1)
    """


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Note the mode; all algorithms are deterministic.

    >>> torch.use_deterministic_algorithms(False)
    """
    _settings["deterministic"] = bool(mode)


def are_deterministic_algorithms_enabled() -> bool:
    """Return the mode that was set; all algorithms are deterministic.

    >>> torch.are_deterministic_algorithms_enabled()
    False
    """
    return bool(_settings["deterministic"])


def set_float32_matmul_precision(precision: str) -> None:
    """Note the precision of products; they are computed in float32.

    >>> torch.set_float32_matmul_precision("highest")
    """
    if precision not in ("highest", "high", "medium"):
        raise ArgumentError(f"precision is 'highest', 'high' or 'medium', not {precision!r:.60}")
    _settings["precision"] = precision


def get_float32_matmul_precision() -> str:
    """Return the precision that was set.

    >>> torch.get_float32_matmul_precision()
    'highest'
    """
    return str(_settings["precision"])


def get_default_device() -> device:
    """Return the processor.

    >>> torch.get_default_device()
    device(type='cpu')
    """
    return device()


def set_default_device(device: Any) -> None:
    """Raise `OptionError` for another device than the processor.

    >>> torch.set_default_device("cpu")
    """
    checked_device(device)


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Return False.

    >>> torch.is_autocast_enabled()
    False
    """
    return False


__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_default_device",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "get_num_threads",
    "is_autocast_enabled",
    "set_default_device",
    "set_float32_matmul_precision",
    "set_num_interop_threads",
    "set_num_threads",
    "use_deterministic_algorithms",
]
