"""Names of `megengine.distributed` for one process; all others are not part of the package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from primgraph.compat.absent import absent

__all__ = ["get_rank", "get_world_size", "group_barrier", "is_distributed"]


def get_rank() -> int:
    """Return 0: there is one process.

    >>> megengine.distributed.get_rank()
    0
    """
    return 0


def get_world_size() -> int:
    """Return 1: there is one process.

    >>> megengine.distributed.get_world_size()
    1
    """
    return 1


def is_distributed() -> bool:
    """Return False: there is one process.

    >>> megengine.distributed.is_distributed()
    False
    """
    return False


def group_barrier(group: Any = None) -> None:
    """Do nothing: there is one process.

    >>> megengine.distributed.group_barrier()
    """


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
