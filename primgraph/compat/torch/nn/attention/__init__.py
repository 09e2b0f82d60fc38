"""Kernels of `scaled_dot_product_attention`: there is one, and choosing another has no effect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from primgraph.compat.absent import absent
from primgraph.errors import CheckError

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(IntEnum):
    """Kernel of attention in torch; results are the same up to rounding.

    >>> torch.nn.attention.SDPBackend.MATH.name
    'MATH'
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """Accept the kernels that attention may use: it computes the same with all.

    >>> with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
    ...     pass
    """
    for backend in backends if isinstance(backends, list | tuple) else [backends]:
        if not isinstance(backend, SDPBackend):
            raise CheckError(
                "Backend must be an instance of SDPBackend or a list of SDPBackend instances, not "
                f"{backend!r:.60}"
            )
    yield


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
