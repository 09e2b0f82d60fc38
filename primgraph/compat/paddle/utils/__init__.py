"""Helpers by the names that they have in `paddle.utils`."""

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.paddle.utils import unique_name
from primgraph.compat.paddle.utils.installation import run_check, try_import
from primgraph.compat.paddle.utils.nests import flatten, map_structure, pack_sequence_as

__all__ = [
    "flatten",
    "map_structure",
    "pack_sequence_as",
    "run_check",
    "try_import",
    "unique_name",
]

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
