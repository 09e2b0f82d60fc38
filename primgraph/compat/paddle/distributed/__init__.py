"""Processes of Paddle: one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from primgraph.compat.absent import absent
from primgraph.compat.paddle.distributed import fleet
from primgraph.compat.paddle.distributed.parallel import DataParallel

__all__ = [
    "DataParallel",
    "ParallelEnv",
    "fleet",
    "get_rank",
    "get_world_size",
    "init_parallel_env",
]


def get_rank(group: Any = None) -> int:
    """Return 0, the rank of the only process.

    >>> paddle.distributed.get_rank()
    0
    """
    return 0


def get_world_size(group: Any = None) -> int:
    """Return 1, the number of processes.

    >>> paddle.distributed.get_world_size()
    1
    """
    return 1


def init_parallel_env() -> None:
    """Do nothing: there is one process.

    >>> paddle.distributed.init_parallel_env()
    """


class ParallelEnv:
    """The environment of the only process.

    >>> paddle.distributed.ParallelEnv().world_size
    1
    """

    rank = local_rank = device_id = 0
    world_size = nranks = 1


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
