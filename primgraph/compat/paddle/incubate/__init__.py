"""The part of `paddle.incubate` that is about derivatives."""

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.paddle.incubate import autograd

__all__ = ["autograd"]


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
