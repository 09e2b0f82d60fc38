"""Helpers by the names that they have in `paddle.utils`."""

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.paddle.utils import unique_name

__all__ = ["unique_name"]

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
