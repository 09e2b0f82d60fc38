"""The processes of a program by the names of `oneflow.env`: there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent

__all__ = ["get_local_rank", "get_node_size", "get_rank", "get_world_size", "is_multi_client"]


def get_rank() -> int:
    """Return 0: there is one process.

    >>> flow.env.get_rank()
    0
    """
    return 0


def get_world_size() -> int:
    """Return 1: there is one process.

    >>> flow.env.get_world_size()
    1
    """
    return 1


get_local_rank, get_node_size = get_rank, get_world_size


def is_multi_client() -> bool:
    """Return True, as OneFlow does since 0.5.

    >>> flow.env.is_multi_client()
    True
    """
    return True


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
